// SPDX-License-Identifier: Apache-2.0
#include "engine/server/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <random>

namespace headroom::engine {
namespace {

constexpr size_t kSlowReaderBytes = 256 << 10;  // beyond it tokens wait in the inbox, and go out in fewer, larger chunks
constexpr size_t kContextTokens = 6;            // of the prompt, so that the first word keeps its space

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

std::string randomId(std::string_view prefix) {
  thread_local std::mt19937_64 random{std::random_device{}()};
  return fmt::format("{}{:016x}{:016x}", prefix, random(), random());
}

std::string logprobNumber(float logprob) { return std::isfinite(logprob) ? fmt::format("{}", logprob) : std::string("-9999.0"); }

Generation::Generation(std::shared_ptr<HttpExchange> exchange, std::shared_ptr<ServedModel> model, OpenAiRequest request,
                       std::vector<PreparedPrompt> prompts)
    : m_exchange(std::move(exchange)),
      m_model(std::move(model)),
      m_service(m_model->service()),
      m_tokenizer(m_model->tokenizer()),
      m_request(std::move(request)),
      m_prompts(std::move(prompts)),
      m_created(std::time(nullptr)),
      m_trie(m_model->trieFor(m_request)) {}

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
    GenerationRequest request{prompt.tokens, m_request.sampling, m_request.priority, m_request.pooling};
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
  // The engine ended before it answered: no answer, not an empty one. Text that was made until then is answered below, with its
  // reason; vectors have none.
  const bool isNothing = std::none_of(m_choices.begin(), m_choices.end(), [](const Choice& each) { return each.begun; });
  if (update.finish == FinishReason::Abort && (m_request.pooling || (update.tokens.empty() && isNothing)))
    return failed(m_model->whyNotReady().value_or(
        ApiError{503, "The engine stopped before the answer.", {}, "service_unavailable", "engine_stopping"}));
  choice.begun = true;
  choice.cachedTokens = std::max(choice.cachedTokens, update.cachedPromptTokens);
  if (!update.embedding.empty()) choice.embedding = std::move(update.embedding);
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
  const bool wasReasoning = choice.isReasoning();
  addText(choice, choice.stops.push(choice.decoder.push(output.token), choice.completionTokens > m_request.sampling.minTokens));
  choice.reasoningTokens += wasReasoning || choice.isReasoning();
  if (!choice.stops.found()) return;
  choice.stopReason = jsonString(*choice.stops.found());
  endChoice(choice, "stop");
}

void Generation::addText(Choice& choice, std::string text) {
  if (!m_request.chat) return takeAnswer(choice, {}, std::move(text), {});
  addAnswer(choice, choice.reasoningReader.push(text));
}

void Generation::addAnswer(Choice& choice, const std::string& text) {
  std::string reasoning = choice.reasoningReader.takeReasoning(), answer;
  if (!readsForm()) {
    answer = text;
  } else {
    if (!text.empty()) choice.reader.push(text);
    answer = choice.reader.takeText();
    reasoning += choice.reader.takeReasoning();
  }
  if (!m_request.includeReasoning) reasoning.clear();
  takeAnswer(choice, std::move(reasoning), std::move(answer), choice.reader.takeParts());
}

void Generation::takeAnswer(Choice& choice, std::string reasoning, std::string text, std::vector<ToolCallReader::Part> calls) {
  choice.reasoning += reasoning;
  choice.text += text;
  for (ToolCallReader::Part& part : calls) {
    if (!choice.calls.empty() && choice.calls.back().index == part.index)
      choice.calls.back().arguments += part.arguments;
    else
      choice.calls.push_back(std::move(part));
  }
}

void Generation::endChoice(Choice& choice, std::string reason) {
  if (m_request.chat) {
    addAnswer(choice, choice.reasoningReader.finish());
    // Where Harmony's end of a call is not in the text, only a stop string cuts one off.
    choice.isCallCut = reason == "stop" && choice.reader.isInCall() && (choice.stops.found() || !m_request.frame.isHarmony);
    choice.reader.finish();
    addAnswer(choice, {});
    if (choice.reader.calls() > 0 && reason == "stop" && !choice.isCallCut) reason = "tool_calls";
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
    if (error.status == 503) response.headers.emplace_back("Retry-After", "1");
    return m_exchange->respond(std::move(response));
  }
  sendFailure(error);
}

std::string Generation::logprobsJson(const std::vector<Logprob>& entries) const {
  std::string out = "[";
  auto append = [&](int32_t token, float logprob) {
    const std::string bytes = m_tokenizer.tokenBytes(token);
    out += "{\"token\":";
    appendJsonString(out, bytes);
    out += ",\"logprob\":" + logprobNumber(logprob) + ",\"bytes\":[";
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
  return out + "]";
}

}  // namespace headroom::engine
