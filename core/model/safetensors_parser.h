// SPDX-License-Identifier: Apache-2.0
// Private to core/model: the safetensors header as a pure function over bytes (what fuzzers call).
#pragma once

#include "core/model/safetensors_header.h"

#include <string_view>

namespace headroom {

// `json` is the header's text, without the 8 bytes of its length; `fileSize` bounds every offset; `where` names the file in
// errors.
Result<SafetensorsHeader> parseSafetensorsHeader(std::string_view json, int64_t fileSize, const std::string& where);

}  // namespace headroom
