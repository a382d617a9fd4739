// SPDX-License-Identifier: Apache-2.0
#include "engine/text/token_model.h"

#include "engine/text/json_fields.h"

namespace headroom::engine::text {

void Vocabulary::add(std::string spelling, int32_t id) {
  if (static_cast<size_t>(id) >= m_spellings.size()) m_spellings.resize(id + 1);
  m_spellings[id] = std::make_unique<const std::string>(std::move(spelling));
  m_ids[*m_spellings[id]] = id;
}

std::string byteToken(unsigned char byte) { return fmt::format("<0x{:02X}>", byte); }

std::optional<unsigned char> byteOfToken(std::string_view spelling) {
  if (spelling.size() != 6 || !spelling.starts_with("<0x") || spelling[5] != '>') return std::nullopt;
  int value = 0;
  for (char c : spelling.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                             : -1;
    if (digit < 0) return std::nullopt;
    value = value * 16 + digit;
  }
  return static_cast<unsigned char>(value);
}

namespace {

using nlohmann::json;
constexpr int64_t kMostIds = int64_t{1} << 27;  // hostile files name huge ids

Result<Vocabulary> vocabularyOf(const json& model) {
  const json& listed = member(model, "vocab");
  if (!listed.is_object()) return failure("tokenizer.json model.vocab", listed.type_name(), "an object from spelling to id");
  Vocabulary vocabulary;
  const auto most = std::min<int64_t>(kMostIds, static_cast<int64_t>(listed.size()) * 16 + 1'000'000);
  for (const auto& [spelling, id] : listed.items()) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() >= most)
      return failure("tokenizer.json model.vocab \"" + spelling + "\"", shortJson(id, 40), "an id from 0");
    if (vocabulary.has(id.get<int32_t>()))
      return failure("tokenizer.json model.vocab \"" + spelling + "\"", "id " + shortJson(id) + " twice", "an id of its own");
    vocabulary.add(spelling, id.get<int32_t>());
  }
  return vocabulary;
}

Result<std::unique_ptr<TokenModel>> bpe(const json& model) {
  auto vocabulary = vocabularyOf(model);
  if (!vocabulary) return tl::unexpected(vocabulary.error());
  std::vector<std::pair<std::string, std::string>> merges;
  const json& listed = member(model, "merges");
  merges.reserve(listed.size());
  for (const json& merge : listed) {
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      merges.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
      continue;
    }
    const std::string text = merge.is_string() ? merge.get<std::string>() : "";
    const size_t space = text.find(' ');
    if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos)
      return failure("tokenizer.json model.merges", shortJson(merge, 60), "two spellings");
    merges.emplace_back(text.substr(0, space), text.substr(space + 1));
  }
  BpeOptions options;
  if (member(model, "unk_token").is_string()) options.unknown = word(model, "unk_token");
  options.continuingPrefix = word(model, "continuing_subword_prefix");
  options.endSuffix = word(model, "end_of_word_suffix");
  options.fuseUnknown = flag(model, "fuse_unk", false);
  options.byteFallback = flag(model, "byte_fallback", false);
  options.ignoreMerges = flag(model, "ignore_merges", false);
  return makeBpeModel(std::move(*vocabulary), merges, std::move(options));
}

Result<std::unique_ptr<TokenModel>> unigram(const json& model) {
  Vocabulary vocabulary;
  std::vector<double> scores;
  for (const json& entry : member(model, "vocab")) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number())
      return failure("tokenizer.json model.vocab", shortJson(entry, 60), "a spelling and a score");
    vocabulary.add(entry[0].get<std::string>(), static_cast<int32_t>(scores.size()));
    scores.push_back(entry[1].get<double>());
  }
  const int64_t unknown = whole(model, "unk_id", -1);
  if (unknown >= static_cast<int64_t>(scores.size()))
    return failure("tokenizer.json model.unk_id", std::to_string(unknown), "an id of the vocabulary");
  return makeUnigramModel(std::move(vocabulary), std::move(scores),
                          unknown < 0 ? std::nullopt : std::optional(static_cast<int32_t>(unknown)),
                          flag(model, "byte_fallback", false));
}

}  // namespace

Result<std::unique_ptr<TokenModel>> makeTokenModel(const json& model) {
  if (!model.is_object()) return failure("tokenizer.json model", model.type_name(), "an object");
  std::string type = word(model, "type");
  if (type.empty())  // old files leave the type out
    type = model.contains("merges")                     ? "BPE"
           : member(model, "vocab").is_array()          ? "Unigram"
           : model.contains("max_input_chars_per_word") ? "WordPiece"
                                                        : "WordLevel";
  if (type == "BPE") return bpe(model);
  if (type == "Unigram") return unigram(model);
  if (type != "WordPiece" && type != "WordLevel")
    return failure("tokenizer.json model.type", type, "BPE, Unigram, WordPiece or WordLevel",
                   "the file may be newer than this program");
  auto vocabulary = vocabularyOf(model);
  if (!vocabulary) return tl::unexpected(vocabulary.error());
  if (type == "WordPiece")
    return makeWordPieceModel(std::move(*vocabulary), word(model, "unk_token", "[UNK]"),
                              word(model, "continuing_subword_prefix", "##"), whole(model, "max_input_chars_per_word", 100));
  return makeWordLevelModel(std::move(*vocabulary), word(model, "unk_token", "<unk>"));
}

}  // namespace headroom::engine::text
