// SPDX-License-Identifier: Apache-2.0
#include "engine/sample/pooler.h"

#include "core/result.h"

#include <algorithm>
#include <cmath>

namespace headroom::engine {

void Pooler::add(int64_t position, std::span<const float> hidden) {
  if (!needsAll(m_pooling)) {
    expects(position + 1 == m_tokens, "the last token's state is the only one wanted");
    m_sum.assign(hidden.begin(), hidden.end());
    m_next = m_tokens;
    return;
  }
  expects(position == 0 || position == m_next, "hidden states come in order");
  m_next = position + 1;
  const double weight = m_pooling == Pooling::WeightedMean ? static_cast<double>(position + 1) : 1.0;
  if (position == 0) {
    m_sum.assign(hidden.begin(), hidden.end());  // its weight is 1 in every pooling
    return;
  }
  if (m_pooling == Pooling::First) return;
  for (size_t i = 0; i < hidden.size(); ++i) {
    const auto value = static_cast<double>(hidden[i]);
    // Not std::max: a state that is no number must show.
    m_sum[i] = m_pooling == Pooling::Max ? (m_sum[i] >= value      ? m_sum[i]
                                            : std::isnan(m_sum[i]) ? m_sum[i]
                                                                   : value)
                                         : m_sum[i] + weight * value;
  }
}

std::vector<float> Pooler::take() {
  const auto count = static_cast<double>(m_tokens);
  double divisor = 1;
  if (m_pooling == Pooling::Mean) divisor = count;
  if (m_pooling == Pooling::MeanSqrtLength) divisor = std::sqrt(count);
  if (m_pooling == Pooling::WeightedMean) divisor = count * (count + 1) / 2;
  std::vector<float> vector(m_sum.size());
  std::transform(m_sum.begin(), m_sum.end(), vector.begin(), [&](double sum) { return static_cast<float>(sum / divisor); });
  return vector;
}

void normalize(std::span<float> vector) {
  double squares = 0;
  for (const float value : vector) squares += static_cast<double>(value) * static_cast<double>(value);
  if (squares == 0) return;
  const double length = std::sqrt(squares);
  for (float& value : vector) value = static_cast<float>(static_cast<double>(value) / length);
}

}  // namespace headroom::engine
