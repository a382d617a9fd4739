// SPDX-License-Identifier: Apache-2.0
// Reads the tokenizer that a GGUF carries (tokenizer.ggml.*): vocabulary, merges or scores, kinds of tokens, and the ids that
// begin and end a text. Keys: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#include "core/model/gguf_header.h"
#include "engine/text/gguf_splitting.h"
#include "engine/text/json_fields.h"
#include "engine/text/pipeline.h"

#include <algorithm>
#include <array>
#include <mutex>

namespace headroom::engine::text {
namespace {

using nlohmann::json;

// Kinds of tokens (tokenizer.ggml.token_type).
enum class Kind : int64_t { normal = 1, unknown = 2, control = 3, userDefined = 4, unused = 5, byte = 6 };

// Tokens that end a turn or a text, whatever the file says of the end of a sequence.
constexpr std::array kEndNames = {
    "<|im_end|>", "<|eot_id|>",         "<|eom_id|>",           "<end_of_turn>", "<turn|>",         "<|end|>",
    "<|return|>", "<|call|>",           "<|end_of_turn|>",      "<|endoftext|>", "<|end_of_text|>", "<|END_OF_TURN_TOKEN|>",
    "<EOT>",      "<end_of_utterance>", "<｜end▁of▁sentence｜>"};

class GgufTokenizer {
 public:
  GgufTokenizer(const json& metadata, std::string where) : m_metadata(metadata), m_where(std::move(where)) {}

  Result<std::unique_ptr<Tokenizer>> open() {
    const std::string model = word(m_metadata, "tokenizer.ggml.model");
    if (model.empty())
      return failure(m_where, "no tokenizer.ggml.model", "a GGUF with a tokenizer",
                     "copy the tokenizer's files beside the weights");
    if (auto read = readTokens(); !read) return tl::unexpected(read.error());
    const Status made = model == "gpt2" ? byteLevel() : failure(m_where, "tokenizer.ggml.model \"" + model + "\"", "gpt2");
    if (!made) return tl::unexpected(made.error());
    if (Status added = addAround(); !added) return tl::unexpected(added.error());
    addEnds();
    return std::make_unique<Pipeline>(std::move(m_parts));
  }

 private:
  tl::unexpected<Error> in(Error error) const {
    error.where = m_where + ", " + error.where;
    return tl::unexpected(std::move(error));
  }
  tl::unexpected<Error> wrong(const char* key, std::string found, std::string expected) const {
    return failure(m_where + ", " + key, std::move(found), std::move(expected));
  }
  Kind kind(int32_t id) const { return m_kinds.empty() ? Kind::normal : m_kinds[id]; }

  // The vocabulary without its unused entries, and the tokens that are found in a text before it is cut.
  Status readTokens() {
    const json& tokens = member(m_metadata, "tokenizer.ggml.tokens");
    if (!tokens.is_array() || tokens.empty()) return wrong("tokenizer.ggml.tokens", "no list of spellings", "one spelling an id");
    const json& kinds = member(m_metadata, "tokenizer.ggml.token_type");
    if (kinds.is_array()) {
      if (kinds.size() != tokens.size())
        return wrong("tokenizer.ggml.token_type", fmt::format("{} kinds of {} tokens", kinds.size(), tokens.size()),
                     "one a token");
      for (const json& kind : kinds) {
        if (!kind.is_number_integer()) return wrong("tokenizer.ggml.token_type", kind.dump().substr(0, 40), "numbers");
        m_kinds.push_back(static_cast<Kind>(kind.get<int64_t>()));
      }
    }
    for (size_t i = 0; i < tokens.size(); ++i) {
      const auto id = static_cast<int32_t>(i);
      if (!tokens[i].is_string()) return wrong("tokenizer.ggml.tokens", tokens[i].dump().substr(0, 40), "spellings");
      const auto& spelling = tokens[i].get_ref<const std::string&>();
      const Kind its = kind(id);
      if (its == Kind::unused || spelling.empty()) continue;
      if (!m_vocabulary.id(spelling)) m_vocabulary.add(spelling, id);
      if (its == Kind::control || its == Kind::userDefined || its == Kind::unknown) {
        AddedToken token;
        token.id = id;
        token.content = spelling;
        token.special = its != Kind::userDefined;
        m_parts.added.push_back(std::move(token));
      }
    }
    m_tokens = static_cast<int64_t>(tokens.size());
    return {};
  }

  // GPT-2's way: bytes spelled as characters, joined by merge rules.
  Status byteLevel() {
    const json& listed = member(m_metadata, "tokenizer.ggml.merges");
    if (!listed.is_array()) return wrong("tokenizer.ggml.merges", "no merges", "the list of merge rules");
    std::vector<std::pair<std::string, std::string>> merges;
    merges.reserve(listed.size());
    for (const json& merge : listed) {
      const std::string text = merge.is_string() ? merge.get<std::string>() : "";
      const size_t space = text.find(' ', 1);
      if (space == std::string::npos) return wrong("tokenizer.ggml.merges", merge.dump().substr(0, 60), "two spellings");
      merges.emplace_back(text.substr(0, space), text.substr(space + 1));
    }
    const GgufSplitting& splitting = namedSplitting();
    m_addsBos = splitting.addsBos;
    BpeOptions options;
    options.ignoreMerges = splitting.ignoresMerges;
    auto model = makeBpeModel(std::move(m_vocabulary), merges, std::move(options));
    if (!model) return in(model.error());
    m_parts.model = std::move(*model);
    auto preTokenizer = makePreTokenizer(preTokenizerOf(splitting), m_parts.model->takesRawBytes());
    if (!preTokenizer) return in(preTokenizer.error());
    m_parts.preTokenizer = std::move(*preTokenizer);
    auto decoder = makeTokenDecoder({{"type", "ByteLevel"}});
    if (!decoder) return in(decoder.error());
    m_parts.decoder = std::move(*decoder);
    return {};
  }

  const GgufSplitting& namedSplitting() const {
    const std::string pre = word(m_metadata, "tokenizer.ggml.pre");
    if (const GgufSplitting* known = ggufSplitting(pre)) return *known;
    static std::once_flag warned;
    std::call_once(warned, [&] {
      fmt::print(stderr, "warning: {}: {}; texts are cut the default way, and some may become other tokens than in training\n",
                 m_where, pre.empty() ? "no tokenizer.ggml.pre" : "tokenizer.ggml.pre \"" + pre + "\" is not known");
    });
    return defaultGgufSplitting();
  }

  std::optional<int32_t> namedId(const char* key) const {
    const int64_t id = whole(m_metadata, key, -1);
    return id >= 0 && id < m_tokens ? std::optional(static_cast<int32_t>(id)) : std::nullopt;
  }

  // bos and eos around a text.
  Status addAround() {
    const auto add = [&](const char* flagName, const char* idKey, bool otherwise, std::vector<int32_t>& ids) -> Status {
      if (!flag(m_metadata, flagName, otherwise)) return {};
      if (const auto id = namedId(idKey))
        ids.push_back(*id);
      else if (m_metadata.contains(flagName))
        return wrong(flagName, std::string("true, but no ") + idKey, "the id to add");
      return {};
    };
    if (auto added = add("tokenizer.ggml.add_bos_token", "tokenizer.ggml.bos_token_id", m_addsBos, m_parts.postProcessor.before);
        !added)
      return added;
    return add("tokenizer.ggml.add_eos_token", "tokenizer.ggml.eos_token_id", m_addsEos, m_parts.postProcessor.after);
  }

  void addEnds() {
    std::vector<int32_t>& ends = m_parts.eosTokenIds;
    const auto add = [&](std::optional<int32_t> id) {
      if (id && std::find(ends.begin(), ends.end(), *id) == ends.end()) ends.push_back(*id);
    };
    for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"})
      add(namedId(key));
    for (const char* name : kEndNames)
      for (const AddedToken& token : m_parts.added)
        if (token.content == name) add(token.id);
  }

  const json& m_metadata;
  std::string m_where;
  std::vector<Kind> m_kinds;  // empty: all normal
  Vocabulary m_vocabulary;
  int64_t m_tokens = 0;
  bool m_addsBos = false, m_addsEos = false;
  PipelineParts m_parts;
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> openGgufTokenizer(const std::filesystem::path& file) {
  auto header = readGgufHeader(file, true);
  if (!header) return tl::unexpected(header.error());
  return GgufTokenizer(header->metadata, file.string()).open();
}

}  // namespace headroom::engine::text
