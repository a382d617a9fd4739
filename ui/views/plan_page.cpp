// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/plan_page.h"

#include "ui/charts/context_chart.h"
#include "ui/models/core_text.h"
#include "ui/models/layout_grid_model.h"
#include "ui/models/layout_text.h"
#include "ui/models/plan_session.h"
#include "ui/settings/app_settings.h"
#include "ui/views/calibration_dialog.h"
#include "ui/views/card.h"
#include "ui/views/catalog_dialog.h"
#include "ui/views/details_panel.h"
#include "ui/views/diagnosis_dialog.h"
#include "ui/views/engines_page.h"
#include "ui/views/layout_grid_view.h"
#include "ui/views/machine_bar.h"
#include "ui/views/model_bar.h"
#include "ui/views/notice_area.h"
#include "ui/views/option_panel.h"
#include "ui/views/wish_dialog.h"

#include <QComboBox>
#include <QDragEnterEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QMimeData>
#include <QSignalBlocker>
#include <QSplitter>
#include <QStackedWidget>
#include <QTabBar>
#include <QTimer>
#include <QUrl>
#include <QVBoxLayout>

namespace headroom::ui {
namespace {

// How long a plan for older inputs may stay on screen while the new one is made.
constexpr int kStaleMs = 150;
const QString kOpenTopic = QStringLiteral("open");
const QString kPlanTopic = QStringLiteral("plan");
const QString kModelTopic = QStringLiteral("model");
const QString kLogTopic = QStringLiteral("log");

// What is dropped is a log, unless its name says that it is a model.
bool isLog(const QString& file) {
  static const QStringList models{QStringLiteral("json"), QStringLiteral("gguf"), QStringLiteral("safetensors")};
  return QFileInfo(file).isFile() && !models.contains(QFileInfo(file).suffix().toLower());
}

}  // namespace

PlanPage::PlanPage(PlanSession& session, AppSettings& settings, QWidget* parent)
    : QWidget(parent), m_session(session), m_settings(settings) {
  setAcceptDrops(true);
  m_model = new LayoutGridModel(this);
  build();
  connectSession();
  m_machine->setMachine(m_session.machineText(), m_session.machine());
  m_options->setMachine(m_session.machine());
  retranslate();
  clearPlan({});
}

PlanPage::~PlanPage() { m_settings.setViewState(QStringLiteral("plan"), m_splitter->saveState()); }

void PlanPage::build() {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(kGap, kGap, kGap, kGap);
  layout->setSpacing(kGap);
  m_modelBar = new ModelBar(m_settings, this);
  m_notices = new NoticeArea(this);
  layout->addWidget(m_modelBar);
  layout->addWidget(m_notices);
  m_splitter = new QSplitter(Qt::Horizontal, this);
  m_splitter->setObjectName(QStringLiteral("planSplitter"));
  m_splitter->setChildrenCollapsible(false);
  m_splitter->setHandleWidth(kGap);
  m_splitter->addWidget(buildOptions());
  m_splitter->addWidget(buildGrid());
  auto* detailsCard = new Card(this);
  auto* detailsLayout = new QVBoxLayout(detailsCard);
  detailsLayout->setContentsMargins(1, 1, 1, 1);
  m_details = new DetailsPanel(detailsCard);
  detailsLayout->addWidget(m_details);
  m_splitter->addWidget(detailsCard);
  const int unit = fontMetrics().averageCharWidth();
  m_splitter->setSizes({unit * 38, unit * 84, unit * 54});
  m_splitter->setStretchFactor(0, 0);
  m_splitter->setStretchFactor(1, 3);
  m_splitter->setStretchFactor(2, 2);
  m_splitter->restoreState(m_settings.viewState(QStringLiteral("plan")));
  layout->addWidget(m_splitter, 1);
  m_stale = new QTimer(this);
  m_stale->setSingleShot(true);
  m_stale->setInterval(kStaleMs);
  connect(m_stale, &QTimer::timeout, this, [this] { clearPlan(tr("Planning …")); });
}

QWidget* PlanPage::buildOptions() {
  auto* card = new Card(this);
  auto* outer = new QVBoxLayout(card);
  outer->setContentsMargins(1, 1, 1, 1);
  auto* scroll = new ColumnScroll(card);
  auto* content = new QWidget;
  auto* layout = new QVBoxLayout(content);
  layout->setContentsMargins(kPadding, kPadding, kPadding, kPadding);
  layout->setSpacing(8);
  m_machineTitle = makeTitle(content);
  m_machine = new MachineBar(content);
  m_optionsTitle = makeTitle(content);
  m_options = new OptionPanel(content);
  layout->addWidget(m_machineTitle);
  layout->addWidget(m_machine);
  layout->addSpacing(kGap);
  layout->addWidget(m_optionsTitle);
  layout->addWidget(m_options);
  layout->addStretch(1);
  scroll->setWidget(content);
  content->setAutoFillBackground(false);
  outer->addWidget(scroll);
  return card;
}

QWidget* PlanPage::buildGrid() {
  auto* card = new Card(this);
  auto* layout = new QVBoxLayout(card);
  layout->setContentsMargins(kPadding, kPadding, kPadding, kPadding);
  layout->setSpacing(6);
  m_tabs = new QTabBar(card);
  m_tabs->setObjectName(QStringLiteral("planTabs"));
  m_tabs->setDrawBase(false);
  m_tabs->setExpanding(false);
  for (int tab = 0; tab < TabCount; ++tab) m_tabs->addTab(QString());
  m_tabPages = new QStackedWidget(card);
  m_replicasLabel = new QLabel(card);
  m_replicas = new QComboBox(card);
  m_replicas->setObjectName(QStringLiteral("replicas"));
  m_replicasLabel->setBuddy(m_replicas);
  auto* top = new QHBoxLayout;
  top->addWidget(m_tabs, 1);
  top->addWidget(m_replicasLabel);
  top->addWidget(m_replicas);
  layout->addLayout(top);
  layout->addWidget(m_tabPages, 1);
  auto* gridPage = new QWidget(m_tabPages);
  auto* gridLayout = new QVBoxLayout(gridPage);
  gridLayout->setContentsMargins(0, 0, 0, 0);
  gridLayout->setSpacing(6);
  m_gridHint = makeQuietLabel(gridPage);
  gridLayout->addWidget(m_gridHint);
  m_grid = new LayoutGridView(*m_model, gridPage);
  gridLayout->addWidget(m_grid, 1);
  m_legend = new GridLegend(gridPage);
  gridLayout->addWidget(m_legend);
  auto* contextPage = new QWidget(m_tabPages);
  auto* contextLayout = new QVBoxLayout(contextPage);
  contextLayout->setContentsMargins(0, 0, 0, 0);
  contextLayout->setSpacing(6);
  m_contextHint = makeQuietLabel(contextPage);
  contextLayout->addWidget(m_contextHint);
  m_context = new ContextChart(contextPage);
  contextLayout->addWidget(m_context, 1);
  m_engines = new EnginesPage(m_session, m_tabPages);
  m_tabPages->addWidget(gridPage);
  m_tabPages->addWidget(contextPage);
  m_tabPages->addWidget(m_engines);
  connect(m_tabs, &QTabBar::currentChanged, this, &PlanPage::showTab);
  return card;
}

void PlanPage::connectSession() {
  connect(m_modelBar, &ModelBar::openFileRequested, this, &PlanPage::openFile);
  connect(m_modelBar, &ModelBar::openFolderRequested, this, &PlanPage::openFolder);
  connect(m_modelBar, &ModelBar::catalogRequested, this, &PlanPage::openCatalog);
  connect(m_modelBar, &ModelBar::openRequested, &m_session, &PlanSession::openModel);
  connect(m_machine, &MachineBar::machineRequested, this, [this](const QString& text) {
    const Status set = m_session.setMachine(text);
    if (!set) return m_machine->setProblem(errorText(set.error()));
    m_settings.setMachine(text);
  });
  connect(m_machine, &MachineBar::wishRequested, this, &PlanPage::openWish);
  connect(m_options, &OptionPanel::optionsChanged, this, [this] { m_session.setOptions(m_options->options()); });
  connect(m_grid, &LayoutGridView::layoutSelected, this, [this](const QModelIndex& index) {
    if (!m_model->layoutAt(index)) return;
    m_selection = Selection{index.column() + 1, index.row() + 1, m_model->replicas()};
    m_chosen = m_chosen || !m_restoring;
    updateDetails();
  });
  connect(m_grid, &LayoutGridView::layoutActivated, this, [this] { m_details->setFocus(); });
  connect(m_replicas, &QComboBox::activated, this, [this](int row) {
    m_model->setReplicas(row + 1);
    m_selection.reset();
    m_chosen = true;
    restoreSelection();
  });
  connect(m_details, &DetailsPanel::startRequested, this, &PlanPage::startRequested);
  connect(m_details, &DetailsPanel::fixRequested, this, &PlanPage::applyFix);
  connect(m_details, &DetailsPanel::forgetRequested, this, [this] {
    if (const Status forgotten = m_session.forget(); !forgotten)
      m_notices->show(kLogTopic, NoticeKind::Problem, errorText(forgotten.error()));
  });
  connect(m_engines, &EnginesPage::engineChosen, this, [this](const EngineSelection& engine) {
    FixAction action;
    action.engine = engine;
    m_selection.reset();  // the other engine's own recommendation
    m_chosen = false;
    applyFix(action);
    showTab(GridTab);
  });

  connect(&m_session, &PlanSession::logRead, this, [this](const LogReading& reading) {
    m_notices->clear(kLogTopic);
    if (reading.failed() || !reading.calibration)
      showDiagnosis(reading);
    else
      showCalibration(*reading.calibration, reading);
  });
  connect(&m_session, &PlanSession::logFailed, this,
          [this](const QString& message) { m_notices->show(kLogTopic, NoticeKind::Problem, message); });
  connect(&m_session, &PlanSession::openStarted, this, [this](const QString& model) { m_modelBar->setOpening(model); });
  connect(&m_session, &PlanSession::openFailed, this, [this](const QString&, const QString& message) {
    m_modelBar->setOpening({});
    m_notices->show(kOpenTopic, NoticeKind::Problem, message);
  });
  connect(&m_session, &PlanSession::modelOpened, this, [this] {
    m_notices->clear(kOpenTopic);
    m_modelBar->setOpening({});
    m_modelBar->setModel(m_session.model());
    m_options->setModel(*m_session.model());
    m_settings.addRecentModel(m_session.modelArgument());
    m_selection.reset();
    m_chosen = false;
    QStringList warnings;
    for (const std::string& warning : m_session.model()->config.warnings) warnings << coreText(warning);
    if (warnings.isEmpty())
      m_notices->clear(kModelTopic);
    else
      m_notices->show(kModelTopic, NoticeKind::Warning, warnings.join(QLatin1Char('\n')));
  });
  connect(&m_session, &PlanSession::machineChanged, this, [this] {
    m_machine->setLocalGpus(m_session.localGpus());
    m_machine->setMachine(m_session.machineText(), m_session.machine());
    if (m_options->setMachine(m_session.machine())) m_session.setOptions(m_options->options());
    // Another machine has another recommendation; a layout that a person chose stays.
    if (!m_chosen) m_selection.reset();
  });
  connect(&m_session, &PlanSession::planningStarted, this, [this] {
    m_stale->start();
    emit selectionChanged();
  });
  connect(&m_session, &PlanSession::planReady, this, &PlanPage::showPlan);
  connect(&m_session, &PlanSession::planFailed, this, [this](const QString& message) {
    m_notices->show(kPlanTopic, NoticeKind::Problem, message);
    clearPlan(tr("There is no plan for these inputs."));
  });
}

void PlanPage::showDiagnosis(const LogReading& reading) {
  const LayoutPlan* layout = selectedLayout();
  auto* dialog = new DiagnosisDialog(
      reading, layout ? diagnosisActions(reading.diagnosis, *m_session.report(), *layout) : std::vector<FixAction>(), this);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  connect(dialog, &DiagnosisDialog::fixRequested, this, &PlanPage::applyFix);
  connect(dialog, &DiagnosisDialog::calibrationRequested, this,
          [this, reading](const Calibration& calibration) { showCalibration(calibration, reading); });
  dialog->open();
}

void PlanPage::showCalibration(const Calibration& calibration, const LogReading& reading) {
  auto* dialog = new CalibrationDialog(calibration, this);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setProblems(static_cast<int>(reading.diagnosis.findings.size()));
  connect(dialog, &CalibrationDialog::problemsRequested, this, [this, reading] { showDiagnosis(reading); });
  connect(dialog, &CalibrationDialog::kept, this, [this](const Calibration& kept) {
    FixAction action;
    action.engine = kept.log.engine;
    m_selection = Selection{kept.tp, kept.pp, kept.dp};
    m_options->apply(action);
    if (const Status stored = m_session.keep(kept); !stored)
      m_notices->show(kLogTopic, NoticeKind::Problem, errorText(stored.error()));
    m_session.setOptions(m_options->options());
  });
  dialog->open();
}

void PlanPage::showPlan() {
  m_stale->stop();
  m_notices->clear(kPlanTopic);
  m_options->setResolved(m_session.report()->options);
  m_model->setReport(m_session.report());
  fillReplicas();
  restoreSelection();
}

void PlanPage::clearPlan(const QString& text) {
  m_stale->stop();
  m_model->setReport(nullptr);
  m_grid->setEmptyText(text.isEmpty() ? tr("Open a model to see every layout of these GPUs.") : text);
  fillReplicas();
  updateDetails();
}

void PlanPage::fillReplicas() {
  const QSignalBlocker block(m_replicas);
  if (m_replicas->count() != m_model->maxReplicas()) {
    m_replicas->clear();
    for (int replicas = 1; replicas <= m_model->maxReplicas(); ++replicas) m_replicas->addItem(QLocale().toString(replicas));
  }
  m_replicas->setCurrentIndex(m_model->replicas() - 1);
  m_replicas->setEnabled(m_replicas->count() > 1);
}

void PlanPage::restoreSelection() {
  const auto& report = m_model->report();
  if (!report) return updateDetails();
  QModelIndex index;
  if (m_selection && report->find(m_selection->tp, m_selection->pp, m_selection->dp)) {
    if (m_model->replicas() != m_selection->dp) {
      m_model->setReplicas(m_selection->dp);
      m_replicas->setCurrentIndex(m_selection->dp - 1);
    }
    index = m_model->indexOf(m_selection->tp, m_selection->pp);
  } else {
    if (!m_selection && report->recommended && m_model->recommendedIndex().isValid()) index = m_model->recommendedIndex();
    if (!index.isValid()) index = m_model->indexOf(1, 1);
  }
  if (!index.isValid()) return updateDetails();
  m_selection = Selection{index.column() + 1, index.row() + 1, m_model->replicas()};
  m_restoring = true;
  m_grid->setCurrentIndex(index);
  m_restoring = false;
  updateDetails();
}

void PlanPage::updateDetails() {
  const LayoutPlan* layout = nullptr;
  const auto& report = m_model->report();
  if (report && m_selection) layout = report->find(m_selection->tp, m_selection->pp, m_selection->dp);
  if (m_selection) m_session.setInterest(m_selection->tp, m_selection->pp, m_selection->dp);
  m_details->setLayout(layout ? report : nullptr, layout, m_session.modelArgument());
  updateContext(layout);
  emit selectionChanged();
}

void PlanPage::updateContext(const LayoutPlan* layout) {
  if (m_tabs->currentIndex() != ContextTab) return;
  ContextCurve curve;
  if (layout) {
    curve.points = layout->contextSeries.all();
    if (const int64_t asked = m_model->report()->options.maxModelLen; asked > 0) curve.asked = asked;
    if (!layout->answers.empty()) curve.longest = layout->answers.front().longestContext;
    m_contextHint->setText(tr("%1: memory of the fullest GPU when each of %n request(s) has grown to a length.", nullptr,
                              static_cast<int>(m_model->report()->options.concurrency))
                               .arg(layoutName(*layout)));
  } else {
    m_contextHint->clear();
  }
  m_context->setCurve(std::move(curve));
}

void PlanPage::showTab(int tab) {
  if (m_tabs->currentIndex() != tab) m_tabs->setCurrentIndex(tab);
  m_tabPages->setCurrentIndex(tab);
  m_replicas->setVisible(tab != EnginesTab);
  m_replicasLabel->setVisible(tab != EnginesTab);
  if (tab == ContextTab) updateDetails();
}

void PlanPage::applyFix(const FixAction& action) {
  if (action.layout) selectLayout(action.layout->tp, action.layout->pp, action.layout->dp);
  if (m_options->apply(action)) m_session.setOptions(m_options->options());
}

const LayoutPlan* PlanPage::selectedLayout() const {
  const auto& report = m_session.report();
  return report && m_selection ? report->find(m_selection->tp, m_selection->pp, m_selection->dp) : nullptr;
}

void PlanPage::selectLayout(int tp, int pp, int dp) {
  m_selection = Selection{tp, pp, dp};
  m_chosen = true;
  restoreSelection();
}

void PlanPage::setStartObstacle(const QString& obstacle) { m_details->setStartObstacle(obstacle); }

void PlanPage::openFile() {
  auto* dialog = new QFileDialog(this, tr("Open a model file"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setFileMode(QFileDialog::ExistingFile);
  dialog->setNameFilters({tr("Models (*.json *.gguf *.safetensors)"), tr("All files (*)")});
  connect(dialog, &QFileDialog::fileSelected, &m_session, &PlanSession::openModel);
  dialog->open();
}

void PlanPage::openFolder() {
  auto* dialog = new QFileDialog(this, tr("Open a model folder"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setFileMode(QFileDialog::Directory);
  dialog->setOption(QFileDialog::ShowDirsOnly);
  connect(dialog, &QFileDialog::fileSelected, &m_session, &PlanSession::openModel);
  dialog->open();
}

void PlanPage::openLog() {
  auto* dialog = new QFileDialog(this, tr("Open an engine's log"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setFileMode(QFileDialog::ExistingFile);
  dialog->setNameFilters({tr("Logs (*.log *.txt *.out)"), tr("All files (*)")});
  connect(dialog, &QFileDialog::fileSelected, &m_session, &PlanSession::readLog);
  dialog->open();
}

void PlanPage::openWish() {
  if (!m_session.model())
    return m_notices->show(kOpenTopic, NoticeKind::Warning, tr("Open a model first: GPUs are looked for that serve it."));
  auto* dialog = new WishDialog(m_session, m_settings, this);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  connect(dialog, &WishDialog::machineChosen, this, [this](const WishChoice& choice) {
    m_options->setLoad(choice.options);
    m_selection = Selection{choice.answer.tp, choice.answer.pp, choice.answer.dp};
    m_chosen = true;
    m_session.setOptions(m_options->options());
    const QString machine = fromCore(choice.answer.gpus);
    if (m_session.setMachine(machine)) m_settings.setMachine(machine);
    showTab(GridTab);
  });
  dialog->open();
}

void PlanPage::openCatalog() {
  auto* dialog = new CatalogDialog(this);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  connect(dialog, &CatalogDialog::modelChosen, &m_session, &PlanSession::openModel);
  dialog->open();
}

void PlanPage::dragEnterEvent(QDragEnterEvent* event) {
  const QList<QUrl> urls = event->mimeData()->urls();
  if (urls.size() == 1 && urls.first().isLocalFile()) event->acceptProposedAction();
}

void PlanPage::dropEvent(QDropEvent* event) {
  const QList<QUrl> urls = event->mimeData()->urls();
  if (urls.size() != 1 || !urls.first().isLocalFile()) return;
  event->acceptProposedAction();
  take(urls.first().toLocalFile());
}

void PlanPage::take(const QString& path) {
  if (isLog(path)) return m_session.readLog(path);
  m_session.openModel(path);
}

void PlanPage::retranslate() {
  m_machineTitle->setText(tr("Machine"));
  m_optionsTitle->setText(tr("Plan for"));
  m_tabs->setTabText(GridTab, tr("Layouts"));
  m_tabs->setTabText(ContextTab, tr("Memory and context"));
  m_tabs->setTabText(EnginesTab, tr("Engines"));
  m_tabs->setAccessibleName(tr("Views of the plan"));
  if (m_model->report()) updateDetails();
  m_gridHint->setText(
      tr("Headroom of the fullest GPU, and the tokens its KV cache has room for. Columns: tensor parallel (TP). Rows: pipeline "
         "stages (PP)."));
  m_replicasLabel->setText(tr("&Replicas (DP)"));
  m_grid->setAccessibleName(tr("Layouts: rows are pipeline stages, columns tensor-parallel ranks"));
  m_model->retranslate();
  if (!m_model->report()) m_grid->setEmptyText(tr("Open a model to see every layout of these GPUs."));
}

void PlanPage::changeEvent(QEvent* event) {
  if (event->type() == QEvent::LanguageChange) retranslate();
  QWidget::changeEvent(event);
}

}  // namespace headroom::ui
