// SPDX-License-Identifier: Apache-2.0
// Any bytes as the body of a request, for each route that reads one.
#include "engine/server/openai_requests.h"

#include <cstdint>

using namespace headroom::engine;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2 || size > 8192) return 0;
  const auto body = parseJsonObject({reinterpret_cast<const char*>(data) + 1, size - 1});
  if (!body) {
    (void)errorJson(body.error());
    return 0;
  }
  RequestBounds bounds;
  bounds.modelName = "m";
  bounds.maxModelLen = 128;
  bounds.vocabSize = 1000;
  const char* kTemplates[] = {"", "<tool_call> </think>", "[TOOL_CALLS] [ARGS]", "<arg_key>", "<function= <parameter=", "<｜tool▁call▁begin｜>", "<|channel|><|message|>", "func_name1(params_name1"};
  const char* text = kTemplates[data[0] / 5 % 8];
  bounds.toolCalls = toolCallFormOf(text);
  bounds.reasoning = reasoningFormOf(text);
  switch (data[0] % 5) {
    case 0: (void)readCompletionRequest(*body, bounds); break;
    case 1: (void)readChatRequest(*body, bounds); break;
    case 2: (void)readTokenizeRequest(*body, bounds); break;
    case 3: (void)readEmbeddingRequest(*body, bounds, {}, 64); break;
    default: (void)readDetokenizeRequest(*body, bounds);
  }
  return 0;
}
