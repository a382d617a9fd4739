// SPDX-License-Identifier: GPL-3.0-or-later
// Widths of a table's columns where all of them are to be seen at once.
#pragma once

class QTableView;

namespace headroom::ui {

// Each column as wide as its texts and the longest word of its name; names take two lines where they must. A sentence takes
// `mostLetters` at most. What the table has room for beyond that goes to sentences that are cut, then to all columns, now and
// whenever the table's width changes. GUI thread only.
void fitColumns(QTableView& table, int mostLetters);

}  // namespace headroom::ui
