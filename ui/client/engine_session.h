// SPDX-License-Identifier: GPL-3.0-or-later
// EngineSession: one engine from the pressed Start button to its end. It owns the child process and the HTTP connection,
// and turns both into phases, states, metrics, log lines and one sentence about the end. GUI thread only.
#pragma once

#include "core/protocol/engine_api.h"
#include "ui/client/predicted_figure.h"

#include <QElapsedTimer>
#include <QObject>
#include <QString>
#include <QStringList>
#include <QTimer>
#include <QUrl>
#include <memory>
#include <optional>
#include <vector>

class QTemporaryFile;

namespace headroom::ui {

class EngineClient;
class EngineProcess;
struct ProcessEnd;

// What to start, and what the plan promised about it. Predictions are shown beside what is measured; unknown ones stay empty.
struct LaunchRequest {
  QString program;        // path of headroom-engine; empty: found beside this program, then in PATH
  QStringList arguments;  // {"serve", MODEL, "--tp", "3", …} without --host and --port: the session chooses them
  QByteArray layoutFile;  // what `serve --layout` reads; empty: the sizes in `arguments` say all
  QString modelName;      // for people
  QString layoutName;     // for people: "TP3 × PP2"
  int tp = 1, pp = 1, dp = 1;
  std::vector<RankState>
      plannedRanks;  // rank, replica, stage, tpRank, device, layers and planned bytes, shown until the engine answers
  std::optional<PredictedFigure> predictedTokensPerSecond;        // generated, all requests together
  std::optional<PredictedFigure> predictedPromptTokensPerSecond;  // prefill
  std::optional<PredictedFigure> predictedTtftMs;
};

enum class SessionPhase {
  Idle,      // nothing was started yet, or the last engine was stopped on request
  Starting,  // the process runs, HTTP does not answer yet
  Loading,   // the engine reads weights
  Ready,     // it serves
  Stopping,  // asked to end, still there
  Failed     // it ended without being asked; failureReason() says why
};

class EngineSession : public QObject {
  Q_OBJECT

 public:
  explicit EngineSession(QObject* parent = nullptr);
  ~EngineSession() override;  // ends the child: SIGTERM, a short wait, SIGKILL

  // Starts an engine. Ignored while one runs (see isRunning).
  void start(const LaunchRequest& request);
  // Starts the last request once more. Ignored while an engine runs or when there was none.
  void restart();
  // Asks the engine to end and returns at once; a second call kills it.
  void stop();

  SessionPhase phase() const { return m_phase; }
  bool isRunning() const;  // a child process exists: Starting, Loading, Ready or Stopping
  bool isReady() const { return m_phase == SessionPhase::Ready; }
  // The last state of the running engine. Before its first answer: the planned ranks of the request. Empty when nothing was
  // started.
  const std::optional<EngineState>& state() const { return m_state; }
  const std::optional<LaunchRequest>& request() const { return m_request; }
  QUrl url() const { return m_url; }  // http://127.0.0.1:PORT, valid from start()
  // In the present language of the window; empty unless the engine ended unasked.
  QString failureReason() const;
  // A warning that something hangs: no answer from the engine for a while. Empty when all is well.
  QString connectionProblem() const { return m_connectionProblem; }
  qint64 processId() const;  // 0 when none
  qint64 elapsedMs() const;  // since start(), frozen at the end
  EngineClient& client() { return *m_client; }

  // How long stop() waits for a clean end before it kills. Default 15 s.
  void setStopTimeoutMs(int milliseconds);
  // A serving engine that says nothing for so long is reported as a connection problem. Default: 5 s.
  void setSilenceMs(int milliseconds);

 signals:
  void phaseChanged(headroom::ui::SessionPhase phase);
  void stateUpdated(const headroom::EngineState& state);
  void metricsUpdated(const headroom::MetricsSample& sample);
  void logLine(const QString& line);
  void connectionProblemChanged(const QString& problem);
  void failed(const QString& reason, bool canRestart);
  void stopped();  // ended on request

 private:
  void launch();
  void setPhase(SessionPhase phase);
  void applyState(const EngineState& state);
  void finish(const ProcessEnd& end);
  void setConnectionProblem(const QString& problem);
  void heard();  // something came from the engine

  std::unique_ptr<EngineProcess> m_process;
  std::unique_ptr<EngineClient> m_client;
  SessionPhase m_phase = SessionPhase::Idle;
  std::optional<EngineState> m_state;
  std::optional<LaunchRequest> m_request;
  std::unique_ptr<QTemporaryFile> m_layoutFile;  // of the running engine
  QUrl m_url;
  std::unique_ptr<ProcessEnd> m_end;  // how the last engine ended unasked
  QString m_connectionProblem;
  QElapsedTimer m_clock;
  QTimer m_silence;  // runs while the engine serves; restarted by everything that comes from it
  qint64 m_elapsedMs = 0;
  bool m_answered = false;     // the engine's own state was seen
  bool m_portRetried = false;  // a port taken between choosing and binding is tried once more
};

}  // namespace headroom::ui
