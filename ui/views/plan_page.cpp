// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/plan_page.h"

#include "ui/models/layout_grid_model.h"
#include "ui/models/layout_text.h"
#include "ui/models/plan_session.h"
#include "ui/settings/app_settings.h"
#include "ui/views/card.h"
#include "ui/views/catalog_dialog.h"
#include "ui/views/details_panel.h"
#include "ui/views/layout_grid_view.h"
#include "ui/views/machine_bar.h"
#include "ui/views/model_bar.h"
#include "ui/views/notice_area.h"
#include "ui/views/option_panel.h"

#include <QComboBox>
#include <QDragEnterEvent>
#include <QFileDialog>
#include <QMimeData>
#include <QScrollArea>
#include <QScrollBar>
#include <QSignalBlocker>
#include <QSplitter>
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

}  // namespace

PlanPage::PlanPage(PlanSession& session, AppSettings& settings, QWidget* parent)
    : QWidget(parent), m_session(session), m_settings(settings) {
  setAcceptDrops(true);
  m_model = new LayoutGridModel(this);
  build();
  connectSession();
  m_machine->setMachine(m_session.machineText(), m_session.machine());
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
  auto* scroll = new QScrollArea(card);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setWidgetResizable(true);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll->viewport()->setAutoFillBackground(false);
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
  card->setMinimumWidth(content->minimumSizeHint().width() + scroll->verticalScrollBar()->sizeHint().width());
  return card;
}

QWidget* PlanPage::buildGrid() {
  auto* card = new Card(this);
  auto* layout = new QVBoxLayout(card);
  layout->setContentsMargins(kPadding, kPadding, kPadding, kPadding);
  layout->setSpacing(6);
  m_gridTitle = makeTitle(card);
  m_replicasLabel = new QLabel(card);
  m_replicas = new QComboBox(card);
  m_replicas->setObjectName(QStringLiteral("replicas"));
  m_replicasLabel->setBuddy(m_replicas);
  auto* top = new QHBoxLayout;
  top->addWidget(m_gridTitle, 1);
  top->addWidget(m_replicasLabel);
  top->addWidget(m_replicas);
  layout->addLayout(top);
  m_gridHint = makeQuietLabel(card);
  layout->addWidget(m_gridHint);
  m_grid = new LayoutGridView(*m_model, card);
  layout->addWidget(m_grid, 1);
  m_legend = new GridLegend(card);
  layout->addWidget(m_legend);
  return card;
}

void PlanPage::connectSession() {
  connect(m_modelBar, &ModelBar::openFileRequested, this, &PlanPage::openFile);
  connect(m_modelBar, &ModelBar::openFolderRequested, this, &PlanPage::openFolder);
  connect(m_modelBar, &ModelBar::catalogRequested, this, &PlanPage::openCatalog);
  connect(m_modelBar, &ModelBar::openRequested, &m_session, &PlanSession::openModel);
  connect(m_machine, &MachineBar::machineRequested, this, [this](const QString& text) {
    const Status set = m_session.setMachine(text);
    if (!set) return m_machine->setProblem(fromCore(set.error().message()));
    m_settings.setMachine(text);
  });
  connect(m_options, &OptionPanel::optionsChanged, this, [this] { m_session.setOptions(m_options->options()); });
  connect(m_grid, &LayoutGridView::layoutSelected, this, [this](const QModelIndex& index) {
    if (!m_model->layoutAt(index)) return;
    m_selection = Selection{index.column() + 1, index.row() + 1, m_model->replicas()};
    updateDetails();
  });
  connect(m_grid, &LayoutGridView::layoutActivated, this, [this] { m_details->setFocus(); });
  connect(m_replicas, &QComboBox::activated, this, [this](int row) {
    m_model->setReplicas(row + 1);
    m_selection.reset();
    restoreSelection();
  });
  connect(m_details, &DetailsPanel::startRequested, this, &PlanPage::startRequested);

  connect(&m_session, &PlanSession::openStarted, this, [this](const QString& model) { m_modelBar->setOpening(model); });
  connect(&m_session, &PlanSession::openFailed, this, [this](const QString&, const QString& message) {
    m_modelBar->setOpening({});
    m_notices->show(kOpenTopic, NoticeKind::Problem, message);
  });
  connect(&m_session, &PlanSession::modelOpened, this, [this] {
    m_notices->clear(kOpenTopic);
    m_modelBar->setOpening({});
    m_modelBar->setModel(m_session.model());
    m_settings.addRecentModel(m_session.modelArgument());
    m_selection.reset();
    QStringList warnings;
    for (const std::string& warning : m_session.model()->config.warnings) warnings << fromCore(warning);
    if (warnings.isEmpty())
      m_notices->clear(kModelTopic);
    else
      m_notices->show(kModelTopic, NoticeKind::Warning, warnings.join(QLatin1Char('\n')));
  });
  connect(&m_session, &PlanSession::machineChanged, this,
          [this] { m_machine->setMachine(m_session.machineText(), m_session.machine()); });
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
  m_replicas->clear();
  for (int replicas = 1; replicas <= m_model->maxReplicas(); ++replicas) m_replicas->addItem(QLocale().toString(replicas));
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
  m_grid->setCurrentIndex(index);
  updateDetails();
}

void PlanPage::updateDetails() {
  const LayoutPlan* layout = nullptr;
  const auto& report = m_model->report();
  if (report && m_selection) layout = report->find(m_selection->tp, m_selection->pp, m_selection->dp);
  m_details->setLayout(layout ? report : nullptr, layout, m_session.modelArgument());
  emit selectionChanged();
}

const LayoutPlan* PlanPage::selectedLayout() const {
  const auto& report = m_session.report();
  return report && m_selection ? report->find(m_selection->tp, m_selection->pp, m_selection->dp) : nullptr;
}

void PlanPage::selectLayout(int tp, int pp, int dp) {
  m_selection = Selection{tp, pp, dp};
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
  m_session.openModel(urls.first().toLocalFile());
}

void PlanPage::retranslate() {
  m_machineTitle->setText(tr("Machine"));
  m_optionsTitle->setText(tr("Plan for"));
  m_gridTitle->setText(tr("Layouts"));
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
