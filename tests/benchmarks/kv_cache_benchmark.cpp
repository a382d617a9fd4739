// SPDX-License-Identifier: Apache-2.0
// What the type of the KV cache costs: bytes of a token, and the mean KL divergence of the next token's distribution from the one
// with a float32 cache, all else in float32, over every position of given texts.
//
// usage: kv_cache_benchmark MODEL TEXTS.json      TEXTS: {"prompts": [[token ids]...], "greedy": [[token ids]...]}
#include "core/memory/kv_cache_size.h"
#include "tests/benchmarks/divergence.h"

using namespace headroom;
using namespace headroom::engine;
using namespace headroom::engine::test;

namespace {

long long bytesOfToken(const StepDriver& driver) {
  return kvBytesPerBlock(driver.model.config, driver.layout.ranks.front(), driver.limits).count() / driver.limits.blockTokens;
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
  std::unique_ptr<StepDriver> driver;
  const Distributions exact = distributions(argv[1], texts, limitsFor(texts, DType::F32, DType::F32), driver);
  std::printf("%zu positions\n%-14s %8lld bytes a token\n", exact.size(), "float32", bytesOfToken(*driver));
  for (const DType cache : {DType::F16, DType::BF16, DType::I8, DType::F8E4M3, DType::F8E5M2}) {
    const Divergence found = divergence(exact, distributions(argv[1], texts, limitsFor(texts, DType::F32, cache), driver));
    std::printf("%-14s %8lld bytes a token, mean KL divergence %.3g, %.2f%% of the likeliest tokens the same\n",
                dtypeName(cache).data(), bytesOfToken(*driver), found.mean, 100 * found.sameLikeliest);
  }
}
