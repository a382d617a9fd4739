// SPDX-License-Identifier: Apache-2.0
#include "engine/sample/grammar_json_schema.h"

#include "engine/sample/grammar_regex.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

namespace headroom::engine {
namespace {

using Json = nlohmann::ordered_json;
using Node = GrammarBuilder::Node;
using Rule = GrammarBuilder::RuleId;

constexpr int kDeepest = 300;
constexpr int64_t kMostItems = 100'000;
constexpr int64_t kLargest = 999'999'999'999'999'999;  // integers are written with up to 18 digits, so that they end

struct Problem {
  Error error;
};

std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 80) text = text.substr(0, 40) + "...";
  return text;
}

// Parts that JSON grammars have in common, each built when first used.
class JsonParts {
 public:
  explicit JsonParts(GrammarBuilder& builder) : m_builder(builder) {}

  Node text(std::string_view bytes) { return m_builder.literal(bytes); }
  Node space() { return m_builder.optional(text(" ")); }
  Node comma() { return m_builder.sequence({text(","), space()}); }
  Node colon() { return m_builder.sequence({text(":"), space()}); }
  Node digit() { return m_builder.bytes('0', '9'); }
  Node digits(int64_t least, std::optional<int64_t> most) { return m_builder.repeat(digit(), least, most); }

  Node character() {
    return call(m_character, [&] { return addJsonCharacter(m_builder); });
  }
  Node string(int64_t least = 0, std::optional<int64_t> most = std::nullopt) {
    return m_builder.sequence({text("\""), m_builder.repeat(character(), least, most), text("\"")});
  }
  Node anyString() {
    return call(m_string, [&] { return string(); });
  }
  Node integer() {
    return m_builder.sequence({m_builder.optional(text("-")),
                               m_builder.choice({text("0"), m_builder.sequence({m_builder.bytes('1', '9'), digits(0, 17)})})});
  }
  Node fraction() { return m_builder.sequence({text("."), digits(1, 17)}); }
  Node number() {
    return call(m_number, [&] {
      const Node exponent = m_builder.sequence(
          {m_builder.choice({text("e"), text("E")}), m_builder.optional(m_builder.choice({text("+"), text("-")})), digits(1, 2)});
      return m_builder.sequence({integer(), m_builder.optional(fraction()), m_builder.optional(exponent)});
    });
  }
  Node boolean() { return m_builder.choice({text("true"), text("false")}); }

  Node list(Node item, int64_t least, std::optional<int64_t> most) {
    if (most && *most == 0) return text("[]");
    std::optional<int64_t> rest;
    if (most) rest = *most - 1;
    const Node items =
        m_builder.sequence({item, m_builder.repeat(m_builder.sequence({comma(), item}), std::max<int64_t>(least - 1, 0), rest)});
    return m_builder.sequence({text("["), least > 0 ? items : m_builder.optional(items), text("]")});
  }
  Node member(Node key, Node value) { return m_builder.sequence({key, colon(), value}); }
  Node object(std::vector<GrammarBuilder::Member> members, std::optional<Node> more) {
    return m_builder.sequence({text("{"), m_builder.members(std::move(members), comma(), more), text("}")});
  }

  Node value() {
    if (m_value < 0) {
      m_value = m_builder.addRule();
      m_builder.define(m_value, m_builder.choice({anyString(), number(), boolean(), text("null"),
                                                  list(m_builder.call(m_value), 0, std::nullopt), anyObject()}));
    }
    return m_builder.call(m_value);
  }
  Node anyObject() {
    if (m_object < 0) {
      m_object = m_builder.addRule();
      m_builder.define(m_object, object({}, m_builder.ruleOf(member(anyString(), value()))));
    }
    return m_builder.call(m_object);
  }

 private:
  template <class Build>
  Node call(Rule& rule, Build build) {
    if (rule < 0) {
      rule = m_builder.addRule();
      m_builder.define(rule, build());
    }
    return m_builder.call(rule);
  }

  GrammarBuilder& m_builder;
  Rule m_character = -1, m_string = -1, m_number = -1, m_value = -1, m_object = -1;
};

// ---- ranges of numbers, as digits

// Numbers of as many digits as both have, from `low` to `high`.
Node digitRange(GrammarBuilder& builder, std::string_view low, std::string_view high) {
  if (low.empty()) return builder.empty();
  auto digit = [](char c) { return static_cast<uint8_t>(c); };
  const bool restIsWhole =
      low.find_first_not_of('0', 1) == std::string_view::npos && high.find_first_not_of('9', 1) == std::string_view::npos;
  const auto rest = static_cast<int64_t>(low.size()) - 1;
  if (restIsWhole)
    return builder.sequence({builder.bytes(digit(low[0]), digit(high[0])), builder.repeat(builder.bytes('0', '9'), rest, rest)});
  if (low[0] == high[0])
    return builder.sequence({builder.bytes(digit(low[0]), digit(low[0])), digitRange(builder, low.substr(1), high.substr(1))});
  const std::string nines(low.size() - 1, '9'), zeros(low.size() - 1, '0');
  std::vector<Node> options{
      builder.sequence({builder.bytes(digit(low[0]), digit(low[0])), digitRange(builder, low.substr(1), nines)}),
      builder.sequence({builder.bytes(digit(high[0]), digit(high[0])), digitRange(builder, zeros, high.substr(1))})};
  if (high[0] - low[0] > 1)
    options.push_back(builder.sequence({builder.bytes(static_cast<uint8_t>(low[0] + 1), static_cast<uint8_t>(high[0] - 1)),
                                        builder.repeat(builder.bytes('0', '9'), rest, rest)}));
  return builder.choice(std::move(options));
}

// 0 <= low <= high, without leading zeros.
Node naturalRange(GrammarBuilder& builder, int64_t low, int64_t high) {
  std::vector<Node> options;
  const std::string last = std::to_string(high);
  for (std::string from = std::to_string(low); from.size() <= last.size();) {
    const std::string to = from.size() == last.size() ? last : std::string(from.size(), '9');
    options.push_back(digitRange(builder, from, to));
    from = "1" + std::string(from.size(), '0');
  }
  return builder.choice(std::move(options));
}

// Integers from `low` to `high`, with `tail` behind each; nothing where there is none.
Node integerRange(GrammarBuilder& builder, int64_t low, int64_t high) {
  std::vector<Node> options;
  if (low <= high) {
    if (high >= 0) options.push_back(naturalRange(builder, std::max<int64_t>(low, 0), high));
    if (low < 0)
      options.push_back(builder.sequence({builder.literal("-"), naturalRange(builder, std::max<int64_t>(-high, 1), -low)}));
  }
  return options.empty() ? builder.nothing() : builder.choice(std::move(options));
}

struct Bounds {
  std::optional<double> low, high;
  bool lowIsOut = false, highIsOut = false;  // exclusive
  bool any() const { return low || high; }
};

// The bound times 10^digits as an integer inside it, kept to 18 digits.
int64_t inside(double bound, bool isOut, bool isLow) {
  double whole = isLow ? std::ceil(bound) : std::floor(bound);
  if (isOut && whole == bound) whole += isLow ? 1 : -1;
  return static_cast<int64_t>(std::clamp(whole, -1e18 + 1000, 1e18 - 1000));
}

class SchemaReader {
 public:
  SchemaReader(GrammarBuilder& builder, const Json& root, const std::string& where)
      : m_builder(builder), m_parts(builder), m_root(root), m_where(where) {}

  Node read() { return schema(m_root, 0); }

 private:
  [[noreturn]] void refuse(const std::string& found, const std::string& expected = {}) const {
    throw Problem{Error{m_where, found, expected, {}}};
  }
  [[noreturn]] void unsupported(const std::string& keyword) const {
    refuse(keyword, "a schema without it; this server does not enforce it");
  }

  static const Json* field(const Json& schema, const char* name) {
    const auto found = schema.find(name);
    return found == schema.end() ? nullptr : &*found;
  }

  // Keywords that restrict what is valid, and whether this reader honours them.
  static const std::map<std::string, bool, std::less<>>& keywords() {
    static const std::map<std::string, bool, std::less<>> kKeywords{{"type", true},
                                                                    {"enum", true},
                                                                    {"const", true},
                                                                    {"anyOf", true},
                                                                    {"oneOf", true},
                                                                    {"allOf", true},
                                                                    {"$ref", true},
                                                                    {"properties", true},
                                                                    {"required", true},
                                                                    {"additionalProperties", true},
                                                                    {"items", true},
                                                                    {"prefixItems", true},
                                                                    {"minItems", true},
                                                                    {"maxItems", true},
                                                                    {"pattern", true},
                                                                    {"minLength", true},
                                                                    {"maxLength", true},
                                                                    {"format", true},
                                                                    {"minimum", true},
                                                                    {"maximum", true},
                                                                    {"exclusiveMinimum", true},
                                                                    {"exclusiveMaximum", true},
                                                                    {"uniqueItems", false},
                                                                    {"multipleOf", false},
                                                                    {"not", false},
                                                                    {"if", false},
                                                                    {"then", false},
                                                                    {"else", false},
                                                                    {"contains", false},
                                                                    {"minContains", false},
                                                                    {"maxContains", false},
                                                                    {"minProperties", false},
                                                                    {"maxProperties", false},
                                                                    {"patternProperties", false},
                                                                    {"propertyNames", false},
                                                                    {"dependentRequired", false},
                                                                    {"dependentSchemas", false},
                                                                    {"dependencies", false},
                                                                    {"unevaluatedItems", false},
                                                                    {"unevaluatedProperties", false},
                                                                    {"additionalItems", false},
                                                                    {"$dynamicRef", false},
                                                                    {"$recursiveRef", false},
                                                                    {"nullable", false}};
    return kKeywords;
  }

  void checkKeywords(const Json& schema) const {
    for (const auto& [key, value] : schema.items()) {
      const auto known = keywords().find(key);
      if (known == keywords().end() || known->second) continue;
      if ((key == "uniqueItems" || key == "nullable") && value == false) continue;
      if ((key == "minProperties" || key == "minContains") && value == 0) continue;
      if ((key == "patternProperties" || key == "dependentRequired" || key == "dependentSchemas" || key == "dependencies") &&
          value.is_object() && value.empty())
        continue;
      unsupported(key);
    }
  }

  // Refuses what stands beside a keyword that says all.
  void checkAlone(const Json& schema, std::string_view keyword) const {
    for (const auto& [key, value] : schema.items()) {
      if (key == keyword || !keywords().contains(key) || key == "uniqueItems" || key == "nullable") continue;
      refuse(fmt::format("{} beside {}", key, keyword), "one of the two");
    }
  }

  Node schema(const Json& schema, int depth) {
    if (depth > kDeepest) refuse(fmt::format("a schema nested deeper than {} levels", kDeepest));
    if (m_builder.isTooLarge()) return m_builder.nothing();
    if (schema.is_boolean()) return schema.get<bool>() ? m_parts.value() : m_builder.nothing();
    if (!schema.is_object()) refuse(shown(schema), "a schema: an object, true or false");
    checkKeywords(schema);
    if (const Json* ref = field(schema, "$ref")) {
      checkAlone(schema, "$ref");
      return reference(*ref, depth);
    }
    if (field(schema, "enum") || field(schema, "const")) return values(schema);
    for (const char* name : {"anyOf", "oneOf", "allOf"})
      if (const Json* options = field(schema, name)) return alternatives(schema, name, *options, depth);
    std::vector<Node> options;
    for (const std::string& type : typesOf(schema)) options.push_back(ofType(schema, type, depth));
    return options.empty() ? m_parts.value() : m_builder.choice(std::move(options));
  }

  // What `$ref` points to, within this document.
  const Json& target(const Json& ref) const {
    const char* expected = "a reference that this schema defines, such as #/$defs/name";
    if (!ref.is_string()) refuse("$ref " + shown(ref), expected);
    const std::string& name = ref.get_ref<const std::string&>();
    if (name == "#") return m_root;
    if (!name.starts_with("#/")) refuse("$ref " + shown(ref), expected);
    const Json* at = &m_root;
    for (size_t begin = 2; begin <= name.size();) {
      const size_t end = std::min(name.find('/', begin), name.size());
      std::string key;
      for (size_t i = begin; i < end; ++i) {
        if (name[i] == '~' && i + 1 < end && (name[i + 1] == '0' || name[i + 1] == '1'))
          key += name[++i] == '0' ? '~' : '/';
        else if (name[i] == '%' && i + 2 < end && std::isxdigit(static_cast<unsigned char>(name[i + 1])) &&
                 std::isxdigit(static_cast<unsigned char>(name[i + 2]))) {
          key += static_cast<char>(std::stoi(name.substr(i + 1, 2), nullptr, 16));
          i += 2;
        } else
          key += name[i];
      }
      const Json* next = nullptr;
      if (at->is_object()) {
        next = field(*at, key.c_str());
      } else if (at->is_array() && !key.empty() && key.size() < 7 &&
                 std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; })) {
        if (const auto index = static_cast<size_t>(std::stoi(key)); index < at->size()) next = &(*at)[index];
      }
      if (!next) refuse("$ref " + shown(ref), expected);
      at = next;
      begin = end + 1;
    }
    return *at;
  }

  Node reference(const Json& ref, int depth) {
    const Json& body = target(ref);
    const auto known = m_rules.find(&body);
    if (known != m_rules.end()) return m_builder.call(known->second);
    const Rule rule = m_builder.addRule();
    m_rules.emplace(&body, rule);
    m_builder.define(rule, schema(body, depth + 1));
    return m_builder.call(rule);
  }

  static bool isOfType(const Json& value, const std::string& type) {
    if (type == "integer")
      return value.is_number_integer() || (value.is_number_float() && std::floor(value.get<double>()) == value.get<double>());
    if (type == "number") return value.is_number();
    return (type == "string" && value.is_string()) || (type == "boolean" && value.is_boolean()) ||
           (type == "null" && value.is_null()) || (type == "object" && value.is_object()) ||
           (type == "array" && value.is_array());
  }

  std::vector<std::string> namedTypes(const Json& type) const {
    static const std::set<std::string, std::less<>> kTypes{"string", "number", "integer", "boolean", "null", "object", "array"};
    const char* expected = "type string, number, integer, boolean, null, object or array, or a list of them";
    std::vector<std::string> names;
    auto add = [&](const Json& name) {
      if (!name.is_string() || !kTypes.contains(name.get<std::string>())) refuse("type " + shown(name), expected);
      names.push_back(name.get<std::string>());
    };
    if (type.is_array()) {
      if (type.empty()) refuse("type []", expected);
      for (const Json& name : type) add(name);
    } else {
      add(type);
    }
    return names;
  }

  // The types a schema names, else the one its keywords are about; none: any.
  std::vector<std::string> typesOf(const Json& schema) const {
    if (const Json* type = field(schema, "type")) return namedTypes(*type);
    for (const char* name : {"properties", "required", "additionalProperties"})
      if (field(schema, name)) return {"object"};
    for (const char* name : {"items", "prefixItems", "minItems", "maxItems"})
      if (field(schema, name)) return {"array"};
    for (const char* name : {"pattern", "minLength", "maxLength"})
      if (field(schema, name)) return {"string"};
    for (const char* name : {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
      if (field(schema, name)) return {"number"};
    return {};
  }

  // The values of enum and const that a schema allows.
  std::vector<Json> allowedValues(const Json& schema) const {
    std::vector<Json> allowed;
    const Json* options = field(schema, "enum");
    const Json* constant = field(schema, "const");
    if (options && (!options->is_array() || options->empty())) refuse("enum " + shown(*options), "a list of at least one value");
    std::vector<std::string> types;
    if (const Json* type = field(schema, "type")) types = namedTypes(*type);
    auto add = [&](const Json& value) {
      const bool fits = types.empty() ||
                        std::any_of(types.begin(), types.end(), [&](const std::string& type) { return isOfType(value, type); });
      if (fits) allowed.push_back(value);
    };
    if (!options) {
      add(*constant);
    } else {
      for (const Json& value : *options)
        if (!constant || value == *constant) add(value);
    }
    return allowed;
  }

  Node values(const Json& schema) {
    for (const auto& [key, value] : schema.items()) {
      if (key == "enum" || key == "const" || key == "type" || key == "uniqueItems" || key == "nullable" ||
          !keywords().contains(key))
        continue;
      refuse(fmt::format("{} beside {}", key, field(schema, "enum") ? "enum" : "const"), "one of the two");
    }
    std::vector<std::string> texts;
    for (const Json& value : allowedValues(schema)) texts.push_back(value.dump(-1, ' ', false, Json::error_handler_t::replace));
    return m_builder.literals(std::move(texts));
  }

  Node alternatives(const Json& schema, const std::string& name, const Json& options, int depth) {
    checkAlone(schema, name);
    if (!options.is_array() || options.empty()) refuse(name + " " + shown(options), "a list of at least one schema");
    if (name == "allOf" && options.size() > 1) refuse(fmt::format("allOf of {} schemas", options.size()), "one schema");
    if (name == "oneOf") {
      if (options.size() > 200) refuse(fmt::format("oneOf of {} schemas", options.size()), "at most 200");
      for (size_t i = 0; i < options.size(); ++i)
        for (size_t k = 0; k < i; ++k)
          if (!areDisjoint(options[k], options[i], 0))
            refuse(fmt::format("oneOf whose schemas {} and {} may both match", k, i),
                   "anyOf, or schemas that differ in type or in a constant property");
    }
    std::vector<Node> nodes;
    for (const Json& option : options) nodes.push_back(this->schema(option, depth + 1));
    return m_builder.choice(std::move(nodes));
  }

  // Whether no value satisfies both, as far as that shows at types, constants and required properties.
  bool areDisjoint(const Json& first, const Json& second, int depth) const {
    // Options of options multiply: what takes too long to tell may both match.
    constexpr int64_t kMostComparisons = 100'000;
    if (++m_comparisons > kMostComparisons) return false;
    const Json *a = &first, *b = &second;
    for (int hops = 0; hops < 20; ++hops) {
      if (a->is_object() && a->contains("$ref")) a = &target((*a)["$ref"]);
      if (b->is_object() && b->contains("$ref")) b = &target((*b)["$ref"]);
    }
    if (depth > 20) return false;
    if (*a == false || *b == false) return true;
    if (!a->is_object() || !b->is_object()) return false;
    for (const Json* one : {a, b}) {
      for (const char* name : {"anyOf", "oneOf"}) {
        const Json* options = field(*one, name);
        if (!options || !options->is_array()) continue;
        const Json& other = one == a ? *b : *a;
        return std::all_of(options->begin(), options->end(),
                           [&](const Json& option) { return areDisjoint(option, other, depth + 1); });
      }
    }
    auto hasValues = [](const Json& schema) { return schema.contains("enum") || schema.contains("const"); };
    if (hasValues(*a) && hasValues(*b)) {
      const auto left = allowedValues(*a), right = allowedValues(*b);
      m_comparisons += static_cast<int64_t>(left.size() * right.size() / 16);
      return std::none_of(left.begin(), left.end(),
                          [&](const Json& value) { return std::find(right.begin(), right.end(), value) != right.end(); });
    }
    if (hasValues(*b)) std::swap(a, b);
    const auto types = typesOf(*b);
    if (hasValues(*a)) {
      const auto left = allowedValues(*a);
      return !types.empty() && std::none_of(left.begin(), left.end(), [&](const Json& value) {
        return std::any_of(types.begin(), types.end(), [&](const std::string& type) { return isOfType(value, type); });
      });
    }
    const auto others = typesOf(*a);
    if (types.empty() || others.empty()) return false;
    bool sharesType = false, sharesOnlyObjects = true;
    for (const std::string& x : types) {
      for (const std::string& y : others) {
        const bool numbers = (x == "integer" || x == "number") && (y == "integer" || y == "number");
        if (x != y && !numbers) continue;
        sharesType = true;
        if (x != "object") sharesOnlyObjects = false;
      }
    }
    if (!sharesType) return true;
    if (!sharesOnlyObjects) return false;
    const Json *left = field(*a, "properties"), *right = field(*b, "properties");
    if (!left || !right || !left->is_object() || !right->is_object()) return false;
    for (const auto& [key, value] : left->items()) {
      if (++m_comparisons > kMostComparisons) return false;
      if (!isRequired(*a, key) || !isRequired(*b, key) || !right->contains(key)) continue;
      if (areDisjoint(value, (*right)[key], depth + 1)) return true;
    }
    return false;
  }

  static bool isRequired(const Json& schema, const std::string& key) {
    const Json* required = field(schema, "required");
    return required && required->is_array() && std::find(required->begin(), required->end(), Json(key)) != required->end();
  }

  Node ofType(const Json& schema, const std::string& type, int depth) {
    if (type == "string") return string(schema);
    if (type == "integer") return number(schema, true);
    if (type == "number") return number(schema, false);
    if (type == "boolean") return m_parts.boolean();
    if (type == "null") return m_parts.text("null");
    if (type == "array") return array(schema, depth);
    return object(schema, depth);
  }

  std::optional<int64_t> count(const Json& schema, const char* name) const {
    const Json* value = field(schema, name);
    if (!value) return std::nullopt;
    const bool isWhole =
        value->is_number() && value->get<double>() >= 0 && std::floor(value->get<double>()) == value->get<double>();
    if (!isWhole || value->get<double>() > 9e15) refuse(fmt::format("{} {}", name, shown(*value)), "an integer of at least 0");
    return static_cast<int64_t>(value->get<double>());
  }

  // least and most of a pair of keywords, most never below least. A least that no grammar holds is refused, a most like that is
  // no limit in practice but would not be kept either: refused too.
  std::pair<int64_t, std::optional<int64_t>> counts(const Json& schema, const char* least, const char* most) const {
    const auto low = count(schema, least), high = count(schema, most);
    for (const auto& [name, value] : {std::pair(least, low), std::pair(most, high)})
      if (value && *value > kMostItems) refuse(fmt::format("{} {}", name, *value), fmt::format("at most {}", kMostItems));
    if (high && *high < low.value_or(0)) refuse(fmt::format("{} {} below {} {}", most, *high, least, *low));
    return {low.value_or(0), high};
  }

  Node string(const Json& schema) {
    const auto [least, most] = counts(schema, "minLength", "maxLength");
    const bool hasLength = least > 0 || most;
    const Json *pattern = field(schema, "pattern"), *format = field(schema, "format");
    if (pattern && !pattern->is_string()) refuse("pattern " + shown(*pattern), "a string");
    if (format && !format->is_string()) refuse("format " + shown(*format), "a string");
    if (pattern && hasLength)
      refuse(fmt::format("pattern beside {}", most ? "maxLength" : "minLength"), "a length as part of the pattern");
    if (format && (pattern || hasLength))
      refuse(fmt::format("format beside {}", pattern ? "pattern" : most ? "maxLength" : "minLength"), "one of the two");
    if (!pattern && !format) return hasLength ? m_parts.string(least, most) : m_parts.anyString();
    const std::string text = pattern ? pattern->get<std::string>() : patternOf(format->get<std::string>());
    const auto node = addRegex(m_builder, text, pattern ? RegexText::JsonSearch : RegexText::JsonString,
                               m_where + ": pattern " + shown(Json(text)));
    if (!node) throw Problem{node.error()};
    return m_builder.sequence({m_parts.text("\""), m_builder.ruleOf(*node), m_parts.text("\"")});
  }

  // Days up to 28 are valid in every month.
  std::string patternOf(const std::string& format) const {
    const std::string date = R"([0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8]))",
                      byte = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
    const std::string time = R"(([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9]))";
    static const std::string kLabel = "[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?";
    if (format == "date") return date;
    if (format == "time") return time;
    if (format == "date-time") return date + "T" + time;
    if (format == "uuid") return "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
    if (format == "ipv4") return byte + R"((\.)" + byte + "){3}";
    if (format == "email")
      return R"([a-zA-Z0-9_+-]{1,30}(\.[a-zA-Z0-9_+-]{1,30}){0,3}@)" + kLabel + R"((\.)" + kLabel + R"(){0,3}\.[a-z]{2,10})";
    if (format == "hostname") return kLabel + R"((\.)" + kLabel + "){0,4}";
    refuse("format " + shown(Json(format)), "date, time, date-time, uuid, ipv4, email or hostname");
  }

  Bounds boundsOf(const Json& schema) const {
    Bounds bounds;
    auto read = [&](const char* name, bool isLow, bool isOut) {
      const Json* value = field(schema, name);
      if (!value) return;
      if (!value->is_number()) refuse(fmt::format("{} {}", name, shown(*value)), "a number");
      const auto bound = value->get<double>();
      if (std::abs(bound) > 1e15) refuse(fmt::format("{} {}", name, shown(*value)), "a bound of at most 15 digits");
      std::optional<double>& kept = isLow ? bounds.low : bounds.high;
      bool& keptIsOut = isLow ? bounds.lowIsOut : bounds.highIsOut;
      if (kept && (isLow ? bound < *kept : bound > *kept)) return;
      keptIsOut = isOut || (kept && bound == *kept && keptIsOut);
      kept = bound;
    };
    read("minimum", true, false);
    read("exclusiveMinimum", true, true);
    read("maximum", false, false);
    read("exclusiveMaximum", false, true);
    return bounds;
  }

  Node number(const Json& schema, bool isInteger) {
    const Bounds bounds = boundsOf(schema);
    if (!bounds.any()) return isInteger ? m_builder.ruleOf(m_parts.integer()) : m_parts.number();
    const int64_t low = bounds.low ? inside(*bounds.low, bounds.lowIsOut, true) : -kLargest;
    const int64_t high = bounds.high ? inside(*bounds.high, bounds.highIsOut, false) : kLargest;
    std::vector<Node> options{integerRange(m_builder, low, high)};
    if (!isInteger) {
      // k.fraction lies from k to below k + 1, -k.fraction from above -k - 1 to -k: inside where both borders are. Fractions
      // between a bound and the next integer are left out.
      const int64_t lowest = bounds.low ? inside(*bounds.low, false, true) : low,
                    highest = bounds.high ? inside(*bounds.high, false, false) : high;
      if (const int64_t first = std::max<int64_t>(low, 0); first < highest)
        options.push_back(m_builder.sequence({naturalRange(m_builder, first, highest - 1), m_parts.fraction()}));
      if (const int64_t first = std::max<int64_t>(-high, 0); first < -lowest)
        options.push_back(
            m_builder.sequence({m_parts.text("-"), naturalRange(m_builder, first, -lowest - 1), m_parts.fraction()}));
      if (low > high) options.push_back(betweenIntegers(bounds));
    }
    return m_builder.ruleOf(m_builder.choice(std::move(options)));
  }

  // Numbers between bounds that hold no integer between them, such as 0.2 to 0.7, with six digits behind the point.
  Node betweenIntegers(const Bounds& bounds) {
    if (!bounds.low || !bounds.high || *bounds.low > *bounds.high) return m_builder.nothing();
    const bool isNegative = *bounds.high < 0 || (*bounds.high == 0 && *bounds.low < 0);
    const double from = isNegative ? -*bounds.high : *bounds.low, to = isNegative ? -*bounds.low : *bounds.high;
    const bool fromIsOut = isNegative ? bounds.highIsOut : bounds.lowIsOut,
               toIsOut = isNegative ? bounds.lowIsOut : bounds.highIsOut;
    const double whole = std::floor(from);
    const int64_t low = std::max<int64_t>(inside((from - whole) * 1e6, fromIsOut, true), 0);
    const int64_t high = std::min<int64_t>(inside((to - whole) * 1e6, toIsOut, false), 999'999);
    if (low > high) return m_builder.nothing();
    return m_builder.sequence({m_parts.text(fmt::format("{}{}.", isNegative ? "-" : "", static_cast<int64_t>(whole))),
                               digitRange(m_builder, fmt::format("{:06}", low), fmt::format("{:06}", high))});
  }

  Node array(const Json& schema, int depth) {
    auto [least, most] = counts(schema, "minItems", "maxItems");
    const Json *items = field(schema, "items"), *prefix = field(schema, "prefixItems");
    if (items && items->is_array()) refuse("items as a list", "prefixItems");
    const bool noMore = items && *items == false;
    if (!prefix) {
      if (noMore) return least > 0 ? m_builder.nothing() : m_parts.text("[]");
      const Node item = items ? m_builder.ruleOf(this->schema(*items, depth + 1)) : m_parts.value();
      return m_parts.list(item, least, most);
    }
    if (!prefix->is_array()) refuse("prefixItems " + shown(*prefix), "a list of schemas");
    std::vector<Node> parts;
    const auto fixed = static_cast<int64_t>(prefix->size());
    // As in JSON Schema the items in front may be missing; each depends on the one before it.
    const Node more = noMore ? m_builder.nothing() : items ? m_builder.ruleOf(this->schema(*items, depth + 1)) : m_parts.value();
    std::optional<int64_t> moreMost = noMore ? std::optional<int64_t>(0)
                                      : most ? std::optional(std::max<int64_t>(*most - fixed, 0))
                                             : std::nullopt;
    if (moreMost && least - fixed > *moreMost) return m_builder.nothing();
    Node tail = m_builder.repeat(m_builder.sequence({m_parts.comma(), more}), std::max<int64_t>(least - fixed, 0), moreMost);
    for (int64_t i = std::min(fixed, most.value_or(fixed)) - 1; i >= 0; --i) {
      const Node item = m_builder.ruleOf(this->schema((*prefix)[static_cast<size_t>(i)], depth + 1));
      tail = i == 0 ? m_builder.sequence({item, tail}) : m_builder.sequence({m_parts.comma(), item, tail});
      if (i >= least) tail = m_builder.optional(m_builder.ruleOf(tail));  // a rule each, for there may be thousands
    }
    return m_builder.sequence({m_parts.text("["), tail, m_parts.text("]")});
  }

  Node object(const Json& schema, int depth) {
    const Json *properties = field(schema, "properties"), *required = field(schema, "required"),
               *additional = field(schema, "additionalProperties");
    if (properties && !properties->is_object()) refuse("properties " + shown(*properties), "an object of schemas");
    if (required && !(required->is_array() &&
                      std::all_of(required->begin(), required->end(), [](const Json& key) { return key.is_string(); })))
      refuse("required " + shown(*required), "a list of property names");
    std::set<std::string> needed, named;
    if (required)
      for (const Json& key : *required) needed.insert(key.get<std::string>());
    const bool allowsMore = additional ? *additional != false : !properties;
    std::vector<GrammarBuilder::Member> members;
    auto addMember = [&](const std::string& key, Node value, bool isRequired) {
      const Node name = m_parts.text(Json(key).dump(-1, ' ', false, Json::error_handler_t::replace));
      members.push_back({m_builder.ruleOf(m_parts.member(name, value)), isRequired});
      named.insert(key);
    };
    if (properties)
      for (const auto& [key, value] : properties->items()) addMember(key, this->schema(value, depth + 1), needed.contains(key));
    const Node any = !allowsMore                          ? m_builder.nothing()
                     : !additional || *additional == true ? m_parts.value()
                                                          : m_builder.ruleOf(this->schema(*additional, depth + 1));
    if (required) {
      for (const Json& key : *required) {
        const std::string name = key.get<std::string>();
        if (named.contains(name)) continue;
        if (!allowsMore && additional) refuse(fmt::format("required {}, which additionalProperties forbids", shown(key)));
        addMember(name, additional && additional->is_object() ? any : m_parts.value(), true);
      }
    }
    if (!allowsMore) return m_parts.object(std::move(members), std::nullopt);
    if (members.empty() && !additional) return m_parts.anyObject();
    return m_parts.object(std::move(members), m_builder.ruleOf(m_parts.member(otherKey(named), any)));
  }

  // A key that is none of these, spelled without escapes.
  Node otherKey(const std::set<std::string>& named) {
    if (named.empty()) return m_parts.anyString();
    const Node free = m_builder.ruleOf(
        m_builder.choice({m_builder.characters(' ', '!'), m_builder.characters('#', '['), m_builder.characters(']', 0x10FFFF)}));
    const Node rest = m_builder.ruleOf(m_builder.sequence({m_builder.repeat(free, 0, std::nullopt), m_parts.text("\"")}));
    std::vector<std::u32string> keys;
    for (const std::string& key : named) keys.push_back(characters(key));
    std::sort(keys.begin(), keys.end());
    return m_builder.sequence({m_parts.text("\""), otherThan(keys, 0, keys.size(), 0, rest)});
  }

  // What follows a beginning of `depth` characters that keys[begin, end) share, so that the whole is none of them; with the
  // closing quote.
  Node otherThan(const std::vector<std::u32string>& keys, size_t begin, size_t end, size_t depth, Node rest) {
    std::vector<Node> options;
    size_t at = begin;
    if (keys[at].size() == depth)
      ++at;
    else
      options.push_back(m_parts.text("\""));
    char32_t from = ' ';
    auto others = [&](char32_t low, char32_t high) {
      for (const auto& [first, last] : {std::pair<char32_t, char32_t>(' ', '!'), {'#', '['}, {']', 0x10FFFF}}) {
        const char32_t a = std::max(low, first), b = std::min(high, last);
        if (a <= b) options.push_back(m_builder.sequence({m_builder.characters(a, b), rest}));
      }
    };
    if (m_builder.isTooLarge() || depth > 200) return m_builder.nothing();
    while (at < end) {
      const char32_t c = keys[at][depth];
      size_t stop = at + 1;
      while (stop < end && keys[stop][depth] == c) ++stop;
      if (c > from) others(from, c - 1);
      if (c >= ' ' && c != '"' && c != '\\')
        options.push_back(m_builder.sequence({m_builder.characters(c, c), otherThan(keys, at, stop, depth + 1, rest)}));
      from = std::max<char32_t>(from, c + 1);
      at = stop;
    }
    others(from, 0x10FFFF);
    return m_builder.choice(std::move(options));
  }

  static std::u32string characters(std::string_view text) {
    std::u32string all;
    for (size_t at = 0; at < text.size();) {
      const auto lead = static_cast<unsigned char>(text[at++]);
      const int more = lead < 0x80 ? 0 : lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
      char32_t character = more ? lead & (0x3F >> more) : lead;
      for (int i = 0; i < more && at < text.size(); ++i)
        character = character << 6 | (static_cast<unsigned char>(text[at++]) & 0x3F);
      all.push_back(character);
    }
    return all;
  }

  GrammarBuilder& m_builder;
  JsonParts m_parts;
  const Json& m_root;
  const std::string& m_where;
  std::map<const Json*, Rule> m_rules;
  mutable int64_t m_comparisons = 0;
};

}  // namespace

Node addJsonValue(GrammarBuilder& builder) { return JsonParts(builder).value(); }
Node addJsonObject(GrammarBuilder& builder) { return JsonParts(builder).anyObject(); }

Result<Node> addJsonSchema(GrammarBuilder& builder, const Json& schema, const std::string& where) {
  try {
    return SchemaReader(builder, schema, where).read();
  } catch (const Problem& problem) {
    return tl::unexpected(problem.error);
  }
}

}  // namespace headroom::engine
