// SPDX-License-Identifier: Apache-2.0
#include "engine/server/response_generation.h"

#include <fmt/format.h>

#include <ctime>

namespace headroom::engine {
namespace {

using Json = nlohmann::ordered_json;

std::string membersOf(const Json& object) {
  const std::string text = dumpJson(object);
  return text.substr(1, text.size() - 2);
}

}  // namespace

ResponseGeneration::ResponseGeneration(std::shared_ptr<HttpExchange> exchange, std::shared_ptr<ServedModel> model,
                                       ResponsesRequest request, std::vector<PreparedPrompt> prompts,
                                       std::shared_ptr<ResponseStore> store)
    : Generation(std::move(exchange), std::move(model), std::move(request.chat), std::move(prompts)),
      m_id(randomId("resp_")),
      m_shown(membersOf(request.shown)),
      m_isStored(request.isStored),
      m_items(std::move(request.items)),
      m_store(std::move(store)),
      m_output(m_request.stream) {
  if (!m_request.stream) return;
  // They go out with the first token, so that what fails before it is an error of HTTP.
  const std::string begun = object("in_progress");
  m_output.tell("response.created", begun);
  m_output.tell("response.in_progress", begun);
}

void ResponseGeneration::takeAnswer(Choice& choice, std::string reasoning, std::string text,
                                    std::vector<ToolCallReader::Part> calls) {
  m_output.addReasoning(reasoning);
  std::string logprobs;
  if (m_request.logprobs && !choice.logprobs.empty() && !text.empty()) {
    logprobs = logprobsJson(choice.logprobs);
    logprobs = logprobs.substr(1, logprobs.size() - 2);
  }
  m_output.addText(text, logprobs);
  for (const ToolCallReader::Part& part : calls) m_output.addCall(part);
  // Tokens that are no text have no place in a message.
  if (!text.empty() || !reasoning.empty() || !calls.empty()) choice.logprobs.clear();
}

std::string_view ResponseGeneration::finalStatus() const {
  const std::string& reason = m_choices.front().finishReason;
  return reason == "length" ? "incomplete" : reason == "abort" ? "failed" : "completed";
}

std::string ResponseGeneration::object(std::string_view status, const ApiError* error) const {
  const bool isOver = status != "in_progress";
  std::string usage = "null";
  if (isOver && !m_choices.empty()) {
    const Choice& choice = m_choices.front();
    const auto input = static_cast<int64_t>(m_prompts.front().tokens.size());
    usage =
        fmt::format(R"({{"input_tokens":{},"input_tokens_details":{{"cached_tokens":{}}},"output_tokens":{},)"
                    R"("output_tokens_details":{{"reasoning_tokens":{}}},"total_tokens":{}}})",
                    input, choice.cachedTokens, choice.completionTokens, choice.reasoningTokens, input + choice.completionTokens);
  }
  const std::string problem =
      error ? fmt::format(R"({{"code":"server_error","message":{}}})", jsonString(error->message)) : std::string("null");
  return fmt::format(
      R"({{"id":"{}","object":"response","created_at":{},"completed_at":{},"status":"{}","error":{},"incomplete_details":{},)"
      R"("model":{},"output":{},"usage":{},{}}})",
      m_id, m_created, status == "completed" ? std::to_string(std::time(nullptr)) : "null", status, problem,
      status == "incomplete" ? R"({"reason":"max_output_tokens"})" : "null", jsonString(m_model->name()),
      isOver ? dumpJson(m_output.items()) : "[]", usage, m_shown);
}

std::string ResponseGeneration::finish() {
  const std::string_view status = finalStatus();
  m_output.finish(status == "completed" && !m_choices.front().isCallCut ? "completed" : "incomplete");
  const ApiError stopped{500, "The engine stopped before the answer was whole.", {}, "internal_error", {}};
  std::string response = object(status, status == "failed" ? &stopped : nullptr);
  if (m_isStored) m_store->put(m_id, {response, dumpJson(m_items), dumpJson(m_output.items()), m_output.itemIds()});
  return response;
}

void ResponseGeneration::sendChoice(Choice& choice) {
  if (!choice.begun) return;
  if (!m_exchange->hasBegun()) m_exchange->beginStream(200, "text/event-stream; charset=utf-8");
  m_exchange->send(m_output.takeEvents());
}

void ResponseGeneration::sendEnd() {
  const std::string response = finish();
  const std::string_view status = finalStatus();
  m_output.tell(status == "completed"    ? "response.completed"
                : status == "incomplete" ? "response.incomplete"
                                         : "response.failed",
                response);
  m_exchange->send(m_output.takeEvents());
  m_exchange->endStream();
}

void ResponseGeneration::sendFailure(const ApiError& error) {
  m_output.finish("incomplete");
  m_output.tell("response.failed", object("failed", &error));
  m_exchange->send(m_output.takeEvents());
  m_exchange->endStream();
}

void ResponseGeneration::respondWhole() {
  HttpResponse response;
  response.body = finish();
  m_exchange->respond(std::move(response));
}

}  // namespace headroom::engine
