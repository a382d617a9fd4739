// SPDX-License-Identifier: Apache-2.0
// Any bytes as a chat template, rendered with a conversation that has calls and tools, and with one of parts.
#include "engine/text/chat_template.h"
#include "tests/fuzz/fuzz_folder.h"

using namespace headroom;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 4096) return 0;
  test::writeFile("chat_template.jinja", data, size);
  static const nlohmann::ordered_json request = nlohmann::ordered_json::parse(
      R"({"messages":[{"role":"system","content":"s"},{"role":"user","content":"u"},{"role":"assistant","content":null,"tool_calls":[{"type":"function","function":{"name":"f","arguments":{"a":[1,2.5,"x"]}}}]},)"
      R"({"role":"tool","content":"t"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],"add_generation_prompt":true,"chat_template_kwargs":{"enable_thinking":false}})");
  static const nlohmann::ordered_json parts = nlohmann::ordered_json::parse(
      R"({"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}],"documents":[{"title":"t","text":"d"}]})");
  const auto opened = engine::ChatTemplate::open(test::fuzzFolder());
  if (!opened) return 0;
  (void)(*opened)->render(request);
  (void)(*opened)->render(parts);
  return 0;
}
