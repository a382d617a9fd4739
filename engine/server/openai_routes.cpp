// SPDX-License-Identifier: Apache-2.0
#include "engine/server/openai_routes.h"

#include "engine/server/generation.h"
#include "engine/server/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cctype>
#include <ctime>
#include <functional>
#include <map>
#include <mutex>

namespace headroom::engine {
namespace {

using Exchange = std::shared_ptr<HttpExchange>;
using Json = nlohmann::ordered_json;

void answer(const Exchange& exchange, std::string json) {
  HttpResponse response;
  response.body = std::move(json);
  exchange->respond(std::move(response));
}

void answerError(const Exchange& exchange, const ApiError& error, std::vector<std::pair<std::string, std::string>> headers = {}) {
  HttpResponse response;
  response.status = error.status;
  response.body = errorJson(error);
  response.headers = std::move(headers);
  exchange->respond(std::move(response));
}

// Takes as long for a wrong key as for the right one.
bool sameSecret(std::string_view given, std::string_view secret) {
  unsigned difference = given.size() == secret.size() ? 0 : 1;
  for (size_t i = 0; i < secret.size(); ++i)
    difference |= static_cast<unsigned>(secret[i] ^ (i < given.size() ? given[i] : '\0'));
  return difference == 0;
}

// Stands in where a model has no tokenizer: token ids go in and out, text stays empty.
class NoTokenizer final : public Tokenizer {
 public:
  std::vector<int32_t> encode(std::string_view, bool) const override { return {}; }
  std::string decode(std::span<const int32_t>, bool) const override { return {}; }
  std::string tokenBytes(int32_t) const override { return {}; }
  std::string tokenText(int32_t) const override { return {}; }
  std::optional<int32_t> tokenId(std::string_view) const override { return std::nullopt; }
  bool isSpecial(int32_t) const override { return false; }
  int64_t vocabSize() const override { return 0; }
  std::vector<int32_t> eosTokenIds() const override { return {}; }
};
const NoTokenizer kNoTokenizer;

ApiError notFound(const std::string& path) {
  return {404, fmt::format("There is nothing at {}.", path), {}, "invalid_request_error", "not_found"};
}

}  // namespace

struct OpenAiRoutes::Impl {
  Impl(GenerationService& service, const Tokenizer* tokenizer, const ChatTemplate* chatTemplate, std::shared_ptr<EventHub> events,
       RouteOptions given)
      : service(service),
        tokenizer(tokenizer),
        chatTemplate(chatTemplate),
        events(std::move(events)),
        options(std::move(given)),
        workers(static_cast<size_t>(std::max(options.workers, 1))),
        created(std::time(nullptr)) {}

  GenerationService& service;
  const Tokenizer* tokenizer;
  const ChatTemplate* chatTemplate;
  std::shared_ptr<EventHub> events;
  RouteOptions options;
  boost::asio::thread_pool workers;
  int64_t created;
  std::atomic<int64_t> open{0};  // requests that are being answered
  const ToolCallForm toolCalls = chatTemplate ? toolCallFormOf(chatTemplate->source()) : ToolCallForm();
  const ReasoningForm reasoning = chatTemplate ? reasoningFormOf(chatTemplate->source()) : ReasoningForm();
  std::once_flag trieOnce[2];
  std::shared_ptr<const TokenTrie>
      tries[2];  // each made by the first request that needs it; the second has the marks of calls and reasoning

  using Handler = void (Impl::*)(const Exchange&);
  struct Route {
    std::string method;
    Handler handler;
    bool needsKey, needsEngine;
  };
  // A path has one method here.
  const std::map<std::string, Route, std::less<>> routes{
      {"/v1/models", {"GET", &Impl::models, true, true}},
      {"/v1/completions", {"POST", &Impl::completions, true, true}},
      {"/v1/chat/completions", {"POST", &Impl::chatCompletions, true, true}},
      {"/tokenize", {"POST", &Impl::tokenize, true, false}},
      {"/detokenize", {"POST", &Impl::detokenize, true, false}},
      {"/health", {"GET", &Impl::health, false, false}},
      {"/metrics", {"GET", &Impl::metrics, false, false}},
      {"/engine/state", {"GET", &Impl::engineState, false, false}},
      {"/engine/events", {"GET", &Impl::engineEvents, false, false}},
  };

  RequestBounds bounds() const { return {options.modelName, service.maxModelLen(), service.vocabSize(), toolCalls, reasoning}; }

  void handle(const Exchange& exchange) {
    const HttpRequest& request = exchange->request();
    if (request.method == "OPTIONS") return preflight(exchange);
    const Route model{"GET", &Impl::model, true, true};
    const auto found = routes.find(request.path);
    const bool isModel = request.path.starts_with("/v1/models/") && request.path.size() > 11;
    const Route* route = found != routes.end() ? &found->second : isModel ? &model : nullptr;
    const bool guarded = route ? route->needsKey : request.path.starts_with("/v1/");
    if (guarded && !isAuthorized(request))
      return answerError(exchange,
                         {401,
                          "The API key is missing or wrong; expected the header \"Authorization: Bearer KEY\".",
                          {},
                          "invalid_request_error",
                          "invalid_api_key"},
                         {{"WWW-Authenticate", "Bearer"}});
    if (!route) return answerError(exchange, whyNotHere(request.path).value_or(notFound(request.path)));
    if (request.method != route->method && !(request.method == "HEAD" && route->method == "GET"))
      return answerError(exchange,
                         {405,
                          fmt::format("{} takes {}, not {}.", request.path, route->method, request.method),
                          {},
                          "invalid_request_error",
                          "method_not_allowed"},
                         {{"Allow", route->method + ", OPTIONS"}});
    if (route->needsEngine) {
      if (const auto error = whyNotReady()) return answerError(exchange, *error, {{"Retry-After", "1"}});
    }
    (this->*route->handler)(exchange);
  }

  // What other servers of this API have at such a path, and why this one does not.
  static std::optional<ApiError> whyNotHere(const std::string& path) {
    static const std::map<std::string, std::string, std::less<>> kReasons{
        {"/v1/responses", "Chat completions take the same messages, tools and forms of answers."},
        {"/v1/embeddings", "This model makes text, no embeddings: it declares no pooling of its hidden states."},
        {"/v1/rerank", "This model makes text and scores no documents."},
        {"/v1/score", "This model makes text and scores no pairs."},
        {"/v1/audio/transcriptions", "This model takes text, no sound."},
        {"/v1/audio/speech", "This model makes text, no sound."},
        {"/v1/images/generations", "This model makes text, no images."},
        {"/v1/moderations", "This model makes text and judges none."},
        {"/v1/files", "This server keeps no files."},
        {"/v1/batches", "This server runs no batches; send the requests at the same time."},
        {"/v1/assistants", "This server keeps no assistants; chat completions take tools."}};
    const auto found = kReasons.find(path);
    if (found == kReasons.end()) return std::nullopt;
    return ApiError{404, fmt::format("{} is not offered. {}", path, found->second), {}, "invalid_request_error", "not_offered"};
  }

  bool isAuthorized(const HttpRequest& request) const {
    if (options.apiKey.empty()) return true;
    std::string_view given = request.header("authorization");
    constexpr std::string_view kScheme = "bearer ";
    if (given.size() < kScheme.size()) return false;
    for (size_t i = 0; i < kScheme.size(); ++i)
      if (std::tolower(static_cast<unsigned char>(given[i])) != kScheme[i]) return false;
    return sameSecret(given.substr(kScheme.size()), options.apiKey);
  }

  void preflight(const Exchange& exchange) {
    HttpResponse response;
    response.status = 204;
    response.contentType.clear();
    // "*" would not cover authorization.
    response.headers = {{"Access-Control-Allow-Methods", "GET, POST, HEAD, OPTIONS"}, {"Access-Control-Max-Age", "86400"}};
    const std::string_view asked = exchange->request().header("access-control-request-headers");
    response.headers.emplace_back("Access-Control-Allow-Headers", askedList(asked));
    exchange->respond(std::move(response));
  }

  // What clients send, and whatever else this one asks for.
  static std::string askedList(std::string_view asked) {
    std::string list = "authorization, content-type";
    const bool plain = asked.size() < 1000 && std::all_of(asked.begin(), asked.end(), [](char c) {
                         return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == ',' || c == ' ';
                       });
    if (plain && !asked.empty()) list += ", " + std::string(asked);
    return list;
  }

  std::optional<ApiError> whyNotReady() const {
    const EngineState state = service.state();
    if (state.phase == EnginePhase::Ready) return std::nullopt;
    if (state.phase == EnginePhase::Failed)
      return ApiError{503, "The engine failed: " + state.error, {}, "internal_error", "engine_failed"};
    if (state.phase == EnginePhase::Draining)
      return ApiError{503, "The engine is stopping and takes no new requests.", {}, "service_unavailable", "engine_stopping"};
    return ApiError{503, "The engine is loading the model.", {}, "service_unavailable", "engine_loading"};
  }

  // ---- quick routes

  Json card() const {
    return {{"id", options.modelName},
            {"object", "model"},
            {"created", created},
            {"owned_by", "headroom"},
            {"root", options.modelName},
            {"parent", nullptr},
            {"max_model_len", service.maxModelLen()}};
  }
  void models(const Exchange& exchange) { answer(exchange, dumpJson(Json{{"object", "list"}, {"data", Json::array({card()})}})); }
  void model(const Exchange& exchange) {
    const std::string id = exchange->request().path.substr(std::string_view("/v1/models/").size());
    if (id == options.modelName) return answer(exchange, dumpJson(card()));
    answerError(
        exchange,
        {404, fmt::format("The model {} does not exist; this server has {}.", jsonString(id), jsonString(options.modelName)),
         "model", "invalid_request_error", "model_not_found"});
  }
  void health(const Exchange& exchange) {
    if (const auto error = whyNotReady()) return answerError(exchange, *error);
    answer(exchange, R"({"status":"ok"})");
  }
  void metrics(const Exchange& exchange) {
    HttpResponse response;
    response.contentType = "text/plain; version=0.0.4; charset=utf-8";
    response.body = prometheusText(service.metrics(), options.modelName);
    exchange->respond(std::move(response));
  }
  void engineState(const Exchange& exchange) { answer(exchange, dumpJson(toJson(service.state()))); }
  void engineEvents(const Exchange& exchange) { events->subscribe(exchange); }

  // ---- routes with a body: read by a worker, answered on the strand

  // `work` returns what to do on the strand.
  void onWorker(const Exchange& exchange, std::function<std::function<void()>(const Exchange&)> work) {
    boost::asio::post(workers, [exchange, work = std::move(work)] {
      std::function<void()> answerIt;
      try {
        answerIt = work(exchange);
      } catch (const std::exception& problem) {  // memory, or a mistake of ours: this request fails, the others go on
        ApiError error{500, fmt::format("The request could not be prepared: {}", problem.what()), {}, "internal_error", {}};
        answerIt = [exchange, error] { answerError(exchange, error); };
      }
      exchange->post(std::move(answerIt));
    });
  }

  static std::function<void()> refusal(const Exchange& exchange, ApiError error) {
    return [exchange, error = std::move(error)] { answerError(exchange, error); };
  }

  std::vector<std::string> marks() const {
    std::vector<std::string> all = toolCalls.marks();
    if (reasoning.exists()) all.insert(all.end(), {reasoning.open, reasoning.close});
    return all;
  }

  // The vocabulary without special tokens, which are no text; `withMarks`, except those that models write around calls and
  // reasoning.
  std::shared_ptr<const TokenTrie> tokenTrie(bool withMarks) {
    std::call_once(trieOnce[withMarks], [&] {
      const std::vector<int32_t> ends = tokenizer->eosTokenIds();
      std::vector<int32_t> special;
      if (withMarks)
        for (const std::string& mark : marks())
          if (const auto id = tokenizer->tokenId(mark)) special.push_back(*id);
      auto contains = [](const std::vector<int32_t>& ids, int32_t token) {
        return std::find(ids.begin(), ids.end(), token) != ids.end();
      };
      tries[withMarks] = std::make_shared<const TokenTrie>(tokenizer->vocabSize(), [&](int32_t token) {
        const bool isText = !contains(ends, token) && (!tokenizer->isSpecial(token) || contains(special, token));
        return isText ? tokenizer->tokenBytes(token) : std::string();
      });
    });
    return tries[withMarks];
  }

  // Models write some marks as special tokens, which must stay in the text then.
  bool marksAreSpecial() const {
    const std::vector<std::string> all = marks();
    return tokenizer && std::any_of(all.begin(), all.end(), [&](const std::string& mark) {
             const auto id = tokenizer->tokenId(mark);
             return id && tokenizer->isSpecial(*id);
           });
  }

  // Counts a request until the last that knows of it lets go.
  std::shared_ptr<void> seat() {
    if (open.fetch_add(1) >= options.maxRequests && options.maxRequests > 0) {
      open.fetch_sub(1);
      return nullptr;
    }
    return {this, [this](void*) { open.fetch_sub(1); }};
  }

  template <class Request>
  void generate(const Exchange& exchange, Request read) {
    auto taken = seat();
    if (!taken)
      return answerError(exchange,
                         {429,
                          fmt::format("The server answers {} requests already, its limit; try again later.", options.maxRequests),
                          {},
                          "rate_limit_error",
                          "too_many_requests"},
                         {{"Retry-After", "1"}});
    onWorker(exchange, [this, read, taken = std::move(taken)](const Exchange& exchange) -> std::function<void()> {
      const auto body = parseJsonObject(exchange->request().body);
      if (!body) return refusal(exchange, body.error());
      exchange->request().body = {};
      auto request = read(*body, bounds());
      if (!request) return refusal(exchange, request.error());
      if (request->chat && (request->tools.reads || request->frame.isNeeded()) && marksAreSpecial())
        request->skipSpecialTokens = false;
      auto prompts = prepare(*request);
      if (!prompts) return refusal(exchange, prompts.error());
      auto vocabulary =
          request->grammar ? tokenTrie(request->chat && (request->tools.reads || request->frame.isNeeded())) : nullptr;
      auto generation = std::make_shared<Generation>(exchange, service, tokenizer ? *tokenizer : kNoTokenizer, options.modelName,
                                                     std::move(*request), std::move(*prompts), std::move(vocabulary));
      generation->keep(taken);
      if (options.requestTimeout.count() > 0 && options.schedule)
        options.schedule(options.requestTimeout, [exchange, weak = std::weak_ptr(generation), limit = options.requestTimeout] {
          exchange->post([weak, limit] {
            if (const auto late = weak.lock()) late->expire(limit);
          });
        });
      return [generation] { generation->start(); };
    });
  }
  void completions(const Exchange& exchange) { generate(exchange, &readCompletionRequest); }
  void chatCompletions(const Exchange& exchange) { generate(exchange, &readChatRequest); }

  ApiResult<std::string> render(const Json& conversation) const {
    if (!chatTemplate)
      return tl::unexpected(
          ApiError{400, "messages: " + options.noTemplateReason, "messages", "invalid_request_error", "no_chat_template"});
    auto text = chatTemplate->render(conversation);
    if (!text)
      return tl::unexpected(ApiError{
          400, "messages: the chat template refused them: " + text.error().message(), "messages", "invalid_request_error", {}});
    return std::move(*text);
  }

  std::optional<ApiError> whyNoText() const {
    if (tokenizer) return std::nullopt;
    return ApiError{400, options.noTokenizerReason, {}, "invalid_request_error", "no_tokenizer"};
  }

  ApiResult<std::vector<PreparedPrompt>> prepare(OpenAiRequest& request) const {
    // Without a tokenizer token ids are still served.
    const bool onlyIds = std::all_of(request.prompts.begin(), request.prompts.end(),
                                     [](const PromptInput& prompt) { return std::holds_alternative<TokenIds>(prompt); });
    if (const auto error = whyNoText();
        error && (request.chat || !onlyIds || request.echo || !request.stop.empty() || request.grammar))
      return tl::unexpected(*error);
    std::vector<PreparedPrompt> prompts;
    const RequestBounds limits = bounds();
    auto add = [&](TokenIds tokens, std::string text) -> std::optional<ApiError> {
      for (int32_t token : tokens)
        if (token < 0 || token >= limits.vocabSize)
          return ApiError{400,
                          fmt::format("prompt: its text has token {}, which the model's vocabulary of {} does not hold.", token,
                                      limits.vocabSize),
                          "prompt",
                          "invalid_request_error",
                          {}};
      const auto maxTokens = fitToContext(request, tokens, limits);
      if (!maxTokens) return maxTokens.error();
      prompts.push_back({std::move(tokens), std::move(text), *maxTokens});
      return std::nullopt;
    };
    if (request.chat) {
      const auto text = render(request.conversation);
      if (!text) return tl::unexpected(text.error());
      std::string_view begun = *text;
      begun = begun.substr(0, begun.find_last_not_of(" \t\r\n") + 1);
      request.reasoningBegins = reasoning.exists() && begun.ends_with(reasoning.open);
      if (const auto error = add(tokenizer->encode(*text, request.addSpecialTokens), {})) return tl::unexpected(*error);
      return prompts;
    }
    for (const PromptInput& input : request.prompts) {
      std::optional<ApiError> error;
      if (const auto* text = std::get_if<std::string>(&input))
        error = add(tokenizer->encode(*text, request.addSpecialTokens), request.echo ? *text : std::string());
      else {
        const auto& ids = std::get<TokenIds>(input);
        error = add(ids, request.echo ? tokenizer->decode(ids, request.skipSpecialTokens) : std::string());
      }
      if (error) return tl::unexpected(*error);
    }
    return prompts;
  }

  void tokenize(const Exchange& exchange) {
    onWorker(exchange, [this](const Exchange& exchange) -> std::function<void()> {
      const auto body = parseJsonObject(exchange->request().body);
      if (!body) return refusal(exchange, body.error());
      const auto request = readTokenizeRequest(*body, bounds());
      if (!request) return refusal(exchange, request.error());
      if (const auto error = whyNoText()) return refusal(exchange, *error);
      std::string text;
      if (request->prompt)
        text = *request->prompt;
      else if (auto rendered = render(request->conversation))
        text = std::move(*rendered);
      else
        return refusal(exchange, rendered.error());
      const TokenIds ids = tokenizer->encode(text, request->addSpecialTokens);
      Json result{{"count", ids.size()}, {"max_model_len", service.maxModelLen()}, {"tokens", ids}, {"token_strs", nullptr}};
      if (request->returnTokenStrings) {
        Json strings = Json::array();
        for (int32_t id : ids) strings.push_back(tokenizer->tokenText(id));
        result["token_strs"] = std::move(strings);
      }
      return [exchange, json = dumpJson(result)]() mutable { answer(exchange, std::move(json)); };
    });
  }

  void detokenize(const Exchange& exchange) {
    onWorker(exchange, [this](const Exchange& exchange) -> std::function<void()> {
      const auto body = parseJsonObject(exchange->request().body);
      if (!body) return refusal(exchange, body.error());
      const auto ids = readDetokenizeRequest(*body, bounds());
      if (!ids) return refusal(exchange, ids.error());
      if (const auto error = whyNoText()) return refusal(exchange, *error);
      return [exchange, json = "{\"prompt\":" + jsonString(tokenizer->decode(*ids, false)) + "}"]() mutable {
        answer(exchange, std::move(json));
      };
    });
  }
};

OpenAiRoutes::OpenAiRoutes(GenerationService& service, const Tokenizer* tokenizer, const ChatTemplate* chatTemplate,
                           std::shared_ptr<EventHub> events, RouteOptions options)
    : m_impl(std::make_unique<Impl>(service, tokenizer, chatTemplate, std::move(events), std::move(options))) {}
OpenAiRoutes::~OpenAiRoutes() { stop(); }

void OpenAiRoutes::handle(const std::shared_ptr<HttpExchange>& exchange) { m_impl->handle(exchange); }
void OpenAiRoutes::stop() { m_impl->workers.join(); }

}  // namespace headroom::engine
