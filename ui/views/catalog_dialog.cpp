// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/catalog_dialog.h"

#include "ui/models/catalog_model.h"
#include "ui/views/card.h"

#include <QApplication>
#include <QDialogButtonBox>
#include <QEvent>
#include <QHeaderView>
#include <QKeyEvent>
#include <QLineEdit>
#include <QPushButton>
#include <QSortFilterProxyModel>
#include <QTableView>
#include <QVBoxLayout>

namespace headroom::ui {

CatalogDialog::CatalogDialog(QWidget* parent) : QDialog(parent) {
  m_model = new CatalogTableModel(this);
  m_proxy = new QSortFilterProxyModel(this);
  m_proxy->setSourceModel(m_model);
  m_proxy->setSortRole(Qt::UserRole);
  m_proxy->setFilterCaseSensitivity(Qt::CaseInsensitive);
  m_proxy->setFilterKeyColumn(CatalogTableModel::Name);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(kPadding, kPadding, kPadding, kPadding);
  layout->setSpacing(8);
  m_search = new QLineEdit(this);
  m_search->setObjectName(QStringLiteral("catalogSearch"));
  m_search->setClearButtonEnabled(true);
  m_search->installEventFilter(this);
  m_table = new QTableView(this);
  m_table->setObjectName(QStringLiteral("catalogTable"));
  m_table->setModel(m_proxy);
  m_table->setSortingEnabled(true);
  m_table->sortByColumn(CatalogTableModel::Name, Qt::AscendingOrder);
  m_table->setSelectionBehavior(QAbstractItemView::SelectRows);
  m_table->setSelectionMode(QAbstractItemView::SingleSelection);
  m_table->setAlternatingRowColors(true);
  m_table->setShowGrid(false);
  m_table->setTabKeyNavigation(false);
  m_table->verticalHeader()->hide();
  m_table->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  m_table->horizontalHeader()->setSectionResizeMode(CatalogTableModel::Name, QHeaderView::Stretch);
  m_table->horizontalHeader()->setHighlightSections(false);
  m_count = makeQuietLabel(this);
  m_buttons = new QDialogButtonBox(QDialogButtonBox::Open | QDialogButtonBox::Cancel, this);
  layout->addWidget(m_search);
  layout->addWidget(m_table, 1);
  layout->addWidget(m_count);
  layout->addWidget(m_buttons);
  connect(m_search, &QLineEdit::textChanged, this, &CatalogDialog::filter);
  connect(m_table, &QTableView::doubleClicked, this, &CatalogDialog::choose);
  connect(m_buttons, &QDialogButtonBox::accepted, this, &CatalogDialog::choose);
  connect(m_buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  const QFontMetrics metrics = fontMetrics();
  resize(metrics.averageCharWidth() * 120, metrics.height() * 34);
  retranslate();
  filter({});
}

void CatalogDialog::filter(const QString& text) {
  // Words in any order: "72b qwen" finds Qwen2.5-72B.
  QString pattern;
  for (const QString& word : text.split(QLatin1Char(' '), Qt::SkipEmptyParts))
    pattern += QStringLiteral("(?=.*%1)").arg(QRegularExpression::escape(word));
  m_proxy->setFilterRegularExpression(QRegularExpression(pattern, QRegularExpression::CaseInsensitiveOption));
  if (m_proxy->rowCount() > 0) m_table->selectRow(0);
  m_count->setText(tr("%n model(s)", nullptr, m_proxy->rowCount()));
  m_buttons->button(QDialogButtonBox::Open)->setEnabled(m_proxy->rowCount() > 0);
}

void CatalogDialog::choose() {
  const QModelIndex index = m_proxy->mapToSource(m_table->currentIndex());
  if (!index.isValid()) return;
  emit modelChosen(m_model->nameAt(index.row()));
  accept();
}

bool CatalogDialog::eventFilter(QObject* watched, QEvent* event) {
  // Up and down move through the list and Return takes the marked model while the search keeps the focus.
  if (watched == m_search && event->type() == QEvent::KeyPress) {
    const int key = static_cast<QKeyEvent*>(event)->key();
    if (key == Qt::Key_Down || key == Qt::Key_Up || key == Qt::Key_PageDown || key == Qt::Key_PageUp) {
      QApplication::sendEvent(m_table, event);
      return true;
    }
    if (key == Qt::Key_Return || key == Qt::Key_Enter) {
      choose();
      return true;
    }
  }
  return QDialog::eventFilter(watched, event);
}

void CatalogDialog::retranslate() {
  setWindowTitle(tr("Model catalog"));
  m_search->setPlaceholderText(tr("Search by name"));
  m_search->setAccessibleName(tr("Search by name"));
  m_table->setAccessibleName(tr("Models"));
  m_count->setText(tr("%n model(s)", nullptr, m_proxy->rowCount()));
}

void CatalogDialog::changeEvent(QEvent* event) {
  if (event->type() == QEvent::LanguageChange) retranslate();
  QDialog::changeEvent(event);
}

}  // namespace headroom::ui
