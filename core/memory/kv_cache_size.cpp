// SPDX-License-Identifier: Apache-2.0
#include "core/memory/kv_cache_size.h"

namespace headroom {

Bytes kvCacheBytes(DType dtype, int64_t tokens, int64_t heads, int64_t keyElements, int64_t valueElements) {
  const int64_t scales = dtype != DType::I8 ? 0 : valueElements > 0 ? 2 : 1;
  return storageBytes(dtype, tokens * heads * (keyElements + valueElements)) + storageBytes(DType::F32, tokens * heads * scales);
}

}  // namespace headroom
