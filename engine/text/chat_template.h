// SPDX-License-Identifier: Apache-2.0
// Chat templates: Jinja as real templates use it, judged by Python's jinja2 with Transformers' settings.
#pragma once

#include "core/result.h"

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

namespace headroom::engine {

class ChatTemplate {
 public:
  virtual ~ChatTemplate() = default;
  // From chat_template.jinja, tokenizer_config.json or a GGUF. A model without a template is an error that says so; it is not
  // given one.
  static Result<std::unique_ptr<ChatTemplate>> open(const std::filesystem::path& path);
  // request: messages, tools, documents, add_generation_prompt (true where absent), chat_template_kwargs. An Error carries the
  // message of a template that raises in `found`. Thread-safe.
  virtual Result<std::string> render(const nlohmann::ordered_json& request) const = 0;
  virtual const std::string& source() const = 0;
};

}  // namespace headroom::engine
