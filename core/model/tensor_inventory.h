// SPDX-License-Identifier: Apache-2.0
// The one list of a checkpoint's tensors: name, shape, dtype, layer and how each splits over ranks. The grid sums it, the
// weight loader slices by it; so what the grid promises is what the engine allocates.
#pragma once

#include "core/model/model_config.h"

#include <string>
#include <vector>

namespace headroom {

enum class TensorRole : uint8_t {
  TokenEmbedding,
  FinalNorm,
  FinalNormBias,
  LmHead,
  LmHeadBias,
  AttentionNorm,
  AttentionNormBias,
  PostAttentionNorm,
  FfnNorm,
  FfnNormBias,
  PostFfnNorm,
  Q,
  K,
  V,
  O,
  QBias,
  KBias,
  VBias,
  OBias,
  QNorm,
  KNorm,
  Qkv /* fused rows q, k, v */,
  QkvBias,
  Sinks,
  Gate,
  Up,
  Down,
  GateUp /* fused rows gate, up */,
  GateBias,
  UpBias,
  DownBias,
  Router,
  RouterBias,
  ExpertGate,
  ExpertUp,
  ExpertDown,
  ExpertGateUp,
  ExpertGateBias,  // (experts, width)
  ExpertUpBias,
  ExpertDownBias,    // (experts, hidden)
  ExpertGateUpBias,  // (experts, 2 * width)
  SharedGate,
  SharedUp,
  SharedDown,
  SharedRouter,
  // Latent attention. The query's second projection has the role Q.
  QLatent,
  QLatentNorm,
  KvLatent,  // rows: latent, then the key's part with RoPE
  KvLatentNorm,
  KvUp,     // for each head the rows of keys, then of values
  KeyUp,    // GGUF: (heads, latent, nope)
  ValueUp,  // GGUF: (heads, value, latent)
  // Gated delta net.
  LinearQkvz,  // for each key head its rows of q, k, v and z
  LinearQkv,
  LinearZ,
  LinearBetaAlpha,  // for each key head its rows of beta and alpha
  LinearBeta,
  LinearAlpha,
  LinearConvolution,  // (channels, 1, kernel)
  LinearTimeBias,
  LinearDecay,
  LinearNorm,
  LinearOut,
  RopeFrequencies,  // GGUF rope_freqs.weight
  Other,            // counted and planned, unknown to the decoder
};

// What one piece of a tensor's split dimension follows.
enum class SplitUnit : uint8_t { QHeads, KvHeads, MlpColumns, ExpertColumns, SharedColumns, Experts, Vocabulary, Replicated };

// A run of `elements` along the split dimension, in units of `elementsPerUnit` (headDim for heads, 1 for columns). A fused QKV
// has three, a plain projection one.
struct SplitSegment {
  SplitUnit unit = SplitUnit::Replicated;
  int64_t elements = 0;
  int64_t elementsPerUnit = 1;
  // Where one stored element covers several of the weight's (packed words, scales of blocks): how many, and the weight's own
  // elements and elements a unit. 0: as stored.
  int64_t granule = 1;
  int64_t weightElements = 0, weightElementsPerUnit = 0;
};

// Where the tensor's bytes lie. file indexes ModelSource::weightFiles.
struct TensorLocation {
  int file = 0;
  int64_t offset = 0;  // from the file's begin
  Bytes bytes;
};

struct TensorEntry {
  std::string name;  // as the checkpoint spells it
  TensorRole role = TensorRole::Other;
  int layer = -1;              // -1: outside the layers
  int expert = -1;             // -1: not one expert's own
  DType dtype = DType::BF16;   // as stored
  std::vector<int64_t> shape;  // logical elements, outermost first: (out, in) for matrices
  int splitDim = -1;           // dimension that is divided over TP ranks; -1: every rank holds all
  // Runs along splitDim. Also filled where splitDim is -1 only because blocks do not end where units do: an engine that rounds
  // each rank's share up to whole blocks divides it none the less.
  std::vector<SplitSegment> segments;
  bool loaded = true;  // false: stored but not held by an engine (MTP layers, inv_freq, a tied head stored again)
  std::optional<TensorLocation> location;  // where file headers were read
  // What it counts as in parameters(), where that is not its elements: packed weights count the numbers they stand for, the
  // scales of packed formats none.
  std::optional<int64_t> logicalParameters;

  int64_t elements() const;
  int64_t parameters() const { return logicalParameters.value_or(elements()); }
  Bytes storedBytes() const;  // by dtype and shape (rows padded to no block)
};

struct TensorInventory {
  std::vector<TensorEntry> tensors;
  int64_t parameters() const;  // elements of all tensors the checkpoint stores (packed formats: logical elements)
  Bytes checkpointBytes() const;
  const TensorEntry* find(TensorRole role, int layer = -1, int expert = -1) const;
};

// The inventory by the configuration's formula: what a checkpoint of this family stores.
TensorInventory inventoryOfConfig(const ModelConfig& config);

// A model as opened: configuration, tensors (counted from the files where there are any), and where it came from.
struct ModelSource {
  enum class Origin : uint8_t { ConfigFormula, SafetensorsHeaders, GgufHeader, Catalog };
  ModelConfig config;
  TensorInventory inventory;
  Origin origin = Origin::ConfigFormula;
  std::filesystem::path path;                      // what was opened (absolute); empty for a catalog entry
  std::filesystem::path folder;                    // where tokenizer files stand
  std::vector<std::filesystem::path> weightFiles;  // empty: planning only
  nlohmann::json ggufMetadata;                     // scalar metadata by key, arrays without the token lists; null otherwise
  bool canBeLoaded() const { return !weightFiles.empty(); }
};

// MODEL of the command line: a config.json, a model folder, a .gguf file (first shard), or a catalog name such as
// "Qwen/Qwen2.5-72B-Instruct". Reads headers only. Errors name the file, what was found and what to do.
Result<ModelSource> openModel(const std::string& model);

}  // namespace headroom
