// SPDX-License-Identifier: Apache-2.0
// Any bytes as the header of a safetensors file, whose size is taken from the first bytes.
#include "core/model/safetensors_parser.h"

#include <cstdint>
#include <cstring>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  int64_t fileSize = 0;
  if (size < sizeof fileSize) return 0;
  std::memcpy(&fileSize, data, sizeof fileSize);
  const std::string_view json(reinterpret_cast<const char*>(data) + sizeof fileSize, size - sizeof fileSize);
  (void)headroom::parseSafetensorsHeader(json, fileSize, "input");
  return 0;
}
