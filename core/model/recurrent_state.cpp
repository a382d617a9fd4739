// SPDX-License-Identifier: Apache-2.0
#include "core/model/recurrent_state.h"

namespace headroom {
namespace {

RecurrentState gatedDeltaNet(const ConfigReader& keys) {
  const int64_t keyHeads = keys.integer({"linear_num_key_heads"}, 1, 4096).value_or(16),
                valueHeads = keys.integer({"linear_num_value_heads"}, 1, 4096).value_or(32);
  const int64_t keyDim = keys.integer({"linear_key_head_dim"}, 1, 8192).value_or(128),
                valueDim = keys.integer({"linear_value_head_dim"}, 1, 8192).value_or(128);
  RecurrentState state;
  state.taps = keys.integer({"linear_conv_kernel_dim"}, 1, 64).value_or(4) - 1;
  state.channels = 2 * keyHeads * keyDim + valueHeads * valueDim;
  state.elements = valueHeads * keyDim * valueDim;
  return state;
}

RecurrentState mamba1(const ConfigReader& keys, int64_t hidden) {
  RecurrentState state;
  state.taps = keys.integer({"mamba_d_conv", "conv_kernel", "d_conv"}, 1, 64).value_or(4) - 1;
  state.channels = hidden * keys.integer({"mamba_expand", "expand"}, 1, 64).value_or(2);
  state.elements = state.channels * keys.integer({"mamba_d_state", "state_size"}, 1, 8192).value_or(16);
  return state;
}

RecurrentState mamba2(const ConfigReader& keys, int64_t hidden) {
  const int64_t dim = keys.integer({"mamba_head_dim", "mamba_d_head", "mamba_headdim", "head_dim"}, 1, 8192).value_or(64);
  const int64_t heads =
      keys.integer({"mamba_num_heads", "mamba_n_heads", "n_mamba_heads", "num_heads"}, 1, 65536)
          .value_or(std::max<int64_t>(1, hidden * keys.integer({"mamba_expand", "expand"}, 1, 64).value_or(2) / dim));
  const int64_t width = keys.integer({"ssm_state_size", "mamba_d_state", "state_size"}, 1, 8192).value_or(128);
  RecurrentState state;
  state.taps = keys.integer({"conv_kernel", "mamba_d_conv"}, 1, 64).value_or(4) - 1;
  state.channels = heads * dim;
  state.groups = keys.integer({"n_groups", "mamba_n_groups", "mamba_ngroups"}, 1, 4096).value_or(8);
  state.groupChannels = 2 * width;
  state.elements = heads * dim * width;
  state.second = true;
  return state;
}

}  // namespace

bool describesMamba2(const ConfigReader& keys) {
  return keys.has("mamba_num_heads") || keys.has("mamba_ngroups") || keys.has("mamba_n_heads") ||
         (keys.has("state_size") && keys.has("num_heads"));
}

void readRecurrentStates(const ConfigReader& keys, ModelConfig& config) {
  const bool exact = keys.text({"mamba_ssm_dtype", "mamba_ssm_cache_dtype"}).value_or("") == "float32";
  const bool second = describesMamba2(keys);
  for (LayerSpec& layer : config.layers) {
    if (layer.indexer) layer.indexDim = keys.integer({"index_head_dim"}, 1, 8192).value_or(128);
    if (layer.recurrent.elements > 0) continue;  // the family has told
    if (layer.attention == AttentionKind::LinearAttention) {
      layer.recurrent = gatedDeltaNet(keys);
    } else if (layer.attention == AttentionKind::Mamba || layer.mambaBeside) {
      layer.recurrent = second ? mamba2(keys, config.hiddenSize) : mamba1(keys, config.hiddenSize);
    } else if (layer.attention == AttentionKind::ShortConvolution) {
      layer.recurrent.taps = keys.integer({"conv_L_cache"}, 1, 64).value_or(3) - 1;
      layer.recurrent.channels = config.hiddenSize;
    }
    layer.recurrent.exact = exact;
  }
}

}  // namespace headroom
