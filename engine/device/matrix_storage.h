// SPDX-License-Identifier: Apache-2.0
// The memory of a weight matrix, the same on every device: whole blocks a row, and storageBytes of each row.
#pragma once

#include "engine/device/backend.h"

#include <fmt/format.h>

namespace headroom::engine {

// An empty matrix (out, in) of `dtype` in the backend's memory. Fails where `in` cuts a block of the type, or as allocate does.
inline Result<WeightMatrix> allocateMatrix(Backend& backend, DType dtype, int64_t out, int64_t in, std::string_view purpose) {
  const int64_t block = dtypeInfo(dtype).blockElements;
  if (in % block != 0)
    return failure(std::string(purpose), fmt::format("rows of {} elements", in),
                   fmt::format("a multiple of {} for {}", block, dtypeName(dtype)));
  Result<DeviceBuffer> storage = backend.allocate(storageBytes(dtype, in) * out, purpose);
  if (!storage) return tl::unexpected(std::move(storage.error()));
  WeightMatrix matrix;
  matrix.dtype = dtype;
  matrix.out = out;
  matrix.in = in;
  matrix.storage = std::move(*storage);
  return matrix;
}

}  // namespace headroom::engine
