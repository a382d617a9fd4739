// SPDX-License-Identifier: Apache-2.0
// The form an answer must have, as requests ask for it: OpenAI's response_format, vLLM's structured_outputs and the guided_*
// names it had before.
#pragma once

#include "engine/sample/grammar.h"
#include "engine/server/answer_form.h"
#include "engine/server/api_error.h"

#include <memory>

namespace headroom::engine {

// The grammar that a request's body asks for; null: none. Refuses by name what is wrong, not honoured or asked for twice.
ApiResult<std::shared_ptr<const Grammar>> readStructuredOutput(const nlohmann::ordered_json& body, const AnswerFrame& frame = {});

// An error of a grammar as the API's, about parameter `param`.
ApiError grammarError(const Error& error, const std::string& param);

}  // namespace headroom::engine
