// SPDX-License-Identifier: Apache-2.0
#include "engine/sample/sampler.h"

#include "core/result.h"
#include "engine/sample/token_constraint.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace headroom::engine {

namespace {

// vLLM treats smaller temperatures as greedy too.
constexpr double kGreedyBelow = 1e-5;
constexpr float kNever = -std::numeric_limits<float>::infinity();

// The likeliest token, the lowest id among equals; -1 when no logit is a number above minus infinity.
int32_t argmax(std::span<const float> logits) {
  // Blocks keep the inner loop free of branches, so that the compiler can vectorize it.
  constexpr size_t kBlock = 256;
  float best = kNever;
  size_t bestBlock = logits.size();
  for (size_t begin = 0; begin < logits.size(); begin += kBlock) {
    const size_t end = std::min(begin + kBlock, logits.size());
    float most = kNever;
    for (size_t i = begin; i < end; ++i) most = logits[i] > most ? logits[i] : most;
    if (most > best) {
      best = most;
      bestBlock = begin;
    }
  }
  for (size_t i = bestBlock; i < logits.size(); ++i) {
    if (logits[i] == best) return static_cast<int32_t>(i);
  }
  return -1;
}

bool likelier(const std::pair<float, int32_t>& a, const std::pair<float, int32_t>& b) {
  return a.first != b.first ? a.first > b.first : a.second < b.second;
}

}  // namespace

Logprobs logprobsOf(std::span<const float> logits, int32_t chosen, int top) {
  Logprobs result;
  const int32_t best = argmax(logits);
  if (best < 0) return result;
  const double most = logits[best];
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  const double logSum = most + std::log(sum);
  auto entry = [&](int32_t token, int32_t rank) { return LogprobEntry{token, static_cast<float>(logits[token] - logSum), rank}; };

  int32_t better = 0;
  for (const float logit : logits) better += logit > logits[chosen];
  result.chosen = entry(chosen, better + 1);

  const auto count = std::min<size_t>(static_cast<size_t>(std::max(top, 0)), logits.size());
  std::vector<std::pair<float, int32_t>> heap;  // the likeliest so far, the least of them in front
  heap.reserve(count + 1);
  for (size_t i = 0; i < logits.size() && count > 0; ++i) {
    if (heap.size() == count && !(logits[i] > heap.front().first)) continue;
    if (heap.size() == count) {
      std::pop_heap(heap.begin(), heap.end(), likelier);
      heap.pop_back();
    }
    heap.emplace_back(logits[i], static_cast<int32_t>(i));
    std::push_heap(heap.begin(), heap.end(), likelier);
  }
  std::sort(heap.begin(), heap.end(), likelier);
  for (size_t i = 0; i < heap.size(); ++i) result.top.push_back(entry(heap[i].second, static_cast<int32_t>(i) + 1));
  return result;
}

Sampler::Sampler(SamplingParams params, std::span<const int32_t> prompt, std::vector<int32_t> endTokens)
    : m_params(std::move(params)), m_endTokens(std::move(endTokens)) {
  if (m_params.repetitionPenalty != 1.0) m_promptTokens.insert(prompt.begin(), prompt.end());
  if (m_params.seed) {
    m_random.seed(static_cast<uint64_t>(*m_params.seed));
  } else {
    std::random_device device;
    m_random.seed((static_cast<uint64_t>(device()) << 32) | device());
  }
}

void Sampler::bias(std::span<float> logits) const {
  for (const auto& [token, amount] : m_params.logitBias) {
    if (token >= 0 && static_cast<size_t>(token) < logits.size()) logits[token] += amount;
  }
  if (m_generated >= m_params.minTokens) return;
  for (const int32_t token : m_endTokens) {
    if (token >= 0 && static_cast<size_t>(token) < logits.size()) logits[token] = kNever;
  }
}

void Sampler::penalize(std::span<float> logits) const {
  const auto repetition = static_cast<float>(m_params.repetitionPenalty);
  auto repeat = [&](int32_t token) {
    float& logit = logits[token];
    logit = logit > 0 ? logit / repetition : logit * repetition;
  };
  if (repetition != 1.0f) {
    for (const int32_t token : m_promptTokens) repeat(token);
    for (const auto& [token, count] : m_outputCounts) {
      if (!m_promptTokens.contains(token)) repeat(token);
    }
  }
  for (const auto& [token, count] : m_outputCounts) {
    logits[token] -= static_cast<float>(m_params.frequencyPenalty * static_cast<double>(count) + m_params.presencePenalty);
  }
}

// Draws from softmax(logits / temperature) within min_p, top_k and top_p. At least one logit is finite.
int32_t Sampler::draw(std::span<const float> logits) {
  const float most = logits[argmax(logits)];
  // Tokens so unlikely that all of a vocabulary's together weigh less than single precision resolves are left out before exp(), which is what takes
  // the time.
  constexpr double kNegligible = 30.0;
  const double inverse = 1.0 / m_params.temperature;
  const auto floor = static_cast<float>(most - kNegligible * m_params.temperature);
  double total = 0;
  m_candidates.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] >= floor)) continue;
    const auto weight = static_cast<float>(std::exp((static_cast<double>(logits[i]) - most) * inverse));  // of the likeliest: 1
    m_candidates.emplace_back(weight, static_cast<int32_t>(i));
    total += weight;
  }
  // Left out before anything is sorted: tokens below min_p of the likeliest, and those so unlikely that all of their kind together are less than
  // 1 - top_p.
  double least = std::max(m_params.minP, 0.0);
  if (m_params.topP < 1.0) least = std::max(least, total * (1.0 - m_params.topP) / static_cast<double>(logits.size()));
  if (least > 0) std::erase_if(m_candidates, [&](const auto& candidate) { return candidate.first < least; });
  const bool sorted = m_params.topP < 1.0 || (m_params.topK > 0 && m_params.topK < static_cast<int64_t>(m_candidates.size()));
  double kept = 0;
  if (!sorted) {
    for (const auto& candidate : m_candidates) kept += candidate.first;
  } else {
    if (m_params.topK > 0 && m_params.topK < static_cast<int64_t>(m_candidates.size())) {
      std::nth_element(m_candidates.begin(), m_candidates.begin() + m_params.topK, m_candidates.end(), likelier);
      m_candidates.resize(static_cast<size_t>(m_params.topK));
    }
    std::sort(m_candidates.begin(), m_candidates.end(), likelier);
    // top_p counts within what top_k and min_p left, unless they left everything.
    double within = 0;
    for (const auto& candidate : m_candidates) within += candidate.first;
    if (m_params.topK <= 0 && m_params.minP <= 0) within = total;
    size_t count = 0;
    while (count < m_candidates.size() && (count == 0 || kept < m_params.topP * within)) kept += m_candidates[count++].first;
    m_candidates.resize(count);
  }
  double target = std::uniform_real_distribution<double>(0.0, kept)(m_random);
  for (const auto& [weight, token] : m_candidates) {
    target -= weight;
    if (target < 0) return token;
  }
  return m_candidates.back().second;
}

bool Sampler::isOver() const { return m_params.constraint && m_params.constraint->isOver(); }

std::optional<Sampler::Choice> Sampler::sample(std::span<float> logits) {
  if (argmax(logits) < 0) return std::nullopt;
  // Log probabilities are of the untouched logits, but the token is only known afterwards.
  std::vector<float> untouched;
  if (m_params.logprobs) untouched.assign(logits.begin(), logits.end());

  if (m_params.constraint) m_params.constraint->mask(logits, m_endTokens);
  bias(logits);
  penalize(logits);
  Choice choice;
  choice.token = argmax(logits);
  m_stuck = choice.token < 0 && m_params.constraint;
  if (choice.token < 0) return std::nullopt;
  if (m_params.temperature >= kGreedyBelow) choice.token = draw(logits);

  if (m_params.logprobs) choice.logprobs = logprobsOf(untouched, choice.token, *m_params.logprobs);
  remember(choice.token);
  return choice;
}

void Sampler::remember(int32_t token) {
  if (m_params.constraint) m_params.constraint->accept(token);
  ++m_generated;
  if (m_params.repetitionPenalty != 1.0 || m_params.frequencyPenalty != 0.0 || m_params.presencePenalty != 0.0) ++m_outputCounts[token];
}

RowSampling Sampler::prepare(int64_t vocabulary) {
  expects(!needsLogits(), "a device was asked to sample a row whose log probabilities are wanted");
  RowSampling row;
  if (m_params.constraint) {
    m_allowed.assign(static_cast<size_t>(vocabulary), 0.0f);
    m_params.constraint->mask(m_allowed, m_endTokens);
    row.mask.assign((m_allowed.size() + 31) / 32, 0);
    for (size_t i = 0; i < m_allowed.size(); ++i) row.mask[i / 32] |= static_cast<uint32_t>(m_allowed[i] == 0.0f) << (i % 32);
  }
  const auto isKnown = [&](int32_t token) { return token >= 0 && token < vocabulary; };
  std::map<int32_t, float> biases;
  for (const auto& [token, amount] : m_params.logitBias) {
    if (isKnown(token)) biases[token] += amount;
  }
  if (m_generated < m_params.minTokens) {
    for (const int32_t token : m_endTokens) {
      if (isKnown(token)) biases[token] = kNever;
    }
  }
  row.biases.assign(biases.begin(), biases.end());
  row.repetition = static_cast<float>(m_params.repetitionPenalty);
  row.frequency = static_cast<float>(m_params.frequencyPenalty);
  row.presence = static_cast<float>(m_params.presencePenalty);
  for (const auto& [token, count] : m_outputCounts) row.seen.emplace_back(token, static_cast<int32_t>(count));
  for (const int32_t token : m_promptTokens) {  // kept only for the repetition penalty
    if (isKnown(token) && !m_outputCounts.contains(token)) row.seen.emplace_back(token, 0);
  }
  if (m_params.temperature < kGreedyBelow) return row;
  row.temperature = m_params.temperature;
  row.minP = std::max(m_params.minP, 0.0);
  row.topP = m_params.topP;
  row.topK = std::max<int64_t>(m_params.topK, 0);
  row.uniform = std::uniform_real_distribution<double>(0.0, 1.0)(m_random);
  return row;
}

bool Sampler::accept(int32_t token) {
  m_stuck = token < 0 && m_params.constraint;
  if (token < 0) return false;
  remember(token);
  return true;
}

}  // namespace headroom::engine
