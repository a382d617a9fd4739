// SPDX-License-Identifier: Apache-2.0
// Reads tokenizer.json, and from the files beside it which tokens end a sequence.
#include "core/json_text.h"
#include "core/model/file_head.h"
#include "engine/text/json_fields.h"
#include "engine/text/pipeline.h"

#include <algorithm>

namespace headroom::engine::text {
namespace {

using nlohmann::json;

Result<json> readJson(const std::filesystem::path& file) {
  constexpr int64_t kLimit = int64_t{512} << 20;
  const auto text = readTextFile(file, kLimit);
  if (!text) return tl::unexpected(text.error());
  if (isNestedTooDeep(*text)) return failure(file.string(), kTooDeepJson, "JSON", "the download may be incomplete");
  try {
    return json::parse(*text);
  } catch (const json::exception& fault) {
    return failure(file.string(), fault.what(), "JSON", "the download may be incomplete");
  }
}

// Ids follow the library: the model's id where it knows the content, else the next free one.
std::vector<AddedToken> addedTokens(const json& listed, const Vocabulary& vocabulary) {
  std::vector<AddedToken> tokens;
  std::unordered_map<std::string, int32_t> ids;
  int64_t next = vocabulary.entries();
  for (const json& entry : listed) {
    AddedToken token;
    token.content = word(entry, "content");
    if (token.content.empty()) continue;
    token.special = flag(entry, "special", false);
    token.singleWord = flag(entry, "single_word", false);
    token.stripLeft = flag(entry, "lstrip", false);
    token.stripRight = flag(entry, "rstrip", false);
    token.normalized = flag(entry, "normalized", !token.special);
    const auto seen = ids.find(token.content);
    const auto known = vocabulary.id(token.content);
    token.id = seen != ids.end() ? seen->second : known ? *known : static_cast<int32_t>(next);
    next = std::max<int64_t>(next, token.id + 1);
    ids[token.content] = token.id;
    tokens.push_back(std::move(token));
  }
  return tokens;
}

// A token named by its content, or by an object that holds it.
std::optional<int32_t> namedToken(const json& name, const Tokenizer& tokenizer) {
  const json& content = name.is_object() ? member(name, "content") : name;
  return content.is_string() ? tokenizer.tokenId(content.get_ref<const std::string&>()) : std::nullopt;
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> openTokenizerJson(const std::filesystem::path& file) {
  auto read = readJson(file);
  if (!read) return tl::unexpected(read.error());
  const json& root = *read;
  if (!root.is_object() || !root.contains("model"))
    return failure(file.string(), "no \"model\"", "a tokenizer.json of the tokenizers library");
  const auto in = [&](Error error) {
    error.where = file.string() + ", " + error.where;
    return tl::unexpected(std::move(error));
  };
  PipelineParts parts;
  try {
    auto model = makeTokenModel(member(root, "model"));
    if (!model) return in(model.error());
    parts.model = std::move(*model);
    auto normalizer = makeNormalizer(member(root, "normalizer"));
    if (!normalizer) return in(normalizer.error());
    parts.normalizer = std::move(*normalizer);
    auto preTokenizer = makePreTokenizer(member(root, "pre_tokenizer"), parts.model->takesRawBytes());
    if (!preTokenizer) return in(preTokenizer.error());
    parts.preTokenizer = std::move(*preTokenizer);
    auto postProcessor = makePostProcessor(member(root, "post_processor"));
    if (!postProcessor) return in(postProcessor.error());
    parts.postProcessor = std::move(*postProcessor);
    auto decoder = makeTokenDecoder(member(root, "decoder"));
    if (!decoder) return in(decoder.error());
    parts.decoder = std::move(*decoder);
    parts.added = addedTokens(member(root, "added_tokens"), parts.model->vocabulary());
  } catch (const json::exception& fault) {
    return failure(file.string(), fault.what(), "a tokenizer.json of the tokenizers library");
  }

  // Without the parts it is a tokenizer that can name tokens already; the ends are looked up with it.
  std::vector<int32_t> ends;
  const auto add = [&](std::optional<int32_t> id) {
    if (id && std::find(ends.begin(), ends.end(), *id) == ends.end()) ends.push_back(*id);
  };
  auto tokenizer = std::make_unique<Pipeline>(std::move(parts));
  std::error_code error;
  const auto folder = file.parent_path();
  if (std::filesystem::exists(folder / "generation_config.json", error)) {
    auto config = readJson(folder / "generation_config.json");
    if (!config) return tl::unexpected(config.error());
    const json& id = member(*config, "eos_token_id");
    for (const json& one : id.is_array() ? id : json::array({id}))
      if (one.is_number_integer() && one.get<int64_t>() >= 0 && one.get<int64_t>() < tokenizer->vocabSize())
        add(one.get<int32_t>());
  }
  if (std::filesystem::exists(folder / "tokenizer_config.json", error)) {
    auto config = readJson(folder / "tokenizer_config.json");
    if (!config) return tl::unexpected(config.error());
    add(namedToken(member(*config, "eos_token"), *tokenizer));
  }
  tokenizer->setEosTokenIds(std::move(ends));
  return tokenizer;
}

}  // namespace headroom::engine::text
