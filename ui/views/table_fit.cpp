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
  const int air = cells.averageCharWidth() * 7 / 4;
  header.setDefaultAlignment(static_cast<Qt::Alignment>(Qt::AlignCenter | Qt::TextWordWrap));
  int lines = 1;
  for (int column = 0; column < model.columnCount(); ++column) {
    const QString name = model.headerData(column, Qt::Horizontal, Qt::DisplayRole).toString();
    int widest = 0;
    for (const QString& word : name.split(QLatin1Char(' '))) widest = std::max(widest, head.horizontalAdvance(word));
    for (int row = 0; row < model.rowCount(); ++row) {
      const QString text = model.index(row, column).data(Qt::DisplayRole).toString();
      widest = std::max(widest, std::min(cells.horizontalAdvance(text), cells.averageCharWidth() * mostLetters));
    }
    table.setColumnWidth(column, widest + air);
    if (head.horizontalAdvance(name) > widest + air / 2) lines = 2;
  }
  header.setFixedHeight(head.lineSpacing() * lines + head.height() / 2);
}

}  // namespace headroom::ui
