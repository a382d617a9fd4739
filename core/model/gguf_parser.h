// SPDX-License-Identifier: Apache-2.0
// Private to core/model: one GGUF file's header as a pure function over bytes (what fuzzers call).
#pragma once

#include "core/model/gguf_header.h"

#include <string_view>

namespace headroom {

struct GgufParse {
  GgufHeader header;       // files empty; tensor offsets from the file's begin
  bool needsMore = false;  // `head` ended before the header did, but the file goes on: call again with more bytes
};

// `head` is the file's begin, `fileSize` bounds every offset and every count; `where` names the file in errors.
Result<GgufParse> parseGgufHeader(std::string_view head, int64_t fileSize, bool withTokens, const std::string& where);

}  // namespace headroom
