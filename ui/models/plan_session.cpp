// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/plan_session.h"

#include "ui/models/core_text.h"
#include "ui/models/layout_text.h"

#include <QFileInfo>

namespace headroom::ui {

PlanSession::PlanSession(QObject* parent) : QObject(parent), m_worker(new QObject) {
  m_machine = hostMachine(m_hostDevices);
  m_worker->moveToThread(&m_thread);
  connect(&m_thread, &QThread::finished, m_worker, &QObject::deleteLater);
  m_thread.setObjectName(QStringLiteral("planner"));
  m_thread.start();
}

PlanSession::~PlanSession() {
  ++m_openGeneration;
  ++m_planGeneration;
  m_thread.quit();
  m_thread.wait();
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
  QMetaObject::invokeMethod(m_worker, [this, generation, model, name = model.toStdString()] {
    if (generation != m_openGeneration) return;
    auto opened = std::make_shared<Result<ModelSource>>(headroom::openModel(name));
    QMetaObject::invokeMethod(
        this,
        [this, generation, model, opened] {
          if (generation != m_openGeneration) return;
          m_opening = false;
          if (!opened->has_value()) {
            emit openFailed(model, errorText(opened->error()));
            return;
          }
          m_model = std::make_shared<const ModelSource>(std::move(**opened));
          m_modelArgument = model;
          emit modelOpened();
          replan();
        },
        Qt::QueuedConnection);
  });
}

Status PlanSession::setMachine(const QString& text) {
  auto machine = parseMachine(text.toStdString(), m_hostDevices);
  if (!machine) return tl::unexpected(machine.error());
  m_machineText = text;
  m_machine = std::move(*machine);
  emit machineChanged();
  replan();
  return {};
}

void PlanSession::setHostDevices(const HostDeviceSettings& devices) {
  m_hostDevices = devices;
  // The present text was accepted before; with other host devices it means another machine.
  if (auto machine = parseMachine(m_machineText.toStdString(), m_hostDevices)) {
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
  m_report.reset();
  m_answers.clear();
  if (!m_model) return;
  m_planning = true;
  emit planningStarted();
  QMetaObject::invokeMethod(m_worker, [this, generation, model = m_model, machine = m_machine, options = m_options] {
    if (generation != m_planGeneration) return;
    auto planned = std::make_shared<Result<PlanReport>>(planModel(*model, machine, options));
    QMetaObject::invokeMethod(
        this,
        [this, generation, planned] {
          if (generation != m_planGeneration) return;
          m_planning = false;
          if (!planned->has_value()) {
            emit planFailed(errorText(planned->error()));
            return;
          }
          m_report = std::make_shared<const PlanReport>(std::move(**planned));
          emit planReady();
        },
        Qt::QueuedConnection);
  });
}

void PlanSession::compareEngines() {
  if (!m_model) return;
  const uint64_t generation = m_planGeneration;
  QMetaObject::invokeMethod(m_worker, [this, generation, model = m_model, machine = m_machine, options = m_options] {
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
      auto planned = planModel(*model, machine, asked);
      EngineAnswer answer{asked.engine, nullptr, {}};
      if (planned)
        answer.report = std::make_shared<const PlanReport>(std::move(*planned));
      else
        answer.problem = planned.error();
      answers->push_back(std::move(answer));
    }
    QMetaObject::invokeMethod(
        this,
        [this, generation, answers] {
          if (generation != m_planGeneration) return;
          m_answers = std::move(*answers);
          emit enginesCompared();
        },
        Qt::QueuedConnection);
  });
}

}  // namespace headroom::ui
