// SPDX-License-Identifier: Apache-2.0
// Any bytes as an engine's log.
#include "core/diagnosis/log_diagnosis.h"
#include "core/launch/start_log.h"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)headroom::diagnoseLog(text);
  (void)headroom::readStartLog(text, "input");
  return 0;
}
