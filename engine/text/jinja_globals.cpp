// SPDX-License-Identifier: Apache-2.0
// The functions every template can call (range, dict, namespace, cycler, joiner, and Transformers' two), and slices.
#include "engine/text/jinja_interpreter.h"
#include "engine/text/jinja_text.h"
#include "engine/text/unicode.h"

#include <fmt/format.h>
#include <algorithm>
#include <ctime>

namespace headroom::engine::jinja {
namespace {

constexpr int64_t kLongestRange = 100'000;  // jinja2's sandbox has the same

Value range(Call& call) {
  const size_t count = call.values.size();
  if (count < 1 || count > 3) throw Fault(fmt::format("range expected 1 to 3 arguments, got {}", count));
  const int64_t start = count > 1 ? call.integer(0, nullptr, 0) : 0, stop = call.integer(count > 1 ? 1 : 0, nullptr, 0),
                step = call.integer(2, nullptr, 1);
  if (step == 0) throw Fault("range() arg 3 must not be zero");
  std::vector<Value> items;
  for (int64_t at = start; step > 0 ? at < stop : at > stop;) {
    items.emplace_back(at);
    if (static_cast<int64_t>(items.size()) > kLongestRange)
      throw Fault("Range too big. The sandbox blocks ranges larger than MAX_RANGE (100000).");
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  return Value::range(std::move(items), start, stop, step);
}

Dict entries(Call& call) {
  Dict made;
  if (!call.values.empty()) {
    const Value& source = call.values[0];
    if (source.is(Kind::dict)) {
      made = source.entries();
    } else {
      source.need();
      for (const Value& pair : iterate(source)) {
        const auto parts = iterate(pair);
        if (parts.size() != 2) throw Fault("dictionary update sequence element has the wrong length");
        made.set(parts[0], parts[1]);
      }
    }
  }
  for (auto& [name, value] : call.named) made.set(Value(name), value);
  return made;
}

Value makeSpace(Call& call) {
  Dict made = entries(call);
  for (const auto& entry : made.entries)
    if (entry.first.isString() && entry.first.string().starts_with('_'))
      throw Fault("Chat templates cannot store underscore-prefixed attributes on a namespace");
  return Value::space(std::move(made));
}

Value strftimeNow(Call& call) {
  const std::string format = call.need(0, "format", "strftime_now").str();
  if (format.empty()) return Value("");
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  checkSize(format.size() * 16);
  std::string out(format.size() * 16 + 256, '\0');
  out.resize(std::strftime(out.data(), out.size(), format.c_str(), &local));
  return Value(text::toValidUtf8(out));
}

// joiner(sep): nothing the first time, then the separator.
Value joiner(Call& call) {
  auto used = std::make_shared<bool>(false);
  return Value::function("joiner", [used, separator = call.text(0, "sep", ", ")](Call&) {
    return std::exchange(*used, true) ? Value(separator) : Value("");
  });
}

Value cycler(Call& call) {
  if (call.values.empty()) throw Fault("at least one item has to be provided");
  auto place = std::make_shared<size_t>(0);
  const auto items = std::make_shared<std::vector<Value>>(call.values);
  Dict members;
  members.set(Value("current"), items->front());
  Value made = Value::space(std::move(members));
  // The functions may outlive their namespace, which holds them.
  const auto moveTo = [place, items, own = made.weak()](size_t next) {
    *place = next;
    if (const auto kept = own.lock()) static_cast<Dict*>(kept.get())->set(Value("current"), (*items)[next]);
  };
  made.entries().set(Value("next"), Value::function("next", [place, items, moveTo](Call&) {
                       const Value current = (*items)[*place];
                       moveTo((*place + 1) % items->size());
                       return current;
                     }));
  made.entries().set(Value("reset"), Value::function("reset", [moveTo](Call&) {
                       moveTo(0);
                       return Value::none();
                     }));
  return made;
}

}  // namespace

std::vector<std::pair<std::string, Value>> globalFunctions() {
  return {
      {"range", Value::function("range", range)},
      {"dict", Value::function("dict", [](Call& call) { return Value::dict(entries(call)); })},
      {"namespace", Value::function("namespace", makeSpace)},
      {"joiner", Value::function("joiner", joiner)},
      {"cycler", Value::function("cycler", cycler)},
      {"strftime_now", Value::function("strftime_now", strftimeNow)},
      {"raise_exception",
       Value::function("raise_exception",
                       [](Call& call) -> Value { throw Fault(call.need(0, "message", "raise_exception").str()); })},
  };
}

Value slice(const Value& object, const Value& start, const Value& stop, const Value& step) {
  object.need();
  if (!object.isString() && !object.isIndexed())
    return Value::undefined(fmt::format("{} object has no element slice", object.typeName()));
  for (const Value* bound : {&start, &stop, &step})
    if (!bound->isNone() && !bound->isInteger()) {
      bound->need();
      return Value::undefined("slice indices must be integers or None");
    }
  const int64_t count = length(object), by = step.isNone() ? 1 : step.integer();
  if (by == 0) throw Fault("slice step cannot be zero");
  const auto clamp = [&](const Value& bound, int64_t otherwise) {
    if (bound.isNone()) return otherwise;
    const int64_t at = bound.integer() < 0 ? bound.integer() + count : bound.integer();
    return by > 0 ? std::clamp<int64_t>(at, 0, count) : std::clamp<int64_t>(at, -1, count - 1);
  };
  const int64_t from = clamp(start, by > 0 ? 0 : count - 1), to = clamp(stop, by > 0 ? count : -1);
  if (object.isString() && by == 1) {
    spend(stepsOf(object));
    const size_t begin = byteOffset(object.string(), from);
    return Value(object.string().substr(begin, byteOffset(object.string(), std::max(from, to)) - begin));
  }
  const std::vector<Value> all = iterate(object);
  std::vector<Value> items;
  for (int64_t at = from; by > 0 ? at < to : at > to; at += by) {
    items.push_back(all[at]);
    if (by >= count || by <= -count) break;
  }
  if (object.is(Kind::range)) {
    const Sequence& range = object.sequenceObject();
    const auto bound = [&](int64_t place) {
      int64_t value = 0;
      if (__builtin_mul_overflow(place, range.step, &value) || __builtin_add_overflow(value, range.start, &value))
        throw Fault("integer too large");
      return value;
    };
    int64_t step = 0;
    if (__builtin_mul_overflow(range.step, by, &step)) throw Fault("integer too large");
    return Value::range(std::move(items), bound(from), bound(to), step);
  }
  if (!object.isString()) return Value::sequence(object.kind(), std::move(items));
  std::string out;
  for (const Value& item : items) out += item.string();
  return Value(std::move(out));
}

}  // namespace headroom::engine::jinja
