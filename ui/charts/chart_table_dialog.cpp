// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/charts/chart_table_dialog.h"

#include <QApplication>
#include <QClipboard>
#include <QDateTime>
#include <QDialogButtonBox>
#include <QHeaderView>
#include <QPushButton>
#include <QTableView>
#include <QVBoxLayout>
#include <cmath>

namespace headroom::ui {

ChartTableModel::ChartTableModel(ChartTable table, ValueUnit unit, QObject* parent)
    : QAbstractTableModel(parent), m_table(std::move(table)), m_unit(unit) {}

int ChartTableModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(m_table.rows.size());
}

int ChartTableModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(m_table.headers.size());
}

QVariant ChartTableModel::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
  const auto row = static_cast<std::size_t>(index.row());
  if (role == Qt::TextAlignmentRole) return QVariant(Qt::AlignRight | Qt::AlignVCenter);
  if (role != Qt::DisplayRole) return {};
  if (index.column() == 0)
    return QDateTime::fromMSecsSinceEpoch(std::llround(m_table.times[row] * 1000.0))
        .time()
        .toString(QStringLiteral("HH:mm:ss.zzz"));
  return formatValue(m_table.rows[row][static_cast<std::size_t>(index.column() - 1)], m_unit);
}

QVariant ChartTableModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role != Qt::DisplayRole) return {};
  if (orientation == Qt::Vertical) return section + 1;
  return section < m_table.headers.size() ? m_table.headers[section] : QString();
}

ChartTableDialog::ChartTableDialog(const QString& title, const ChartTable& table, ValueUnit unit, QWidget* parent)
    : QDialog(parent) {
  setWindowTitle(title);
  auto* view = new QTableView(this);
  view->setModel(new ChartTableModel(table, unit, this));
  view->setAccessibleName(title);
  view->setAlternatingRowColors(true);
  view->verticalHeader()->hide();
  view->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  view->scrollToBottom();
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
  QPushButton* copy = buttons->addButton(tr("&Copy as CSV"), QDialogButtonBox::ActionRole);
  connect(copy, &QPushButton::clicked, this, [csv = toCsv(table)] { QApplication::clipboard()->setText(csv); });
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(view);
  layout->addWidget(buttons);
  resize(fontMetrics().averageCharWidth() * 100, fontMetrics().lineSpacing() * 26);
}

}  // namespace headroom::ui
