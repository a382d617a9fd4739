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

void addErnieVlTower(InventoryBuilder& builder);
// SigLIP's encoder under any name; `head`: with the pooling head behind it.
struct SiglipSizes {
  int64_t width = 0, inner = 0, layers = 0, patch = 0, positions = 0;
  bool flatPatches = false;  // SigLIP 2: pixels of a patch in one row
};
void addSiglipEncoder(InventoryBuilder& builder, const std::string& at, const SiglipSizes& sizes, bool head);

// Models that hear: their encoder, what joins it to the text, and the tower for images where there is one too.
void addQwen2Audio(InventoryBuilder& builder);
void addVoxtral(InventoryBuilder& builder);
void addGraniteSpeech(InventoryBuilder& builder);
void addQwen25Omni(InventoryBuilder& builder);
void addQwen3Omni(InventoryBuilder& builder);
void addPhi4Parts(InventoryBuilder& builder);
void addPhi4MmParts(InventoryBuilder& builder);
void writePhi4Adapters(InventoryBuilder& builder, const LayerSpec& spec, int layer, const std::string& at);

// Layers that families of mixed kinds write themselves.
void writeMamba2(InventoryBuilder& builder, const LayerSpec& spec, int layer, const std::string& at);

// Whether the inventory holds the encoder that audio_config describes.
bool countsAudioTower(const ModelFamily& family, const WrapperFamily* wrapper);
// Whether the inventory holds the tower that vision_config describes.
bool countsVisionTower(const ConfigReader& keys, const ModelFamily& family, const WrapperFamily* wrapper);

void addChatGlmFrequencies(InventoryBuilder& builder);

}  // namespace headroom
