// SPDX-License-Identifier: Apache-2.0
// Reads the tokenizer that a GGUF carries (tokenizer.ggml.*): vocabulary, merges or scores, kinds of tokens, and the ids that
// begin and end a text. Keys: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#include "core/model/gguf_header.h"
#include "engine/text/gguf_splitting.h"
#include "engine/text/json_fields.h"
#include "engine/text/pipeline.h"
#include "engine/text/unicode.h"

#include <algorithm>
#include <array>
#include <limits>
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
    const Status made = model == "gpt2"     ? byteLevel()
                        : model == "gemma4" ? spacedMerges()
                        : model == "llama"  ? scoredPairs()
                        : model == "t5"     ? unigram()
                                            : wrong("tokenizer.ggml.model", model, "gpt2, llama, gemma4 or t5");
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
        if (!kind.is_number_integer()) return wrong("tokenizer.ggml.token_type", shortJson(kind, 40), "numbers");
        m_kinds.push_back(static_cast<Kind>(kind.get<int64_t>()));
      }
    }
    for (size_t i = 0; i < tokens.size(); ++i) {
      const auto id = static_cast<int32_t>(i);
      if (!tokens[i].is_string()) return wrong("tokenizer.ggml.tokens", shortJson(tokens[i], 40), "spellings");
      const auto& written = tokens[i].get_ref<const std::string&>();
      const std::string spelling = isValidUtf8(written) ? written : toValidUtf8(written);
      const Kind its = kind(id);
      if (its == Kind::unused || spelling.empty()) continue;
      m_vocabulary.add(spelling, id);
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

  Result<std::vector<std::pair<std::string, std::string>>> merges() const {
    const json& listed = member(m_metadata, "tokenizer.ggml.merges");
    if (!listed.is_array()) return wrong("tokenizer.ggml.merges", "no merges", "the list of merge rules");
    std::vector<std::pair<std::string, std::string>> merges;
    merges.reserve(listed.size());
    for (const json& merge : listed) {
      const std::string text = merge.is_string() ? merge.get<std::string>() : "";
      const size_t space = text.find(' ', 1);
      if (space == std::string::npos) return wrong("tokenizer.ggml.merges", shortJson(merge, 60), "two spellings");
      merges.emplace_back(text.substr(0, space), text.substr(space + 1));
    }
    return merges;
  }

  template <class Score>
  Result<std::vector<Score>> scores() const {
    const json& listed = member(m_metadata, "tokenizer.ggml.scores");
    if (!listed.is_array() || static_cast<int64_t>(listed.size()) != m_tokens)
      return wrong("tokenizer.ggml.scores",
                   fmt::format("{} scores of {} tokens", listed.is_array() ? listed.size() : 0, m_tokens), "one a token");
    std::vector<Score> scores;
    scores.reserve(listed.size());
    for (const json& score : listed) {
      if (!score.is_number()) return wrong("tokenizer.ggml.scores", shortJson(score, 40), "numbers");
      scores.push_back(score.get<Score>());
    }
    return scores;
  }

  // Puts the parts around a model; normalizer and pre-tokenizer as tokenizer.json describes them.
  Status finish(Result<std::unique_ptr<TokenModel>> model, const json& normalizer, const json& preTokenizer,
                const json& decoder) {
    if (!model) return in(model.error());
    m_parts.model = std::move(*model);
    auto normalizes = makeNormalizer(normalizer);
    if (!normalizes) return in(normalizes.error());
    m_parts.normalizer = std::move(*normalizes);
    auto cuts = makePreTokenizer(preTokenizer, m_parts.model->takesRawBytes());
    if (!cuts) return in(cuts.error());
    m_parts.preTokenizer = std::move(*cuts);
    auto decodes = makeTokenDecoder(decoder);
    if (!decodes) return in(decodes.error());
    m_parts.decoder = std::move(*decodes);
    return {};
  }

  // SentencePiece's spaces: "▁", with one before a text where the file wants it.
  static json spacesAsPieces(bool withPrefix) {
    auto steps = json::array();
    if (withPrefix) steps.push_back({{"type", "Prepend"}, {"prepend", "▁"}});
    steps.push_back({{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "▁"}});
    return {{"type", "Sequence"}, {"normalizers", std::move(steps)}};
  }
  static json piecesAsSpaces(bool withPrefix) {
    json steps = {
        {{"type", "Replace"}, {"pattern", {{"String", "▁"}}}, {"content", " "}}, {{"type", "ByteFallback"}}, {{"type", "Fuse"}}};
    if (withPrefix) steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
    return {{"type", "Sequence"}, {"decoders", std::move(steps)}};
  }

  // GPT-2's way: bytes spelled as characters, joined by merge rules.
  Status byteLevel() {
    auto rules = merges();
    if (!rules) return tl::unexpected(rules.error());
    const GgufSplitting& splitting = namedSplitting();
    m_addsBos = splitting.addsBos;
    BpeOptions options;
    options.ignoreMerges = splitting.ignoresMerges;
    const json normalizer = splitting.composes ? json{{"type", "NFC"}} : json();
    return finish(makeBpeModel(std::move(m_vocabulary), *rules, std::move(options)), normalizer, preTokenizerOf(splitting),
                  {{"type", "ByteLevel"}});
  }

  // Merge rules over characters, with SentencePiece's spaces and bytes; texts are not cut into words.
  Status spacedMerges() {
    auto rules = merges();
    if (!rules) return tl::unexpected(rules.error());
    m_addsBos = true;
    BpeOptions options;
    options.unknown = unknownSpelling();
    options.fuseUnknown = options.byteFallback = true;
    return finish(makeBpeModel(std::move(m_vocabulary), *rules, std::move(options)), spacesAsPieces(false), nullptr,
                  piecesAsSpaces(false));
  }

  // SentencePiece's BPE.
  Status scoredPairs() {
    auto listed = scores<float>();
    if (!listed) return tl::unexpected(listed.error());
    for (size_t id = 0; id < listed->size(); ++id)
      if (kind(static_cast<int32_t>(id)) != Kind::normal && kind(static_cast<int32_t>(id)) != Kind::userDefined)
        (*listed)[id] = -std::numeric_limits<float>::infinity();
    m_addsBos = true;
    // Phi-3's own tokenizer.json drops the spaces and line ends behind its special tokens.
    if (word(m_metadata, "general.architecture") == "phi3")
      for (AddedToken& token : m_parts.added)
        token.stripRight = token.content != "<unk>" && token.content != "<s>" && token.content != "<|endoftext|>";
    const bool prefix = flag(m_metadata, "tokenizer.ggml.add_space_prefix", true);
    return finish(makeScoredPairModel(std::move(m_vocabulary), *listed, unknownId()), spacesAsPieces(prefix), nullptr,
                  piecesAsSpaces(prefix));
  }

  // SentencePiece's Unigram.
  Status unigram() {
    auto listed = scores<double>();
    if (!listed) return tl::unexpected(listed.error());
    for (size_t id = 0; id < listed->size(); ++id)  // never part of a path
      if (kind(static_cast<int32_t>(id)) != Kind::normal && kind(static_cast<int32_t>(id)) != Kind::userDefined)
        (*listed)[id] = -std::numeric_limits<double>::infinity();
    m_addsEos = true;
    std::string map;
    for (const json& byte : member(m_metadata, "tokenizer.ggml.precompiled_charsmap"))
      map += static_cast<char>(byte.is_number_integer() ? byte.get<int64_t>() : 0);
    auto characters = makeCharacterMapNormalizer(map);
    if (!characters) return in(characters.error());
    const bool prefix = flag(m_metadata, "tokenizer.ggml.add_space_prefix", true);
    auto cuts = json::array();
    if (flag(m_metadata, "tokenizer.ggml.remove_extra_whitespaces", true)) cuts.push_back({{"type", "WhitespaceSplit"}});
    const json metaspace = {{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", prefix ? "always" : "never"}};
    cuts.push_back(metaspace);
    auto made = finish(makeUnigramModel(std::move(m_vocabulary), std::move(*listed), unknownId(), false), nullptr,
                       {{"type", "Sequence"}, {"pretokenizers", std::move(cuts)}}, metaspace);
    m_parts.normalizer = std::move(*characters);
    return made;
  }

  // The file's, or the first of that kind.
  std::optional<int32_t> unknownId() const {
    if (const auto named = namedId("tokenizer.ggml.unknown_token_id")) return named;
    const auto found = std::find(m_kinds.begin(), m_kinds.end(), Kind::unknown);
    return found == m_kinds.end() ? std::nullopt : std::optional(static_cast<int32_t>(found - m_kinds.begin()));
  }
  std::optional<std::string> unknownSpelling() const {
    const auto id = unknownId();
    return id && m_vocabulary.has(*id) ? std::optional(m_vocabulary.spelling(*id)) : std::nullopt;
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
