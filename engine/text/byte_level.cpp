// SPDX-License-Identifier: Apache-2.0
#include "engine/text/byte_level.h"

#include "engine/text/unicode.h"

namespace headroom::engine::text {
namespace {
struct Tables {
  std::array<std::string, 256> characters;
  std::array<int, 0x180> bytes;
  Tables() {
    bytes.fill(-1);
    char32_t next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      const bool itself = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      const char32_t character = itself ? static_cast<char32_t>(byte) : next++;
      appendUtf8(characters[byte], character);
      bytes[character] = byte;
    }
  }
};
const Tables& tables() {
  static const Tables made;
  return made;
}
}  // namespace

const std::array<std::string, 256>& byteCharacters() { return tables().characters; }

std::string spellBytes(std::string_view bytes) {
  std::string spelled;
  for (char byte : bytes) spelled += tables().characters[static_cast<unsigned char>(byte)];
  return spelled;
}

bool appendSpelledBytes(std::string_view spelled, std::string& bytes) {
  const size_t before = bytes.size();
  const auto& known = tables().bytes;
  for (size_t at = 0; at < spelled.size();) {
    const char32_t character = nextCharacter(spelled, at);
    if (character >= known.size() || known[character] < 0) {
      bytes.resize(before);
      return false;
    }
    bytes += static_cast<char>(known[character]);
  }
  return true;
}

}  // namespace headroom::engine::text
