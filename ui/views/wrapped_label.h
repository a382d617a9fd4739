// SPDX-License-Identifier: GPL-3.0-or-later
// WrappedLabel: running text, plain or rich, that wraps and can be selected, for panels whose texts change while something is
// dragged. QLabel lays such text out anew for each question about its height; this one does so once a width. GUI thread only.
#pragma once

#include <QFont>
#include <QLabel>
#include <QString>
#include <QTextDocument>
#include <utility>
#include <vector>

namespace headroom::ui {

class WrappedLabel : public QLabel {
  Q_OBJECT

 public:
  explicit WrappedLabel(QWidget* parent = nullptr);

  int heightForWidth(int width) const override;
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 private:
  bool isRich() const;

  // Laid out for questions, so that what is shown keeps its layout; of the text, format and font beneath.
  mutable QTextDocument m_measured;
  mutable QString m_text;
  mutable QFont m_font;
  mutable bool m_rich = false;
  mutable std::vector<std::pair<int, int>> m_heights;  // by width
};

}  // namespace headroom::ui
