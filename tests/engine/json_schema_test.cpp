// SPDX-License-Identifier: Apache-2.0
// JSON Schema as grammars: documents that a draft 2020-12 validator accepts or rejects, random walks that always end in valid
// JSON, and what is refused by name.
#include "engine/sample/grammar_json_schema.h"

#include <QtTest>

#include <algorithm>
#include <random>

using namespace headroom;
using namespace headroom::engine;
using Json = nlohmann::ordered_json;

namespace {

Result<std::shared_ptr<const Grammar>> schemaGrammar(const Json& schema) {
  GrammarBuilder builder;
  const auto node = addJsonSchema(builder, schema, "schema");
  if (!node) return tl::unexpected(node.error());
  return builder.build(*node, "schema");
}

// A text of random allowed bytes; it turns to closing ones after a while so that it ends.
std::string walk(const std::shared_ptr<const Grammar>& grammar, std::mt19937& random) {
  GrammarMatcher matcher(grammar);
  auto at = matcher.start();
  std::string text;
  while (!matcher.isComplete(at) || (matcher.canContinue(at) && random() % 3 && text.size() < 200)) {
    std::vector<int> next;
    for (int byte = 0; byte < 256; ++byte)
      if (matcher.next(at, static_cast<uint8_t>(byte)) != GrammarMatcher::kDead) next.push_back(byte);
    if (next.empty() || text.size() > 20'000) return "dead end: " + text;
    int byte = next[random() % next.size()];
    if (random() % 3 == 0 || text.size() > 200) {
      for (const int closing : {'"', '}', ']'}) {
        if (std::find(next.begin(), next.end(), closing) == next.end()) continue;
        byte = closing;
        break;
      }
    }
    text += static_cast<char>(byte);
    at = matcher.next(at, static_cast<uint8_t>(byte));
  }
  return text;
}

}  // namespace

class JsonSchemaTest : public QObject {
  Q_OBJECT
 private slots:
  // The expected answers are those of Python's jsonschema, for documents in the schema's order of properties.
  void documents_data() {
    QTest::addColumn<QByteArray>("schema");
    QTest::addColumn<QByteArray>("document");
    QTest::addColumn<bool>("expected");
    int number = 0;
    auto row = [&](const char* schema, const char* document, bool expected) {
      QTest::addRow("%d %s", ++number, document) << QByteArray(schema) << QByteArray(document) << expected;
    };
    const char* person =
        "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":3},\"age\":{\"type\":"
        "\"integer\","
        "\"minimum\":18,\"maximum\":121}},\"required\":[\"name\"],\"additionalProperties\":false}";
    row(person, "{\"name\":\"Ada\",\"age\":36}", true);
    row(person, "{\"name\": \"Ada\", \"age\": 121}", true);
    row(person, "{\"name\":\"Ada\"}", true);
    row(person, "{\"name\":\"Adam\"}", false);
    row(person, "{\"name\":\"\"}", false);
    row(person, "{\"age\":36}", false);
    row(person, "{\"name\":\"Ada\",\"age\":17}", false);
    row(person, "{\"name\":\"Ada\",\"age\":122}", false);
    row(person, "{\"name\":\"Ada\",\"x\":1}", false);
    row(person, "{\"name\":\"\\u00e9\\\"\\n\"}", true);
    row(person, "{\"name\":\"\\ud83d\\ude42\"}", true);
    row(person, "{\"name\":\"\\ud83d\"}", false);
    const char* numbers = "{\"type\":\"number\",\"minimum\":-2.5,\"exclusiveMaximum\":3}";
    row(numbers, "-1.5", true);
    row(numbers, "-2", true);
    row(numbers, "2.99", true);
    row(numbers, "3", false);
    row(numbers, "-3", false);
    row(numbers, "-2.6", false);
    row(numbers, "0", true);
    row("{\"type\":\"number\",\"minimum\":0.2,\"maximum\":0.7}", "0.500000", true);
    row("{\"type\":\"number\",\"minimum\":0.2,\"maximum\":0.7}", "0.800000", false);
    row("{\"type\":\"integer\",\"exclusiveMinimum\":0,\"exclusiveMaximum\":3}", "3", false);
    row("{\"type\":\"integer\",\"exclusiveMinimum\":0,\"exclusiveMaximum\":3}", "2", true);
    row("{\"type\":\"integer\",\"minimum\":-120,\"maximum\":-7}", "-120", true);
    row("{\"type\":\"integer\",\"minimum\":-120,\"maximum\":-7}", "-6", false);
    row("{\"type\":\"integer\",\"minimum\":-120,\"maximum\":-7}", "-99", true);
    row("{\"type\":\"integer\"}", "01", false);
    row("{\"type\":\"number\"}", "1.5e-7", true);
    row("{\"type\":\"string\",\"pattern\":\"^[A-Z]{2}-[0-9]{3}$\"}", "\"AB-123\"", true);
    row("{\"type\":\"string\",\"pattern\":\"^[A-Z]{2}-[0-9]{3}$\"}", "\"xAB-123\"", false);
    row("{\"type\":\"string\",\"pattern\":\"b[0-9]\"}", "\"ab7c\"", true);
    row("{\"type\":\"string\",\"pattern\":\"b[0-9]\"}", "\"abc\"", false);
    row("{\"type\":\"string\",\"pattern\":\"^\\\"$\"}", "\"\\\"\"", true);
    row("{\"enum\":[\"low\",1,null]}", "null", true);
    row("{\"enum\":[\"low\",1,null]}", "2", false);
    row("{\"type\":\"string\",\"enum\":[\"low\",1,null]}", "1", false);
    row("{\"const\":{\"a\":[1,\"\\u00fc\"]}}", "{\"a\":[1,\"\xC3\xBC\"]}", true);
    row("{\"type\":\"array\",\"items\":{\"type\":\"boolean\"},\"minItems\":2,\"maxItems\":3}", "[true, false]", true);
    row("{\"type\":\"array\",\"items\":{\"type\":\"boolean\"},\"minItems\":2,\"maxItems\":3}", "[true]", false);
    row("{\"type\":\"array\",\"items\":{\"type\":\"boolean\"},\"minItems\":2,\"maxItems\":3}", "[true,true,true,true]", false);
    row("{\"type\":\"array\",\"items\":{\"type\":\"boolean\"},\"maxItems\":0}", "[]", true);
    row("{\"type\":\"array\",\"prefixItems\":[{\"type\":\"integer\"},{\"type\":\"string\"}],\"items\":false}", "[1,\"a\"]", true);
    row("{\"type\":\"array\",\"prefixItems\":[{\"type\":\"integer\"},{\"type\":\"string\"}],\"items\":false}", "[1,\"a\",2]",
        false);
    row("{\"type\":\"array\",\"prefixItems\":[{\"type\":\"integer\"},{\"type\":\"string\"}],\"items\":false}", "[\"a\"]", false);
    row("{\"type\":[\"integer\",\"null\"],\"minimum\":0,\"maximum\":9}", "null", true);
    row("{\"type\":[\"integer\",\"null\"],\"minimum\":0,\"maximum\":9}", "10", false);
    const char* open =
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"ab\":{\"type\":\"string\"}},"
        "\"additionalProperties\":{\"type\":\"boolean\"}}";
    row(open, "{\"a\":1,\"ab\":\"x\",\"abc\":true,\"\":false}", true);
    row(open, "{\"b\":true}", true);
    row(open, "{\"a\":true}", false);
    row(open, "{\"b\":1}", false);
    const char* tree =
        "{\"$ref\":\"#/$defs/node\",\"$defs\":{\"node\":{\"type\":\"object\",\"properties\":{\"v\":{\"type\":\"integer\"},"
        "\"next\":{\"anyOf\":[{\"type\":\"null\"},{\"$ref\":\"#/$defs/"
        "node\"}]}},\"required\":[\"v\",\"next\"],\"additionalProperties\":false}}}";
    row(tree, "{\"v\":1,\"next\":{\"v\":2,\"next\":null}}", true);
    row(tree, "{\"v\":1,\"next\":{\"v\":2}}", false);
    const char* tagged =
        "{\"oneOf\":[{\"type\":\"object\",\"properties\":{\"k\":{\"const\":\"a\"},\"x\":{\"type\":\"integer\"}},\"required\":["
        "\"k\"]},"
        "{\"type\":\"object\",\"properties\":{\"k\":{\"const\":\"b\"}},\"required\":[\"k\"]}]}";
    row(tagged, "{\"k\":\"a\",\"x\":1}", true);
    row(tagged, "{\"k\":\"c\"}", false);
    row("{}", "{\"a\":[1,{\"b\":null}],\"c\":\"d\"}", true);
    row("{\"type\":\"object\"}", "[]", false);
    row("{\"type\":\"string\",\"format\":\"date\"}", "\"2024-12-28\"", true);
    row("{\"type\":\"string\",\"format\":\"date\"}", "\"2024-13-01\"", false);
    row("{\"type\":\"string\",\"format\":\"uuid\"}", "\"123e4567-e89b-12d3-a456-426614174000\"", true);
    row("{\"type\":\"string\",\"format\":\"ipv4\"}", "\"192.168.0.255\"", true);
    row("{\"type\":\"string\",\"format\":\"ipv4\"}", "\"192.168.0.256\"", false);
    row("{\"type\":\"string\",\"format\":\"email\"}", "\"ada.l@mail.example.org\"", true);
    row("{\"type\":\"string\",\"format\":\"email\"}", "\"ada\"", false);
  }
  void documents() {
    QFETCH(QByteArray, schema);
    QFETCH(QByteArray, document);
    QFETCH(bool, expected);
    const auto grammar = schemaGrammar(Json::parse(schema.toStdString()));
    QVERIFY2(grammar.has_value(), grammar ? "" : grammar.error().message().c_str());
    QCOMPARE(matches(*grammar, document.toStdString()), expected);
  }

  void refusesByName_data() {
    QTest::addColumn<QByteArray>("schema");
    QTest::addColumn<QByteArray>("named");
    auto row = [](const char* schema, const char* named) {
      QTest::addRow("%s", schema) << QByteArray(schema) << QByteArray(named);
    };
    row("{\"type\":\"nonsense\"}", "nonsense");
    row("{\"type\":[]}", "type");
    row("{\"$ref\":\"#/$defs/none\"}", "defs/none");
    row("{\"$ref\":\"https://example.org/schema\"}", "example.org");
    row("{\"$ref\":\"#\"}", "no text can satisfy");
    row("{\"anyOf\":[{\"$ref\":\"#\"},{\"type\":\"null\"}]}", "refers to itself");
    row("{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#\"}},\"required\":[\"a\"]}", "no text can satisfy");
    row("{\"type\":\"array\",\"uniqueItems\":true}", "uniqueItems");
    row("{\"type\":\"integer\",\"multipleOf\":7}", "multipleOf");
    row("{\"enum\":[\"red\",\"blue\"],\"not\":{\"const\":\"red\"}}", "not");
    row("{\"type\":\"object\",\"patternProperties\":{\"a\":{}}}", "patternProperties");
    row("{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"number\"}]}", "oneOf");
    row("{\"allOf\":[{\"type\":\"integer\"},{\"minimum\":1}]}", "allOf");
    row("{\"anyOf\":[{\"type\":\"integer\"}],\"minimum\":1}", "anyOf");
    row("{\"enum\":[1,2],\"minimum\":2}", "minimum");
    row("{\"enum\":[]}", "enum");
    row("{\"type\":\"integer\",\"minimum\":5,\"maximum\":3}", "no text can satisfy");
    row("{\"type\":\"string\",\"minLength\":-1}", "minLength");
    row("{\"type\":\"string\",\"minLength\":1000000}", "minLength");
    row("{\"type\":\"string\",\"pattern\":\"(a\"}", "pattern");
    row("{\"type\":\"string\",\"pattern\":\"a\",\"maxLength\":3}", "maxLength");
    row("{\"type\":\"string\",\"format\":\"iri\"}", "iri");
    row("{\"type\":\"array\",\"items\":[{\"type\":\"integer\"}]}", "prefixItems");
    row("{\"type\":\"object\",\"required\":\"a\"}", "required");
    row("{\"type\":\"object\",\"required\":[\"b\"],\"properties\":{\"a\":{}},\"additionalProperties\":false}",
        "additionalProperties");
    row("{\"type\":\"object\",\"properties\":[]}", "properties");
    row("5", "a schema");
  }
  void refusesByName() {
    QFETCH(QByteArray, schema);
    QFETCH(QByteArray, named);
    const auto grammar = schemaGrammar(Json::parse(schema.toStdString()));
    QVERIFY(!grammar.has_value());
    QVERIFY2(grammar.error().message().starts_with("schema"), grammar.error().message().c_str());
    QVERIFY2(grammar.error().message().find(named.toStdString()) != std::string::npos, grammar.error().message().c_str());
  }

  void limitsAreErrors() {
    Json nested{{"type", "null"}};
    for (int i = 0; i < 400; ++i) nested = Json{{"type", "object"}, {"properties", {{"a", nested}}}, {"required", {"a"}}};
    const auto deep = schemaGrammar(nested);
    QVERIFY(!deep.has_value());
    QVERIFY(deep.error().message().find("nested deeper") != std::string::npos);
    Json big{{"type", "string"}, {"maxLength", 90'000}};
    const auto large = schemaGrammar(Json{{"type", "object"}, {"properties", {{"a", big}, {"b", big}, {"c", big}}}});
    QVERIFY(!large.has_value());
    QVERIFY(large.error().message().find("states") != std::string::npos);
    Json prefix = Json::array();
    for (int i = 0; i < 3000; ++i) prefix.push_back({{"type", "null"}});
    const auto list = schemaGrammar(Json{{"type", "array"}, {"prefixItems", prefix}, {"items", false}});
    QVERIFY(list.has_value());
    QVERIFY(matches(*list, "[null, null]"));
    QVERIFY(!matches(*list, "[null, 1]"));
    for (int i = 0; i < 97'000; ++i) prefix.push_back({{"type", "null"}});
    const auto tooLong = schemaGrammar(Json{{"type", "array"}, {"prefixItems", prefix}});
    QVERIFY(!tooLong.has_value());
    QVERIFY(tooLong.error().message().find("states") != std::string::npos);
    // Comparing these two would go through a hundred schemas a level.
    Json defs = Json::object();
    for (int i = 0; i < 15; ++i) {
      Json options = Json::array();
      for (int k = 0; k < 100; ++k) options.push_back({{"$ref", "#/$defs/s" + std::to_string(i + 1)}});
      defs["s" + std::to_string(i)] = {{"anyOf", options}};
    }
    defs["s15"] = {{"type", "string"}};
    const auto compared = schemaGrammar(Json{{"$defs", defs}, {"oneOf", {{{"$ref", "#/$defs/s0"}}, {{"type", "integer"}}}}});
    QVERIFY(!compared.has_value());
    QVERIFY(compared.error().message().find("may both match") != std::string::npos);
  }

  // Whatever bytes are chosen, the text can be finished and is JSON with the properties that are required.
  void randomDocumentsAreValid() {
    const Json schema = Json::parse(
        "{\"type\":\"object\",\"properties\":{"
        "\"kind\":{\"const\":\"report\"},\"level\":{\"enum\":[\"low\",\"high\"]},\"tags\":{\"type\":\"array\",\"items\":{"
        "\"type\":\"string\",\"maxLength\":4},\"minItems\":1,\"maxItems\":3},"
        "\"at\":{\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"integer\",\"minimum\":-5,\"maximum\":105},\"y\":{\"type\":"
        "\"number\",\"minimum\":0.25,\"maximum\":0.5}},"
        "\"required\":[\"y\"],\"additionalProperties\":false},\"plate\":{\"type\":\"string\",\"pattern\":\"^[A-Z]{2}-\\\\d+$\"}},"
        "\"required\":[\"kind\",\"tags\",\"at\"],\"additionalProperties\":false}");
    const auto grammar = schemaGrammar(schema);
    QVERIFY2(grammar.has_value(), grammar ? "" : grammar.error().message().c_str());
    std::mt19937 random(3);
    for (int run = 0; run < 300; ++run) {
      const std::string text = walk(*grammar, random);
      const Json value = Json::parse(text, nullptr, false);
      QVERIFY2(value.is_object(), text.c_str());
      QCOMPARE(value["kind"], Json("report"));
      if (value.contains("level")) QVERIFY(value["level"] == "low" || value["level"] == "high");
      QVERIFY2(value["tags"].size() >= 1 && value["tags"].size() <= 3, text.c_str());
      if (value["at"].contains("x"))
        QVERIFY2(value["at"]["x"].is_number_integer() && value["at"]["x"] >= -5 && value["at"]["x"] <= 105, text.c_str());
      QVERIFY2(value["at"]["y"] >= 0.25 && value["at"]["y"] <= 0.5, text.c_str());
      if (value.contains("plate")) QVERIFY2(value["plate"].get<std::string>().size() >= 4, text.c_str());
      for (const auto& [key, one] : value.items()) QVERIFY2(schema["properties"].contains(key), text.c_str());
    }
  }

  void randomValuesAreJson() {
    GrammarBuilder builder;
    const auto grammar = builder.build(addJsonValue(builder), "json");
    QVERIFY(grammar.has_value());
    std::mt19937 random(5);
    for (int run = 0; run < 300; ++run) {
      const std::string text = walk(*grammar, random);
      QVERIFY2(!Json::parse(text, nullptr, false).is_discarded(), text.c_str());
    }
  }
};

QTEST_GUILESS_MAIN(JsonSchemaTest)
#include "json_schema_test.moc"
