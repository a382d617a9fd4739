// SPDX-License-Identifier: GPL-3.0-or-later
// What a plan predicted of a running engine, with the band of its kind.
#pragma once

#include <optional>

namespace headroom::ui {

struct PredictedFigure {
  PredictedFigure(double figure, std::optional<double> band = {}) : value(figure), error(band) {}
  double value;
  std::optional<double> error;  // share of the value within which nine of ten timed cases lie; empty: not known
};

}  // namespace headroom::ui
