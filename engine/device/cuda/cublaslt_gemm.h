// SPDX-License-Identifier: Apache-2.0
// Large plain matrix products by cuBLASLt: out (tokens, n) F32 = in (tokens, k) · weight (n, k)ᵀ, inputs of one type (F32, F16,
// BF16), sums in F32. The algorithm is chosen once for each shape (tokens rounded up to a power of two) and kept, within the
// workspace of the smallest product of the shape. One rank's thread only.
#pragma once

#include "engine/device/cuda/cuda_call.h"
#include "engine/device/tensor.h"

#include <map>
#include <memory>
#include <tuple>

namespace headroom::engine::cuda {

class CublasLtGemm {
 public:
  explicit CublasLtGemm(int device);
  ~CublasLtGemm();
  CublasLtGemm(const CublasLtGemm&) = delete;
  CublasLtGemm& operator=(const CublasLtGemm&) = delete;

  // Bytes of device memory that a product works in.
  static int64_t workspaceBytes(TensorView out);
  // `weight`: row-major without gaps, of `in`'s type. `workspace`: workspaceBytes(out).
  Status multiply(TensorView out, TensorView in, const void* weight, void* workspace, cudaStream_t stream);
  size_t chosenShapes() const { return m_chosen.size(); }

 private:
  struct Choice;
  const int m_device;
  void* m_handle = nullptr;
  std::map<std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int>, std::unique_ptr<Choice>>
      m_chosen;  // n, k, tokens, strides, type
};

}  // namespace headroom::engine::cuda
