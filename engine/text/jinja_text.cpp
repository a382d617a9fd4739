// SPDX-License-Identifier: Apache-2.0
#include "engine/text/jinja_text.h"

#include "engine/text/jinja_value.h"
#include "engine/text/unicode.h"

#include <unicode/uchar.h>
#include <algorithm>
#include <cstring>

namespace headroom::engine::jinja {

size_t findText(std::string_view text, std::string_view what, size_t from) {
  if (from > text.size()) return std::string_view::npos;
  const void* found = memmem(text.data() + from, text.size() - from, what.data(), what.size());
  return found ? static_cast<size_t>(static_cast<const char*>(found) - text.data()) : std::string_view::npos;
}

size_t findLastText(std::string_view text, std::string_view what) {
  constexpr size_t kShort = 16;  // for which rfind is linear too
  if (what.size() <= kShort) return text.rfind(what);
  const std::string backwards(text.rbegin(), text.rend());
  const size_t found = findText(backwards, std::string(what.rbegin(), what.rend()));
  return found == std::string_view::npos ? found : text.size() - found - what.size();
}

size_t byteOffset(std::string_view text, int64_t character) {
  size_t at = 0;
  for (; character > 0 && at < text.size(); --character) at += text::utf8Length(static_cast<unsigned char>(text[at]));
  return std::min(at, text.size());
}

bool isPythonSpace(char32_t c) { return text::isWhitespace(c) || (c >= 0x1C && c <= 0x1F); }
bool isLetter(char32_t c) { return U_GET_GC_MASK(static_cast<UChar32>(c)) & U_GC_L_MASK; }
bool isDecimal(char32_t c) { return U_GET_GC_MASK(static_cast<UChar32>(c)) & U_GC_ND_MASK; }
bool isDigit(char32_t c) {
  const auto type = u_getIntPropertyValue(static_cast<UChar32>(c), UCHAR_NUMERIC_TYPE);
  return type == U_NT_DECIMAL || type == U_NT_DIGIT;
}
bool isLetterOrDigit(char32_t c) { return isLetter(c) || text::isNumeric(c); }

bool isCased(std::string_view source, bool upper) {
  bool any = false;
  for (size_t at = 0; at < source.size();) {
    const auto c = static_cast<UChar32>(text::nextCharacter(source, at));
    const bool isUpper = u_isUUppercase(c), isLower = u_isULowercase(c), isTitle = u_charType(c) == U_TITLECASE_LETTER;
    if (isTitle || (upper ? isLower : isUpper)) return false;
    any |= upper ? isUpper : isLower;
  }
  return any;
}

std::string strip(std::string_view source, const std::optional<std::string>& characters, bool left, bool right) {
  std::u32string set = characters ? text::toUtf32(*characters) : std::u32string();
  std::sort(set.begin(), set.end());
  const auto goes = [&](char32_t c) { return characters ? std::binary_search(set.begin(), set.end(), c) : isPythonSpace(c); };
  size_t begin = 0, end = source.size();
  for (size_t at = 0; left && at < end && goes(text::nextCharacter(source, at)); begin = at) {
  }
  for (size_t at = end; right && at > begin && goes(text::previousCharacter(source, at)); end = at) {
  }
  return std::string(source.substr(begin, end - begin));
}

namespace {
std::string titledCharacter(std::string_view character) {
  size_t at = 0;
  const auto c = static_cast<UChar32>(text::nextCharacter(character, at));
  const UChar32 title = u_totitle(c);
  std::string upper = text::upperText(character);
  if (text::countCharacters(upper) > 1 && title == c)
    return capitalized(upper);  // ß and its like have no title form of one character
  std::string out;
  text::appendUtf8(out, static_cast<char32_t>(title));
  return out;
}
}  // namespace

std::string capitalized(std::string_view source) {
  if (source.empty()) return {};
  const size_t first = byteOffset(source, 1);
  return titledCharacter(source.substr(0, first)) + text::lowerText(source.substr(first));
}

std::string titleText(std::string_view source) {
  std::string out;
  bool previousCased = false;
  for (size_t at = 0; at < source.size();) {
    const size_t start = at;
    const auto c = static_cast<UChar32>(text::nextCharacter(source, at));
    if (c < 0x80) {
      out += static_cast<char>(previousCased ? u_tolower(c) : u_toupper(c));
      previousCased = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
      continue;
    }
    const std::string_view character = source.substr(start, at - start);
    out += previousCased ? text::lowerText(character) : titledCharacter(character);
    previousCased = u_hasBinaryProperty(c, UCHAR_CASED);
  }
  return out;
}

std::string swappedCase(std::string_view source) {
  std::string out;
  for (size_t at = 0; at < source.size();) {
    const size_t start = at;
    const auto c = static_cast<UChar32>(text::nextCharacter(source, at));
    if (c < 0x80) {
      out += static_cast<char>(c >= 'A' && c <= 'Z' ? u_tolower(c) : u_toupper(c));
      continue;
    }
    const std::string_view character = source.substr(start, at - start);
    out += u_isUUppercase(c)   ? text::lowerText(character)
           : u_isULowercase(c) ? text::upperText(character)
                               : std::string(character);
  }
  return out;
}

std::string pad(const std::string& source, int64_t width, const std::string& fill, double leftShare) {
  const int64_t missing = std::max<int64_t>(width, 0) - text::countCharacters(source);
  if (missing <= 0) return source;
  checkSize(missing > static_cast<int64_t>(kMostBytes) ? kMostBytes + 1
                                                       : source.size() + static_cast<size_t>(missing) * fill.size());
  // str.center puts the odd one on the left where the width is odd.
  const int64_t left =
      leftShare == 0.5 ? missing / 2 + (missing & width & 1) : static_cast<int64_t>(leftShare * static_cast<double>(missing));
  std::string out;
  for (int64_t i = 0; i < left; ++i) out += fill;
  out += source;
  for (int64_t i = left; i < missing; ++i) out += fill;
  return out;
}

std::string expandedTabs(std::string_view source, int64_t width) {
  std::string out;
  int64_t column = 0;
  for (size_t at = 0; at < source.size();) {
    const size_t start = at;
    const char32_t c = text::nextCharacter(source, at);
    if (c == '\t') {
      const int64_t spaces = width > 0 ? width - column % width : 0;
      checkSize(out.size() + static_cast<size_t>(spaces));
      out.append(static_cast<size_t>(spaces), ' ');
      column += spaces;
      continue;
    }
    column = c == '\n' || c == '\r' ? 0 : column + 1;
    out.append(source, start, at - start);
  }
  return out;
}

std::string replaced(const std::string& source, const std::string& what, const std::string& by, int64_t most) {
  std::string out;
  size_t at = 0;
  for (int64_t count = 0; most < 0 || count < most; ++count) {
    if (what.empty()) {  // between all characters
      if (at > source.size()) break;
      out += by;
      const size_t end =
          at < source.size() ? std::min(source.size(), at + text::utf8Length(static_cast<unsigned char>(source[at]))) : at;
      out.append(source, at, end - at);
      at = end == at ? source.size() + 1 : end;
    } else {
      const size_t found = findText(source, what, at);
      if (found == std::string::npos) break;
      out.append(source, at, found - at);
      out += by;
      at = found + what.size();
    }
    checkSize(out.size());
  }
  if (at < source.size()) out.append(source, at);
  return out;
}

namespace {
// Parts are kept as values: their number is limited like other sizes.
void addPart(std::vector<std::string>& parts, std::string_view part) {
  checkSize((parts.size() + 1) * sizeof(Value));
  parts.emplace_back(part);
}
}  // namespace

std::vector<std::string> splitAt(const std::string& source, const std::string& separator, int64_t most, bool fromRight) {
  std::vector<std::string> parts;
  if (fromRight) {
    const std::string backwards(source.rbegin(), source.rend());
    parts = splitAt(backwards, std::string(separator.rbegin(), separator.rend()), most, false);
    for (std::string& part : parts) std::reverse(part.begin(), part.end());
    std::reverse(parts.begin(), parts.end());
    return parts;
  }
  size_t begin = 0;
  for (size_t found = findText(source, separator);
       found != std::string::npos && (most < 0 || static_cast<int64_t>(parts.size()) < most);
       found = findText(source, separator, begin)) {
    addPart(parts, std::string_view(source).substr(begin, found - begin));
    begin = found + separator.size();
  }
  addPart(parts, std::string_view(source).substr(begin));
  return parts;
}

std::vector<std::string> splitAtSpaces(const std::string& source, int64_t most, bool fromRight) {
  std::vector<std::string> parts;
  const std::string_view view = source;
  const auto full = [&] { return most >= 0 && static_cast<int64_t>(parts.size()) >= most; };
  if (!fromRight) {
    std::string_view rest = view;
    while (true) {
      size_t begin = 0;
      for (size_t at = 0; at < rest.size() && isPythonSpace(text::nextCharacter(rest, at)); begin = at) {
      }
      rest.remove_prefix(begin);
      if (rest.empty()) return parts;
      if (full()) break;
      size_t end = 0;
      for (size_t at = 0; at < rest.size() && !isPythonSpace(text::nextCharacter(rest, at)); end = at) {
      }
      addPart(parts, rest.substr(0, end));
      rest.remove_prefix(end);
    }
    parts.emplace_back(rest);
    return parts;
  }
  std::string_view rest = view;
  while (true) {
    size_t end = rest.size();
    for (size_t at = end; at > 0 && isPythonSpace(text::previousCharacter(rest, at)); end = at) {
    }
    rest = rest.substr(0, end);
    if (rest.empty()) break;
    if (full()) {
      parts.emplace_back(rest);
      break;
    }
    size_t begin = rest.size();
    for (size_t at = begin; at > 0 && !isPythonSpace(text::previousCharacter(rest, at)); begin = at) {
    }
    addPart(parts, rest.substr(begin));
    rest = rest.substr(0, begin);
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string> splitLines(std::string_view source, bool keepEnds) {
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t at = 0; at < source.size();) {
    const size_t start = at;
    const char32_t c = text::nextCharacter(source, at);
    if (!((c >= 0xA && c <= 0xD) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029)) continue;
    if (c == '\r' && at < source.size() && source[at] == '\n') ++at;
    addPart(lines, source.substr(begin, (keepEnds ? at : start) - begin));
    begin = at;
  }
  if (begin < source.size()) lines.emplace_back(source.substr(begin));
  return lines;
}

}  // namespace headroom::engine::jinja
