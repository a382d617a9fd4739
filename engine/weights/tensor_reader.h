// SPDX-License-Identifier: Apache-2.0
// Reads pieces of stored tensors from weight files with plain positioned reads: a file that shrinks gives an error, not a signal.
#pragma once

#include "core/model/tensor_inventory.h"
#include "core/result.h"

#include <filesystem>
#include <functional>
#include <span>
#include <vector>

namespace headroom::engine {

class TensorReader {
 public:
  explicit TensorReader(const std::vector<std::filesystem::path>& files) : m_paths(files), m_descriptors(files.size(), -1) {}
  ~TensorReader();
  TensorReader(const TensorReader&) = delete;
  TensorReader& operator=(const TensorReader&) = delete;

  // A chunk of rows, without gaps, in the tensor's own type: (rows, sum of the columns). `bytesRead` counts what came from the
  // file.
  struct Chunk {
    int64_t firstRow = 0, rows = 0;  // of the slice
    const std::byte* data = nullptr;
    Bytes bytesRead;
  };
  using ChunkSink = std::function<Status(const Chunk&)>;

  // Reads the rows of `rows`, one range behind the other, and of each row the columns of `columns`, which begin and end between
  // blocks of the type. Chunks are as large as the buffer allows, one row at least.
  Status read(const TensorEntry& tensor, std::span<const Range> rows, std::span<const Range> columns, const ChunkSink& sink);

 private:
  Status readAt(const TensorEntry& tensor, int64_t offset, int64_t size, std::byte* to);
  Result<int> open(int file);

  const std::vector<std::filesystem::path>& m_paths;
  std::vector<int> m_descriptors;
  std::vector<std::byte> m_buffer;
};

// Elements of a plain floating type as F32. False when the type is not one.
bool convertToFloat(DType dtype, const void* from, int64_t count, float* to);

}  // namespace headroom::engine
