// SPDX-License-Identifier: GPL-3.0-or-later
// The grid of layouts: one cell selected at a time, fully usable by keyboard (arrows, Home, End, Enter). GUI thread only.
#pragma once

#include <QTableView>

namespace headroom::ui {

class LayoutCellDelegate;
class LayoutGridModel;

class LayoutGridView : public QTableView {
  Q_OBJECT

 public:
  explicit LayoutGridView(LayoutGridModel& model, QWidget* parent = nullptr);

  void setFaded(bool faded);
  // What the empty grid says.
  void setEmptyText(const QString& text);

 signals:
  void layoutSelected(const QModelIndex& index);   // current cell changed, invalid when none
  void layoutActivated(const QModelIndex& index);  // Enter or double click

 protected:
  void changeEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void currentChanged(const QModelIndex& current, const QModelIndex& previous) override;

 private:
  void updateCellSize();

  LayoutGridModel& m_model;
  LayoutCellDelegate* m_delegate;
  QString m_emptyText;
};

// Explains colours and symbols; wraps in narrow places.
class GridLegend : public QWidget {
  Q_OBJECT

 public:
  explicit GridLegend(QWidget* parent = nullptr);
  bool hasHeightForWidth() const override { return true; }
  int heightForWidth(int width) const override;
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 protected:
  void changeEvent(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  // Draws when there is a painter; returns the height for the width.
  int place(int width, QPainter* painter) const;
  void retranslate();
};

}  // namespace headroom::ui
