// SPDX-License-Identifier: Apache-2.0
// /v1/responses: items as messages, parameters and refusals, objects and typed events, stored responses. Shapes and names are
// those of OpenAI's Responses API.
#include "engine/server/responses_requests.h"
#include "tests/engine/fake_engine.h"

#include <QtTest>

#include <fmt/format.h>

using namespace headroom;
using namespace headroom::test;
using Json = nlohmann::ordered_json;

namespace {

const char* kPath = "/v1/responses";
const RequestBounds kBounds{"fake", 512, kVocabulary, {}};
const char* kTools = R"([{"type": "function", "name": "look", "description": "Looks.",
  "parameters": {"type": "object", "properties": {"at": {"type": "integer"}}, "required": ["at"]}}])";
const char* kCallReply = R"({"name": "look", "arguments": {"at": 7}})";

Json body(Json more = Json::object()) {
  Json all{{"model", "fake"}, {"input", "hi"}};
  all.update(more);
  return all;
}

ApiResult<ResponsesRequest> read(const Json& request, const ResponseStore& store = ResponseStore()) {
  return readResponsesRequest(request, kBounds, store);
}

std::string typesOf(const std::vector<Json>& events) {
  std::string types, last;
  for (const Json& event : events) {
    std::string type = event["type"].get<std::string>().substr(std::string_view("response.").size());
    if (type != last) types += (types.empty() ? "" : " ") + type;
    last = type;
  }
  return types;
}

std::string deltasOf(const std::vector<Json>& events, const std::string& type) {
  std::string text;
  for (const Json& event : events)
    if (event["type"] == type) text += event["delta"].get<std::string>();
  return text;
}

// What differs between a stream and the whole answer to the same request.
Json withoutIds(Json output) {
  for (Json& item : output)
    for (const char* name : {"id", "call_id"}) item.erase(name);
  return output;
}

}  // namespace

class ResponsesTest : public QObject {
  Q_OBJECT

 private slots:
  void answersText() {
    FakeServer server;
    const RawResponse response = server.post(kPath, body({{"instructions", "Be kind."}, {"metadata", {{"a", "b"}}}}));
    QCOMPARE(response.status, 200);
    const Json answer = parsed(response);
    QVERIFY(answer["id"].get<std::string>().starts_with("resp_"));
    QVERIFY(answer["object"] == "response");
    QVERIFY(answer["status"] == "completed");
    QVERIFY(answer["error"].is_null() && answer["incomplete_details"].is_null());
    QVERIFY(answer["model"] == "fake");
    QCOMPARE(answer["output"].size(), 1u);
    const Json& message = answer["output"][0];
    QVERIFY(message["id"].get<std::string>().starts_with("msg_"));
    QVERIFY(message["type"] == "message" && message["role"] == "assistant" && message["status"] == "completed");
    QCOMPARE(message["content"].dump(),
             std::string(R"([{"type":"output_text","text":"Hello, world","annotations":[],"logprobs":[]}])"));
    // "<s>system: Be kind.\nuser: hi\nassistant: ": a begin token and 37 characters.
    QCOMPARE(answer["usage"].dump(),
             std::string(R"({"input_tokens":38,"input_tokens_details":{"cached_tokens":0},"output_tokens":13,)"
                         R"("output_tokens_details":{"reasoning_tokens":0},"total_tokens":51})"));
    QVERIFY(answer["instructions"] == "Be kind." && answer["metadata"]["a"] == "b");
    QVERIFY(answer["store"] == true && answer["parallel_tool_calls"] == true && answer["tool_choice"] == "auto");
    QVERIFY(answer["text"]["format"]["type"] == "text" && answer["truncation"] == "disabled" && answer["tools"].empty());
  }

  void isIncompleteAtItsLimit() {
    FakeServer server;
    const Json answer = parsed(server.post(kPath, body({{"max_output_tokens", 5}})));
    QVERIFY(answer["status"] == "incomplete");
    QVERIFY(answer["incomplete_details"]["reason"] == "max_output_tokens");
    QVERIFY(answer["output"][0]["status"] == "incomplete");
    QVERIFY(answer["output"][0]["content"][0]["text"] == "Hello");
    const auto events = eventsOf(server.post(kPath, body({{"max_output_tokens", 5}, {"stream", true}})).body);
    QVERIFY(events.back()["type"] == "response.incomplete");
    QVERIFY(events.back()["response"]["incomplete_details"]["reason"] == "max_output_tokens");
  }

  void streamsTypedEvents() {
    FakeServer server;
    const RawResponse response = server.post(kPath, body({{"stream", true}}));
    QVERIFY(response.header("content-type").starts_with("text/event-stream"));
    QVERIFY(response.body.starts_with("event: response.created\ndata: {"));
    QVERIFY(response.body.find("[DONE]") == std::string::npos);
    const auto events = eventsOf(response.body);
    QCOMPARE(typesOf(events),
             std::string("created in_progress output_item.added content_part.added output_text.delta output_text.done "
                         "content_part.done output_item.done completed"));
    for (size_t i = 0; i < events.size(); ++i) QCOMPARE(events[i]["sequence_number"].get<size_t>(), i);
    QVERIFY(events[0]["response"]["status"] == "in_progress" && events[0]["response"]["output"].empty());
    QVERIFY(events[2]["item"]["content"].empty() && events[2]["item"]["status"] == "in_progress");
    QVERIFY(events[3]["part"]["text"] == "" && events[3]["content_index"] == 0 && events[3]["output_index"] == 0);
    QCOMPARE(deltasOf(events, "response.output_text.delta"), std::string("Hello, world"));
    const Json& last = events.back()["response"];
    QVERIFY(last["status"] == "completed" && last["usage"]["output_tokens"] == 13 && last["id"] == events[0]["response"]["id"]);
    QVERIFY(last["output"][0] == events[events.size() - 2]["item"]);
    for (const Json& event : events)
      if (event.contains("item_id")) QVERIFY(event["item_id"] == last["output"][0]["id"]);
  }

  void callsTools() {
    FakeServer server(kCallReply);
    Json request = body({{"tools", Json::parse(kTools)}});
    const Json answer = parsed(server.post(kPath, request));
    QVERIFY2(answer.contains("output"), answer.dump().c_str());
    QCOMPARE(answer["output"].size(), 1u);
    const Json& call = answer["output"][0];
    QVERIFY(call["type"] == "function_call" && call["name"] == "look" && call["status"] == "completed");
    QVERIFY(Json::parse(call["arguments"].get<std::string>()) == Json({{"at", 7}}));
    QVERIFY(call["id"].get<std::string>().starts_with("fc_") && call["call_id"].get<std::string>().starts_with("call_"));
    QVERIFY(answer["status"] == "completed");
    QVERIFY(answer["tools"][0]["strict"].is_null() && answer["tools"][0]["name"] == "look");
    request["stream"] = true;
    const auto events = eventsOf(server.post(kPath, request).body);
    QCOMPARE(typesOf(events), std::string("created in_progress output_item.added function_call_arguments.delta "
                                          "function_call_arguments.done output_item.done completed"));
    QVERIFY(events[2]["item"]["arguments"] == "" && events[2]["item"]["name"] == "look");
    const auto done = std::find_if(events.begin(), events.end(),
                                   [](const Json& event) { return event["type"] == "response.function_call_arguments.done"; });
    QVERIFY((*done)["arguments"] == call["arguments"] && (*done)["name"] == "look");
    QCOMPARE(deltasOf(events, "response.function_call_arguments.delta"), call["arguments"].get<std::string>());
    QVERIFY(withoutIds(events.back()["response"]["output"]) == withoutIds(answer["output"]));
  }

  // Whoever reads that a call is whole parses its arguments.
  void aCallThatAStopStringCutsIsNotWhole() {
    FakeServer server(R"([{"name": "look", "arguments": {"at": 7}}])");
    const Json tools = Json::parse(kTools);
    Json chatTools = Json::array();
    chatTools.push_back({{"type", "function"}, {"function", {{"name", "look"}, {"parameters", tools[0]["parameters"]}}}});
    for (const bool isCut : {true, false}) {
      const Json stop = isCut ? "7" : "}]";  // the latter behind the arguments
      const Json answer =
          parsed(server.post(kPath, body({{"tools", tools}, {"tool_choice", "required"}, {"stop", Json::array({stop})}})));
      QVERIFY2(answer.contains("output"), answer.dump().c_str());
      QCOMPARE(answer["output"][0]["arguments"].get<std::string>(), std::string(isCut ? "{\"at\": " : "{\"at\": 7}"));
      QCOMPARE(answer["output"][0]["status"].get<std::string>(), std::string(isCut ? "incomplete" : "completed"));
      for (const bool stream : {false, true}) {
        const RawResponse chat =
            server.post("/v1/chat/completions", {{"messages", Json::array({{{"role", "user"}, {"content", "x"}}})},
                                                 {"tools", chatTools},
                                                 {"tool_choice", "required"},
                                                 {"stop", stop},
                                                 {"stream", stream}});
        const std::string reason = isCut ? R"("finish_reason":"stop")" : R"("finish_reason":"tool_calls")";
        QVERIFY2(chat.body.find(reason) != std::string::npos, chat.body.c_str());
      }
    }
  }

  void reasoningIsAnItemOfItsOwn() {
    FakeServer server("<think>\nTwo and two.\n</think>\n\nFour.", {}, std::chrono::microseconds(50), "... </think> ...");
    const Json answer = parsed(server.post(kPath, body()));
    QCOMPARE(answer["output"].size(), 2u);
    QVERIFY(answer["output"][0]["type"] == "reasoning" && answer["output"][0]["summary"].empty());
    QCOMPARE(answer["output"][0]["content"].dump(), std::string(R"([{"type":"reasoning_text","text":"Two and two."}])"));
    QVERIFY(answer["output"][1]["content"][0]["text"] == "Four.");
    // From the mark to the mark, a token a byte.
    QCOMPARE(answer["usage"]["output_tokens_details"]["reasoning_tokens"].get<size_t>(),
             std::string_view(">\nTwo and two.\n</think>").size());
    const auto events = eventsOf(server.post(kPath, body({{"stream", true}})).body);
    QCOMPARE(
        typesOf(events),
        std::string("created in_progress output_item.added content_part.added reasoning_text.delta reasoning_text.done "
                    "content_part.done output_item.done output_item.added content_part.added output_text.delta output_text.done "
                    "content_part.done output_item.done completed"));
    QVERIFY(withoutIds(events.back()["response"]["output"]) == withoutIds(answer["output"]));
  }

  void givesLogprobsOfTheText() {
    FakeServer server("Hi");
    Json request = body({{"include", Json::array({"message.output_text.logprobs"})}, {"top_logprobs", 2}});
    const Json answer = parsed(server.post(kPath, request));
    const Json& logprobs = answer["output"][0]["content"][0]["logprobs"];
    QCOMPARE(logprobs.size(), 2u);
    QVERIFY(logprobs[1]["token"] == "i" && logprobs[1]["logprob"] == -0.5 && logprobs[1]["top_logprobs"].size() == 2u);
    request["stream"] = true;
    Json streamed = Json::array();
    for (const Json& event : eventsOf(server.post(kPath, request).body))
      if (event["type"] == "response.output_text.delta")
        for (const Json& entry : event["logprobs"]) streamed.push_back(entry);
    QVERIFY(streamed == logprobs);
  }

  void failsAsAnEventWhereTheStreamHasBegun() {
    FakeServer server("Hello, world", {}, std::chrono::milliseconds(20));
    server.service.failAfter(3, "rank 0: out of memory");
    const RawResponse whole = server.post(kPath, body());
    QCOMPARE(whole.status, 500);
    QVERIFY(parsed(whole)["error"]["message"] == "rank 0: out of memory");
    const auto events = eventsOf(server.post(kPath, body({{"stream", true}})).body);
    QVERIFY(events.back()["type"] == "response.failed");
    QVERIFY(events.back()["response"]["error"]["message"] == "rank 0: out of memory");
    QVERIFY(events.back()["response"]["status"] == "failed");
  }

  void itemsBecomeMessages_data() {
    QTest::addColumn<QByteArray>("request");
    QTest::addColumn<QByteArray>("messages");
    QTest::newRow("string") << QByteArray(R"({"input": "hi"})") << QByteArray(R"([{"role":"user","content":"hi"}])");
    QTest::newRow("instructions and a developer are one message")
        << QByteArray(
               R"({"instructions": "A.", "input": [{"role": "developer", "content": "B."}, {"role": "user", "content": "hi"}]})")
        << QByteArray(R"([{"role":"system","content":"A.\n\nB."},{"role":"user","content":"hi"}])");
    QTest::newRow("parts")
        << QByteArray(
               R"({"input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]},
             {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed", "content": [{"type": "output_text", "text": "c", "annotations": []}]},
             {"role": "user", "content": "d"}]})")
        << QByteArray(R"([{"role":"user","content":"a\nb"},{"role":"assistant","content":"c"},{"role":"user","content":"d"}])");
    QTest::newRow("calls with reasoning and text are one message")
        << QByteArray(
               R"({"input": [{"role": "user", "content": "q"}, {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
             {"role": "assistant", "content": "one moment"},
             {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
             {"type": "function_call", "call_id": "c2", "name": "look", "arguments": "{}"},
             {"type": "function_call_output", "call_id": "c1", "output": "one"},
             {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "two"}]}]})")
        << QByteArray(
               R"([{"role":"user","content":"q"},{"role":"assistant","content":"one moment","reasoning_content":"hm","tool_calls":[)"
               R"({"id":"c1","type":"function","function":{"name":"look","arguments":"{}"}},)"
               R"({"id":"c2","type":"function","function":{"name":"look","arguments":"{}"}}]},)"
               R"({"role":"tool","tool_call_id":"c1","content":"one"},{"role":"tool","tool_call_id":"c2","content":"two"}])");
    QTest::newRow("a summary where the reasoning is hidden")
        << QByteArray(
               R"({"input": [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "short"}], "encrypted_content": "x"},
             {"role": "assistant", "content": "a"}, {"role": "user", "content": "b"}]})")
        << QByteArray(R"([{"role":"assistant","content":"a","reasoning_content":"short"},{"role":"user","content":"b"}])");
  }
  void itemsBecomeMessages() {
    QFETCH(QByteArray, request);
    QFETCH(QByteArray, messages);
    const auto found = read(Json::parse(request.toStdString()));
    QVERIFY2(found.has_value(), found ? "" : found.error().message.c_str());
    QCOMPARE(QByteArray::fromStdString(found->chat.conversation["messages"].dump()), messages);
    for (const Json& item : found->items) QVERIFY(item["id"].is_string() && item["type"].is_string());
  }

  void parametersAreThoseOfAChat() {
    const auto found = read(Json::parse(fmt::format(
        R"({{"input": "x", "max_output_tokens": 9, "temperature": 0.5, "top_p": 0.9, "top_k": 3, "seed": 4, "stop": "z", "reasoning": {{"effort": "none"}},
            "tools": {}, "tool_choice": {{"type": "function", "name": "look"}}, "parallel_tool_calls": false, "store": false}})",
        kTools)));
    QVERIFY2(found.has_value(), found ? "" : found.error().message.c_str());
    const OpenAiRequest& chat = found->chat;
    QCOMPARE(*chat.maxTokens, 9);
    QCOMPARE(chat.sampling.temperature, 0.5);
    QCOMPARE(chat.sampling.topP, 0.9);
    QCOMPARE(chat.sampling.topK, 3);
    QCOMPARE(*chat.sampling.seed, 4);
    QVERIFY(chat.stop == std::vector<std::string>{"z"});
    QVERIFY(chat.tools.isForced && !chat.tools.parallel && chat.grammar);
    QVERIFY(matches(chat.grammar, R"({"name": "look", "arguments": {"at": 1}})"));
    QVERIFY(!matches(chat.grammar, R"({"name": "look", "arguments": {"at": "x"}})"));
    QVERIFY(chat.conversation["tools"][0]["function"]["name"] == "look");
    QVERIFY(chat.conversation["chat_template_kwargs"]["enable_thinking"] == false);
    QVERIFY(chat.conversation["chat_template_kwargs"]["reasoning_effort"] == "none");
    QVERIFY(!found->isStored);
  }

  void formsOfText() {
    const auto schema = read(Json::parse(
        R"({"input": "x", "text": {"format": {"type": "json_schema", "name": "n", "strict": true, "schema": {"type": "boolean"}}}})"));
    QVERIFY2(schema.has_value(), schema ? "" : schema.error().message.c_str());
    QVERIFY(matches(schema->chat.grammar, "true") && !matches(schema->chat.grammar, "1"));
    const auto object = read(Json::parse(R"({"input": "x", "text": {"format": {"type": "json_object"}}})"));
    QVERIFY(object && matches(object->chat.grammar, "{}"));
    const auto plain = read(Json::parse(R"({"input": "x", "text": {"format": {"type": "text"}}})"));
    QVERIFY(plain && !plain->chat.grammar);
  }

  void allowedToolsHoldTheCalls() {
    const char* tools = R"([{"type": "function", "name": "a"}, {"type": "function", "name": "b"}])";
    for (const char* mode : {"auto", "required"}) {
      const auto found = read(Json::parse(fmt::format(
          R"({{"input": "x", "tools": {}, "tool_choice": {{"type": "allowed_tools", "mode": "{}", "tools": [{{"type": "function", "name": "b"}}]}}}})",
          tools, mode)));
      QVERIFY2(found.has_value(), found ? "" : found.error().message.c_str());
      QCOMPARE(found->chat.conversation["tools"].size(), 2u);
      QVERIFY(matches(found->chat.grammar, R"({"name": "b", "arguments": {}})"));
      QVERIFY(!matches(found->chat.grammar, R"({"name": "a", "arguments": {}})"));
      QCOMPARE(matches(found->chat.grammar, "No call."), std::string_view(mode) == "auto");
    }
  }

  void refusesByName_data() {
    QTest::addColumn<QByteArray>("more");
    QTest::addColumn<QByteArray>("param");
    QTest::addColumn<QByteArray>("says");
    auto row = [](const char* more, const char* param, const char* says) {
      QTest::newRow(more) << QByteArray(more) << QByteArray(param) << QByteArray(says);
    };
    row(R"({"input": null})", "input", "missing");
    row(R"({"input": []})", "input", "at least one item");
    row(R"({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]})", "input[0].content",
        "input_image");
    row(R"({"input": [{"role": "robot", "content": "x"}]})", "input[0].role", "robot");
    row(R"({"input": [{"role": "user", "content": "a"}, {"type": "computer_call"}]})", "input[1].type", "computer_call");
    row(R"({"input": [{"type": "function_call", "name": "a", "arguments": "{}"}]})", "input[0].call_id", "a string");
    row(R"({"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]})", "input[0].call_id", "before it");
    row(R"({"input": [{"type": "item_reference", "id": "msg_0"}]})", "input[0].id", "stored");
    row(R"({"background": true})", "background", "stream");
    row(R"({"conversation": "conv_1"})", "conversation", "not supported");
    row(R"({"prompt": {"id": "p"}})", "prompt", "not supported");
    row(R"({"modalities": ["audio"]})", "modalities", "not supported");
    row(R"({"tools": [{"type": "web_search"}]})", "tools[0].type", "web_search");
    row(R"({"tools": [{"type": "function"}]})", "tools[0].name", "a string");
    row(R"({"tools": [{"type": "function", "name": "a b"}]})", "tools[0].name", "letters");
    row(R"({"tool_choice": {"type": "web_search"}})", "tool_choice", "allowed_tools");
    row(R"({"tool_choice": "required"})", "tool_choice", "without tools");
    row(R"({"max_output_tokens": 0})", "max_output_tokens", "from 1 to");
    row(R"({"max_tokens": 3})", "max_tokens", "max_output_tokens");
    row(R"({"messages": []})", "messages", "input");
    row(R"({"n": 2})", "n", "one answer");
    row(R"({"temperature": -1})", "temperature", "at least 0");
    row(R"({"text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "strung"}}}})", "text.format.schema",
        "strung");
    row(R"({"text": {"format": {"type": "json_schema", "name": "n"}}})", "text.format.schema", "a JSON schema");
    row(R"({"text": {"format": {"type": "yaml"}}})", "text.format.type", "yaml");
    row(R"({"text": {"verbosity": "low"}})", "text.verbosity", "low");
    row(R"({"reasoning": {"effort": "much"}})", "reasoning.effort", "much");
    row(R"({"reasoning": {"summary": "detailed"}})", "reasoning.summary", "detailed");
    row(R"({"include": ["file_search_call.results"]})", "include", "file_search_call.results");
    row(R"({"truncation": "middle"})", "truncation", "auto or disabled");
    row(R"({"service_tier": "flex"})", "service_tier", "flex");
    row(R"({"metadata": {"a": 1}})", "metadata", "texts");
    row(R"({"stream_options": {"include_obfuscation": false}})", "stream_options", "stream");
    row(R"({"previous_response_id": "resp_0"})", "previous_response_id", "stored");
    row(R"({"model": "other"})", "model", "other");
  }
  void refusesByName() {
    QFETCH(QByteArray, more);
    QFETCH(QByteArray, param);
    QFETCH(QByteArray, says);
    FakeServer server;
    const RawResponse response = server.post(kPath, body(Json::parse(more.toStdString())));
    QVERIFY(response.status == 400 || response.status == 404);
    const Json error = parsed(response)["error"];
    QCOMPARE(QByteArray::fromStdString(error["param"].is_string() ? error["param"].get<std::string>() : std::string()), param);
    QVERIFY2(error["message"].get<std::string>().find(says.toStdString()) != std::string::npos,
             error["message"].get<std::string>().c_str());
  }

  void goesOnFromAStoredResponse() {
    FakeServer server("Hello");
    const Json first = parsed(server.post(kPath, body({{"instructions", "Be kind."}})));
    const std::string id = first["id"].get<std::string>();
    const Json second = parsed(server.post(kPath, body({{"input", "more"}, {"previous_response_id", id}})));
    QVERIFY(second["previous_response_id"] == id);
    const auto prompt = server.service.submittedAt(1).prompt;
    // Instructions are of one response only.
    QCOMPARE(server.tokenizer.decode(prompt, true), std::string("user: hi\nassistant: Hello\nuser: more\nassistant: "));
    const Json items = parsed(server.get(fmt::format("/v1/responses/{}/input_items", second["id"].get<std::string>())));
    QCOMPARE(items["data"].size(), 3u);
    QVERIFY(items["data"][0]["content"][0]["text"] == "more" && items["data"][1]["id"] == first["output"][0]["id"]);
    // One may also name the item itself.
    const Json by =
        parsed(server.post(kPath, body({{"input", Json::array({{{"type", "item_reference"}, {"id", first["output"][0]["id"]}},
                                                               {{"role", "user"}, {"content", "more"}}})}})));
    QVERIFY2(by.contains("output"), by.dump().c_str());
    QCOMPARE(server.tokenizer.decode(server.service.submittedAt(2).prompt, true),
             std::string("assistant: Hello\nuser: more\nassistant: "));
  }

  void storesUnlessToldNotTo() {
    FakeServer server;
    const Json kept = parsed(server.post(kPath, body()));
    const std::string path = "/v1/responses/" + kept["id"].get<std::string>();
    QVERIFY(parsed(server.get(path)) == kept);
    const RawResponse deleted = request(server.port, "DELETE", path, {}, {});
    QCOMPARE(deleted.status, 200);
    QVERIFY(parsed(deleted)["deleted"] == true);
    QCOMPARE(server.get(path).status, 404);
    QCOMPARE(request(server.port, "DELETE", path, {}, {}).status, 404);
    const Json dropped = parsed(server.post(kPath, body({{"store", false}})));
    QCOMPARE(server.get("/v1/responses/" + dropped["id"].get<std::string>()).status, 404);
    const auto events = eventsOf(server.post(kPath, body({{"stream", true}})).body);
    QVERIFY(parsed(server.get("/v1/responses/" + events[0]["response"]["id"].get<std::string>())) == events.back()["response"]);
    const RawResponse wrong = request(server.port, "PUT", path, {}, {});
    QCOMPARE(wrong.status, 405);
    QCOMPARE(wrong.header("allow"), std::string("GET, DELETE, OPTIONS"));
  }

  void theStoreKeepsTheNewestWithinItsLimits() {
    ResponseStore store({3, 100});
    const auto entry = [](size_t bytes) { return StoredResponse{std::string(bytes, 'x'), "", R"([])", {}}; };
    for (const char* id : {"a", "b", "c", "d"}) store.put(id, entry(10));
    QVERIFY(!store.find("a") && store.find("b") && store.find("d"));
    QCOMPARE(store.bytes(), size_t{39});
    store.put("e", entry(80));
    QVERIFY(!store.find("b") && !store.find("c") && store.find("d") && store.find("e"));
    store.put("f", entry(1000));
    QVERIFY(!store.find("f") && store.find("e"));
    QVERIFY(store.erase("e") && store.erase("d") && !store.erase("d"));
    QCOMPARE(store.bytes(), size_t{0});
  }

  void dropsTheOldestTurnsWhereAskedTo() {
    FakeServer server;
    Json items = Json::array({{{"role", "system"}, {"content", "S"}}});
    for (const char* text : {"a", "b", "c"}) {
      items.push_back({{"role", "user"}, {"content", std::string(200, text[0])}});
      items.push_back({{"role", "assistant"}, {"content", "ok"}});
    }
    items.push_back({{"role", "user"}, {"content", "last"}});
    const RawResponse refused = server.post(kPath, body({{"input", items}}));
    QCOMPARE(refused.status, 400);
    QVERIFY(parsed(refused)["error"]["code"] == "context_length_exceeded" && parsed(refused)["error"]["param"] == "input");
    const RawResponse cut = server.post(kPath, body({{"input", items}, {"truncation", "auto"}}));
    QCOMPARE(cut.status, 200);
    QCOMPARE(server.tokenizer.decode(server.service.submittedAt(0).prompt, true),
             fmt::format("system: S\nuser: {}\nassistant: ok\nuser: {}\nassistant: ok\nuser: last\nassistant: ",
                         std::string(200, 'b'), std::string(200, 'c')));
  }
};

QTEST_APPLESS_MAIN(ResponsesTest)
#include "responses_test.moc"
