// SPDX-License-Identifier: Apache-2.0
#include "engine/text/token_decoder.h"

#include "engine/text/byte_level.h"
#include "engine/text/json_fields.h"
#include "engine/text/pattern.h"
#include "engine/text/token_model.h"
#include "engine/text/unicode.h"

#include <algorithm>

namespace headroom::engine::text {
namespace {

using nlohmann::json;
using Made = Result<std::unique_ptr<TokenDecoder>>;

std::string replaceAll(std::string text, std::string_view what, std::string_view by) {
  if (what.empty()) return text;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

class ByteLevel : public TokenDecoder {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    std::string all;
    for (const std::string& token : tokens)
      if (!appendSpelledBytes(token, all)) all += token;
    tokens.assign(1, isValidUtf8(all) ? std::move(all) : toValidUtf8(all));
  }
  std::string bytes(std::string token) const override {
    std::string out;
    return appendSpelledBytes(token, out) ? out : token;
  }
};

class ByteFallback : public TokenDecoder {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    std::vector<std::string> out;
    std::string run;
    const auto finish = [&] {
      if (run.empty()) return;
      if (isValidUtf8(run))
        out.push_back(run);
      else
        for (size_t i = 0; i < run.size(); ++i) out.emplace_back("\xEF\xBF\xBD");
      run.clear();
    };
    for (std::string& token : tokens) {
      if (const auto byte = byteOfToken(token)) {
        run += static_cast<char>(*byte);
      } else {
        finish();
        out.push_back(std::move(token));
      }
    }
    finish();
    tokens = std::move(out);
  }
  std::string bytes(std::string token) const override {
    const auto byte = byteOfToken(token);
    return byte ? std::string(1, static_cast<char>(*byte)) : token;
  }
};

class Fuse : public TokenDecoder {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    std::string all;
    for (const std::string& token : tokens) all += token;
    tokens.assign(1, std::move(all));
  }
  std::string bytes(std::string token) const override { return token; }
};

class Strip : public TokenDecoder {
 public:
  Strip(std::string content, int64_t start, int64_t stop) : m_content(std::move(content)), m_start(start), m_stop(stop) {}
  void apply(std::vector<std::string>& tokens) const override {
    if (m_content.empty()) return;
    for (std::string& token : tokens) {
      size_t begin = 0, end = token.size();
      for (int64_t i = 0; i < m_start && std::string_view(token).substr(begin, end - begin).starts_with(m_content); ++i)
        begin += m_content.size();
      for (int64_t i = 0; i < m_stop && std::string_view(token).substr(begin, end - begin).ends_with(m_content); ++i)
        end -= m_content.size();
      token = token.substr(begin, end - begin);
    }
  }
  std::string bytes(std::string token) const override { return token; }

 private:
  std::string m_content;
  int64_t m_start, m_stop;
};

class Replace : public TokenDecoder {
 public:
  Replace(std::unique_ptr<Pattern> pattern, std::string by) : m_pattern(std::move(pattern)), m_by(std::move(by)) {}
  void apply(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) token = m_pattern->replaced(token, m_by);
  }
  std::string bytes(std::string token) const override { return isValidUtf8(token) ? m_pattern->replaced(token, m_by) : token; }

 private:
  std::unique_ptr<Pattern> m_pattern;
  std::string m_by;
};

class Metaspace : public TokenDecoder {
 public:
  Metaspace(std::string replacement, bool dropsFirst) : m_replacement(std::move(replacement)), m_dropsFirst(dropsFirst) {}
  void apply(std::vector<std::string>& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = replaceAll(std::move(tokens[i]), m_replacement, i == 0 && m_dropsFirst ? "" : " ");
  }
  std::string bytes(std::string token) const override { return replaceAll(std::move(token), m_replacement, " "); }

 private:
  std::string m_replacement;
  bool m_dropsFirst;
};

// Undoes the spaces that word pieces leave before punctuation and in contractions.
std::string cleanedUp(std::string text) {
  static constexpr std::pair<const char*, const char*> kRules[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [what, by] : kRules) text = replaceAll(std::move(text), what, by);
  return text;
}

class WordPiece : public TokenDecoder {
 public:
  WordPiece(std::string prefix, bool cleanup) : m_prefix(std::move(prefix)), m_cleanup(cleanup) {}
  void apply(std::vector<std::string>& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (i) tokens[i] = bytes(std::move(tokens[i]));
      if (m_cleanup) tokens[i] = cleanedUp(std::move(tokens[i]));
    }
  }
  std::string bytes(std::string token) const override {
    return token.starts_with(m_prefix) ? token.substr(m_prefix.size()) : " " + token;
  }

 private:
  std::string m_prefix;
  bool m_cleanup;
};

class BpeSuffix : public TokenDecoder {
 public:
  explicit BpeSuffix(std::string suffix) : m_suffix(std::move(suffix)) {}
  void apply(std::vector<std::string>& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = replaceAll(std::move(tokens[i]), m_suffix, i + 1 == tokens.size() ? "" : " ");
  }
  std::string bytes(std::string token) const override { return replaceAll(std::move(token), m_suffix, " "); }

 private:
  std::string m_suffix;
};

class Ctc : public TokenDecoder {
 public:
  Ctc(std::string pad, std::string delimiter, bool cleanup)
      : m_pad(std::move(pad)), m_delimiter(std::move(delimiter)), m_cleanup(cleanup) {}
  void apply(std::vector<std::string>& tokens) const override {
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    for (std::string& token : tokens) token = bytes(std::move(token));
    std::erase(tokens, "");
  }
  std::string bytes(std::string token) const override {
    token = replaceAll(std::move(token), m_pad, "");
    return m_cleanup ? replaceAll(cleanedUp(std::move(token)), m_delimiter, " ") : token;
  }

 private:
  std::string m_pad, m_delimiter;
  bool m_cleanup;
};

class Sequence : public TokenDecoder {
 public:
  explicit Sequence(std::vector<std::unique_ptr<TokenDecoder>> steps) : m_steps(std::move(steps)) {}
  void apply(std::vector<std::string>& tokens) const override {
    for (const auto& step : m_steps) step->apply(tokens);
  }
  std::string bytes(std::string token) const override {
    for (const auto& step : m_steps) token = step->bytes(std::move(token));
    return token;
  }

 private:
  std::vector<std::unique_ptr<TokenDecoder>> m_steps;
};

Made replace(const json& json) {
  auto pattern = Pattern::fromJson(member(json, "pattern"));
  if (!pattern) return tl::unexpected(pattern.error());
  return std::make_unique<Replace>(std::move(*pattern), word(json, "content"));
}

Made metaspace(const json& json) {
  std::string prepend = word(json, "prepend_scheme", "always");
  if (!json.contains("prepend_scheme") && !flag(json, "add_prefix_space", true)) prepend = "never";
  return std::make_unique<Metaspace>(word(json, "replacement", "▁"), prepend != "never");
}

Made sequence(const json& json) {
  std::vector<std::unique_ptr<TokenDecoder>> steps;
  for (const auto& step : member(json, "decoders")) {
    auto made = makeTokenDecoder(step);
    if (!made) return made;
    if (*made) steps.push_back(std::move(*made));
  }
  return std::make_unique<Sequence>(std::move(steps));
}

}  // namespace

Made makeTokenDecoder(const json& json) {
  if (json.is_null()) return nullptr;
  const std::string type = json.is_object() ? word(json, "type") : "";
  if (type == "Sequence") return sequence(json);
  if (type == "ByteLevel") return std::make_unique<ByteLevel>();
  if (type == "ByteFallback") return std::make_unique<ByteFallback>();
  if (type == "Fuse") return std::make_unique<Fuse>();
  if (type == "Strip")
    return std::make_unique<Strip>(word(json, "content", " "), whole(json, "start", 0), whole(json, "stop", 0));
  if (type == "Replace") return replace(json);
  if (type == "Metaspace") return metaspace(json);
  if (type == "WordPiece") return std::make_unique<WordPiece>(word(json, "prefix", "##"), flag(json, "cleanup", true));
  if (type == "BPEDecoder") return std::make_unique<BpeSuffix>(word(json, "suffix", "</w>"));
  if (type == "CTC")
    return std::make_unique<Ctc>(word(json, "pad_token", "<pad>"), word(json, "word_delimiter_token", "|"),
                                 flag(json, "cleanup", true));
  return failure("tokenizer.json decoder", shortJson(json, 60), "a decoder of the tokenizers library",
                 "the file may be newer than this program");
}

}  // namespace headroom::engine::text
