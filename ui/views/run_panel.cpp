// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/run_panel.h"

#include "ui/models/rank_list_model.h"
#include "ui/theme/icons.h"
#include "ui/views/card.h"
#include "ui/views/engine_text.h"
#include "ui/views/message_bar.h"
#include "ui/views/progress_delegate.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QStyledItemDelegate>
#include <QTimer>
#include <QTreeView>
#include <QVBoxLayout>

namespace headroom::ui {

namespace {
constexpr int kElapsedTickMs = 500;
constexpr int kMostRowsShown = 8;

// Rows and columns with air around the text.
class RoomyDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    return QStyledItemDelegate::sizeHint(option, index) +
           QSize(option.fontMetrics.averageCharWidth() * 3, option.fontMetrics.height() / 3);
  }
};

}  // namespace

RunPanel::RunPanel(EngineSession& session, QWidget* parent) : QWidget(parent), m_session(session) {
  build();
  connect(m_start, &QPushButton::clicked, this, &RunPanel::startRequested);
  connect(m_stop, &QPushButton::clicked, &m_session, &EngineSession::stop);
  connect(m_failure->button(), &QPushButton::clicked, &m_session, &EngineSession::restart);
  connect(&m_session, &EngineSession::phaseChanged, this, &RunPanel::refresh);
  connect(&m_session, &EngineSession::stateUpdated, this, &RunPanel::refresh);
  connect(&m_session, &EngineSession::failed, this, &RunPanel::refresh);
  connect(&m_session, &EngineSession::connectionProblemChanged, this, &RunPanel::refresh);
  connect(m_tick, &QTimer::timeout, this, &RunPanel::refreshElapsed);
  retranslate();
}

RunPanel::~RunPanel() = default;

void RunPanel::build() {
  m_start = new QPushButton(this);
  m_start->setObjectName(QStringLiteral("startButton"));
  m_start->setIcon(themedIcon(QStringLiteral("start")));
  m_stop = new QPushButton(this);
  m_stop->setObjectName(QStringLiteral("stopButton"));
  m_stop->setIcon(themedIcon(QStringLiteral("stop")));
  m_phase = makeTitle(this);
  m_phase->setObjectName(QStringLiteral("phaseLabel"));
  m_detail = makeTextLabel(this);
  m_detail->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  m_offer = makeQuietLabel(this);
  m_elapsed = makeQuietLabel(this);
  m_elapsed->setWordWrap(false);
  m_progress = new QProgressBar(this);
  m_progress->setTextVisible(false);
  m_progress->setFixedHeight(6);
  m_failure = new MessageBar(NoticeKind::Problem, this);
  m_failure->setObjectName(QStringLiteral("failureBar"));
  m_failure->button()->setObjectName(QStringLiteral("restartButton"));
  m_failure->button()->setIcon(themedIcon(QStringLiteral("refresh")));
  m_connection = new MessageBar(NoticeKind::Warning, this);

  m_ranks = new RankListModel(this);
  m_view = new QTreeView(this);
  m_view->setObjectName(QStringLiteral("rankTable"));
  m_view->setModel(m_ranks);
  m_view->setRootIsDecorated(false);
  m_view->viewport()->setAutoFillBackground(false);
  m_view->setItemDelegate(new RoomyDelegate(m_view));
  m_view->setUniformRowHeights(true);
  m_view->setFrameShape(QFrame::NoFrame);
  m_view->setSelectionMode(QAbstractItemView::SingleSelection);
  m_view->setItemDelegateForColumn(RankListModel::LoadColumn, new ProgressDelegate(RankListModel::LoadFractionRole, m_view));
  m_view->header()->setSectionResizeMode(QHeaderView::ResizeToContents);
  m_view->header()->setStretchLastSection(true);

  auto* row = new QHBoxLayout;
  row->addWidget(m_start);
  row->addWidget(m_stop);
  row->addSpacing(kGap);
  row->addWidget(m_phase);
  row->addWidget(m_elapsed);
  row->addWidget(m_detail, 100);
  row->addStretch(1);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(kGap);
  layout->addLayout(row);
  layout->addWidget(m_offer);
  layout->addWidget(m_failure);
  layout->addWidget(m_connection);
  layout->addWidget(m_progress);
  layout->addWidget(m_view);
  layout->addStretch(1);
  m_tick = new QTimer(this);
  m_tick->setInterval(kElapsedTickMs);
}

void RunPanel::setOffer(bool canStart, const QString& text) {
  m_canStart = canStart;
  m_offer->setText(text);
  refresh();
}

void RunPanel::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::LanguageChange) retranslate();
  if (event->type() == QEvent::FontChange || event->type() == QEvent::StyleChange) fitRows();
}

void RunPanel::retranslate() {
  m_start->setText(tr("&Start"));
  m_start->setToolTip(tr("Start the engine with the chosen layout"));
  m_failure->button()->setText(tr("&Restart"));
  m_failure->button()->setToolTip(tr("Start the same layout once more"));
  m_progress->setAccessibleName(tr("Weights loaded, all ranks together"));
  m_view->setAccessibleName(tr("Ranks of the engine"));
  m_ranks->retranslate();
  refresh();
}

void RunPanel::refresh() {
  const SessionPhase phase = m_session.phase();
  const bool running = m_session.isRunning();
  m_start->setEnabled(!running && m_canStart);
  m_start->setDefault(!running && m_canStart);
  m_stop->setEnabled(running);
  m_stop->setText(phase == SessionPhase::Stopping ? tr("&Kill now") : tr("S&top"));
  m_stop->setToolTip(phase == SessionPhase::Stopping ? tr("End the engine at once; answers being written are lost")
                                                     : tr("Stop the engine after what it is doing now"));
  m_phase->setText(phaseText(phase));
  const auto& request = m_session.request();
  m_detail->setVisible(phase == SessionPhase::Ready);
  if (phase == SessionPhase::Ready && request)
    m_detail->setText(
        tr("%1 as %2 at %3")
            .arg(request->modelName, layoutText(request->tp, request->pp, request->dp), m_session.url().toString()));
  m_offer->setVisible(!running && !m_offer->text().isEmpty());

  m_failure->setText(phase == SessionPhase::Failed ? m_session.failureReason() : QString());
  m_failure->button()->setVisible(request.has_value());
  m_connection->setText(m_session.connectionProblem().isEmpty()
                            ? QString()
                            : tr("The engine runs, but does not answer: %1").arg(m_session.connectionProblem()));

  m_ranks->setState(running ? m_session.state() : std::nullopt);
  const auto loaded = m_ranks->loadFraction();
  m_progress->setVisible(phase == SessionPhase::Starting || phase == SessionPhase::Loading);
  m_progress->setRange(0, loaded ? 1000 : 0);
  if (loaded) m_progress->setValue(static_cast<int>(*loaded * 1000));
  m_view->setVisible(m_ranks->rowCount() > 0);
  fitRows();
  if (running && !m_tick->isActive()) m_tick->start();
  if (!running) m_tick->stop();
  refreshElapsed();
}

void RunPanel::refreshElapsed() {
  m_elapsed->setVisible(m_session.request().has_value());
  m_elapsed->setText(durationText(m_session.elapsedMs()));
}

void RunPanel::fitRows() {
  if (!m_view || m_ranks->rowCount() == 0) return;
  const int rows = std::min(m_ranks->rowCount(), kMostRowsShown);
  const int rowHeight = std::max(m_view->sizeHintForRow(0), fontMetrics().lineSpacing());
  m_view->setFixedHeight(m_view->header()->sizeHint().height() + rows * rowHeight + 2 * m_view->frameWidth() + 4);
}

}  // namespace headroom::ui
