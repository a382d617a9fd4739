// SPDX-License-Identifier: Apache-2.0
#include "engine/server/server.h"

#include "engine/server/openai_routes.h"
#include "engine/server/sse.h"

#include <atomic>

namespace headroom::engine {

struct Server::Impl {
  ServerOptions options;
  ModelSet models;
  std::unique_ptr<HttpServer> http;
  std::shared_ptr<EventHub> events;
  std::unique_ptr<OpenAiRoutes> routes;
  std::atomic<bool> serving{false};
};

Server::Server(std::unique_ptr<Impl> impl) : m_impl(std::move(impl)) {}
Server::~Server() { stop(0); }

Result<std::unique_ptr<Server>> Server::bind(ServerOptions options) {
  auto http = HttpServer::bind(options.host, options.port, options.limits);
  if (!http) return tl::unexpected(http.error());
  auto impl = std::make_unique<Impl>();
  impl->options = std::move(options);
  impl->http = std::move(*http);
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

void Server::serve(GenerationService& service, ModelText text) {
  models().add({std::make_shared<ServedModel>(m_impl->options.servedModelName, service, std::move(text)), {}});
  serve();
}

void Server::serve() {
  Impl& impl = *m_impl;
  impl.events = std::make_shared<EventHub>(impl.models, *impl.http);
  impl.models.onChange([this] { notifyStateChanged(); });
  RouteOptions routes;
  routes.apiKey = impl.options.apiKey;
  routes.maxRequests = impl.options.maxRequests;
  routes.requestTimeout = std::chrono::milliseconds(static_cast<int64_t>(impl.options.requestTimeout * 1e3));
  routes.schedule = [http = impl.http.get()](std::chrono::milliseconds delay, std::function<void()> work) {
    http->schedule(delay, std::move(work));
  };
  impl.routes = std::make_unique<OpenAiRoutes>(impl.models, impl.events, std::move(routes));
  // Before the first client can ask: engines load meanwhile, and what changes then is told to those who have subscribed.
  impl.serving = true;
  impl.http->serve([&routes = *impl.routes](const std::shared_ptr<HttpExchange>& exchange) { routes.handle(exchange); },
                   impl.options.threads);
}

ModelSet& Server::models() { return m_impl->models; }
std::string Server::url() const { return m_impl->http->url(); }
int Server::port() const { return m_impl->http->port(); }
size_t Server::openConnections() const { return m_impl->http->openConnections(); }

void Server::notifyStateChanged() {
  if (m_impl->serving) m_impl->events->stateChanged();
}

void Server::stop(double seconds) {
  if (m_impl->events) m_impl->events->stop();
  m_impl->http->stop(seconds);
  if (m_impl->routes) m_impl->routes->stop();
  m_impl->models.closeAll();
}

}  // namespace headroom::engine
