// SPDX-License-Identifier: Apache-2.0
// Any bytes as the head of a GGUF file, cut off there or going on; then a plan of it, as JSON.
#include "core/launch/planner.h"
#include "core/model/gguf_config.h"
#include "core/model/gguf_parser.h"

#include <cstdint>

using namespace headroom;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const std::string_view head(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto length = static_cast<int64_t>(head.size());
  const auto parsed = parseGgufHeader(head, data[0] & 1 ? length : length + (int64_t(1) << 33), (data[0] & 2) != 0, "input");
  if (!parsed || parsed->needsMore) return 0;
  (void)parsed->header.metadata.dump();  // throws for bytes that JSON cannot hold
  auto config = configOfGguf(parsed->header, "input");
  constexpr int64_t kLayers = 200, kExperts = 2400;  // allowed, and long lists: a fuzzer would only time how long they are
  int64_t experts = 0;
  if (!config || config->layerCount() > kLayers) return 0;
  for (const LayerSpec& layer : config->layers) experts += layer.moe.experts;
  if (experts > kExperts) return 0;
  ModelSource model;
  model.config = std::move(*config);
  model.inventory = inventoryOfConfig(model.config);
  static const Machine machine = *parseMachine("3xL4-24GB");
  PlanOptions options;
  options.engine = *parseEngine("llama.cpp");
  const auto report = planModel(model, machine, options);
  if (report) (void)planToJson(*report, "model").dump();
  return 0;
}
