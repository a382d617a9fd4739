// SPDX-License-Identifier: Apache-2.0
// Languages of bytes. A grammar is a set of rules, each a finite automaton over bytes whose edges may also call rules, so that
// recursive forms such as JSON fit. It is built from expressions and immutable afterwards; a GrammarMatcher follows a text
// through it.
//
// Everything from which no end can be reached is cut off when a grammar is built: a text that a matcher follows can always be
// finished.
#pragma once

#include "core/result.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace headroom::engine {

// What one grammar may hold. A larger one is refused when it is built.
inline constexpr size_t kMaxGrammarStates = 200'000, kMaxGrammarEdges = 1'000'000, kMaxGrammarNodes = 1'000'000;
// How deep expressions may nest between two calls of rules: they are compiled by recursion.
inline constexpr int kMaxGrammarNesting = 4'000;

class Grammar {
 public:
  size_t states() const { return m_firstEdge.size() - 1; }

 private:
  friend class GrammarBuilder;
  friend class GrammarMatcher;
  struct Edge {
    uint32_t target = 0;
    int32_t call = kBytes;        // a rule, or one of the two below
    uint8_t first = 0, last = 0;  // of bytes
  };
  static constexpr int32_t kBytes = -1, kNothing = -2;
  struct Rule {
    uint32_t begin = 0, end = 0;  // states; the end of a rule returns to its caller
  };
  std::vector<uint32_t> m_firstEdge;  // edges of state s: [m_firstEdge[s], m_firstEdge[s + 1])
  std::vector<Edge> m_edges;
  std::vector<Rule> m_rules;
  std::vector<bool> m_isEnd;
  std::vector<bool> m_readsBytes;  // the state has edges over bytes
  int32_t m_start = 0;
};

// Builds grammars from expressions. Beyond the limits nothing more is built, and build() says so.
class GrammarBuilder {
 public:
  using Node = int32_t;
  using RuleId = int32_t;

  Node nothing();  // matches no text
  Node empty();    // matches the empty text
  Node literal(std::string_view bytes);
  Node bytes(uint8_t first, uint8_t last);
  Node sequence(std::vector<Node> parts);
  Node choice(std::vector<Node> options);
  Node literals(std::vector<std::string> texts);  // one of them; common beginnings are shared
  Node repeat(Node part, int64_t least, std::optional<int64_t> most);
  Node optional(Node part) { return repeat(part, 0, 1); }
  Node call(RuleId rule);
  RuleId addRule();
  void define(RuleId rule, Node body);
  Node ruleOf(Node body);  // a call of a new rule: a part that is used more than once is built once
  struct Member {
    Node node;
    bool required;
  };
  // Members in order, optional ones may be left out, then any number of `more`, with `separator` between neighbours.
  Node members(std::vector<Member> members, Node separator, std::optional<Node> more);
  // Characters from `first` to `last` in UTF-8; surrogates are left out.
  Node characters(char32_t first, char32_t last);
  bool isTooLarge() const { return m_tooLarge; }

  // `where` names the request's field in errors: too large, no text matches, a rule that begins with itself.
  Result<std::shared_ptr<const Grammar>> build(Node start, const std::string& where);

 private:
  enum class Kind : uint8_t { Nothing, Bytes, Sequence, Choice, Repeat, Call, Members };
  struct Expression {
    Kind kind = Kind::Nothing;
    uint8_t first = 0, last = 0;
    int64_t least = 0, most = 0;  // of Repeat, most < 0: without limit; of Members, least: required ones as told by `required`
    std::vector<Node> parts;      // of Members: separator, more (or -1), then the members
    std::vector<bool> required;
    RuleId rule = 0;
  };
  struct RawEdge {
    uint32_t from;
    Grammar::Edge edge;
  };
  Node add(Expression expression);
  Node literalsIn(const std::vector<std::string>& texts, size_t begin, size_t end, size_t depth, int nesting);
  uint32_t newState();
  void connect(uint32_t from, Grammar::Edge edge);
  void skip(uint32_t from, uint32_t to) { connect(from, {to, Grammar::kNothing, 0, 0}); }
  void compile(Node node, uint32_t from, uint32_t to);
  void compileParts(const Expression& expression, uint32_t from, uint32_t to);
  void compileRepeat(const Expression& repeat, uint32_t from, uint32_t to);
  void compileMembers(const Expression& members, uint32_t from, uint32_t to);
  std::vector<bool> fruitful(const Grammar& grammar) const;
  static bool beginsWithItself(const Grammar& grammar);

  std::vector<Expression> m_nodes;
  std::vector<Node> m_bodies;  // of rules; -1: not defined
  std::vector<RawEdge> m_edges;
  uint32_t m_states = 0;
  int m_nesting = 0;
  bool m_tooLarge = false;
};

// Follows texts through a grammar: sets of places that are found once and numbered. One thread at a time. Where a grammar has
// more ways to read a text than can be held, some are left out: what is followed can still be finished, and what matches may be
// refused.
class GrammarMatcher {
 public:
  using Set = int32_t;
  static constexpr Set kDead = 0;

  explicit GrammarMatcher(std::shared_ptr<const Grammar> grammar);
  Set start() const { return m_start; }
  Set next(Set set, uint8_t byte);
  Set next(Set set, std::string_view bytes);
  // The set that most bytes lead to, and those bytes; kDead where none goes on.
  struct Uniform {
    Set target = kDead;
    std::array<uint64_t, 4> bytes{};
  };
  Uniform uniform(Set set);
  bool isComplete(Set set) const { return m_sets[set].complete; }
  bool canContinue(Set set) const { return !m_sets[set].places.empty(); }
  // Steps taken so far, a measure of time.
  uint64_t work() const { return m_work; }
  // Forgets all sets but this one once they are many; its new number. Others are no longer valid then: true in `forgot`.
  Set tidy(Set set, bool& forgot);

 private:
  struct Place {
    uint32_t state, stack;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  struct PlaceSet {
    std::vector<Place> places;  // those that read bytes, sorted
    bool complete = false;
    std::array<Set, 256> next;  // -1: not known yet
    Uniform uniform;
    bool isExpanded = false;  // all of next is known, and uniform
  };
  struct Frame {
    uint32_t state, below;  // where the call returns to, and the frame under it; frame 0 is the bottom
  };
  uint32_t push(uint32_t state, uint32_t below);
  Set close(std::vector<Place>& seeds);
  void expand(Set set);
  void clear();

  std::shared_ptr<const Grammar> m_grammar;
  std::vector<PlaceSet> m_sets;
  std::unordered_multimap<uint64_t, Set> m_setOf;
  std::vector<Frame> m_frames;
  std::unordered_map<uint64_t, uint32_t> m_frameOf;
  std::vector<Place> m_seeds, m_places;  // scratch
  std::vector<uint64_t> m_seen;          // scratch: open hash set
  Set m_start = kDead;
  uint64_t m_work = 0;
  size_t m_placesHeld = 0;
};

// Whether the whole text matches.
bool matches(const std::shared_ptr<const Grammar>& grammar, std::string_view text);

}  // namespace headroom::engine
