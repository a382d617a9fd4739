// SPDX-License-Identifier: Apache-2.0
#include "engine/server/openai_routes.h"

#include "engine/server/completion_generation.h"
#include "engine/server/embedding_generation.h"
#include "engine/server/metrics.h"
#include "engine/server/response_generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cctype>
#include <charconv>
#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace headroom::engine {
namespace {

using Exchange = std::shared_ptr<HttpExchange>;
using Json = nlohmann::ordered_json;

void answer(const Exchange& exchange, std::string json, int status = 200) {
  HttpResponse response;
  response.status = status;
  response.body = std::move(json);
  exchange->respond(std::move(response));
}

void answerError(const Exchange& exchange, const ApiError& error, std::vector<std::pair<std::string, std::string>> headers = {}) {
  HttpResponse response;
  response.status = error.status;
  response.body = errorJson(error);
  response.headers = std::move(headers);
  if (error.status == 503 || error.status == 429) response.headers.emplace_back("Retry-After", "1");
  exchange->respond(std::move(response));
}

// Takes as long for a wrong key as for the right one.
bool sameSecret(std::string_view given, std::string_view secret) {
  unsigned difference = given.size() == secret.size() ? 0 : 1;
  for (size_t i = 0; i < secret.size(); ++i)
    difference |= static_cast<unsigned>(secret[i] ^ (i < given.size() ? given[i] : '\0'));
  return difference == 0;
}

ApiError notFound(const std::string& path) {
  return {404, fmt::format("There is nothing at {}.", path), {}, "invalid_request_error", "not_found"};
}

}  // namespace

struct OpenAiRoutes::Impl {
  Impl(ModelSet& models, std::shared_ptr<EventHub> events, RouteOptions given)
      : models(models),
        events(std::move(events)),
        options(std::move(given)),
        responses(std::make_shared<ResponseStore>(options.responseStore)),
        workers(static_cast<size_t>(std::max(options.workers, 1))) {}

  ModelSet& models;
  std::shared_ptr<EventHub> events;
  RouteOptions options;
  const std::shared_ptr<ResponseStore> responses;
  boost::asio::thread_pool workers;
  std::atomic<int64_t> open{0};  // requests that are being answered

  using Handler = void (Impl::*)(const Exchange&);
  struct Route {
    std::string method;
    std::string path;  // all paths below it where it ends with '/'
    Handler handler;
    bool needsKey;
  };
  const std::vector<Route> routes{
      {"GET", "/v1/models", &Impl::listModels, true},
      {"GET", "/v1/models/", &Impl::showModel, true},
      {"POST", "/v1/completions", &Impl::completions, true},
      {"POST", "/v1/chat/completions", &Impl::chatCompletions, true},
      {"POST", "/v1/embeddings", &Impl::embeddings, true},
      {"POST", "/v1/responses", &Impl::createResponse, true},
      {"GET", "/v1/responses/", &Impl::showResponse, true},
      {"DELETE", "/v1/responses/", &Impl::deleteResponse, true},
      {"POST", "/tokenize", &Impl::tokenize, true},
      {"POST", "/detokenize", &Impl::detokenize, true},
      {"GET", "/health", &Impl::health, false},
      {"GET", "/metrics", &Impl::metrics, false},
      {"GET", "/engine/models", &Impl::engineModels, true},
      {"POST", "/engine/models", &Impl::loadModel, true},
      {"GET", "/engine/models/", &Impl::engineModel, true},
      {"DELETE", "/engine/models/", &Impl::unloadModel, true},
      {"GET", "/engine/state", &Impl::engineState, false},
      {"GET", "/engine/events", &Impl::engineEvents, false},
  };

  static bool isAt(const Route& route, std::string_view path) {
    if (!route.path.ends_with('/')) return path == route.path;
    return path.size() > route.path.size() && path.starts_with(route.path);
  }

  void handle(const Exchange& exchange) {
    const HttpRequest& request = exchange->request();
    if (request.method == "OPTIONS") return preflight(exchange);
    const Route *route = nullptr, *other = nullptr;  // of the method; of the path alone
    std::string methods;
    for (const Route& candidate : routes) {
      if (!isAt(candidate, request.path)) continue;
      other = &candidate;
      methods += candidate.method + ", ";
      if (request.method == candidate.method || (request.method == "HEAD" && candidate.method == "GET")) route = &candidate;
    }
    const bool guarded = other ? other->needsKey : request.path.starts_with("/v1/");
    if (guarded && !isAuthorized(request))
      return answerError(exchange,
                         {401,
                          "The API key is missing or wrong; expected the header \"Authorization: Bearer KEY\".",
                          {},
                          "invalid_request_error",
                          "invalid_api_key"},
                         {{"WWW-Authenticate", "Bearer"}});
    if (!other) return answerError(exchange, whyNotHere(request.path).value_or(notFound(request.path)));
    if (!route)
      return answerError(
          exchange,
          {405,
           fmt::format("{} takes {}, not {}.", request.path, methods.substr(0, methods.size() - 2), request.method),
           {},
           "invalid_request_error",
           "method_not_allowed"},
          {{"Allow", methods + "OPTIONS"}});
    (this->*route->handler)(exchange);
  }

  // What other servers of this API have at such a path, and why this one does not.
  static std::optional<ApiError> whyNotHere(const std::string& path) {
    static const std::map<std::string, std::string, std::less<>> kReasons{
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
    response.headers = {{"Access-Control-Allow-Methods", "GET, POST, DELETE, HEAD, OPTIONS"},
                        {"Access-Control-Max-Age", "86400"}};
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

  // ---- quick routes

  static Json cardOf(const ServedModel& model) {
    return {{"id", model.name()},
            {"object", "model"},
            {"created", model.created()},
            {"owned_by", "headroom"},
            {"root", model.name()},
            {"parent", nullptr},
            {"max_model_len", model.service().maxModelLen()}};
  }

  ApiError noModel(const std::string& name) const {
    return {404, fmt::format("The model {} does not exist; this server has {}.", jsonString(name), models.names()), "model",
            "invalid_request_error", "model_not_found"};
  }

  // Why no model can answer; nothing where one can.
  std::optional<ApiError> whyNoneIsReady() const {
    std::optional<ApiError> why;
    for (const auto& model : models.all()) {
      const auto reason = model->whyNotReady();
      if (!reason) return std::nullopt;
      if (!why) why = reason;
    }
    return why ? *why : noModelAtAll();
  }
  static ApiError noModelAtAll() { return {503, "No model is loaded.", {}, "service_unavailable", "no_model"}; }

  // The model that a body names, ready to answer where `mustBeReady`.
  ApiResult<std::shared_ptr<ServedModel>> modelFor(const Json& body, bool mustBeReady = true) const {
    const auto name = body.find("model");
    const bool isNamed = name != body.end() && name->is_string();
    const std::shared_ptr<ServedModel> first = models.first();
    std::shared_ptr<ServedModel> model = isNamed ? models.find(name->get<std::string>()) : first;
    // While the only model is not ready, that matters more than a wrong name.
    const std::shared_ptr<ServedModel>& asked = model ? model : first;
    if (!model && isNamed)
      if (const auto leaving = models.findKnown(name->get<std::string>()))
        if (const auto error = leaving->whyNotReady()) return tl::unexpected(*error);
    // One may be loaded just now.
    if (!asked) return tl::unexpected(whyNoneIsReady().value_or(noModelAtAll()));
    if (mustBeReady)
      if (const auto error = asked->whyNotReady()) return tl::unexpected(*error);
    if (!model) return tl::unexpected(noModel(name->get<std::string>()));
    return model;
  }

  void listModels(const Exchange& exchange) {
    if (const auto error = whyNoneIsReady()) return answerError(exchange, *error);
    Json cards = Json::array();
    for (const auto& model : models.all())
      if (!model->whyNotReady()) cards.push_back(cardOf(*model));
    answer(exchange, dumpJson(Json{{"object", "list"}, {"data", std::move(cards)}}));
  }
  void showModel(const Exchange& exchange) {
    if (const auto error = whyNoneIsReady()) return answerError(exchange, *error);
    const std::string id = exchange->request().path.substr(std::string_view("/v1/models/").size());
    if (const auto model = models.find(id)) return answer(exchange, dumpJson(cardOf(*model)));
    const auto leaving = models.findKnown(id);
    answerError(exchange, (leaving ? leaving->whyNotReady() : std::nullopt).value_or(noModel(id)));
  }
  void health(const Exchange& exchange) {
    if (const auto error = whyNoneIsReady()) return answerError(exchange, *error);
    answer(exchange, R"({"status":"ok"})");
  }
  void metrics(const Exchange& exchange) {
    std::vector<ModelMetrics> all;
    for (const auto& model : models.all()) all.push_back({model->name(), model->service().metrics()});
    HttpResponse response;
    response.contentType = "text/plain; version=0.0.4; charset=utf-8";
    response.body = prometheusText(all);
    exchange->respond(std::move(response));
  }
  void engineState(const Exchange& exchange) {
    const std::string& query = exchange->request().query;
    std::shared_ptr<ServedModel> model;
    if (query.starts_with("model=")) {
      const std::string name = percentDecode(std::string_view(query).substr(6));
      model = models.findKnown(name);
      if (!model) return answerError(exchange, noModel(name));
    }
    answer(exchange, dumpJson(stateJson(models, model)));
  }
  void engineEvents(const Exchange& exchange) { events->subscribe(exchange); }

  // ---- models that come and go

  void engineModels(const Exchange& exchange) {
    answer(exchange, dumpJson(nlohmann::json{{"object", "list"}, {"data", stateJson(models)["models"]}}));
  }
  static std::string modelIn(const std::string& path) { return path.substr(std::string_view("/engine/models/").size()); }
  void engineModel(const Exchange& exchange) {
    const std::string name = modelIn(exchange->request().path);
    // One that leaves is told of until it is gone.
    if (const auto model = models.findKnown(name)) return answer(exchange, dumpJson(summaryJson(*model)));
    answerError(exchange, noModel(name));
  }
  void loadModel(const Exchange& exchange) {
    onWorker(exchange, [this](const Exchange& exchange) -> std::function<void()> {
      const auto body = parseJsonObject(exchange->request().body);
      if (!body) return refusal(exchange, body.error());
      const auto loaded = models.load(*body);
      if (!loaded) return refusal(exchange, loaded.error());
      return [exchange, json = dumpJson(summaryJson(**loaded))] { answer(exchange, json, 202); };
    });
  }
  void unloadModel(const Exchange& exchange) {
    const HttpRequest& request = exchange->request();
    int64_t seconds = 30;
    if (request.query.starts_with("timeout=")) {
      const std::string_view text = std::string_view(request.query).substr(8);
      const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), seconds);
      if (problem != std::errc() || end != text.data() + text.size() || seconds < 0 || seconds > 86'400)
        return answerError(exchange, {400,
                                      fmt::format("timeout: found {}, expected seconds from 0 to 86400.", jsonString(text)),
                                      "timeout",
                                      "invalid_request_error",
                                      {}});
    }
    const std::string name = modelIn(request.path);
    if (const auto error = models.unload(name, std::chrono::seconds(seconds))) return answerError(exchange, *error);
    answer(exchange, dumpJson(Json{{"name", name}, {"phase", "draining"}, {"timeout_s", seconds}}), 202);
  }

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

  // Counts a request until the last that knows of it lets go.
  std::shared_ptr<void> seat() {
    if (open.fetch_add(1) >= options.maxRequests && options.maxRequests > 0) {
      open.fetch_sub(1);
      return nullptr;
    }
    return {this, [this](void*) { open.fetch_sub(1); }};
  }

  using Begin =
      std::function<ApiResult<std::shared_ptr<Generation>>(const Exchange&, const std::shared_ptr<ServedModel>&, const Json&)>;
  // Takes a seat and lets `begin` make a generation of the body for its model on a worker: it returns one, or the error.
  void generate(const Exchange& exchange, Begin begin) {
    auto taken = seat();
    if (!taken)
      return answerError(exchange,
                         {429,
                          fmt::format("The server answers {} requests already, its limit; try again later.", options.maxRequests),
                          {},
                          "rate_limit_error",
                          "too_many_requests"});
    onWorker(exchange,
             [this, begin = std::move(begin), taken = std::move(taken)](const Exchange& exchange) -> std::function<void()> {
               const auto body = parseJsonObject(exchange->request().body);
               if (!body) return refusal(exchange, body.error());
               exchange->request().body = {};
               const auto model = modelFor(*body);
               if (!model) return refusal(exchange, model.error());
               const auto generation = begin(exchange, *model, *body);
               if (!generation) return refusal(exchange, generation.error());
               (*generation)->keep(taken);
               if (options.requestTimeout.count() > 0 && options.schedule)
                 options.schedule(options.requestTimeout,
                                  [exchange, weak = std::weak_ptr(*generation), limit = options.requestTimeout] {
                                    exchange->post([weak, limit] {
                                      if (const auto late = weak.lock()) late->expire(limit);
                                    });
                                  });
               return [generation = *generation] { generation->start(); };
             });
  }

  using ReadRequest = ApiResult<OpenAiRequest> (*)(const Json&, const RequestBounds&);
  void complete(const Exchange& exchange, ReadRequest read) {
    generate(exchange,
             [read](const Exchange& exchange, const std::shared_ptr<ServedModel>& served,
                    const Json& body) -> ApiResult<std::shared_ptr<Generation>> {
               if (const auto error = served->whyNoGeneration()) return tl::unexpected(*error);
               auto request = read(body, served->bounds());
               if (!request) return tl::unexpected(request.error());
               auto prompts = served->prepare(*request);
               if (!prompts) return tl::unexpected(prompts.error());
               return std::make_shared<CompletionGeneration>(exchange, served, std::move(*request), std::move(*prompts));
             });
  }
  void completions(const Exchange& exchange) { complete(exchange, &readCompletionRequest); }
  void chatCompletions(const Exchange& exchange) { complete(exchange, &readChatRequest); }

  void embeddings(const Exchange& exchange) {
    generate(exchange,
             [](const Exchange& exchange, const std::shared_ptr<ServedModel>& served,
                const Json& body) -> ApiResult<std::shared_ptr<Generation>> {
               auto request = served->readEmbedding(body);
               if (!request) return tl::unexpected(request.error());
               auto prompts = served->prepare(request->prompts);
               if (!prompts) return tl::unexpected(prompts.error());
               return std::make_shared<EmbeddingGeneration>(exchange, served, std::move(*request), std::move(*prompts));
             });
  }

  void createResponse(const Exchange& exchange) {
    generate(exchange,
             [this](const Exchange& exchange, const std::shared_ptr<ServedModel>& served,
                    const Json& body) -> ApiResult<std::shared_ptr<Generation>> {
               if (const auto error = served->whyNoGeneration()) return tl::unexpected(*error);
               auto request = readResponsesRequest(body, served->bounds(), *responses);
               if (!request) return tl::unexpected(request.error());
               auto prompts = served->prepare(request->chat);
               if (!prompts) return tl::unexpected(prompts.error());
               return std::make_shared<ResponseGeneration>(exchange, served, std::move(*request), std::move(*prompts), responses);
             });
  }

  // /v1/responses/ID, and the same with a word behind it.
  static std::pair<std::string, std::string> responseAndWord(const std::string& path) {
    const std::string rest = path.substr(std::string_view("/v1/responses/").size());
    const size_t slash = rest.find('/');
    return {rest.substr(0, slash), slash == std::string::npos ? std::string() : rest.substr(slash + 1)};
  }
  static ApiError noResponse(const std::string& id) {
    return {404,
            fmt::format(
                "The response {} is not stored here: responses are kept in memory, the newest ones, unless \"store\" is false.",
                jsonString(id)),
            "response_id", "invalid_request_error", "response_not_found"};
  }

  void showResponse(const Exchange& exchange) {
    const auto [id, word] = responseAndWord(exchange->request().path);
    if (!word.empty() && word != "input_items") return answerError(exchange, notFound(exchange->request().path));
    const auto found = responses->find(id);
    if (!found) return answerError(exchange, noResponse(id));
    if (exchange->request().query.find("stream=true") != std::string::npos)
      return answerError(exchange,
                         {400, "stream: a stored response is whole; expected no stream.", "stream", "invalid_request_error", {}});
    if (word.empty()) return answer(exchange, found->response);
    // Newest first, as OpenAI lists them.
    Json items = Json::parse(found->input);
    std::reverse(items.begin(), items.end());
    const Json first = items.empty() ? Json() : items.front().value("id", Json()),
               last = items.empty() ? Json() : items.back().value("id", Json());
    answer(exchange,
           dumpJson(Json{
               {"object", "list"}, {"data", std::move(items)}, {"first_id", first}, {"last_id", last}, {"has_more", false}}));
  }
  void deleteResponse(const Exchange& exchange) {
    const auto [id, word] = responseAndWord(exchange->request().path);
    if (!word.empty()) return answerError(exchange, notFound(exchange->request().path));
    if (!responses->erase(id)) return answerError(exchange, noResponse(id));
    answer(exchange, dumpJson(Json{{"id", id}, {"object", "response.deleted"}, {"deleted", true}}));
  }

  void tokenize(const Exchange& exchange) {
    onWorker(exchange, [this](const Exchange& exchange) -> std::function<void()> {
      const auto body = parseJsonObject(exchange->request().body);
      if (!body) return refusal(exchange, body.error());
      const auto model = modelFor(*body, false);
      if (!model) return refusal(exchange, model.error());
      const std::shared_ptr<ServedModel>& served = *model;
      const auto request = readTokenizeRequest(*body, served->bounds());
      if (!request) return refusal(exchange, request.error());
      if (const auto error = served->whyNoText()) return refusal(exchange, *error);
      std::string text;
      if (request->prompt)
        text = *request->prompt;
      else if (auto rendered = served->render(request->conversation, "messages"))
        text = std::move(*rendered);
      else
        return refusal(exchange, rendered.error());
      const TokenIds ids = served->tokenizer().encode(text, request->addSpecialTokens);
      Json result{
          {"count", ids.size()}, {"max_model_len", served->service().maxModelLen()}, {"tokens", ids}, {"token_strs", nullptr}};
      if (request->returnTokenStrings) {
        Json strings = Json::array();
        for (int32_t id : ids) strings.push_back(served->tokenizer().tokenText(id));
        result["token_strs"] = std::move(strings);
      }
      return [exchange, json = dumpJson(result)]() mutable { answer(exchange, std::move(json)); };
    });
  }

  void detokenize(const Exchange& exchange) {
    onWorker(exchange, [this](const Exchange& exchange) -> std::function<void()> {
      const auto body = parseJsonObject(exchange->request().body);
      if (!body) return refusal(exchange, body.error());
      const auto model = modelFor(*body, false);
      if (!model) return refusal(exchange, model.error());
      const std::shared_ptr<ServedModel>& served = *model;
      const auto ids = readDetokenizeRequest(*body, served->bounds());
      if (!ids) return refusal(exchange, ids.error());
      if (const auto error = served->whyNoText()) return refusal(exchange, *error);
      return [exchange, json = "{\"prompt\":" + jsonString(served->tokenizer().decode(*ids, false)) + "}"]() mutable {
        answer(exchange, std::move(json));
      };
    });
  }
};

OpenAiRoutes::OpenAiRoutes(ModelSet& models, std::shared_ptr<EventHub> events, RouteOptions options)
    : m_impl(std::make_unique<Impl>(models, std::move(events), std::move(options))) {}
OpenAiRoutes::~OpenAiRoutes() { stop(); }

void OpenAiRoutes::handle(const std::shared_ptr<HttpExchange>& exchange) { m_impl->handle(exchange); }
void OpenAiRoutes::stop() { m_impl->workers.join(); }

}  // namespace headroom::engine
