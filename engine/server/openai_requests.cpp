// SPDX-License-Identifier: Apache-2.0
#include "engine/server/openai_requests.h"

#include "engine/server/parameters.h"
#include "engine/server/structured_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <limits>

namespace headroom::engine {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxChoices = 128;      // OpenAI's limit of n
constexpr int kMaxLogprobs = 20;      // OpenAI's and vLLM's
constexpr size_t kMaxPrompts = 2048;  // OpenAI's limit of a list
constexpr size_t kMaxSequences = 4096;

void readModel(Parameters& parameters, const RequestBounds& bounds) {
  const Json* model = parameters.find("model");
  if (!model) return;
  if (!model->is_string()) return parameters.wrong("model", *model, "a string");
  if (model->get<std::string>() == bounds.modelName) return;
  parameters.take({404,
                   fmt::format("The model {} does not exist; this server has {}.", shown(*model), jsonString(bounds.modelName)),
                   "model", "invalid_request_error", "model_not_found"});
}

std::optional<TokenIds> tokenIds(Parameters& parameters, const char* name, const Json& list, int64_t vocabSize) {
  TokenIds ids;
  ids.reserve(list.size());
  for (const Json& item : list) {
    const auto id = Parameters::integerIn(item, 0, vocabSize - 1);
    if (!id) {
      parameters.wrong(name, item, fmt::format("token ids from 0 to {}", vocabSize - 1));
      return std::nullopt;
    }
    ids.push_back(static_cast<int32_t>(*id));
  }
  return ids;
}

void readLogitBias(Parameters& parameters, SamplingParams& sampling, int64_t vocabSize) {
  const Json* bias = parameters.object("logit_bias");
  if (!bias) return;
  for (const auto& [key, value] : bias->items()) {
    int64_t id = -1;
    const auto [end, problem] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (problem != std::errc() || end != key.data() + key.size() || id < 0 || id >= vocabSize)
      return parameters.wrong("logit_bias", Json(key), fmt::format("token ids from 0 to {} as keys", vocabSize - 1));
    const double amount = value.is_number() ? value.get<double>() : 1000;
    if (!(amount >= -100 && amount <= 100)) return parameters.wrong("logit_bias", value, "numbers from -100 to 100");
    sampling.logitBias.emplace_back(static_cast<int32_t>(id), static_cast<float>(amount));
  }
}

void readStops(Parameters& parameters, OpenAiRequest& request) {
  const char* expected = "a string or a list of up to 256 strings, none of them empty";
  if (const Json* stop = parameters.find("stop")) {
    if (stop->is_string())
      request.stop.push_back(stop->get<std::string>());
    else if (stop->is_array() && stop->size() <= 256) {
      for (const Json& item : *stop) {
        if (!item.is_string()) return parameters.wrong("stop", *stop, expected);
        request.stop.push_back(item.get<std::string>());
      }
    } else
      return parameters.wrong("stop", *stop, expected);
    if (std::any_of(request.stop.begin(), request.stop.end(), [](const std::string& text) { return text.empty(); }))
      parameters.wrong("stop", *stop, expected);
  }
}

void readSampling(Parameters& parameters, OpenAiRequest& request, const RequestBounds& bounds) {
  SamplingParams& sampling = request.sampling;
  constexpr double kHuge = std::numeric_limits<double>::max();
  if (auto v = parameters.number("temperature", 0, kHuge, "a number of at least 0")) sampling.temperature = *v;
  if (auto v = parameters.number("top_p", std::numeric_limits<double>::denorm_min(), 1, "a number above 0, up to 1"))
    sampling.topP = *v;
  if (auto v = parameters.number("min_p", 0, 1, "a number from 0 to 1")) sampling.minP = *v;
  if (auto v = parameters.integer("top_k", -1)) sampling.topK = std::max<int64_t>(*v, 0);
  if (auto v = parameters.number("presence_penalty", -2, 2, "a number from -2 to 2")) sampling.presencePenalty = *v;
  if (auto v = parameters.number("frequency_penalty", -2, 2, "a number from -2 to 2")) sampling.frequencyPenalty = *v;
  if (auto v = parameters.number("repetition_penalty", std::numeric_limits<double>::denorm_min(), kHuge, "a number above 0"))
    sampling.repetitionPenalty = *v;
  if (auto v = parameters.integer("seed", std::numeric_limits<int64_t>::min())) sampling.seed = *v;
  if (auto v = parameters.integer("min_tokens", 0)) sampling.minTokens = *v;
  sampling.ignoreEos = parameters.boolean("ignore_eos", false);
  readLogitBias(parameters, sampling, bounds.vocabSize);
  readStops(parameters, request);
  if (const Json* stop = parameters.find("stop_token_ids")) {
    if (!stop->is_array())
      parameters.wrong("stop_token_ids", *stop, "a list of token ids");
    else if (auto ids = tokenIds(parameters, "stop_token_ids", *stop, bounds.vocabSize))
      sampling.stopTokenIds = *ids;
  }
  if (auto v = parameters.integer("prompt_logprobs", 0, kMaxLogprobs)) sampling.promptLogprobs = static_cast<int>(*v);
}

void readTruncation(Parameters& parameters, OpenAiRequest& request) {
  const auto keep = parameters.integer("truncate_prompt_tokens", -1);
  if (keep && *keep == 0) parameters.wrong("truncate_prompt_tokens", std::string("0"), "-1 or an integer of at least 1");
  request.truncatePromptTokens = keep;
}

// What completions and chats have in common.
void readCommon(Parameters& parameters, OpenAiRequest& request, const RequestBounds& bounds) {
  readModel(parameters, bounds);
  readSampling(parameters, request, bounds);
  if (auto v = parameters.integer("n", 1, kMaxChoices)) request.n = static_cast<int>(*v);
  request.bestOf = request.n;
  if (auto v = parameters.integer("priority", std::numeric_limits<int>::min(), std::numeric_limits<int>::max()))
    request.priority = static_cast<int>(*v);
  request.stream = parameters.boolean("stream", false);
  if (const Json* options = parameters.object("stream_options")) {
    Parameters inner(*options, "stream_options.");
    request.includeUsage = inner.boolean("include_usage", false);
    request.continuousUsage = inner.boolean("continuous_usage_stats", false);
    if (inner.error()) parameters.take(*inner.error());
    if (!request.stream) parameters.refuse("stream_options", "stream_options: expected with \"stream\": true only.");
  }
  request.includeStop = parameters.boolean("include_stop_str_in_output", false);
  request.skipSpecialTokens = parameters.boolean("skip_special_tokens", true);
  request.returnTokenIds = parameters.boolean("return_token_ids", false);
  readTruncation(parameters, request);
  if (request.stream && request.sampling.promptLogprobs)
    parameters.refuse("prompt_logprobs", "prompt_logprobs: expected without \"stream\": true only.");
}

void readMaxTokens(Parameters& parameters, OpenAiRequest& request, const char* name, int64_t least) {
  // Beyond int32 no context is ever that long: refused as a value, not as a sum that overflows.
  if (auto v = parameters.integer(name, least, std::numeric_limits<int32_t>::max())) {
    request.maxTokens = *v;
    request.maxTokensName = name;
  }
}

void checkMinTokens(Parameters& parameters, const OpenAiRequest& request) {
  if (request.maxTokens && request.sampling.minTokens > *request.maxTokens)
    parameters.wrong("min_tokens", std::to_string(request.sampling.minTokens),
                     fmt::format("at most {}, which is {}", request.maxTokensName, *request.maxTokens));
}

// The form of the answer. A grammar of forced calls stands already where there is one.
void readForm(Parameters& parameters, const Json& body, OpenAiRequest& request) {
  auto grammar = readStructuredOutput(body, request.frame);
  if (!grammar) return parameters.take(grammar.error());
  if (!*grammar) return;
  if (request.grammar && request.tools.isForced)
    return parameters.refuse("tool_choice",
                             "tool_choice: found forced calls beside a form of the answer, expected one of the two.");
  request.grammar = std::move(*grammar);
  request.tools.reads = false;  // the form leaves no room for calls
}

// ---- completions

void readPrompts(Parameters& parameters, OpenAiRequest& request, const RequestBounds& bounds) {
  const char* expected = "a string, a list of strings, a list of token ids or a list of lists of token ids, none of them empty";
  const char* name = request.promptName.c_str();
  const Json* prompt = parameters.find(name);
  if (!prompt) return parameters.refuse(name, fmt::format("{}: is missing, expected {}.", name, expected));
  if (prompt->is_string()) return void(request.prompts.emplace_back(prompt->get<std::string>()));
  if (!prompt->is_array() || prompt->empty()) return parameters.wrong(name, *prompt, expected);
  if (prompt->front().is_number()) {
    if (auto ids = tokenIds(parameters, name, *prompt, bounds.vocabSize)) request.prompts.emplace_back(std::move(*ids));
    return;
  }
  if (prompt->size() > kMaxPrompts)
    return parameters.wrong(name, fmt::format("{} prompts", prompt->size()), fmt::format("at most {}", kMaxPrompts));
  for (const Json& item : *prompt) {
    if (item.is_string()) {
      request.prompts.emplace_back(item.get<std::string>());
    } else if (item.is_array() && !item.empty()) {
      auto ids = tokenIds(parameters, name, item, bounds.vocabSize);
      if (!ids) return;
      request.prompts.emplace_back(std::move(*ids));
    } else {
      return parameters.wrong(name, item, expected);
    }
  }
}

// ---- chats

bool isRole(std::string_view role) {
  constexpr std::array<std::string_view, 6> kRoles{"system", "developer", "user", "assistant", "tool", "function"};
  return std::find(kRoles.begin(), kRoles.end(), role) != kRoles.end();
}

}  // namespace

std::optional<Json> readContent(Parameters& parameters, const Json& content, const std::string& where) {
  if (content.is_string()) return content;
  if (!content.is_array()) {
    parameters.wrong(where, content, "a string or a list of text parts");
    return std::nullopt;
  }
  std::string text;
  for (const Json& part : content) {
    const auto type = part.is_object() ? part.find("type") : part.end();
    if (part.is_string()) {
      text += (text.empty() ? "" : "\n") + part.get<std::string>();
      continue;
    }
    if (!part.is_object() || type == part.end() || !type->is_string()) {
      parameters.wrong(where, part, "parts of type text");
      return std::nullopt;
    }
    const std::string kind = type->get<std::string>();
    const char* name = kind == "refusal" ? "refusal" : "text";
    const auto field = part.find(name);
    if (kind != "text" && kind != "input_text" && kind != "output_text" && kind != "refusal") {
      parameters.refuse(where,
                        fmt::format("{}: parts of type {} are not supported; this server takes text.", where, jsonString(kind)));
      return std::nullopt;
    }
    if (field == part.end() || !field->is_string()) {
      parameters.wrong(where + "." + name, field == part.end() ? Json() : *field, "a string");
      return std::nullopt;
    }
    if (!text.empty()) text += '\n';
    text += field->get<std::string>();
  }
  return Json(text);
}

namespace {

void readMessages(Parameters& parameters, Json& conversation) {
  const Json* messages = parameters.find("messages");
  if (!messages) return parameters.refuse("messages", "messages: is missing, expected a list of messages.");
  if (!messages->is_array() || messages->empty())
    return parameters.wrong("messages", *messages, "a list of at least one message");
  Json checked = Json::array();
  for (size_t i = 0; i < messages->size(); ++i) {
    const Json& message = (*messages)[i];
    const std::string where = fmt::format("messages[{}]", i);
    if (!message.is_object()) return parameters.wrong(where, message, "an object with role and content");
    const auto role = message.find("role");
    if (role == message.end() || !role->is_string() || !isRole(role->get<std::string>()))
      return parameters.wrong(where + ".role", role == message.end() ? Json() : *role,
                              "system, developer, user, assistant or tool");
    Json copy = message;
    const auto content = message.find("content");
    const bool absent = content == message.end() || content->is_null();
    const auto calls = message.find("tool_calls");
    const bool hasCalls = calls != message.end() && !calls->is_null();
    if (hasCalls && !calls->is_array()) return parameters.wrong(where + ".tool_calls", *calls, "a list of calls");
    if (absent && !(role->get<std::string>() == "assistant" &&
                    (hasCalls || message.contains("reasoning_content") || message.contains("refusal"))))
      return parameters.wrong(where + ".content", Json(), "a string or a list of text parts");
    // Clients leave it out or write null; templates know the latter.
    if (absent) {
      copy["content"] = nullptr;
    } else {
      auto text = readContent(parameters, *content, where + ".content");
      if (!text) return;
      copy["content"] = std::move(*text);
    }
    checked.push_back(std::move(copy));
  }
  conversation["messages"] = std::move(checked);
}

bool isToolName(std::string_view name) {
  return !name.empty() && name.size() <= 128 && std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || std::string_view("._-:/").find(c) != std::string_view::npos;
  });
}

// The name in {"function": {"name": …}}.
std::optional<std::string> nameOfFunction(const Json& tool) {
  if (!tool.is_object()) return std::nullopt;
  const auto function = tool.find("function");
  if (function == tool.end() || !function->is_object() || !function->contains("name") || !(*function)["name"].is_string())
    return std::nullopt;
  return (*function)["name"].get<std::string>();
}

void readTools(Parameters& parameters, Json& conversation) {
  const Json* tools = parameters.find("tools");
  if (!tools) return;
  if (!tools->is_array()) return parameters.wrong("tools", *tools, "a list of tools");
  for (size_t i = 0; i < tools->size(); ++i) {
    const Json& tool = (*tools)[i];
    const std::string where = fmt::format("tools[{}]", i);
    if (!tool.is_object()) return parameters.wrong(where, tool, "an object of type function");
    const auto type = tool.find("type");
    if (type == tool.end() || *type != "function")
      return parameters.wrong(where + ".type", type == tool.end() ? Json() : *type, "function");
    const auto function = tool.find("function");
    const auto name = nameOfFunction(tool);
    if (!name) return parameters.wrong(where + ".function", function == tool.end() ? Json() : *function, "an object with a name");
    if (!isToolName(*name))
      return parameters.wrong(where + ".function.name", Json(*name), "up to 128 letters, digits, and . _ - : /");
    const auto schema = function->find("parameters");
    if (schema != function->end() && !schema->is_null() && !schema->is_object())
      return parameters.wrong(where + ".function.parameters", *schema, "an object, a JSON schema");
    if (const auto strict = function->find("strict"); strict != function->end() && !strict->is_null() && !strict->is_boolean())
      return parameters.wrong(where + ".function.strict", *strict, "true or false");
  }
  if (!tools->empty()) conversation["tools"] = *tools;
}

// {"type": "allowed_tools", "allowed_tools": {"mode": "auto" or "required", "tools": […]}}
bool readAllowedTools(Parameters& parameters, const Json& choice, std::string& word, std::vector<std::string>& allowed) {
  const auto holder = choice.find("allowed_tools");
  const Json found = holder == choice.end() ? Json() : *holder;
  const Json mode = found.is_object() ? found.value("mode", Json()) : Json();
  const Json tools = found.is_object() ? found.value("tools", Json()) : Json();
  if ((mode != "auto" && mode != "required") || !tools.is_array() || tools.empty()) {
    parameters.wrong("tool_choice.allowed_tools", found, "an object with mode, auto or required, and a list of tools");
    return false;
  }
  word = mode.get<std::string>();
  for (const Json& tool : tools) {
    const auto name = nameOfFunction(tool);
    if (!name) return parameters.wrong("tool_choice.allowed_tools.tools", tool, "tools of type function with their name"), false;
    allowed.push_back(*name);
  }
  return true;
}

// How the tools are used; forced calls get their grammar.
void readToolChoice(Parameters& parameters, OpenAiRequest& request, const RequestBounds& bounds) {
  const Json* choice = parameters.find("tool_choice");
  const bool hasTools = request.conversation.contains("tools");
  ToolUse& use = request.tools;
  use.form = bounds.toolCalls;
  use.parallel = parameters.boolean("parallel_tool_calls", true);
  if (hasTools)
    for (const Json& tool : request.conversation["tools"]) {
      use.names.push_back(tool["function"]["name"].get<std::string>());
      use.schemas.push_back(tool["function"].value("parameters", Json()));
    }
  std::string word = hasTools ? "auto" : "none", only;
  std::vector<std::string> allowed;  // empty: all
  const char* expected =
      "none, auto, required, {\"type\": \"function\", \"function\": {\"name\": ...}} or an object of type allowed_tools";
  if (choice && choice->is_string()) {
    word = choice->get<std::string>();
    if (word != "none" && word != "auto" && word != "required") return parameters.wrong("tool_choice", *choice, expected);
  } else if (choice && choice->is_object() && choice->value("type", Json()) == "allowed_tools") {
    if (!readAllowedTools(parameters, *choice, word, allowed)) return;
  } else if (choice) {
    const auto name = nameOfFunction(*choice);
    if (!name) return parameters.wrong("tool_choice", *choice, expected);
    word = "named";
    only = *name;
  }
  if (word == "none" || (word == "auto" && !hasTools && allowed.empty())) return;
  if (!hasTools) return parameters.refuse("tool_choice", fmt::format("tool_choice: found {} without tools.", shown(*choice)));
  if (word == "named" && only.empty()) return parameters.wrong("tool_choice", *choice, "the name of a function");
  if (!only.empty()) allowed = {only};
  for (const std::string& name : allowed)
    if (std::find(use.names.begin(), use.names.end(), name) == use.names.end())
      return parameters.refuse("tool_choice",
                               fmt::format("tool_choice: found {}, which is none of the tools.", jsonString(name)));
  use.reads = true;
  use.isForced = word != "auto";
  if (!only.empty()) use.parallel = false;
  if (parameters.error()) return;
  // What may be called: the model sees the other tools too.
  Json callable = Json::array();
  for (const Json& tool : request.conversation["tools"])
    if (allowed.empty() ||
        std::find(allowed.begin(), allowed.end(), tool["function"]["name"].get<std::string>()) != allowed.end())
      callable.push_back(tool);
  // Free calls follow their schema where a tool says so.
  const bool isStrict = std::any_of(callable.begin(), callable.end(),
                                    [](const Json& tool) { return tool["function"].value("strict", Json()) == true; });
  if (!use.isForced && !isStrict && callable.size() == use.names.size()) return;
  auto grammar = use.isForced ? toolCallGrammar(callable, only, use.parallel, use.form, request.frame)
                              : freeCallGrammar(callable, use.parallel, use.form, request.frame);
  if (!grammar) return parameters.take(grammar.error());
  request.grammar = std::move(*grammar);
}

void readTemplateOptions(Parameters& parameters, Json& conversation) {
  conversation["add_generation_prompt"] = parameters.boolean("add_generation_prompt", true);
  if (const Json* kwargs = parameters.object("chat_template_kwargs")) conversation["chat_template_kwargs"] = *kwargs;
  // Templates have one of two switches: gpt-oss and others take the effort, most a yes or no.
  if (const auto effort = parameters.string("reasoning_effort")) {
    constexpr std::array<std::string_view, 6> kEfforts{"none", "minimal", "low", "medium", "high", "xhigh"};
    if (std::find(kEfforts.begin(), kEfforts.end(), *effort) == kEfforts.end())
      return parameters.wrong("reasoning_effort", Json(*effort), "none, minimal, low, medium, high or xhigh");
    Json& kwargs = conversation["chat_template_kwargs"];
    if (!kwargs.contains("reasoning_effort")) kwargs["reasoning_effort"] = *effort;
    if (*effort == "none" && !kwargs.contains("enable_thinking")) kwargs["enable_thinking"] = false;
  }
  if (const Json* documents = parameters.find("documents")) {
    if (!documents->is_array()) parameters.wrong("documents", *documents, "a list of documents");
    conversation["documents"] = *documents;
  }
  if (parameters.boolean("continue_final_message", false)) parameters.unsupported("continue_final_message");
  if (parameters.find("chat_template")) parameters.unsupported("chat_template");
}

}  // namespace

ApiResult<OpenAiRequest> readCompletionRequest(const Json& body, const RequestBounds& bounds) {
  Parameters parameters(body);
  OpenAiRequest request;
  readPrompts(parameters, request, bounds);
  readCommon(parameters, request, bounds);
  request.echo = parameters.boolean("echo", false);
  // With echo alone nothing needs to be generated: the prompt is scored.
  readMaxTokens(parameters, request, "max_tokens", request.echo && !request.stream ? 0 : 1);
  checkMinTokens(parameters, request);
  if (auto v = parameters.integer("logprobs", 0, kMaxLogprobs)) request.logprobs = static_cast<int>(*v);
  if (const auto bestOf = parameters.integer("best_of", 1, kMaxChoices)) {
    request.bestOf = static_cast<int>(*bestOf);
    if (request.bestOf < request.n)
      parameters.wrong("best_of", std::to_string(request.bestOf), fmt::format("at least n, which is {}", request.n));
    else if (request.bestOf > request.n && request.stream)
      parameters.refuse("best_of", "best_of: more than n cannot be streamed.");
  }
  if (request.prompts.size() * static_cast<size_t>(request.bestOf) > kMaxSequences)
    parameters.refuse("n", fmt::format("n: {} prompts with {} choices each; at most {} together.", request.prompts.size(),
                                       request.bestOf, kMaxSequences));
  request.addSpecialTokens = parameters.boolean("add_special_tokens", true);
  if (const Json* suffix = parameters.find("suffix"); suffix && !(suffix->is_string() && suffix->get<std::string>().empty()))
    parameters.unsupported("suffix");
  for (const char* name : {"use_beam_search", "prompt_embeds", "logits_processors"})
    if (const Json* value = parameters.find(name); value && *value != false) parameters.unsupported(name);
  readForm(parameters, body, request);
  request.sampling.logprobs = request.logprobs;
  if (request.bestOf > request.n && !request.sampling.logprobs) request.sampling.logprobs = 0;
  if (request.echo && request.logprobs)
    request.sampling.promptLogprobs = std::max(request.sampling.promptLogprobs.value_or(0), *request.logprobs);
  if (request.stream && request.echo && request.logprobs)
    parameters.refuse("logprobs", "logprobs: together with echo it cannot be streamed.");
  return resultOf(parameters, std::move(request));
}

ApiResult<OpenAiRequest> readChatRequest(const Json& body, const RequestBounds& bounds) {
  Parameters parameters(body);
  OpenAiRequest request;
  request.chat = true;
  request.promptName = "messages";
  request.frame = bounds.frame();
  request.tools.form = bounds.toolCalls;
  request.includeReasoning = parameters.boolean("include_reasoning", true);
  readMessages(parameters, request.conversation);
  readCommon(parameters, request, bounds);
  readMaxTokens(parameters, request, "max_tokens", 1);
  readMaxTokens(parameters, request, "max_completion_tokens", 1);
  checkMinTokens(parameters, request);
  const bool wantsLogprobs = parameters.boolean("logprobs", false);
  const auto top = parameters.integer("top_logprobs", 0, kMaxLogprobs);
  if (top && *top > 0 && !wantsLogprobs)
    parameters.refuse("top_logprobs", "top_logprobs: expected with \"logprobs\": true only.");
  if (wantsLogprobs) request.logprobs = static_cast<int>(top.value_or(0));
  request.sampling.logprobs = request.logprobs;
  // A template spells the special tokens itself.
  request.addSpecialTokens = parameters.boolean("add_special_tokens", false);
  readTemplateOptions(parameters, request.conversation);
  readTools(parameters, request.conversation);
  readToolChoice(parameters, request, bounds);
  for (const char* name :
       {"functions", "function_call", "audio", "modalities", "prediction", "web_search_options", "use_beam_search", "echo"})
    if (const Json* value = parameters.find(name);
        value && *value != false && *value != Json::array({"text"}) && *value != "none")
      parameters.unsupported(name);
  readForm(parameters, body, request);
  return resultOf(parameters, std::move(request));
}

ApiResult<EmbeddingRequest> readEmbeddingRequest(const Json& body, const RequestBounds& bounds, const EmbeddingConfig& config,
                                                 int64_t hiddenSize) {
  Parameters parameters(body);
  EmbeddingRequest request;
  OpenAiRequest& prompts = request.prompts;
  prompts.promptName = "input";
  prompts.pooling = config.pooling;
  readModel(parameters, bounds);
  readPrompts(parameters, prompts, bounds);
  prompts.addSpecialTokens = parameters.boolean("add_special_tokens", true);
  readTruncation(parameters, prompts);
  if (auto v = parameters.integer("priority", std::numeric_limits<int>::min(), std::numeric_limits<int>::max()))
    prompts.priority = static_cast<int>(*v);
  request.dimensions = parameters.integer("dimensions", 1, hiddenSize);
  request.normalizes = parameters.boolean("normalize", config.normalizes);
  if (const auto format = parameters.string("encoding_format")) {
    if (*format != "float" && *format != "base64") parameters.wrong("encoding_format", Json(*format), "float or base64");
    request.isBase64 = *format == "base64";
  }
  for (const char* name : {"messages", "stream"})
    if (const Json* value = parameters.find(name); value && *value != false) parameters.unsupported(name);
  return resultOf(parameters, std::move(request));
}

ApiResult<TokenizeRequest> readTokenizeRequest(const Json& body, const RequestBounds& bounds) {
  Parameters parameters(body);
  TokenizeRequest request;
  readModel(parameters, bounds);
  const Json* prompt = parameters.find("prompt");
  if (prompt && !prompt->is_string())
    parameters.wrong("prompt", *prompt, "a string");
  else if (prompt)
    request.prompt = prompt->get<std::string>();
  else if (!parameters.find("messages"))
    parameters.refuse("prompt", "prompt: is missing, expected a string, or messages.");
  else {
    readMessages(parameters, request.conversation);
    readTools(parameters, request.conversation);
    readTemplateOptions(parameters, request.conversation);
  }
  request.addSpecialTokens = parameters.boolean("add_special_tokens", prompt != nullptr);
  request.returnTokenStrings = parameters.boolean("return_token_strs", false);
  return resultOf(parameters, std::move(request));
}

ApiResult<TokenIds> readDetokenizeRequest(const Json& body, const RequestBounds& bounds) {
  Parameters parameters(body);
  readModel(parameters, bounds);
  TokenIds ids;
  const Json* tokens = parameters.find("tokens");
  if (!tokens || !tokens->is_array())
    parameters.wrong("tokens", tokens ? *tokens : Json(), "a list of token ids");
  else if (auto found = tokenIds(parameters, "tokens", *tokens, bounds.vocabSize))
    ids = std::move(*found);
  return resultOf(parameters, std::move(ids));
}

ApiResult<int64_t> fitToContext(const OpenAiRequest& request, TokenIds& prompt, const RequestBounds& bounds) {
  const std::string& name = request.promptName;
  auto refuse = [](const std::string& param, std::string message) {
    return tl::unexpected(ApiError{400, std::move(message), param, "invalid_request_error", "context_length_exceeded"});
  };
  if (request.truncatePromptTokens) {
    const int64_t keep = *request.truncatePromptTokens < 0
                             ? bounds.maxModelLen - (request.pooling ? 0 : std::max<int64_t>(request.maxTokens.value_or(1), 1))
                             : *request.truncatePromptTokens;
    if (const auto length = static_cast<int64_t>(prompt.size()); keep > 0 && length > keep)
      prompt.erase(prompt.begin(), prompt.end() - keep);
  }
  const auto length = static_cast<int64_t>(prompt.size());
  if (request.pooling && length > bounds.maxModelLen)
    return refuse(name, fmt::format("{}: has {} tokens; this model's maximum context length is {} tokens.", name, length,
                                    bounds.maxModelLen));
  if (request.pooling && length > 0) return 0;
  if (length == 0)
    return tl::unexpected(
        ApiError{400, fmt::format("{}: has no tokens; expected at least one.", name), name, "invalid_request_error", ""});
  if (length >= bounds.maxModelLen)
    return refuse(name,
                  fmt::format("{}: has {} tokens; this model's maximum context length is {} tokens, prompt and answer together.",
                              name, length, bounds.maxModelLen));
  const int64_t room = bounds.maxModelLen - length;
  if (!request.maxTokens) return request.chat ? room : std::min<int64_t>(16, room);
  if (*request.maxTokens > room)
    return refuse(
        request.maxTokensName,
        fmt::format("{}: {} tokens after a prompt of {} tokens are {}; this model's maximum context length is {} tokens.",
                    request.maxTokensName, *request.maxTokens, length, *request.maxTokens + length, bounds.maxModelLen));
  return std::max<int64_t>(*request.maxTokens, 1);
}

}  // namespace headroom::engine
