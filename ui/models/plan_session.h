// SPDX-License-Identifier: GPL-3.0-or-later
// PlanSession: what is planned (model, machine, options) and the plan for exactly that. Opening and planning run on a worker
// thread; the latest input wins and a plan for older inputs is never delivered. GUI thread only.
#pragma once

#include "core/hardware/local_gpus.h"
#include "core/launch/plan_search.h"
#include "core/launch/planner.h"
#include "ui/models/background_worker.h"
#include "ui/models/calibration.h"
#include "ui/models/log_reading.h"

#include <QObject>
#include <QString>
#include <atomic>
#include <memory>
#include <vector>

namespace headroom::ui {

// The plan of another engine for the same model, machine and load; or why there is none.
struct EngineAnswer {
  EngineSelection engine;
  std::shared_ptr<const PlanReport> report;  // null: `problem` says why
  Error problem;
};
using EngineAnswers = std::vector<EngineAnswer>;

class PlanSession : public QObject {
  Q_OBJECT

 public:
  // What was measured on this machine is read from `calibration`; empty: the user's own file.
  explicit PlanSession(QObject* parent = nullptr, const QString& calibration = {});
  ~PlanSession() override;  // waits for the job in progress

  // A file, a folder or a catalog name. The present model stays until the new one is read, and when it cannot be read.
  void openModel(const QString& model);
  // "local", "6xA800-80GB", …; an error leaves the present machine.
  Status setMachine(const QString& text);
  void setHostDevices(const HostDeviceSettings& devices);
  // What "local" is waits for setLocalGpus: until then there is no plan for it.
  void awaitLocalGpus();
  void setLocalGpus(const LocalGpus& gpus);
  const LocalGpus& localGpus() const { return m_localGpus; }
  void setOptions(const PlanOptions& options);
  // Plans again, and reads the model's files again.
  void refresh();
  // Plans every engine at its newest version for the present model, machine and load; enginesCompared tells when it is done.
  // Types and limits that another engine may not know stay at its defaults.
  void compareEngines();
  // Looks for the smallest machine of each card of the catalog that grants the wish, for the present model and with these
  // options; wishAnswered tells each card as it is known, wishEnded when all are. A new search or another model ends an earlier
  // one.
  void searchMachines(const PlanOptions& options, const Wish& wish);
  void cancelSearch();
  // The layout that will be looked at: what a person reads of it is made on the worker thread.
  void setInterest(int tp, int pp, int dp);
  // Reads an engine's log on the worker thread: what went wrong, and what was measured; logRead or logFailed tells.
  void readLog(const QString& name);
  // Plans with what the log measured, now and from now on.
  Status keep(const Calibration& calibration);
  // Plans without what was measured with the present machine and engine, now and from now on.
  Status forget();
  const CalibrationStore& calibrations() const { return m_calibrations; }

  const std::shared_ptr<const ModelSource>& model() const { return m_model; }
  QString modelArgument() const { return m_modelArgument; }  // what openModel was given for it
  const Machine& machine() const { return m_machine; }
  QString machineText() const { return m_machineText; }
  const PlanOptions& options() const { return m_options; }
  // Null while the plan for the present inputs is not there.
  const std::shared_ptr<const PlanReport>& report() const { return m_report; }
  // Of the last comparison; empty while there is none for the present inputs.
  const EngineAnswers& engineAnswers() const { return m_answers; }
  bool isOpening() const { return m_opening; }
  bool isPlanning() const { return m_planning; }

 signals:
  void openStarted(const QString& model);
  void modelOpened();
  void openFailed(const QString& model, const QString& message);
  void machineChanged();
  void planningStarted();
  void planReady();
  void planFailed(const QString& message);
  void enginesCompared();
  void wishAnswered(const headroom::WishReport& ofOneCard);
  void wishEnded(const QString& problem);  // empty: all cards are told
  void logRead(const headroom::ui::LogReading& reading);
  void logFailed(const QString& message);

 private:
  void replan();
  void readMachineAnew();
  struct Search {
    uint64_t generation = 0;
    std::shared_ptr<const PreparedModel> model;
    PlanOptions options;
    Wish wish;
  };
  void searchCard(std::shared_ptr<const Search> search, size_t card);

  std::atomic<uint64_t> m_openGeneration = 0, m_planGeneration = 0, m_wishGeneration = 0;
  std::shared_ptr<const ModelSource> m_model;
  std::shared_ptr<const PreparedModel> m_prepared;  // of m_model
  QString m_modelArgument;
  HostDeviceSettings m_hostDevices;
  LocalGpus m_localGpus;
  bool m_awaitsGpus = false;
  QString m_machineText = QStringLiteral("local");
  Machine m_machine;
  PlanOptions m_options;
  std::shared_ptr<const PlanReport> m_report, m_replaced;  // m_replaced: the one before, while a new one is made
  EngineAnswers m_answers;
  CalibrationStore m_calibrations;
  std::atomic<uint64_t> m_logGeneration = 0;
  struct Interest {
    int tp = 0, pp = 0, dp = 0;
  };
  Interest m_interest;
  bool m_opening = false, m_planning = false;
  BackgroundWorker m_worker;  // last: its jobs read the rest
};

}  // namespace headroom::ui
