// SPDX-License-Identifier: Apache-2.0
// Private to core/model: what the engine's decoder and loader can do, in one place. Widening the engine removes lines here.
#pragma once

#include "core/model/model_config.h"
#include "core/model/tensor_inventory.h"

namespace headroom {

// Adds to config.missingInEngine what its layers, traits and quantization need and the engine lacks.
void noteMissingInEngine(ModelConfig& config);
// The same for the tensor formats that the files hold.
void noteMissingFormats(ModelSource& source);

}  // namespace headroom
