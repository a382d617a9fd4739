// SPDX-License-Identifier: GPL-3.0-or-later
// MemoryBars: one stacked bar a GPU, the limiting one first, with a legend. Its accessible description says the same in
// words, and the details offer a table. GUI thread only.
#pragma once

#include "ui/models/memory_breakdown_model.h"

#include <QWidget>
#include <vector>

namespace headroom::ui {

// Where the segments of a bar stand: pure geometry, in pixels from the left. A bar that overflows is scaled, with `limit` inside.
struct BarGeometry {
  std::vector<double> ends;  // right edge of each segment
  double limit = 0;          // where the memory ends that the engine may use
};
BarGeometry barGeometry(const MemoryBarData& bar, double width);

class MemoryBars : public QWidget {
  Q_OBJECT

 public:
  explicit MemoryBars(QWidget* parent = nullptr);
  void setBars(std::vector<MemoryBarData> bars);
  const std::vector<MemoryBarData>& bars() const { return m_bars; }

  bool hasHeightForWidth() const override { return true; }
  int heightForWidth(int width) const override;
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 protected:
  bool event(QEvent* event) override;
  void changeEvent(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;

 private:
  int rowHeight() const;
  int legend(int width, int top, QPainter* painter) const;
  QString describe(const MemoryBarData& bar) const;
  void updateAccessible();

  std::vector<MemoryBarData> m_bars;
};

}  // namespace headroom::ui
