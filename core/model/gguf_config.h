// SPDX-License-Identifier: Apache-2.0
// Private to core/model: the configuration that a GGUF file's metadata describes.
#pragma once

#include "core/model/gguf_header.h"
#include "core/model/model_config.h"

namespace headroom {

Result<ModelConfig> configOfGguf(const GgufHeader& header, const std::string& where);

}  // namespace headroom
