// SPDX-License-Identifier: Apache-2.0
// How long the mask of a grammar takes over a model's own vocabulary, token by token of a document.
//
// usage: grammar_mask_benchmark TOKENIZER_FOLDER
#include "engine/sample/grammar_constraint.h"
#include "engine/sample/grammar_json_schema.h"
#include "engine/text/tokenizer.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <map>
#include <memory>

using namespace headroom;
using namespace headroom::engine;

namespace {

// Processor time of this thread, so that what else runs does not count.
struct Clock {
  using duration = std::chrono::nanoseconds;
  static std::chrono::nanoseconds now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }
};

double milliseconds(Clock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

void measure(const char* name, const std::shared_ptr<const Grammar>& grammar, const std::shared_ptr<const TokenTrie>& trie,
             const Tokenizer& tokenizer, const std::string& document) {
  std::vector<double> times;
  std::vector<float> logits(static_cast<size_t>(trie->vocabSize()));
  const std::vector<int32_t> ends = tokenizer.eosTokenIds();
  GrammarConstraint constraint(grammar, trie);
  for (const int32_t token : tokenizer.encode(document, false)) {
    std::fill(logits.begin(), logits.end(), 0.0f);
    const auto begin = Clock::now();
    constraint.mask(logits, ends);
    times.push_back(milliseconds(Clock::now() - begin));
    if (logits[static_cast<size_t>(token)] != 0.0f) {
      std::printf("%s: the document does not match at token %zu\n", name, times.size());
      return;
    }
    constraint.accept(token);
  }
  double sum = 0;
  for (const double time : times) sum += time;
  const double first = times.front();
  std::sort(times.begin(), times.end());
  std::printf("%-28s %4zu tokens: first %.2f, median %.3f, mean %.3f, P99 %.2f, most %.2f ms\n", name, times.size(), first,
              times[times.size() / 2], sum / static_cast<double>(times.size()), times[times.size() * 99 / 100], times.back());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: %s TOKENIZER_FOLDER\n", argv[0]), 2;
  const auto opened = Tokenizer::open(argv[1]);
  if (!opened) return std::fprintf(stderr, "%s\n", opened.error().message().c_str()), 2;
  const Tokenizer& tokenizer = **opened;
  const auto begin = Clock::now();
  const auto trie = std::make_shared<const TokenTrie>(tokenizer.vocabSize(), [&](int32_t token) {
    return tokenizer.isSpecial(token) ? std::string() : tokenizer.tokenBytes(token);
  });
  std::printf("trie of %lld tokens, %zu nodes: %.0f ms\n", static_cast<long long>(trie->vocabSize()), trie->nodes().size(),
              milliseconds(Clock::now() - begin));
  const std::string person =
      R"({"name":"Ana María Ñandú 李雷","age":41,"tags":["first one","second, longer one","third"],"note":"A note that goes on for a while, with \"quotes\" and more words in it."})";
  auto build = [](auto add) {
    GrammarBuilder builder;
    return *builder.build(add(builder), "benchmark");
  };
  const auto schema = [&](const char* text) {
    return build(
        [&](GrammarBuilder& builder) { return *addJsonSchema(builder, nlohmann::ordered_json::parse(text), "benchmark"); });
  };
  measure("any object", build([](GrammarBuilder& builder) { return addJsonObject(builder); }), trie, tokenizer, person);
  measure(
      "schema",
      schema(
          R"({"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"},"tags":{"type":"array","items":{"type":"string"}},"note":{"type":"string"}},"required":["name","age","tags","note"]})"),
      trie, tokenizer, person);
  measure(
      "schema with maxLength",
      schema(
          R"({"type":"object","properties":{"name":{"type":"string","maxLength":40},"age":{"type":"integer"},"tags":{"type":"array","items":{"type":"string","maxLength":30}},"note":{"type":"string","maxLength":200}},"required":["name","age","tags","note"]})"),
      trie, tokenizer, person);
}
