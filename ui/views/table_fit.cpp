// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/table_fit.h"

#include <QEvent>
#include <QFontMetrics>
#include <QHeaderView>
#include <QTableView>
#include <algorithm>
#include <numeric>
#include <vector>

namespace headroom::ui {
namespace {

// Adds the amount to the widths by these weights; the sum is exact, whatever is rounded.
void deal(std::vector<int>& widths, const std::vector<int>& weights, int amount) {
  const int all = std::accumulate(weights.begin(), weights.end(), 0);
  if (all <= 0 || amount <= 0) return;
  int weight = 0, dealt = 0;  // of the columns so far
  for (size_t column = 0; column < widths.size(); ++column) {
    weight += weights[column];
    const int share = static_cast<int>(static_cast<int64_t>(amount) * weight / all) - dealt;
    dealt += share;
    widths[column] += share;
  }
}

// Deals the width of its table to the columns.
class ColumnFit : public QObject {
 public:
  explicit ColumnFit(QTableView& table) : QObject(&table), m_table(table) {
    setObjectName(kName);
    table.viewport()->installEventFilter(this);
  }
  static ColumnFit& of(QTableView& table) {
    auto* fit = static_cast<ColumnFit*>(table.findChild<QObject*>(kName, Qt::FindDirectChildrenOnly));
    return fit ? *fit : *new ColumnFit(table);
  }

  // What each column takes, and what it lacks to show all of its texts, in pixels.
  void set(std::vector<int> needed, std::vector<int> lacking) {
    m_needed = std::move(needed);
    m_lacking = std::move(lacking);
    apply();
  }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override {
    if (event->type() == QEvent::Resize) apply();
    return QObject::eventFilter(watched, event);
  }

 private:
  void apply() {
    std::vector<int> widths = m_needed;
    const int room = m_table.viewport()->width() - std::accumulate(m_needed.begin(), m_needed.end(), 0);
    const int lacking = std::min(room, std::accumulate(m_lacking.begin(), m_lacking.end(), 0));
    deal(widths, m_lacking, lacking);
    deal(widths, m_needed, room - std::max(0, lacking));
    for (size_t column = 0; column < widths.size(); ++column) m_table.setColumnWidth(static_cast<int>(column), widths[column]);
  }

  static const QString kName;
  QTableView& m_table;
  std::vector<int> m_needed, m_lacking;
};
const QString ColumnFit::kName = QStringLiteral("columnFit");

}  // namespace

void fitColumns(QTableView& table, int mostLetters) {
  const QAbstractItemModel& model = *table.model();
  QHeaderView& header = *table.horizontalHeader();
  const QFontMetrics head = header.fontMetrics(), cells = table.fontMetrics();
  const int air = cells.averageCharWidth() * 7 / 4, margin = head.averageCharWidth() * 2;
  header.setDefaultAlignment(static_cast<Qt::Alignment>(Qt::AlignCenter | Qt::TextWordWrap));
  int height = 0;
  std::vector<int> widths, lacking;
  for (int column = 0; column < model.columnCount(); ++column) {
    const QString name = model.headerData(column, Qt::Horizontal, Qt::DisplayRole).toString();
    // Half of the name and a letter: so much that two lines hold it.
    int named = head.horizontalAdvance(name) / 2 + head.averageCharWidth();
    for (const QString& word : name.split(QLatin1Char(' '))) named = std::max(named, head.horizontalAdvance(word));
    int longest = 0;
    for (int row = 0; row < model.rowCount(); ++row) {
      const QString text = model.index(row, column).data(Qt::DisplayRole).toString();
      longest = std::max(longest, cells.horizontalAdvance(text));
    }
    const int filled = std::min(longest, cells.averageCharWidth() * mostLetters);
    const int width = std::max(named + margin, filled + air);
    widths.push_back(width);
    lacking.push_back(std::max(0, longest + air - width));
    const QRect room(0, 0, width - margin, head.height() * 8);
    height = std::max(height, head.boundingRect(room, Qt::AlignCenter | Qt::TextWordWrap, name).height());
  }
  header.setFixedHeight(height + head.height() / 2);
  ColumnFit::of(table).set(std::move(widths), std::move(lacking));
}

}  // namespace headroom::ui
