// SPDX-License-Identifier: Apache-2.0
// Backend on one CUDA device: every operation is a launch in the rank's stream, and the host waits in sync() alone.
//
// Activations are F32 in the views, as everywhere; what large products and attention on tensor cores read is rounded to 16 bits
// in scratch memory (BF16; F16 below compute capability 8.0), once for all weights of a call. `exact` rounds nothing. See
// README.md for why.
#pragma once

#include "engine/device/cuda/cublaslt_gemm.h"
#include "engine/device/cuda/cuda_module.h"
#include "engine/device/cuda/device_memory.h"
#include "engine/device/cuda/kernels/expert_mlp.h"

#include <functional>
#include <optional>

namespace headroom::engine::cuda {

class CudaBackend final : public Backend {
 public:
  static Result<std::unique_ptr<CudaBackend>> make(const CudaBackendOptions& options);
  ~CudaBackend() override;

  cudaStream_t stream() const { return m_stream; }
  int device() const { return m_options.device; }
  // The first failure sticks until sync().
  void note(cudaError_t error, const char* doing);
  // Asked while sync() waits, and once it has waited: a failure ends the wait with it (a peer that died).
  void setWatch(std::function<Status()> watch) { m_watch = std::move(watch); }
  Scratch& peerScratch() { return m_peer; }
  // Lives until this backend's stream is gone: freeing memory waits for a device's streams, and one may hang.
  void keepUntilEnd(std::shared_ptr<const void> what) { m_kept.push_back(std::move(what)); }

  BackendInfo info() const override;
  Result<DeviceBuffer> allocate(Bytes size, std::string_view purpose) override;
  void release(void* data, Bytes size) noexcept override { m_arena.release(data, size); }
  Bytes allocatedBytes() const override { return m_arena.allocated(); }
  void workIn(void* memory, Bytes size) override { m_work.setPlanned(memory, size); }
  void copyToDevice(void* to, const void* from, Bytes size) override;
  void copyToHost(void* to, const void* from, Bytes size) override;
  void copyRowsToDevice(TensorView to, const void* from) override;
  const void* hostAddress(const void*) const override { return nullptr; }

  Result<WeightMatrix> makeMatrix(DType dtype, int64_t out, int64_t in, std::string_view purpose) override;
  void writeRows(WeightMatrix& matrix, int64_t firstRow, int64_t rows, DType dtype, const void* data) override;
  void finishMatrix(WeightMatrix& matrix) override;

  void embed(TensorView out, const WeightMatrix& table, TensorView ids, int64_t firstId) override;
  void linear(TensorView in, std::span<const LinearTask> tasks) override;
  void rmsNorm(TensorView out, TensorView in, const float* weight, double epsilon, double offset) override;
  void layerNorm(TensorView out, TensorView in, const float* weight, const float* bias, double epsilon) override;
  void addRmsNorm(TensorView out, TensorView residual, TensorView delta, const float* weight, double epsilon,
                  double offset) override;
  void headRmsNorm(TensorView x, int64_t headDim, const float* weight, double epsilon, double offset) override;
  void ropeAngles(TensorView cosSin, TensorView positions, const double* inverseFrequencies, double factor) override;
  void applyRope(TensorView x, int64_t headDim, TensorView cosSin, RopeStyle style) override;
  void storeKv(const KvLayerView& cache, TensorView k, TensorView v, TensorView slots) override;
  void rotateAndStoreKv(const KvLayerView& cache, const HeadsOfStep& heads) override;
  void pagedAttention(TensorView out, TensorView q, const KvLayerView& cache, const AttentionBatch& batch,
                      const AttentionParams& params) override;
  void gatedActivation(TensorView out, TensorView gate, TensorView up, Activation activation) override;
  void activate(TensorView x, Activation activation) override;
  void add(TensorView x, TensorView delta) override;
  void scale(TensorView x, double factor) override;
  void softcap(TensorView x, double cap) override;
  void gatherRows(TensorView out, TensorView in, TensorView rows) override;
  void sigmoidGate(TensorView x, TensorView gate) override;
  void rowSquareSum(TensorView squares, TensorView x) override;
  void normBySquareSum(TensorView x, TensorView squares, int64_t width, const float* weight, double epsilon,
                       double offset) override;
  void scaleByPosition(TensorView x, TensorView positions, double floorScale, double scale) override;
  void routeExperts(TensorView ids, TensorView weights, TensorView logits, const ExpertRouting& routing) override;
  void expertMlp(TensorView out, TensorView in, const ExpertLayer& experts, TensorView ids, TensorView weights,
                 TensorView scratch) override;
  void latentQueries(TensorView out, TensorView q, std::span<const WeightMatrix> keyUp, const LatentHeads& heads) override;
  void latentValues(TensorView out, TensorView in, std::span<const WeightMatrix> valueUp, const LatentHeads& heads) override;
  void gatedDeltaNet(TensorView out, TensorView qkv, TensorView z, TensorView betaAlpha, const LinearState& state,
                     const AttentionBatch& batch, const GatedDeltaNet& net) override;
  Status sync() override;
  bool records() const override { return true; }
  Result<int> record(const std::function<Status()>& launch) override;
  bool replay(int recording) override;
  Bytes recordedBytes() const override { return m_recordedBytes; }
  bool samples() const override { return true; }
  void sampleRows(TensorView ids, TensorView logits, std::span<const RowSampling> rows) override;

 private:
  explicit CudaBackend(const CudaBackendOptions& options);
  Status open();
  // `view` rounded to `type` in scratch, rows without gaps; a null view after a failure.
  TensorView rounded(TensorView view, DType type);
  TensorView scratchView(DType type, int64_t rows, int64_t columns);
  // Of the operation that has begun with m_work.begin(); null after a failure.
  void* bytes(int64_t size);
  // A copy in such memory; null after a failure.
  template <class T>
  const void* uploaded(std::span<const T> values) {
    void* memory = bytes(static_cast<int64_t>(values.size_bytes()));
    if (memory) copyToDevice(memory, values.data(), Bytes(static_cast<int64_t>(values.size_bytes())));
    return memory;
  }
  template <class T>
  const void* uploaded(const std::vector<T>& values) {
    return uploaded(std::span<const T>(values));
  }
  void linearDense(TensorView in, const LinearTask& task);
  void linearPacked(TensorView in, std::span<const LinearTask> tasks);
  void multiply(TensorView out, TensorView in, const void* weight, const float* bias);
  // The addresses of the matrices, in device memory; made once for each list.
  const uint8_t* const* addressesOf(std::span<const WeightMatrix> matrices);
  ExpertMatrices expertMatrices(std::span<const WeightMatrix> matrices, const float* bias);
  void expertRows(TensorView out, TensorView in, const ExpertLayer& experts, TensorView ids, TensorView weights);
  bool headsAtOnce(TensorView out, int64_t outHead, TensorView in, int64_t inHead, std::span<const WeightMatrix> matrices);
  bool computesIn(DType type) const { return type == DType::F16 || (type == DType::BF16 && m_capability >= 80); }
  DType roundedType() const { return m_capability >= 80 ? DType::BF16 : DType::F16; }

  std::vector<std::shared_ptr<const void>> m_kept;  // first, so that it goes last
  const CudaBackendOptions m_options;
  std::string m_name;
  int m_capability = 0, m_multiprocessors = 1;
  int64_t m_sharedBytes = 0;
  cudaStream_t m_stream = nullptr;
  Arena m_arena;
  StagingRing m_staging;
  WorkArea m_work;
  Scratch m_peer;
  int64_t moves() const { return m_work.moves() + m_peer.moves(); }
  struct Recording {
    cudaGraphExec_t graph = nullptr;
    int64_t moves = 0;  // of the memory that it uses, when it was made
  };
  std::vector<Recording> m_recordings;
  Bytes m_recordedBytes;
  bool m_isRecording = false;
  std::map<std::pair<const WeightMatrix*, size_t>, DeviceBuffer> m_addresses;
  std::optional<CublasLtGemm> m_gemm;
  std::function<Status()> m_watch;
  std::optional<Error> m_failure;
  // Copies to the host that sync() finishes: through pinned memory, so that the stream is not waited for before.
  struct Download {
    void* to;
    int64_t at, size;
  };
  std::vector<Download> m_downloads;
  char* m_pinned = nullptr;
  int64_t m_pinnedSize = 0, m_pinnedUsed = 0;
};

}  // namespace headroom::engine::cuda
