// SPDX-License-Identifier: Apache-2.0
// Finds a model's chat templates and the tokens they name, and renders requests with them.
#include "engine/text/chat_template.h"

#include "core/json_text.h"
#include "core/model/file_head.h"
#include "core/model/gguf_header.h"
#include "engine/text/jinja_interpreter.h"
#include "engine/text/jinja_parser.h"
#include "engine/text/json_fields.h"
#include "engine/text/unicode.h"

#include <map>

namespace headroom::engine {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using Variables = std::vector<std::pair<std::string, jinja::Value>>;

// What a model's files say: named sources, and its tokens by their names in templates.
struct Sources {
  std::map<std::string, std::string> named;
  std::vector<std::pair<std::string, std::string>> tokens;
};

constexpr int64_t kTextFileLimit = int64_t{64} << 20;

Result<std::string> readFile(const std::filesystem::path& file) {
  return readTextFile(file, kTextFileLimit);
}

// One template, or a list of {"name", "template"}.
void addTemplates(const json& found, Sources& sources) {
  if (found.is_string()) sources.named.emplace("default", found.get<std::string>());
  if (!found.is_array()) return;
  for (const json& entry : found)
    if (text::member(entry, "template").is_string())
      sources.named.emplace(text::word(entry, "name", "default"), text::word(entry, "template"));
}

void addTokens(const json& config, Sources& sources) {
  for (const char* name : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}) {
    const json& token = text::member(config, name);
    const json& content = token.is_object() ? text::member(token, "content") : token;
    if (content.is_string()) sources.tokens.emplace_back(name, content.get<std::string>());
  }
}

Result<Sources> fromFolder(const std::filesystem::path& folder) {
  Sources sources;
  std::error_code error;
  const auto exists = [&](const std::filesystem::path& file) { return std::filesystem::is_regular_file(file, error); };
  if (exists(folder / "chat_template.jinja")) {
    auto source = readFile(folder / "chat_template.jinja");
    if (!source) return tl::unexpected(source.error());
    sources.named.emplace("default", std::move(*source));
  }
  if (std::filesystem::is_directory(folder / "additional_chat_templates", error))
    for (const auto& entry : std::filesystem::directory_iterator(folder / "additional_chat_templates", error)) {
      if (entry.path().extension() != ".jinja") continue;
      auto source = readFile(entry.path());
      if (!source) return tl::unexpected(source.error());
      sources.named.emplace(entry.path().stem().string(), std::move(*source));
    }
  for (const char* name : {"tokenizer_config.json", "chat_template.json"}) {
    if (!exists(folder / name)) continue;
    auto source = readFile(folder / name);
    if (!source) return tl::unexpected(source.error());
    const json config = readJsonText(*source);
    if (!config.is_object())
      return failure((folder / name).string(), config.is_discarded() ? "no JSON" : config.type_name(), "a JSON object");
    addTemplates(text::member(config, "chat_template"), sources);
    if (name == std::string_view("tokenizer_config.json")) addTokens(config, sources);
  }
  return sources;
}

Result<Sources> fromGguf(const std::filesystem::path& file) {
  auto header = readGgufHeader(file, true);
  if (!header) return tl::unexpected(header.error());
  const json& metadata = header->metadata;
  Sources sources;
  for (const auto& [key, value] : metadata.items()) {
    constexpr std::string_view kPrefix = "tokenizer.chat_template";
    if (!key.starts_with(kPrefix) || !value.is_string()) continue;
    if (key == kPrefix) sources.named["default"] = value.get<std::string>();
    if (key.starts_with(std::string(kPrefix) + "."))
      sources.named.emplace(key.substr(kPrefix.size() + 1), value.get<std::string>());
  }
  const json& tokens = text::member(metadata, "tokenizer.ggml.tokens");
  for (auto [name, key] :
       {std::pair("bos_token", "tokenizer.ggml.bos_token_id"), std::pair("eos_token", "tokenizer.ggml.eos_token_id"),
        std::pair("unk_token", "tokenizer.ggml.unknown_token_id"), std::pair("pad_token", "tokenizer.ggml.padding_token_id")}) {
    const int64_t id = text::whole(metadata, key, -1);
    if (id >= 0 && id < static_cast<int64_t>(tokens.size()) && tokens[id].is_string())
      sources.tokens.emplace_back(name, tokens[id].get<std::string>());
  }
  return sources;
}

// Requests that are changed to fit a template: content parts joined, null as "", tool arguments as an object or as text.
struct Changes {
  bool parsesArguments = false, dumpsArguments = false, joinsParts = false, fillsNull = false;
};

void joinParts(ordered_json& content) {
  if (!content.is_array()) return;
  std::string joined;
  bool first = true;
  for (const auto& part : content) {
    const auto found = part.is_object() ? part.find("text") : part.end();
    if (!part.is_object() || found == part.end() || !found->is_string()) return;  // an image: not for us to drop
    if (!first) joined += "\n";
    first = false;
    joined += found->get<std::string>();
  }
  content = joined;
}

bool change(ordered_json& messages, const Changes& changes) {
  bool any = false;
  if (!messages.is_array()) return false;
  for (auto& message : messages) {
    if (!message.is_object()) continue;
    const auto content = message.find("content");
    if (content != message.end() && content->is_array() && changes.joinsParts) {
      joinParts(*content);
      any |= content->is_string();
    }
    if (content != message.end() && content->is_null() && changes.fillsNull) {
      *content = "";
      any = true;
    }
    const auto calls = message.find("tool_calls");
    if (calls == message.end() || !calls->is_array()) continue;
    for (auto& call : *calls) {
      if (!call.is_object() || !call.contains("function") || !call["function"].is_object() ||
          !call["function"].contains("arguments"))
        continue;
      auto& arguments = call["function"]["arguments"];
      if (arguments.is_string() && changes.parsesArguments) {
        auto parsed = readJsonText<ordered_json>(arguments.get_ref<const std::string&>());
        if (!parsed.is_object()) continue;
        arguments = std::move(parsed);
        any = true;
      } else if (arguments.is_object() && changes.dumpsArguments) {
        jinja::JsonStyle style;
        arguments = jinja::toJson(jinja::Value::fromJson(arguments), style);
        any = true;
      }
    }
  }
  return any;
}

class Template : public ChatTemplate {
 public:
  Template(std::string source, std::map<std::string, jinja::Body> bodies, Variables tokens)
      : m_source(std::move(source)), m_bodies(std::move(bodies)), m_tokens(std::move(tokens)) {}

  const std::string& source() const override { return m_source; }

  Result<std::string> render(const ordered_json& request) const override {
    if (!request.is_object()) return failure("chat request", request.type_name(), "an object with messages");
    if (!request.contains("messages") || !request["messages"].is_array())
      return failure("chat request", "no messages", "a list \"messages\"");
    try {
      // As OpenAI's clients send it arguments are text; templates mostly want the object. What a template refuses is tried
      // otherwise.
      ordered_json messages = request["messages"];
      const bool parsed = change(messages, {.parsesArguments = true});
      auto prompt = attempt(request, messages);
      if (prompt && !showsParts(request["messages"], *prompt)) return prompt;
      const Result<std::string> first = parsed ? attempt(request, request["messages"]) : prompt;
      if (first && !prompt && !showsParts(request["messages"], *first)) return first;
      for (const Changes& changes :
           {Changes{.parsesArguments = true, .joinsParts = true}, Changes{.dumpsArguments = true, .joinsParts = true},
            Changes{.parsesArguments = true, .joinsParts = true, .fillsNull = true},
            Changes{.dumpsArguments = true, .joinsParts = true, .fillsNull = true}}) {
        ordered_json fitted = request["messages"];
        if (!change(fitted, changes)) continue;
        auto other = attempt(request, fitted);
        if (other) return other;
      }
      return prompt ? prompt : first;
    } catch (const jinja::WorkFault& fault) {
      return failure("chat template", fault.what());
    } catch (const std::exception& fault) {  // a request nested too deep
      return failure("chat request", fault.what());
    }
  }

 private:
  // Whether a list of content parts was printed the way Python prints it.
  static bool showsParts(const ordered_json& messages, const std::string& prompt) {
    for (const auto& message : messages) {
      const auto content = message.is_object() ? message.find("content") : message.end();
      if (message.is_object() && content != message.end() && content->is_array() && !content->empty() &&
          prompt.find(jinja::Value::fromJson(*content).str()) != std::string::npos)
        return true;
    }
    return false;
  }

  Result<std::string> attempt(const ordered_json& request, const ordered_json& messages) const {
    Variables variables = m_tokens;
    const auto set = [&](const std::string& name, jinja::Value value) {
      for (auto& [known, old] : variables)
        if (known == name) {
          old = std::move(value);
          return;
        }
      variables.emplace_back(name, std::move(value));
    };
    const auto given = [&](const char* name, jinja::Value otherwise) {
      set(name, request.contains(name) ? jinja::Value::fromJson(request[name]) : std::move(otherwise));
    };
    try {
      if (request.contains("chat_template_kwargs") && request["chat_template_kwargs"].is_object())
        for (const auto& [name, value] : request["chat_template_kwargs"].items()) set(name, jinja::Value::fromJson(value));
      set("messages", jinja::Value::fromJson(messages));
      given("tools", jinja::Value::none());
      given("documents", jinja::Value::none());
      given("add_generation_prompt", jinja::Value(true));
      const bool withTools = request.contains("tools") && request["tools"].is_array() && !request["tools"].empty();
      const auto toolUse = m_bodies.find("tool_use");
      const auto& body = withTools && toolUse != m_bodies.end() ? toolUse->second : m_bodies.at("default");
      jinja::Interpreter interpreter(std::move(variables));
      return interpreter.render(body);
    } catch (const jinja::WorkFault&) {
      throw;
    } catch (const jinja::Fault& fault) {
      return failure("chat template", fault.what());
    }
  }

  std::string m_source;
  std::map<std::string, jinja::Body> m_bodies;
  Variables m_tokens;
};

}  // namespace

Result<std::unique_ptr<ChatTemplate>> ChatTemplate::open(const std::filesystem::path& path) {
  std::error_code error;
  const bool gguf = path.extension() == ".gguf";
  const auto folder = std::filesystem::is_directory(path, error) ? path : path.parent_path();
  if (!std::filesystem::exists(path, error)) return failure(path.string(), "no such file or folder", "a model folder or a .gguf");
  auto sources = gguf ? fromGguf(path) : fromFolder(folder);
  if (!sources) return tl::unexpected(sources.error());
  if (sources->named.empty())
    return failure(path.string(), "no chat template", "chat_template.jinja or chat_template in tokenizer_config.json",
                   "use completions, or a model tuned for chat");
  if (!sources->named.count("default")) sources->named["default"] = sources->named.begin()->second;
  std::map<std::string, jinja::Body> bodies;
  Variables tokens;
  for (const auto& [name, source] : sources->named) {
    try {
      bodies[name] = jinja::parse(source);
    } catch (const jinja::Fault& fault) {
      return failure(path.string() + ", chat template \"" + name + "\"", fault.what(), "a Jinja template");
    }
  }
  for (auto& [name, value] : sources->tokens) tokens.emplace_back(name, jinja::Value(text::toValidUtf8(value)));
  return std::make_unique<Template>(sources->named["default"], std::move(bodies), std::move(tokens));
}

}  // namespace headroom::engine
