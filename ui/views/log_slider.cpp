// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/log_slider.h"

#include <QSignalBlocker>
#include <QSpinBox>
#include <algorithm>
#include <cmath>

namespace headroom::ui {

int logStepValue(int step, int least, int most, int stepsPerDoubling, int granule) {
  const double value = least * std::exp2(static_cast<double>(step) / stepsPerDoubling);
  if (value >= most) return most;
  return std::clamp(static_cast<int>(std::lround(value / granule)) * granule, least, most);
}

int logStepOf(int value, int least, int most, int stepsPerDoubling) {
  const double inside = std::clamp(value, least, most);
  return static_cast<int>(std::lround(std::log2(inside / least) * stepsPerDoubling));
}

LogSlider::LogSlider(QSpinBox& box, int least, int most, int stepsPerDoubling, int granule, QWidget* parent)
    : QSlider(Qt::Horizontal, parent),
      m_box(box),
      m_least(least),
      m_most(most),
      m_stepsPerDoubling(stepsPerDoubling),
      m_granule(granule),
      m_default(least) {
  setMost(most);
  setPageStep(stepsPerDoubling);
  connect(&m_box, &QSpinBox::valueChanged, this, &LogSlider::follow);
  connect(this, &QSlider::valueChanged, this,
          [this](int step) { m_box.setValue(logStepValue(step, m_least, m_most, m_stepsPerDoubling, m_granule)); });
}

void LogSlider::setMost(int most) {
  m_most = std::max(most, m_least + 1);
  const QSignalBlocker block(this);
  const double steps = std::log2(static_cast<double>(m_most) / m_least) * m_stepsPerDoubling;
  setRange(0, static_cast<int>(std::ceil(steps)));
  follow();
}

void LogSlider::setDefaultValue(int value) {
  m_default = value;
  follow();
}

void LogSlider::follow() {
  const QSignalBlocker block(this);
  // A hand that drags is not led.
  if (!isSliderDown()) setValue(logStepOf(m_box.value() > 0 ? m_box.value() : m_default, m_least, m_most, m_stepsPerDoubling));
}

}  // namespace headroom::ui
