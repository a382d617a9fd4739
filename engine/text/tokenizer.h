// SPDX-License-Identifier: Apache-2.0
// Text to token ids and back, from tokenizer.json (with tokenizer_config.json) or from a GGUF. Immutable after open(): any thread
// may use it.
#pragma once

#include "core/result.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::engine {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  // A model folder, a tokenizer.json, or a .gguf.
  static Result<std::unique_ptr<Tokenizer>> open(const std::filesystem::path& path);

  // Text that spells a special token is that token. `addSpecial` adds what the post-processor adds (bos, eos). Invalid UTF-8
  // becomes U+FFFD.
  virtual std::vector<int32_t> encode(std::string_view text, bool addSpecial) const = 0;
  virtual std::string decode(std::span<const int32_t> ids, bool skipSpecial) const = 0;
  // The bytes a token adds to the text (partial characters possible); of a special token its spelling.
  virtual std::string tokenBytes(int32_t id) const = 0;
  // As the vocabulary spells it ("Ġthe").
  virtual std::string tokenText(int32_t id) const = 0;
  virtual std::optional<int32_t> tokenId(std::string_view vocabularySpelling) const = 0;
  virtual bool isSpecial(int32_t id) const = 0;
  virtual int64_t vocabSize() const = 0;  // ids are below it
  // End-of-sequence and end-of-turn ids that tokenizer files and generation_config.json name.
  virtual std::vector<int32_t> eosTokenIds() const = 0;
};

// Turns tokens into text as they come, whole characters only. One per stream.
class StreamDecoder {
 public:
  StreamDecoder(const Tokenizer& tokenizer, bool skipSpecial) : m_tokenizer(&tokenizer), m_skipSpecial(skipSpecial) {}
  // New text; empty while a character is unfinished. Bytes that can no longer become a character are U+FFFD at once.
  std::string push(int32_t token);
  std::string flush();              // the rest at the end, invalid bytes as U+FFFD

 private:
  std::string bytes(int32_t token) const;
  std::string textOfPending(size_t held) const;
  std::string beyondEmitted(const std::string& text) const;

  const Tokenizer* m_tokenizer;
  bool m_skipSpecial;
  std::vector<int32_t> m_pending;  // tokens since the last clean border
  size_t m_context = 0;            // how many of them were given out
  std::string m_emitted;           // text of m_pending that was given out
};

}  // namespace headroom::engine
