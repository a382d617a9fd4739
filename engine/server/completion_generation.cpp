// SPDX-License-Identifier: Apache-2.0
#include "engine/server/completion_generation.h"

#include "engine/server/sse.h"

#include <fmt/format.h>

#include <algorithm>

namespace headroom::engine {
namespace {

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

}  // namespace

CompletionGeneration::CompletionGeneration(std::shared_ptr<HttpExchange> exchange, std::shared_ptr<ServedModel> model,
                                           OpenAiRequest request, std::vector<PreparedPrompt> prompts)
    : Generation(std::move(exchange), std::move(model), std::move(request), std::move(prompts)) {
  const char* object = m_request.chat ? (m_request.stream ? "chat.completion.chunk" : "chat.completion") : "text_completion";
  m_prefix = fmt::format(R"({{"id":"{}","object":"{}","created":{},"model":{})", randomId(m_request.chat ? "chatcmpl-" : "cmpl-"),
                         object, m_created, jsonString(m_model->name()));
}

std::string CompletionGeneration::chunk(std::string_view choices, std::string_view more) const {
  return fmt::format("data: {},\"choices\":[{}]{}}}\n\n", m_prefix, choices, more);
}

std::string CompletionGeneration::usage() const {
  int64_t prompt = 0, completion = 0, cached = 0, reasoning = 0;
  for (const PreparedPrompt& item : m_prompts) prompt += static_cast<int64_t>(item.tokens.size());
  std::vector<int64_t> cachedOf(m_prompts.size(), 0);
  const bool scoresOnly = m_request.maxTokens == 0;
  for (const Choice& choice : m_choices) {
    completion += scoresOnly ? 0 : choice.completionTokens;
    reasoning += choice.reasoningTokens;
    // Of the first choice: the others find what it left.
    if (choice.index % m_request.bestOf == 0) cachedOf[static_cast<size_t>(choice.prompt)] = choice.cachedTokens;
  }
  for (int64_t tokens : cachedOf) cached += tokens;
  const std::string details = m_request.frame.isNeeded()
                                  ? fmt::format(R"(,"completion_tokens_details":{{"reasoning_tokens":{}}})", reasoning)
                                  : std::string();
  return fmt::format(
      R"({{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{},"prompt_tokens_details":{{"cached_tokens":{}}}{}}})",
      prompt, completion, prompt + completion, cached, details);
}

void CompletionGeneration::sendChoice(Choice& choice) {
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
            : m_request.chat                               ? "{\"content\":" + logprobsJson(choice.logprobs) + "}"
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

void CompletionGeneration::sendFailure(const ApiError& error) {
  m_exchange->send(sseEvent(errorJson(error)));
  m_exchange->send("data: [DONE]\n\n");
  m_exchange->endStream();
}

void CompletionGeneration::sendEnd() {
  std::string out;
  if (m_request.includeUsage) out += chunk({}, ",\"usage\":" + usage());
  out += "data: [DONE]\n\n";
  m_exchange->send(out);
  m_exchange->endStream();
}

std::string CompletionGeneration::callsJson(const std::vector<ToolCallReader::Part>& calls, bool asDelta) const {
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
void CompletionGeneration::keepBest() {
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

void CompletionGeneration::respondWhole() {
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
            : m_request.chat    ? "{\"content\":" + logprobsJson(choice.logprobs) + "}"
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

std::string CompletionGeneration::echoText(const Choice& choice) const {
  return m_request.echo ? m_prompts[static_cast<size_t>(choice.prompt)].text : std::string();
}

std::string CompletionGeneration::completionLogprobs(Choice& choice, bool withPrompt) const {
  std::string tokens, own, top, offsets;
  auto append = [&](int32_t token, const std::optional<float>& logprob, const std::vector<TokenLogprob>& best, bool inText) {
    const char* comma = tokens.empty() ? "" : ",";
    const std::string bytes = m_tokenizer.tokenBytes(token);
    tokens += comma;
    appendJsonString(tokens, spelled(bytes));
    own += comma + (logprob ? logprobNumber(*logprob) : std::string("null"));
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
      top += ':' + logprobNumber(best[k].logprob);
    }
    if (!hasOwn) {
      if (count) top += ',';
      appendJsonString(top, spelled(bytes));
      top += ':' + logprobNumber(*logprob);
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

std::string CompletionGeneration::promptLogprobsJson(const Choice& choice) const {
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
                     logprobNumber(entry[k].logprob), entry[k].rank, jsonString(m_tokenizer.tokenBytes(entry[k].token)));
    }
    out += '}';
  }
  return out + "]";
}

}  // namespace headroom::engine
