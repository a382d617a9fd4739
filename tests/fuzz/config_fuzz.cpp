// SPDX-License-Identifier: Apache-2.0
// Any text as a config.json: an error or a plan, never a crash, an endless loop or memory without bound.
#include "core/launch/planner.h"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headroom;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ModelSource model;
  Result<ModelConfig> config = parseModelConfig(text, "input");
  if (!config) return 0;
  // Sizes that are allowed and make long lists: a fuzzer would only time how long they are.
  constexpr int64_t kLayers = 200, kExperts = 600;
  int64_t experts = 0;
  for (const LayerSpec& layer : config->layers) experts += layer.moe.experts;
  if (config->layerCount() > kLayers || experts > kExperts * 4) return 0;
  model.config = std::move(*config);
  model.inventory = inventoryOfConfig(model.config);
  static const Machine machine = *parseMachine("3xL4-24GB");
  for (const char* engine : {"headroom", "vllm", "vllm@0.8", "sglang", "tensorrt-llm", "lmdeploy", "llama.cpp"}) {
    PlanOptions options;
    options.engine = *parseEngine(engine);
    const auto report = planModel(model, machine, options);
    if (report) (void)planToJson(*report, "model").dump();  // throws for bytes that JSON cannot hold
  }
  return 0;
}
