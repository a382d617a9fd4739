// SPDX-License-Identifier: Apache-2.0
#include "engine/server/response_store.h"

#include <utility>

namespace headroom::engine {

void ResponseStore::put(const std::string& id, StoredResponse response) {
  size_t bytes = id.size() + response.response.size() + response.input.size() + response.output.size();
  for (const std::string& item : response.itemIds) bytes += item.size();
  if (bytes > m_limits.bytes || m_limits.responses == 0) return;
  std::lock_guard lock(m_mutex);
  while (!m_entries.empty() && (m_entries.size() >= m_limits.responses || m_bytes + bytes > m_limits.bytes))
    drop(m_entries.begin());
  m_entries.push_back({id, std::make_shared<const StoredResponse>(std::move(response)), bytes});
  const auto entry = std::prev(m_entries.end());
  m_byId.emplace(id, entry);
  for (const std::string& item : entry->response->itemIds) m_byItem.emplace(item, entry);
  m_bytes += bytes;
}

void ResponseStore::drop(std::list<Entry>::iterator entry) {
  m_byId.erase(entry->id);
  for (const std::string& item : entry->response->itemIds) m_byItem.erase(item);
  m_bytes -= entry->bytes;
  m_entries.erase(entry);
}

std::shared_ptr<const StoredResponse> ResponseStore::find(const std::string& id) const {
  std::lock_guard lock(m_mutex);
  const auto found = m_byId.find(id);
  return found == m_byId.end() ? nullptr : found->second->response;
}

nlohmann::ordered_json ResponseStore::findItem(const std::string& itemId) const {
  std::shared_ptr<const StoredResponse> response;
  {
    std::lock_guard lock(m_mutex);
    const auto found = m_byItem.find(itemId);
    if (found == m_byItem.end()) return nullptr;
    response = found->second->response;
  }
  for (auto& item : nlohmann::ordered_json::parse(response->output))
    if (item.value("id", std::string()) == itemId) return std::move(item);
  return nullptr;
}

bool ResponseStore::erase(const std::string& id) {
  std::lock_guard lock(m_mutex);
  const auto found = m_byId.find(id);
  if (found == m_byId.end()) return false;
  drop(found->second);
  return true;
}

size_t ResponseStore::bytes() const {
  std::lock_guard lock(m_mutex);
  return m_bytes;
}

}  // namespace headroom::engine
