// SPDX-License-Identifier: Apache-2.0
// Expressions: operators with Python's meaning, attributes and items as jinja2's sandbox looks them up.
#include "engine/text/jinja_interpreter.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

namespace headroom::engine::jinja {

std::vector<Value> Interpreter::all(const std::vector<ExpressionPtr>& list, Scope& scope) {
  std::vector<Value> values;
  values.reserve(list.size());
  for (const auto& each : list) values.push_back(evaluate(*each, scope));
  return values;
}

Value Interpreter::evaluate(const Expression& expression, Scope& scope) {
  Entered entered(*this);
  const auto& operands = expression.operands;
  switch (expression.type) {
    case Expression::constant:
      return expression.value;
    case Expression::name: {
      const Value* found = scope.find(expression.text);
      return found ? *found : Value::undefined("'" + expression.text + "' is undefined");
    }
    case Expression::list:
      return Value::list(all(operands, scope));
    case Expression::tuple:
      return Value::tuple(all(operands, scope));
    case Expression::dict: {
      Dict made;
      for (size_t i = 0; i + 1 < operands.size(); i += 2) {
        Value key = evaluate(*operands[i], scope);
        made.set(std::move(key), evaluate(*operands[i + 1], scope));
      }
      return Value::dict(std::move(made));
    }
    case Expression::attribute:
      return attribute(evaluate(*operands[0], scope), expression.text);
    case Expression::item:
      return evaluateItem(expression, scope);
    case Expression::slice:
      throw Fault("a slice stands outside an index");
    case Expression::call:
      return evaluateCall(expression, scope);
    case Expression::filter: {
      const Value input = operands[0] ? evaluate(*operands[0], scope) : m_blockText;
      return applyFilter(expression.text, input, arguments(expression.arguments, scope));
    }
    case Expression::test: {
      const Value value = evaluate(*operands[0], scope);
      return Value(applyTest(expression.text, value, arguments(expression.arguments, scope)) != expression.negated);
    }
    case Expression::unary:
      return evaluateUnary(expression, scope);
    case Expression::binary: {
      Value left = evaluate(*operands[0], scope);
      if (expression.text == "and") return left.truth() ? evaluate(*operands[1], scope) : left;
      if (expression.text == "or") return left.truth() ? left : evaluate(*operands[1], scope);
      return binary(expression.text, left, evaluate(*operands[1], scope));
    }
    case Expression::concat: {
      std::string text;
      for (const auto& operand : operands) write(text, evaluate(*operand, scope).str());
      return Value(std::move(text));
    }
    case Expression::compare:
      return evaluateCompare(expression, scope);
    case Expression::choice:
      if (evaluate(*operands[0], scope).truth()) return evaluate(*operands[1], scope);
      return operands[2] ? evaluate(*operands[2], scope)
                         : Value::undefined("the inline if-expression evaluated to false and no else section was defined.");
  }
  return {};
}

Value Interpreter::evaluateUnary(const Expression& expression, Scope& scope) {
  const Value value = evaluate(*expression.operands[0], scope);
  if (expression.text == "not") return Value(!value.truth());
  value.need();
  if (!value.isNumber()) throw Fault(fmt::format("bad operand type for unary {}: '{}'", expression.text, value.typeName()));
  if (value.is(Kind::real)) return Value(expression.text == "-" ? -value.real() : value.real());
  int64_t out = value.integer();
  if (expression.text == "-" && __builtin_sub_overflow(int64_t{0}, out, &out)) throw Fault("integer too large");
  return Value(out);
}

Value Interpreter::evaluateCompare(const Expression& expression, Scope& scope) {
  Value left = evaluate(*expression.operands[0], scope);
  for (size_t i = 0; i < expression.operators.size(); ++i) {
    const std::string& sign = expression.operators[i];
    Value right = evaluate(*expression.operands[i + 1], scope);
    const bool holds = sign == "=="       ? equal(left, right)
                       : sign == "!="     ? !equal(left, right)
                       : sign == "in"     ? contains(right, left)
                       : sign == "not in" ? !contains(right, left)
                       : sign == "<"      ? less(left, right, "<")
                       : sign == ">"      ? less(right, left, ">")
                       : sign == "<="     ? !less(right, left, "<=")
                                          : !less(left, right, ">=");
    if (!holds) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Value Interpreter::evaluateItem(const Expression& expression, Scope& scope) {
  const Value object = evaluate(*expression.operands[0], scope);
  const Expression& key = *expression.operands[1];
  if (key.type != Expression::slice) return item(object, evaluate(key, scope));
  const auto bound = [&](size_t i) { return key.operands[i] ? evaluate(*key.operands[i], scope) : Value::none(); };
  const Value start = bound(0), stop = bound(1), step = bound(2);
  return slice(object, start, stop, step);
}

Call Interpreter::arguments(const Arguments& given, Scope& scope) {
  Call call;
  call.values.reserve(given.list.size());
  for (const auto& argument : given.list) {
    Value value = evaluate(*argument.value, scope);
    if (argument.stars == 1) {
      for (Value& each : iterate(value)) call.values.push_back(std::move(each));
    } else if (argument.stars == 2) {
      value.need();
      if (!value.is(Kind::dict)) throw Fault("argument after ** must be a mapping, not " + value.typeName());
      for (const auto& [name, each] : value.entries().entries) call.named.emplace_back(name.str(), each);
    } else if (argument.name.empty()) {
      call.values.push_back(std::move(value));
    } else {
      call.named.emplace_back(argument.name, std::move(value));
    }
  }
  return call;
}

Value Interpreter::evaluateCall(const Expression& expression, Scope& scope, const Value* caller) {
  const Value callee = evaluate(*expression.operands[0], scope);
  Call call = arguments(expression.arguments, scope);
  if (caller) call.named.emplace_back("caller", *caller);
  return callValue(callee, std::move(call));
}

Value Interpreter::callValue(const Value& callee, Call call) {
  if (callee.is(Kind::function)) {
    Value made = callee.function().run(call);
    spend(stepsOf(made));
    return made;
  }
  if (callee.is(Kind::loop)) {
    if (!callee.loopState().recurse) throw Fault("The loop must have the 'recursive' marker to be called recursively.");
    return callee.loopState().recurse(call.need(0, "iterable", "loop"));
  }
  callee.need();
  throw Fault("'" + callee.typeName() + "' object is not callable");
}

Value Interpreter::filterBlock(const Expression& filters, Value input, Scope& scope) {
  const Value outer = std::exchange(m_blockText, std::move(input));
  Value made = evaluate(filters, scope);
  m_blockText = outer;
  return made;
}

Value Interpreter::applyFilter(const std::string& name, const Value& input, Call call) {
  Entered entered(*this);  // `map` comes here again
  const Filter filter = findFilter(name);
  if (!filter) throw Fault("No filter named '" + name + "'.");
  spend(stepsOf(input) + stepsOfItems(call.values.size()));
  Value made = filter(*this, input, call);
  spend(stepsOf(made));
  return made;
}

bool Interpreter::applyTest(const std::string& name, const Value& input, const Call& call) {
  const Test test = findTest(name);
  if (!test) throw Fault("No test named '" + name + "'.");
  spend(1);
  return test(*this, input, call);
}

Value Interpreter::attribute(const Value& object, const std::string& name) {
  object.need();
  Value bound = method(object, name);
  if (!bound.isUndefined() || bound.identity()) return bound;  // a method, or one that the sandbox refuses
  if (object.is(Kind::dict) || object.is(Kind::space)) {
    if (const Value* found = object.entries().findText(name)) return *found;
  }
  const std::string owner = object.isNone()          ? "None"
                            : object.is(Kind::space) ? "headroom namespace"
                                                     : object.typeName() + " object";
  return Value::undefined(fmt::format("'{}' has no attribute '{}'", owner, name));
}

Value Interpreter::item(const Value& object, const Value& key) {
  object.need();
  if (object.is(Kind::dict) || object.is(Kind::space)) {
    if (key.is(Kind::list) || key.is(Kind::dict)) return Value::undefined("unhashable key");
    if (const Value* found = object.entries().find(key)) return *found;
  } else if (key.isInteger() && (object.isIndexed() || object.isString())) {
    const int64_t count = length(object);
    const int64_t at = key.integer() < 0 ? key.integer() + count : key.integer();
    if (at < 0 || at >= count)
      return Value::undefined(fmt::format("{} object has no element {}", object.typeName(), key.integer()));
    if (!object.isString()) return object.items()[at];
    return slice(object, Value(at), Value(at + 1), Value::none());
  }
  if (key.isString()) {
    Value bound = method(object, key.string());
    if (!bound.isUndefined() || bound.identity()) return bound;
    return Value::undefined(fmt::format("'{} object' has no attribute '{}'", object.typeName(), key.string()));
  }
  return Value::undefined(fmt::format("{} object has no element {}", object.typeName(), key.repr()));
}

Value Interpreter::path(const Value& object, const Value& dotted, const Value* otherwise) {
  if (!dotted.isString()) {
    Value found = item(object, dotted);
    return found.isUndefined() && otherwise ? *otherwise : found;
  }
  Value value = object;
  const std::string& text = dotted.string();
  for (size_t begin = 0; begin <= text.size();) {
    spend(1);
    const size_t end = std::min(text.find('.', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const bool index =
        !part.empty() && std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; }) && part.size() < 10;
    value = item(value, index ? Value(static_cast<int64_t>(std::stoll(part))) : Value(part));
    if (value.isUndefined() && otherwise) value = *otherwise;
    begin = end + 1;
  }
  return value;
}

namespace {

[[noreturn]] void refuse(const std::string& sign, const Value& a, const Value& b) {
  if (sign == "+" && a.isString()) throw Fault("can only concatenate str (not \"" + b.typeName() + "\") to str");
  if (sign == "+" && a.is(Kind::list)) throw Fault("can only concatenate list (not \"" + b.typeName() + "\") to list");
  throw Fault(fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", sign, a.typeName(), b.typeName()));
}

Value repeated(const Value& a, int64_t times) {
  times = std::max<int64_t>(times, 0);
  if (a.isString()) {
    if (a.string().empty()) return a;
    checkSize(times > static_cast<int64_t>(kMostBytes) ? kMostBytes + 1 : a.string().size() * static_cast<size_t>(times));
    const size_t size = a.string().size() * static_cast<size_t>(times);
    std::string out = times ? a.string() : std::string();
    out.reserve(size);
    while (out.size() < size) out.append(out, 0, std::min(out.size(), size - out.size()));
    return Value(std::move(out));
  }
  if (a.items().empty()) return a;
  checkSize(times > static_cast<int64_t>(kMostBytes) ? kMostBytes + 1
                                                     : a.items().size() * static_cast<size_t>(times) * sizeof(Value));
  std::vector<Value> items;
  for (int64_t i = 0; i < times; ++i) items.insert(items.end(), a.items().begin(), a.items().end());
  return Value::sequence(a.kind(), std::move(items));
}

Value power(const Value& a, const Value& b) {
  if (a.isInteger() && b.isInteger() && b.integer() >= 0) {
    int64_t out = 1;
    if (b.integer() > 64 && a.integer() != 0 && a.integer() != 1 && a.integer() != -1) throw Fault("integer too large");
    for (int64_t i = 0; i < (b.integer() > 64 ? b.integer() % 2 + 2 : b.integer()); ++i)
      if (__builtin_mul_overflow(out, a.integer(), &out)) throw Fault("integer too large");
    return Value(out);
  }
  if (a.real() == 0 && b.real() < 0) throw Fault("0.0 cannot be raised to a negative power");
  return Value(std::pow(a.real(), b.real()));
}

Value integers(const std::string& sign, int64_t a, int64_t b) {
  int64_t out = 0;
  bool over = false;
  if (sign == "+") {
    over = __builtin_add_overflow(a, b, &out);
  } else if (sign == "-") {
    over = __builtin_sub_overflow(a, b, &out);
  } else if (sign == "*") {
    over = __builtin_mul_overflow(a, b, &out);
  } else {  // // and %: towards minus infinity
    if (b == 0) throw Fault(sign == "%" ? "integer modulo by zero" : "integer division or modulo by zero");
    if (b == -1) {
      over = sign == "//" && __builtin_sub_overflow(int64_t{0}, a, &out);
    } else {
      const int64_t rest = a % b;
      const bool apart = rest != 0 && (rest < 0) != (b < 0);
      out = sign == "%" ? rest + (apart ? b : 0) : a / b - (apart ? 1 : 0);
    }
  }
  if (over) throw Fault("integer too large");
  return Value(out);
}

Value reals(const std::string& sign, double a, double b) {
  if (sign == "+") return Value(a + b);
  if (sign == "-") return Value(a - b);
  if (sign == "*") return Value(a * b);
  if (b == 0) throw Fault(sign == "/" ? "division by zero" : "float floor division by zero");
  if (sign == "/") return Value(a / b);
  if (sign == "//") return Value(std::floor(a / b));
  double rest = std::fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
  return Value(rest);
}

}  // namespace

Value Interpreter::binary(const std::string& sign, const Value& a, const Value& b) {
  a.need();
  if (sign == "%" && a.isString()) {
    Value made(percentFormat(a.string(), b));
    spend(stepsOf(a) + stepsOf(made));
    return made;
  }
  b.need();
  if (a.isNumber() && b.isNumber()) {
    if (sign == "**") return power(a, b);
    if (sign == "/" && b.real() == 0) throw Fault("division by zero");
    return a.isInteger() && b.isInteger() && sign != "/" ? integers(sign, a.integer(), b.integer())
                                                         : reals(sign, a.real(), b.real());
  }
  if (sign == "+" && a.isString() && b.isString()) {
    checkSize(a.string().size() + b.string().size());
    spend(stepsOf(a) + stepsOf(b));
    return Value(a.string() + b.string());
  }
  if (sign == "+" && a.kind() == b.kind() && (a.is(Kind::list) || a.is(Kind::tuple))) {
    checkSize((a.items().size() + b.items().size()) * sizeof(Value));
    spend(stepsOf(a) + stepsOf(b));
    std::vector<Value> items = a.items();
    items.insert(items.end(), b.items().begin(), b.items().end());
    return Value::sequence(a.kind(), std::move(items));
  }
  const auto repeats = [](const Value& value) { return value.isString() || value.is(Kind::list) || value.is(Kind::tuple); };
  const bool forwards = sign == "*" && repeats(a) && b.isInteger();
  if (!forwards && !(sign == "*" && repeats(b) && a.isInteger())) refuse(sign, a, b);
  Value made = forwards ? repeated(a, b.integer()) : repeated(b, a.integer());
  spend(stepsOf(made));
  return made;
}

}  // namespace headroom::engine::jinja
