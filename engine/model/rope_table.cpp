// SPDX-License-Identifier: Apache-2.0
// Sources: RoPE https://arxiv.org/abs/2104.09864, YaRN https://arxiv.org/abs/2309.00071, LongRoPE
// https://arxiv.org/abs/2402.13753; llama3 and dynamic as Transformers computes them (modeling_rope_utils.py).
#include "engine/model/rope_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace headroom::engine {
namespace {

std::vector<double> plainFrequencies(double theta, int64_t dim) {
  std::vector<double> frequencies;
  for (int64_t i = 0; i < dim / 2; ++i)
    frequencies.push_back(std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(dim)));
  return frequencies;
}

// Long waves are slowed down by the factor, short ones stay, those between are mixed.
void scaleLlama3(std::vector<double>& frequencies, const RopeParameters& rope) {
  const double context = static_cast<double>(rope.originalContext);
  for (double& frequency : frequencies) {
    const double wavelength = 2.0 * std::numbers::pi / frequency;
    if (wavelength < context / rope.highFrequencyFactor) continue;
    if (wavelength > context / rope.lowFrequencyFactor) {
      frequency /= rope.factor;
      continue;
    }
    const double smooth = (context / wavelength - rope.lowFrequencyFactor) / (rope.highFrequencyFactor - rope.lowFrequencyFactor);
    frequency = (1.0 - smooth) * frequency / rope.factor + smooth * frequency;
  }
}

double yarnMscale(double factor, double mscale) { return factor <= 1.0 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0; }

// A ramp over the dimensions from the plain frequencies to those divided by the factor; its ends are where a dimension turns
// betaFast and betaSlow times within the original context.
void scaleYarn(RopeTable& table, const RopeParameters& rope) {
  const double dim = static_cast<double>(rope.rotaryDim), context = static_cast<double>(rope.originalContext);
  auto dimensionOfRotations = [&](double rotations) {
    return dim * std::log(context / (rotations * 2.0 * std::numbers::pi)) / (2.0 * std::log(rope.theta));
  };
  double low = dimensionOfRotations(rope.betaFast), high = dimensionOfRotations(rope.betaSlow);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dim - 1.0);
  if (low == high) high += 0.001;
  for (size_t i = 0; i < table.inverseFrequencies.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    double& frequency = table.inverseFrequencies[i];
    frequency = frequency / rope.factor * ramp + frequency * (1.0 - ramp);
  }
  if (rope.attentionFactor)
    table.factor = *rope.attentionFactor;
  else if (rope.mscale != 0.0 && rope.mscaleAllDim != 0.0)
    table.factor = yarnMscale(rope.factor, rope.mscale) / yarnMscale(rope.factor, rope.mscaleAllDim);
  else
    table.factor = yarnMscale(rope.factor, 1.0);
}

void divideBy(std::vector<double>& frequencies, const std::vector<double>& divisors) {
  for (size_t i = 0; i < std::min(frequencies.size(), divisors.size()); ++i) frequencies[i] /= divisors[i];
}

void scaleLongRope(RopeTable& table, const RopeParameters& rope, int64_t maxPositionEmbeddings, int64_t maxModelLen) {
  const int64_t original = rope.originalContext > 0 ? rope.originalContext : maxPositionEmbeddings;
  divideBy(table.inverseFrequencies, maxModelLen > original ? rope.longFactors : rope.shortFactors);
  if (rope.attentionFactor) {
    table.factor = *rope.attentionFactor;
    return;
  }
  const double factor =
      rope.factor > 1.0 ? rope.factor : static_cast<double>(maxPositionEmbeddings) / static_cast<double>(original);
  if (factor > 1.0) table.factor = std::sqrt(1.0 + std::log(factor) / std::log(static_cast<double>(original)));
}

}  // namespace

RopeTable makeRopeTable(const RopeParameters& rope, int64_t maxPositionEmbeddings, int64_t maxModelLen,
                        const std::vector<double>& divisors) {
  RopeTable table;
  table.inverseFrequencies = plainFrequencies(rope.theta, rope.rotaryDim);
  if (!divisors.empty()) {
    divideBy(table.inverseFrequencies, divisors);
    return table;
  }
  switch (rope.scaling) {
    case RopeScaling::None:
      divideBy(table.inverseFrequencies, rope.longFactors);
      break;
    case RopeScaling::Linear:
      for (double& frequency : table.inverseFrequencies) frequency /= rope.factor;
      break;
    case RopeScaling::Dynamic: {
      const double dim = static_cast<double>(rope.rotaryDim), context = static_cast<double>(maxPositionEmbeddings);
      const double length = std::max(static_cast<double>(maxModelLen), context);
      const double stretch = rope.factor * length / context - (rope.factor - 1.0);
      table.inverseFrequencies = plainFrequencies(rope.theta * std::pow(stretch, dim / (dim - 2.0)), rope.rotaryDim);
      break;
    }
    case RopeScaling::Llama3:
      scaleLlama3(table.inverseFrequencies, rope);
      break;
    case RopeScaling::Yarn:
      scaleYarn(table, rope);
      break;
    case RopeScaling::LongRope:
      scaleLongRope(table, rope, maxPositionEmbeddings, maxModelLen);
      break;
  }
  return table;
}

}  // namespace headroom::engine
