// SPDX-License-Identifier: GPL-3.0-or-later
// LogSlider: a slider whose steps multiply. It stands beneath a spin box and follows it; dragging it sets the spin box.
// GUI thread only.
#pragma once

#include <QSlider>

class QSpinBox;

namespace headroom::ui {

// Value of a step: `least` times two to the power step / stepsPerDoubling, rounded to a multiple of `granule`, at most `most`.
int logStepValue(int step, int least, int most, int stepsPerDoubling, int granule);
// The step that is nearest to the value; the ends for values outside.
int logStepOf(int value, int least, int most, int stepsPerDoubling);

class LogSlider : public QSlider {
  Q_OBJECT

 public:
  // `box` value 0 means a default: the slider then stands at defaultValue.
  LogSlider(QSpinBox& box, int least, int most, int stepsPerDoubling, int granule, QWidget* parent);
  void setMost(int most);
  void setDefaultValue(int value);

 private:
  void follow();

  QSpinBox& m_box;
  int m_least, m_most, m_stepsPerDoubling, m_granule, m_default = 0;
};

}  // namespace headroom::ui
