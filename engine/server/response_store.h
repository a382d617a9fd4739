// SPDX-License-Identifier: Apache-2.0
// Responses that later requests may go on from, in memory: the newest ones within limits of number and bytes. Thread-safe.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <vector>

namespace headroom::engine {

struct StoredResponse {
  std::string response;              // the object as it was answered, JSON
  std::string input;                 // all items that led to it, those of responses before it too, a JSON list
  std::string output;                // its own items, a JSON list
  std::vector<std::string> itemIds;  // of `output`
};

struct ResponseStoreLimits {
  size_t responses = 4096;
  size_t bytes = size_t{64} << 20;
};

class ResponseStore {
 public:
  explicit ResponseStore(ResponseStoreLimits limits = {}) : m_limits(limits) {}
  // The oldest ones go when it is full; one that is larger than the whole store is not kept.
  void put(const std::string& id, StoredResponse response);
  std::shared_ptr<const StoredResponse> find(const std::string& id) const;  // null: not here
  // An item of the output of any response here, by its id; null where there is none.
  nlohmann::ordered_json findItem(const std::string& itemId) const;
  bool erase(const std::string& id);
  const ResponseStoreLimits& limits() const { return m_limits; }
  size_t bytes() const;

 private:
  struct Entry {
    std::string id;
    std::shared_ptr<const StoredResponse> response;
    size_t bytes = 0;
  };
  void drop(std::list<Entry>::iterator entry);  // lock held

  const ResponseStoreLimits m_limits;
  mutable std::mutex m_mutex;
  std::list<Entry> m_entries;  // oldest first
  std::unordered_map<std::string, std::list<Entry>::iterator> m_byId, m_byItem;
  size_t m_bytes = 0;
};

}  // namespace headroom::engine
