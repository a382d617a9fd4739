// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/engines_page.h"

#include "ui/models/layout_text.h"
#include "ui/views/card.h"
#include "ui/views/table_fit.h"

#include <QEvent>
#include <QHeaderView>
#include <QPushButton>
#include <QTableView>
#include <QVBoxLayout>

namespace headroom::ui {
namespace {

constexpr int kMostLetters = 24;  // of a cell: all of a sentence stands beneath the table

}  // namespace

EnginesPage::EnginesPage(PlanSession& session, QWidget* parent)
    : QWidget(parent), m_session(session), m_model(new EngineComparisonModel(this)) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(8);
  m_hint = makeQuietLabel(this);
  layout->addWidget(m_hint);
  m_table = new QTableView(this);
  m_table->setObjectName(QStringLiteral("engineTable"));
  m_table->setModel(m_model);
  m_table->setSelectionBehavior(QAbstractItemView::SelectRows);
  m_table->setSelectionMode(QAbstractItemView::SingleSelection);
  m_table->setEditTriggers(QAbstractItemView::NoEditTriggers);
  m_table->setAlternatingRowColors(true);
  m_table->setShowGrid(false);
  m_table->setWordWrap(false);
  m_table->setTabKeyNavigation(false);
  m_table->verticalHeader()->hide();
  m_table->verticalHeader()->setDefaultSectionSize(fontMetrics().height() * 2);
  layout->addWidget(m_table, 1);
  m_table->horizontalHeader()->setHighlightSections(false);
  m_detail = makeTextLabel(this);
  m_detail->setObjectName(QStringLiteral("engineDetail"));
  layout->addWidget(m_detail);
  m_use = new QPushButton(this);
  m_use->setObjectName(QStringLiteral("useEngine"));
  layout->addWidget(m_use, 0, Qt::AlignLeading);
  connect(m_use, &QPushButton::clicked, this, &EnginesPage::choose);
  connect(m_table, &QTableView::activated, this, &EnginesPage::choose);
  connect(m_table->selectionModel(), &QItemSelectionModel::currentChanged, this, [this] { retranslate(); });
  connect(&m_session, &PlanSession::planReady, this, [this] {
    if (isVisible()) m_session.compareEngines();
  });
  connect(&m_session, &PlanSession::planFailed, this, [this] {
    if (isVisible()) m_session.compareEngines();
  });
  connect(&m_session, &PlanSession::enginesCompared, this, &EnginesPage::refresh);
  retranslate();
}

void EnginesPage::refresh() {
  const int before = m_table->currentIndex().row();
  m_model->setAnswers(m_session.engineAnswers());
  fitColumns(*m_table, kMostLetters);
  if (m_model->rowCount() > 0) m_table->selectRow(std::clamp(before, 0, m_model->rowCount() - 1));
  retranslate();
}

void EnginesPage::choose() {
  if (const EngineAnswer* answer = m_model->answerAt(m_table->currentIndex().row())) emit engineChosen(answer->engine);
}

void EnginesPage::retranslate() {
  m_hint->setText(
      m_session.model()
          ? tr("Each engine at its newest known version with its own rules and memory, for the same model, GPUs and load.")
          : tr("Open a model to compare engines."));
  m_table->setAccessibleName(tr("Engines side by side"));
  const EngineAnswer* answer = m_model->answerAt(m_table->currentIndex().row());
  m_use->setText(answer ? tr("&Plan for %1").arg(engineTitle(answer->engine.kind)) : tr("&Plan for this engine"));
  m_use->setEnabled(answer != nullptr);
  m_detail->setText(m_model->sentence(m_table->currentIndex().row()));
}

void EnginesPage::changeEvent(QEvent* event) {
  if (event->type() == QEvent::LanguageChange) {
    m_model->retranslate();
    fitColumns(*m_table, kMostLetters);
    retranslate();
  }
  QWidget::changeEvent(event);
}

void EnginesPage::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  if (m_session.engineAnswers().empty()) m_session.compareEngines();
}

}  // namespace headroom::ui
