// SPDX-License-Identifier: Apache-2.0
#include "engine/sample/grammar.h"

#include <algorithm>

namespace headroom::engine {

// ---- expressions

GrammarBuilder::Node GrammarBuilder::add(Expression expression) {
  if (m_nodes.size() >= kMaxGrammarNodes) {
    m_tooLarge = true;
    return 0;
  }
  m_nodes.push_back(std::move(expression));
  return static_cast<Node>(m_nodes.size()) - 1;
}

GrammarBuilder::Node GrammarBuilder::nothing() { return add({}); }
GrammarBuilder::Node GrammarBuilder::empty() { return sequence({}); }

GrammarBuilder::Node GrammarBuilder::bytes(uint8_t first, uint8_t last) {
  Expression node;
  node.kind = Kind::Bytes;
  node.first = first;
  node.last = last;
  return add(std::move(node));
}

GrammarBuilder::Node GrammarBuilder::literal(std::string_view text) {
  std::vector<Node> parts;
  for (const char c : text) parts.push_back(bytes(static_cast<uint8_t>(c), static_cast<uint8_t>(c)));
  return sequence(std::move(parts));
}

GrammarBuilder::Node GrammarBuilder::sequence(std::vector<Node> parts) {
  if (parts.size() == 1) return parts.front();
  Expression node;
  node.kind = Kind::Sequence;
  node.parts = std::move(parts);
  return add(std::move(node));
}

GrammarBuilder::Node GrammarBuilder::choice(std::vector<Node> options) {
  if (options.size() == 1) return options.front();
  Expression node;
  node.kind = Kind::Choice;
  node.parts = std::move(options);
  return add(std::move(node));
}

GrammarBuilder::Node GrammarBuilder::literals(std::vector<std::string> texts) {
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  return texts.empty() ? nothing() : literalsIn(texts, 0, texts.size(), 0, 0);
}

// One of texts[begin, end), which are sorted and equal up to `depth`.
GrammarBuilder::Node GrammarBuilder::literalsIn(const std::vector<std::string>& texts, size_t begin, size_t end, size_t depth,
                                                int nesting) {
  if (nesting > kMaxGrammarNesting) {
    m_tooLarge = true;
    return 0;
  }
  const std::string& front = texts[begin];
  const std::string& back = texts[end - 1];
  size_t common = depth;
  while (common < front.size() && common < back.size() && front[common] == back[common]) ++common;
  const Node head = literal(std::string_view(front).substr(depth, common - depth));
  if (end - begin == 1) return head;
  std::vector<Node> options;
  size_t at = begin;
  if (front.size() == common) {
    options.push_back(empty());
    ++at;
  }
  while (at < end && !m_tooLarge) {
    size_t stop = at + 1;
    while (stop < end && texts[stop][common] == texts[at][common]) ++stop;
    options.push_back(literalsIn(texts, at, stop, common, nesting + 1));
    at = stop;
  }
  return sequence({head, choice(std::move(options))});
}

GrammarBuilder::Node GrammarBuilder::repeat(Node part, int64_t least, std::optional<int64_t> most) {
  Expression node;
  node.kind = Kind::Repeat;
  node.parts = {part};
  node.least = least;
  node.most = most.value_or(-1);
  return add(std::move(node));
}

GrammarBuilder::Node GrammarBuilder::call(RuleId rule) {
  Expression node;
  node.kind = Kind::Call;
  node.rule = rule;
  return add(std::move(node));
}

GrammarBuilder::RuleId GrammarBuilder::addRule() {
  m_bodies.push_back(-1);
  return static_cast<RuleId>(m_bodies.size()) - 1;
}

void GrammarBuilder::define(RuleId rule, Node body) { m_bodies[rule] = body; }

GrammarBuilder::Node GrammarBuilder::ruleOf(Node body) {
  const RuleId rule = addRule();
  define(rule, body);
  return call(rule);
}

GrammarBuilder::Node GrammarBuilder::members(std::vector<Member> members, Node separator, std::optional<Node> more) {
  Expression node;
  node.kind = Kind::Members;
  node.parts = {separator, more.value_or(-1)};
  for (const Member& member : members) {
    node.parts.push_back(member.node);
    node.required.push_back(member.required);
  }
  return add(std::move(node));
}

GrammarBuilder::Node GrammarBuilder::characters(char32_t first, char32_t last) {
  std::vector<Node> options;
  auto continuation = [&](uint32_t low, uint32_t high) {
    return bytes(static_cast<uint8_t>(0x80 | low), static_cast<uint8_t>(0x80 | high));
  };
  // Ranges of one length whose parts are either equal or whole are sequences of byte ranges; others are cut until they are.
  auto add = [&](auto& self, uint32_t low, uint32_t high) -> void {
    if (low > high) return;
    for (const uint32_t border : {0x80u, 0x800u, 0xD800u, 0xE000u, 0x10000u}) {
      if (low < border && high >= border) {
        self(self, low, border - 1);
        return self(self, border, high);
      }
    }
    if (low >= 0xD800 && high < 0xE000) return;
    if (low < 0x80) return options.push_back(bytes(static_cast<uint8_t>(low), static_cast<uint8_t>(high)));
    for (const uint32_t bits : {6u, 12u, 18u}) {
      const uint32_t mask = (1u << bits) - 1;
      if ((low & ~mask) == (high & ~mask)) continue;
      if (low & mask) {
        self(self, low, low | mask);
        return self(self, (low | mask) + 1, high);
      }
      if ((high & mask) != mask) {
        self(self, low, (high & ~mask) - 1);
        return self(self, high & ~mask, high);
      }
    }
    const int length = low < 0x800 ? 2 : low < 0x10000 ? 3 : 4;
    const uint32_t lead = length == 2 ? 0xC0 : length == 3 ? 0xE0 : 0xF0;
    const int shift = 6 * (length - 1);
    std::vector<Node> parts{bytes(static_cast<uint8_t>(lead | low >> shift), static_cast<uint8_t>(lead | high >> shift))};
    for (int at = shift - 6; at >= 0; at -= 6) parts.push_back(continuation(low >> at & 63, high >> at & 63));
    options.push_back(sequence(std::move(parts)));
  };
  add(add, first, std::min<uint32_t>(last, 0x10FFFF));
  return options.empty() ? nothing() : choice(std::move(options));
}

// ---- automata

uint32_t GrammarBuilder::newState() {
  if (m_states >= kMaxGrammarStates) m_tooLarge = true;
  return m_tooLarge ? 0 : m_states++;
}

void GrammarBuilder::connect(uint32_t from, Grammar::Edge edge) {
  if (m_edges.size() >= kMaxGrammarEdges) m_tooLarge = true;
  if (!m_tooLarge) m_edges.push_back({from, edge});
}

void GrammarBuilder::compile(Node node, uint32_t from, uint32_t to) {
  if (m_nesting >= kMaxGrammarNesting) m_tooLarge = true;
  if (m_tooLarge) return;
  ++m_nesting;
  compileParts(m_nodes[node], from, to);
  --m_nesting;
}

void GrammarBuilder::compileParts(const Expression& expression, uint32_t from, uint32_t to) {
  switch (expression.kind) {
    case Kind::Nothing:
      return;
    case Kind::Bytes:
      return connect(from, {to, Grammar::kBytes, expression.first, expression.last});
    case Kind::Call:
      return connect(from, {to, expression.rule, 0, 0});
    case Kind::Repeat:
      return compileRepeat(expression, from, to);
    case Kind::Members:
      return compileMembers(expression, from, to);
    case Kind::Choice:
      for (const Node option : expression.parts) compile(option, from, to);
      return;
    case Kind::Sequence: {
      if (expression.parts.empty()) return skip(from, to);
      uint32_t at = from;
      for (size_t i = 0; i < expression.parts.size() && !m_tooLarge; ++i) {
        const uint32_t next = i + 1 == expression.parts.size() ? to : newState();
        compile(expression.parts[i], at, next);
        at = next;
      }
      return;
    }
  }
}

void GrammarBuilder::compileRepeat(const Expression& repeat, uint32_t from, uint32_t to) {
  const Node part = repeat.parts[0];
  uint32_t at = from;
  for (int64_t i = 0; i < repeat.least && !m_tooLarge; ++i) {
    const uint32_t next = newState();
    compile(part, at, next);
    at = next;
  }
  if (repeat.most < 0) {
    const uint32_t loop = newState();
    skip(at, loop);
    compile(part, loop, loop);
    return skip(loop, to);
  }
  for (int64_t i = repeat.least; i < repeat.most && !m_tooLarge; ++i) {
    const uint32_t next = newState();
    skip(at, to);
    compile(part, at, next);
    at = next;
  }
  skip(at, to);
}

void GrammarBuilder::compileMembers(const Expression& members, uint32_t from, uint32_t to) {
  const Node separator = members.parts[0], more = members.parts[1];
  // Two rows of states: nothing written yet, and something before, which wants the separator.
  uint32_t fresh = newState(), after = newState();
  skip(from, fresh);
  for (size_t i = 0; i < members.required.size() && !m_tooLarge; ++i) {
    const Node member = members.parts[i + 2];
    const uint32_t nextFresh = newState(), nextAfter = newState(), separated = newState();
    compile(member, fresh, nextAfter);
    compile(separator, after, separated);
    compile(member, separated, nextAfter);
    if (!members.required[i]) {
      skip(fresh, nextFresh);
      skip(after, nextAfter);
    }
    fresh = nextFresh;
    after = nextAfter;
  }
  skip(fresh, to);
  skip(after, to);
  if (more < 0) return;
  const uint32_t separated = newState(), loop = newState();
  skip(after, loop);
  compile(more, fresh, loop);
  compile(separator, loop, separated);
  compile(more, separated, loop);
  skip(loop, to);
}

// States from which their rule's end can be reached.
std::vector<bool> GrammarBuilder::fruitful(const Grammar& grammar) const {
  std::vector<std::vector<uint32_t>> callers(grammar.m_rules.size());  // edges that wait for the rule
  std::vector<uint32_t> firstInto(grammar.states() + 1, 0), into(m_edges.size());
  for (const RawEdge& raw : m_edges) ++firstInto[raw.edge.target + 1];
  for (size_t s = 0; s < grammar.states(); ++s) firstInto[s + 1] += firstInto[s];
  std::vector<uint32_t> fill(firstInto.begin(), firstInto.end() - 1);
  for (uint32_t i = 0; i < m_edges.size(); ++i) into[fill[m_edges[i].edge.target]++] = i;

  std::vector<int32_t> ruleOfBegin(grammar.states(), -1);
  for (size_t r = 0; r < grammar.m_rules.size(); ++r) ruleOfBegin[grammar.m_rules[r].begin] = static_cast<int32_t>(r);
  std::vector<bool> isGood(grammar.states(), false), ruleIsGood(grammar.m_rules.size(), false);
  std::vector<uint32_t> open;
  auto mark = [&](uint32_t state) {
    if (isGood[state]) return;
    isGood[state] = true;
    open.push_back(state);
  };
  for (const Grammar::Rule& rule : grammar.m_rules) mark(rule.end);
  while (!open.empty()) {
    const uint32_t state = open.back();
    open.pop_back();
    if (const int32_t rule = ruleOfBegin[state]; rule >= 0 && !ruleIsGood[rule]) {
      ruleIsGood[rule] = true;
      for (const uint32_t from : callers[rule]) mark(from);
      callers[rule].clear();
    }
    for (uint32_t i = firstInto[state]; i < firstInto[state + 1]; ++i) {
      const RawEdge& raw = m_edges[into[i]];
      if (raw.edge.call < 0 || ruleIsGood[raw.edge.call])
        mark(raw.from);
      else
        callers[raw.edge.call].push_back(raw.from);
    }
  }
  return isGood;
}

// Whether a rule can call itself before it read a byte.
bool GrammarBuilder::beginsWithItself(const Grammar& grammar) {
  const size_t rules = grammar.m_rules.size();
  // What each rule reaches without a byte. Rules share no states, so that one walk does for all; a call goes on once its rule
  // turns out to match nothing too.
  struct Reached {
    uint32_t state;
    int32_t rule;
  };
  std::vector<bool> isReached(grammar.states(), false), canBeEmpty(rules, false);
  std::vector<std::vector<Reached>> waiting(rules);
  std::vector<std::vector<int32_t>> firstCalls(rules);
  std::vector<Reached> open;
  auto reach = [&](Reached next) {
    if (isReached[next.state]) return;
    isReached[next.state] = true;
    open.push_back(next);
  };
  for (size_t r = 0; r < rules; ++r) reach({grammar.m_rules[r].begin, static_cast<int32_t>(r)});
  while (!open.empty()) {
    const auto [state, rule] = open.back();
    open.pop_back();
    if (state == grammar.m_rules[rule].end && !canBeEmpty[rule]) {
      canBeEmpty[rule] = true;
      for (const Reached& next : std::exchange(waiting[rule], {})) reach(next);
    }
    for (uint32_t e = grammar.m_firstEdge[state]; e < grammar.m_firstEdge[state + 1]; ++e) {
      const Grammar::Edge& edge = grammar.m_edges[e];
      if (edge.call == Grammar::kBytes) continue;
      if (edge.call >= 0) firstCalls[rule].push_back(edge.call);
      if (edge.call >= 0 && !canBeEmpty[edge.call])
        waiting[edge.call].push_back({edge.target, rule});
      else
        reach({edge.target, rule});
    }
  }
  std::vector<int32_t> callersLeft(rules, 0);
  for (size_t r = 0; r < rules; ++r)
    for (const int32_t callee : firstCalls[r]) ++callersLeft[callee];
  // What remains when rules without callers are taken away again and again lies on a cycle.
  std::vector<int32_t> ready;
  for (size_t r = 0; r < rules; ++r)
    if (callersLeft[r] == 0) ready.push_back(static_cast<int32_t>(r));
  size_t taken = 0;
  while (!ready.empty()) {
    const int32_t rule = ready.back();
    ready.pop_back();
    ++taken;
    for (const int32_t callee : firstCalls[rule])
      if (--callersLeft[callee] == 0) ready.push_back(callee);
  }
  return taken < rules;
}

Result<std::shared_ptr<const Grammar>> GrammarBuilder::build(Node start, const std::string& where) {
  auto tooLarge = [&] {
    return failure(where, fmt::format("a grammar of more than {} states, or nested too deep", kMaxGrammarStates),
                   "one that is smaller; fewer or shorter repetitions?");
  };
  if (m_tooLarge) return tooLarge();
  const RuleId first = addRule();
  define(first, start);
  auto grammar = std::make_shared<Grammar>();
  m_edges.clear();
  m_states = 0;
  for (size_t r = 0; r < m_bodies.size(); ++r) {
    const uint32_t begin = newState(), end = newState();
    grammar->m_rules.push_back({begin, end});
  }
  for (size_t r = 0; r < m_bodies.size() && !m_tooLarge; ++r) {
    if (m_bodies[r] >= 0) compile(m_bodies[r], grammar->m_rules[r].begin, grammar->m_rules[r].end);
  }
  if (m_tooLarge) return tooLarge();
  grammar->m_start = first;
  grammar->m_isEnd.assign(m_states, false);
  for (const Grammar::Rule& rule : grammar->m_rules) grammar->m_isEnd[rule.end] = true;
  grammar->m_firstEdge.assign(m_states + 1, 0);
  const std::vector<bool> isGood = fruitful(*grammar);
  if (!isGood[grammar->m_rules[first].begin]) return failure(where, "a form that no text can satisfy");
  std::erase_if(m_edges, [&](const RawEdge& raw) {
    return !isGood[raw.from] || !isGood[raw.edge.target] ||
           (raw.edge.call >= 0 && !isGood[grammar->m_rules[raw.edge.call].begin]);
  });
  std::stable_sort(m_edges.begin(), m_edges.end(), [](const RawEdge& a, const RawEdge& b) { return a.from < b.from; });
  grammar->m_readsBytes.assign(m_states, false);
  for (const RawEdge& raw : m_edges) {
    ++grammar->m_firstEdge[raw.from + 1];
    grammar->m_edges.push_back(raw.edge);
    if (raw.edge.call == Grammar::kBytes) grammar->m_readsBytes[raw.from] = true;
  }
  for (uint32_t s = 0; s < m_states; ++s) grammar->m_firstEdge[s + 1] += grammar->m_firstEdge[s];
  if (beginsWithItself(*grammar)) return failure(where, "a definition that refers to itself before any text");
  return std::shared_ptr<const Grammar>(std::move(grammar));
}

// ---- matching

namespace {

uint64_t mixed(uint64_t value) {
  value ^= value >> 33;
  value *= 0xFF51AFD7ED558CCDull;
  value ^= value >> 33;
  return value;
}

}  // namespace

GrammarMatcher::GrammarMatcher(std::shared_ptr<const Grammar> grammar) : m_grammar(std::move(grammar)) {
  clear();
  m_seeds.assign(1, {m_grammar->m_rules[m_grammar->m_start].begin, 0});
  m_start = close(m_seeds);
}

void GrammarMatcher::clear() {
  m_sets.clear();
  m_placesHeld = 0;
  m_setOf.clear();
  m_frames.assign(1, {0, 0});
  m_frameOf.clear();
  m_sets.emplace_back();  // the dead one
  m_sets.back().next.fill(kDead);
}

uint32_t GrammarMatcher::push(uint32_t state, uint32_t below) {
  const auto [found, isNew] =
      m_frameOf.try_emplace(static_cast<uint64_t>(state) << 32 | below, static_cast<uint32_t>(m_frames.size()));
  if (isNew) m_frames.push_back({state, below});
  return found->second;
}

// The set of all places that `seeds` reach without a byte.
GrammarMatcher::Set GrammarMatcher::close(std::vector<Place>& seeds) {
  const Grammar& grammar = *m_grammar;
  m_places.clear();
  bool complete = false;
  constexpr uint64_t kFree = ~uint64_t{0};
  size_t seen = 0;
  m_seen.assign(64, kFree);
  auto isNew = [&](const Place& place) {
    const uint64_t key = static_cast<uint64_t>(place.state) << 32 | place.stack;
    size_t slot = mixed(key) & (m_seen.size() - 1);
    while (m_seen[slot] != kFree) {
      if (m_seen[slot] == key) return false;
      slot = (slot + 1) & (m_seen.size() - 1);
    }
    m_seen[slot] = key;
    if (++seen * 2 > m_seen.size()) {
      std::vector<uint64_t> old(m_seen.size() * 4, kFree);
      old.swap(m_seen);
      for (const uint64_t entry : old) {
        if (entry == kFree) continue;
        size_t at = mixed(entry) & (m_seen.size() - 1);
        while (m_seen[at] != kFree) at = (at + 1) & (m_seen.size() - 1);
        m_seen[at] = entry;
      }
    }
    return true;
  };
  std::sort(seeds.begin(), seeds.end());  // the same set, whatever is left out below
  std::erase_if(seeds, [&](const Place& place) { return !isNew(place); });
  constexpr size_t kMostReached = 65'536;
  for (size_t reached = 0; !seeds.empty() && (reached < kMostReached || (m_places.empty() && !complete)); ++reached) {
    const Place place = seeds.back();
    seeds.pop_back();
    ++m_work;
    auto reach = [&](Place next) {
      if (isNew(next)) seeds.push_back(next);
    };
    if (grammar.m_isEnd[place.state]) {
      if (place.stack == 0)
        complete = true;
      else
        reach({m_frames[place.stack].state, m_frames[place.stack].below});
    }
    if (grammar.m_readsBytes[place.state]) m_places.push_back(place);
    for (uint32_t e = grammar.m_firstEdge[place.state]; e < grammar.m_firstEdge[place.state + 1]; ++e) {
      const Grammar::Edge& edge = grammar.m_edges[e];
      if (edge.call == Grammar::kBytes) continue;
      ++m_work;
      if (edge.call == Grammar::kNothing) {
        reach({edge.target, place.stack});
        continue;
      }
      // A call that is the last thing of its rule needs no frame, so that lists written by recursion grow no stack.
      const bool isLast =
          grammar.m_isEnd[edge.target] && grammar.m_firstEdge[edge.target] == grammar.m_firstEdge[edge.target + 1];
      reach({grammar.m_rules[edge.call].begin, isLast ? place.stack : push(edge.target, place.stack)});
    }
  }
  if (m_places.empty() && !complete) return kDead;
  std::sort(m_places.begin(), m_places.end());
  uint64_t hash = complete ? 1 : 2;
  for (const Place& place : m_places)
    hash = mixed(hash ^ (static_cast<uint64_t>(place.state) << 32 | place.stack)) + 0x9E3779B97F4A7C15ull;
  const auto [begin, end] = m_setOf.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    if (m_sets[it->second].complete == complete && m_sets[it->second].places == m_places) return it->second;
  }
  const auto set = static_cast<Set>(m_sets.size());
  m_sets.emplace_back();
  m_sets.back().places = m_places;
  m_placesHeld += m_places.size();
  m_sets.back().complete = complete;
  m_sets.back().next.fill(-1);
  m_setOf.emplace(hash, set);
  return set;
}

GrammarMatcher::Set GrammarMatcher::next(Set set, uint8_t byte) {
  const Set known = m_sets[set].next[byte];
  if (known >= 0) return known;
  m_seeds.clear();
  for (const Place& place : m_sets[set].places) {
    const uint32_t last = m_grammar->m_firstEdge[place.state + 1];
    for (uint32_t e = m_grammar->m_firstEdge[place.state]; e < last; ++e) {
      const Grammar::Edge& edge = m_grammar->m_edges[e];
      ++m_work;
      if (edge.call == Grammar::kBytes && byte >= edge.first && byte <= edge.last) m_seeds.push_back({edge.target, place.stack});
    }
  }
  const Set found = m_seeds.empty() ? kDead : close(m_seeds);
  m_sets[set].next[byte] = found;
  return found;
}

// All bytes at once: those between two borders of edges lead to the same set, and few different ones have to be found.
void GrammarMatcher::expand(Set set) {
  std::array<bool, 257> isBorder{};
  isBorder[0] = isBorder[256] = true;
  std::vector<std::pair<Place, Grammar::Edge>> edges;
  for (const Place& place : m_sets[set].places) {
    for (uint32_t e = m_grammar->m_firstEdge[place.state]; e < m_grammar->m_firstEdge[place.state + 1]; ++e) {
      const Grammar::Edge& edge = m_grammar->m_edges[e];
      ++m_work;
      if (edge.call != Grammar::kBytes) continue;
      edges.push_back({{edge.target, place.stack}, edge});
      isBorder[edge.first] = isBorder[edge.last + 1] = true;
    }
  }
  std::vector<std::pair<std::vector<Place>, Set>> found;
  std::vector<std::pair<Set, size_t>> counts;
  std::array<Set, 256> next;
  for (size_t first = 0; first < 256;) {
    size_t end = first + 1;
    while (!isBorder[end]) ++end;
    std::vector<Place> seeds;
    for (const auto& [place, edge] : edges)
      if (first >= edge.first && first <= edge.last) seeds.push_back(place);
    m_work += edges.size();
    Set target = kDead;
    if (!seeds.empty()) {
      std::sort(seeds.begin(), seeds.end());
      const auto known = std::find_if(found.begin(), found.end(), [&](const auto& entry) { return entry.first == seeds; });
      if (known != found.end()) {
        target = known->second;
      } else {
        m_seeds = seeds;
        target = close(m_seeds);
        found.emplace_back(std::move(seeds), target);
      }
    }
    std::fill(next.begin() + static_cast<ptrdiff_t>(first), next.begin() + static_cast<ptrdiff_t>(end), target);
    if (target != kDead) {
      const auto entry = std::find_if(counts.begin(), counts.end(), [&](const auto& count) { return count.first == target; });
      if (entry == counts.end())
        counts.emplace_back(target, end - first);
      else
        entry->second += end - first;
    }
    first = end;
  }
  PlaceSet& expanded = m_sets[set];
  expanded.next = next;
  expanded.isExpanded = true;
  const auto most =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == counts.end()) return;
  expanded.uniform.target = most->first;
  for (size_t byte = 0; byte < 256; ++byte)
    if (next[byte] == most->first) expanded.uniform.bytes[byte / 64] |= uint64_t{1} << (byte % 64);
}

GrammarMatcher::Uniform GrammarMatcher::uniform(Set set) {
  if (set == kDead) return {};
  if (!m_sets[set].isExpanded) expand(set);
  return m_sets[set].uniform;
}

GrammarMatcher::Set GrammarMatcher::next(Set set, std::string_view bytes) {
  for (const char byte : bytes) {
    if (set == kDead) break;
    set = next(set, static_cast<uint8_t>(byte));
  }
  return set;
}

GrammarMatcher::Set GrammarMatcher::tidy(Set set, bool& forgot) {
  forgot = false;
  if (set == kDead) return kDead;
  constexpr size_t kMostSets = 4096, kMostFrames = 100'000, kMostPlaces = 1'000'000;
  forgot = m_sets.size() > kMostSets || m_frames.size() > kMostFrames || m_placesHeld > kMostPlaces;
  if (!forgot) return set;
  const std::vector<Place> kept = m_sets[set].places;
  const bool complete = m_sets[set].complete;
  const std::vector<Frame> frames = std::move(m_frames);
  clear();
  m_seeds.assign(1, {m_grammar->m_rules[m_grammar->m_start].begin, 0});
  m_start = close(m_seeds);
  std::unordered_map<uint32_t, uint32_t> moved{{0, 0}};
  std::vector<Place> movedPlaces;
  for (const Place& place : kept) {
    std::vector<uint32_t> chain;
    for (uint32_t at = place.stack; !moved.contains(at); at = frames[at].below) chain.push_back(at);
    for (auto it = chain.rbegin(); it != chain.rend(); ++it) moved[*it] = push(frames[*it].state, moved.at(frames[*it].below));
    movedPlaces.push_back({place.state, moved.at(place.stack)});
  }
  std::sort(movedPlaces.begin(), movedPlaces.end());
  m_sets.emplace_back();
  m_sets.back().places = std::move(movedPlaces);
  m_sets.back().complete = complete;
  m_sets.back().next.fill(-1);
  return static_cast<Set>(m_sets.size()) - 1;
}

bool matches(const std::shared_ptr<const Grammar>& grammar, std::string_view text) {
  GrammarMatcher matcher(grammar);
  return matcher.isComplete(matcher.next(matcher.start(), text));
}

}  // namespace headroom::engine
