// SPDX-License-Identifier: Apache-2.0
#include "engine/text/jinja_filters.h"
#include "engine/text/unicode.h"

#include <fmt/format.h>
#include <algorithm>

namespace headroom::engine::jinja {
namespace {

// Texts compare without regard to case unless asked.
Value folded(const Value& value, bool caseSensitive) {
  return value.isString() && !caseSensitive ? Value(text::lowerText(value.string())) : value;
}

// What `attribute` names in each item, or the item itself.
Value key(const Value& item, const Value* attribute, const Value* otherwise = nullptr) {
  return attribute && !attribute->isNone() ? Interpreter::path(item, *attribute, otherwise) : item;
}

Value sorted(Interpreter&, const Value& input, Call& call) {
  const bool reverse = call.truth(0, "reverse", false), caseSensitive = call.truth(1, "case_sensitive", false);
  const Value* attribute = call.get(2, "attribute");
  input.need();
  std::vector<std::pair<Value, Value>> keyed;
  for (Value& item : iterate(input)) {
    std::vector<Value> keys;
    if (attribute && attribute->isString()) {  // "a,b" sorts by both
      const std::string& names = attribute->string();
      for (size_t begin = 0; begin <= names.size();) {
        const size_t end = std::min(names.find(',', begin), names.size());
        keys.push_back(folded(Interpreter::path(item, Value(names.substr(begin, end - begin))), caseSensitive));
        begin = end + 1;
      }
    } else {
      keys.push_back(folded(key(item, attribute), caseSensitive));
    }
    keyed.emplace_back(keys.size() == 1 ? keys[0] : Value::list(keys), std::move(item));
  }
  std::stable_sort(keyed.begin(), keyed.end(),
                   [&](const auto& a, const auto& b) { return reverse ? less(b.first, a.first) : less(a.first, b.first); });
  std::vector<Value> items;
  for (auto& pair : keyed) items.push_back(std::move(pair.second));
  return Value::list(std::move(items));
}

Value dictSorted(Interpreter&, const Value& input, Call& call) {
  const bool caseSensitive = call.truth(0, "case_sensitive", false), reverse = call.truth(2, "reverse", false);
  const std::string by = call.text(1, "by", "key");
  if (by != "key" && by != "value") throw Fault("You can only sort by either \"key\" or \"value\"");
  input.need();
  if (!input.is(Kind::dict)) throw Fault("'" + input.typeName() + " object' has no attribute 'items'");
  auto entries = input.entries().entries;
  const auto sortKey = [&](const std::pair<Value, Value>& entry) {
    return folded(by == "key" ? entry.first : entry.second, caseSensitive);
  };
  std::stable_sort(entries.begin(), entries.end(), [&](const auto& a, const auto& b) {
    return reverse ? less(sortKey(b), sortKey(a)) : less(sortKey(a), sortKey(b));
  });
  std::vector<Value> items;
  for (auto& [name, value] : entries) items.push_back(Value::tuple({name, value}));
  return Value::list(std::move(items));
}

Value unique(Interpreter&, const Value& input, Call& call) {
  const bool caseSensitive = call.truth(0, "case_sensitive", false);
  const Value* attribute = call.get(1, "attribute");
  std::vector<Value> items, seen;
  for (Value& item : iterate(input)) {
    Value itemKey = folded(key(item, attribute), caseSensitive);
    if (std::any_of(seen.begin(), seen.end(), [&](const Value& other) { return equal(other, itemKey); })) continue;
    seen.push_back(std::move(itemKey));
    items.push_back(std::move(item));
  }
  return Value::generator(std::move(items));
}

template <bool smallest>
Value extreme(Interpreter&, const Value& input, Call& call) {
  const bool caseSensitive = call.truth(0, "case_sensitive", false);
  const Value* attribute = call.get(1, "attribute");
  const std::vector<Value> items = iterate(input);
  if (items.empty()) return Value::undefined("No aggregated item, sequence was empty.");
  const auto keyOf = [&](const Value& item) { return folded(key(item, attribute), caseSensitive); };
  const auto before = [&](const Value& a, const Value& b) { return less(keyOf(a), keyOf(b)); };
  return smallest ? *std::min_element(items.begin(), items.end(), before) : *std::max_element(items.begin(), items.end(), before);
}

Value groupBy(Interpreter&, const Value& input, Call& call) {
  const Value attribute = call.need(0, "attribute", "groupby");
  const Value* otherwise = call.get(1, "default");
  const bool caseSensitive = call.truth(2, "case_sensitive", false);
  std::vector<Value> items = iterate(input);
  const auto keyOf = [&](const Value& item) { return folded(Interpreter::path(item, attribute, otherwise), caseSensitive); };
  std::stable_sort(items.begin(), items.end(), [&](const Value& a, const Value& b) { return less(keyOf(a), keyOf(b)); });
  std::vector<Value> groups;
  for (size_t begin = 0; begin < items.size();) {
    size_t end = begin + 1;
    while (end < items.size() && equal(keyOf(items[begin]), keyOf(items[end]))) ++end;
    const std::vector<Value> members(items.begin() + static_cast<std::ptrdiff_t>(begin),
                                     items.begin() + static_cast<std::ptrdiff_t>(end));
    groups.push_back(Value::tuple({Interpreter::path(items[begin], attribute, otherwise), Value::list(members)}));
    begin = end;
  }
  return Value::list(std::move(groups));
}

Value mapped(Interpreter& interpreter, const Value& input, Call& call) {
  if (input.isUndefined() || (input.isSequence() && input.items().empty())) return Value::generator({});
  std::vector<Value> items;
  if (call.values.empty()) {
    const Value* attribute = call.get(0, "attribute");
    const Value* otherwise = call.get(9, "default");
    if (!attribute) throw Fault("map requires a filter argument");
    for (const Value& item : iterate(input)) items.push_back(Interpreter::path(item, *attribute, otherwise));
    return Value::generator(std::move(items));
  }
  const std::string name = call.values[0].str();
  Call rest{{call.values.begin() + 1, call.values.end()}, call.named};
  for (const Value& item : iterate(input)) items.push_back(interpreter.applyFilter(name, item, rest));
  return Value::generator(std::move(items));
}

// select, reject and their twins that look at an attribute.
template <bool keep, bool byAttribute>
Value selected(Interpreter& interpreter, const Value& input, Call& call) {
  const size_t skipped = byAttribute ? 1 : 0;
  if (byAttribute && call.values.empty()) throw Fault("Missing parameter for attribute name");
  const bool tested = call.values.size() > skipped;
  const std::string test = tested ? call.values[skipped].str() : "";
  Call rest;
  if (tested) rest.values.assign(call.values.begin() + static_cast<std::ptrdiff_t>(skipped) + 1, call.values.end());
  std::vector<Value> items;
  for (const Value& item : iterate(input)) {
    const Value looked = byAttribute ? Interpreter::path(item, call.values[0]) : item;
    if ((tested ? interpreter.applyTest(test, looked, rest) : looked.truth()) == keep) items.push_back(item);
  }
  return Value::generator(std::move(items));
}

Value joined(Interpreter&, const Value& input, Call& call) {
  const std::string between = call.text(0, "d", "");
  const Value* attribute = call.get(1, "attribute");
  std::string out;
  bool first = true;
  for (const Value& item : iterate(input)) {
    if (!first) out += between;
    first = false;
    out += key(item, attribute).str();
    checkSize(out.size());
  }
  return Value(std::move(out));
}

Value sum(Interpreter&, const Value& input, Call& call) {
  const Value* attribute = call.get(0, "attribute");
  const Value* start = call.get(1, "start");
  Value total = start ? *start : Value(0);
  for (const Value& item : iterate(input)) total = Interpreter::binary("+", total, key(item, attribute));
  return total;
}

Value reversed(Interpreter&, const Value& input, Call&) {
  input.need();
  std::vector<Value> items = iterate(input);
  std::reverse(items.begin(), items.end());
  if (!input.isString()) return Value::generator(std::move(items));
  std::string out;
  for (const Value& character : items) out += character.string();
  return Value(std::move(out));
}

Value batched(Interpreter&, const Value& input, Call& call) {
  const int64_t size = call.integer(0, "linecount", 1);
  const Value* fill = call.get(1, "fill_with");
  std::vector<Value> rows, row;
  for (const Value& item : iterate(input)) {
    if (static_cast<int64_t>(row.size()) == size) rows.push_back(Value::list(std::exchange(row, {})));
    row.push_back(item);
  }
  if (!row.empty()) {
    while (fill && !fill->isNone() && static_cast<int64_t>(row.size()) < std::min<int64_t>(size, 100'000)) row.push_back(*fill);
    rows.push_back(Value::list(std::move(row)));
  }
  return Value::generator(std::move(rows));
}

Value sliced(Interpreter&, const Value& input, Call& call) {
  const int64_t slices = call.integer(0, "slices", 1);
  if (slices < 1 || slices > 100'000) throw Fault("slice needs a number of slices");
  const Value* fill = call.get(1, "fill_with");
  const std::vector<Value> items = iterate(input);
  const int64_t each = static_cast<int64_t>(items.size()) / slices, more = static_cast<int64_t>(items.size()) % slices;
  std::vector<Value> rows;
  int64_t at = 0;
  for (int64_t i = 0; i < slices; ++i) {
    const int64_t end = at + each + (i < more ? 1 : 0);
    std::vector<Value> row(items.begin() + at, items.begin() + end);
    if (fill && !fill->isNone() && i >= more) row.push_back(*fill);
    rows.push_back(Value::list(std::move(row)));
    at = end;
  }
  return Value::generator(std::move(rows));
}

Value items(Interpreter&, const Value& input, Call&) {
  if (input.isUndefined()) return Value::generator({});
  if (!input.is(Kind::dict)) throw Fault("Can only get item pairs from a mapping.");
  std::vector<Value> pairs;
  for (const auto& [name, value] : input.entries().entries) pairs.push_back(Value::tuple({name, value}));
  return Value::generator(std::move(pairs));
}

}  // namespace

const std::map<std::string_view, Filter>& sequenceFilters() {
  static const Filter count = [](Interpreter&, const Value& input, Call&) { return Value(length(input)); };
  static const std::map<std::string_view, Filter> filters = {
      {"sort", sorted},
      {"dictsort", dictSorted},
      {"unique", unique},
      {"min", extreme<true>},
      {"max", extreme<false>},
      {"groupby", groupBy},
      {"map", mapped},
      {"select", selected<true, false>},
      {"reject", selected<false, false>},
      {"selectattr", selected<true, true>},
      {"rejectattr", selected<false, true>},
      {"join", joined},
      {"sum", sum},
      {"reverse", reversed},
      {"batch", batched},
      {"slice", sliced},
      {"items", items},
      {"length", count},
      {"count", count},
      {"list", [](Interpreter&, const Value& input, Call&) { return Value::list(iterate(input)); }},
      {"first",
       [](Interpreter&, const Value& input, Call&) {
         if (input.isString() && !input.string().empty()) return Interpreter::item(input, Value(0));
         const auto all = iterate(input);
         return all.empty() ? Value::undefined("No first item, sequence was empty.") : all.front();
       }},
      {"last",
       [](Interpreter&, const Value& input, Call&) {
         if (input.is(Kind::generator)) throw Fault("'generator' object is not reversible");
         if (input.isString() && !input.string().empty()) return Interpreter::item(input, Value(-1));
         const auto all = iterate(input);
         return all.empty() ? Value::undefined("No last item, sequence was empty.") : all.back();
       }},
      {"random",
       [](Interpreter&, const Value& input, Call&) {
         const auto all = iterate(input);
         return all.empty() ? Value::undefined("No random item, sequence was empty.")
                            : all[static_cast<size_t>(std::rand()) % all.size()];
       }},
  };
  return filters;
}

}  // namespace headroom::engine::jinja
