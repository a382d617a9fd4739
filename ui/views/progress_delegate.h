// SPDX-License-Identifier: GPL-3.0-or-later
// ProgressDelegate: a cell that is a share of something, as a bar with its text. GUI thread only.
#pragma once

#include <QStyledItemDelegate>

namespace headroom::ui {

class ProgressDelegate : public QStyledItemDelegate {
  Q_OBJECT

 public:
  // `fractionRole` gives a double 0..1; without one the cell is plain text.
  ProgressDelegate(int fractionRole, QObject* parent) : QStyledItemDelegate(parent), m_fractionRole(fractionRole) {}
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;

 private:
  int m_fractionRole;
};

}  // namespace headroom::ui
