// SPDX-License-Identifier: Apache-2.0
// The routes: OpenAI's, vLLM's tokenize and detokenize, health, metrics and the engine's own. JSON, templates and tokenization
// run on a small pool of workers, so that a long prompt holds up no stream; only tokens go on to the engine.
#pragma once

#include "engine/server/http_server.h"
#include "engine/server/model_set.h"
#include "engine/server/response_store.h"
#include "engine/server/sse.h"

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace headroom::engine {

struct RouteOptions {
  std::string apiKey;
  int workers = 2;
  int64_t maxRequests = 0;                      // answered at the same time, others get 429; 0: no limit
  std::chrono::milliseconds requestTimeout{0};  // of a whole answer; 0: none
  ResponseStoreLimits responseStore;
  std::function<void(std::chrono::milliseconds, std::function<void()>)> schedule;  // runs something later; needed for the timeout
};

class OpenAiRoutes {
 public:
  OpenAiRoutes(ModelSet& models, std::shared_ptr<EventHub> events, RouteOptions options);
  ~OpenAiRoutes();
  // On the exchange's strand; never blocks.
  void handle(const std::shared_ptr<HttpExchange>& exchange);
  void stop();  // waits for the workers

 private:
  struct Impl;
  std::unique_ptr<Impl> m_impl;
};

}  // namespace headroom::engine
