// SPDX-License-Identifier: Apache-2.0
// Private to core/model: tensors outside the decoder's layers, one function a kind. Rows of the family table name them.
#pragma once

#include "core/model/inventory_builder.h"

namespace headroom {

// One decoder layer under the name `at` ("model.layers.3.").
void writeLayer(InventoryBuilder& builder, const LayerSpec& spec, int layer, const std::string& at);

// Gemma 3n and 4: what each layer adds of an embedding of its own, and those embeddings.
void writeLayerInputs(InventoryBuilder& builder, const LayerSpec& spec, int layer, const std::string& at);
void addLayerEmbeddings(InventoryBuilder& builder);

// Multi-token prediction layers behind the decoder's.
void addDeepseekMtp(InventoryBuilder& builder);
void addDeepseekV4Parts(InventoryBuilder& builder);
void addQwenMtp(InventoryBuilder& builder);
void addNemotronMtp(InventoryBuilder& builder);

// Vision towers with their projectors.
void addSiglipTower(InventoryBuilder& builder);  // Gemma 3
void addQwen2VlTower(InventoryBuilder& builder);
void addQwen25VlTower(InventoryBuilder& builder);
void addQwen3VlTower(InventoryBuilder& builder);
void addQwen35Parts(InventoryBuilder& builder);  // Qwen3-VL's tower and one prediction layer
void addMllamaTower(InventoryBuilder& builder);
void addLlama4Tower(InventoryBuilder& builder);
void addGemma4Parts(InventoryBuilder& builder);  // its tower and the layers' own embeddings
void addMolmoTower(InventoryBuilder& builder);
void addPhi3Tower(InventoryBuilder& builder);
void addMoonVitTower(InventoryBuilder& builder);  // Kimi K2.5 and Kimi-VL

// Whether the inventory holds the tower that vision_config describes.
bool countsVisionTower(const ConfigReader& keys, const ModelFamily& family, const WrapperFamily* wrapper);

void addChatGlmFrequencies(InventoryBuilder& builder);

}  // namespace headroom
