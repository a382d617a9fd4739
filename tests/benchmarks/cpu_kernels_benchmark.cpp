// SPDX-License-Identifier: Apache-2.0
// Speed of the CPU backend's kernels beside what the machine can do: memory bandwidth (reading, all threads) and products per
// second (fused multiply-adds on registers). Prints a table; nothing is asserted.
//   cpu_kernels_benchmark [threads] [dtype]
#include "engine/device/cpu/cpu_backend.h"

#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <random>
#include <thread>
#include <vector>

using namespace headroom;
using namespace headroom::engine;

namespace {

// With one thread: the thread's own processor time, so that other programs' work is not counted. Else wall-clock time.
bool processorTime = false;
double now() {
  timespec time{};
  clock_gettime(processorTime ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Shortest time of one call; the machine may be busy with other things.
template <class Body>
double shortest(const Body& body, double seconds = 0.15) {
  body();
  double best = 1e9;
  for (const double end = now() + seconds; now() < end;) {
    const double begin = now();
    body();
    best = std::min(best, now() - begin);
  }
  return best;
}

template <class Body>
void onThreads(int threads, const Body& body) {
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back([&, t] { body(t); });
  body(0);
  for (std::thread& thread : others) thread.join();
}

// Bytes read per second from memory that no cache holds.
double readBandwidth(int threads) {
  const size_t each = (size_t{512} << 20) / static_cast<size_t>(threads) / 8;
  std::vector<std::vector<uint64_t>> data(static_cast<size_t>(threads), std::vector<uint64_t>(each, 1));
  std::vector<uint64_t> sums(static_cast<size_t>(threads) * 8);
  const double time = shortest(
      [&] {
        onThreads(threads, [&](int t) {
          uint64_t sum[8] = {};
          const uint64_t* from = data[static_cast<size_t>(t)].data();
          for (size_t i = 0; i + 8 <= each; i += 8)
            for (size_t j = 0; j < 8; ++j) sum[j] += from[i + j];
          for (uint64_t part : sum) sums[static_cast<size_t>(t) * 8] += part;
        });
      },
      1.0);
  return static_cast<double>(each) * 8 * threads / time;
}

struct Shape {
  const char* name;
  int64_t out, in;
};

// A linear layer over as many different weights as a cache would not keep, as a forward pass reads them.
void linear(int threads, DType dtype, const Shape& shape, int64_t tokens, bool exact, double bandwidth) {
  const auto backend = makeCpuBackend({.threads = threads, .exact = exact});
  const int64_t bytes = (storageBytes(dtype, shape.in) * shape.out).count();
  const int64_t copies = std::clamp<int64_t>((int64_t{96} << 20) / bytes, 1, 64);
  std::vector<WeightMatrix> weights;
  std::mt19937 random(1);
  std::vector<float> row(static_cast<size_t>(shape.in));
  std::vector<uint8_t> raw(static_cast<size_t>(bytes), 0x21);  // small numbers in every type
  for (int64_t i = 0; i < copies; ++i) {
    weights.push_back(*backend->makeMatrix(dtype, shape.out, shape.in, "benchmark"));
    backend->writeRows(weights.back(), 0, shape.out, dtype, raw.data());
    backend->finishMatrix(weights.back());
  }
  std::vector<float> in(static_cast<size_t>(tokens * shape.in), 0.5f), out(static_cast<size_t>(tokens * shape.out));
  size_t next = 0;
  const int64_t calls = tokens >= 64 ? 1 : copies;
  const double time = shortest([&] {
                        for (int64_t i = 0; i < calls; ++i) {
                          const LinearTask task = {TensorView::of(out.data(), DType::F32, tokens, shape.out),
                                                   &weights[next++ % weights.size()], nullptr};
                          backend->linear(TensorView::of(in.data(), DType::F32, tokens, shape.in), {&task, 1});
                        }
                      }) /
                      static_cast<double>(calls);
  const double products = 2.0 * static_cast<double>(tokens * shape.out * shape.in) / time;
  fmt::print("{:6} {:5} {:10} {:6}x{:<5} {:4} tokens  {:9.1f} us  {:6.1f} GB/s ({:3.0f} % of reading)  {:7.1f} GFLOP/s\n",
             dtypeName(dtype), exact ? "exact" : "fast", shape.name, shape.out, shape.in, tokens, time * 1e6,
             static_cast<double>(bytes) / time / 1e9, 100 * static_cast<double>(bytes) / time / bandwidth, products / 1e9);
}

void attention(int threads, DType dtype, int64_t context, int64_t tokens, int64_t sequences) {
  const int64_t qHeads = 9, kvHeads = 3, headDim = 64, blockTokens = 16, blocksEach = (context + blockTokens - 1) / blockTokens;
  const auto backend = makeCpuBackend({.threads = threads});
  std::vector<std::byte> cacheBytes(
      static_cast<size_t>((storageBytes(dtype, blockTokens * kvHeads * headDim * 2) * (blocksEach * sequences)).count()));
  const KvLayerView cache = {cacheBytes.data(), dtype, blocksEach * sequences, blockTokens, kvHeads, headDim, headDim};
  std::vector<float> q(static_cast<size_t>(sequences * tokens * qHeads * headDim), 0.1f), out(q.size());
  std::vector<int32_t> starts, contexts, table;
  for (int64_t s = 0; s <= sequences; ++s) starts.push_back(static_cast<int32_t>(s * tokens));
  for (int64_t s = 0; s < sequences; ++s) contexts.push_back(static_cast<int32_t>(context));
  for (int64_t b = 0; b < sequences * blocksEach; ++b) table.push_back(static_cast<int32_t>(b));
  const AttentionBatch batch = {sequences, TensorView::of(starts.data(), DType::I32, 1, sequences + 1),
                                TensorView::of(contexts.data(), DType::I32, 1, sequences),
                                TensorView::of(table.data(), DType::I32, sequences, blocksEach)};
  AttentionParams params;
  params.scale = 0.125f;
  params.qHeads = qHeads;
  params.groupSize = 3;
  const int64_t rows = sequences * tokens;
  const double time = shortest([&] {
    backend->pagedAttention(TensorView::of(out.data(), DType::F32, rows, qHeads * headDim),
                            TensorView::of(q.data(), DType::F32, rows, qHeads * headDim), cache, batch, params);
  });
  const double pairs = static_cast<double>(sequences) * static_cast<double>(tokens) *
                       (static_cast<double>(context) - static_cast<double>(tokens - 1) / 2);
  fmt::print("{:6} attention: {} sequences, {} tokens each, context {}: {:9.1f} us  {:6.1f} GB/s of cache  {:7.1f} GFLOP/s\n",
             dtypeName(dtype), sequences, tokens, context, time * 1e6,
             static_cast<double>(sequences * context * kvHeads * headDim * 2 * storageBytes(dtype, 1).count()) / time / 1e9,
             pairs * static_cast<double>(qHeads * headDim) * 4 / time / 1e9);
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : static_cast<int>(std::thread::hardware_concurrency());
  const std::string_view only = argc > 2 ? argv[2] : "";
  processorTime = threads == 1;
  const double bandwidth = readBandwidth(threads);
  fmt::print("{}: reading memory {:.1f} GB/s\n", makeCpuBackend({.threads = threads})->info().description, bandwidth / 1e9);
  // A small model's layers, and the head of its vocabulary.
  const Shape shapes[] = {{"gate+up", 3072, 576}, {"down", 576, 1536}, {"head", 49152, 576}};
  // Blocks of 256 do not divide a width of 576.
  const Shape wideShapes[] = {{"gate+up", 4096, 1024}, {"down", 1024, 2048}, {"head", 32768, 1024}};
  constexpr DType kTypes[] = {DType::Q4_1,   DType::Q4_0,   DType::Q8_0,    DType::BF16,   DType::F16,   DType::F32,     DType::Q5_0,
                              DType::Q5_1,   DType::Q4_K,   DType::Q6_K,    DType::Q5_K,   DType::Q3_K,  DType::Q2_K,    DType::IQ4_NL,
                              DType::IQ4_XS, DType::MXFP4,  DType::IQ2_XXS, DType::IQ2_XS, DType::IQ2_S, DType::IQ3_XXS, DType::IQ3_S,
                              DType::IQ1_S,  DType::IQ1_M,  DType::TQ1_0,   DType::TQ2_0};
  for (DType dtype : kTypes) {
    if (!only.empty() && only != dtypeName(dtype)) continue;
    const bool wide = dtypeInfo(dtype).blockElements == 256;
    for (bool exact : {false, true}) {
      if (exact && (dtype == DType::F16 || dtype == DType::F32)) continue;
      for (int64_t tokens : {1, 4, 16, 512})
        for (const Shape& shape : wide ? wideShapes : shapes)
          if (tokens <= 16 || shape.out < 32768) linear(threads, dtype, shape, tokens, exact, bandwidth);
    }
  }
  for (DType dtype : {DType::F32, DType::BF16}) {
    if (!only.empty() && only != dtypeName(dtype)) continue;
    attention(threads, dtype, 512, 512, 1);
    attention(threads, dtype, 256, 1, 1);
    attention(threads, dtype, 4096, 1, 1);
    attention(threads, dtype, 512, 1, 16);
  }
}
