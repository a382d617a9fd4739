// SPDX-License-Identifier: Apache-2.0
// Header of a .safetensors file. Format: https://huggingface.co/docs/safetensors
#pragma once

#include "core/model/dtype.h"
#include "core/result.h"

#include <filesystem>
#include <string>
#include <vector>

namespace headroom {

struct SafetensorsTensor {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  int64_t offset = 0;  // from the file's begin
  Bytes bytes;
};

struct SafetensorsHeader {
  std::vector<SafetensorsTensor> tensors;
  std::vector<std::string> warnings;
};

// Checks every offset against the file's size; a Git LFS pointer, an HTML page and a truncated file each get their own message.
Result<SafetensorsHeader> readSafetensorsHeader(const std::filesystem::path& file);

}  // namespace headroom
