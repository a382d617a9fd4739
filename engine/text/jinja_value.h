// SPDX-License-Identifier: Apache-2.0
// Values of a chat template, with Python's meaning: truth, equality, order, str(), repr() and json.dumps(). Values are cheap to
// copy; containers are shared. One render, one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace headroom::engine::jinja {

// What a template raises, or an operation that Python refuses.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// A template that works too long; rendering it in another way would take as long again.
struct WorkFault : Fault {
  using Fault::Fault;
};

class Value;
struct Call;

struct Sequence {
  std::vector<Value> items;
  const char* name = "";                  // of views: dict_keys, …
  int64_t start = 0, stop = 0, step = 1;  // of ranges
};
// In order of insertion.
struct Dict {
  std::vector<std::pair<Value, Value>> entries;
  const Value* find(const Value& key) const;
  const Value* findText(std::string_view key) const;
  void set(Value key, Value value);
};
struct Function {
  std::string name;
  std::function<Value(Call&)> run;
};
struct Loop {
  std::vector<Value> items;
  int64_t index0 = 0, depth0 = 0;
  std::vector<Value> lastChanged;
  bool anyChanged = false;
  std::function<Value(const Value&)> recurse;
  // Called before lastChanged is set: from then on a loop can hold itself.
  std::function<void()> willKeep;
};

// Destroys `object` now, or, where containers that hold each other end one inside the other already, after the outermost: a
// template can nest a million of them, and the stack cannot.
void destroyInTurn(void* object, void (*destroy)(void*));

// A container in shared ownership that ends by destroyInTurn.
template <class T>
std::shared_ptr<T> shared(T value) {
  return std::shared_ptr<T>(new T(std::move(value)),
                            [](T* object) { destroyInTurn(object, [](void* each) { delete static_cast<T*>(each); }); });
}

enum class Kind {
  undefined,
  none,
  boolean,
  integer,
  real,
  string,
  list,
  tuple,
  view,
  range,
  generator,
  dict,
  space,
  function,
  loop
};

class Value {
 public:
  Value() : m_kind(Kind::undefined) {}
  Value(bool value) : m_kind(Kind::boolean), m_integer(value) {}
  Value(int64_t value) : m_kind(Kind::integer), m_integer(value) {}
  Value(int value) : Value(static_cast<int64_t>(value)) {}
  Value(double value) : m_kind(Kind::real), m_real(value) {}
  Value(std::string text) : m_kind(Kind::string), m_object(std::make_shared<std::string>(std::move(text))) {}
  Value(std::string_view text) : Value(std::string(text)) {}
  Value(const char* text) : Value(std::string(text)) {}
  static Value none() { return Value(Kind::none, nullptr); }
  static Value undefined(std::string hint) { return Value(Kind::undefined, std::make_shared<std::string>(std::move(hint))); }
  static Value sequence(Kind kind, std::vector<Value> items, const char* name = "") {
    return Value(kind, shared(Sequence{std::move(items), name}));
  }
  static Value range(std::vector<Value> items, int64_t start, int64_t stop, int64_t step) {
    return Value(Kind::range, shared(Sequence{std::move(items), "range", start, stop, step}));
  }
  static Value list(std::vector<Value> items) { return sequence(Kind::list, std::move(items)); }
  static Value tuple(std::vector<Value> items) { return sequence(Kind::tuple, std::move(items)); }
  static Value generator(std::vector<Value> items) { return sequence(Kind::generator, std::move(items), "generator"); }
  static Value dict(Dict entries = {}) { return Value(Kind::dict, shared(std::move(entries))); }
  static Value space(Dict entries) { return Value(Kind::space, shared(std::move(entries))); }
  static Value function(std::string name, std::function<Value(Call&)> run) {
    return Value(Kind::function, shared(Function{std::move(name), std::move(run)}));
  }
  static Value loop(std::shared_ptr<Loop> state) { return Value(Kind::loop, std::move(state)); }
  static Value fromJson(const nlohmann::ordered_json& json, int depth = 0);

  Kind kind() const { return m_kind; }
  bool is(Kind kind) const { return m_kind == kind; }
  bool isString() const { return m_kind == Kind::string; }
  bool isUndefined() const { return m_kind == Kind::undefined; }
  bool isNone() const { return m_kind == Kind::none; }
  bool isInteger() const { return m_kind == Kind::integer || m_kind == Kind::boolean; }
  bool isNumber() const { return isInteger() || m_kind == Kind::real; }
  bool isSequence() const { return m_kind >= Kind::list && m_kind <= Kind::generator; }
  bool isIndexed() const { return m_kind == Kind::list || m_kind == Kind::tuple || m_kind == Kind::range; }

  int64_t integer() const { return m_integer; }
  double real() const { return m_kind == Kind::real ? m_real : static_cast<double>(m_integer); }
  const std::string& string() const { return *static_cast<const std::string*>(m_object.get()); }
  const std::vector<Value>& items() const { return sequenceObject().items; }
  const Sequence& sequenceObject() const { return *static_cast<const Sequence*>(m_object.get()); }
  Dict& entries() const { return *static_cast<Dict*>(m_object.get()); }
  const Function& function() const { return *static_cast<const Function*>(m_object.get()); }
  Loop& loopState() const { return *static_cast<Loop*>(m_object.get()); }
  // Why it is undefined; a Fault with that text.
  std::string hint() const { return m_object ? *static_cast<const std::string*>(m_object.get()) : "value is undefined"; }
  void need() const {
    if (isUndefined()) throw Fault(hint());
  }
  const void* identity() const { return m_object.get(); }
  std::weak_ptr<void> weak() const { return m_object; }

  bool truth() const;
  std::string typeName() const;  // as Python names it
  std::string str() const;
  std::string repr(int depth = 0) const;

 private:
  Value(Kind kind, std::shared_ptr<void> object) : m_kind(kind), m_object(std::move(object)) {}
  Kind m_kind;
  union {
    int64_t m_integer = 0;
    double m_real;
  };
  std::shared_ptr<void> m_object;
};

// Arguments of a call, by place and by name.
struct Call {
  std::vector<Value> values;
  std::vector<std::pair<std::string, Value>> named;
  // The argument at that place or of that name; null where absent. A name of nullptr: by place alone.
  const Value* get(size_t place, const char* name = nullptr) const;
  const Value& need(size_t place, const char* name, const char* function) const;
  std::string text(size_t place, const char* name, std::string otherwise) const;
  int64_t integer(size_t place, const char* name, int64_t otherwise) const;
  bool truth(size_t place, const char* name, bool otherwise) const;
};

bool equal(const Value& a, const Value& b, int depth = 0);
bool less(const Value& a, const Value& b, const char* sign = "<", int depth = 0);
bool contains(const Value& container, const Value& item);
// What iterating yields; a Fault for what cannot be iterated. Undefined yields nothing.
std::vector<Value> iterate(const Value& value);
int64_t length(const Value& value);
std::string formatReal(double value);             // repr of a Python float
std::string pythonQuoted(std::string_view text);  // repr of a Python str

struct JsonStyle {
  bool ascii = false, sorted = false;
  std::string indent;  // of one level
  bool lines = false;  // indent is given
  std::string itemSeparator = ", ", keySeparator = ": ";
};
std::string toJson(const Value& value, const JsonStyle& style);

// The number of characters a template may write or hold at once, and how deep values and calls may nest.
inline constexpr size_t kMostBytes = size_t{1} << 26;
inline constexpr int kDeepest = 200;
void checkSize(size_t bytes);

// The work that a render on this thread may do: while one stands, spend() takes from it and is a Fault when nothing is left. A step is
// an operation of the template, or about 50 ns inside one: 64 bytes of text or 4 items that are copied or looked at, a comparison.
class WorkLimit {
 public:
  explicit WorkLimit(int64_t steps);
  ~WorkLimit();
  WorkLimit(const WorkLimit&) = delete;
  WorkLimit& operator=(const WorkLimit&) = delete;

 private:
  friend void spend(int64_t steps);
  int64_t m_left;
  WorkLimit* m_outer;
};
void spend(int64_t steps);
inline int64_t stepsOfText(size_t bytes) { return static_cast<int64_t>(bytes / 64); }
inline int64_t stepsOfItems(size_t items) { return static_cast<int64_t>(items / 4); }
// What copying or walking through the outermost level of a value costs.
int64_t stepsOf(const Value& value);

}  // namespace headroom::engine::jinja
