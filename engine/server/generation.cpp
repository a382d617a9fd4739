// SPDX-License-Identifier: Apache-2.0
#include "engine/server/generation.h"

#include "engine/server/sse.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <random>

namespace headroom::engine {
namespace {

constexpr size_t kSlowReaderBytes = 256 << 10;  // beyond it tokens wait in the inbox, and go out in fewer, larger chunks
constexpr size_t kContextTokens = 6;            // of the prompt, so that the first word keeps its space

std::string randomId(std::string_view prefix) {
  thread_local std::mt19937_64 random{std::random_device{}()};
  return fmt::format("{}{:016x}{:016x}", prefix, random(), random());
}

// JSON has no infinity; -9999 is what vLLM writes for it.
std::string number(float logprob) { return std::isfinite(logprob) ? fmt::format("{}", logprob) : std::string("-9999.0"); }

int64_t characters(std::string_view bytes) {
  return std::count_if(bytes.begin(), bytes.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

// A token's text as the key or value of completions' logprobs. Part of a character has no text: it is spelled by its bytes, as
// OpenAI does.
std::string spelled(const std::string& bytes) {
  if (isValidUtf8(bytes)) return bytes;
  std::string text = "bytes:";
  for (unsigned char byte : bytes) text += fmt::format("\\x{:02x}", byte);
  return text;
}

void appendIds(std::string& out, const TokenIds& ids) {
  out += '[';
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i) out += ',';
    fmt::format_to(std::back_inserter(out), "{}", ids[i]);
  }
  out += ']';
}

std::string idsJson(const TokenIds& ids) {
  std::string out;
  appendIds(out, ids);
  return out;
}

std::string_view nameOf(FinishReason reason) {
  switch (reason) {
    case FinishReason::Stop:
      return "stop";
    case FinishReason::Length:
      return "length";
    case FinishReason::Abort:
      return "abort";
    case FinishReason::Error:
      return "error";
  }
  return "error";
}

}  // namespace

Generation::Generation(std::shared_ptr<HttpExchange> exchange, GenerationService& service, const Tokenizer& tokenizer,
                       std::string modelName, OpenAiRequest request, std::vector<PreparedPrompt> prompts,
                       std::shared_ptr<const TokenTrie> trie)
    : m_exchange(std::move(exchange)),
      m_service(service),
      m_tokenizer(tokenizer),
      m_request(std::move(request)),
      m_prompts(std::move(prompts)),
      m_trie(std::move(trie)),
      m_modelName(std::move(modelName)) {
  m_id = randomId(m_request.chat ? "chatcmpl-" : "cmpl-");
  m_created = std::time(nullptr);
  const char* object = m_request.chat ? (m_request.stream ? "chat.completion.chunk" : "chat.completion") : "text_completion";
  m_prefix =
      fmt::format(R"({{"id":"{}","object":"{}","created":{},"model":{})", m_id, object, m_created, jsonString(m_modelName));
}

void Generation::start() {
  if (!m_exchange->isOpen()) return;
  const int perPrompt = m_request.bestOf;
  m_choices.reserve(m_prompts.size() * static_cast<size_t>(perPrompt));
  for (size_t prompt = 0; prompt < m_prompts.size(); ++prompt)
    for (int i = 0; i < perPrompt; ++i)
      m_choices.emplace_back(static_cast<int>(m_choices.size()), static_cast<int>(prompt), m_tokenizer, m_request);
  m_unfinished = m_choices.size();
  m_exchange->whenGone([self = shared_from_this()] { self->cancelAll(); });
  for (Choice& choice : m_choices) {
    if (m_over) return;  // gone, or the engine refused
    const PreparedPrompt& prompt = m_prompts[static_cast<size_t>(choice.prompt)];
    const size_t context = std::min(prompt.tokens.size(), kContextTokens);
    for (size_t i = prompt.tokens.size() - context; i < prompt.tokens.size(); ++i) choice.decoder.push(prompt.tokens[i]);
    GenerationRequest request{prompt.tokens, m_request.sampling, m_request.priority};
    request.sampling.maxTokens = prompt.maxTokens;
    request.sampling.minTokens = std::min(request.sampling.minTokens, prompt.maxTokens);
    // Choices of one prompt are drawn apart; the same one comes again with the same seed.
    if (request.sampling.seed)
      *request.sampling.seed =
          static_cast<int64_t>(static_cast<uint64_t>(*request.sampling.seed) + static_cast<uint64_t>(choice.index % perPrompt));
    if (m_request.grammar) {
      const std::string_view begin(m_request.reasoningBegins ? &kReasoningBegins : &kAnswerBegins,
                                   m_request.frame.isNeeded() ? 1 : 0);
      auto constraint = std::make_shared<GrammarConstraint>(m_request.grammar, m_trie, begin);
      constraint->prepareSoon();  // while the prompt is computed
      request.sampling.constraint = std::move(constraint);
    }
    const auto index = static_cast<size_t>(choice.index);
    choice.id = m_service.submit(std::move(request), [self = shared_from_this(), index](GenerationUpdate&& update) {
      self->take(index, std::move(update));
    });
  }
}

void Generation::take(size_t choice, GenerationUpdate&& update) {
  bool schedule = false;
  {
    std::lock_guard lock(m_inboxMutex);
    m_inbox.emplace_back(choice, std::move(update));
    schedule = !std::exchange(m_drainScheduled, true);
  }
  if (schedule) m_exchange->post([self = shared_from_this()] { self->drain(); });
}

void Generation::drain() {
  // While the client takes nothing the flag stays set, so the inbox only grows by tokens.
  if (m_request.stream && !m_over && m_exchange->pendingBytes() > kSlowReaderBytes)
    return m_exchange->whenDrained([self = shared_from_this()] { self->drain(); });
  std::vector<std::pair<size_t, GenerationUpdate>> updates;
  {
    std::lock_guard lock(m_inboxMutex);
    updates.swap(m_inbox);
    m_drainScheduled = false;
  }
  std::vector<size_t> touched;
  for (auto& [index, update] : updates) {
    if (m_over) return;
    apply(m_choices[index], std::move(update));
    if (std::find(touched.begin(), touched.end(), index) == touched.end()) touched.push_back(index);
  }
  if (m_over) return;
  if (m_request.stream)
    for (size_t index : touched) sendChoice(m_choices[index]);
  if (m_unfinished > 0) return;
  m_over = true;
  if (m_request.stream)
    sendEnd();
  else
    respondWhole();
}

void Generation::apply(Choice& choice, GenerationUpdate&& update) {
  if (choice.finished) return;
  if (update.finish == FinishReason::Error)
    return failed({500, update.error.empty() ? "The engine failed." : update.error, {}, "internal_error", {}});
  choice.begun = true;
  choice.cachedTokens = std::max(choice.cachedTokens, update.cachedPromptTokens);
  if (!update.promptLogprobs.empty()) choice.promptLogprobs = std::move(update.promptLogprobs);
  for (size_t i = 0; i < update.tokens.size() && !choice.finished; ++i) {
    const bool last = i + 1 == update.tokens.size();
    applyToken(choice, std::move(update.tokens[i]), last && update.stopToken.has_value());
  }
  if (choice.finished) {  // by a stop string
    if (!update.finish) m_service.cancel(choice.id);
    return;
  }
  if (!update.finish) return;
  addText(choice, choice.stops.push(choice.decoder.flush()));
  if (update.stopToken) {
    const auto& asked = m_request.sampling.stopTokenIds;
    if (std::find(asked.begin(), asked.end(), *update.stopToken) != asked.end())
      choice.stopReason = std::to_string(*update.stopToken);
  }
  if (choice.stops.found()) {
    choice.stopReason = jsonString(*choice.stops.found());
    return endChoice(choice, "stop");
  }
  addText(choice, choice.stops.flush());
  endChoice(choice, std::string(nameOf(*update.finish)));
}

void Generation::applyToken(Choice& choice, TokenOutput&& output, bool isStopToken) {
  ++choice.completionTokens;
  choice.sumLogprobs += output.logprob ? output.logprob->logprob : 0;
  // A stream needs them until they are sent only.
  if (!m_request.stream || m_request.returnTokenIds) choice.tokens.push_back(output.token);
  if (m_request.logprobs) choice.logprobs.push_back({output.logprob, output.token, std::move(output.top)});
  if (isStopToken && !m_request.includeStop) return;
  addText(choice, choice.stops.push(choice.decoder.push(output.token), choice.completionTokens > m_request.sampling.minTokens));
  if (!choice.stops.found()) return;
  choice.stopReason = jsonString(*choice.stops.found());
  endChoice(choice, "stop");
}

void Generation::addText(Choice& choice, std::string text) {
  if (!m_request.chat) {
    choice.text += text;
    return;
  }
  addAnswer(choice, choice.reasoningReader.push(text));
}

void Generation::addAnswer(Choice& choice, const std::string& text) {
  std::string reasoning = choice.reasoningReader.takeReasoning();
  if (!readsForm()) {
    choice.text += text;
  } else {
    if (!text.empty()) choice.reader.push(text);
    choice.text += choice.reader.takeText();
    reasoning += choice.reader.takeReasoning();
  }
  if (m_request.includeReasoning) choice.reasoning += reasoning;
  for (ToolCallReader::Part& part : choice.reader.takeParts()) {
    if (!choice.calls.empty() && choice.calls.back().index == part.index)
      choice.calls.back().arguments += part.arguments;
    else
      choice.calls.push_back(std::move(part));
  }
}

void Generation::endChoice(Choice& choice, std::string reason) {
  if (m_request.chat) {
    addAnswer(choice, choice.reasoningReader.finish());
    choice.reader.finish();
    addAnswer(choice, {});
    if (choice.reader.calls() > 0 && reason == "stop") reason = "tool_calls";
  }
  choice.finished = true;
  choice.finishReason = std::move(reason);
  --m_unfinished;
}

void Generation::cancelAll() {
  if (std::exchange(m_over, true) && m_unfinished == 0) return;
  for (const Choice& choice : m_choices)
    if (!choice.finished && choice.id != 0) m_service.cancel(choice.id);
}

void Generation::expire(std::chrono::milliseconds limit) {
  if (m_over || !m_exchange->isOpen()) return;
  failed({504,
          fmt::format("The answer was not whole after {} s, the limit of this server.", static_cast<double>(limit.count()) / 1e3),
          {},
          "timeout_error",
          "timeout"});
}

void Generation::failed(const ApiError& error) {
  cancelAll();
  if (!m_exchange->hasBegun()) {
    HttpResponse response;
    response.status = error.status;
    response.body = errorJson(error);
    return m_exchange->respond(std::move(response));
  }
  m_exchange->send(sseEvent(errorJson(error)));
  m_exchange->send("data: [DONE]\n\n");
  m_exchange->endStream();
}

// ---- rendering

std::string Generation::chunk(std::string_view choices, std::string_view more) const {
  return fmt::format("data: {},\"choices\":[{}]{}}}\n\n", m_prefix, choices, more);
}

std::string Generation::usage() const {
  int64_t prompt = 0, completion = 0, cached = 0;
  for (const PreparedPrompt& item : m_prompts) prompt += static_cast<int64_t>(item.tokens.size());
  std::vector<int64_t> cachedOf(m_prompts.size(), 0);
  const bool scoresOnly = m_request.maxTokens == 0;
  for (const Choice& choice : m_choices) {
    completion += scoresOnly ? 0 : choice.completionTokens;
    // Of the first choice: the others find what it left.
    if (choice.index % m_request.bestOf == 0) cachedOf[static_cast<size_t>(choice.prompt)] = choice.cachedTokens;
  }
  for (int64_t tokens : cachedOf) cached += tokens;
  return fmt::format(
      R"({{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{},"prompt_tokens_details":{{"cached_tokens":{}}}}})", prompt,
      completion, prompt + completion, cached);
}

void Generation::sendChoice(Choice& choice) {
  if (choice.finishSent || !choice.begun) return;
  std::string out;
  const std::string perChunkUsage = m_request.continuousUsage ? ",\"usage\":" + usage()
                                    : m_request.includeUsage  ? ",\"usage\":null"
                                                              : "";
  if (!m_exchange->hasBegun()) m_exchange->beginStream(200, "text/event-stream; charset=utf-8");
  const PreparedPrompt& prompt = m_prompts[static_cast<size_t>(choice.prompt)];
  std::string promptIds;
  if (!choice.begunSent) {
    choice.begunSent = true;
    if (m_request.returnTokenIds) promptIds = ",\"prompt_token_ids\":" + idsJson(prompt.tokens);
    if (m_request.chat) {
      out +=
          chunk(fmt::format(R"({{"index":{},"delta":{{"role":"assistant","content":""}},"logprobs":null,"finish_reason":null}})",
                            choice.index),
                promptIds + perChunkUsage);
      promptIds.clear();
    } else if (m_request.echo) {
      choice.text.insert(0, prompt.text);
    }
  }
  const bool hasMore = !choice.text.empty() || !choice.calls.empty() || !choice.reasoning.empty() || !choice.logprobs.empty() ||
                       (m_request.returnTokenIds && !choice.tokens.empty()) || !promptIds.empty();
  if (hasMore || choice.finished) {
    std::string item = fmt::format(R"({{"index":{},)", choice.index);
    item += m_request.chat ? "\"delta\":{" : "\"text\":";
    const bool hasCalls = !choice.calls.empty();
    const bool hasReasoning = !choice.reasoning.empty();
    if (hasReasoning) item += "\"reasoning_content\":" + jsonString(choice.reasoning);
    if (hasCalls) item += (hasReasoning ? ",\"tool_calls\":" : "\"tool_calls\":") + callsJson(choice.calls, true);
    if ((!hasCalls && !hasReasoning) || !choice.text.empty()) {
      if (m_request.chat) item += hasCalls || hasReasoning ? ",\"content\":" : "\"content\":";
      appendJsonString(item, choice.text);
    }
    if (m_request.chat) item += '}';
    item += ",\"logprobs\":";
    item += !m_request.logprobs || choice.logprobs.empty() ? "null"
            : m_request.chat                               ? chatLogprobs(choice.logprobs)
                                                           : completionLogprobs(choice, false);
    item += ",\"finish_reason\":";
    item += choice.finished ? '"' + choice.finishReason + '"' : "null";
    if (choice.finished) item += ",\"stop_reason\":" + choice.stopReason;
    if (m_request.returnTokenIds) {
      item += ",\"token_ids\":";
      appendIds(item, choice.tokens);
      item += promptIds;
    }
    item += '}';
    out += chunk(item, perChunkUsage);
    choice.text.clear();
    choice.reasoning.clear();
    choice.calls.clear();
    choice.tokens.clear();
    choice.logprobs.clear();
    choice.finishSent = choice.finished;
  }
  m_exchange->send(out);
}

void Generation::sendEnd() {
  std::string out;
  if (m_request.includeUsage) out += chunk({}, ",\"usage\":" + usage());
  out += "data: [DONE]\n\n";
  m_exchange->send(out);
  m_exchange->endStream();
}

std::string Generation::callsJson(const std::vector<ToolCallReader::Part>& calls, bool asDelta) const {
  std::string out = "[";
  for (const ToolCallReader::Part& call : calls) {
    if (out.size() > 1) out += ',';
    out += '{';
    if (asDelta) fmt::format_to(std::back_inserter(out), "\"index\":{}", call.index);
    // A delta that goes on with a call has arguments only.
    if (!call.name.empty())
      fmt::format_to(std::back_inserter(out), R"({}"id":"{}","type":"function")", asDelta ? "," : "", randomId("call_"));
    out += ",\"function\":{";
    if (!call.name.empty()) out += "\"name\":" + jsonString(call.name) + ',';
    out += "\"arguments\":";
    appendJsonString(out, call.arguments);
    out += "}}";
  }
  return out + ']';
}

// best_of: the choices of each prompt with the highest mean logprob, best first.
void Generation::keepBest() {
  if (m_request.bestOf == m_request.n) return;
  auto mean = [](const Choice& choice) {
    return choice.sumLogprobs / static_cast<double>(std::max<int64_t>(choice.completionTokens, 1));
  };
  std::stable_sort(m_choices.begin(), m_choices.end(), [&](const Choice& a, const Choice& b) {
    return a.prompt != b.prompt ? a.prompt < b.prompt : mean(a) > mean(b);
  });
  std::vector<Choice> best;
  for (size_t i = 0; i < m_choices.size(); ++i)
    if (static_cast<int>(i) % m_request.bestOf < m_request.n) best.push_back(std::move(m_choices[i]));
  for (size_t i = 0; i < best.size(); ++i) best[i].index = static_cast<int>(i);
  m_choices = std::move(best);
}

void Generation::respondWhole() {
  const std::string usageText = usage();
  keepBest();
  std::string body = m_prefix + ",\"choices\":[";
  const bool scoresOnly = m_request.maxTokens == 0;
  for (Choice& choice : m_choices) {
    if (scoresOnly) {
      choice.text.clear();
      choice.tokens.clear();
      choice.logprobs.clear();
      choice.finishReason = "length";
    }
    if (choice.index) body += ',';
    fmt::format_to(std::back_inserter(body), R"({{"index":{},)", choice.index);
    if (m_request.chat) {
      body += "\"message\":{\"role\":\"assistant\",\"content\":";
      if (choice.calls.empty() || !choice.text.empty())
        appendJsonString(body, choice.text);
      else
        body += "null";
      body += ",\"refusal\":null";
      if (!choice.reasoning.empty()) body += ",\"reasoning_content\":" + jsonString(choice.reasoning);
      if (!choice.calls.empty()) body += ",\"tool_calls\":" + callsJson(choice.calls, false);
      body += '}';
    } else {
      body += "\"text\":";
      appendJsonString(body, echoText(choice) + choice.text);
    }
    body += ",\"logprobs\":";
    body += !m_request.logprobs ? "null"
            : m_request.chat    ? chatLogprobs(choice.logprobs)
                                : completionLogprobs(choice, m_request.echo);
    fmt::format_to(std::back_inserter(body), R"(,"finish_reason":"{}","stop_reason":{})", choice.finishReason, choice.stopReason);
    if (m_request.returnTokenIds) {
      body += ",\"token_ids\":";
      appendIds(body, choice.tokens);
      if (!m_request.chat) {
        body += ",\"prompt_token_ids\":";
        appendIds(body, m_prompts[static_cast<size_t>(choice.prompt)].tokens);
      }
    }
    if (!m_request.chat && m_request.sampling.promptLogprobs) body += ",\"prompt_logprobs\":" + promptLogprobsJson(choice);
    body += '}';
  }
  body += "],\"usage\":" + usageText;
  if (m_request.chat && m_request.returnTokenIds) body += ",\"prompt_token_ids\":" + idsJson(m_prompts.front().tokens);
  if (m_request.chat && m_request.sampling.promptLogprobs)
    body += ",\"prompt_logprobs\":" + promptLogprobsJson(m_choices.front());
  body += '}';
  HttpResponse response;
  response.body = std::move(body);
  m_exchange->respond(std::move(response));
}

std::string Generation::echoText(const Choice& choice) const {
  return m_request.echo ? m_prompts[static_cast<size_t>(choice.prompt)].text : std::string();
}

std::string Generation::chatLogprobs(const std::vector<Logprob>& entries) const {
  std::string out = "{\"content\":[";
  auto append = [&](int32_t token, float logprob) {
    const std::string bytes = m_tokenizer.tokenBytes(token);
    out += "{\"token\":";
    appendJsonString(out, bytes);
    out += ",\"logprob\":" + number(logprob) + ",\"bytes\":[";
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (i) out += ',';
      fmt::format_to(std::back_inserter(out), "{}", static_cast<unsigned char>(bytes[i]));
    }
    out += ']';
  };
  for (size_t i = 0; i < entries.size(); ++i) {
    if (i) out += ',';
    append(entries[i].token, entries[i].own ? entries[i].own->logprob : -INFINITY);
    out += ",\"top_logprobs\":[";
    const size_t count = std::min(entries[i].top.size(), static_cast<size_t>(*m_request.logprobs));
    for (size_t k = 0; k < count; ++k) {
      if (k) out += ',';
      append(entries[i].top[k].token, entries[i].top[k].logprob);
      out += '}';
    }
    out += "]}";
  }
  return out + "]}";
}

std::string Generation::completionLogprobs(Choice& choice, bool withPrompt) const {
  std::string tokens, own, top, offsets;
  auto append = [&](int32_t token, const std::optional<float>& logprob, const std::vector<TokenLogprob>& best, bool inText) {
    const char* comma = tokens.empty() ? "" : ",";
    const std::string bytes = m_tokenizer.tokenBytes(token);
    tokens += comma;
    appendJsonString(tokens, spelled(bytes));
    own += comma + (logprob ? number(*logprob) : std::string("null"));
    offsets += comma + std::to_string(choice.textOffset);
    if (inText) choice.textOffset += characters(bytes);
    top += comma;
    if (!logprob) {
      top += "null";
      return;
    }
    // The likeliest that were asked for, and the token itself.
    top += '{';
    bool hasOwn = false;
    const size_t count = std::min(best.size(), static_cast<size_t>(*m_request.logprobs));
    for (size_t k = 0; k < count; ++k) {
      if (k) top += ',';
      hasOwn = hasOwn || best[k].token == token;
      appendJsonString(top, spelled(m_tokenizer.tokenBytes(best[k].token)));
      top += ':' + number(best[k].logprob);
    }
    if (!hasOwn) {
      if (count) top += ',';
      appendJsonString(top, spelled(bytes));
      top += ':' + number(*logprob);
    }
    top += '}';
  };
  if (withPrompt) {
    const TokenIds& prompt = m_prompts[static_cast<size_t>(choice.prompt)].tokens;
    for (size_t i = 0; i < prompt.size(); ++i) {
      const bool inText = !(m_request.skipSpecialTokens && m_tokenizer.isSpecial(prompt[i]));
      if (i >= choice.promptLogprobs.size() || choice.promptLogprobs[i].empty()) {
        append(prompt[i], std::nullopt, {}, inText);
        continue;
      }
      const auto& entry = choice.promptLogprobs[i];
      append(prompt[i], entry.front().logprob, {entry.begin() + 1, entry.end()}, inText);
    }
  }
  for (const Logprob& entry : choice.logprobs) {
    const bool inText = !(m_request.skipSpecialTokens && m_tokenizer.isSpecial(entry.token));
    append(entry.token, entry.own ? std::optional(entry.own->logprob) : std::nullopt, entry.top, inText);
  }
  return fmt::format(R"({{"text_offset":[{}],"token_logprobs":[{}],"tokens":[{}],"top_logprobs":[{}]}})", offsets, own, tokens,
                     top);
}

std::string Generation::promptLogprobsJson(const Choice& choice) const {
  std::string out = "[";
  const size_t count = m_prompts[static_cast<size_t>(choice.prompt)].tokens.size();
  for (size_t i = 0; i < count; ++i) {
    if (i) out += ',';
    if (i >= choice.promptLogprobs.size() || choice.promptLogprobs[i].empty()) {
      out += "null";
      continue;
    }
    out += '{';
    const auto& entry = choice.promptLogprobs[i];
    for (size_t k = 0; k < entry.size(); ++k) {
      // The prompt's own token stands first and may come again among the likeliest.
      if (k && entry[k].token == entry[0].token) continue;
      if (k) out += ',';
      fmt::format_to(std::back_inserter(out), R"("{}":{{"logprob":{},"rank":{},"decoded_token":{}}})", entry[k].token,
                     number(entry[k].logprob), entry[k].rank, jsonString(m_tokenizer.tokenBytes(entry[k].token)));
    }
    out += '}';
  }
  return out + "]";
}

}  // namespace headroom::engine
