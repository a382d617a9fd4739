// SPDX-License-Identifier: Apache-2.0
// Any text as --gpus and --engine, and as a layout's JSON.
#include "core/layout/parallel_layout.h"
#include "core/launch/planner.h"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headroom;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)parseMachine(text, {2, Bytes(int64_t(1) << 30)});
  (void)parseEngine(text);
  const nlohmann::json json = nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
  if (!json.is_discarded()) (void)layoutFromJson(json, "input");
  return 0;
}
