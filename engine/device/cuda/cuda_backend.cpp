// SPDX-License-Identifier: Apache-2.0
#include "engine/device/cuda/cuda_backend.h"

#include "core/memory/cuda_types.h"
#include "engine/device/cuda/kernels/attention.h"
#include "engine/device/cuda/kernels/delta_net.h"
#include "engine/device/cuda/kernels/elementwise.h"
#include "engine/device/cuda/kernels/moe.h"
#include "engine/device/cuda/kernels/norms.h"
#include "engine/device/cuda/kernels/rope_kv.h"
#include "engine/device/cuda/kernels/sampling.h"
#include "engine/device/matrix_storage.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

namespace headroom::engine::cuda {
namespace {

using Clock = std::chrono::steady_clock;

std::optional<WeightFormat> packedFormat(DType dtype) {
  switch (dtype) {
    case DType::Q8_0:
      return WeightFormat::Q8_0;
    case DType::Q4_0:
      return WeightFormat::Q4_0;
    case DType::Q4_1:
      return WeightFormat::Q4_1;
    case DType::Q5_0:
      return WeightFormat::Q5_0;
    case DType::Q5_1:
      return WeightFormat::Q5_1;
    case DType::Q2_K:
      return WeightFormat::Q2_K;
    case DType::Q3_K:
      return WeightFormat::Q3_K;
    case DType::Q4_K:
      return WeightFormat::Q4_K;
    case DType::Q5_K:
      return WeightFormat::Q5_K;
    case DType::Q6_K:
      return WeightFormat::Q6_K;
    case DType::IQ4_NL:
      return WeightFormat::IQ4_NL;
    case DType::IQ4_XS:
      return WeightFormat::IQ4_XS;
    case DType::MXFP4:
      return WeightFormat::MXFP4;
    case DType::IQ1_S:
      return WeightFormat::IQ1_S;
    case DType::IQ1_M:
      return WeightFormat::IQ1_M;
    case DType::IQ2_XXS:
      return WeightFormat::IQ2_XXS;
    case DType::IQ2_XS:
      return WeightFormat::IQ2_XS;
    case DType::IQ2_S:
      return WeightFormat::IQ2_S;
    case DType::IQ3_XXS:
      return WeightFormat::IQ3_XXS;
    case DType::IQ3_S:
      return WeightFormat::IQ3_S;
    case DType::TQ1_0:
      return WeightFormat::TQ1_0;
    case DType::TQ2_0:
      return WeightFormat::TQ2_0;
    default:
      return {};
  }
}

KernelActivation kernelActivation(Activation activation) {
  switch (activation) {
    case Activation::Silu:
      return KernelActivation::Silu;
    case Activation::Gelu:
      return KernelActivation::Gelu;
    case Activation::GeluTanh:
      return KernelActivation::GeluTanh;
    case Activation::Relu2:
      return KernelActivation::Relu2;
  }
  return KernelActivation::Silu;
}

KvCache kernelCache(const KvLayerView& view) {
  return {view.data, view.dtype, view.blockTokens, view.kvHeads, view.headDim, view.valuesInKeys ? 0 : view.vHeadDim};
}

PackedWeight packedWeight(const WeightMatrix& matrix) {
  PackedWeight weight;
  weight.format = *packedFormat(matrix.dtype);
  weight.out = matrix.out;
  weight.in = matrix.in;
  weight.data = static_cast<const uint8_t*>(matrix.storage.data());
  return weight;
}

bool isPlain(DType dtype) { return dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16; }

}  // namespace

CudaBackend::CudaBackend(const CudaBackendOptions& options)
    : m_options(options),
      m_arena(options.device, options.arena),
      m_staging(options.device),
      m_work(options.device),
      m_peer(options.device) {}

CudaBackend::~CudaBackend() {
  cudaSetDevice(m_options.device);
  m_addresses.clear();
  for (const Recording& recording : m_recordings)
    if (recording.graph) cudaGraphExecDestroy(recording.graph);
  m_gemm.reset();
  if (m_stream) cudaStreamDestroy(m_stream);
  if (m_pinned) cudaFreeHost(m_pinned);
}

Result<std::unique_ptr<CudaBackend>> CudaBackend::make(const CudaBackendOptions& options) {
  std::unique_ptr<CudaBackend> backend(new CudaBackend(options));
  if (Status status = backend->open(); !status) return tl::unexpected(status.error());
  return backend;
}

Status CudaBackend::open() {
  const int device = m_options.device;
  if (Status status = useDevice(device); !status) return status;
  cudaDeviceProp properties{};
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, device))
    return tl::unexpected(cudaFailure(device, "reading the device's properties", error));
  m_name = properties.name;
  m_capability = properties.major * 10 + properties.minor;
  if (m_capability < 70)
    return failure(fmt::format("cuda:{}", device),
                   fmt::format("{} of compute capability {}.{}", m_name, properties.major, properties.minor), "7.0 or above",
                   "use another device, or --device cpu");
  m_multiprocessors = properties.multiProcessorCount;
  int sharedBytes = 48 << 10;
  cudaDeviceGetAttribute(&sharedBytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  m_sharedBytes = sharedBytes;
  if (const cudaError_t error = cudaStreamCreateWithFlags(&m_stream, cudaStreamNonBlocking))
    return tl::unexpected(cudaFailure(device, "opening a stream", error));
  m_gemm.emplace(device);
  return {};
}

BackendInfo CudaBackend::info() const {
  return {"cuda", fmt::format("{}, compute capability {}.{}", m_name, m_capability / 10, m_capability % 10), m_options.device};
}

void CudaBackend::note(cudaError_t error, const char* doing) {
  if (error != cudaSuccess && !m_failure) m_failure = cudaFailure(m_options.device, doing, error);
}

// ---- memory

Result<DeviceBuffer> CudaBackend::allocate(Bytes size, std::string_view purpose) {
  Result<void*> data = m_arena.allocate(size, purpose);
  if (!data) return tl::unexpected(std::move(data.error()));
  return DeviceBuffer(this, *data, size);
}

void CudaBackend::copyToDevice(void* to, const void* from, Bytes size) {
  expects(!m_isRecording, "a recorded step copies from the host");
  if (size > Bytes(0)) note(m_staging.copyToDevice(to, from, size.count(), m_stream), "copying to the device");
}

void CudaBackend::copyRowsToDevice(TensorView to, const void* from) {
  expects(!m_isRecording, "a recorded step copies from the host");
  note(m_staging.copyRowsToDevice(to.data, storageBytes(to.dtype, to.stride).count(), from,
                                  storageBytes(to.dtype, to.cols).count(), to.rows, m_stream),
       "copying to the device");
}

void CudaBackend::copyToHost(void* to, const void* from, Bytes size) {
  expects(!m_isRecording, "a recorded step copies to the host");
  const int64_t padded = roundUp(size.count(), int64_t{64});
  if (size == Bytes(0)) return;
  if (m_pinnedUsed + padded > m_pinnedSize) {
    if (Status status = sync(); !status) {
      m_failure = status.error();
      return;
    }
    if (padded > m_pinnedSize) {
      void* memory = nullptr;
      const int64_t bytes = std::max(padded, int64_t{64} << 10);
      if (const cudaError_t error = cudaHostAlloc(&memory, static_cast<size_t>(bytes), cudaHostAllocPortable))
        return note(error, "taking pinned memory");
      if (m_pinned) cudaFreeHost(m_pinned);
      m_pinned = static_cast<char*>(memory);
      m_pinnedSize = bytes;
    }
  }
  note(cudaMemcpyAsync(m_pinned + m_pinnedUsed, from, static_cast<size_t>(size.count()), cudaMemcpyDeviceToHost, m_stream),
       "copying to the host");
  m_downloads.push_back({to, m_pinnedUsed, size.count()});
  m_pinnedUsed += padded;
}

void* CudaBackend::bytes(int64_t size) {
  cudaError_t error = cudaSuccess;
  void* memory = m_work.take(size, error);
  note(error, "taking memory to work in");
  return memory;
}

TensorView CudaBackend::scratchView(DType type, int64_t rows, int64_t columns) {
  // Rows begin on 16 bytes, as tensor-core kernels and cuBLASLt want them.
  const int64_t stride = roundUp(columns, 16 / storageBytes(type, 1).count());
  TensorView view = TensorView::of(bytes(storageBytes(type, rows * stride).count()), type, rows, columns);
  view.stride = stride;
  return view;
}

TensorView CudaBackend::rounded(TensorView view, DType type) {
  const TensorView to = scratchView(type, view.rows, view.cols);
  if (to.data) cuda::convert(m_stream, to, view);
  return to;
}

Status CudaBackend::sync() {
  if (m_isRecording)
    return failure(fmt::format("cuda:{}", m_options.device), "a wait for the device while a step is recorded", "launches alone");
  const auto begun = Clock::now();
  cudaError_t error = cudaGetLastError();
  note(error, "launching operations");
  for (int turn = 0; !m_failure; ++turn) {
    error = cudaStreamQuery(m_stream);
    if (error == cudaSuccess) break;
    if (error != cudaErrorNotReady) {
      note(error, "waiting for the device");
      break;
    }
    if (turn % 64 == 63) {
      if (m_watch) {
        if (Status status = m_watch(); !status) {
          m_failure = status.error();
          break;
        }
      }
      const double waited = std::chrono::duration<double>(Clock::now() - begun).count();
      if (m_options.timeoutSeconds > 0 && waited > m_options.timeoutSeconds) {
        m_failure = Error{fmt::format("cuda:{}", m_options.device),
                          fmt::format("no end of its work after {:.0f} s", waited),
                          {},
                          "look for a hung peer or device (nvidia-smi); a longer wait: HEADROOM_CUDA_TIMEOUT"};
        break;
      }
      if (waited > 200e-6) std::this_thread::sleep_for(std::chrono::microseconds(waited > 0.01 ? 500 : 20));
    }
  }
  if (m_watch && !m_failure) {  // what a peer's fate has made of this work
    if (Status status = m_watch(); !status) m_failure = status.error();
  }
  for (const Download& download : m_downloads)
    if (!m_failure) std::memcpy(download.to, m_pinned + download.at, static_cast<size_t>(download.size));
  m_downloads.clear();
  m_pinnedUsed = 0;
  if (!m_failure) {
    m_work.collect();
    m_peer.collect();
    return {};
  }
  Error failure = std::move(*m_failure);
  m_failure.reset();
  return tl::unexpected(std::move(failure));
}

// ---- weights

Result<WeightMatrix> CudaBackend::makeMatrix(DType dtype, int64_t out, int64_t in, std::string_view purpose) {
  if (!cudaHolds(dtype))
    return failure(std::string(purpose), fmt::format("element type {}", dtypeName(dtype)), kCudaTypes,
                   "--device cpu may read it");
  return allocateMatrix(*this, dtype, out, in, purpose);
}

void CudaBackend::writeRows(WeightMatrix& matrix, int64_t firstRow, int64_t rows, DType dtype, const void* data) {
  expects(firstRow >= 0 && rows >= 0 && firstRow + rows <= matrix.out, "rows outside the matrix were written");
  expects(dtype == matrix.dtype || (isFloating(dtype) && isFloating(matrix.dtype)),
          "rows of another element type than the matrix were written");
  const Bytes rowBytes = storageBytes(matrix.dtype, matrix.in), storedRow = storageBytes(dtype, matrix.in);
  if (isPlain(matrix.dtype) && dtype == matrix.dtype) {
    copyToDevice(static_cast<char*>(matrix.storage.data()) + (rowBytes * firstRow).count(), data, rowBytes * rows);
    return;
  }
  // Packed or converted on the device, a few MiB at a time.
  std::vector<float> floats;
  const int64_t most = std::max<int64_t>(1, kCudaLoad.count() / std::max<int64_t>(storedRow.count(), 4 * matrix.in));
  for (int64_t row = 0; row < rows; row += most) {
    const int64_t count = std::min(most, rows - row);
    const void* from = static_cast<const char*>(data) + (storedRow * row).count();
    DType fromType = dtype;
    if (dtype == DType::F64) {
      floats.resize(static_cast<size_t>(count * matrix.in));
      std::copy_n(static_cast<const double*>(from), floats.size(), floats.begin());
      from = floats.data();
      fromType = DType::F32;
    }
    const Bytes size = storageBytes(fromType, matrix.in) * count;
    m_work.begin();
    void* staged = bytes(size.count());
    if (!staged) return;
    copyToDevice(staged, from, size);
    if (packedFormat(matrix.dtype)) {
      cuda::packRows(m_stream, packedWeight(matrix), firstRow + row, count, staged);
    } else {
      void* to = static_cast<char*>(matrix.storage.data()) + (rowBytes * (firstRow + row)).count();
      cuda::convert(m_stream, TensorView::of(to, matrix.dtype, count, matrix.in),
                    TensorView::of(staged, fromType, count, matrix.in));
    }
  }
}

void CudaBackend::finishMatrix(WeightMatrix&) {}

// ---- linear layers

void CudaBackend::embed(TensorView out, const WeightMatrix& table, TensorView ids, int64_t firstId) {
  if (packedFormat(table.dtype)) return cuda::embedPacked(m_stream, out, packedWeight(table), ids, firstId);
  cuda::embed(m_stream, out, TensorView::of(table.storage.data(), table.dtype, table.out, table.in), ids, firstId);
}

void CudaBackend::multiply(TensorView out, TensorView in, const void* weight, const float* bias) {
  void* workspace = bytes(CublasLtGemm::workspaceBytes(out));
  if (!workspace || m_failure) return;
  if (Status status = m_gemm->multiply(out, in, weight, workspace, m_stream); !status) {
    m_failure = status.error();
    return;
  }
  if (bias) cuda::addBias(m_stream, out, bias);
}

void CudaBackend::linear(TensorView in, std::span<const LinearTask> tasks) {
  if (in.rows == 0) return;
  std::vector<LinearTask> packed;
  DType roundedTo = DType::F32;
  TensorView input = in;
  m_work.begin();
  int64_t behindInput = 0;
  for (const LinearTask& task : tasks) {
    if (task.weight->out == 0) continue;
    if (packedFormat(task.weight->dtype)) {
      packed.push_back(task);
      continue;
    }
    const DType wanted = !m_options.exact && computesIn(task.weight->dtype) ? task.weight->dtype : DType::F32;
    if (wanted != roundedTo) {
      m_work.begin();
      input = wanted == DType::F32 ? in : rounded(in, wanted);
      roundedTo = wanted;
      behindInput = m_work.used();
    }
    if (!input.data) return;
    m_work.rewind(behindInput);
    linearDense(input, task);
  }
  if (!packed.empty()) linearPacked(in, packed);
}

void CudaBackend::linearDense(TensorView in, const LinearTask& task) {
  const WeightMatrix& weight = *task.weight;
  const int64_t aligned = 16 / storageBytes(in.dtype, 1).count();
  const bool large = in.rows > kCudaSmallTokens && weight.dtype == in.dtype && weight.in % aligned == 0 &&
                     in.stride % aligned == 0 && task.out.stride % 4 == 0;
  if (large) return multiply(task.out, in, weight.storage.data(), task.bias);
  LinearOptions options;
  options.tensorCores = in.dtype != DType::F32;
  options.multiprocessors = m_multiprocessors;
  const DenseTask dense{task.out, {weight.storage.data(), weight.dtype, weight.out, weight.in}, task.bias};
  cuda::denseLinear(m_stream, in, std::span(&dense, 1), options);
}

void CudaBackend::linearPacked(TensorView in, std::span<const LinearTask> tasks) {
  const DType type = m_options.exact ? DType::F32 : roundedType();
  m_work.begin();
  const TensorView input = type == DType::F32 ? in : rounded(in, type);
  const int64_t behindInput = m_work.used();
  if (!input.data) return;
  // Codebooks are read by the kernel for few tokens alone.
  const auto isCodebook = [](const LinearTask& task) { return hasCodebook(*packedFormat(task.weight->dtype)); };
  const bool unpacks =
      in.rows > kCudaUnpackTokens || (in.rows > kCudaSmallTokens && std::any_of(tasks.begin(), tasks.end(), isCodebook));
  if (unpacks && type != DType::F32 && in.cols % 8 == 0) {
    for (const LinearTask& task : tasks) {
      // Whole matrices are unpacked in parts that fit the scratch, each multiplied at once.
      const WeightMatrix& weight = *task.weight;
      const int64_t part = std::max<int64_t>(64, kCudaUnpack.count() / (2 * weight.in) / 64 * 64);
      for (int64_t row = 0; row < weight.out; row += part) {
        const int64_t count = std::min(part, weight.out - row);
        m_work.rewind(behindInput);
        const TensorView unpacked = scratchView(type, count, weight.in);
        if (!unpacked.data) return;
        cuda::dequantizeRows(m_stream, unpacked, packedWeight(weight), row);
        multiply(task.out.columns(row, count), input, unpacked.data, task.bias ? task.bias + row : nullptr);
      }
    }
    return;
  }
  std::vector<PackedTask> packed;
  int64_t workspace = 0;
  for (const LinearTask& task : tasks) {
    packed.push_back({task.out, packedWeight(*task.weight), task.bias});
    workspace = std::max(workspace, linearWorkspaceBytes(in.rows, task.weight->out));
  }
  LinearOptions options;
  options.tensorCores = type != DType::F32;
  options.multiprocessors = m_multiprocessors;
  // What the kernel for many tokens adds up in.
  if (!options.tensorCores || in.rows <= kCudaSmallTokens) workspace = 0;
  workspace = std::min(workspace, kCudaPartialSums.count());
  options.workspace = workspace > 0 ? bytes(workspace) : nullptr;
  options.workspaceBytes = options.workspace ? workspace : 0;
  cuda::packedLinear(m_stream, input, packed, options);
}

// ---- attention

void CudaBackend::storeKv(const KvLayerView& cache, TensorView k, TensorView v, TensorView slots) {
  cuda::storeKv(m_stream, kernelCache(cache), k, v, slots);
}

void CudaBackend::rotateAndStoreKv(const KvLayerView& cache, const HeadsOfStep& heads) {
  RopeStore task;
  task.q = heads.q;
  task.k = heads.k;
  task.v = heads.v;
  task.qNorm = heads.qNorm;
  task.kNorm = heads.kNorm;
  task.epsilon = heads.epsilon;
  task.offset = heads.offset;
  task.cosSin = heads.cosSin;
  task.style = heads.style == RopeStyle::Neox ? KernelRope::Neox : KernelRope::Interleaved;
  task.cache = kernelCache(cache);
  task.slots = heads.slots;
  cuda::ropeAndStoreKv(m_stream, task);
}

void CudaBackend::pagedAttention(TensorView out, TensorView q, const KvLayerView& cache, const AttentionBatch& batch,
                                 const AttentionParams& params) {
  if (q.rows == 0 || q.cols == 0) return;
  AttentionCall call;
  call.cache = kernelCache(cache);
  if (cache.valuesInKeys) call.cache.vHeadDim = cache.vHeadDim;
  call.valuesInKeys = cache.valuesInKeys;
  call.out = out;
  call.q = q;
  call.sequences = batch.sequences;
  call.sequenceStart = batch.sequenceStart.row<int>(0);
  call.contextLength = batch.contextLength.row<int>(0);
  call.blockTable = batch.blockTable.row<int>(0);
  call.blockTableStride = batch.blockTable.stride;
  call.scale = params.scale;
  call.softcap = params.softcap;
  call.window = params.window;
  call.chunkedWindow = params.chunkedWindow;
  call.qHeads = params.qHeads;
  call.qHeadBegin = params.qHeadBegin;
  call.kvHeadBegin = params.kvHeadBegin;
  call.groupSize = params.groupSize;
  call.sinks = params.sinks;
  const bool eightBits = cache.dtype == DType::F8E4M3 || cache.dtype == DType::F8E5M2;
  const DType type = eightBits ? roundedType() : cache.dtype;
  m_work.begin();
  const bool rounds = !m_options.exact && computesIn(type) && cache.headDim % 16 == 0 && cache.vHeadDim % 16 == 0;
  if (rounds) {
    call.q = rounded(q, type);
    call.out = scratchView(type, out.rows, out.cols);
    if (!call.q.data || !call.out.data) return;
  }
  const int64_t bytesOfPart = attentionWorkspaceBytes(q.rows, params.qHeads, cache.vHeadDim, 2) / 2;
  call.splits = static_cast<int>(
      std::clamp<int64_t>(kCudaAttentionParts.count() / bytesOfPart, 1, attentionSplits(call, m_multiprocessors)));
  if (call.splits > 1) {
    call.workspace = bytes(attentionWorkspaceBytes(q.rows, params.qHeads, cache.vHeadDim, call.splits));
    if (!call.workspace) return;
  }
  cuda::pagedAttention(m_stream, call, m_sharedBytes, rounds);
  if (rounds) cuda::convert(m_stream, out, call.out);
}

// ---- experts and latent heads

const uint8_t* const* CudaBackend::addressesOf(std::span<const WeightMatrix> matrices) {
  const std::pair key(matrices.data(), matrices.size());
  auto found = m_addresses.find(key);
  if (found == m_addresses.end()) {
    std::vector<const void*> addresses;
    for (const WeightMatrix& matrix : matrices) addresses.push_back(matrix.storage.data());
    const Bytes size(static_cast<int64_t>(addresses.size() * sizeof(void*)));
    Result<DeviceBuffer> memory = allocate(size, "the addresses of matrices");
    if (!memory) {
      if (!m_failure) m_failure = memory.error();
      return nullptr;
    }
    copyToDevice(memory->data(), addresses.data(), size);
    found = m_addresses.emplace(key, std::move(*memory)).first;
  }
  return static_cast<const uint8_t* const*>(found->second.data());
}

ExpertMatrices CudaBackend::expertMatrices(std::span<const WeightMatrix> matrices, const float* bias) {
  const WeightMatrix& first = matrices.front();
  ExpertMatrices experts;
  experts.packed = packedFormat(first.dtype).has_value();
  if (experts.packed) {
    experts.packedShape = packedWeight(first);
    experts.packedShape.data = nullptr;
  } else {
    experts.denseShape = {nullptr, first.dtype, first.out, first.in};
  }
  experts.data = addressesOf(matrices);
  experts.bias = bias;
  if (!m_options.exact) experts.product = experts.packed ? roundedType() : computesIn(first.dtype) ? first.dtype : DType::F32;
  return experts;
}

void CudaBackend::routeExperts(TensorView ids, TensorView weights, TensorView logits, const ExpertRouting& routing) {
  RoutingRule rule;
  rule.sigmoid = routing.scoring == RouterScoring::Sigmoid;
  rule.choiceBias = routing.choiceBias;
  rule.groups = static_cast<int>(routing.groups);
  rule.groupsPerToken = static_cast<int>(routing.groupsPerToken);
  rule.groupByTopTwo = routing.groupByTopTwo;
  rule.normalize = routing.normalize;
  rule.scale = static_cast<float>(routing.scale);
  cuda::routeExperts(m_stream, ids, weights, logits, rule);
}

void CudaBackend::expertMlp(TensorView out, TensorView in, const ExpertLayer& experts, TensorView ids, TensorView weights,
                            TensorView) {
  // Rounds bound the scratch; a decode step is one round.
  constexpr int64_t kRound = kCudaExpertTokens;
  auto rows = [](TensorView view, int64_t first, int64_t count) {
    TensorView part = view;
    part.data = static_cast<char*>(view.data) + (storageBytes(view.dtype, 1) * (first * view.stride)).count();
    part.rows = count;
    return part;
  };
  for (int64_t first = 0; first < in.rows; first += kRound) {
    const int64_t count = std::min(kRound, in.rows - first);
    expertRows(rows(out, first, count), rows(in, first, count), experts, rows(ids, first, count), rows(weights, first, count));
  }
}

void CudaBackend::expertRows(TensorView out, TensorView in, const ExpertLayer& experts, TensorView ids, TensorView weights) {
  if (experts.up.empty() || experts.up.front().out == 0) {  // this rank has no columns of them
    if (!experts.addToOut) cuda::scale(m_stream, out, 0.0);
    return;
  }
  ExpertMlp task;
  task.out = out;
  task.in = in;
  task.ids = ids;
  task.weights = weights;
  task.experts = static_cast<int>(experts.up.size());
  task.columns = experts.up.front().out;
  task.gate = expertMatrices(experts.gate, experts.gateBias);
  task.up = expertMatrices(experts.up, experts.upBias);
  task.down = expertMatrices(experts.down, experts.downBias);
  task.activation = kernelActivation(experts.activation);
  task.swigluLimit = experts.swigluLimit;
  task.weightsOnInput = experts.weightsOnInput;
  task.addToOut = experts.addToOut;
  m_work.begin();
  task.scratch = bytes(expertMlpBytes(ids.rows, ids.cols, task.experts, in.cols, task.columns, in.dtype));
  if (!task.scratch || m_failure) return;
  LinearOptions options;
  options.multiprocessors = m_multiprocessors;
  cuda::expertMlp(m_stream, task, options);
}

// One launch for all heads where the matrices are plain and the tokens few; else a product a head.
bool CudaBackend::headsAtOnce(TensorView out, int64_t outHead, TensorView in, int64_t inHead,
                              std::span<const WeightMatrix> matrices) {
  const WeightMatrix& first = matrices.front();
  if (packedFormat(first.dtype) || in.rows > kCudaSmallTokens) return false;
  m_work.begin();
  const DType type = !m_options.exact && computesIn(first.dtype) ? first.dtype : DType::F32;
  HeadLinear task;
  task.out = out;
  task.in = type == DType::F32 ? in : rounded(in, type);
  task.outHead = outHead;
  task.inHead = inHead;
  task.heads = static_cast<int64_t>(matrices.size());
  task.weights = addressesOf(matrices);
  task.shape = {nullptr, first.dtype, first.out, first.in};
  if (task.in.data && task.weights) cuda::headLinear(m_stream, task, type != DType::F32);
  return true;
}

void CudaBackend::latentQueries(TensorView out, TensorView q, std::span<const WeightMatrix> keyUp, const LatentHeads& heads) {
  if (keyUp.empty() || q.rows == 0) return;
  const int64_t from = heads.nope + heads.rope, to = heads.rope + heads.latent, count = static_cast<int64_t>(keyUp.size());
  cuda::copyHeads(m_stream, out, to, q.columns(heads.nope, q.cols - heads.nope), from, count, heads.rope);
  if (headsAtOnce(out.columns(heads.rope, out.cols - heads.rope), to, q, from, keyUp)) return;
  for (int64_t h = 0; h < count; ++h) {
    const LinearTask task{out.columns(h * to + heads.rope, heads.latent), &keyUp[static_cast<size_t>(h)], nullptr};
    linear(q.columns(h * from, heads.nope), std::span(&task, 1));
  }
}

void CudaBackend::latentValues(TensorView out, TensorView in, std::span<const WeightMatrix> valueUp, const LatentHeads& heads) {
  if (valueUp.empty() || in.rows == 0) return;
  if (headsAtOnce(out, heads.value, in, heads.latent, valueUp)) return;
  for (int64_t h = 0; h < static_cast<int64_t>(valueUp.size()); ++h) {
    const LinearTask task{out.columns(h * heads.value, heads.value), &valueUp[static_cast<size_t>(h)], nullptr};
    linear(in.columns(h * heads.latent, heads.latent), std::span(&task, 1));
  }
}

void CudaBackend::gatedDeltaNet(TensorView out, TensorView qkv, TensorView z, TensorView betaAlpha, const LinearState& state,
                                const AttentionBatch& batch, const GatedDeltaNet& net) {
  if (out.rows == 0 || net.valueHeads == 0) return;
  DeltaNet task;
  task.out = out;
  task.qkv = qkv;
  task.z = z;
  task.betaAlpha = betaAlpha;
  task.state = static_cast<float*>(state.data);
  task.sequences = batch.sequences;
  task.sequenceStart = batch.sequenceStart.row<int>(0);
  task.contextLength = batch.contextLength.row<int>(0);
  task.stateSlots = batch.stateSlots.row<int>(0);
  task.keyHeads = net.keyHeads;
  task.valueHeads = net.valueHeads;
  task.keyDim = net.keyDim;
  task.valueDim = net.valueDim;
  task.kernel = net.kernel;
  task.convolution = net.convolution;
  task.timeBias = net.timeBias;
  task.decay = net.decay;
  task.norm = net.norm;
  task.epsilon = net.epsilon;
  m_work.begin();
  task.scratch = bytes(deltaNetBytes(out.rows, net.channels()));
  if (task.scratch) cuda::gatedDeltaNet(m_stream, task);
}

// ---- recorded steps

Result<int> CudaBackend::record(const std::function<Status()>& launch) {
  const auto problem = [this](const char* doing, cudaError_t error) {
    cudaGetLastError();
    Error found = cudaFailure(m_options.device, doing, error);
    found.next = "--enforce-eager runs without CUDA graphs";
    return tl::unexpected<Error>(std::move(found));
  };
  if (Status idle = sync(); !idle) return tl::unexpected(idle.error());
  cudaSetDevice(m_options.device);  // cudaMemGetInfo is of the thread's
  size_t before = 0, after = 0, total = 0;
  cudaMemGetInfo(&before, &total);
  // Other ranks' threads may take memory meanwhile.
  if (const cudaError_t error = cudaStreamBeginCapture(m_stream, cudaStreamCaptureModeThreadLocal))
    return problem("beginning to record a step", error);
  m_isRecording = true;
  Status status;
  cudaGraph_t graph = nullptr;
  try {
    status = launch();
  } catch (...) {
    m_isRecording = false;
    cudaStreamEndCapture(m_stream, &graph);
    if (graph) cudaGraphDestroy(graph);
    throw;
  }
  m_isRecording = false;
  note(cudaGetLastError(), "recording a step");
  cudaError_t error = cudaStreamEndCapture(m_stream, &graph);
  if (status && m_failure) status = tl::unexpected<Error>(*std::exchange(m_failure, {}));
  m_failure.reset();
  Recording recording;
  if (status && !error) error = cudaGraphInstantiate(&recording.graph, graph, 0);
  if (graph) cudaGraphDestroy(graph);
  if (!status) return tl::unexpected(status.error());
  if (error) return problem("recording a step", error);
  if (const cudaError_t uploaded = cudaGraphUpload(recording.graph, m_stream))
    return problem("placing a recorded step", uploaded);
  if (status = sync(); !status) return tl::unexpected(status.error());
  if (cudaMemGetInfo(&after, &total) == cudaSuccess && after < before)
    m_recordedBytes += Bytes(static_cast<int64_t>(before - after));
  recording.moves = moves();
  m_recordings.push_back(recording);
  return static_cast<int>(m_recordings.size()) - 1;
}

bool CudaBackend::replay(int number) {
  Recording& recording = m_recordings.at(static_cast<size_t>(number));
  if (moves() != recording.moves) {
    if (cudaGraphExec_t graph = std::exchange(recording.graph, nullptr)) cudaGraphExecDestroy(graph);
    return false;
  }
  note(cudaGraphLaunch(recording.graph, m_stream), "launching a recorded step");
  return true;
}

// ---- sampling

void CudaBackend::sampleRows(TensorView ids, TensorView logits, std::span<const RowSampling> rows) {
  if (rows.empty()) return;
  expects(static_cast<int64_t>(rows.size()) == logits.rows, "there are other numbers of rows and of ways to sample them");
  const int64_t words = ceilDiv(logits.cols, int64_t{32});
  constexpr int64_t kListBytes = 16;  // at least those of an entry of any list
  std::vector<SampleRow> how;
  std::vector<Penalties> penalties;
  std::vector<LogitBias> biases;
  std::vector<SeenToken> seen;
  for (size_t i = 0; i < rows.size(); ++i) {
    const RowSampling& row = rows[i];
    const auto at = static_cast<int>(i);
    how.push_back(
        {row.temperature, static_cast<int>(std::clamp<int64_t>(row.topK, 0, logits.cols)), row.topP, row.minP, row.uniform});
    penalties.push_back({row.repetition, row.frequency, row.presence});
    for (const auto& [token, amount] : row.biases) biases.push_back({at, token, amount});
    for (const auto& [token, count] : row.seen) seen.push_back({at, token, count});
    expects(row.mask.empty() || static_cast<int64_t>(row.mask.size()) == words, "a mask has another size than the vocabulary");
  }
  const bool greedy = std::all_of(how.begin(), how.end(), [](const SampleRow& row) { return row.temperature < kGreedyBelow; });
  m_work.begin();
  const auto* howOnDevice = greedy ? nullptr : static_cast<const SampleRow*>(uploaded(how));
  const auto* penaltiesOnDevice = seen.empty() ? nullptr : static_cast<const Penalties*>(uploaded(penalties));
  if (m_failure) return;
  // Masks and lists go up a part at a time, each behind the launch that reads the one before.
  const int64_t behindRows = m_work.used(), most = std::max(kCudaSampling.count(), 4 * words);
  for (size_t first = 0; first < rows.size();) {
    std::vector<int> maskOfRow;
    std::vector<uint32_t> masks;
    size_t row = first;
    for (; row < rows.size() && (masks.empty() || 4 * static_cast<int64_t>(masks.size() + rows[row].mask.size()) <= most);
         ++row) {
      maskOfRow.push_back(rows[row].mask.empty() ? -1 : static_cast<int>(static_cast<int64_t>(masks.size()) / words));
      masks.insert(masks.end(), rows[row].mask.begin(), rows[row].mask.end());
    }
    if (!masks.empty()) {
      m_work.rewind(behindRows);
      const auto* indices = static_cast<const int*>(uploaded(maskOfRow));
      const auto* bits = static_cast<const uint32_t*>(uploaded(masks));
      if (!indices || !bits) return;
      TensorView part = logits;
      part.data = logits.row<float>(static_cast<int64_t>(first));
      part.rows = static_cast<int64_t>(row - first);
      applyMasks(m_stream, part, bits, words, indices);
    }
    first = row;
  }
  const auto inParts = [&]<class T>(const std::vector<T>& list, auto&& apply) {
    static_assert(sizeof(T) <= kListBytes);
    for (size_t first = 0; first < list.size();) {
      const size_t count = std::min(list.size() - first, static_cast<size_t>(most / kListBytes));
      m_work.rewind(behindRows);
      const auto* part = static_cast<const T*>(uploaded(std::span(list).subspan(first, count)));
      if (!part) return;
      apply(part, static_cast<int64_t>(count));
      first += count;
    }
  };
  inParts(biases, [&](const LogitBias* part, int64_t count) { applyBiases(m_stream, logits, part, count); });
  inParts(seen, [&](const SeenToken* part, int64_t count) { applyPenalties(m_stream, logits, part, count, penaltiesOnDevice); });
  if (m_failure) return;
  if (greedy)
    cuda::argmaxRows(m_stream, ids.row<int>(0), logits);
  else
    cuda::sampleRows(m_stream, ids.row<int>(0), logits, howOnDevice);
}

// ---- one launch each

void CudaBackend::rmsNorm(TensorView out, TensorView in, const float* weight, double epsilon, double offset) {
  cuda::rmsNorm(m_stream, out, in, weight, epsilon, offset);
}
void CudaBackend::layerNorm(TensorView out, TensorView in, const float* weight, const float* bias, double epsilon) {
  cuda::layerNorm(m_stream, out, in, weight, bias, epsilon);
}
void CudaBackend::addRmsNorm(TensorView out, TensorView residual, TensorView delta, const float* weight, double epsilon,
                             double offset) {
  cuda::addRmsNorm(m_stream, out, residual, delta, weight, epsilon, offset);
}
void CudaBackend::headRmsNorm(TensorView x, int64_t headDim, const float* weight, double epsilon, double offset) {
  if (x.rows > 0 && x.cols > 0) cuda::headRmsNorm(m_stream, x, headDim, weight, epsilon, offset);
}
void CudaBackend::ropeAngles(TensorView cosSin, TensorView positions, const double* inverseFrequencies, double factor) {
  cuda::ropeAngles(m_stream, cosSin, positions, inverseFrequencies, factor);
}
void CudaBackend::applyRope(TensorView x, int64_t headDim, TensorView cosSin, RopeStyle style) {
  cuda::applyRope(m_stream, x, headDim, cosSin, style == RopeStyle::Neox ? KernelRope::Neox : KernelRope::Interleaved);
}
void CudaBackend::gatedActivation(TensorView out, TensorView gate, TensorView up, Activation activation) {
  cuda::gatedActivation(m_stream, out, gate, up, kernelActivation(activation));
}
void CudaBackend::activate(TensorView x, Activation activation) { cuda::activate(m_stream, x, kernelActivation(activation)); }
void CudaBackend::add(TensorView x, TensorView delta) { cuda::add(m_stream, x, delta); }
void CudaBackend::scale(TensorView x, double factor) { cuda::scale(m_stream, x, factor); }
void CudaBackend::softcap(TensorView x, double cap) { cuda::softcap(m_stream, x, cap); }
void CudaBackend::gatherRows(TensorView out, TensorView in, TensorView rows) { cuda::gatherRows(m_stream, out, in, rows); }
void CudaBackend::sigmoidGate(TensorView x, TensorView gate) { cuda::sigmoidGate(m_stream, x, gate); }
void CudaBackend::rowSquareSum(TensorView squares, TensorView x) { cuda::rowSquareSum(m_stream, squares, x); }
void CudaBackend::normBySquareSum(TensorView x, TensorView squares, int64_t width, const float* weight, double epsilon,
                                  double offset) {
  cuda::normBySquareSum(m_stream, x, squares, width, weight, epsilon, offset);
}
void CudaBackend::scaleByPosition(TensorView x, TensorView positions, double floorScale, double scale) {
  cuda::scaleByPosition(m_stream, x, positions, floorScale, scale);
}

}  // namespace headroom::engine::cuda
