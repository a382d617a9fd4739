// SPDX-License-Identifier: Apache-2.0
// UTF-8 and the character classes that tokenizers and templates ask for. Classes come from ICU; White_Space and Word are those of
// the Unicode properties (Word: Alphabetic, Mark, Decimal_Number, Connector_Punctuation, Join_Control).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::engine::text {

inline constexpr char32_t kReplacement = 0xFFFD;

// Number of bytes of the character that begins with `lead`, in valid UTF-8.
inline int utf8Length(unsigned char lead) { return lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4; }

// The character at text[at] of valid UTF-8; `at` moves behind it.
char32_t nextCharacter(std::string_view text, size_t& at);
// The character that ends before `at`; `at` moves before it.
char32_t previousCharacter(std::string_view text, size_t& at);
void appendUtf8(std::string& text, char32_t character);
std::u32string toUtf32(std::string_view text);
std::string toUtf8(std::u32string_view text);
int64_t countCharacters(std::string_view text);

bool isValidUtf8(std::string_view bytes);
// Every maximal ill-formed part becomes one U+FFFD, as the Unicode standard (3.9, U+FFFD substitution) recommends.
std::string toValidUtf8(std::string_view bytes);
// How many bytes at the end begin a character that is not whole yet (0 to 3).
size_t unfinishedTail(std::string_view bytes);

bool isWhitespace(char32_t character);
bool isWord(char32_t character);
bool isMark(char32_t character);              // Mn, Mc, Me
bool isNonSpacingMark(char32_t character);    // Mn
bool isNumeric(char32_t character);           // Nd, Nl, No
bool isPunctuation(char32_t character);       // ASCII punctuation and symbols, or a P category
bool isControl(char32_t character);           // Cc, Cf, Cs, Co, Cn
bool isChineseIdeograph(char32_t character);  // the blocks that BERT sets apart

enum class NormalForm { nfc, nfd, nfkc, nfkd };
// False where the text already is in that form (`out` is then untouched).
bool normalizeTo(NormalForm form, std::string_view text, std::string& out);
std::string lowercased(std::string_view text);  // character by character, without context
// Whole texts, with the context that a final sigma needs.
std::string upperText(std::string_view text);
std::string lowerText(std::string_view text);
std::string foldedText(std::string_view text);
// Byte offsets where extended grapheme clusters begin, and the end of the text.
std::vector<size_t> graphemeBorders(std::string_view text);

}  // namespace headroom::engine::text
