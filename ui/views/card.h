// SPDX-License-Identifier: GPL-3.0-or-later
// Small building blocks that give the pages one look: cards, titles, quiet text, key-value rows.
#pragma once

#include <QFrame>
#include <QLabel>
#include <QScrollArea>

class QVBoxLayout;

namespace headroom::ui {

// A raised surface with rounded corners, painted from the palette.
class Card : public QFrame {
  Q_OBJECT

 public:
  explicit Card(QWidget* parent = nullptr);

 protected:
  void paintEvent(QPaintEvent* event) override;
};

// A column that scrolls up and down only and is never narrower than what it holds.
class ColumnScroll : public QScrollArea {
  Q_OBJECT

 public:
  explicit ColumnScroll(QWidget* parent = nullptr);
  QSize minimumSizeHint() const override;

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
};

// Distances between and inside cards, in device-independent pixels.
inline constexpr int kGap = 10;
inline constexpr int kPadding = 14;

// Title of a card or of a section inside it.
QLabel* makeTitle(QWidget* parent, double scale = 1.15);
// Explaining text of less weight; wraps, can be selected.
QLabel* makeQuietLabel(QWidget* parent);
// Running text; wraps, can be selected with mouse and keyboard.
QLabel* makeTextLabel(QWidget* parent);

}  // namespace headroom::ui
