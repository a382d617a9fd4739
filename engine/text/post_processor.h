// SPDX-License-Identifier: Apache-2.0
// What tokenizer.json's "post_processor" adds around one text: ids before and after it.
#pragma once

#include "core/result.h"

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

namespace headroom::engine::text {

struct PostProcessor {
  std::vector<int32_t> before, after;
};
Result<PostProcessor> makePostProcessor(const nlohmann::json& json);

}  // namespace headroom::engine::text
