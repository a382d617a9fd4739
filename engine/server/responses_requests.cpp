// SPDX-License-Identifier: Apache-2.0
#include "engine/server/responses_requests.h"

#include "engine/server/generation.h"
#include "engine/server/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace headroom::engine {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostItems = 10'000;
constexpr size_t kMostMetadata = 16, kMostMetadataKey = 64, kMostMetadataValue = 512;  // OpenAI's limits

std::string textOf(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// ---- items into messages

// Collects messages: what an assistant thought, said and called one after the other is one message.
class Conversation {
 public:
  explicit Conversation(Parameters& parameters) : m_parameters(parameters) {}

  void instruct(const std::string& instructions) { m_messages.push_back({{"role", "system"}, {"content", instructions}}); }

  // `where` names the item in errors.
  void add(const Json& item, const std::string& where) {
    if (!item.is_object()) return m_parameters.wrong(where, item, "an object with a type");
    const auto type = item.find("type");
    if (type != item.end() && !type->is_string()) return m_parameters.wrong(where + ".type", *type, "a string");
    const std::string kind = type == item.end() ? "message" : type->get<std::string>();
    if (kind == "message") return addMessage(item, where);
    if (kind == "function_call") return addCall(item, where);
    if (kind == "function_call_output") return addCallOutput(item, where);
    if (kind == "reasoning") return addReasoning(item, where);
    m_parameters.refuse(
        where + ".type",
        fmt::format(
            "{}.type: {} is not supported by this server; message, function_call, function_call_output and reasoning are.", where,
            jsonString(kind)));
  }

  Json take() {
    flushReasoning();
    return std::move(m_messages);
  }

 private:
  void addMessage(const Json& item, const std::string& where) {
    const std::string role = textOf(item, "role");
    if (role != "user" && role != "assistant" && role != "system" && role != "developer")
      return m_parameters.wrong(where + ".role", item.value("role", Json()), "user, assistant, system or developer");
    const auto content = item.find("content");
    auto text = readContent(m_parameters, content == item.end() ? Json() : *content, where + ".content");
    if (!text) return;
    if (role == "assistant") {
      Json& message = assistant(false);
      if (message["content"].is_string()) *text = message["content"].get<std::string>() + "\n" + text->get<std::string>();
      message["content"] = std::move(*text);
      return;
    }
    flushReasoning();
    // Templates that take instructions take them as the first message only.
    if (role != "user" && m_messages.size() == 1 && m_messages[0]["role"] == "system") {
      m_messages[0]["content"] = m_messages[0]["content"].get<std::string>() + "\n\n" + text->get<std::string>();
      return;
    }
    m_messages.push_back({{"role", role}, {"content", std::move(*text)}});
  }

  void addCall(const Json& item, const std::string& where) {
    for (const char* name : {"call_id", "name", "arguments"})
      if (const auto value = item.find(name); value == item.end() || !value->is_string())
        return m_parameters.wrong(where + "." + name, value == item.end() ? Json() : *value, "a string");
    const std::string id = textOf(item, "call_id");
    m_calls.insert(id);
    Json& message = assistant(true);
    message["tool_calls"].push_back(
        {{"id", id}, {"type", "function"}, {"function", {{"name", item["name"]}, {"arguments", item["arguments"]}}}});
  }

  void addCallOutput(const Json& item, const std::string& where) {
    const std::string id = textOf(item, "call_id");
    if (m_calls.count(id) == 0)
      return m_parameters.wrong(where + ".call_id", item.value("call_id", Json()), "the call_id of a function_call before it");
    const auto output = item.find("output");
    auto text = readContent(m_parameters, output == item.end() ? Json() : *output, where + ".output");
    if (!text) return;
    flushReasoning();
    m_messages.push_back({{"role", "tool"}, {"tool_call_id", id}, {"content", std::move(*text)}});
  }

  void addReasoning(const Json& item, const std::string& where) {
    // The reasoning itself where it is there; its summary else. What others encrypted says nothing to this model.
    std::string text;
    for (const char* name : {"content", "summary"}) {
      const auto parts = item.find(name);
      if (!text.empty() || parts == item.end() || parts->is_null()) continue;
      if (!parts->is_array()) return m_parameters.wrong(where + "." + name, *parts, "a list of parts with a text");
      for (const Json& part : *parts) {
        if (!part.is_object() || !part.contains("text") || !part["text"].is_string())
          return m_parameters.wrong(where + "." + name, part, "parts with a text");
        text += (text.empty() ? "" : "\n") + part["text"].get<std::string>();
      }
    }
    m_reasoning += (m_reasoning.empty() || text.empty() ? "" : "\n") + text;
  }

  // The message that an assistant's item belongs to: its last one, unless that has called already and this is no call.
  Json& assistant(bool isCall) {
    const bool begun = !m_messages.empty() && m_messages.back()["role"] == "assistant" && m_reasoning.empty() &&
                       (isCall || !m_messages.back().contains("tool_calls"));
    if (!begun) m_messages.push_back({{"role", "assistant"}, {"content", nullptr}});
    Json& message = m_messages.back();
    if (!m_reasoning.empty()) message["reasoning_content"] = std::exchange(m_reasoning, {});
    if (isCall && !message.contains("tool_calls")) message["tool_calls"] = Json::array();
    return message;
  }

  // Reasoning that nothing of the assistant follows: it was cut off there.
  void flushReasoning() {
    if (!m_reasoning.empty()) assistant(false)["content"] = "";
  }

  Parameters& m_parameters;
  Json m_messages = Json::array();
  std::string m_reasoning;  // of the assistant's next message
  std::set<std::string> m_calls;
};

// The items of this request's own input, references resolved, each with an id.
Json ownItems(Parameters& parameters, const ResponseStore& store) {
  const Json* input = parameters.find("input");
  const char* expected = "a string or a list of at least one item";
  Json items = Json::array();
  if (!input) {
    parameters.refuse("input", fmt::format("input: is missing, expected {}.", expected));
    return items;
  }
  if (input->is_string()) {
    const Json part{{"type", "input_text"}, {"text", *input}};
    items.push_back({{"id", randomId("msg_")}, {"type", "message"}, {"role", "user"}, {"content", Json::array({part})}});
    return items;
  }
  if (!input->is_array() || input->empty()) {
    parameters.wrong("input", *input, expected);
    return items;
  }
  if (input->size() > kMostItems) {
    parameters.wrong("input", fmt::format("{} items", input->size()), fmt::format("at most {}", kMostItems));
    return items;
  }
  for (size_t i = 0; i < input->size(); ++i) {
    Json item = (*input)[i];
    const std::string id = item.is_object() ? textOf(item, "id") : std::string();
    const std::string type = item.is_object() ? textOf(item, "type") : std::string();
    if (type == "item_reference" || (type.empty() && !id.empty() && !item.contains("role"))) {
      item = store.findItem(id);
      if (item.is_null()) {
        parameters.wrong(fmt::format("input[{}].id", i), Json(id), "the id of an item of a response that is stored here");
        return items;
      }
    } else if (item.is_object()) {
      if (type.empty()) item["type"] = "message";
      if (id.empty())
        item["id"] = randomId(type == "function_call"          ? "fc_"
                              : type == "function_call_output" ? "fco_"
                              : type == "reasoning"            ? "rs_"
                                                               : "msg_");
    }
    items.push_back(std::move(item));
  }
  return items;
}

// Items of the responses before this one, and what they were answered.
Json itemsBefore(Parameters& parameters, const ResponseStore& store) {
  const auto id = parameters.string("previous_response_id");
  if (!id) return Json::array();
  const auto before = store.find(*id);
  if (!before) {
    parameters.take(
        {404,
         fmt::format("previous_response_id: found {}, which is not stored here. Responses are kept in memory, the newest "
                     "{} of at most {} MiB together; send the items themselves instead.",
                     jsonString(*id), store.limits().responses, store.limits().bytes >> 20),
         "previous_response_id", "invalid_request_error", "previous_response_not_found"});
    return Json::array();
  }
  Json items = Json::parse(before->input);
  for (Json& item : Json::parse(before->output)) items.push_back(std::move(item));
  return items;
}

// ---- parameters into those of a chat

// What responses spell otherwise or do not have; all other members go on as they are, vLLM's extensions of sampling among them.
constexpr std::array kOwnMembers{
    "input",        "instructions", "text",           "tools",      "tool_choice", "reasoning", "max_output_tokens",
    "top_logprobs", "include",      "stream_options", "truncation", "metadata",    "store",     "previous_response_id"};

void refuseWhatIsNotOffered(Parameters& parameters) {
  for (const auto& [name, own] : {std::pair{"messages", "input"}, std::pair{"max_tokens", "max_output_tokens"},
                                  std::pair{"max_completion_tokens", "max_output_tokens"},
                                  std::pair{"response_format", "text.format"}, std::pair{"reasoning_effort", "reasoning.effort"}})
    if (parameters.find(name)) parameters.refuse(name, fmt::format("{}: responses call it {}.", name, own));
  if (parameters.boolean("background", false))
    parameters.refuse("background", "background: this server answers while the client waits; stream the response instead.");
  if (const Json* n = parameters.find("n"); n && *n != 1) parameters.refuse("n", "n: a response has one answer.");
  for (const char* name :
       {"conversation", "prompt", "context_management", "moderation", "image", "audio", "modalities", "background_options"})
    if (const Json* value = parameters.find(name); value && *value != Json::array() && *value != Json::array({"text"}))
      parameters.unsupported(name);
  if (const Json* tier = parameters.find("service_tier"); tier && *tier != "auto" && *tier != "default")
    parameters.wrong("service_tier", *tier, "auto or default; this server has one tier, and priority to order requests");
  parameters.integer("max_tool_calls", 1);  // of hosted tools, which are not here
}

void readMetadata(Parameters& parameters) {
  const Json* metadata = parameters.object("metadata");
  if (!metadata) return;
  const std::string expected = fmt::format("at most {} texts of up to {} characters under names of up to {}", kMostMetadata,
                                           kMostMetadataValue, kMostMetadataKey);
  if (metadata->size() > kMostMetadata)
    return parameters.wrong("metadata", fmt::format("{} entries", metadata->size()), expected);
  for (const auto& [key, value] : metadata->items())
    if (key.size() > kMostMetadataKey || !value.is_string() || value.get_ref<const std::string&>().size() > kMostMetadataValue)
      return parameters.wrong("metadata", Json{{key, value}}, expected);
}

void readInclude(Parameters& parameters, Json& chat) {
  const auto top = parameters.integer("top_logprobs", 0, 20);
  const Json* include = parameters.find("include");
  if (include && !include->is_array()) return parameters.wrong("include", *include, "a list of names");
  bool logprobs = top && *top > 0;
  if (include)
    for (const Json& name : *include) {
      // Reasoning is not encrypted here: it comes as text, whether it is asked for or not.
      if (name == "message.output_text.logprobs")
        logprobs = true;
      else if (name != "reasoning.encrypted_content")
        return parameters.wrong("include", name, "message.output_text.logprobs or reasoning.encrypted_content");
    }
  if (!logprobs) return;
  chat["logprobs"] = true;
  chat["top_logprobs"] = top.value_or(0);
}

// text.format is response_format without the object in the middle.
void readFormat(Parameters& parameters, Json& chat, Json& shown) {
  shown["text"] = {{"format", {{"type", "text"}}}, {"verbosity", "medium"}};
  const Json* text = parameters.object("text");
  if (!text) return;
  if (const auto verbosity = text->find("verbosity"); verbosity != text->end() && !verbosity->is_null() && *verbosity != "medium")
    return parameters.wrong("text.verbosity", *verbosity, "medium; this server cannot make a model brief, instructions may");
  const auto format = text->find("format");
  if (format == text->end() || format->is_null()) return;
  if (!format->is_object()) return parameters.wrong("text.format", *format, "an object");
  shown["text"]["format"] = *format;
  if (format->value("type", Json()) != "json_schema") {
    chat["response_format"] = *format;
    return;
  }
  if (const auto schema = format->find("schema"); schema == format->end() || !schema->is_object())
    return parameters.wrong("text.format.schema", schema == format->end() ? Json() : *schema, "a JSON schema");
  Json schema = *format;
  schema.erase("type");
  chat["response_format"] = {{"type", "json_schema"}, {"json_schema", std::move(schema)}};
}

// {"type": "function", "name", …} as chats have it: with an object in the middle.
Json asChatFunction(const Json& tool) {
  Json function = tool;
  function.erase("type");
  return {{"type", "function"}, {"function", std::move(function)}};
}

void readTools(Parameters& parameters, Json& chat, Json& repeated) {
  repeated["tools"] = Json::array();
  const Json* tools = parameters.find("tools");
  if (!tools) return;
  if (!tools->is_array()) return parameters.wrong("tools", *tools, "a list of tools");
  chat["tools"] = Json::array();
  for (size_t i = 0; i < tools->size(); ++i) {
    const Json& tool = (*tools)[i];
    const std::string where = fmt::format("tools[{}]", i);
    if (!tool.is_object()) return parameters.wrong(where, tool, "an object of type function");
    if (tool.value("type", Json()) != "function")
      return parameters.refuse(
          where + ".type",
          fmt::format("{}.type: {} is not offered; this server calls no tools itself, and takes those of type function.", where,
                      shown(tool.value("type", Json()))));
    if (const auto name = tool.find("name"); name == tool.end() || !name->is_string())
      return parameters.wrong(where + ".name", name == tool.end() ? Json() : *name, "a string");
    chat["tools"].push_back(asChatFunction(tool));
    Json own{
        {"type", "function"}, {"name", tool["name"]}, {"description", nullptr}, {"parameters", nullptr}, {"strict", nullptr}};
    own.update(tool);
    repeated["tools"].push_back(std::move(own));
  }
}

void readToolChoice(Parameters& parameters, Json& chat, Json& shown) {
  shown["tool_choice"] = "auto";
  const Json* choice = parameters.find("tool_choice");
  if (!choice) return;
  shown["tool_choice"] = *choice;
  const char* expected = "none, auto, required, {\"type\": \"function\", \"name\": ...} or {\"type\": \"allowed_tools\", ...}";
  if (choice->is_string()) {
    chat["tool_choice"] = *choice;
    return;
  }
  if (!choice->is_object()) return parameters.wrong("tool_choice", *choice, expected);
  const Json type = choice->value("type", Json());
  if (type == "function") {
    if (textOf(*choice, "name").empty()) return parameters.wrong("tool_choice", *choice, expected);
    chat["tool_choice"] = asChatFunction(*choice);
    return;
  }
  if (type != "allowed_tools") return parameters.wrong("tool_choice", *choice, expected);
  Json tools = Json::array();
  if (const auto given = choice->find("tools"); given != choice->end() && given->is_array())
    for (const Json& tool : *given) {
      if (!tool.is_object() || tool.value("type", Json()) != "function")
        return parameters.wrong("tool_choice.tools", tool, "tools of type function with their name");
      tools.push_back(asChatFunction(tool));
    }
  chat["tool_choice"] = {{"type", "allowed_tools"},
                         {"allowed_tools", {{"mode", choice->value("mode", Json("auto"))}, {"tools", std::move(tools)}}}};
}

void readReasoning(Parameters& parameters, Json& chat, Json& shown) {
  shown["reasoning"] = {{"effort", nullptr}, {"summary", nullptr}};
  const Json* reasoning = parameters.object("reasoning");
  if (!reasoning) return;
  if (const Json effort = reasoning->value("effort", Json()); !effort.is_null()) {
    chat["reasoning_effort"] = effort;
    shown["reasoning"]["effort"] = effort;
  }
  for (const char* name : {"summary", "generate_summary"})
    if (const Json summary = reasoning->value(name, Json()); !summary.is_null() && summary != "auto")
      parameters.wrong(fmt::format("reasoning.{}", name), summary,
                       "auto; reasoning comes whole, as reasoning_text, without a summary");
}

// An error of the chat path in the words of this one.
ApiError inOwnWords(ApiError error) {
  for (const auto& [chat, own] :
       {std::pair{"response_format.json_schema", "text.format"}, std::pair{"response_format", "text.format"},
        std::pair{"max_completion_tokens", "max_output_tokens"}, std::pair{"reasoning_effort", "reasoning.effort"},
        std::pair{"].function", "]"}, std::pair{"tool_choice.allowed_tools", "tool_choice"}})
    for (std::string* text : {&error.message, &error.param})
      for (size_t at = 0; (at = text->find(chat, at)) != std::string::npos; at += std::string_view(own).size())
        text->replace(at, std::string_view(chat).size(), own);
  return error;
}

}  // namespace

ApiResult<ResponsesRequest> readResponsesRequest(const Json& body, const RequestBounds& bounds, const ResponseStore& store) {
  Parameters parameters(body);
  ResponsesRequest request;
  refuseWhatIsNotOffered(parameters);
  Json chat = body;
  for (const char* name : kOwnMembers) chat.erase(name);
  for (const char* name : {"logprobs", "n"}) chat.erase(name);

  request.items = itemsBefore(parameters, store);
  const size_t before = request.items.size();
  for (Json& item : ownItems(parameters, store)) request.items.push_back(std::move(item));
  Conversation conversation(parameters);
  const auto instructions = parameters.string("instructions");
  if (instructions) conversation.instruct(*instructions);
  for (size_t i = 0; i < request.items.size() && !parameters.error(); ++i) {
    const bool isText = i >= before && body["input"].is_string();
    conversation.add(request.items[i], i < before ? "previous_response_id"
                                       : isText   ? "input"
                                                  : fmt::format("input[{}]", i - before));
  }
  chat["messages"] = conversation.take();

  readMetadata(parameters);
  readInclude(parameters, chat);
  readFormat(parameters, chat, request.shown);
  readTools(parameters, chat, request.shown);
  readToolChoice(parameters, chat, request.shown);
  readReasoning(parameters, chat, request.shown);
  if (const auto most = parameters.integer("max_output_tokens", 1, std::numeric_limits<int32_t>::max()))
    chat["max_completion_tokens"] = *most;
  if (const Json* options = parameters.object("stream_options")) {
    if (!parameters.boolean("stream", false))
      parameters.refuse("stream_options", "stream_options: expected with \"stream\": true only.");
    Parameters inner(*options, "stream_options.");
    inner.boolean("include_obfuscation", true);  // padding of the events; there is none on a way that only your own machines see
    if (inner.error()) parameters.take(*inner.error());
  }
  request.isStored = parameters.boolean("store", true);
  const auto truncation = parameters.string("truncation");
  if (truncation && *truncation != "auto" && *truncation != "disabled")
    parameters.wrong("truncation", Json(*truncation), "auto or disabled");
  if (parameters.error()) return tl::unexpected(*parameters.error());

  auto read = readChatRequest(chat, bounds);
  if (!read) return tl::unexpected(inOwnWords(read.error()));
  request.chat = std::move(*read);
  request.chat.promptName = "input";
  request.chat.maxTokensName = "max_output_tokens";
  request.chat.dropsOldest = truncation == "auto";

  Json& shown = request.shown;
  auto repeat = [&](const char* name, Json absent) { shown[name] = body.contains(name) ? body[name] : std::move(absent); };
  repeat("instructions", nullptr);
  repeat("max_output_tokens", nullptr);
  repeat("max_tool_calls", nullptr);
  repeat("metadata", Json::object());
  repeat("parallel_tool_calls", true);
  repeat("previous_response_id", nullptr);
  repeat("prompt_cache_key", nullptr);
  repeat("safety_identifier", nullptr);
  repeat("temperature", 1.0);
  repeat("top_logprobs", 0);
  repeat("top_p", 1.0);
  repeat("truncation", "disabled");
  repeat("user", nullptr);
  shown["background"] = false;
  shown["service_tier"] = "default";
  shown["store"] = request.isStored;
  return request;
}

}  // namespace headroom::engine
