// SPDX-License-Identifier: Apache-2.0
// Inputs are pseudo-random with a fixed seed. A row is timed by running it several times between two waits, after one run that is not counted.
#include "engine/selftest.h"

#include "core/hardware/machine.h"
#include "engine/device/cpu/cpu_backend.h"
#include "engine/parallel/local_communicator.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <mutex>
#include <random>
#include <span>
#include <thread>

namespace headroom::engine {
namespace {

using Clock = std::chrono::steady_clock;
using Values = std::vector<float>;

Values randomValues(int64_t count, int seed, float scale = 1.0f) {
  std::mt19937 engine(static_cast<unsigned>(seed));
  std::uniform_real_distribution<float> draw(-scale, scale);
  Values values(static_cast<size_t>(count));
  for (float& value : values) value = draw(engine);
  return values;
}

// One device with what the operations need. Failures of allocations end the row with their reason.
class Bench {
 public:
  explicit Bench(Backend& backend) : m_backend(backend) {}
  Backend& backend() { return m_backend; }

  TensorView upload(const Values& values, int64_t rows, int64_t columns) {
    const TensorView view = TensorView::of(memory(Bytes(static_cast<int64_t>(values.size() * 4))), DType::F32, rows, columns);
    if (view.data) m_backend.copyToDevice(view.data, values.data(), Bytes(static_cast<int64_t>(values.size() * 4)));
    return view;
  }
  TensorView upload(const std::vector<int32_t>& values, int64_t rows, int64_t columns) {
    const TensorView view = TensorView::of(memory(Bytes(static_cast<int64_t>(values.size() * 4))), DType::I32, rows, columns);
    if (view.data) m_backend.copyToDevice(view.data, values.data(), Bytes(static_cast<int64_t>(values.size() * 4)));
    return view;
  }
  template <class T>
  const T* pointer(const std::vector<T>& values) {
    const Bytes size(static_cast<int64_t>(values.size() * sizeof(T)));
    void* data = memory(size);
    if (data) m_backend.copyToDevice(data, values.data(), size);
    return static_cast<const T*>(data);
  }
  void* memory(Bytes size) {
    Result<DeviceBuffer> buffer = m_backend.allocate(size, "selftest");
    if (!buffer) {
      if (!m_failure) m_failure = buffer.error();
      return nullptr;
    }
    m_buffers.push_back(std::move(*buffer));
    return m_buffers.back().data();
  }
  // A matrix whose rows come from stored bytes of `dtype`.
  const WeightMatrix* matrix(DType dtype, int64_t out, int64_t in, const std::vector<std::byte>& rows) {
    Result<WeightMatrix> matrix = m_backend.makeMatrix(dtype, out, in, "selftest");
    if (!matrix) {
      if (!m_failure) m_failure = matrix.error();
      return nullptr;
    }
    m_backend.writeRows(*matrix, 0, out, dtype, rows.data());
    m_backend.finishMatrix(*matrix);
    m_matrices.push_back(std::make_unique<WeightMatrix>(std::move(*matrix)));
    return m_matrices.back().get();
  }
  Result<Values> download(TensorView view) {
    Values values(static_cast<size_t>(view.rows * view.cols));
    if (m_failure) return tl::unexpected(*m_failure);
    m_backend.copyToHost(values.data(), view.data, Bytes(static_cast<int64_t>(values.size() * 4)));
    if (Status status = m_backend.sync(); !status) return tl::unexpected(status.error());
    return values;
  }
  const std::optional<Error>& failure() const { return m_failure; }

 private:
  Backend& m_backend;
  std::vector<DeviceBuffer> m_buffers;
  std::vector<std::unique_ptr<WeightMatrix>> m_matrices;
  std::optional<Error> m_failure;
};

// An operation: lays out its inputs on a bench, and gives what to run and what comes out. `bytes` and `operations` of one run.
struct Case {
  std::string operation, dtype, shape;
  double limit = 1e-5;
  double bytes = 0, operations = 0;
  struct Prepared {
    std::function<void()> run;
    TensorView out;
  };
  std::function<Prepared(Bench&)> prepare;
};

std::vector<std::byte> storedRows(DType dtype, int64_t rows, int64_t columns, int seed) {
  std::mt19937 engine(static_cast<unsigned>(seed));
  const Bytes size = storageBytes(dtype, columns) * rows;
  std::vector<std::byte> stored(static_cast<size_t>(size.count()));
  if (dtype == DType::F32 || dtype == DType::BF16 || dtype == DType::F16) {
    std::uniform_real_distribution<float> draw(-0.5f, 0.5f);
    const size_t each = static_cast<size_t>(storageBytes(dtype, 1).count());
    for (size_t i = 0; i < stored.size() / each; ++i) {
      const float value = std::round(draw(engine) * 64) / 64;  // exact in all three types
      uint32_t bits;
      std::memcpy(&bits, &value, 4);
      uint16_t half = static_cast<uint16_t>(bits >> 16);
      if (dtype == DType::F16) {
        const uint32_t exponent = bits >> 23 & 0xff;
        half = value == 0 ? uint16_t{0} : static_cast<uint16_t>((bits >> 16 & 0x8000) | (exponent - 112) << 10 | (bits >> 13 & 0x3ff));
      }
      if (dtype == DType::F32) std::memcpy(stored.data() + i * 4, &value, 4);
      else std::memcpy(stored.data() + i * 2, &half, 2);
    }
    return stored;
  }
  // Blocks: any codes, scales (F16 wherever they stand) kept small by clearing the exponents' high bits of each 16-bit word that may be one.
  for (std::byte& byte : stored) byte = static_cast<std::byte>(engine());
  const int64_t block = dtypeInfo(dtype).blockBytes;
  auto scaleAt = [&](int64_t offset) {
    for (int64_t at = offset; at < size.count(); at += block) {
      const uint16_t scale = static_cast<uint16_t>(0x2000 | (engine() & 0x3ff));  // 2^-7 … 2^-6
      std::memcpy(stored.data() + at, &scale, 2);
    }
  };
  switch (dtype) {
    case DType::Q4_1:
    case DType::Q5_1:
    case DType::Q4_K:
    case DType::Q5_K: scaleAt(0); scaleAt(2); break;
    case DType::Q2_K: scaleAt(80); scaleAt(82); break;
    case DType::Q3_K: scaleAt(108); break;
    case DType::Q6_K: scaleAt(208); break;
    case DType::TQ1_0: scaleAt(52); break;
    case DType::TQ2_0: scaleAt(64); break;
    case DType::IQ1_M:  // the upper nibbles of four words
      for (int64_t at = 0; at < size.count(); at += block)
        for (const auto& [word, nibble] : {std::pair{48, 0}, {50, 3}, {52, 1}, {54, 2}}) {
          std::byte& byte = stored[static_cast<size_t>(at + word + 1)];
          byte = (byte & std::byte{15}) | std::byte(nibble << 4);
        }
      break;
    case DType::MXFP4:  // exponents
      for (int64_t at = 0; at < size.count(); at += block) stored[static_cast<size_t>(at)] = std::byte{121};
      break;
    default: scaleAt(0); break;
  }
  return stored;
}

std::string sizes(std::initializer_list<int64_t> numbers) { return fmt::format("{}", fmt::join(numbers, " x ")); }

class Table {
 public:
  explicit Table(bool quick) : m_quick(quick) {
    const int64_t hidden = quick ? 256 : 4096;
    for (int64_t tokens : {int64_t{1}, int64_t{5}, quick ? int64_t{40} : int64_t{512}}) {
      elementwise(tokens, hidden);
      for (DType dtype : {DType::F32, DType::F16, DType::BF16, DType::Q8_0, DType::Q4_0, DType::Q4_1, DType::Q5_0, DType::Q5_1, DType::Q2_K, DType::Q3_K,
                          DType::Q4_K, DType::Q5_K, DType::Q6_K, DType::IQ4_NL, DType::IQ4_XS, DType::MXFP4, DType::IQ1_S, DType::IQ1_M, DType::IQ2_XXS,
                          DType::IQ2_XS, DType::IQ2_S, DType::IQ3_XXS, DType::IQ3_S, DType::TQ1_0, DType::TQ2_0})
        linear(dtype, tokens, hidden, hidden);
    }
    linear(DType::BF16, 3, 72, 40);  // sizes that no tile divides
    for (DType dtype : {DType::F32, DType::F16, DType::BF16}) {
      attention(dtype, 1, quick ? 70 : 2048, 8, 2, 64, {});
      attention(dtype, 33, quick ? 70 : 1024, 6, 3, 64, {});
      AttentionParams windowed;
      windowed.window = 40;
      windowed.softcap = 20;
      attention(dtype, 9, 100, 4, 4, 80, windowed);
    }
  }
  std::vector<Case> cases;

 private:
  void add(Case next) { cases.push_back(std::move(next)); }

  void elementwise(int64_t tokens, int64_t hidden) {
    const int64_t count = tokens * hidden;
    const double mb = 4.0 * static_cast<double>(count);
    auto unary = [&](const char* name, double traffic, double limit, std::function<void(Backend&, TensorView, TensorView, const float*)> body) {
      add({name, "float32", sizes({tokens, hidden}), limit, traffic * mb, 0, [=](Bench& bench) -> Case::Prepared {
             const TensorView a = bench.upload(randomValues(count, 1), tokens, hidden), b = bench.upload(randomValues(count, 2), tokens, hidden);
             const float* weight = bench.pointer(randomValues(hidden, 3));
             return {[=, &bench] { body(bench.backend(), a, b, weight); }, a};
           }});
    };
    unary("rmsNorm", 2, 1e-5, [](Backend& d, TensorView a, TensorView b, const float* w) { d.rmsNorm(a, b, w, 1e-6, 0); });
    unary("layerNorm", 2, 1e-5, [](Backend& d, TensorView a, TensorView b, const float* w) { d.layerNorm(a, b, w, w, 1e-5); });
    unary("headRmsNorm", 2, 1e-5, [](Backend& d, TensorView a, TensorView, const float* w) { d.headRmsNorm(a, 64, w, 1e-6, 1); });
    unary("gatedActivation", 3, 1e-5, [](Backend& d, TensorView a, TensorView b, const float*) { d.gatedActivation(a, b, b, Activation::Silu); });
    unary("activate", 2, 1e-5, [](Backend& d, TensorView a, TensorView, const float*) { d.activate(a, Activation::GeluTanh); });
    unary("softcap", 2, 1e-5, [](Backend& d, TensorView a, TensorView, const float*) { d.softcap(a, 30); });
    unary("scale", 2, 1e-6, [](Backend& d, TensorView a, TensorView, const float*) { d.scale(a, -1.0); });
    add({"addRmsNorm", "float32", sizes({tokens, hidden}), 1e-5, 0, 0, [=](Bench& bench) -> Case::Prepared {
           const TensorView out = bench.upload(Values(static_cast<size_t>(count)), tokens, hidden), residual = bench.upload(randomValues(count, 4), tokens, hidden),
                            delta = bench.upload(randomValues(count, 5, 1e-3f), tokens, hidden);
           const float* weight = bench.pointer(randomValues(hidden, 6));
           return {[=, &bench] { bench.backend().addRmsNorm(out, residual, delta, weight, 1e-6, 0); }, out};
         }});
    add({"applyRope", "float32", sizes({tokens, hidden}), 1e-5, 2 * mb, 0, [=](Bench& bench) -> Case::Prepared {
           const TensorView x = bench.upload(randomValues(count, 7), tokens, hidden), angles = bench.upload(Values(static_cast<size_t>(tokens * 64)), tokens, 64);
           std::vector<int32_t> positions(static_cast<size_t>(tokens));
           for (int64_t i = 0; i < tokens; ++i) positions[static_cast<size_t>(i)] = static_cast<int32_t>(100 * i + 3);
           std::vector<double> frequencies(32);
           for (size_t i = 0; i < 32; ++i) frequencies[i] = std::pow(10000.0, -static_cast<double>(i) / 32);
           const TensorView at = bench.upload(positions, 1, tokens);
           const double* table = bench.pointer(frequencies);
           return {[=, &bench] {
                     bench.backend().ropeAngles(angles, at, table, 1.0);
                     bench.backend().applyRope(x, 64, angles, RopeStyle::Neox);
                   },
                   x};
         }});
    add({"rotateAndStoreKv", "float32", sizes({tokens, hidden}), 1e-5, 2 * mb, 0, [=](Bench& bench) -> Case::Prepared {
           constexpr int64_t kHead = 64, kBlock = 16;
           const int64_t blocks = ceilDiv(tokens, kBlock), heads = hidden / kHead;
           KvLayerView cache;
           cache.blocks = blocks;
           cache.kvHeads = heads;
           cache.headDim = cache.vHeadDim = kHead;
           cache.data = bench.upload(Values(static_cast<size_t>(2 * blocks * kBlock * hidden)), 1, 2 * blocks * kBlock * hidden).data;
           HeadsOfStep step;
           step.q = bench.upload(randomValues(count, 12), tokens, hidden);
           step.k = bench.upload(randomValues(count, 13), tokens, hidden);
           step.v = bench.upload(randomValues(count, 14), tokens, hidden);
           step.headDim = kHead;
           step.qNorm = step.kNorm = bench.pointer(randomValues(kHead, 15));
           step.cosSin = bench.upload(randomValues(tokens * kHead, 16), tokens, kHead);
           std::vector<int32_t> slots(static_cast<size_t>(tokens)), table(static_cast<size_t>(blocks));
           for (int64_t i = 0; i < tokens; ++i) slots[static_cast<size_t>(i)] = static_cast<int32_t>(i);
           for (int64_t i = 0; i < blocks; ++i) table[static_cast<size_t>(i)] = static_cast<int32_t>(i);
           step.slots = bench.upload(slots, 1, tokens);
           AttentionBatch batch;
           batch.sequences = 1;
           batch.sequenceStart = bench.upload(std::vector<int32_t>{0, static_cast<int32_t>(tokens)}, 1, 2);
           batch.contextLength = bench.upload(std::vector<int32_t>{static_cast<int32_t>(tokens)}, 1, 1);
           batch.blockTable = bench.upload(table, 1, blocks);
           AttentionParams params;
           params.scale = 0.125f;
           params.qHeads = heads;
           const TensorView out = bench.upload(Values(static_cast<size_t>(count)), tokens, hidden);
           return {[=, &bench] {  // what was stored is seen by what attention makes of it
                     bench.backend().rotateAndStoreKv(cache, step);
                     bench.backend().pagedAttention(out, step.q, cache, batch, params);
                   },
                   out};
         }});
    add({"embed", "bfloat16", sizes({tokens, hidden}), 0, 1.5 * mb, 0, [=](Bench& bench) -> Case::Prepared {
           const WeightMatrix* table = bench.matrix(DType::BF16, 50, hidden, storedRows(DType::BF16, 50, hidden, 8));
           std::vector<int32_t> ids(static_cast<size_t>(tokens));
           for (int64_t i = 0; i < tokens; ++i) ids[static_cast<size_t>(i)] = static_cast<int32_t>(i * 7 % 60);  // some outside
           const TensorView out = bench.upload(Values(static_cast<size_t>(count)), tokens, hidden), at = bench.upload(ids, 1, tokens);
           return {[=, &bench] {
                     if (table) bench.backend().embed(out, *table, at, 3);
                   },
                   out};
         }});
  }

  void linear(DType dtype, int64_t tokens, int64_t out, int64_t in) {
    const double bytes = static_cast<double>((storageBytes(dtype, in) * out).count()) + 4.0 * static_cast<double>(tokens * (in + out));
    add({"linear", std::string(dtypeName(dtype)), sizes({tokens, in, out}), dtype == DType::F32 ? 1e-5 : 2e-2, bytes,
         2.0 * static_cast<double>(tokens) * static_cast<double>(in) * static_cast<double>(out), [=](Bench& bench) -> Case::Prepared {
           const WeightMatrix* weight = bench.matrix(dtype, out, in, storedRows(dtype, out, in, 9));
           const TensorView x = bench.upload(randomValues(tokens * in, 10), tokens, in);
           const TensorView y = bench.upload(Values(static_cast<size_t>(tokens * out)), tokens, out);
           const float* bias = bench.pointer(randomValues(out, 11));
           return {[=, &bench] {
                     const LinearTask task{y, weight, bias};
                     if (weight) bench.backend().linear(x, std::span(&task, 1));
                   },
                   y};
         }});
  }

  // Two sequences: `tokens` new ones of `context` each, keys and values stored by the device itself, blocks scattered.
  void attention(DType cacheType, int64_t tokens, int64_t context, int64_t qHeads, int64_t kvHeads, int64_t headDim, AttentionParams params) {
    constexpr int64_t kSequences = 2, kBlock = 16;
    params.scale = 1.0f / std::sqrt(static_cast<float>(headDim));
    params.qHeads = qHeads;
    params.groupSize = qHeads / kvHeads;
    const int64_t perSequence = ceilDiv(context, kBlock), blocks = kSequences * perSequence;
    const double bytes = static_cast<double>(storageBytes(cacheType, kSequences * context * kvHeads * headDim * 2).count());
    add({"pagedAttention", std::string(dtypeName(cacheType)), fmt::format("2 x {} of {}, {}/{} x {}", tokens, context, qHeads, kvHeads, headDim),
         cacheType == DType::F32 ? 1e-4 : 2e-2, tokens == 1 ? bytes : 0, 0, [=](Bench& bench) -> Case::Prepared {
           KvLayerView cache;
           cache.dtype = cacheType;
           cache.blocks = blocks;
           cache.blockTokens = kBlock;
           cache.kvHeads = kvHeads;
           cache.headDim = cache.vHeadDim = headDim;
           cache.data = bench.memory(storageBytes(cacheType, blocks * kBlock * kvHeads * headDim * 2));
           std::vector<int32_t> table, slotsOfAll, starts{0}, lengths;
           for (int64_t s = 0; s < kSequences; ++s) {
             for (int64_t b = 0; b < perSequence; ++b) table.push_back(static_cast<int32_t>((b * 7 + s) % perSequence * kSequences + s));
             starts.push_back(static_cast<int32_t>((s + 1) * tokens));
             lengths.push_back(static_cast<int32_t>(context));
           }
           // (b * 7 + s) % perSequence is no permutation where 7 divides it: then blocks in order.
           if (perSequence % 7 == 0)
             for (int64_t i = 0; i < blocks; ++i) table[static_cast<size_t>(i)] = static_cast<int32_t>(i);
           for (int64_t s = 0; s < kSequences; ++s)
             for (int64_t t = 0; t < context; ++t)
               slotsOfAll.push_back(static_cast<int32_t>(table[static_cast<size_t>(s * perSequence + t / kBlock)] * kBlock + t % kBlock));
           const int64_t all = kSequences * context;
           const TensorView k = bench.upload(randomValues(all * kvHeads * headDim, 12), all, kvHeads * headDim);
           const TensorView v = bench.upload(randomValues(all * kvHeads * headDim, 13), all, kvHeads * headDim);
           const TensorView slotView = bench.upload(slotsOfAll, 1, all);
           if (cache.data) bench.backend().storeKv(cache, k, v, slotView);
           AttentionBatch batch;
           batch.sequences = kSequences;
           batch.sequenceStart = bench.upload(starts, 1, kSequences + 1);
           batch.contextLength = bench.upload(lengths, 1, kSequences);
           batch.blockTable = bench.upload(table, kSequences, perSequence);
           const TensorView q = bench.upload(randomValues(kSequences * tokens * qHeads * headDim, 14), kSequences * tokens, qHeads * headDim);
           const TensorView out = bench.upload(Values(static_cast<size_t>(kSequences * tokens * qHeads * headDim)), kSequences * tokens, qHeads * headDim);
           return {[=, &bench] {
                     if (cache.data) bench.backend().pagedAttention(out, q, cache, batch, params);
                   },
                   out};
         }});
  }

  const bool m_quick;
};

std::unique_ptr<Backend> referenceBackend() {
  CpuBackendOptions options;
  options.budget = hostMemory();
  options.exact = true;
  options.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return makeCpuBackend(options);
}

Result<std::unique_ptr<Backend>> testedBackend(const SelftestSettings& settings) {
  if (settings.cuda) {
    CudaBackendOptions options;
    options.device = settings.device;
    return settings.cuda->makeBackend(options);
  }
  CpuBackendOptions options;
  options.budget = hostMemory();
  options.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return makeCpuBackend(options);
}

Result<double> secondsOf(Backend& backend, const std::function<void()>& run, bool quick) {
  if (Status status = backend.sync(); !status) return tl::unexpected(status.error());
  int runs = 0;
  const auto begun = Clock::now();
  double elapsed = 0;
  do {
    for (int i = 0; i < (quick ? 1 : 10); ++i, ++runs) run();
    if (Status status = backend.sync(); !status) return tl::unexpected(status.error());
    elapsed = std::chrono::duration<double>(Clock::now() - begun).count();
  } while (!quick && elapsed < 0.05 && runs < 1000);
  return elapsed / runs;
}

SelftestRow runCase(const Case& test, Backend& tested, Backend& reference, const SelftestSettings& settings, const SelftestSummary& summary) {
  SelftestRow row;
  row.operation = test.operation;
  row.dtype = test.dtype;
  row.shape = test.shape;
  row.limit = test.limit;
  try {
    Bench bench(tested), truth(reference);
    const Case::Prepared prepared = test.prepare(bench), expected = test.prepare(truth);
    prepared.run();
    expected.run();
    const Result<Values> found = bench.download(prepared.out), right = truth.download(expected.out);
    if (!found || !right) {
      row.reason = (found ? right.error() : found.error()).message();
      return row;
    }
    double largest = 0, difference = 0;
    bool finite = true;
    for (size_t i = 0; i < right->size(); ++i) {
      largest = std::max<double>(largest, std::abs((*right)[i]));
      difference = std::max<double>(difference, std::abs((*right)[i] - (*found)[i]));
      finite = finite && std::isfinite((*found)[i]);
    }
    row.error = largest > 0 ? difference / largest : difference;
    row.passed = finite && row.error <= row.limit;
    const Result<double> seconds = secondsOf(tested, prepared.run, settings.quick);
    if (!seconds) {
      row.passed = false;
      row.reason = seconds.error().message();
      return row;
    }
    row.milliseconds = *seconds * 1e3;
    if (summary.copyGBs && test.bytes > 0) row.bandwidthShare = test.bytes / *seconds / (*summary.copyGBs * 1e9);
    if (summary.gemmTflops && test.operations > 0) row.gemmShare = test.operations / *seconds / (*summary.gemmTflops * 1e12);
  } catch (const std::exception& problem) {
    row.passed = false;
    row.reason = problem.what();
  }
  return row;
}

// What the device itself reaches: adding two large vectors (three passes), and a large product of 16-bit matrices.
void measureDevice(Backend& backend, SelftestSummary& summary, bool quick) {
  Bench bench(backend);
  const int64_t rows = quick ? 64 : 4096, columns = 4096;
  const TensorView a = bench.upload(Values(static_cast<size_t>(rows * columns), 1.0f), rows, columns);
  const TensorView b = bench.upload(Values(static_cast<size_t>(rows * columns), 0.0f), rows, columns);
  if (bench.failure()) return;
  backend.add(a, b);
  if (const auto seconds = secondsOf(backend, [&] { backend.add(a, b); }, quick)) summary.copyGBs = 12.0 * static_cast<double>(rows * columns) / *seconds / 1e9;
  const int64_t size = quick ? 256 : 4096;
  const WeightMatrix* weight = bench.matrix(DType::BF16, size, size, storedRows(DType::BF16, size, size, 20));
  const TensorView x = bench.upload(randomValues(size * size, 21), size, size), y = bench.upload(Values(static_cast<size_t>(size * size)), size, size);
  if (bench.failure()) return;
  const LinearTask task{y, weight, nullptr};
  backend.linear(x, std::span(&task, 1));
  if (const auto seconds = secondsOf(backend, [&] { backend.linear(x, std::span(&task, 1)); }, quick))
    summary.gemmTflops = 2.0 * static_cast<double>(size) * static_cast<double>(size) * static_cast<double>(size) / *seconds / 1e12;
}

// Ranks as threads, all on the one device: sums in rank order, columns side by side.
SelftestRow runCollectives(const SelftestSettings& settings, int ranks, int64_t rows, int64_t columns) {
  SelftestRow row;
  row.operation = "allReduce, gather";
  row.dtype = "float32";
  row.shape = fmt::format("{} ranks, {} x {}", ranks, rows, columns);
  row.limit = 1e-6;
  std::string how;
  auto communicators = settings.cuda ? settings.cuda->makeCommunicators(std::vector<int>(static_cast<size_t>(ranks), settings.device), how)
                                     : makeLocalCommunicators(ranks, false);
  std::mutex mutex;
  std::vector<std::thread> threads;
  std::vector<int64_t> columnsOfRank(static_cast<size_t>(ranks), columns);
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      Communicator& communicator = *communicators[static_cast<size_t>(rank)];
      auto failed = [&](const Error& error) {
        communicator.abort(error);
        std::lock_guard lock(mutex);
        if (row.reason.empty()) row.reason = error.message();
      };
      Result<std::unique_ptr<Backend>> backend = testedBackend(settings);
      if (!backend) return failed(backend.error());
      if (Status status = communicator.attach(**backend); !status) return failed(status.error());
      {
        Bench bench(**backend);
        const TensorView mine = bench.upload(randomValues(rows * columns, 30 + rank), rows, columns);
        const TensorView all = bench.upload(Values(static_cast<size_t>(rows * columns * ranks)), rows, columns * ranks);
        if (bench.failure()) return failed(*bench.failure());
        Status status = communicator.gatherColumns(all, mine, columnsOfRank);
        if (status) status = communicator.allReduceSum(mine);
        if (!status) return failed(status.error());
        const Result<Values> sum = bench.download(mine), gathered = bench.download(all);
        if (!sum || !gathered) return failed((sum ? gathered : sum).error());
        double error = 0;
        std::vector<double> expected(static_cast<size_t>(rows * columns));
        for (int peer = 0; peer < ranks; ++peer) {
          const Values theirs = randomValues(rows * columns, 30 + peer);
          for (size_t i = 0; i < expected.size(); ++i) expected[i] += theirs[i];
        }
        for (size_t i = 0; i < expected.size(); ++i) error = std::max(error, std::abs(expected[i] - (*sum)[i]));
        for (int peer = 0; rank == 0 && peer < ranks; ++peer) {
          const Values theirs = randomValues(rows * columns, 30 + peer);
          for (int64_t i = 0; i < rows; ++i)
            for (int64_t j = 0; j < columns; ++j)
              error = std::max<double>(error, std::abs(theirs[static_cast<size_t>(i * columns + j)] -
                                                       (*gathered)[static_cast<size_t>(i * columns * ranks + peer * columns + j)]));
        }
        std::lock_guard lock(mutex);
        row.error = std::max(row.error, error);
      }
      // Peers may still read this rank's memory: all meet once more before it goes.
      {
        Bench last(**backend);
        const TensorView one = last.upload(Values(16), 1, 16);
        Status status = communicator.allReduceSum(one);
        if (status) status = (*backend)->sync();
        if (!status) return failed(status.error());
      }
      communicators[static_cast<size_t>(rank)].reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
  row.passed = row.reason.empty() && row.error <= row.limit;
  return row;
}

}  // namespace

Result<SelftestSummary> runSelftest(const SelftestSettings& settings, const std::function<void(const SelftestRow&)>& report) {
  Result<std::unique_ptr<Backend>> tested = testedBackend(settings);
  if (!tested) return tl::unexpected(tested.error());
  const std::unique_ptr<Backend> reference = referenceBackend();
  SelftestSummary summary;
  summary.device = fmt::format("{}:{} ({})", (*tested)->info().name, settings.device, (*tested)->info().description);
  measureDevice(**tested, summary, settings.quick);
  auto note = [&](const SelftestRow& row) {
    ++summary.checks;
    if (!row.passed) ++summary.failed;
    report(row);
  };
  for (const Case& test : Table(settings.quick).cases) note(runCase(test, **tested, *reference, settings, summary));
  note(runCollectives(settings, 2, 3, 50));
  note(runCollectives(settings, 4, settings.quick ? 16 : 512, settings.quick ? 64 : 512));
  return summary;
}

}  // namespace headroom::engine
