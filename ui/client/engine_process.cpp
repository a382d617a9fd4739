// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/client/engine_process.h"

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QJsonDocument>
#include <QJsonObject>
#include <QStandardPaths>
#include <QTcpServer>
#include <csignal>

#ifdef Q_OS_LINUX
#include <sys/prctl.h>
#endif

namespace headroom::ui {

namespace {

constexpr int kDefaultStopTimeoutMs = 15000;
constexpr int kDestructorWaitMs = 2000;
constexpr qsizetype kMaxLineBytes = 64 << 10;  // a longer line is cut: a log line, not a file

// The kernel counts the processes its out-of-memory killer ended, for everyone to read.
std::optional<int64_t> outOfMemoryKills() {
  QFile file(QStringLiteral("/proc/vmstat"));
  if (!file.open(QIODevice::ReadOnly)) return std::nullopt;
  const QByteArray text = file.readAll();
  for (const QByteArray& line : text.split('\n')) {
    if (!line.startsWith("oom_kill ")) continue;
    bool ok = false;
    const qlonglong count = line.mid(9).trimmed().toLongLong(&ok);
    if (ok) return count;
  }
  return std::nullopt;
}

}  // namespace

QString signalName(int signal) {
  switch (signal) {
    case SIGHUP:
      return QStringLiteral("SIGHUP");
    case SIGINT:
      return QStringLiteral("SIGINT");
    case SIGQUIT:
      return QStringLiteral("SIGQUIT");
    case SIGILL:
      return QStringLiteral("SIGILL");
    case SIGTRAP:
      return QStringLiteral("SIGTRAP");
    case SIGABRT:
      return QStringLiteral("SIGABRT");
    case SIGBUS:
      return QStringLiteral("SIGBUS");
    case SIGFPE:
      return QStringLiteral("SIGFPE");
    case SIGKILL:
      return QStringLiteral("SIGKILL");
    case SIGSEGV:
      return QStringLiteral("SIGSEGV");
    case SIGPIPE:
      return QStringLiteral("SIGPIPE");
    case SIGTERM:
      return QStringLiteral("SIGTERM");
    case SIGXCPU:
      return QStringLiteral("SIGXCPU");
    default:
      return QStringLiteral("signal %1").arg(signal);
  }
}

quint16 findFreePort() {
  QTcpServer server;
  return server.listen(QHostAddress::LocalHost, 0) ? server.serverPort() : quint16(0);
}

QString findEngineProgram() {
  const QString name = QStringLiteral("headroom-engine");
  const QString beside = QDir(QCoreApplication::applicationDirPath()).filePath(name);
  if (QFileInfo(beside).isExecutable()) return beside;
  return QStandardPaths::findExecutable(name);
}

QString ProcessEnd::message() const {
  switch (kind) {
    case Kind::Stopped:
      return hadToKill ? tr("The engine did not stop in time and was killed.") : tr("The engine was stopped.");
    case Kind::Refused:
      return lastErrorLine.isEmpty() ? tr("The engine refused to start (status 2) and gave no reason.")
                                     : tr("The engine refused to start: %1").arg(lastErrorLine);
    case Kind::Failed:
      return lastErrorLine.isEmpty() ? tr("The engine failed with status %1 and gave no reason.").arg(exitStatus)
                                     : tr("The engine failed (status %1): %2").arg(QString::number(exitStatus), lastErrorLine);
    case Kind::Killed: {
      const QString name = signalName(signal);
      if (signal == SIGKILL) {
        if (outOfMemoryKills.value_or(0) > 0)
          return tr("The engine was killed (%1). The system's out-of-memory killer was at work meanwhile: the machine "
                    "ran out of memory. Close other programs, or choose a shorter context or a smaller model.")
              .arg(name);
        return tr("The engine was killed (%1) by a person or by the system, for example by a memory limit "
                  "or the out-of-memory killer.")
            .arg(name);
      }
      if (signal == SIGTERM || signal == SIGINT || signal == SIGHUP)
        return tr("The engine was ended from outside (%1).").arg(name);
      return lastErrorLine.isEmpty() ? tr("The engine crashed (%1).").arg(name)
                                     : tr("The engine crashed (%1). Its last line: %2").arg(name, lastErrorLine);
    }
    case Kind::Quit:
      return tr("The engine ended by itself without an error.");
    case Kind::CouldNotStart:
      return tr("The engine program could not be started: %1").arg(lastErrorLine);
  }
  return {};
}

EngineProcess::EngineProcess(QObject* parent) : QObject(parent) {
  m_killTimer.setSingleShot(true);
  m_killTimer.setInterval(kDefaultStopTimeoutMs);
  connect(&m_killTimer, &QTimer::timeout, this, [this] {
    m_hadToKill = true;
    m_process.kill();
  });
  connect(&m_process, &QProcess::started, this, &EngineProcess::started);
  connect(&m_process, &QProcess::readyReadStandardOutput, this,
          [this] { readLines(QProcess::StandardOutput, m_outRest, false); });
  connect(&m_process, &QProcess::readyReadStandardError, this,
          [this] { readLines(QProcess::StandardError, m_errorRest, false); });
  connect(&m_process, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
    if (error != QProcess::FailedToStart) return;  // every other error is followed by finished()
    ProcessEnd end;
    end.kind = ProcessEnd::Kind::CouldNotStart;
    end.lastErrorLine = m_process.program().isEmpty()
                            ? m_process.errorString()
                            : QStringLiteral("%1: %2").arg(m_process.program(), m_process.errorString());
    finish(end);
  });
  connect(&m_process, &QProcess::finished, this, [this](int code, QProcess::ExitStatus status) {
    readLines(QProcess::StandardOutput, m_outRest, true);
    readLines(QProcess::StandardError, m_errorRest, true);
    ProcessEnd end;
    end.lastErrorLine = m_lastErrorLine;
    end.hadToKill = m_hadToKill;
    if (status == QProcess::CrashExit)
      end.signal = code;  // on Unix the code of a crash is the signal's number
    else
      end.exitStatus = code;
    if (m_stopRequested)
      end.kind = ProcessEnd::Kind::Stopped;
    else if (status == QProcess::CrashExit)
      end.kind = ProcessEnd::Kind::Killed;
    else
      end.kind = code == 0 ? ProcessEnd::Kind::Quit : code == 2 ? ProcessEnd::Kind::Refused : ProcessEnd::Kind::Failed;
    if (const auto kills = outOfMemoryKills(); kills && m_outOfMemoryKillsBefore)
      end.outOfMemoryKills = *kills - *m_outOfMemoryKillsBefore;
    finish(end);
  });
}

EngineProcess::~EngineProcess() {
  m_process.disconnect(this);
  if (!isRunning()) return;
  m_process.terminate();
  if (!m_process.waitForFinished(kDestructorWaitMs)) {
    m_process.kill();
    m_process.waitForFinished(kDestructorWaitMs);
  }
}

void EngineProcess::start(const QString& program, const QStringList& arguments) {
  if (isRunning()) return;
  m_outRest.clear();
  m_errorRest.clear();
  m_lastErrorLine.clear();
  m_stopRequested = false;
  m_hadToKill = false;
  m_outOfMemoryKillsBefore = outOfMemoryKills();
  if (program.isEmpty()) {
    ProcessEnd end;
    end.kind = ProcessEnd::Kind::CouldNotStart;
    end.lastErrorLine = tr("headroom-engine was found neither beside this program nor in PATH");
    QMetaObject::invokeMethod(
        this, [this, end] { finish(end); }, Qt::QueuedConnection);
    return;
  }
#ifdef Q_OS_LINUX
  // The engine must not outlive a window that crashed.
  m_process.setChildProcessModifier([] { ::prctl(PR_SET_PDEATHSIG, SIGTERM); });
#endif
  m_process.setProgram(program);
  m_process.setArguments(arguments);
  m_process.start(QIODevice::ReadOnly);
}

void EngineProcess::stop() {
  if (!isRunning()) return;
  if (m_stopRequested) {
    m_hadToKill = true;
    m_killTimer.stop();
    m_process.kill();
    return;
  }
  m_stopRequested = true;
  m_killTimer.start();
  m_process.terminate();
}

void EngineProcess::readLines(QProcess::ProcessChannel channel, QByteArray& rest, bool flush) {
  m_process.setReadChannel(channel);
  rest += m_process.readAll();
  qsizetype begin = 0;
  for (qsizetype end; (end = rest.indexOf('\n', begin)) >= 0; begin = end + 1) takeLine(channel, rest.mid(begin, end - begin));
  rest.remove(0, begin);
  if (rest.size() > kMaxLineBytes || (flush && !rest.isEmpty())) {
    takeLine(channel, rest);
    rest.clear();
  }
}

void EngineProcess::takeLine(QProcess::ProcessChannel channel, const QByteArray& line) {
  if (channel == QProcess::StandardOutput && line.trimmed().startsWith('{')) {
    const QJsonObject object = QJsonDocument::fromJson(line).object();
    if (object.value(QLatin1String("ready")).toBool()) {
      emit ready(QUrl(object.value(QLatin1String("url")).toString()));
      return;
    }
  }
  // A progress display rewrites its line with \r: what counts is the last state.
  QString text = QString::fromUtf8(line);
  while (text.endsWith(QLatin1Char('\r'))) text.chop(1);
  text = text.mid(text.lastIndexOf(QLatin1Char('\r')) + 1);
  if (channel == QProcess::StandardError && !text.trimmed().isEmpty()) m_lastErrorLine = text.trimmed();
  emit logLine(text);
}

void EngineProcess::finish(ProcessEnd end) {
  m_killTimer.stop();
  emit ended(end);
}

}  // namespace headroom::ui
