// SPDX-License-Identifier: Apache-2.0
// How many bytes keys and values take. The planner counts with it, the engine allocates by it.
#pragma once

#include "core/model/dtype.h"

namespace headroom {

// Keys and values of `tokens` tokens for `heads` heads of one layer; `valueElements` 0 where the values lie in the keys. I8 holds
// a scale (F32) beside each head's key and beside each head's value of a token.
Bytes kvCacheBytes(DType dtype, int64_t tokens, int64_t heads, int64_t keyElements, int64_t valueElements);

}  // namespace headroom
