// SPDX-License-Identifier: Apache-2.0
// What the fast paths cost in accuracy: the mean KL divergence of the next token's distribution from the one in float32, for the
// types of arithmetic that the engine offers and for llama.cpp on the same file and tokens.
//
// usage: rounding_benchmark MODEL.gguf LOGITS
//   LOGITS: what `llama-perplexity -m MODEL.gguf -f TEXT -c 256 --chunks 8 --kl-divergence-base LOGITS` writes
#include "tests/benchmarks/divergence.h"

#include <cstring>

using namespace headroom;
using namespace headroom::engine;
using namespace headroom::engine::test;

namespace {

struct LlamaLogits {
  Texts chunks;
  Distributions rows;  // of the positions length / 2 … length - 2 of each chunk
};

template <class T>
bool read(std::ifstream& file, T* values, size_t count) {
  return static_cast<bool>(file.read(reinterpret_cast<char*>(values), static_cast<std::streamsize>(count * sizeof(T))));
}

// "_logits_"; int32: tokens of a chunk, vocabulary, chunks; the tokens; then each row as two floats, a step and the least log
// probability, and 16-bit counts of steps above it, an even number of them.
bool readLogits(const char* path, LlamaLogits& logits) {
  std::ifstream file(path, std::ios::binary);
  char magic[8];
  int32_t sizes[3];
  if (!read(file, magic, 8) || std::memcmp(magic, "_logits_", 8) != 0 || !read(file, sizes, 3)) return false;
  const auto [length, vocabulary, chunks] = sizes;
  if (length < 2 || vocabulary < 1 || chunks < 1) return false;
  for (int32_t chunk = 0; chunk < chunks; ++chunk)
    if (!read(file, logits.chunks.emplace_back(static_cast<size_t>(length)).data(), static_cast<size_t>(length))) return false;
  std::vector<uint16_t> steps(static_cast<size_t>(vocabulary + 1) / 2 * 2);
  for (int32_t row = 0; row < chunks * (length - 1 - length / 2); ++row) {
    float scale[2];
    if (!read(file, scale, 2) || !read(file, steps.data(), steps.size())) return false;
    std::vector<float>& values = logits.rows.emplace_back(static_cast<size_t>(vocabulary));
    for (size_t token = 0; token < values.size(); ++token) values[token] = scale[1] + scale[0] * static_cast<float>(steps[token]);
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  LlamaLogits llama;
  if (argc != 3 || !readLogits(argv[2], llama)) {
    std::fprintf(stderr, "usage: rounding_benchmark MODEL.gguf LOGITS     LOGITS of llama-perplexity --kl-divergence-base\n");
    return 2;
  }
  auto rowsOf = [&](DType compute, DType cache) {
    std::unique_ptr<StepDriver> driver;
    const Distributions all = distributions(argv[1], llama.chunks, limitsFor(llama.chunks, compute, cache), driver);
    Distributions rows;
    const size_t length = llama.chunks.front().size();
    for (size_t chunk = 0; chunk < llama.chunks.size(); ++chunk)
      for (size_t position = length / 2; position + 1 < length; ++position) rows.push_back(all[chunk * length + position]);
    return rows;
  };
  const Distributions exact = rowsOf(DType::F32, DType::F32);
  auto print = [&](const char* name, const Distributions& rows) {
    const Divergence found = divergence(exact, rows);
    std::printf("%-20s mean KL divergence %.3e, %.2f%% of the likeliest tokens the same\n", name, found.mean,
                100 * found.sameLikeliest);
  };
  std::printf("%zu positions\n", exact.size());
  print("llama.cpp", llama.rows);
  print("float16", rowsOf(DType::F16, DType::F16));
  print("bfloat16", rowsOf(DType::BF16, DType::BF16));
}
