// SPDX-License-Identifier: Apache-2.0
// The HTTP face of the engine. It answers /health, /engine/state and /engine/events from the first moment (while weights load),
// the OpenAI routes once the engine is ready (503 before).
#pragma once

#include "engine/server/generation_service.h"
#include "engine/server/http_server.h"
#include "engine/text/chat_template.h"
#include "engine/text/tokenizer.h"

#include <memory>
#include <string>

namespace headroom::engine {

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 8000;  // 0: a free one
  std::string apiKey;
  std::string servedModelName;
  int threads = 2;
  int64_t maxRequests = 0;   // answered at the same time; others get 429. 0: no limit
  double requestTimeout = 0;  // seconds for a whole answer; 0: none
  HttpLimits limits;
};

class Server {
 public:
  // Binds at once: an address in use is an Error that names it. Connections wait until serve().
  static Result<std::unique_ptr<Server>> bind(ServerOptions options);
  ~Server();
  // Starts to answer. `tokenizer` and `chatTemplate` may be null: routes that need them give the reason. All must outlive the
  // server.
  void serve(GenerationService& service, const Tokenizer* tokenizer, std::string noTokenizerReason,
             const ChatTemplate* chatTemplate, std::string noTemplateReason);
  std::string url() const;
  int port() const;
  void notifyStateChanged();  // thread-safe: sends a state event
  // No new requests; running ones may finish for `seconds`, then everything closes.
  void stop(double seconds);
  size_t openConnections() const;

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> m_impl;
};

}  // namespace headroom::engine
