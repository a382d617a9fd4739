// SPDX-License-Identifier: Apache-2.0
// GPT-2's spelling of bytes: printable Latin-1 bytes stand for themselves, the other 68 for U+0100 and up (so a space is "Ġ").
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace headroom::engine::text {

// The character that spells each byte, in UTF-8.
const std::array<std::string, 256>& byteCharacters();
std::string spellBytes(std::string_view bytes);
// Appends the bytes that `spelled` stands for; false (and nothing) where a character spells no byte.
bool appendSpelledBytes(std::string_view spelled, std::string& bytes);

}  // namespace headroom::engine::text
