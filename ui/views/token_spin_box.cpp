// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/token_spin_box.h"

#include <bit>

namespace headroom::ui {

TokenSpinBox::TokenSpinBox(QWidget* parent) : QSpinBox(parent) {
  setRange(0, 1 << 27);
  setGroupSeparatorShown(true);
}

void TokenSpinBox::stepBy(int steps) {
  int tokens = value() == 0 ? m_default : value();
  for (; steps > 0 && tokens <= maximum() / 2; --steps) {
    const auto next = std::bit_ceil(static_cast<unsigned>(tokens) + 1);
    tokens = static_cast<int>(next);
  }
  for (; steps < 0 && tokens > 1; ++steps) tokens = static_cast<int>(std::bit_floor(static_cast<unsigned>(tokens) - 1));
  setValue(tokens);
  selectAll();
}

}  // namespace headroom::ui
