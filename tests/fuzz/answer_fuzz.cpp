// SPDX-License-Identifier: Apache-2.0
// Any bytes as a model's answer, in each form of calls and cut anywhere: how it is cut changes nothing.
#include "engine/server/tool_calls.h"

#include <cstdint>

using namespace headroom::engine;

namespace {

std::string read(std::string_view text, const ToolUse& use, const ReasoningForm& form, bool begins, size_t piece) {
  ReasoningReader reasoning(form, begins);
  ToolCallReader reader(use);
  std::string out, thoughts, calls;
  auto take = [&] {
    thoughts += reasoning.takeReasoning() + reader.takeReasoning();
    out += reader.takeText();
    for (const auto& part : reader.takeParts()) calls += (part.name.empty() ? "" : "\n" + part.name + " ") + part.arguments;
  };
  for (size_t at = 0; at < text.size(); at += piece) {
    const std::string answer = reasoning.push(text.substr(at, piece));
    if (!answer.empty()) reader.push(answer);
    take();
  }
  const std::string answer = reasoning.finish();
  if (!answer.empty()) reader.push(answer);
  reader.finish();
  take();
  return thoughts + "\n---\n" + out + "\n---\n" + calls;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3 || size > 2048) return 0;
  static const char* const kTemplates[] = {"", "<tool_call>", "[TOOL_CALLS] [ARGS]", "[TOOL_CALLS]", "<arg_key>", "<function= <parameter=", "<｜tool▁call▁begin｜>", "<｜tool▁call▁begin｜>```json",
                                           "<|channel|><|message|>", "func_name1(params_name1", "<|observation|>", "<minimax:tool_call>", "<|START_ACTION|>"};
  ToolUse use;
  use.reads = true;
  use.parallel = data[0] & 1;
  use.names = {"f", "get"};
  use.form = toolCallFormOf(kTemplates[data[0] / 2 % std::size(kTemplates)]);
  const ReasoningForm form = data[1] & 1 ? reasoningFormOf("</think>") : ReasoningForm();
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::string whole = read(text, use, form, data[1] & 2, text.size());
  if (read(text, use, form, data[1] & 2, 1) != whole || read(text, use, form, data[1] & 2, 3) != whole) __builtin_trap();
  return 0;
}
