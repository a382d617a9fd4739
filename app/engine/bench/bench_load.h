// SPDX-License-Identifier: Apache-2.0
// The load: which prompts, how long, and when they come. Everything is drawn from one seed, so that a load can be repeated.
#pragma once

#include "core/result.h"
#include "engine/text/tokenizer.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <random>
#include <string>
#include <variant>
#include <vector>

namespace headroom::app {

// One request before it is sent.
struct PlannedRequest {
  std::variant<std::string, std::vector<int32_t>> prompt;
  nlohmann::ordered_json messages;  // in place of the prompt where not null; chats only
  int64_t promptTokens = 0;         // 0: not known
  int64_t outputTokens = 0;         // asked for
};

// How texts of a given length are made.
struct TextSource {
  const engine::Tokenizer* tokenizer = nullptr;  // texts of exactly so many tokens
  std::vector<int32_t> tokenIds;                 // else prompts are drawn from these ids and sent as ids
  // with neither: common words, about a token each
};

enum class LengthDistribution { Uniform, Normal, Lognormal };

struct RandomLoad {
  int64_t inputLen = 1024, outputLen = 128;
  // Uniform: from len * (1 - ratio) to len * (1 + ratio). Normal, lognormal: the mean is len, the standard deviation ratio * len.
  double rangeRatio = 0;
  LengthDistribution distribution = LengthDistribution::Uniform;
  int64_t prefixLen = 0;  // tokens before the input that all prompts share
};

std::vector<PlannedRequest> randomLoad(size_t count, const RandomLoad& load, const TextSource& source, uint64_t seed);

// ShareGPT's JSON: a list of {"conversations": [{"from", "value"}, ...]}; the first turn is the prompt, the length of the second
// that of the answer. As in vLLM turns of fewer than 4 tokens, prompts beyond 1024 and pairs beyond 2048 tokens are left out.
// Without a tokenizer a token is taken for 4 bytes.
Result<std::vector<PlannedRequest>> shareGptLoad(const std::filesystem::path& file, size_t count,
                                                 std::optional<int64_t> outputLen, const engine::Tokenizer* tokenizer,
                                                 bool shuffle, uint64_t seed);
// JSON lines: {"prompt": text or ids} or {"messages": [...]}, and "output_len" or "max_tokens" where a line has its own. A file
// with fewer lines is used again from its beginning.
Result<std::vector<PlannedRequest>> jsonLinesLoad(const std::filesystem::path& file, size_t count, int64_t outputLen,
                                                  const engine::Tokenizer* tokenizer, bool shuffle, uint64_t seed);

// Seconds after the begin at which each request comes, ascending. Gaps are gamma distributed with shape `burstiness` (1: a
// Poisson process; below, burstier; above, more even) and scaled so that `count` requests take count / rate; an infinite rate
// sends all at once.
std::vector<double> arrivalTimes(size_t count, double rate, double burstiness, uint64_t seed);

}  // namespace headroom::app
