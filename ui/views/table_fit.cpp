// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/table_fit.h"

#include <QFontMetrics>
#include <QHeaderView>
#include <QTableView>
#include <algorithm>

namespace headroom::ui {

void fitColumns(QTableView& table, int mostLetters) {
  const QAbstractItemModel& model = *table.model();
  QHeaderView& header = *table.horizontalHeader();
  const QFontMetrics head = header.fontMetrics(), cells = table.fontMetrics();
  const int air = cells.averageCharWidth() * 7 / 4, margin = head.averageCharWidth() * 2;
  header.setDefaultAlignment(static_cast<Qt::Alignment>(Qt::AlignCenter | Qt::TextWordWrap));
  int height = 0;
  for (int column = 0; column < model.columnCount(); ++column) {
    const QString name = model.headerData(column, Qt::Horizontal, Qt::DisplayRole).toString();
    // Half of the name and a letter: so much that two lines hold it.
    int named = head.horizontalAdvance(name) / 2 + head.averageCharWidth();
    for (const QString& word : name.split(QLatin1Char(' '))) named = std::max(named, head.horizontalAdvance(word));
    int filled = 0;
    for (int row = 0; row < model.rowCount(); ++row) {
      const QString text = model.index(row, column).data(Qt::DisplayRole).toString();
      filled = std::max(filled, std::min(cells.horizontalAdvance(text), cells.averageCharWidth() * mostLetters));
    }
    const int width = std::max(named + margin, filled + air);
    table.setColumnWidth(column, width);
    const QRect room(0, 0, width - margin, head.height() * 8);
    height = std::max(height, head.boundingRect(room, Qt::AlignCenter | Qt::TextWordWrap, name).height());
  }
  header.setFixedHeight(height + head.height() / 2);
}

}  // namespace headroom::ui
