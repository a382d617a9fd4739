// SPDX-License-Identifier: Apache-2.0
// Private to core/model: sizes of the states that recurrent layers keep, by the keys of their families.
#pragma once

#include "core/model/config_reader.h"
#include "core/model/model_config.h"

namespace headroom {

// Whether the keys describe Mamba 2 (heads of states) or the first one.
bool describesMamba2(const ConfigReader& keys);
// Fills LayerSpec::recurrent and indexDim of the layers that need them.
void readRecurrentStates(const ConfigReader& keys, ModelConfig& config);

}  // namespace headroom
