// SPDX-License-Identifier: Apache-2.0
#include "engine/server/sse.h"

#include <algorithm>

namespace headroom::engine {
namespace {

constexpr std::chrono::milliseconds kMetricsInterval{500};
constexpr std::chrono::milliseconds kStateDelay{40};  // load progress comes often
constexpr size_t kSlowBytes = 1 << 20;                // a subscriber that reads too slowly misses samples

}  // namespace

std::string sseEvent(std::string_view json, std::string_view name) {
  std::string event;
  event.reserve(json.size() + name.size() + 24);
  if (!name.empty()) event.append("event: ").append(name).append("\n");
  return event.append("data: ").append(json).append("\n\n");
}

std::string EventHub::stateEvent() const { return sseEvent(dumpJson(stateJson(m_models)), "state"); }

void EventHub::subscribe(const std::shared_ptr<HttpExchange>& exchange) {
  exchange->beginStream(200, "text/event-stream");
  bool startTicking = false;
  {
    // Counted among the subscribers before the state is read: a change after that reaches it as an event.
    std::lock_guard order(m_order);
    {
      std::lock_guard lock(m_mutex);
      if (m_stopped) return exchange->endStream();
      m_subscribers.push_back(exchange);
      startTicking = !std::exchange(m_ticking, true);
    }
    exchange->send(stateEvent());
  }
  exchange->whenGone([hub = weak_from_this(), gone = exchange.get()] {
    if (const auto self = hub.lock()) {
      std::lock_guard lock(self->m_mutex);
      std::erase_if(self->m_subscribers, [gone](const auto& subscriber) { return subscriber.get() == gone; });
    }
  });
  if (!startTicking) return;
  if (const auto model = m_models.first())
    model->service().sampleMetrics();  // what happened while nobody listened belongs to no interval
  m_http.schedule(kMetricsInterval, [hub = weak_from_this()] {
    if (const auto self = hub.lock()) self->tick();
  });
}

void EventHub::tick() {
  {
    std::lock_guard lock(m_mutex);
    if (m_subscribers.empty() || m_stopped) {
      m_ticking = false;
      return;
    }
  }
  if (const auto model = m_models.first()) broadcast(sseEvent(toJson(sampleIn(m_models, *model)).dump(), "metrics"), true);
  m_http.schedule(kMetricsInterval, [hub = weak_from_this()] {
    if (const auto self = hub.lock()) self->tick();
  });
}

void EventHub::stateChanged() {
  if (m_changePending.exchange(true)) return;
  m_http.schedule(kStateDelay, [hub = weak_from_this()] {
    const auto self = hub.lock();
    if (!self) return;
    self->m_changePending = false;
    std::lock_guard order(self->m_order);
    self->broadcast(self->stateEvent(), false);
  });
}

void EventHub::broadcast(std::string event, bool mayBeDropped) {
  std::vector<std::shared_ptr<HttpExchange>> subscribers;
  {
    std::lock_guard lock(m_mutex);
    subscribers = m_subscribers;
  }
  const auto shared = std::make_shared<const std::string>(std::move(event));
  for (const auto& subscriber : subscribers)
    subscriber->post([subscriber, shared, mayBeDropped] {
      if (!mayBeDropped || subscriber->pendingBytes() < kSlowBytes) subscriber->send(*shared);
    });
}

void EventHub::stop() {
  std::vector<std::shared_ptr<HttpExchange>> subscribers;
  {
    std::lock_guard lock(m_mutex);
    m_stopped = true;
    subscribers.swap(m_subscribers);
  }
  if (subscribers.empty()) return;  // also when stopped before: the service may be gone by now
  // The last state first, so that a subscriber hears of a failure that ends the server.
  std::lock_guard order(m_order);
  const auto last = std::make_shared<const std::string>(stateEvent());
  for (const auto& subscriber : subscribers)
    subscriber->post([subscriber, last] {
      subscriber->send(*last);
      subscriber->endStream();
    });
}

}  // namespace headroom::engine
