// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/client/engine_session.h"

#include "ui/client/engine_client.h"
#include "ui/client/engine_process.h"

#include <QDir>
#include <QTemporaryFile>
#include <algorithm>

namespace headroom::ui {

namespace {

// Metrics come twice a second while an engine serves.
constexpr int kDefaultSilenceMs = 5000;

SessionPhase sessionPhase(EnginePhase phase) {
  switch (phase) {
    case EnginePhase::Loading:
      return SessionPhase::Loading;
    case EnginePhase::Ready:
      return SessionPhase::Ready;
    case EnginePhase::Draining:
      return SessionPhase::Stopping;
    case EnginePhase::Failed:
      return SessionPhase::Failed;
  }
  return SessionPhase::Loading;
}

}  // namespace

EngineSession::EngineSession(QObject* parent)
    : QObject(parent), m_process(std::make_unique<EngineProcess>()), m_client(std::make_unique<EngineClient>()) {
  m_client->setReconnectMs(100, 2000);
  m_silence.setSingleShot(true);
  m_silence.setInterval(kDefaultSilenceMs);
  connect(&m_silence, &QTimer::timeout, this, [this] {
    if (m_phase != SessionPhase::Ready || !m_process->isRunning()) return;
    setConnectionProblem(tr("nothing came from it for %n second(s). Wait, or stop it.", nullptr, m_silence.interval() / 1000));
  });
  connect(m_process.get(), &EngineProcess::logLine, this, &EngineSession::logLine);
  connect(m_process.get(), &EngineProcess::ended, this, &EngineSession::finish);
  connect(m_process.get(), &EngineProcess::started, this, [this] { m_client->openEvents(); });
  connect(m_process.get(), &EngineProcess::ready, this, [this](const QUrl& url) {
    if (url.isValid() && !url.isEmpty() && url != m_url) {  // the engine knows best where it listens
      m_url = url;
      m_client->setBaseUrl(url);
    }
    m_client->openEvents();
    m_client->fetchState();
  });
  connect(m_client.get(), &EngineClient::stateReceived, this, &EngineSession::applyState);
  connect(m_client.get(), &EngineClient::metricsReceived, this, [this](const MetricsSample& sample) {
    if (!m_process->isRunning()) return;
    setConnectionProblem({});
    heard();
    emit metricsUpdated(sample);
  });
  connect(m_client.get(), &EngineClient::eventsOpened, this, [this] {
    setConnectionProblem({});
    heard();
    m_client->fetchState();  // what happened before the stream was open
  });
  connect(m_client.get(), &EngineClient::eventsLost, this, [this](const QString& reason) {
    // Before the first answer the engine is still binding its port; after Stop it may close first.
    if (m_answered && m_process->isRunning() && m_phase != SessionPhase::Stopping) setConnectionProblem(reason);
  });
  connect(m_client.get(), &EngineClient::eventIgnored, this, &EngineSession::setConnectionProblem);
}

EngineSession::~EngineSession() {
  m_client->disconnect(this);
  m_process->disconnect(this);
}

void EngineSession::start(const LaunchRequest& request) {
  if (isRunning()) return;
  m_request = request;
  m_portRetried = false;
  launch();
}

void EngineSession::restart() {
  if (isRunning() || !m_request) return;
  m_portRetried = false;
  launch();
}

void EngineSession::launch() {
  const LaunchRequest& request = *m_request;
  m_answered = false;
  m_end.reset();
  setConnectionProblem({});
  EngineState planned;
  planned.model = request.modelName.toStdString();
  planned.tp = request.tp;
  planned.pp = request.pp;
  planned.dp = request.dp;
  planned.ranks = request.plannedRanks;
  m_state = planned;
  m_clock.start();
  m_elapsedMs = 0;

  const QString host = QStringLiteral("127.0.0.1");
  const quint16 port = findFreePort();
  m_url = QUrl(QStringLiteral("http://%1:%2").arg(host, QString::number(port)));
  m_client->setBaseUrl(m_url);
  const QString program = request.program.isEmpty() ? findEngineProgram() : request.program;
  setPhase(SessionPhase::Starting);
  emit stateUpdated(*m_state);
  QStringList arguments =
      request.arguments + QStringList{QStringLiteral("--host"), host, QStringLiteral("--port"), QString::number(port)};
  m_layoutFile.reset();
  if (!request.layoutFile.isEmpty()) {
    m_layoutFile = std::make_unique<QTemporaryFile>(QDir::tempPath() + QStringLiteral("/headroom-layout-XXXXXX.json"));
    const bool written = m_layoutFile->open() && m_layoutFile->write(request.layoutFile) == request.layoutFile.size() &&
                         m_layoutFile->flush();
    // A file that is not there is what the engine then names.
    arguments << QStringLiteral("--layout") << (written ? m_layoutFile->fileName() : m_layoutFile->fileTemplate());
  }
  m_process->start(program, arguments);
}

void EngineSession::stop() {
  if (!isRunning()) return;
  setPhase(SessionPhase::Stopping);
  setConnectionProblem({});
  m_process->stop();
}

bool EngineSession::isRunning() const {
  return m_process->isRunning() || (m_phase != SessionPhase::Idle && m_phase != SessionPhase::Failed);
}

qint64 EngineSession::processId() const { return m_process->processId(); }

qint64 EngineSession::elapsedMs() const { return isRunning() && m_clock.isValid() ? m_clock.elapsed() : m_elapsedMs; }

void EngineSession::setStopTimeoutMs(int milliseconds) { m_process->setStopTimeoutMs(milliseconds); }

void EngineSession::setPhase(SessionPhase phase) {
  if (phase == m_phase) return;
  m_phase = phase;
  emit phaseChanged(phase);
}

void EngineSession::setConnectionProblem(const QString& problem) {
  if (problem == m_connectionProblem) return;
  m_connectionProblem = problem;
  emit connectionProblemChanged(problem);
}

void EngineSession::heard() { m_silence.start(); }

void EngineSession::setSilenceMs(int milliseconds) { m_silence.setInterval(milliseconds); }

void EngineSession::applyState(const EngineState& state) {
  if (!m_process->isRunning()) return;
  m_answered = true;
  m_state = state;
  heard();
  // Failed is told once, when the process has ended and its last words are known.
  // Ready is who is heard: what happens before the stream is open would be missing in the charts.
  const bool heardOf = state.phase != EnginePhase::Ready || m_client->eventsConnected();
  if (m_phase != SessionPhase::Stopping && state.phase != EnginePhase::Failed && heardOf) setPhase(sessionPhase(state.phase));
  emit stateUpdated(state);
}

void EngineSession::finish(const ProcessEnd& end) {
  m_silence.stop();
  m_client->closeEvents();
  m_elapsedMs = m_clock.isValid() ? m_clock.elapsed() : 0;
  setConnectionProblem({});
  if (end.kind == ProcessEnd::Kind::Stopped) {
    setPhase(SessionPhase::Idle);
    emit stopped();
    return;
  }
  // Another program may take the chosen port before the engine binds it.
  const QString port = QString::number(m_url.port());
  if (end.kind == ProcessEnd::Kind::Refused && !m_answered && !m_portRetried && end.lastErrorLine.contains(port)) {
    m_portRetried = true;
    launch();
    return;
  }
  m_end = std::make_unique<ProcessEnd>(end);
  setPhase(SessionPhase::Failed);
  emit failed(failureReason(), m_request.has_value());
}

QString EngineSession::failureReason() const {
  if (!m_end) return {};
  const QString reason = m_end->message();
  const QString told = m_state ? QString::fromStdString(m_state->error) : QString();
  return told.isEmpty() || reason.contains(told) ? reason : tr("%1 The engine reported: %2").arg(reason, told);
}

}  // namespace headroom::ui
