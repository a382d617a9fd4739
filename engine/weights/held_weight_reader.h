// SPDX-License-Identifier: Apache-2.0
// Reads a quantized weight of safetensors files (codes, scales, zero points) as rows of the form that the engine holds it in:
// core/model/held_weights.h. Every code keeps its value: a code less its zero point is a whole number that the blocks hold.
#pragma once

#include "core/model/held_weights.h"
#include "engine/weights/tensor_reader.h"

#include <functional>
#include <map>
#include <string_view>

namespace headroom::engine {

class HeldWeightReader {
 public:
  // Rows [firstRow, firstRow + rows) of what was asked for, in `dtype`: F32 where the weight is held as plain numbers.
  using RowSink = std::function<Status(int64_t firstRow, int64_t rows, DType dtype, const void* data)>;

  HeldWeightReader(const ModelSource& model, TensorReader& reader);
  // True for an entry that heldByEngine made.
  bool reads(const TensorEntry& held) const { return held.loaded && codesOf(held) != nullptr; }
  // Memory: scales and zero points of the weight as floats, and a band of its rows.
  Status read(const TensorEntry& held, const std::vector<Range>& rows, const std::vector<Range>& columns, const RowSink& sink);

 private:
  struct Parts;
  const TensorEntry* codesOf(const TensorEntry& held) const;
  const TensorEntry* part(const std::string& name) const;
  Result<std::vector<std::byte>> readBytes(const TensorEntry& tensor);
  Result<std::vector<float>> readFloats(const TensorEntry& tensor);
  Result<std::vector<int32_t>> readInts(const TensorEntry& tensor);
  Status readColumnGroups(const HeldWeight& weight, int64_t groups, const char* suffix, Parts& parts);
  Status readPackedZeros(const HeldWeight& weight, Parts& parts);
  Status readBlockScaled(const TensorEntry& codes, const HeldWeight& weight, const std::vector<Range>& rows,
                         const std::vector<Range>& columns, const RowSink& sink);
  Status readParts(const HeldWeight& weight, Parts& parts);
  Status readBand(const TensorEntry& codes, const HeldWeight& weight, Range band, Parts& parts);

  const ModelSource& m_model;
  TensorReader& m_reader;
  std::map<std::string_view, const TensorEntry*> m_stored;  // not loaded themselves
};

}  // namespace headroom::engine
