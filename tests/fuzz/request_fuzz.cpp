// SPDX-License-Identifier: Apache-2.0
// Any bytes as the body of a request, for each route that reads one. What is refused is told in JSON.
#include "engine/server/openai_requests.h"
#include "engine/server/responses_requests.h"

#include <cstdint>

using namespace headroom::engine;

// The same id each time, so that an input does the same each time.
namespace headroom::engine {
std::string randomId(std::string_view prefix) { return std::string(prefix) + "0"; }
}  // namespace headroom::engine

namespace {

void check(const ApiError& error) {
  if (!nlohmann::json::accept(errorJson(error))) __builtin_trap();
}
template <class T>
void check(const ApiResult<T>& read) {
  if (!read) check(read.error());
}

// One response that requests may go on from.
const ResponseStore& responses() {
  static ResponseStore store;
  static const bool filled = [] {
    store.put("resp_1", {"{}",
                         R"([{"id":"msg_1","type":"message","role":"user","content":"u"}])",
                         R"([{"id":"fc_1","type":"function_call","call_id":"c","name":"f","arguments":"{}"}])",
                         {"fc_1"}});
    return true;
  }();
  (void)filled;
  return store;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2 || size > 8192) return 0;
  const auto body = parseJsonObject({reinterpret_cast<const char*>(data) + 1, size - 1});
  if (!body) {
    check(body.error());
    return 0;
  }
  RequestBounds bounds;
  bounds.modelName = "m";
  bounds.maxModelLen = 128;
  bounds.vocabSize = 1000;
  const char* kTemplates[] = {"",
                              "<tool_call> </think>",
                              "[TOOL_CALLS] [ARGS]",
                              "<arg_key>",
                              "<function= <parameter=",
                              "<｜tool▁call▁begin｜>",
                              "<|channel|><|message|>",
                              "func_name1(params_name1"};
  const char* text = kTemplates[data[0] / 6 % 8];
  bounds.toolCalls = toolCallFormOf(text);
  bounds.reasoning = reasoningFormOf(text);
  switch (data[0] % 6) {
    case 0:
      check(readCompletionRequest(*body, bounds));
      break;
    case 1:
      check(readChatRequest(*body, bounds));
      break;
    case 2:
      check(readTokenizeRequest(*body, bounds));
      break;
    case 3:
      check(readEmbeddingRequest(*body, bounds, {}, 64));
      break;
    case 4:
      check(readResponsesRequest(*body, bounds, responses()));
      break;
    default:
      check(readDetokenizeRequest(*body, bounds));
  }
  return 0;
}
