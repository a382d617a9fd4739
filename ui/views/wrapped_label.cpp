// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/wrapped_label.h"

#include <QTextFrame>
#include <QTextOption>
#include <algorithm>
#include <cmath>

namespace headroom::ui {
namespace {

constexpr size_t kMostWidths = 8;  // a scroll area asks for two, one with its bar and one without

}  // namespace

WrappedLabel::WrappedLabel(QWidget* parent) : QLabel(parent) {
  setTextFormat(Qt::PlainText);
  setWordWrap(true);
  setTextInteractionFlags(Qt::TextSelectableByMouse);
  m_measured.setUndoRedoEnabled(false);
}

bool WrappedLabel::isRich() const {
  return textFormat() == Qt::RichText || (textFormat() == Qt::AutoText && Qt::mightBeRichText(text()));
}

int WrappedLabel::heightForWidth(int width) const {
  if (text().isEmpty()) return QLabel::heightForWidth(width);
  if (m_text != text() || m_rich != isRich() || m_font != font()) {  // as QLabel sets its own document up
    m_text = text();
    m_rich = isRich();
    m_font = font();
    m_heights.clear();
    m_measured.setDefaultFont(m_font);
    if (m_rich)
      m_measured.setHtml(m_text);
    else
      m_measured.setPlainText(m_text);
    QTextOption option = m_measured.defaultTextOption();
    option.setAlignment(alignment());
    option.setWrapMode(QTextOption::WordWrap);
    m_measured.setDefaultTextOption(option);
    QTextFrameFormat format = m_measured.rootFrame()->frameFormat();
    format.setMargin(0);
    m_measured.rootFrame()->setFrameFormat(format);
  }
  const QMargins margins = contentsMargins();
  const int around = 2 * margin(), inner = std::max(0, width - around - margins.left() - margins.right());
  auto known = std::find_if(m_heights.begin(), m_heights.end(), [inner](const auto& entry) { return entry.first == inner; });
  if (known == m_heights.end()) {
    m_measured.setTextWidth(inner);
    if (m_heights.size() == kMostWidths) m_heights.erase(m_heights.begin());
    known = m_heights.emplace(m_heights.end(), inner, static_cast<int>(std::ceil(m_measured.size().height())));
  }
  return known->second + around + margins.top() + margins.bottom();
}

// It takes the width that there is; how high it is then is asked by heightForWidth.
QSize WrappedLabel::sizeHint() const {
  const int wide = fontMetrics().averageCharWidth() * 24;
  return {wide, heightForWidth(width() > 0 ? width() : wide)};
}

QSize WrappedLabel::minimumSizeHint() const { return {fontMetrics().averageCharWidth() * 8, fontMetrics().height()}; }

}  // namespace headroom::ui
