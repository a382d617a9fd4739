// SPDX-License-Identifier: Apache-2.0
// Python's operations on text that methods and filters share. Positions and widths count characters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::engine::jinja {

// Where `what` first begins at or behind `from`, or last ends at or before `end`; npos where nowhere. In linear time, which
// std::string::find is not.
size_t findText(std::string_view text, std::string_view what, size_t from = 0);
size_t findLastText(std::string_view text, std::string_view what);
size_t byteOffset(std::string_view text, int64_t character);
bool isPythonSpace(char32_t character);  // str.isspace: White_Space and U+001C to U+001F
bool isLetter(char32_t character);
bool isDigit(char32_t character);
bool isDecimal(char32_t character);
bool isLetterOrDigit(char32_t character);
bool isCased(std::string_view text, bool upper);  // str.isupper, str.islower
std::string strip(std::string_view text, const std::optional<std::string>& characters, bool left, bool right);
std::string capitalized(std::string_view text);
std::string titleText(std::string_view text);
std::string swappedCase(std::string_view text);
std::string pad(const std::string& text, int64_t width, const std::string& fill, double leftShare);
std::string expandedTabs(std::string_view text, int64_t width);
std::string replaced(const std::string& text, const std::string& what, const std::string& by, int64_t most);
std::vector<std::string> splitAt(const std::string& text, const std::string& separator, int64_t most, bool fromRight);
std::vector<std::string> splitAtSpaces(const std::string& text, int64_t most, bool fromRight);
std::vector<std::string> splitLines(std::string_view text, bool keepEnds);

}  // namespace headroom::engine::jinja
