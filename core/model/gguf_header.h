// SPDX-License-Identifier: Apache-2.0
// Header of a GGUF file: metadata and tensor infos. Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once

#include "core/model/dtype.h"
#include "core/result.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace headroom {

struct GgufTensor {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;  // outermost first (GGUF stores it innermost first)
  int file = 0;                // index into files
  int64_t offset = 0;          // from the file's begin
  Bytes bytes;
};

// A tensor whose type is newer than this reader: its size cannot be known, so it is not among the tensors.
struct GgufUnknownTensor {
  std::string name;
  uint32_t type = 0;
  std::vector<int64_t> shape;  // outermost first
  int file = 0;
  int64_t offset = 0;
  Bytes bytesUpToNext;  // up to the next tensor or the file's end, alignment included
};

struct GgufHeader {
  nlohmann::json metadata;  // every key; arrays of strings and numbers as JSON arrays
  std::vector<GgufTensor> tensors;
  std::vector<GgufUnknownTensor> unknownTensors;  // each also named in warnings
  std::vector<std::filesystem::path> files;       // all parts of a split file, in order
  std::vector<std::string> warnings;
};

// "model-00001-of-00013.gguf", the name of a part of a split file, taken apart; empty for any other name.
struct GgufPartName {
  std::string prefix;  // "model"
  int64_t number = 0, count = 0;
};
std::optional<GgufPartName> ggufPartName(const std::string& name);

// Reads one GGUF file and, when it is one of several (split.count), the others beside it. `withTokens` false leaves out the
// long token arrays (tokenizer.ggml.tokens/scores/token_type/merges), keeping "<key>.length" in their place.
Result<GgufHeader> readGgufHeader(const std::filesystem::path& file, bool withTokens);

}  // namespace headroom
