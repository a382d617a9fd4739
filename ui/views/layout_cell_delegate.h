// SPDX-License-Identifier: GPL-3.0-or-later
// One cell of the grid: colour, symbol, number and a second line; refused layouts hatched, the recommended one framed.
#pragma once

#include <QRectF>
#include <QStyledItemDelegate>

namespace headroom::ui {

// Where the parts of a cell stand in its box: verdict's symbol and star in the upper corners, two lines that never run over
// the symbol. Device-independent pixels.
struct CellGeometry {
  QRectF symbol, star, first, second;
};
CellGeometry cellGeometry(const QRectF& box, double lineHeight, bool twoLines);

class LayoutCellDelegate : public QStyledItemDelegate {
  Q_OBJECT

 public:
  explicit LayoutCellDelegate(QObject* parent = nullptr);
  // Cells fade while a newer plan is on its way.
  void setFaded(bool faded) { m_faded = faded; }

  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;

 private:
  bool m_faded = false;
};

}  // namespace headroom::ui
