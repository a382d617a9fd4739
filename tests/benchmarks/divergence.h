// SPDX-License-Identifier: Apache-2.0
// Distributions of the next token at every position of given texts, and how far one set of them is from another.
#pragma once

#include "tests/engine/step_driver.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace headroom::engine::test {

using Texts = std::vector<std::vector<int32_t>>;        // token ids
using Distributions = std::vector<std::vector<float>>;  // log probabilities of all tokens: one row a position, text behind text

inline EngineLimits limitsFor(const Texts& texts, DType compute, DType cache) {
  EngineLimits limits;
  limits.computeDType = compute;
  limits.kvDType = cache;
  limits.maxModelLen = 16;
  for (const auto& text : texts) limits.maxModelLen = std::max(limits.maxModelLen, static_cast<int64_t>(text.size()) + 1);
  limits.maxNumSeqs = 1;
  limits.maxNumBatchedTokens = 128;
  return limits;
}

// Ends the program with what is wrong where the model does not run. `driver` keeps the model for questions about it.
inline Distributions distributions(const std::string& path, const Texts& texts, const EngineLimits& limits,
                                   std::unique_ptr<StepDriver>& driver) {
  auto made = StepDriver::make(path, 1, 1, limits, 4_GiB);
  if (!made) {
    std::fprintf(stderr, "%s\n", made.error().message().c_str());
    std::exit(3);
  }
  driver = std::move(*made);
  driver->start();
  Distributions rows;
  bool good = driver->waitLoaded();
  for (size_t i = 0; good && i < texts.size(); ++i) {
    driver->clear();
    driver->add(texts[i], 1);
    good = driver->generate({0}, 1, limits.maxNumBatchedTokens);
    for (auto& row : driver->sequences[0].logprobs) rows.push_back(std::move(row));
  }
  if (!good) {
    std::fprintf(stderr, "%s\n", driver->failure ? driver->failure->message().c_str() : "no answer in time");
    std::exit(3);
  }
  return rows;
}

struct Divergence {
  double mean = 0;           // KL(exact || found), nats
  double sameLikeliest = 0;  // share of positions
};
inline Divergence divergence(const Distributions& exact, const Distributions& found) {
  Divergence sum;
  for (size_t row = 0; row < exact.size(); ++row) {
    for (size_t token = 0; token < exact[row].size(); ++token)
      sum.mean += std::exp(static_cast<double>(exact[row][token])) * (static_cast<double>(exact[row][token]) - found[row][token]);
    sum.sameLikeliest += std::max_element(exact[row].begin(), exact[row].end()) - exact[row].begin() ==
                         std::max_element(found[row].begin(), found[row].end()) - found[row].begin();
  }
  const auto count = static_cast<double>(exact.size());
  return {sum.mean / count, sum.sameLikeliest / count};
}

}  // namespace headroom::engine::test
