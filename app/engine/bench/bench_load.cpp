// SPDX-License-Identifier: Apache-2.0
#include "app/engine/bench/bench_load.h"

#include "core/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <numeric>

namespace headroom::app {
namespace {

using Json = nlohmann::ordered_json;
using Random = std::mt19937_64;

constexpr std::array<const char*, 64> kWords{
    "time",   "year",  "people",  "way",   "day",   "man",   "thing",  "woman",  "life",    "child",  "world", "school", "state",
    "family", "group", "country", "hand",  "part",  "place", "case",   "week",   "work",    "fact",   "water", "room",   "money",
    "story",  "month", "lot",     "right", "study", "book",  "eye",    "job",    "word",    "side",   "kind",  "head",   "house",
    "friend", "hour",  "game",    "line",  "end",   "law",   "car",    "city",   "name",    "team",   "idea",  "body",   "back",
    "face",   "level", "door",    "art",   "war",   "party", "result", "change", "morning", "reason", "girl",  "moment"};

int64_t drawLength(int64_t mean, const RandomLoad& load, Random& random) {
  const auto center = static_cast<double>(mean);
  if (load.rangeRatio <= 0 || mean <= 0) return mean;
  switch (load.distribution) {
    case LengthDistribution::Uniform: {
      const auto least = static_cast<int64_t>(std::floor(center * (1 - load.rangeRatio)));
      const auto most = static_cast<int64_t>(std::ceil(center * (1 + load.rangeRatio)));
      return std::max<int64_t>(1, std::uniform_int_distribution<int64_t>(least, most)(random));
    }
    case LengthDistribution::Normal:
      return std::max<int64_t>(1, std::llround(std::normal_distribution<double>(center, load.rangeRatio * center)(random)));
    case LengthDistribution::Lognormal: {
      // Of mean m and coefficient of variation c: sigma^2 = ln(1 + c^2), mu = ln m - sigma^2 / 2.
      const double variance = std::log1p(load.rangeRatio * load.rangeRatio);
      return std::max<int64_t>(
          1, std::llround(std::lognormal_distribution<double>(std::log(center) - variance / 2, std::sqrt(variance))(random)));
    }
  }
  return mean;
}

// Tokens whose text stands alone: no special ones, no parts of characters.
std::vector<int32_t> plainTokens(const engine::Tokenizer& tokenizer) {
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < tokenizer.vocabSize(); ++id) {
    if (tokenizer.isSpecial(id)) continue;
    const std::string bytes = tokenizer.tokenBytes(id);
    const bool isPlain = !bytes.empty() && std::all_of(bytes.begin(), bytes.end(), [](char c) { return c >= ' ' && c < 127; });
    if (isPlain) ids.push_back(id);
  }
  return ids;
}

template <class T>
std::vector<T> drawn(const std::vector<T>& from, int64_t count, Random& random) {
  std::vector<T> result;
  std::uniform_int_distribution<size_t> any(0, from.size() - 1);
  for (int64_t i = 0; i < count; ++i) result.push_back(from[any(random)]);
  return result;
}

std::string wordText(int64_t words, Random& random) {
  std::string text;
  std::uniform_int_distribution<size_t> any(0, kWords.size() - 1);
  for (int64_t i = 0; i < words; ++i) text.append(i ? " " : "").append(kWords[any(random)]);
  return text;
}

// A text that the tokenizer turns into `count` tokens. Tokens side by side may merge when their text is read again: what then
// lacks is drawn anew, what is too much is cut off, until the length holds.
std::string exactText(const engine::Tokenizer& tokenizer, const std::vector<int32_t>& plain, std::vector<int32_t> ids,
                      int64_t count, Random& random) {
  std::string text;
  for (int attempt = 0; attempt < 20; ++attempt) {
    text = tokenizer.decode(ids, true);
    ids = tokenizer.encode(text, false);
    const auto length = static_cast<int64_t>(ids.size());
    if (length == count) break;
    if (length > count) {
      ids.resize(static_cast<size_t>(count));
    } else {
      const auto more = drawn(plain, count - length, random);
      ids.insert(ids.end(), more.begin(), more.end());
    }
  }
  return text;
}

tl::unexpected<Error> unreadable(const std::filesystem::path& file) {
  return failure(file.string(), "no file that can be read", "a dataset");
}

// The first `count` of `all`, which begins again where it is too short.
std::vector<PlannedRequest> chosen(std::vector<PlannedRequest> all, size_t count, bool shuffle, uint64_t seed) {
  if (shuffle) {
    Random random(seed);
    std::shuffle(all.begin(), all.end(), random);
  }
  const size_t given = all.size();
  all.reserve(std::max(count, given));
  for (size_t i = given; i < count; ++i) all.push_back(all[i % given]);
  all.resize(count);
  return all;
}

int64_t lengthOf(const std::string& text, const engine::Tokenizer* tokenizer) {
  return tokenizer ? static_cast<int64_t>(tokenizer->encode(text, false).size()) : static_cast<int64_t>(text.size() + 3) / 4;
}

}  // namespace

std::vector<PlannedRequest> randomLoad(size_t count, const RandomLoad& load, const TextSource& source, uint64_t seed) {
  Random random(seed);
  const std::vector<int32_t> plain = source.tokenizer ? plainTokens(*source.tokenizer) : source.tokenIds;
  const std::vector<int32_t> sharedIds = plain.empty() ? std::vector<int32_t>() : drawn(plain, load.prefixLen, random);
  const std::string sharedWords = plain.empty() ? wordText(load.prefixLen, random) : std::string();
  std::vector<PlannedRequest> requests(count);
  for (PlannedRequest& request : requests) {
    const int64_t input = drawLength(load.inputLen, load, random), length = input + load.prefixLen;
    request.outputTokens = drawLength(load.outputLen, load, random);
    if (plain.empty()) {
      const std::string text = wordText(input, random);
      request.prompt = sharedWords.empty() ? text : sharedWords + " " + text;
      continue;
    }
    request.promptTokens = length;
    std::vector<int32_t> ids = sharedIds;
    const auto own = drawn(plain, input, random);
    ids.insert(ids.end(), own.begin(), own.end());
    if (source.tokenizer)
      request.prompt = exactText(*source.tokenizer, plain, std::move(ids), length, random);
    else
      request.prompt = std::move(ids);
  }
  return requests;
}

Result<std::vector<PlannedRequest>> shareGptLoad(const std::filesystem::path& file, size_t count,
                                                 std::optional<int64_t> outputLen, const engine::Tokenizer* tokenizer,
                                                 bool shuffle, uint64_t seed) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return unreadable(file);
  const Json data = readJsonText<Json>(std::string{std::istreambuf_iterator<char>(stream), {}});
  if (!data.is_array())
    return failure(file.string(), data.is_discarded() ? "no JSON" : "JSON that is no list", "a list of conversations");
  std::vector<const Json*> entries;
  for (const Json& entry : data) {
    const auto turns = entry.is_object() ? entry.find("conversations") : entry.end();
    if (!entry.is_object() || turns == entry.end() || !turns->is_array() || turns->size() < 2) continue;
    const auto isText = [](const Json& turn) { return turn.is_object() && turn.contains("value") && turn["value"].is_string(); };
    if (isText((*turns)[0]) && isText((*turns)[1])) entries.push_back(&entry);
  }
  if (shuffle) {
    Random random(seed);
    std::shuffle(entries.begin(), entries.end(), random);
  }
  std::vector<PlannedRequest> requests;
  for (const Json* entry : entries) {
    if (requests.size() == count) break;
    const Json& turns = (*entry)["conversations"];
    const std::string prompt = turns[0]["value"].get<std::string>();
    const int64_t promptLen = lengthOf(prompt, tokenizer);
    const int64_t answerLen = outputLen ? *outputLen : lengthOf(turns[1]["value"].get<std::string>(), tokenizer);
    if (promptLen < 4 || (!outputLen && answerLen < 4) || promptLen > 1024 || promptLen + answerLen > 2048) continue;
    PlannedRequest request;
    request.prompt = prompt;
    request.promptTokens = tokenizer ? promptLen : 0;
    request.outputTokens = answerLen;
    requests.push_back(std::move(request));
  }
  if (requests.empty())
    return failure(file.string(), "no conversation of fitting length",
                   "conversations of at least two turns, prompts of 4 to 1024 tokens");
  return chosen(std::move(requests), count, false, seed);
}

Result<std::vector<PlannedRequest>> jsonLinesLoad(const std::filesystem::path& file, size_t count, int64_t outputLen,
                                                  const engine::Tokenizer* tokenizer, bool shuffle, uint64_t seed) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return unreadable(file);
  std::vector<PlannedRequest> requests;
  int64_t number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string where = fmt::format("{} line {}", file.string(), number);
    const Json entry = readJsonText<Json>(line);
    const char* expected = "an object with prompt (a text or token ids) or messages";
    if (!entry.is_object()) return failure(where, "no JSON object", expected);
    PlannedRequest request;
    request.outputTokens = outputLen;
    for (const char* name : {"output_len", "output_tokens", "max_tokens", "max_completion_tokens"}) {
      const auto value = entry.find(name);
      if (value == entry.end() || value->is_null()) continue;
      if (!value->is_number_integer() || value->get<int64_t>() < 1)
        return failure(where, fmt::format("{} {}", name, value->dump()), "an integer of at least 1");
      request.outputTokens = value->get<int64_t>();
      break;
    }
    const auto prompt = entry.find("prompt"), messages = entry.find("messages");
    const auto isId = [](const Json& id) { return id.is_number_unsigned() && id.get<uint64_t>() <= INT32_MAX; };
    if (messages != entry.end() && messages->is_array() && !messages->empty()) {
      request.messages = *messages;
    } else if (prompt != entry.end() && prompt->is_string() && !prompt->get_ref<const std::string&>().empty()) {
      request.prompt = prompt->get<std::string>();
      if (tokenizer) request.promptTokens = lengthOf(prompt->get<std::string>(), tokenizer);
    } else if (prompt != entry.end() && prompt->is_array() && !prompt->empty() &&
               std::all_of(prompt->begin(), prompt->end(), isId)) {
      auto ids = prompt->get<std::vector<int32_t>>();
      request.promptTokens = static_cast<int64_t>(ids.size());
      request.prompt = std::move(ids);
    } else {
      return failure(where, "neither prompt nor messages", expected);
    }
    requests.push_back(std::move(request));
  }
  if (requests.empty()) return failure(file.string(), "no lines", "a JSON object a line");
  return chosen(std::move(requests), count, shuffle, seed);
}

std::vector<double> arrivalTimes(size_t count, double rate, double burstiness, uint64_t seed) {
  std::vector<double> times(count, 0.0);
  if (!std::isfinite(rate) || count == 0) return times;
  Random random(seed);
  std::gamma_distribution<double> gap(burstiness, 1 / (rate * burstiness));
  for (size_t i = 0; i < count; ++i) times[i] = (i ? times[i - 1] : 0) + gap(random);
  // What was drawn has another mean than what was asked for; the load as a whole takes the time it should.
  if (const double scale = static_cast<double>(count) / rate / times.back(); std::isfinite(scale))
    for (double& time : times) time *= scale;
  return times;
}

}  // namespace headroom::app
