// SPDX-License-Identifier: Apache-2.0
// Evaluates a parsed template: scopes, statements, expressions. Limits on steps, depth and size stop hostile templates.
#pragma once

#include "engine/text/jinja_ast.h"

#include <deque>
#include <unordered_map>

namespace headroom::engine::jinja {

// Names of one level. Loops and macros make levels; `if` does not. One that is captured is not used again.
struct Scope {
  Scope* parent = nullptr;
  std::vector<std::pair<std::string, Value>> names;
  bool captured = false;  // a macro or a recursive loop may still look into it

  const Value* find(std::string_view name) const;
  void set(std::string_view name, Value value);
};

class Interpreter {
 public:
  explicit Interpreter(std::vector<std::pair<std::string, Value>> variables);
  ~Interpreter();
  std::string render(const Body& body);

  Value callValue(const Value& callee, Call call);
  Value applyFilter(const std::string& name, const Value& input, Call call);
  bool applyTest(const std::string& name, const Value& input, const Call& call);
  static Value attribute(const Value& object, const std::string& name);  // object.name
  static Value item(const Value& object, const Value& key);              // object[key]
  // A dotted path of attributes and indices, as filters take it; `otherwise` for what is undefined.
  static Value path(const Value& object, const Value& dotted, const Value* otherwise = nullptr);
  static Value binary(const std::string& sign, const Value& a, const Value& b);

 private:
  enum class Flow { normal, breaks, continues };
  // Counts how deep evaluation is.
  struct Entered {
    explicit Entered(Interpreter& interpreter) : m_interpreter(interpreter) {
      if (++interpreter.m_depth > kDeepestEvaluation) {
        --interpreter.m_depth;
        throw Fault("maximum recursion depth exceeded");
      }
      spend(1);
    }
    ~Entered() { --m_interpreter.m_depth; }
    Interpreter& m_interpreter;
  };
  static constexpr int kDeepestEvaluation = 600;

  Flow run(const Body& body, Scope& scope, std::string& out);
  Flow runOne(const Statement& statement, Scope& scope, std::string& out);
  Flow runChoice(const Statement& statement, Scope& scope, std::string& out);
  void runLoop(const Statement& statement, const Value& iterable, int64_t depth, Scope& scope, std::string& out);
  void runAssign(const Statement& statement, Scope& scope);
  void runCallBlock(const Statement& statement, Scope& scope, std::string& out);
  void runScoped(const Body& body, Scope& scope, std::string& out);
  void bind(const Expression& target, const Value& value, Scope& scope);
  static void capture(Scope& scope);
  Value macro(const Statement& statement, Scope& scope);
  std::string runMacro(const Statement& statement, Scope& defined, Call& call);
  static void write(std::string& out, std::string_view text);

  Value evaluate(const Expression& expression, Scope& scope);
  Value evaluateUnary(const Expression& expression, Scope& scope);
  Value evaluateCompare(const Expression& expression, Scope& scope);
  Value evaluateItem(const Expression& expression, Scope& scope);
  Value evaluateCall(const Expression& expression, Scope& scope, const Value* caller = nullptr);
  Value filterBlock(const Expression& filters, Value input, Scope& scope);
  Call arguments(const Arguments& arguments, Scope& scope);
  std::vector<Value> all(const std::vector<ExpressionPtr>& list, Scope& scope);

  Scope& open(Scope& parent);
  void close(Scope& scope);

  std::deque<Scope> m_scopes;
  std::vector<Scope*> m_free;
  Scope* m_globals;
  // Namespaces that were assigned to: all that a template can change, and so all that can come to hold itself.
  std::unordered_map<const void*, Value> m_assigned;
  std::vector<std::weak_ptr<Loop>> m_keeping;  // loops whose `changed` was called
  Value m_blockText;  // what the filters of a block apply to
  int m_depth = 0;
};

// The library of filters, tests, methods and global functions; each in a file of its own.
using Filter = Value (*)(Interpreter&, const Value&, Call&);
Filter findFilter(std::string_view name);
using Test = bool (*)(Interpreter&, const Value&, const Call&);
Test findTest(std::string_view name);
// The bound method object.name; undefined where there is none.
Value method(const Value& object, const std::string& name);
std::vector<std::pair<std::string, Value>> globalFunctions();
std::string percentFormat(const std::string& pattern, const Value& arguments);
std::string braceFormat(const std::string& pattern, const Call& call);
Value slice(const Value& object, const Value& start, const Value& stop, const Value& step);

}  // namespace headroom::engine::jinja
