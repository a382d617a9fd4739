// SPDX-License-Identifier: Apache-2.0
#include "engine/sample/grammar_constraint.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <limits>
#include <thread>

namespace headroom::engine {

namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
// Steps that one mask may take. Tokens that are not reached then are left out, the longest first; what remains is still right.
constexpr uint64_t kMostWork = 4'000'000;
constexpr size_t kMostMaskBytes = 4 << 20;  // kept for one sequence

}  // namespace

TokenTrie::TokenTrie(int64_t vocabSize, const std::function<std::string(int32_t)>& bytesOf) {
  m_bytes.reserve(static_cast<size_t>(vocabSize));
  std::vector<int32_t> order;
  for (int32_t token = 0; token < vocabSize; ++token) {
    m_bytes.push_back(bytesOf(token));
    if (!m_bytes.back().empty()) order.push_back(token);
  }
  std::sort(order.begin(), order.end(),
            [&](int32_t a, int32_t b) { return m_bytes[a] != m_bytes[b] ? m_bytes[a] < m_bytes[b] : a < b; });
  struct Part {
    size_t begin, end, depth;  // tokens of `order` that share their first `depth` bytes
  };
  std::vector<Part> parts{{0, order.size(), 0}};
  m_nodes.emplace_back();
  for (size_t node = 0; node < m_nodes.size(); ++node) {
    const Part part = parts[node];
    size_t at = part.begin;
    m_nodes[node].firstToken = static_cast<uint32_t>(part.begin);
    m_nodes[node].lastToken = static_cast<uint32_t>(part.end);
    while (at < part.end && m_bytes[order[at]].size() == part.depth) ++at;
    m_nodes[node].tokens = static_cast<uint32_t>(at - part.begin);
    m_nodes[node].firstChild = static_cast<uint32_t>(m_nodes.size());
    while (at < part.end) {
      const char byte = m_bytes[order[at]][part.depth];
      size_t stop = at + 1;
      while (stop < part.end && m_bytes[order[stop]][part.depth] == byte) ++stop;
      m_nodes.push_back({0, 0, 0, 0, 0, 0, static_cast<uint8_t>(byte)});
      parts.push_back({at, stop, part.depth + 1});
      ++m_nodes[node].children;
      at = stop;
    }
  }
  m_tokens = std::move(order);
  m_bytesBelow.assign(m_nodes.size(), {});
  for (size_t i = m_nodes.size(); i-- > 0;) {
    Node& node = m_nodes[i];
    for (uint32_t child = node.firstChild; child < node.firstChild + node.children; ++child) {
      node.height = static_cast<uint16_t>(std::min(65535, std::max<int>(node.height, m_nodes[child].height + 1)));
      for (size_t word = 0; word < 4; ++word) m_bytesBelow[i][word] |= m_bytesBelow[child][word];
      m_bytesBelow[i][m_nodes[child].byte / 64] |= uint64_t{1} << (m_nodes[child].byte % 64);
    }
  }
}

namespace {

// Makes masks ahead, in the order they are asked for.
class MaskWorker {
 public:
  static MaskWorker& instance() {
    static MaskWorker worker;
    return worker;
  }
  ~MaskWorker() {
    {
      std::lock_guard lock(m_mutex);
      m_stop = true;
    }
    m_changed.notify_all();
    m_thread.join();
  }
  void post(std::weak_ptr<GrammarConstraint> constraint) {
    {
      std::lock_guard lock(m_mutex);
      m_queue.push_back(std::move(constraint));
    }
    m_changed.notify_one();
  }

 private:
  MaskWorker() : m_thread([this] { run(); }) {}
  void run() {
    std::unique_lock lock(m_mutex);
    while (true) {
      m_changed.wait(lock, [this] { return m_stop || !m_queue.empty(); });
      if (m_stop) return;
      const std::weak_ptr<GrammarConstraint> next = std::move(m_queue.front());
      m_queue.pop_front();
      lock.unlock();
      if (const auto constraint = next.lock()) constraint->prepare();
      lock.lock();
    }
  }
  std::mutex m_mutex;
  std::condition_variable m_changed;
  std::deque<std::weak_ptr<GrammarConstraint>> m_queue;
  bool m_stop = false;
  std::thread m_thread;  // last: begins when all else stands
};

}  // namespace

GrammarConstraint::GrammarConstraint(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const TokenTrie> trie,
                                     std::string_view begin)
    : m_trie(std::move(trie)),
      m_matcher(std::move(grammar)),
      m_at(m_matcher.next(m_matcher.start(), begin)),
      m_complete(m_matcher.isComplete(m_at)),
      m_over(!m_matcher.canContinue(m_at)) {}

void GrammarConstraint::prepareSoon() {
  if (!weak_from_this().expired()) MaskWorker::instance().post(weak_from_this());
}

void GrammarConstraint::prepare() {
  std::lock_guard lock(m_mutex);
  allowed();
}

// Whether all that is below the node follows `set`, by bytes that lead from there on to one set and the next.
bool GrammarConstraint::isWhole(uint32_t node, GrammarMatcher::Set set) {
  constexpr int kMostSteps = 24;  // each may have to find a new set
  const TokenTrie::Bytes& bytes = m_trie->bytesBelow(node);
  int height = m_trie->nodes()[node].height;
  for (int step = 0; height > 0; --height, ++step) {
    if (step == kMostSteps) return false;
    const GrammarMatcher::Uniform uniform = m_matcher.uniform(set);
    for (size_t word = 0; word < 4; ++word)
      if (bytes[word] & ~uniform.bytes[word]) return false;
    if (uniform.target == set) return true;
    set = uniform.target;
  }
  return true;
}

const GrammarConstraint::Mask& GrammarConstraint::allowed() {
  const size_t words = (static_cast<size_t>(m_trie->vocabSize()) + 63) / 64;
  if (m_masks.size() >= std::max<size_t>(kMostMaskBytes / (words * 8 + 1), 2)) {
    if (const auto found = m_masks.find(m_at); found != m_masks.end()) return found->second;
    m_masks.clear();
  }
  const auto [entry, isNew] = m_masks.try_emplace(m_at);
  Mask& mask = entry->second;
  if (!isNew) return mask;
  mask.assign(words, 0);
  const auto& nodes = m_trie->nodes();
  const auto& tokens = m_trie->tokens();
  const uint64_t begun = m_matcher.work();
  bool any = false;
  m_open.assign(1, {0, m_at});
  for (size_t i = 0; i < m_open.size(); ++i) {
    if (any && m_matcher.work() - begun > kMostWork) break;
    const auto [at, set] = m_open[i];
    const TokenTrie::Node& node = nodes[at];
    for (uint32_t child = node.firstChild; child < node.firstChild + node.children; ++child) {
      if (any && m_matcher.work() - begun > kMostWork) break;
      const GrammarMatcher::Set next = m_matcher.next(set, nodes[child].byte);
      if (next == GrammarMatcher::kDead) continue;
      const bool whole = nodes[child].children && isWhole(child, next);
      const uint32_t end = whole ? nodes[child].lastToken : nodes[child].firstToken + nodes[child].tokens;
      for (uint32_t t = nodes[child].firstToken; t < end; ++t) {
        mask[static_cast<size_t>(tokens[t]) / 64] |= uint64_t{1} << (tokens[t] % 64);
        any = true;
      }
      if (nodes[child].children && !whole) m_open.emplace_back(child, next);
    }
  }
  return mask;
}

void GrammarConstraint::mask(std::span<float> logits, std::span<const int32_t> endTokens) {
  std::lock_guard lock(m_mutex);
  const Mask& mask = allowed();
  std::vector<std::pair<int32_t, float>> ends;
  if (isComplete()) {
    for (const int32_t token : endTokens)
      if (token >= 0 && static_cast<size_t>(token) < logits.size()) ends.emplace_back(token, logits[token]);
  }
  const size_t known = std::min(logits.size(), mask.size() * 64);
  for (size_t base = 0; base < known; base += 64) {
    const uint64_t bits = mask[base / 64];
    if (bits == ~uint64_t{0}) continue;
    const size_t end = std::min(base + 64, known);
    for (size_t i = base; i < end; ++i)
      if (!(bits >> (i - base) & 1)) logits[i] = kNever;
  }
  std::fill(logits.begin() + static_cast<ptrdiff_t>(known), logits.end(), kNever);
  for (const auto& [token, logit] : ends) logits[token] = logit;
}

void GrammarConstraint::accept(int32_t token) {
  if (token < 0 || token >= m_trie->vocabSize() || m_trie->bytes(token).empty()) return;  // it ends the sequence
  {
    std::lock_guard lock(m_mutex);
    m_at = m_matcher.next(m_at, m_trie->bytes(token));
    bool forgot = false;
    m_at = m_matcher.tidy(m_at, forgot);
    if (forgot) m_masks.clear();
    m_complete = m_matcher.isComplete(m_at);
    m_over = !m_matcher.canContinue(m_at);
    if (m_over || m_masks.contains(m_at)) return;
  }
  prepareSoon();
}

}  // namespace headroom::engine
