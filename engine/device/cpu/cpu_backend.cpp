// SPDX-License-Identifier: Apache-2.0
// Joins memory, linear layers, attention and the element-wise operations to one Backend.
#include "engine/device/cpu/cpu_backend.h"

#include "engine/device/cpu/block_formats.h"
#include "engine/device/cpu/cpu_attention.h"
#include "engine/device/cpu/cpu_delta_net.h"
#include "engine/device/cpu/cpu_experts.h"
#include "engine/device/cpu/cpu_linear.h"
#include "engine/device/cpu/cpu_memory.h"
#include "engine/device/cpu/thread_pool.h"
#include "engine/device/cpu/vector_operations.h"
#include "engine/device/matrix_storage.h"

#include <cmath>
#include <cstring>

namespace headroom::engine {
namespace cpu {
namespace {

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const CpuBackendOptions& options)
      : m_options(options),
        m_memory(options.device, options.budget),
        m_pool(options.threads, options.spin),
        m_linear(options.level, options.exact, m_pool),
        m_attention(options.level, m_pool),
        m_operations(vectorOperations(options.level)),
        m_experts(m_linear, m_operations) {}

  BackendInfo info() const override {
    return {"cpu",
            fmt::format("{}, {} thread{}", cpuLevelName(m_options.level), m_pool.threads(), m_pool.threads() == 1 ? "" : "s"),
            m_options.device};
  }

  Result<DeviceBuffer> allocate(Bytes size, std::string_view purpose) override {
    Result<void*> data = m_memory.allocate(size, purpose);
    if (!data) return tl::unexpected(std::move(data.error()));
    return DeviceBuffer(this, *data, size);
  }
  void release(void* data, Bytes size) noexcept override { m_memory.release(data, size); }
  Bytes allocatedBytes() const override { return m_memory.allocated(); }
  void copyToDevice(void* to, const void* from, Bytes size) override { std::memcpy(to, from, static_cast<size_t>(size.count())); }
  void copyToHost(void* to, const void* from, Bytes size) override { std::memcpy(to, from, static_cast<size_t>(size.count())); }
  const void* hostAddress(const void* device) const override { return device; }

  Result<WeightMatrix> makeMatrix(DType dtype, int64_t out, int64_t in, std::string_view purpose) override {
    if (!canRead(dtype))
      return failure(std::string(purpose), fmt::format("element type {}", dtypeName(dtype)),
                     "a floating type of 16 bits or more or a block type of GGUF");
    auto matrix = allocateMatrix(*this, dtype, out, in, purpose);
    if (matrix) matrix->packing = CpuLinear::packingFor(dtype);
    return matrix;
  }
  void writeRows(WeightMatrix& matrix, int64_t firstRow, int64_t rows, DType dtype, const void* data) override {
    expects(firstRow >= 0 && rows >= 0 && firstRow + rows <= matrix.out, "rows outside the matrix were written");
    expects(dtype == matrix.dtype || (isFloating(dtype) && isFloating(matrix.dtype)),
            "rows of another element type than the matrix were written");
    m_linear.writeRows(matrix, firstRow, rows, dtype, data);
  }
  void finishMatrix(WeightMatrix&) override {}

  void embed(TensorView out, const WeightMatrix& table, TensorView ids, int64_t firstId) override {
    eachRow(out.rows, out.cols, [&](int64_t t) {
      const int64_t row = ids.row<int32_t>(0)[t] - firstId;
      if (row >= 0 && row < table.out) {
        CpuLinear::readRow(table, row, out.row<float>(t));
      } else {
        std::fill_n(out.row<float>(t), out.cols, 0.0f);
      }
    });
  }

  void linear(TensorView in, std::span<const LinearTask> tasks) override { m_linear.run(in, tasks); }

  void rmsNorm(TensorView out, TensorView in, const float* weight, double epsilon, double offset) override {
    eachRow(out.rows, out.cols,
            [&](int64_t t) { m_operations.rmsNorm(out.row<float>(t), in.row<float>(t), weight, out.cols, epsilon, offset); });
  }
  void layerNorm(TensorView out, TensorView in, const float* weight, const float* bias, double epsilon) override {
    eachRow(out.rows, out.cols, [&](int64_t t) {
      const float* x = in.row<float>(t);
      float* y = out.row<float>(t);
      double sum = 0, squares = 0;
      for (int64_t i = 0; i < out.cols; ++i) sum += x[i];
      const double mean = sum / static_cast<double>(out.cols);
      for (int64_t i = 0; i < out.cols; ++i) squares += (x[i] - mean) * (x[i] - mean);
      const double factor = 1.0 / std::sqrt(squares / static_cast<double>(out.cols) + epsilon);
      for (int64_t i = 0; i < out.cols; ++i)
        y[i] = static_cast<float>((x[i] - mean) * factor) * weight[i] + (bias ? bias[i] : 0.0f);
    });
  }
  void addRmsNorm(TensorView out, TensorView residual, TensorView delta, const float* weight, double epsilon,
                  double offset) override {
    eachRow(out.rows, out.cols, [&](int64_t t) {
      m_operations.add(residual.row<float>(t), delta.row<float>(t), out.cols);
      m_operations.rmsNorm(out.row<float>(t), residual.row<float>(t), weight, out.cols, epsilon, offset);
    });
  }
  void headRmsNorm(TensorView x, int64_t headDim, const float* weight, double epsilon, double offset) override {
    eachRow(x.rows, x.cols, [&](int64_t t) {
      for (float* head = x.row<float>(t); head < x.row<float>(t) + x.cols; head += headDim)
        weight ? m_operations.rmsNorm(head, head, weight, headDim, epsilon, offset) : plainRmsNorm(head, headDim, epsilon);
    });
  }

  void ropeAngles(TensorView cosSin, TensorView positions, const double* inverseFrequencies, double factor) override {
    const int64_t half = cosSin.cols / 2;
    eachRow(cosSin.rows, cosSin.cols * 16, [&](int64_t t) {
      const double position = positions.row<int32_t>(0)[t];
      float* to = cosSin.row<float>(t);
      for (int64_t i = 0; i < half; ++i) {
        const double angle = position * inverseFrequencies[i];
        to[i] = static_cast<float>(std::cos(angle) * factor);
        to[half + i] = static_cast<float>(std::sin(angle) * factor);
      }
    });
  }
  void applyRope(TensorView x, int64_t headDim, TensorView cosSin, RopeStyle style) override {
    const int64_t half = cosSin.cols / 2;
    eachRow(x.rows, x.cols, [&](int64_t t) {
      const float *cosines = cosSin.row<float>(t), *sines = cosines + half;
      for (float* head = x.row<float>(t); head < x.row<float>(t) + x.cols; head += headDim) {
        if (style == RopeStyle::Neox) {
          m_operations.rotate(head, head + half, cosines, sines, half);
          continue;
        }
        for (int64_t i = 0; i < half; ++i) {
          const float a = head[2 * i], b = head[2 * i + 1];
          head[2 * i] = a * cosines[i] - b * sines[i];
          head[2 * i + 1] = b * cosines[i] + a * sines[i];
        }
      }
    });
  }

  void storeKv(const KvLayerView& cache, TensorView k, TensorView v, TensorView slots) override {
    m_attention.store(cache, k, v, slots);
  }
  void pagedAttention(TensorView out, TensorView q, const KvLayerView& cache, const AttentionBatch& batch,
                      const AttentionParams& params) override {
    m_attention.run(out, q, cache, batch, params);
  }

  void gatedActivation(TensorView out, TensorView gate, TensorView up, Activation activation) override {
    eachRow(out.rows, out.cols * 4, [&](int64_t t) {
      m_operations.activate(out.row<float>(t), gate.row<float>(t), up.row<float>(t), out.cols, activation);
    });
  }
  void activate(TensorView x, Activation activation) override {
    eachRow(x.rows, x.cols * 4,
            [&](int64_t t) { m_operations.activate(x.row<float>(t), x.row<float>(t), nullptr, x.cols, activation); });
  }
  void add(TensorView x, TensorView delta) override {
    eachRow(x.rows, x.cols, [&](int64_t t) { m_operations.add(x.row<float>(t), delta.row<float>(t), x.cols); });
  }
  void scale(TensorView x, double factor) override {
    eachRow(x.rows, x.cols, [&](int64_t t) { m_operations.scale(x.row<float>(t), static_cast<float>(factor), x.cols); });
  }
  void softcap(TensorView x, double cap) override {
    eachRow(x.rows, x.cols * 8, [&](int64_t t) { m_operations.softcap(x.row<float>(t), static_cast<float>(cap), x.cols); });
  }
  void gatherRows(TensorView out, TensorView in, TensorView rows) override {
    eachRow(out.rows, out.cols, [&](int64_t t) {
      std::memcpy(out.row<float>(t), in.row<float>(rows.row<int32_t>(0)[t]), static_cast<size_t>(out.cols) * sizeof(float));
    });
  }
  Status sync() override { return {}; }

  void routeExperts(TensorView ids, TensorView weights, TensorView logits, const ExpertRouting& routing) override {
    m_experts.route(ids, weights, logits, routing);
  }
  void expertMlp(TensorView out, TensorView in, const ExpertLayer& experts, TensorView ids, TensorView weights,
                 TensorView scratch) override {
    m_experts.run(out, in, experts, ids, weights, scratch);
  }
  void gatedDeltaNet(TensorView out, TensorView qkv, TensorView z, TensorView betaAlpha, const LinearState& state,
                     const AttentionBatch& batch, const GatedDeltaNet& net) override {
    runDeltaNet({out, qkv, z, betaAlpha, state, batch, net}, m_pool);
  }
  void sigmoidGate(TensorView x, TensorView gate) override {
    const auto sigmoid = [](float u) { return 1.0f / (1.0f + std::exp(-u)); };
    eachRow(x.rows, x.cols * (gate.cols == 1 ? 1 : 8), [&](int64_t t) {
      float* to = x.row<float>(t);
      const float* by = gate.row<float>(t);
      if (gate.cols == 1) return m_operations.scale(to, sigmoid(by[0]), x.cols);
      for (int64_t i = 0; i < x.cols; ++i) to[i] *= sigmoid(by[i]);
    });
  }
  void rowSquareSum(TensorView squares, TensorView x) override {
    eachRow(x.rows, x.cols, [&](int64_t t) { *squares.row<float>(t) = static_cast<float>(squareSum(x.row<float>(t), x.cols)); });
  }
  void normBySquareSum(TensorView x, TensorView squares, int64_t width, const float* weight, double epsilon,
                       double offset) override {
    eachRow(x.rows, x.cols, [&](int64_t t) {
      float* to = x.row<float>(t);
      const auto factor =
          static_cast<float>(1.0 / std::sqrt(static_cast<double>(*squares.row<float>(t)) / static_cast<double>(width) + epsilon));
      for (int64_t i = 0; i < x.cols; ++i) to[i] = to[i] * factor * (weight[i] + static_cast<float>(offset));
    });
  }
  void scaleByPosition(TensorView x, TensorView positions, double floorScale, double scale) override {
    eachRow(x.rows, x.cols, [&](int64_t t) {
      const double steps = std::floor((positions.row<int32_t>(0)[t] + 1.0) / floorScale);
      m_operations.scale(x.row<float>(t), static_cast<float>(1.0 + scale * std::log1p(steps)), x.cols);
    });
  }
  void latentQueries(TensorView out, TensorView q, std::span<const WeightMatrix> keyUp, const LatentHeads& heads) override {
    const int64_t from = heads.nope + heads.rope, to = heads.rope + heads.latent;
    eachRow(out.rows, out.cols, [&](int64_t t) {
      for (size_t h = 0; h < keyUp.size(); ++h)
        std::copy_n(q.row<float>(t) + static_cast<int64_t>(h) * from + heads.nope, heads.rope,
                    out.row<float>(t) + static_cast<int64_t>(h) * to);
    });
    for (size_t h = 0; h < keyUp.size(); ++h) {
      const auto head = static_cast<int64_t>(h);
      const LinearTask task{out.columns(head * to + heads.rope, heads.latent), &keyUp[h], nullptr};
      m_linear.run(q.columns(head * from, heads.nope), std::span(&task, 1));
    }
  }
  void latentValues(TensorView out, TensorView in, std::span<const WeightMatrix> valueUp, const LatentHeads& heads) override {
    for (size_t h = 0; h < valueUp.size(); ++h) {
      const auto head = static_cast<int64_t>(h);
      const LinearTask task{out.columns(head * heads.value, heads.value), &valueUp[h], nullptr};
      m_linear.run(in.columns(head * heads.latent, heads.latent), std::span(&task, 1));
    }
  }

 private:
  static double squareSum(const float* x, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(x[i]) * x[i];
    return sum;
  }
  static void plainRmsNorm(float* x, int64_t count, double epsilon) {
    const auto factor = static_cast<float>(1.0 / std::sqrt(squareSum(x, count) / static_cast<double>(count) + epsilon));
    for (int64_t i = 0; i < count; ++i) x[i] *= factor;
  }

  // Rows [0, rows) in the caller's thread, or in parallel where there is enough to do.
  template <class Body>
  void eachRow(int64_t rows, int64_t workPerRow, const Body& body) {
    constexpr int64_t kWorthSharing = 32768;
    if (rows * workPerRow < kWorthSharing) {
      for (int64_t t = 0; t < rows; ++t) body(t);
      return;
    }
    const int64_t items = std::min<int64_t>(rows, m_pool.threads() * 4);
    m_pool.run(items, [&](int64_t item, int) {
      for (int64_t t = rows * item / items; t < rows * (item + 1) / items; ++t) body(t);
    });
  }

  const CpuBackendOptions m_options;
  CpuMemory m_memory;
  ThreadPool m_pool;
  CpuLinear m_linear;
  CpuAttention m_attention;
  const VectorOperations& m_operations;
  CpuExperts m_experts;
};

}  // namespace
}  // namespace cpu

std::unique_ptr<Backend> makeCpuBackend(const CpuBackendOptions& options) { return std::make_unique<cpu::CpuBackend>(options); }

}  // namespace headroom::engine
