// SPDX-License-Identifier: Apache-2.0
#include "engine/text/jinja_interpreter.h"

#include <fmt/format.h>
#include <algorithm>

namespace headroom::engine::jinja {

namespace {
constexpr int64_t kMostSteps = 20'000'000;
}  // namespace

const Value* Scope::find(std::string_view name) const {
  for (const Scope* scope = this; scope; scope = scope->parent) {
    spend(stepsOfItems(scope->names.size() / 4));
    for (const auto& [known, value] : scope->names)
      if (known == name) return &value;
  }
  return nullptr;
}

void Scope::set(std::string_view name, Value value) {
  spend(stepsOfItems(names.size() / 4));
  for (auto& [known, old] : names)
    if (known == name) {
      old = std::move(value);
      return;
    }
  names.emplace_back(name, std::move(value));
}

Interpreter::Interpreter(std::vector<std::pair<std::string, Value>> variables) {
  Scope& builtins = m_scopes.emplace_back();
  builtins.names = globalFunctions();
  m_globals = &m_scopes.emplace_back();
  m_globals->parent = &builtins;
  m_globals->captured = builtins.captured = true;
  for (auto& [name, value] : variables) m_globals->set(name, std::move(value));
}

// What holds itself is never counted out: it is emptied.
Interpreter::~Interpreter() {
  for (auto& [identity, space] : m_assigned) space.entries().entries.clear();
  for (const auto& each : m_keeping)
    if (const auto loop = each.lock()) std::exchange(loop->lastChanged, {}).clear();
}

std::string Interpreter::render(const Body& body) {
  const WorkLimit limit(kMostSteps);
  std::string out;
  run(body, *m_globals, out);
  return out;
}

Scope& Interpreter::open(Scope& parent) {
  Scope* scope;
  if (m_free.empty()) {
    scope = &m_scopes.emplace_back();
  } else {
    scope = m_free.back();
    m_free.pop_back();
  }
  scope->parent = &parent;
  return *scope;
}

void Interpreter::close(Scope& scope) {
  if (scope.captured) return;
  scope.names.clear();
  m_free.push_back(&scope);
}

void Interpreter::write(std::string& out, std::string_view text) {
  checkSize(out.size() + text.size());
  spend(stepsOfText(text.size()));
  out += text;
}

Interpreter::Flow Interpreter::run(const Body& body, Scope& scope, std::string& out) {
  for (const auto& statement : body) {
    const Flow flow = runOne(*statement, scope, out);
    if (flow != Flow::normal) return flow;
  }
  return Flow::normal;
}

Interpreter::Flow Interpreter::runOne(const Statement& statement, Scope& scope, std::string& out) {
  Entered entered(*this);
  switch (statement.type) {
    case Statement::data:
      write(out, statement.text);
      break;
    case Statement::output: {
      const Value value = evaluate(*statement.expression, scope);
      if (value.isString())
        write(out, value.string());
      else
        write(out, value.str());
      break;
    }
    case Statement::choice:
      return runChoice(statement, scope, out);
    case Statement::loop:
      runLoop(statement, evaluate(*statement.expression, scope), 0, scope, out);
      break;
    case Statement::assign:
    case Statement::assignBlock:
      runAssign(statement, scope);
      break;
    case Statement::macro:
      scope.set(statement.macroParts.name, macro(statement, scope));
      break;
    case Statement::callBlock:
      runCallBlock(statement, scope, out);
      break;
    case Statement::filterBlock: {
      std::string inner;
      runScoped(statement.body, scope, inner);
      write(out, filterBlock(*statement.expression, Value(std::move(inner)), scope).str());
      break;
    }
    case Statement::with: {
      const std::vector<Value> values = all(statement.values, scope);
      Scope& inner = open(scope);
      for (size_t i = 0; i < values.size(); ++i) bind(*statement.targets[i], values[i], inner);
      const Flow flow = run(statement.body, inner, out);
      close(inner);
      return flow;
    }
    case Statement::scope: {
      Scope& inner = open(scope);
      const Flow flow = run(statement.body, inner, out);
      close(inner);
      return flow;
    }
    case Statement::breakLoop:
      return Flow::breaks;
    case Statement::continueLoop:
      return Flow::continues;
    case Statement::unsupported:
      throw Fault(statement.text);
  }
  return Flow::normal;
}

void Interpreter::runScoped(const Body& body, Scope& scope, std::string& out) {
  Scope& inner = open(scope);
  run(body, inner, out);
  close(inner);
}

Interpreter::Flow Interpreter::runChoice(const Statement& statement, Scope& scope, std::string& out) {
  for (size_t i = 0; i < statement.bodies.size(); ++i)
    if (i >= statement.conditions.size() || evaluate(*statement.conditions[i], scope).truth())
      return run(statement.bodies[i], scope, out);
  return Flow::normal;
}

void Interpreter::runLoop(const Statement& statement, const Value& iterable, int64_t depth, Scope& scope, std::string& out) {
  auto state = shared(Loop());
  state->items = iterate(iterable);
  state->depth0 = depth;
  if (statement.condition) {
    std::vector<Value> kept;
    for (const Value& each : state->items) {
      Scope& inner = open(scope);
      bind(*statement.target, each, inner);
      if (evaluate(*statement.condition, inner).truth()) kept.push_back(each);
      close(inner);
    }
    state->items = std::move(kept);
  }
  state->willKeep = [this, loop = std::weak_ptr<Loop>(state)] { m_keeping.push_back(loop); };
  if (statement.recursive) {
    capture(scope);
    state->recurse = [this, &statement, &scope, depth](const Value& inner) {
      Entered entered(*this);
      std::string text;
      runLoop(statement, inner, depth + 1, scope, text);
      return Value(std::move(text));
    };
  }
  const size_t count = state->items.size();
  for (size_t i = 0; i < count; ++i) {
    spend(1);
    state->index0 = static_cast<int64_t>(i);
    Scope& inner = open(scope);
    inner.set("loop", Value::loop(state));
    bind(*statement.target, state->items[i], inner);
    const Flow flow = run(statement.body, inner, out);
    close(inner);
    if (flow == Flow::breaks) break;
  }
  if (count == 0) runScoped(statement.otherwise, scope, out);
}

void Interpreter::runAssign(const Statement& statement, Scope& scope) {
  if (statement.type == Statement::assign) {
    bind(*statement.target, evaluate(*statement.expression, scope), scope);
    return;
  }
  std::string text;
  runScoped(statement.body, scope, text);
  Value value(std::move(text));
  bind(*statement.target, statement.expression ? filterBlock(*statement.expression, value, scope) : value, scope);
}

void Interpreter::bind(const Expression& target, const Value& value, Scope& scope) {
  if (target.type == Expression::name) {
    scope.set(target.text, value);
    return;
  }
  if (target.type == Expression::attribute) {
    const Value space = evaluate(*target.operands[0], scope);
    if (!space.is(Kind::space)) throw Fault("cannot assign attribute on non-namespace object");
    if (target.text.starts_with('_')) throw Fault("Chat templates cannot store underscore-prefixed attributes on a namespace");
    space.entries().set(Value(target.text), value);
    m_assigned.try_emplace(space.identity(), space);
    return;
  }
  if (value.isUndefined()) value.need();
  const std::vector<Value> parts = iterate(value);
  const size_t wanted = target.operands.size();
  if (parts.size() > wanted) throw Fault(fmt::format("too many values to unpack (expected {})", wanted));
  if (parts.size() < wanted) throw Fault(fmt::format("not enough values to unpack (expected {}, got {})", wanted, parts.size()));
  for (size_t i = 0; i < wanted; ++i) bind(*target.operands[i], parts[i], scope);
}

void Interpreter::capture(Scope& scope) {
  for (Scope* each = &scope; each && !each->captured; each = each->parent) each->captured = true;
}

Value Interpreter::macro(const Statement& statement, Scope& scope) {
  capture(scope);
  return Value::function(statement.macroParts.name,
                         [this, &statement, &scope](Call& call) { return Value(runMacro(statement, scope, call)); });
}

std::string Interpreter::runMacro(const Statement& statement, Scope& defined, Call& call) {
  Entered entered(*this);
  const MacroParts& parts = statement.macroParts;
  Scope& scope = open(defined);
  auto named = std::move(call.named);
  const auto take = [&](const std::string& name) -> std::optional<Value> {
    for (auto entry = named.begin(); entry != named.end(); ++entry)
      if (entry->first == name) {
        Value value = std::move(entry->second);
        named.erase(entry);
        return value;
      }
    return std::nullopt;
  };
  spend(stepsOfItems(named.size() * parts.parameters.size()));
  std::vector<const Parameter*> missing;
  for (size_t i = 0; i < parts.parameters.size(); ++i) {
    const Parameter& parameter = parts.parameters[i];
    if (i < call.values.size()) {
      scope.set(parameter.name, call.values[i]);
    } else if (auto value = take(parameter.name)) {
      scope.set(parameter.name, std::move(*value));
    } else {
      missing.push_back(&parameter);
    }
  }
  if (parts.usesCaller && !scope.captured) {
    const bool isParameter =
        std::any_of(parts.parameters.begin(), parts.parameters.end(), [](const Parameter& p) { return p.name == "caller"; });
    if (!isParameter) scope.set("caller", take("caller").value_or(Value::undefined("No caller defined")));
  }
  if (!parts.usesKwargs && !named.empty())
    throw Fault(fmt::format("macro '{}' takes no keyword argument '{}'", parts.name, named[0].first));
  if (!parts.usesVarargs && call.values.size() > parts.parameters.size())
    throw Fault(fmt::format("macro '{}' takes not more than {} argument(s)", parts.name, parts.parameters.size()));
  if (parts.usesKwargs) {
    Dict rest;
    for (auto& [name, value] : named) rest.set(Value(name), std::move(value));
    scope.set("kwargs", Value::dict(std::move(rest)));
  }
  if (parts.usesVarargs) {
    std::vector<Value> rest;
    for (size_t i = parts.parameters.size(); i < call.values.size(); ++i) rest.push_back(call.values[i]);
    scope.set("varargs", Value::tuple(std::move(rest)));
  }
  for (const Parameter* parameter : missing)
    scope.set(parameter->name, parameter->otherwise ? evaluate(*parameter->otherwise, scope)
                                                    : Value::undefined("parameter '" + parameter->name + "' was not provided"));
  std::string out;
  run(statement.body, scope, out);
  close(scope);
  return out;
}

void Interpreter::runCallBlock(const Statement& statement, Scope& scope, std::string& out) {
  const Value caller = macro(statement, scope);
  write(out, evaluateCall(*statement.expression, scope, &caller).str());
}

}  // namespace headroom::engine::jinja
