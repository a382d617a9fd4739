// SPDX-License-Identifier: Apache-2.0
// SentencePiece's precompiled character map: a double-array trie (32-bit units, Darts-clone's layout) from a spelling to a
// NUL-terminated replacement. Blob: trie size in bytes (uint32), trie, replacements.
#include "engine/text/normalizer.h"
#include "engine/text/unicode.h"

#include <cstring>
#include <vector>

namespace headroom::engine::text {
namespace {

std::string fromBase64(const std::string& text) {
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (char c : text) {
    int value = c >= 'A' && c <= 'Z'   ? c - 'A'
                : c >= 'a' && c <= 'z' ? c - 'a' + 26
                : c >= '0' && c <= '9' ? c - '0' + 52
                : c == '+'             ? 62
                : c == '/'             ? 63
                                       : -1;
    if (value < 0) continue;
    bits = bits << 6 | static_cast<uint32_t>(value);
    if ((count += 6) >= 8) {
      count -= 8;
      bytes += static_cast<char>(bits >> count & 0xFF);
    }
  }
  return bytes;
}

class Precompiled : public Normalizer {
 public:
  Precompiled(std::vector<uint32_t> trie, std::string replacements)
      : m_trie(std::move(trie)), m_replacements(std::move(replacements)) {}

  void apply(std::string& text) const override {
    std::string out;
    out.reserve(text.size());
    const std::vector<size_t> borders = graphemeBorders(text);
    const std::string_view view = text;
    std::string_view replacement;
    for (size_t i = 0; i + 1 < borders.size(); ++i) {
      const std::string_view grapheme = view.substr(borders[i], borders[i + 1] - borders[i]);
      if (grapheme.size() < 6 && find(grapheme, replacement)) {
        out += replacement;
        continue;
      }
      for (size_t at = 0; at < grapheme.size();) {
        const size_t start = at;
        nextCharacter(grapheme, at);
        const std::string_view character = grapheme.substr(start, at - start);
        out += find(character, replacement) ? replacement : character;
      }
    }
    text = std::move(out);
  }

 private:
  // The replacement of the shortest entry that begins `key`: the tokenizers library takes the first prefix found.
  bool find(std::string_view key, std::string_view& replacement) const {
    const auto offset = [](uint32_t unit) { return unit >> 10 << ((unit & 1u << 9) >> 6); };
    if (m_trie.empty()) return false;
    size_t node = offset(m_trie[0]);
    for (char c : key) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte == 0) return false;
      node ^= byte;
      if (node >= m_trie.size()) return false;
      const uint32_t unit = m_trie[node];
      if ((unit & (1u << 31 | 0xFF)) != byte) return false;
      node ^= offset(unit);
      if (unit >> 8 & 1) {
        if (node >= m_trie.size()) return false;
        const size_t start = m_trie[node] & 0x7FFFFFFF;
        // A map that points into a character would make bytes that are no UTF-8.
        if (start >= m_replacements.size() || (static_cast<unsigned char>(m_replacements[start]) & 0xC0) == 0x80) return false;
        const size_t end = std::min(m_replacements.find('\0', start), m_replacements.size());
        replacement = std::string_view(m_replacements).substr(start, end - start);
        return true;
      }
    }
    return false;
  }

  std::vector<uint32_t> m_trie;
  std::string m_replacements;
};

}  // namespace

Result<std::unique_ptr<Normalizer>> makePrecompiledNormalizer(const std::string& base64) {
  return makeCharacterMapNormalizer(fromBase64(base64));
}

Result<std::unique_ptr<Normalizer>> makeCharacterMapNormalizer(const std::string& blob) {
  if (blob.empty()) return nullptr;
  uint32_t size = 0;
  if (blob.size() >= 4) std::memcpy(&size, blob.data(), 4);
  if (blob.size() < 4 || size > blob.size() - 4 || size % 4)
    return failure("normalizer Precompiled", fmt::format("a trie of {} bytes in a map of {}", size, blob.size()),
                   "a trie within its map");
  std::vector<uint32_t> trie(size / 4);
  if (size) std::memcpy(trie.data(), blob.data() + 4, size);
  std::string replacements = blob.substr(4 + size);
  if (!isValidUtf8(replacements)) return failure("normalizer Precompiled", "replacements that are not UTF-8", "UTF-8");
  return std::make_unique<Precompiled>(std::move(trie), std::move(replacements));
}

}  // namespace headroom::engine::text
