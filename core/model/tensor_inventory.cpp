// SPDX-License-Identifier: Apache-2.0
#include "core/model/tensor_inventory.h"

namespace headroom {

int64_t TensorEntry::elements() const {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

Bytes TensorEntry::storedBytes() const {
  const DTypeInfo& info = dtypeInfo(dtype);
  return Bytes(ceilDiv(elements(), info.blockElements) * info.blockBytes);
}

int64_t TensorInventory::parameters() const {
  int64_t count = 0;
  for (const auto& tensor : tensors) count += tensor.parameters();
  return count;
}

Bytes TensorInventory::checkpointBytes() const {
  Bytes bytes;
  for (const auto& tensor : tensors) bytes += tensor.storedBytes();
  return bytes;
}

const TensorEntry* TensorInventory::find(TensorRole role, int layer, int expert) const {
  for (const auto& tensor : tensors)
    if (tensor.role == role && tensor.layer == layer && tensor.expert == expert) return &tensor;
  return nullptr;
}

}  // namespace headroom
