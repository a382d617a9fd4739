// SPDX-License-Identifier: Apache-2.0
// The patterns are those of the models' own tokenizer.json files. Names: https://github.com/ggml-org/llama.cpp
// (get_vocab_base_pre in its conversion script writes them).
#include "engine/text/gguf_splitting.h"

#include <map>
#include <nlohmann/json.hpp>

namespace headroom::engine::text {
namespace {

#define HEADROOM_CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define HEADROOM_UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define HEADROOM_LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define HEADROOM_LINES_AND_SPACES R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"

constexpr const char* kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* kDigit = R"(\p{N})";
constexpr const char* kThreeDigits = R"(\p{N}{1,3})";
constexpr const char* kLlama3 =
    HEADROOM_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)" HEADROOM_LINES_AND_SPACES;
constexpr const char* kQwen2 =
    HEADROOM_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)" HEADROOM_LINES_AND_SPACES;
constexpr const char* kQwen35 =
    HEADROOM_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)" HEADROOM_LINES_AND_SPACES;
constexpr const char* kTekken = R"([^\r\n\p{L}\p{N}]?)" HEADROOM_UPPER "*" HEADROOM_LOWER R"(+|[^\r\n\p{L}\p{N}]?)" HEADROOM_UPPER
                                "+" HEADROOM_LOWER R"(*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*)" HEADROOM_LINES_AND_SPACES;
constexpr const char* kGpt4o =
    R"([^\r\n\p{L}\p{N}]?)" HEADROOM_UPPER "*" HEADROOM_LOWER "+" HEADROOM_CONTRACTIONS R"(?|[^\r\n\p{L}\p{N}]?)" HEADROOM_UPPER
    "+" HEADROOM_LOWER "*" HEADROOM_CONTRACTIONS R"(?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*)" HEADROOM_LINES_AND_SPACES;
constexpr const char* kSeedCoder =
    HEADROOM_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+)" HEADROOM_LINES_AND_SPACES;
constexpr const char* kBailing =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr const char* kMiniCpm =
    HEADROOM_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*)" HEADROOM_LINES_AND_SPACES;
constexpr const char* kDeepSeekV3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*)" HEADROOM_LINES_AND_SPACES;
constexpr const char* kKanaAndHan = R"([一-龥぀-ゟ゠-ヿ]+)";
constexpr const char* kHanAndHangul = R"([一-龥ࠀ-一가-퟿]+)";
// Letters that have a case; escapes where Unicode normalization would change the character.
constexpr const char* kDeepSeekLetters =
    R"(\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\x{1F7D}ᾀ-ᾴᾶ-ᾼ\x{1FBE}ῂ-ῄῆ-ῌῐ-\x{1FD3}ῖ-\x{1FDB}ῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\x{2126}ℨ\x{212A}-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+)";
constexpr const char* kBloom = R"( ?[^(\s|.,!?…。，、।۔،)]+)";

#undef HEADROOM_CONTRACTIONS
#undef HEADROOM_UPPER
#undef HEADROOM_LOWER
#undef HEADROOM_LINES_AND_SPACES

std::map<std::string_view, GgufSplitting> table() {
  std::map<std::string_view, GgufSplitting> known;
  const auto name = [&](std::initializer_list<std::string_view> names, const GgufSplitting& splitting) {
    for (std::string_view one : names) known.emplace(one, splitting);
  };
  name({"default"}, {{R"([\p{P}\$\+<=>\^~\|]+)", kGpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"}});
  name({"gpt-2", "phi-2", "mpt", "olmo", "jais", "trillion", "granite-docling", "gigachat", "exaone4", "mellum", "a.x-4.0",
        "modern-bert", "roberta-bpe", "jina-es", "jina-de", "jina-v1-en", "jina-v2-es", "jina-v2-de", "jina-v2-code"},
       {{kGpt2}});
  name({"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2"}, {{kDigit, kGpt2}});
  name({"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"},
       {{kLlama3}, true, true});
  name({"smaug-bpe", "dbrx", "chatglm-bpe", "glm4"}, {{kLlama3}});
  name({"qwen2"}, {{kQwen2}, false, false, true});
  name({"deepseek-r1-qwen", "stablelm2", "hunyuan", "megrez", "kormo", "f2llmv2", "solar-open"}, {{kQwen2}});
  name({"qwen35"}, {{kQwen35}, false, false, true});
  name({"tekken"}, {{kTekken}, true, true});
  name({"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"}, {{kGpt4o}});
  name({"tiny_aya", "cohere2moe"}, {{R"(\d{1,3}(?=(?:\d{3})*\b))", kGpt4o}});
  name({"deepseek-llm"},
       {{R"([\r\n])", kDeepSeekLetters, R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)", R"(\s+$)", kHanAndHangul, R"(\p{N}+)"}});
  name({"deepseek-coder"}, {{R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kHanAndHangul, kDigit}});
  name({"deepseek-v3", "hunyuan-dense", "joyai-llm"}, {{kThreeDigits, kKanaAndHan, kDeepSeekV3}});
  name({"falcon"}, {{R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2, "[0-9][0-9][0-9]"}});
  name({"poro-chat", "bloom", "gpt3-finnish"}, {{kBloom}});
  name({"viking"}, {{kBloom, kDigit}});
  name({"bailingmoe", "bailingmoe2", "llada-moe"}, {{kBailing}});
  name({"seed-coder"}, {{kSeedCoder}});
  name({"grok-2"}, {{kQwen2}});
  name({"minicpm5"}, {{kThreeDigits, kMiniCpm}, true});
  return known;
}

const std::map<std::string_view, GgufSplitting>& known() {
  static const auto made = table();
  return made;
}

}  // namespace

const GgufSplitting* ggufSplitting(std::string_view pre) {
  const auto found = known().find(pre);
  return found == known().end() ? nullptr : &found->second;
}

const GgufSplitting& defaultGgufSplitting() { return known().at("default"); }

nlohmann::json preTokenizerOf(const GgufSplitting& splitting) {
  auto steps = nlohmann::json::array();
  for (const char* pattern : splitting.patterns)
    steps.push_back({{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}});
  steps.push_back({{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}});
  return {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}};
}

}  // namespace headroom::engine::text
