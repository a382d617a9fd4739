// SPDX-License-Identifier: Apache-2.0
#include "engine/text/post_processor.h"

#include "engine/text/json_fields.h"

namespace headroom::engine::text {
namespace {

using nlohmann::json;

Result<int32_t> idOf(const json& id) {
  if (id.is_number_integer() && id.get<int64_t>() >= 0 && id.get<int64_t>() < int64_t{1} << 30) return id.get<int32_t>();
  return failure("tokenizer.json post_processor", shortJson(id, 40), "a token id");
}

Result<PostProcessor> templateProcessing(const json& json) {
  PostProcessor made;
  bool behind = false;
  for (const auto& piece : member(json, "single")) {
    if (piece.contains("Sequence")) {
      behind = true;
      continue;
    }
    const std::string name = word(member(piece, "SpecialToken"), "id");
    const auto& ids = member(member(member(json, "special_tokens"), name.c_str()), "ids");
    if (!ids.is_array())
      return failure("tokenizer.json post_processor", "no ids of \"" + name + "\"", "its entry in special_tokens");
    for (const auto& listed : ids) {
      auto id = idOf(listed);
      if (!id) return tl::unexpected(id.error());
      (behind ? made.after : made.before).push_back(*id);
    }
  }
  return made;
}

// BERT and RoBERTa: [spelling, id] of the first and the last token.
Result<PostProcessor> around(const json& json) {
  PostProcessor made;
  for (auto [name, ids] : {std::pair("cls", &made.before), std::pair("sep", &made.after)}) {
    const auto& pair = member(json, name);
    auto id = pair.is_array() && pair.size() == 2 ? idOf(pair[1]) : idOf(pair);
    if (!id) return tl::unexpected(id.error());
    ids->push_back(*id);
  }
  return made;
}

}  // namespace

Result<PostProcessor> makePostProcessor(const json& json) {
  if (json.is_null()) return PostProcessor{};
  const std::string type = json.is_object() ? word(json, "type") : "";
  if (type == "ByteLevel") return PostProcessor{};
  if (type == "TemplateProcessing") return templateProcessing(json);
  if (type == "BertProcessing" || type == "RobertaProcessing") return around(json);
  if (type != "Sequence")
    return failure("tokenizer.json post_processor", shortJson(json, 60), "a post-processor of the tokenizers library");
  PostProcessor all;
  for (const auto& step : member(json, "processors")) {
    auto made = makePostProcessor(step);
    if (!made) return made;
    all.before.insert(all.before.begin(), made->before.begin(), made->before.end());
    all.after.insert(all.after.end(), made->after.begin(), made->after.end());
  }
  return all;
}

}  // namespace headroom::engine::text
