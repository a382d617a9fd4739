// SPDX-License-Identifier: GPL-3.0-or-later
// ContextChart: memory of a layout's fullest GPU against the length that each request has grown to: what is fixed, the KV cache
// on it, the budget, and where the cache reaches it. The lengths are drawn by powers of two. GUI thread only.
#pragma once

#include "core/launch/planner.h"

#include <QString>
#include <QWidget>
#include <optional>
#include <vector>

namespace headroom::ui {

struct ContextCurve {
  std::vector<ContextPoint> points;  // by length
  std::optional<int64_t> asked;      // the length that is planned for
  std::optional<int64_t> longest;    // that fits
};

// Place of a length between the first and the last point, 0 to 1, by powers of two.
double contextPosition(int64_t tokens, const ContextCurve& curve);

class ContextChart : public QWidget {
  Q_OBJECT

 public:
  explicit ContextChart(QWidget* parent = nullptr);
  void setCurve(ContextCurve curve);
  const ContextCurve& curve() const { return m_curve; }
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 protected:
  void changeEvent(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  bool event(QEvent* event) override;

 private:
  struct Frame;
  Frame frame() const;
  void describe();

  ContextCurve m_curve;
};

}  // namespace headroom::ui
