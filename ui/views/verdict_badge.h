// SPDX-License-Identifier: GPL-3.0-or-later
// The verdict as a coloured badge with symbol and words.
#pragma once

#include "core/launch/planner.h"

#include <QWidget>
#include <optional>

namespace headroom::ui {

class VerdictBadge : public QWidget {
  Q_OBJECT

 public:
  explicit VerdictBadge(QWidget* parent = nullptr);
  void set(Verdict verdict, std::optional<Bytes> headroom, Bytes deviceMemory);
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override { return sizeHint(); }

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  QString text() const;

  Verdict m_verdict = Verdict::Invalid;
  std::optional<Bytes> m_headroom;
  Bytes m_deviceMemory;
};

}  // namespace headroom::ui
