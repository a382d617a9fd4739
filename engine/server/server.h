// SPDX-License-Identifier: Apache-2.0
// The HTTP face of the engine. It answers /health, /engine/state and /engine/events from the first moment (while weights load), the OpenAI routes
// once the engine is ready (503 before).
#pragma once

#include "engine/engine.h"
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
};

class Server {
 public:
  // Binds at once: an address in use is an Error that names it. `tokenizer` and `chatTemplate` may be null (routes that need them say why).
  static Result<std::unique_ptr<Server>> start(ServerOptions options, Engine& engine, const Tokenizer* tokenizer, const ChatTemplate* chatTemplate,
                                               std::string noTemplateReason);
  ~Server();
  std::string url() const;
  void notifyStateChanged();  // thread-safe: sends a state event
  // No new requests; running ones may finish for `seconds`, then everything closes.
  void stop(double seconds);

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> m_impl;
};

}  // namespace headroom::engine
