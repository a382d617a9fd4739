// SPDX-License-Identifier: Apache-2.0
// The HTTP face of the engines. It answers /health, /engine/state and /engine/events from the first moment (while weights load),
// the OpenAI routes once the engine is ready (503 before).
#pragma once

#include "engine/server/http_server.h"
#include "engine/server/model_set.h"

#include <memory>
#include <string>

namespace headroom::engine {

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 8000;  // 0: a free one
  std::string apiKey;
  std::string servedModelName;
  int threads = 2;
  int64_t maxRequests = 0;    // answered at the same time; others get 429. 0: no limit
  double requestTimeout = 0;  // seconds for a whole answer; 0: none
  HttpLimits limits;
};

class Server {
 public:
  // Binds at once: an address in use is an Error that names it. Connections wait until serve().
  static Result<std::unique_ptr<Server>> bind(ServerOptions options);
  ~Server();
  // Starts to answer with the models in models().
  void serve();
  // The same with one more, under the served name of the options. Both must outlive the server.
  void serve(GenerationService& service, ModelText text);
  ModelSet& models();
  std::string url() const;
  int port() const;
  void notifyStateChanged();  // thread-safe: sends a state event
  // No new requests; running ones may finish for `seconds`, then everything closes, the models too.
  void stop(double seconds);
  size_t openConnections() const;

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> m_impl;
};

}  // namespace headroom::engine
