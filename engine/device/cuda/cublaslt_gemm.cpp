// SPDX-License-Identifier: Apache-2.0
// cuBLASLt counts columns first: row-major out (tokens, n) is its (n, tokens) with leading dimension out.stride, and the product
// is transpose(weight as (k, n)) · in as (k, tokens).
#include "engine/device/cuda/cublaslt_gemm.h"

#include "core/memory/cuda_memory.h"

#include <cublasLt.h>

namespace headroom::engine::cuda {
namespace {

Status failed(int device, const char* doing, cublasStatus_t status) {
  return failure(fmt::format("cuda:{}", device), fmt::format("cuBLASLt status {} while {}", static_cast<int>(status), doing), {},
                 "is the installed cuBLAS of the same CUDA version as the module?");
}

cudaDataType_t typeOf(DType dtype) {
  switch (dtype) {
    case DType::F16:
      return CUDA_R_16F;
    case DType::BF16:
      return CUDA_R_16BF;
    default:
      return CUDA_R_32F;
  }
}

struct Layout {
  cublasLtMatrixLayout_t layout = nullptr;
  Layout(DType dtype, int64_t rows, int64_t columns, int64_t leading) {
    cublasLtMatrixLayoutCreate(&layout, typeOf(dtype), static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), leading);
  }
  ~Layout() { cublasLtMatrixLayoutDestroy(layout); }
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;
};

int64_t bucketOf(int64_t tokens) {
  int64_t bucket = 1;
  while (bucket < tokens) bucket *= 2;
  return bucket;
}

}  // namespace

struct CublasLtGemm::Choice {
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
  ~Choice() {
    if (operation) cublasLtMatmulDescDestroy(operation);
  }
};

CublasLtGemm::CublasLtGemm(int device) : m_device(device) {}
CublasLtGemm::~CublasLtGemm() {
  m_chosen.clear();
  if (m_handle) cublasLtDestroy(static_cast<cublasLtHandle_t>(m_handle));
}

int64_t CublasLtGemm::workspaceBytes(TensorView out) { return cudaProductWorkspace(out.rows * out.cols).count(); }

Status CublasLtGemm::multiply(TensorView out, TensorView in, const void* weight, void* workspace, cudaStream_t stream) {
  if (!m_handle) {
    cublasLtHandle_t handle = nullptr;
    if (const cublasStatus_t status = cublasLtCreate(&handle)) return failed(m_device, "opening cuBLASLt", status);
    m_handle = handle;
  }
  const auto handle = static_cast<cublasLtHandle_t>(m_handle);
  const int64_t n = out.cols, k = in.cols, tokens = in.rows;
  const Layout a(in.dtype, k, n, k), b(in.dtype, k, tokens, in.stride), c(out.dtype, n, tokens, out.stride);
  auto& choice = m_chosen[{n, k, bucketOf(tokens), in.stride, out.stride, static_cast<int>(in.dtype)}];
  if (!choice) {
    auto chosen = std::make_unique<Choice>();
    if (const cublasStatus_t status = cublasLtMatmulDescCreate(&chosen->operation, CUBLAS_COMPUTE_32F, CUDA_R_32F))
      return failed(m_device, "describing a product", status);
    const cublasOperation_t transpose = CUBLAS_OP_T;
    cublasLtMatmulDescSetAttribute(chosen->operation, CUBLASLT_MATMUL_DESC_TRANSA, &transpose, sizeof transpose);
    cublasLtMatmulPreference_t preference = nullptr;
    if (const cublasStatus_t status = cublasLtMatmulPreferenceCreate(&preference))
      return failed(m_device, "describing a product", status);
    const auto workspaceOfAll = static_cast<size_t>(workspaceBytes(out.head(std::min(tokens, bucketOf(tokens) / 2 + 1))));
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspaceOfAll,
                                         sizeof workspaceOfAll);
    cublasLtMatmulHeuristicResult_t best{};
    int found = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle, chosen->operation, a.layout, b.layout, c.layout,
                                                                 c.layout, preference, 1, &best, &found);
    cublasLtMatmulPreferenceDestroy(preference);
    if (status || found == 0) return failed(m_device, "choosing an algorithm", status);
    chosen->algorithm = best.algo;
    choice = std::move(chosen);
  }
  const float one = 1.0f, zero = 0.0f;
  const cublasStatus_t status =
      cublasLtMatmul(handle, choice->operation, &one, weight, a.layout, in.data, b.layout, &zero, out.data, c.layout, out.data,
                     c.layout, &choice->algorithm, workspace, static_cast<size_t>(workspaceBytes(out)), stream);
  if (status) return failed(m_device, fmt::format("multiplying ({}, {}) by ({}, {})", tokens, k, n, k).c_str(), status);
  return {};
}

}  // namespace headroom::engine::cuda
