// SPDX-License-Identifier: GPL-3.0-or-later
// A number of tokens that steps by doubling and halving; 0 stands for the default. GUI thread only.
#pragma once

#include <QSpinBox>

namespace headroom::ui {

class TokenSpinBox : public QSpinBox {
  Q_OBJECT

 public:
  explicit TokenSpinBox(QWidget* parent = nullptr);
  // Where stepping up from "default" begins.
  void setDefaultValue(int value) { m_default = value; }
  void stepBy(int steps) override;

 private:
  int m_default = 4096;
};

}  // namespace headroom::ui
