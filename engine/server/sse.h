// SPDX-License-Identifier: Apache-2.0
// Server-sent events: the framing, and the hub behind /engine/events.
#pragma once

#include "engine/server/http_server.h"
#include "engine/server/model_set.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::engine {

// "data: …\n\n", or "event: name\ndata: …\n\n". `json` holds no line break (compact JSON never does).
std::string sseEvent(std::string_view json, std::string_view name = {});

// Sends each subscriber the state at once and on each change, and a metrics sample twice a second while there is any: of the
// model that requests without a name mean. Thread-safe.
class EventHub : public std::enable_shared_from_this<EventHub> {
 public:
  EventHub(ModelSet& models, HttpServer& http) : m_models(models), m_http(http) {}
  void subscribe(const std::shared_ptr<HttpExchange>& exchange);  // on its strand
  void stateChanged();                                            // many calls at once become one event
  void stop();                                                    // ends all streams, each with the state as it is then

 private:
  void broadcast(std::string event, bool mayBeDropped);
  void tick();
  std::string stateEvent() const;

  ModelSet& m_models;
  HttpServer& m_http;
  std::mutex m_order;  // held from reading a state until it is on its way: the last one sent is the last one read
  std::mutex m_mutex;  // taken within it
  std::vector<std::shared_ptr<HttpExchange>> m_subscribers;
  std::atomic<bool> m_changePending{false};
  bool m_ticking = false, m_stopped = false;
};

}  // namespace headroom::engine
