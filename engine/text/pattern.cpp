// SPDX-License-Identifier: Apache-2.0
#define PCRE2_CODE_UNIT_WIDTH 8
#include "engine/text/pattern.h"

#include "engine/text/json_fields.h"
#include "engine/text/unicode.h"

#include <pcre2.h>
#include <nlohmann/json.hpp>

namespace headroom::engine::text {
namespace {

// What a thread needs to run any pattern.
struct MatchState {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(64 * 1024, 16 * 1024 * 1024, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  MatchState() {
    expects(data && context, "no memory for a regular expression's match");
    if (stack) pcre2_jit_stack_assign(context, nullptr, stack);
    pcre2_set_heap_limit(context, 512 * 1024);  // KiB that backtracking may take
  }
  MatchState(const MatchState&) = delete;
  MatchState& operator=(const MatchState&) = delete;
  ~MatchState() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
  }
};

class Regex : public Pattern {
 public:
  Regex(pcre2_code* code, bool jit) : m_code(code), m_jit(jit) {}
  ~Regex() override { pcre2_code_free(m_code); }

 private:
  bool find(std::string_view text, size_t from, size_t& begin, size_t& end) const override {
    thread_local MatchState state;
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    int rc = m_jit ? pcre2_jit_match(m_code, subject, text.size(), from, PCRE2_NO_UTF_CHECK, state.data, state.context)
                   : PCRE2_ERROR_JIT_STACKLIMIT;
    if (rc < 0 && rc != PCRE2_ERROR_NOMATCH)  // too deep for the JIT's stack: the interpreter keeps its own on the heap
      rc = pcre2_match(m_code, subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, state.data, state.context);
    if (rc < 0) return false;
    const PCRE2_SIZE* place = pcre2_get_ovector_pointer(state.data);
    begin = place[0];
    end = place[1];
    return begin <= end;  // \K in a look-ahead can put the begin behind the end
  }

  pcre2_code* m_code;
  bool m_jit;
};

class Literal : public Pattern {
 public:
  explicit Literal(std::string_view text) : m_text(text) {}

 private:
  bool find(std::string_view text, size_t from, size_t& begin, size_t& end) const override {
    if (m_text.empty()) return false;
    begin = text.find(m_text, from);
    end = begin + m_text.size();
    return begin != std::string_view::npos;
  }
  std::string m_text;
};

}  // namespace

Result<std::unique_ptr<Pattern>> Pattern::regex(std::string_view oniguruma) {
  const auto read = translatePattern(oniguruma);
  if (!read) return tl::unexpected(read.error());
  const std::string& translated = *read;
  int error = 0;
  PCRE2_SIZE place = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error, &place, nullptr);
  if (!code) {
    PCRE2_UCHAR text[256];
    pcre2_get_error_message(error, text, sizeof text);
    return failure("pattern " + std::string(oniguruma),
                   fmt::format("{} at byte {} of {}", reinterpret_cast<const char*>(text), place, translated));
  }
  return std::make_unique<Regex>(code, pcre2_jit_compile(code, PCRE2_JIT_COMPLETE) == 0);
}

std::unique_ptr<Pattern> Pattern::literal(std::string_view text) { return std::make_unique<Literal>(text); }

Result<std::unique_ptr<Pattern>> Pattern::fromJson(const nlohmann::json& json) {
  if (json.is_object() && json.contains("String") && json["String"].is_string())
    return literal(json["String"].get_ref<const std::string&>());
  if (json.is_object() && json.contains("Regex") && json["Regex"].is_string())
    return regex(json["Regex"].get_ref<const std::string&>());
  if (json.is_string()) return literal(json.get_ref<const std::string&>());
  return failure("pattern", shortJson(json, 80), R"({"String": …} or {"Regex": …})");
}

void Pattern::split(std::string_view text, std::vector<Span>& spans) const {
  spans.clear();
  size_t covered = 0, from = 0, begin = 0, end = 0;
  bool any = false;
  while (from <= text.size() && find(text, from, begin, end)) {
    if (begin == end && any && end == covered) {  // no empty match right behind a match
      if (from >= text.size()) break;
      from += utf8Length(static_cast<unsigned char>(text[from]));
      continue;
    }
    if (covered != begin) spans.push_back({covered, begin, false});
    spans.push_back({begin, end, true});
    covered = from = end;
    any = true;
  }
  if (covered != text.size()) spans.push_back({covered, text.size(), false});
}

std::string Pattern::replaced(std::string_view text, std::string_view by) const {
  std::vector<Span> spans;
  split(text, spans);
  std::string out;
  for (const Span& span : spans) out += span.matched ? by : text.substr(span.begin, span.end - span.begin);
  return out;
}

}  // namespace headroom::engine::text
