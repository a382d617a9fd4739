// SPDX-License-Identifier: Apache-2.0
#include "engine/text/unicode.h"

#include "core/result.h"

#include <unicode/brkiter.h>
#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/uniset.h>
#include <unicode/unistr.h>
#include <unicode/utext.h>
#include <cstring>
#include <memory>

namespace headroom::engine::text {

char32_t nextCharacter(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) -> char32_t { return i < text.size() ? static_cast<unsigned char>(text[i]) & 0x3F : 0; };
  const auto lead = static_cast<unsigned char>(text[at]);
  if (lead < 0x80) return text[at++];
  const int length = utf8Length(lead);
  const size_t start = at;
  at = std::min(at + length, text.size());
  if (length == 2) return (lead & 0x1F) << 6 | byte(start + 1);
  if (length == 3) return (lead & 0x0F) << 12 | byte(start + 1) << 6 | byte(start + 2);
  return (lead & 0x07) << 18 | byte(start + 1) << 12 | byte(start + 2) << 6 | byte(start + 3);
}

char32_t previousCharacter(std::string_view text, size_t& at) {
  do --at;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  size_t start = at;
  return nextCharacter(text, start);
}

void appendUtf8(std::string& text, char32_t c) {
  if (c < 0x80) {
    text += static_cast<char>(c);
  } else if (c < 0x800) {
    text += static_cast<char>(0xC0 | c >> 6);
    text += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    text += static_cast<char>(0xE0 | c >> 12);
    text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    text += static_cast<char>(0xF0 | c >> 18);
    text += static_cast<char>(0x80 | (c >> 12 & 0x3F));
    text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (c & 0x3F));
  }
}

std::u32string toUtf32(std::string_view text) {
  std::u32string characters;
  characters.reserve(text.size());
  for (size_t at = 0; at < text.size();) characters += nextCharacter(text, at);
  return characters;
}

std::string toUtf8(std::u32string_view characters) {
  std::string text;
  for (char32_t c : characters) appendUtf8(text, c);
  return text;
}

int64_t countCharacters(std::string_view text) {
  int64_t count = 0;
  for (char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

namespace {
// Length of the well-formed character at `at`, or minus the length of the maximal ill-formed part; `cut` tells that the text ends
// within it.
int characterOrFault(std::string_view bytes, size_t at, bool& cut) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  cut = false;
  const unsigned char lead = byte(at);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return -1;
  const int length = utf8Length(lead);
  unsigned char low = 0x80, high = 0xBF;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  for (int i = 1; i < length; ++i, low = 0x80, high = 0xBF) {
    if (at + i >= bytes.size()) {
      cut = true;
      return -i;
    }
    if (byte(at + i) < low || byte(at + i) > high) return -i;
  }
  return length;
}

size_t asciiPrefix(std::string_view bytes, size_t at) {
  for (; at + 8 <= bytes.size(); at += 8) {
    uint64_t eight;
    std::memcpy(&eight, bytes.data() + at, 8);
    if (eight & 0x8080808080808080ull) break;
  }
  while (at < bytes.size() && static_cast<unsigned char>(bytes[at]) < 0x80) ++at;
  return at;
}
}  // namespace

bool isValidUtf8(std::string_view bytes) {
  bool cut;
  for (size_t at = asciiPrefix(bytes, 0); at < bytes.size();) {
    const int length = characterOrFault(bytes, at, cut);
    if (length < 0) return false;
    at += length;
    if (length == 1) at = asciiPrefix(bytes, at);
  }
  return true;
}

std::string toValidUtf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  bool cut;
  for (size_t at = 0; at < bytes.size();) {
    const int length = characterOrFault(bytes, at, cut);
    if (length < 0)
      text += "\xEF\xBF\xBD";
    else
      text.append(bytes, at, length);
    at += std::abs(length);
  }
  return text;
}

size_t unfinishedTail(std::string_view bytes) {
  for (size_t back = 1; back <= 3 && back <= bytes.size(); ++back) {
    const auto byte = static_cast<unsigned char>(bytes[bytes.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;
    bool cut;
    const int length = characterOrFault(bytes, bytes.size() - back, cut);
    return cut && static_cast<size_t>(-length) == back ? back : 0;
  }
  return 0;
}

bool isWhitespace(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
  return u_isUWhiteSpace(static_cast<UChar32>(c));
}

bool isWord(char32_t c) {
  if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  const auto point = static_cast<UChar32>(c);
  return u_isUAlphabetic(point) || (U_GET_GC_MASK(point) & (U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK)) ||
         u_hasBinaryProperty(point, UCHAR_JOIN_CONTROL);
}

bool isMark(char32_t c) { return U_GET_GC_MASK(static_cast<UChar32>(c)) & U_GC_M_MASK; }
bool isNonSpacingMark(char32_t c) { return U_GET_GC_MASK(static_cast<UChar32>(c)) & U_GC_MN_MASK; }
bool isNumeric(char32_t c) { return U_GET_GC_MASK(static_cast<UChar32>(c)) & U_GC_N_MASK; }
bool isControl(char32_t c) { return U_GET_GC_MASK(static_cast<UChar32>(c)) & U_GC_C_MASK; }

bool isPunctuation(char32_t c) {
  if (c < 0x80) return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
  return U_GET_GC_MASK(static_cast<UChar32>(c)) & U_GC_P_MASK;
}

bool isChineseIdeograph(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

namespace {
const icu::Normalizer2& normalizer(NormalForm form) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* found = nullptr;
  switch (form) {
    case NormalForm::nfc:
      found = icu::Normalizer2::getNFCInstance(status);
      break;
    case NormalForm::nfd:
      found = icu::Normalizer2::getNFDInstance(status);
      break;
    case NormalForm::nfkc:
      found = icu::Normalizer2::getNFKCInstance(status);
      break;
    case NormalForm::nfkd:
      found = icu::Normalizer2::getNFKDInstance(status);
      break;
  }
  expects(U_SUCCESS(status) && found, "ICU lacks its normalization data");
  return *found;
}

// Models were trained with the tokenizers library, whose normalization tables are those of Unicode 9: later characters stay as
// they are.
const icu::UnicodeSet& charactersOfUnicode9() {
  static const icu::UnicodeSet* set = [] {
    UErrorCode status = U_ZERO_ERROR;
    auto* made = new icu::UnicodeSet(UNICODE_STRING_SIMPLE("[:age=9.0:]"), status);
    expects(U_SUCCESS(status), "ICU lacks its property data");
    made->freeze();
    return made;
  }();
  return *set;
}
}  // namespace

bool normalizeTo(NormalForm form, std::string_view text, std::string& out) {
  if (asciiPrefix(text, 0) == text.size()) return false;
  const icu::Normalizer2& forms = normalizer(form);
  const icu::StringPiece piece(text.data(), static_cast<int32_t>(text.size()));
  UErrorCode status = U_ZERO_ERROR;
  if (forms.isNormalizedUTF8(piece, status) && U_SUCCESS(status)) return false;
  out.clear();
  icu::StringByteSink<std::string> sink(&out, static_cast<int32_t>(text.size()));
  status = U_ZERO_ERROR;
  icu::FilteredNormalizer2(forms, charactersOfUnicode9()).normalizeUTF8(0, piece, sink, nullptr, status);
  expects(U_SUCCESS(status), "ICU could not normalize valid UTF-8");
  return true;
}

std::string lowercased(std::string_view text) {
  std::string lower;
  lower.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const char32_t c = nextCharacter(text, at);
    appendUtf8(lower, c == 0x130 ? U'i' : static_cast<char32_t>(u_tolower(static_cast<UChar32>(c))));
    if (c == 0x130) appendUtf8(lower, 0x307);  // the one character whose lower case is two, whatever stands around it
  }
  return lower;
}

std::string upperText(std::string_view text) {
  std::string out;
  icu::UnicodeString::fromUTF8(icu::StringPiece(text.data(), static_cast<int32_t>(text.size())))
      .toUpper(icu::Locale::getRoot())
      .toUTF8String(out);
  return out;
}

std::string lowerText(std::string_view text) {
  std::string out;
  icu::UnicodeString::fromUTF8(icu::StringPiece(text.data(), static_cast<int32_t>(text.size())))
      .toLower(icu::Locale::getRoot())
      .toUTF8String(out);
  return out;
}

std::string foldedText(std::string_view text) {
  std::string out;
  icu::UnicodeString::fromUTF8(icu::StringPiece(text.data(), static_cast<int32_t>(text.size()))).foldCase().toUTF8String(out);
  return out;
}

std::vector<size_t> graphemeBorders(std::string_view text) {
  UErrorCode status = U_ZERO_ERROR;
  std::unique_ptr<icu::BreakIterator> breaks(icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), status));
  UText view = UTEXT_INITIALIZER;
  utext_openUTF8(&view, text.data(), static_cast<int64_t>(text.size()), &status);
  std::vector<size_t> borders;
  if (U_SUCCESS(status) && breaks) {
    breaks->setText(&view, status);
    for (int32_t at = breaks->first(); at != icu::BreakIterator::DONE; at = breaks->next()) borders.push_back(at);
  }
  utext_close(&view);
  expects(U_SUCCESS(status), "ICU lacks its grapheme rules");
  if (borders.empty() || borders.back() != text.size()) borders.push_back(text.size());
  return borders;
}

}  // namespace headroom::engine::text
