// SPDX-License-Identifier: Apache-2.0
// Bodies of /v1/responses. A response is a chat in another form: its items become messages, its parameters those of a chat, and
// readChatRequest() does the rest, so that tools and forms of answers are the same on both routes.
#pragma once

#include "engine/server/openai_requests.h"
#include "engine/server/response_store.h"

#include <string>

namespace headroom::engine {

struct ResponsesRequest {
  OpenAiRequest chat;
  nlohmann::ordered_json shown;  // the members of the response object that repeat the request
  nlohmann::ordered_json items;  // the whole input as items: of the responses before it, then its own; each with an id
  bool isStored = true;
};

// `store` has the responses that previous_response_id and item references may name.
ApiResult<ResponsesRequest> readResponsesRequest(const nlohmann::ordered_json& body, const RequestBounds& bounds,
                                                 const ResponseStore& store);

}  // namespace headroom::engine
