// SPDX-License-Identifier: Apache-2.0
#include "engine/device/cpu/cpu_experts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace headroom::engine::cpu {
namespace {

// The index of the largest of `count` values, the first of equals; the value becomes -infinity.
int64_t takeLargest(float* values, int64_t count) {
  int64_t best = 0;
  for (int64_t i = 1; i < count; ++i)
    if (values[i] > values[best]) best = i;
  values[best] = -std::numeric_limits<float>::infinity();
  return best;
}

void scoreLogits(const float* logits, int64_t experts, RouterScoring scoring, float* scores) {
  if (scoring == RouterScoring::Sigmoid) {
    for (int64_t e = 0; e < experts; ++e) scores[e] = 1.0f / (1.0f + std::exp(-logits[e]));
    return;
  }
  const float top = *std::max_element(logits, logits + experts);
  double sum = 0;
  for (int64_t e = 0; e < experts; ++e) sum += scores[e] = std::exp(logits[e] - top);
  for (int64_t e = 0; e < experts; ++e) scores[e] = static_cast<float>(scores[e] / sum);
}

// Leaves only the experts of the best groups to choose from.
void maskGroups(float* choice, int64_t experts, const ExpertRouting& routing, float* groupScores) {
  const int64_t size = experts / routing.groups;
  for (int64_t g = 0; g < routing.groups; ++g) {
    float best = -std::numeric_limits<float>::infinity(), second = best;
    for (int64_t e = g * size; e < (g + 1) * size; ++e) {
      if (choice[e] > best) {
        second = best;
        best = choice[e];
      } else if (choice[e] > second) {
        second = choice[e];
      }
    }
    groupScores[g] = routing.groupByTopTwo && size > 1 ? best + second : best;
  }
  float* kept = groupScores + routing.groups;
  std::fill_n(kept, routing.groups, 0.0f);
  for (int64_t i = 0; i < routing.groupsPerToken; ++i) kept[takeLargest(groupScores, routing.groups)] = 1.0f;
  for (int64_t e = 0; e < experts; ++e)
    if (kept[e / size] == 0.0f) choice[e] = -std::numeric_limits<float>::infinity();
}

}  // namespace

void chooseExperts(const float* logits, int64_t experts, const ExpertRouting& routing, int64_t count, float* scores,
                   float* choice, int32_t* ids, float* weights) {
  scoreLogits(logits, experts, routing.scoring, scores);
  for (int64_t e = 0; e < experts; ++e) {
    choice[e] = scores[e] + (routing.choiceBias ? routing.choiceBias[e] : 0.0f);
    // Numbers that are none are chosen last, but once: no expert gets more rows than the step has.
    if (!(choice[e] > std::numeric_limits<float>::lowest())) choice[e] = std::numeric_limits<float>::lowest();
  }
  if (routing.groupsPerToken < routing.groups) maskGroups(choice, experts, routing, choice + experts);
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    ids[i] = static_cast<int32_t>(takeLargest(choice, experts));
    weights[i] = scores[ids[i]];
    sum += weights[i];
  }
  const double factor = routing.normalize ? routing.scale / (sum + 1e-20) : routing.scale;
  for (int64_t i = 0; i < count; ++i) weights[i] = static_cast<float>(weights[i] * factor);
}

void CpuExperts::route(TensorView ids, TensorView weights, TensorView logits, const ExpertRouting& routing) {
  expects(ids.cols <= logits.cols && logits.cols % routing.groups == 0, "a router's sizes do not match");
  m_scores.resize(static_cast<size_t>(logits.cols));
  m_choice.resize(static_cast<size_t>(logits.cols + 2 * routing.groups));
  for (int64_t t = 0; t < logits.rows; ++t)
    chooseExperts(logits.row<float>(t), logits.cols, routing, ids.cols, m_scores.data(), m_choice.data(), ids.row<int32_t>(t),
                  weights.row<float>(t));
}

void CpuExperts::sort(TensorView ids, TensorView weights, int64_t experts) {
  m_begin.assign(static_cast<size_t>(experts + 1), 0);
  for (int64_t t = 0; t < ids.rows; ++t)
    for (int64_t i = 0; i < ids.cols; ++i) ++m_begin[static_cast<size_t>(ids.row<int32_t>(t)[i]) + 1];
  for (int64_t e = 0; e < experts; ++e) m_begin[static_cast<size_t>(e + 1)] += m_begin[static_cast<size_t>(e)];
  m_next = m_begin;
  m_chosen.resize(static_cast<size_t>(ids.rows * ids.cols));
  for (int64_t t = 0; t < ids.rows; ++t) {
    for (int64_t i = 0; i < ids.cols; ++i) {
      int64_t& at = m_next[static_cast<size_t>(ids.row<int32_t>(t)[i])];
      m_chosen[static_cast<size_t>(at++)] = {t, weights.row<float>(t)[i]};
    }
  }
}

void CpuExperts::run(TensorView out, TensorView in, const ExpertLayer& experts, TensorView ids, TensorView weights,
                     TensorView scratch) {
  const auto count = static_cast<int64_t>(experts.down.size());
  expects(ids.rows == out.rows && in.rows == out.rows, "the rows of an expert layer differ");
  sort(ids, weights, count);
  if (!experts.addToOut)
    for (int64_t t = 0; t < out.rows; ++t) std::fill_n(out.row<float>(t), out.cols, 0.0f);
  for (int64_t e = 0; e < count; ++e)
    if (m_begin[static_cast<size_t>(e)] < m_begin[static_cast<size_t>(e + 1)]) runExpert(out, in, experts, e, scratch);
}

// All tokens of one expert at once: at most as many as the step has, since a token chooses an expert once.
void CpuExperts::runExpert(TensorView out, TensorView in, const ExpertLayer& experts, int64_t expert, TensorView scratch) {
  const auto e = static_cast<size_t>(expert);
  const WeightMatrix &gate = experts.gate[e], &up = experts.up[e], &down = experts.down[e];
  const int64_t first = m_begin[e], rows = m_begin[e + 1] - first, hidden = in.cols, columns = up.out;
  expects(2 * rows * (hidden + columns) <= scratch.cols, "the experts' scratch is too small");
  float* at = static_cast<float*>(scratch.data);
  const auto take = [&](int64_t width) {
    const TensorView view = TensorView::of(at, DType::F32, rows, width);
    at += rows * width;
    return view;
  };
  const TensorView input = take(hidden), gated = take(columns), upped = take(columns), result = take(hidden);
  for (int64_t r = 0; r < rows; ++r) {
    const Chosen& chosen = m_chosen[static_cast<size_t>(first + r)];
    std::copy_n(in.row<float>(chosen.token), hidden, input.row<float>(r));
    if (experts.weightsOnInput) m_operations.scale(input.row<float>(r), chosen.weight, hidden);
  }
  const std::array inner{LinearTask{gated, &gate, experts.gateBias ? experts.gateBias + expert * columns : nullptr},
                         LinearTask{upped, &up, experts.upBias ? experts.upBias + expert * columns : nullptr}};
  m_linear.run(input, inner);
  activate(gated, upped, experts);
  const std::array outer{LinearTask{result, &down, experts.downBias ? experts.downBias + expert * hidden : nullptr}};
  m_linear.run(gated, outer);
  for (int64_t r = 0; r < rows; ++r) {
    const Chosen& chosen = m_chosen[static_cast<size_t>(first + r)];
    if (!experts.weightsOnInput) m_operations.scale(result.row<float>(r), chosen.weight, hidden);
    m_operations.add(out.row<float>(chosen.token), result.row<float>(r), hidden);
  }
}

void CpuExperts::activate(TensorView gate, TensorView up, const ExpertLayer& experts) const {
  for (int64_t r = 0; r < gate.rows; ++r) {
    float* x = gate.row<float>(r);
    const float* y = up.row<float>(r);
    if (experts.swigluLimit <= 0.0f) {
      m_operations.activate(x, x, y, gate.cols, experts.activation);
      continue;
    }
    const float limit = experts.swigluLimit;
    for (int64_t i = 0; i < gate.cols; ++i) {
      const float g = std::min(x[i], limit);
      x[i] = g / (1.0f + std::exp(-1.702f * g)) * (std::clamp(y[i], -limit, limit) + 1.0f);
    }
  }
}

}  // namespace headroom::engine::cpu
