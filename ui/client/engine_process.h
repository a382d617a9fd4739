// SPDX-License-Identifier: GPL-3.0-or-later
// EngineProcess: the child process. It starts the program, hands on its log and its ready line, and turns every way to end
// into one ProcessEnd. Never blocks, except for a moment in the destructor. GUI thread only.
#pragma once

#include <QCoreApplication>
#include <QObject>
#include <QProcess>
#include <QString>
#include <QStringList>
#include <QTimer>
#include <QUrl>
#include <cstdint>
#include <optional>

namespace headroom::ui {

// How a process ended, as facts; message() makes the sentence for people.
struct ProcessEnd {
  enum class Kind {
    Stopped,        // ended after it was asked to
    Refused,        // status 2: the arguments or a file are wrong
    Failed,         // any other status but 0: the work failed
    Killed,         // ended by a signal that nobody here sent
    Quit,           // status 0 without being asked
    CouldNotStart,  // the program is missing or not executable
  };
  Kind kind = Kind::Stopped;
  int exitStatus = 0;
  int signal = 0;
  bool hadToKill = false;                   // it did not end in time after being asked
  QString lastErrorLine;                    // the last non-empty line on stderr
  std::optional<int64_t> outOfMemoryKills;  // processes ended by the kernel's out-of-memory killer meanwhile (Linux)

  QString message() const;

  Q_DECLARE_TR_FUNCTIONS(headroom::ui::ProcessEnd)
};

// "SIGKILL" for 9; "signal 77" for what has no name.
QString signalName(int signal);
// A port on the loopback interface that was free a moment ago; 0 when there is none.
quint16 findFreePort();
// The path of the engine program: beside this program, then in PATH. Empty when neither has it.
QString findEngineProgram();

class EngineProcess : public QObject {
  Q_OBJECT

 public:
  explicit EngineProcess(QObject* parent = nullptr);
  ~EngineProcess() override;

  void start(const QString& program, const QStringList& arguments);
  void stop();  // SIGTERM, then SIGKILL after the stop timeout or at a second call
  bool isRunning() const { return m_process.state() != QProcess::NotRunning; }
  qint64 processId() const { return m_process.processId(); }
  void setStopTimeoutMs(int milliseconds) { m_killTimer.setInterval(milliseconds); }

 signals:
  void started();
  void ready(const QUrl& url);        // the ready line was written
  void logLine(const QString& line);  // a line of stderr, or of stdout that is not the ready line
  void ended(const headroom::ui::ProcessEnd& end);

 private:
  void readLines(QProcess::ProcessChannel channel, QByteArray& rest, bool flush);
  void takeLine(QProcess::ProcessChannel channel, const QByteArray& line);
  void finish(ProcessEnd end);

  QProcess m_process;
  QTimer m_killTimer;
  QByteArray m_outRest, m_errorRest;
  QString m_lastErrorLine;
  std::optional<int64_t> m_outOfMemoryKillsBefore;
  bool m_stopRequested = false;
  bool m_hadToKill = false;
};

}  // namespace headroom::ui
