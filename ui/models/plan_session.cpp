// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/plan_session.h"

#include "core/launch/prepared_model.h"
#include "ui/models/core_text.h"
#include "ui/models/layout_text.h"

#include <QFile>
#include <QFileInfo>
#include <QPointer>

namespace headroom::ui {
namespace {

// Lists of a layout are made when they are first read; here, so that the window need not wait for them.
void makeDetails(const LayoutPlan& layout) {
  layout.reasons.all();
  layout.warnings.all();
  layout.ranks.all();
  layout.answers.all();
  layout.contextSeries.all();
  layout.partition.all();
  layout.waste.all();
}

}  // namespace

PlanSession::PlanSession(QObject* parent, const QString& calibration)
    : QObject(parent), m_calibrations(calibration), m_worker("planner") {
  m_machine = hostMachine(m_hostDevices);
}

PlanSession::~PlanSession() {
  ++m_openGeneration;
  ++m_planGeneration;
  ++m_logGeneration;
  ++m_wishGeneration;
}

void PlanSession::openModel(const QString& model) {
  const uint64_t generation = ++m_openGeneration;
  m_opening = true;
  emit openStarted(model);
  if (model.contains(QChar::ReplacementCharacter) && !QFileInfo::exists(model)) {
    // Bytes that no text can hold were lost on the way here, so the file would not be found.
    m_opening = false;
    emit openFailed(model, tr("%1: found a name that is no UTF-8 text, expected one; rename the file or folder").arg(model));
    return;
  }
  m_worker.run([this, generation, model, name = model.toStdString()] {
    if (generation != m_openGeneration) return;
    auto opened = std::make_shared<Result<ModelSource>>(headroom::openModel(name));
    m_worker.deliver([this, generation, model, opened] {
      if (generation != m_openGeneration) return;
      m_opening = false;
      if (!opened->has_value()) {
        emit openFailed(model, errorText(opened->error()));
        return;
      }
      m_model = std::make_shared<const ModelSource>(std::move(**opened));
      m_prepared = std::make_shared<const PreparedModel>(m_model);
      m_modelArgument = model;
      ++m_wishGeneration;
      emit modelOpened();
      replan();
    });
  });
}

Status PlanSession::setMachine(const QString& text) {
  auto machine = parseMachine(text.toStdString(), m_hostDevices, m_localGpus.gpus);
  if (!machine) return tl::unexpected(machine.error());
  m_machineText = text;
  m_machine = std::move(*machine);
  emit machineChanged();
  replan();
  return {};
}

void PlanSession::setHostDevices(const HostDeviceSettings& devices) {
  m_hostDevices = devices;
  readMachineAnew();
}

void PlanSession::awaitLocalGpus() { m_awaitsGpus = true; }

void PlanSession::setLocalGpus(const LocalGpus& gpus) {
  m_awaitsGpus = false;
  m_localGpus = gpus;
  readMachineAnew();
}

// The present text was accepted before; with other devices it means another machine.
void PlanSession::readMachineAnew() {
  if (auto machine = parseMachine(m_machineText.toStdString(), m_hostDevices, m_localGpus.gpus)) {
    m_machine = std::move(*machine);
    emit machineChanged();
    replan();
  }
}

void PlanSession::setOptions(const PlanOptions& options) {
  m_options = options;
  replan();
}

void PlanSession::refresh() {
  if (!m_modelArgument.isEmpty())
    openModel(m_modelArgument);
  else
    replan();
}

void PlanSession::replan() {
  const uint64_t generation = ++m_planGeneration;
  if (m_report) m_replaced = std::move(m_report);
  m_report.reset();
  m_answers.clear();
  if (!m_model) return;
  m_planning = true;
  emit planningStarted();
  if (m_awaitsGpus && meansLocalGpus(m_machineText.toStdString())) return;
  PlanOptions asked = m_options;
  asked.corrections = m_calibrations.corrections(m_machine, asked.engine);
  m_worker.run([this, generation, model = m_prepared, machine = m_machine, options = asked, interest = m_interest] {
    if (generation != m_planGeneration) return;
    auto planned = std::make_shared<Result<PlanReport>>(planModel(*model, machine, options));
    if (planned->has_value() && generation == m_planGeneration) {
      const LayoutPlan* read = (*planned)->find(interest.tp, interest.pp, interest.dp);
      if (!read && (*planned)->recommended) {
        const auto& sizes = *(*planned)->recommended;
        read = (*planned)->find(sizes.tp, sizes.pp, sizes.dp);
      }
      if (read) makeDetails(*read);
    }
    m_worker.deliver([this, generation, planned] {
      if (generation != m_planGeneration) return;
      m_planning = false;
      if (!planned->has_value()) {
        emit planFailed(errorText(planned->error()));
        return;
      }
      m_report = std::make_shared<const PlanReport>(std::move(**planned));
      // Views hold the old report until they show the new one. Thousands of layouts are let go of on the worker's thread.
      std::shared_ptr<const PlanReport> replaced = std::move(m_replaced);
      const QPointer<PlanSession> self(this);
      emit planReady();
      if (self) m_worker.run([replaced = std::move(replaced)] {});
    });
  });
}

void PlanSession::searchMachines(const PlanOptions& options, const Wish& wish) {
  const uint64_t generation = ++m_wishGeneration;
  if (!m_model) return emit wishEnded(tr("Open a model first."));
  auto search = std::make_shared<Search>(Search{generation, m_prepared, options, wish});
  // What was measured here is of another machine.
  search->options.corrections.clear();
  searchCard(std::move(search), 0);
}

void PlanSession::cancelSearch() { ++m_wishGeneration; }

// A card at a time, so that a plan that is asked for meanwhile need not wait for the whole catalog.
void PlanSession::searchCard(std::shared_ptr<const Search> search, size_t card) {
  const std::vector<GpuSpec>& cards = gpuCatalog();
  if (card >= cards.size()) return emit wishEnded({});
  m_worker.run([this, search, card, name = cards[card].name] {
    if (search->generation != m_wishGeneration) return;
    auto report =
        std::make_shared<Result<WishReport>>(headroom::searchMachines(*search->model, search->options, search->wish, {name}));
    m_worker.deliver([this, search, card, report] {
      if (search->generation != m_wishGeneration) return;
      if (!report->has_value()) return emit wishEnded(errorText(report->error()));
      emit wishAnswered(**report);
      // Whoever was told may have begun another search.
      if (search->generation == m_wishGeneration) searchCard(search, card + 1);
    });
  });
}

void PlanSession::setInterest(int tp, int pp, int dp) { m_interest = {tp, pp, dp}; }

void PlanSession::readLog(const QString& name) {
  const uint64_t generation = ++m_logGeneration;
  m_worker.run([this, generation, name, model = m_model, machine = m_machine, options = m_options] {
    QFile file(name);
    auto read = std::make_shared<Result<LogReading>>(ui::readLog(file, model.get(), machine, options));
    m_worker.deliver([this, generation, read] {
      if (generation != m_logGeneration) return;
      if (!read->has_value()) return emit logFailed(errorText(read->error()));
      const LogReading& reading = **read;
      if (reading.failed() || reading.calibration || !reading.diagnosis.findings.empty()) return emit logRead(reading);
      emit logFailed(errorText(reading.notCalibrated));
    });
  });
}

Status PlanSession::keep(const Calibration& calibration) {
  if (!calibration.correction) return {};
  if (Status stored = m_calibrations.store(calibration.key, *calibration.correction); !stored) return stored;
  replan();
  return {};
}

Status PlanSession::forget() {
  if (Status forgotten = m_calibrations.forget(correctionKey(m_machine, m_options.engine)); !forgotten) return forgotten;
  replan();
  return {};
}

void PlanSession::compareEngines() {
  if (!m_model) return;
  const uint64_t generation = m_planGeneration;
  m_worker.run([this, generation, model = m_prepared, machine = m_machine, options = m_options, store = m_calibrations] {
    auto answers = std::make_shared<EngineAnswers>();
    for (const EngineKind kind : plannedEngines()) {
      if (generation != m_planGeneration) return;
      PlanOptions asked;
      asked.maxModelLen = options.maxModelLen;
      asked.concurrency = options.concurrency;
      asked.inputLen = options.inputLen;
      asked.outputLen = options.outputLen;
      asked.engine.kind = kind;
      if (kind == options.engine.kind) asked = options;
      asked.corrections = store.corrections(machine, asked.engine);
      auto planned = planModel(*model, machine, asked);
      EngineAnswer answer{asked.engine, nullptr, {}};
      if (planned)
        answer.report = std::make_shared<const PlanReport>(std::move(*planned));
      else
        answer.problem = planned.error();
      answers->push_back(std::move(answer));
    }
    m_worker.deliver([this, generation, answers] {
      if (generation != m_planGeneration) return;
      m_answers = std::move(*answers);
      emit enginesCompared();
    });
  });
}

}  // namespace headroom::ui
