// SPDX-License-Identifier: Apache-2.0
// The tests of jinja2: `x is odd`.
#include "engine/text/jinja_filters.h"
#include "engine/text/jinja_interpreter.h"
#include "engine/text/jinja_text.h"

#include <map>

namespace headroom::engine::jinja {
namespace {

int64_t remainder(const Value& value, const Value& by) {
  const Value rest = Interpreter::binary("%", value, by);
  if (!rest.isNumber()) throw Fault("not all arguments converted during string formatting");
  return rest.isInteger() ? rest.integer() : rest.real() != 0 ? -1 : 0;
}

bool isIterable(const Value& value) {
  return value.isUndefined() || value.isString() || value.isSequence() || value.is(Kind::dict) || value.is(Kind::loop);
}

using Tests = std::map<std::string_view, Test>;

const Tests& tests() {
  static const Test same = [](Interpreter&, const Value& value, const Call& call) {
    return equal(value, call.need(0, nullptr, "eq"));
  };
  static const Test different = [](Interpreter&, const Value& value, const Call& call) {
    return !equal(value, call.need(0, nullptr, "ne"));
  };
  static const Test under = [](Interpreter&, const Value& value, const Call& call) {
    return less(value, call.need(0, nullptr, "lt"), "<");
  };
  static const Test over = [](Interpreter&, const Value& value, const Call& call) {
    return less(call.need(0, nullptr, "gt"), value, ">");
  };
  static const Test atMost = [](Interpreter&, const Value& value, const Call& call) {
    return !less(call.need(0, nullptr, "le"), value, "<=");
  };
  static const Test atLeast = [](Interpreter&, const Value& value, const Call& call) {
    return !less(value, call.need(0, nullptr, "ge"), ">=");
  };
  static const Tests known = {
      {"defined", [](Interpreter&, const Value& value, const Call&) { return !value.isUndefined(); }},
      {"undefined", [](Interpreter&, const Value& value, const Call&) { return value.isUndefined(); }},
      {"none", [](Interpreter&, const Value& value, const Call&) { return value.isNone(); }},
      {"boolean", [](Interpreter&, const Value& value, const Call&) { return value.is(Kind::boolean); }},
      {"true", [](Interpreter&, const Value& value, const Call&) { return value.is(Kind::boolean) && value.integer(); }},
      {"false", [](Interpreter&, const Value& value, const Call&) { return value.is(Kind::boolean) && !value.integer(); }},
      {"integer", [](Interpreter&, const Value& value, const Call&) { return value.is(Kind::integer); }},
      {"float", [](Interpreter&, const Value& value, const Call&) { return value.is(Kind::real); }},
      {"number", [](Interpreter&, const Value& value, const Call&) { return value.isNumber(); }},
      {"string", [](Interpreter&, const Value& value, const Call&) { return value.isString(); }},
      {"mapping", [](Interpreter&, const Value& value, const Call&) { return value.is(Kind::dict); }},
      {"iterable", [](Interpreter&, const Value& value, const Call&) { return isIterable(value); }},
      {"sequence",
       [](Interpreter&, const Value& value, const Call&) {
         return value.isUndefined() || value.isString() || value.isIndexed() || value.is(Kind::dict);
       }},
      {"callable", [](Interpreter&, const Value& value,
                      const Call&) { return value.is(Kind::function) || value.is(Kind::loop) || value.isUndefined(); }},
      {"odd", [](Interpreter&, const Value& value, const Call&) { return remainder(value, Value(2)) == 1; }},
      {"even", [](Interpreter&, const Value& value, const Call&) { return remainder(value, Value(2)) == 0; }},
      {"divisibleby", [](Interpreter&, const Value& value,
                         const Call& call) { return remainder(value, call.need(0, "num", "divisibleby")) == 0; }},
      {"lower", [](Interpreter&, const Value& value, const Call&) { return isCased(value.str(), false); }},
      {"upper", [](Interpreter&, const Value& value, const Call&) { return isCased(value.str(), true); }},
      {"in", [](Interpreter&, const Value& value, const Call& call) { return contains(call.need(0, "seq", "in"), value); }},
      {"escaped", [](Interpreter&, const Value&, const Call&) { return false; }},
      {"filter", [](Interpreter&, const Value& value, const Call&) { return findFilter(value.str()) != nullptr; }},
      {"test", [](Interpreter&, const Value& value, const Call&) { return findTest(value.str()) != nullptr; }},
      {"sameas",
       [](Interpreter&, const Value& value, const Call& call) {
         const Value& other = call.need(0, "other", "sameas");
         if (value.kind() != other.kind()) return false;
         return value.identity() ? value.identity() == other.identity() || (value.isString() && value.string() == other.string())
                                 : equal(value, other);
       }},
      {"eq", same},
      {"equalto", same},
      {"==", same},
      {"ne", different},
      {"!=", different},
      {"lt", under},
      {"lessthan", under},
      {"<", under},
      {"gt", over},
      {">", over},
      {"le", atMost},
      {"<=", atMost},
      {"ge", atLeast},
      {">=", atLeast},
      {"greaterthan", over},
  };
  return known;
}

}  // namespace

Test findTest(std::string_view name) {
  const auto found = tests().find(name);
  return found == tests().end() ? nullptr : found->second;
}

}  // namespace headroom::engine::jinja
