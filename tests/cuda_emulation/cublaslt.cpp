// SPDX-License-Identifier: Apache-2.0
// cuBLASLt as plain loops, in stream order. Layouts are column-major, as there; beta is 0 in all calls of the module and must be.
#include "tests/cuda_emulation/include/cublasLt.h"

#include "tests/cuda_emulation/device_emulation.h"
#include "tests/cuda_emulation/runtime.h"

#include <vector>

struct cublasLtContext {};
struct cublasLtMatmulDescOpaque {
  bool transposeA = false;
};
struct cublasLtMatrixLayoutOpaque {
  cudaDataType_t type;
  int64_t rows, columns, leading;
};
struct cublasLtMatmulPreferenceOpaque {
  size_t workspace = 0;
};

namespace {

using headroom::engine::cuda::BFloat16;
using headroom::engine::cuda::Half;
using headroom::engine::cuda::toFloat;

float read(const void* data, cudaDataType_t type, int64_t index) {
  switch (type) {
    case CUDA_R_16F:
      return toFloat(static_cast<const Half*>(data)[index]);
    case CUDA_R_16BF:
      return toFloat(static_cast<const BFloat16*>(data)[index]);
    default:
      return static_cast<const float*>(data)[index];
  }
}

std::vector<float> columns(const void* data, const cublasLtMatrixLayoutOpaque& layout) {
  std::vector<float> values(static_cast<size_t>(layout.rows * layout.columns));
  for (int64_t column = 0; column < layout.columns; ++column)
    for (int64_t row = 0; row < layout.rows; ++row)
      values[static_cast<size_t>(column * layout.rows + row)] = read(data, layout.type, column * layout.leading + row);
  return values;
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = new cublasLtContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description, cublasComputeType_t, cudaDataType_t) {
  *description = new cublasLtMatmulDescOpaque;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  delete description;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t, const void* value,
                                              size_t size) {
  if (size != sizeof(cublasOperation_t)) return CUBLAS_STATUS_INVALID_VALUE;
  description->transposeA = *static_cast<const cublasOperation_t*>(value) == CUBLAS_OP_T;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type, uint64_t rows, uint64_t columns,
                                          int64_t leading) {
  *layout = new cublasLtMatrixLayoutOpaque{type, static_cast<int64_t>(rows), static_cast<int64_t>(columns), leading};
  return leading < static_cast<int64_t>(rows) ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new cublasLtMatmulPreferenceOpaque;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t,
                                                    const void* value, size_t) {
  preference->workspace = *static_cast<const size_t*>(value);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int wanted, cublasLtMatmulHeuristicResult_t* results,
                                              int* found) {
  *found = wanted > 0 ? 1 : 0;
  if (wanted > 0) results[0] = {};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t description, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t aLayout, const void* b, cublasLtMatrixLayout_t bLayout, const void* beta,
                              const void*, cublasLtMatrixLayout_t, void* d, cublasLtMatrixLayout_t dLayout,
                              const cublasLtMatmulAlgo_t*, void*, size_t, cudaStream_t stream) {
  const float scale = *static_cast<const float*>(alpha);
  if (*static_cast<const float*>(beta) != 0.0f || !description->transposeA || dLayout->type != CUDA_R_32F)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (aLayout->rows != bLayout->rows || aLayout->columns != dLayout->rows || bLayout->columns != dLayout->columns)
    return CUBLAS_STATUS_INVALID_VALUE;
  // cuBLASLt demands addresses on 16 bytes for its fast kernels; the module promises them.
  if (reinterpret_cast<uintptr_t>(a) % 16 || reinterpret_cast<uintptr_t>(b) % 16) return CUBLAS_STATUS_NOT_SUPPORTED;
  const cublasLtMatrixLayoutOpaque la = *aLayout, lb = *bLayout, ld = *dLayout;
  const cudaError_t error = headroom::emulation::enqueue(stream, [=](const std::function<bool()>&) {
    const std::vector<float> weight = columns(a, la), in = columns(b, lb);
    auto* out = static_cast<float*>(d);
    for (int64_t token = 0; token < ld.columns; ++token)
      for (int64_t n = 0; n < ld.rows; ++n) {
        const float *row = weight.data() + n * la.rows, *x = in.data() + token * lb.rows;
        float sums[8] = {};
        int64_t k = 0;
        for (; k + 8 <= la.rows; k += 8)
          for (int i = 0; i < 8; ++i) sums[i] += row[k + i] * x[k + i];
        float sum = 0;
        for (float part : sums) sum += part;
        for (; k < la.rows; ++k) sum += row[k] * x[k];
        out[token * ld.leading + n] = scale * sum;
      }
    return cudaSuccess;
  });
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

}  // extern "C"
