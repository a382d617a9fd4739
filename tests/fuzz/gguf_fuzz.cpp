// SPDX-License-Identifier: Apache-2.0
// Any bytes as the head of a GGUF file, cut off there or going on.
#include "core/model/gguf_parser.h"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const std::string_view head(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto length = static_cast<int64_t>(head.size());
  (void)headroom::parseGgufHeader(head, data[0] & 1 ? length : length + (int64_t(1) << 33), (data[0] & 2) != 0, "input");
  return 0;
}
