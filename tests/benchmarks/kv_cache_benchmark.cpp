// SPDX-License-Identifier: Apache-2.0
// What the type of the KV cache costs: bytes of a token, and the mean KL divergence of the next token's distribution from the one
// with a float32 cache, all else in float32, over every position of given texts.
//
// usage: kv_cache_benchmark MODEL TEXTS.json      TEXTS: {"prompts": [[token ids]...], "greedy": [[token ids]...]}
#include "core/memory/kv_cache_size.h"
#include "tests/engine/step_driver.h"

#include <cstdio>

using namespace headroom;
using namespace headroom::engine;
using namespace headroom::engine::test;

namespace {

using Texts = std::vector<std::vector<int32_t>>;

// Log probabilities of all texts' positions, row behind row.
std::vector<std::vector<float>> logprobsWith(const std::string& path, const Texts& texts, DType cache, Bytes& ofToken) {
  EngineLimits limits;
  limits.kvDType = cache;
  limits.maxModelLen = 16;
  for (const auto& text : texts) limits.maxModelLen = std::max(limits.maxModelLen, static_cast<int64_t>(text.size()) + 1);
  limits.maxNumSeqs = 1;
  limits.maxNumBatchedTokens = 128;
  auto driver = StepDriver::make(path, 1, 1, limits, 4_GiB);
  if (!driver) {
    std::fprintf(stderr, "%s\n", driver.error().message().c_str());
    std::exit(3);
  }
  StepDriver& d = **driver;
  d.start();
  std::vector<std::vector<float>> rows;
  bool good = d.waitLoaded();
  for (size_t i = 0; good && i < texts.size(); ++i) {
    d.clear();
    d.add(texts[i], 1);
    good = d.generate({0}, 1, limits.maxNumBatchedTokens);
    for (auto& row : d.sequences[0].logprobs) rows.push_back(std::move(row));
  }
  if (!good) {
    std::fprintf(stderr, "%s\n", d.failure ? d.failure->message().c_str() : "no answer in time");
    std::exit(3);
  }
  ofToken = Bytes(kvBytesPerBlock(d.model.config, d.layout.ranks.front(), limits).count() / limits.blockTokens);
  return rows;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: kv_cache_benchmark MODEL TEXTS.json\n");
    return 2;
  }
  std::ifstream file(argv[2]);
  const nlohmann::json json = nlohmann::json::parse(file, nullptr, false);
  if (!json.is_object() || !json.contains("prompts") || !json.contains("greedy")) {
    std::fprintf(stderr, "%s: expected prompts and greedy\n", argv[2]);
    return 2;
  }
  Texts texts = json["prompts"].get<Texts>();
  const Texts greedy = json["greedy"].get<Texts>();
  for (size_t i = 0; i < texts.size() && i < greedy.size(); ++i)
    texts[i].insert(texts[i].end(), greedy[i].begin(), greedy[i].end());
  Bytes ofToken;
  const auto exact = logprobsWith(argv[1], texts, DType::F32, ofToken);
  std::printf("%zu positions\n%-14s %8lld bytes a token\n", exact.size(), "float32", static_cast<long long>(ofToken.count()));
  for (const DType cache : {DType::F16, DType::BF16, DType::I8, DType::F8E4M3, DType::F8E5M2}) {
    const auto rows = logprobsWith(argv[1], texts, cache, ofToken);
    double sum = 0;
    int64_t same = 0;
    for (size_t row = 0; row < exact.size(); ++row) {
      for (size_t token = 0; token < exact[row].size(); ++token)
        sum += std::exp(static_cast<double>(exact[row][token])) * (static_cast<double>(exact[row][token]) - rows[row][token]);
      same += std::max_element(exact[row].begin(), exact[row].end()) - exact[row].begin() ==
              std::max_element(rows[row].begin(), rows[row].end()) - rows[row].begin();
    }
    const auto count = static_cast<double>(exact.size());
    std::printf("%-14s %8lld bytes a token, mean KL divergence %.3g, %.2f%% of the likeliest tokens the same\n",
                dtypeName(cache).data(), static_cast<long long>(ofToken.count()), sum / count,
                100 * static_cast<double>(same) / count);
  }
}
