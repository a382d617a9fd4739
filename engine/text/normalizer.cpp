// SPDX-License-Identifier: Apache-2.0
#include "engine/text/normalizer.h"

#include "engine/text/byte_level.h"
#include "engine/text/json_fields.h"
#include "engine/text/pattern.h"
#include "engine/text/unicode.h"

#include <functional>
#include <vector>

namespace headroom::engine::text {
namespace {

using nlohmann::json;
using Made = Result<std::unique_ptr<Normalizer>>;

// A normalizer from a function that changes the text in place.
class Change : public Normalizer {
 public:
  explicit Change(std::function<void(std::string&)> change) : m_change(std::move(change)) {}
  void apply(std::string& text) const override { m_change(text); }

 private:
  std::function<void(std::string&)> m_change;
};

Made change(std::function<void(std::string&)> function) { return std::make_unique<Change>(std::move(function)); }

Made unicodeForm(NormalForm form) {
  return change([form](std::string& text) {
    std::string out;
    if (normalizeTo(form, text, out)) text = std::move(out);
  });
}

// Every character through `write`, which appends what it becomes.
Made perCharacter(std::function<void(char32_t, std::string&)> write) {
  return change([write = std::move(write)](std::string& text) {
    std::string out;
    out.reserve(text.size());
    for (size_t at = 0; at < text.size();) write(nextCharacter(text, at), out);
    text = std::move(out);
  });
}

Made strip(bool left, bool right) {
  return change([=](std::string& text) {
    size_t begin = 0, end = text.size();
    for (size_t at = 0; left && at < end && isWhitespace(nextCharacter(text, at)); begin = at) {
    }
    for (size_t at = end; right && at > begin && isWhitespace(previousCharacter(text, at)); end = at) {
    }
    text = text.substr(begin, end - begin);
  });
}

void removeMarks(std::string& text, bool onlyNonSpacing) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const char32_t c = nextCharacter(text, at);
    if (onlyNonSpacing ? isNonSpacingMark(c) : isMark(c)) continue;
    out.append(text, start, at - start);
  }
  text = std::move(out);
}

Made bert(const json& json) {
  const bool clean = flag(json, "clean_text", true), chinese = flag(json, "handle_chinese_chars", true),
             lower = flag(json, "lowercase", true);
  const bool stripAccents = flag(json, "strip_accents", lower);
  return change([=](std::string& text) {
    std::string out;
    for (size_t at = 0; at < text.size();) {
      char32_t c = nextCharacter(text, at);
      if (clean) {
        const bool blank = c == '\t' || c == '\n' || c == '\r';
        if (c == 0 || c == kReplacement || (isControl(c) && !blank)) continue;
        if (blank || isWhitespace(c)) c = ' ';
      }
      const bool apart = chinese && isChineseIdeograph(c);
      if (apart) out += ' ';
      appendUtf8(out, c);
      if (apart) out += ' ';
    }
    text = std::move(out);
    if (stripAccents) {
      std::string decomposed;
      if (normalizeTo(NormalForm::nfd, text, decomposed)) text = std::move(decomposed);
      removeMarks(text, true);
    }
    if (lower) text = lowercased(text);
  });
}

// SentencePiece's NMT clean-up: some controls vanish, every kind of space is one.
void writeNmt(char32_t c, std::string& out) {
  if ((c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F) return;
  const bool space = c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) || c == 0x2028 ||
                     c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
  appendUtf8(out, space ? U' ' : c);
}

Made sequence(const json& json) {
  std::vector<std::unique_ptr<Normalizer>> steps;
  for (const auto& step : member(json, "normalizers")) {
    auto made = makeNormalizer(step);
    if (!made) return made;
    steps.push_back(std::move(*made));
  }
  return makeNormalizerSequence(std::move(steps));
}

}  // namespace

std::unique_ptr<Normalizer> makeNormalizerSequence(std::vector<std::unique_ptr<Normalizer>> steps) {
  std::erase(steps, nullptr);
  if (steps.empty()) return nullptr;
  if (steps.size() == 1) return std::move(steps[0]);
  auto shared = std::make_shared<std::vector<std::unique_ptr<Normalizer>>>(std::move(steps));
  return std::make_unique<Change>([shared](std::string& text) {
    for (const auto& step : *shared) step->apply(text);
  });
}

Made makeNormalizer(const json& json) {
  if (json.is_null()) return nullptr;
  if (!json.is_object()) return failure("normalizer", shortJson(json, 80), "an object");
  const std::string type = word(json, "type");
  if (type == "Sequence") return sequence(json);
  if (type == "NFC") return unicodeForm(NormalForm::nfc);
  if (type == "NFD") return unicodeForm(NormalForm::nfd);
  if (type == "NFKC") return unicodeForm(NormalForm::nfkc);
  if (type == "NFKD") return unicodeForm(NormalForm::nfkd);
  if (type == "Lowercase") return change([](std::string& text) { text = lowercased(text); });
  if (type == "Strip") return strip(flag(json, "strip_left", true), flag(json, "strip_right", true));
  if (type == "StripAccents") return change([](std::string& text) { removeMarks(text, false); });
  if (type == "Nmt") return perCharacter(writeNmt);
  if (type == "BertNormalizer") return bert(json);
  if (type == "ByteLevel") return change([](std::string& text) { text = spellBytes(text); });
  if (type == "Precompiled") return makePrecompiledNormalizer(word(json, "precompiled_charsmap"));
  if (type == "Prepend")
    return change([prefix = word(json, "prepend")](std::string& text) {
      if (!text.empty()) text.insert(0, prefix);
    });
  if (type == "Replace") {
    auto pattern = Pattern::fromJson(member(json, "pattern"));
    if (!pattern) return tl::unexpected(pattern.error());
    return change([pattern = std::shared_ptr<Pattern>(std::move(*pattern)), by = word(json, "content")](std::string& text) {
      text = pattern->replaced(text, by);
    });
  }
  return failure("normalizer", type.empty() ? shortJson(json, 80) : type, "a normalizer of the tokenizers library",
                 "the file may be newer than this program");
}

}  // namespace headroom::engine::text
