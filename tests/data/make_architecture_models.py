#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes one tiny model of each architecture that is more than a dense Llama, and what Transformers computes with it in float32.

usage: make_architecture_models.py [FOLDER] [NAME...]      (default: the folder "models/architectures" beside this script, all of them)

The result is kept in the repository, in the form of make_reference_models.py. Weights are saved as the architecture's checkpoints are published
(one tensor an expert where they are), configurations have the published keys. Needs torch, transformers and safetensors.
"""
import json
import pathlib
import sys

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from make_reference_models import expectation, write_json

YARN = {"type": "yarn", "factor": 4.0, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 0.8, "original_max_position_embeddings": 64}
LATENT = dict(kv_lora_rank=24, qk_nope_head_dim=12, qk_rope_head_dim=8, v_head_dim=10)


def model(architecture, model_type, hidden, layers, heads, **more):
    return {"architectures": [architecture], "model_type": model_type, "vocab_size": 160, "hidden_size": hidden, "num_hidden_layers": layers,
            "num_attention_heads": heads[0], "num_key_value_heads": heads[1], "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "hidden_act": "silu",
            "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "tie_word_embeddings": False, "torch_dtype": "bfloat16"} | more


MODELS = {
    "mixtral": model("MixtralForCausalLM", "mixtral", 32, 2, (4, 2), intermediate_size=24, num_local_experts=4, num_experts_per_tok=2,
                     sliding_window=None),
    "qwen2_moe": model("Qwen2MoeForCausalLM", "qwen2_moe", 32, 3, (4, 2), intermediate_size=40, moe_intermediate_size=20, num_experts=6,
                       num_experts_per_tok=3, shared_expert_intermediate_size=28, norm_topk_prob=False, decoder_sparse_step=1, mlp_only_layers=[1],
                       use_sliding_window=False),
    "qwen3_moe": model("Qwen3MoeForCausalLM", "qwen3_moe", 32, 2, (5, 1), head_dim=8, intermediate_size=40, moe_intermediate_size=22, num_experts=8,
                       num_experts_per_tok=3, norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[], attention_bias=False,
                       use_sliding_window=False),
    "gpt_oss": model("GptOssForCausalLM", "gpt_oss", 32, 2, (6, 2), head_dim=8, intermediate_size=20, num_local_experts=4, num_experts_per_tok=2,
                     experts_per_token=2, swiglu_limit=1.5, sliding_window=8, attention_bias=True, rope_theta=150000.0,
                     layer_types=["sliding_attention", "full_attention"], initial_context_length=64,
                     rope_scaling={"rope_type": "yarn", "factor": 4.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
                                   "original_max_position_embeddings": 64}),
    "deepseek_v2": model("DeepseekV2ForCausalLM", "deepseek_v2", 32, 2, (4, 4), intermediate_size=40, moe_intermediate_size=16, n_routed_experts=6,
                         n_shared_experts=2, num_experts_per_tok=2, n_group=3, topk_group=2, topk_method="group_limited_greedy",
                         routed_scaling_factor=2.0, norm_topk_prob=False, first_k_dense_replace=1, moe_layer_freq=1, q_lora_rank=None,
                         attention_bias=False, rms_norm_eps=1e-6, rope_scaling=YARN, **LATENT),
    "deepseek_v3": model("DeepseekV3ForCausalLM", "deepseek_v3", 32, 3, (5, 5), intermediate_size=40, moe_intermediate_size=20, n_routed_experts=8,
                         n_shared_experts=1, num_experts_per_tok=3, n_group=4, topk_group=2, topk_method="noaux_tc", scoring_func="sigmoid",
                         routed_scaling_factor=1.5, norm_topk_prob=True, first_k_dense_replace=1, moe_layer_freq=1, q_lora_rank=20,
                         num_nextn_predict_layers=0, attention_bias=False, rms_norm_eps=1e-6, rope_scaling=YARN, **LATENT),
    "glm4_moe": model("Glm4MoeForCausalLM", "glm4_moe", 32, 2, (4, 2), head_dim=8, intermediate_size=40, moe_intermediate_size=20, n_routed_experts=6,
                      n_shared_experts=1, num_experts_per_tok=2, n_group=1, topk_group=1, routed_scaling_factor=1.5, norm_topk_prob=True,
                      first_k_dense_replace=1, attention_bias=True, use_qk_norm=True, partial_rotary_factor=0.5, num_nextn_predict_layers=0),
    "minimax_m2": model("MiniMaxM2ForCausalLM", "minimax_m2", 32, 2, (6, 2), head_dim=8, rotary_dim=4, intermediate_size=20, num_local_experts=6,
                        num_experts_per_tok=2, scoring_func="sigmoid", use_routing_bias=True, use_qk_norm=True, qk_norm_type="per_layer"),
    "granitemoe": model("GraniteMoeForCausalLM", "granitemoe", 32, 2, (4, 2), intermediate_size=20, num_local_experts=5, num_experts_per_tok=2,
                        attention_multiplier=0.3, embedding_multiplier=1.5, logits_scaling=0.8, residual_multiplier=0.7, attention_bias=False),
    "llama4": model("Llama4ForCausalLM", "llama4_text", 32, 4, (4, 2), head_dim=8, intermediate_size=20, intermediate_size_mlp=40, num_local_experts=4,
                    num_experts_per_tok=1, interleave_moe_layer_step=2, attention_chunk_size=16, no_rope_layers=[1, 1, 0, 1], use_qk_norm=True,
                    attn_temperature_tuning=True, floor_scale=8, attn_scale=0.1, attention_bias=False, rope_theta=10000.0, rope_scaling=None),
    "olmo2": model("Olmo2ForCausalLM", "olmo2", 32, 2, (6, 2), head_dim=8, intermediate_size=40, attention_bias=False, rope_theta=10000.0),
    "olmo3": model("Olmo3ForCausalLM", "olmo3", 32, 4, (4, 4), intermediate_size=40, attention_bias=False, rope_theta=500000.0, sliding_window=8,
                   layer_types=["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"],
                   rope_scaling={"rope_type": "yarn", "factor": 4.0, "attention_factor": 1.2, "beta_fast": 32.0, "beta_slow": 1.0,
                                 "original_max_position_embeddings": 64}),
    "phi3_longrope": model("Phi3ForCausalLM", "phi3", 32, 2, (4, 2), intermediate_size=40, sliding_window=None, attention_bias=False,
                           original_max_position_embeddings=64, partial_rotary_factor=1.0,
                           rope_scaling={"type": "longrope", "short_factor": [1.0, 1.1, 1.3, 2.0], "long_factor": [1.0, 1.5, 2.5, 4.0]}),
    "qwen3_next": model("Qwen3NextForCausalLM", "qwen3_next", 32, 4, (4, 2), head_dim=8, intermediate_size=40, full_attention_interval=4,
                        partial_rotary_factor=0.5, linear_conv_kernel_dim=4, linear_key_head_dim=6, linear_value_head_dim=8, linear_num_key_heads=2,
                        linear_num_value_heads=4, moe_intermediate_size=16, shared_expert_intermediate_size=20, num_experts=6, num_experts_per_tok=2,
                        norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[], attention_bias=False),
}


@torch.no_grad()
def fill(network, seed):
    """Random weights that keep activations near 1 and leave no norm, bias or sink at its neutral value, rounded to bfloat16."""
    random = torch.Generator().manual_seed(seed)
    offset = 1.0 if network.config.model_type == "qwen3_next" else 0.0
    biases = [(name, buffer) for name, buffer in network.named_buffers() if name.endswith("e_score_correction_bias")]
    for name, weight in [*network.named_parameters(), *biases]:
        noise = torch.randn(weight.shape, generator=random)
        if name.endswith("A_log"):
            value = noise - 2.0
        elif name.endswith(("bias", "sinks")):
            value = 0.3 * noise
        elif weight.ndim == 1:
            value = 1.0 + 0.2 * noise - (offset if "linear_attn" not in name else 0.0)
        elif "embed_tokens" in name:
            value = noise
        elif "lm_head" in name:
            value = 3.0 * noise * weight.shape[-1] ** -0.5
        else:
            value = (0.8 if "linear_attn" in name else 1.4) * noise * weight.shape[-1] ** -0.5
        weight.copy_(value.bfloat16())


def make(folder, name, seed):
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(MODELS[name], indent=1) + "\n"
    (folder / "config.json").write_text(text)
    network = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder), attn_implementation="eager", experts_implementation="eager",
                                               dtype=torch.float32).eval()
    fill(network, seed)
    expected = expectation(network, seed)
    network.to(torch.bfloat16).save_pretrained(folder)
    (folder / "config.json").write_text(text)
    (folder / "generation_config.json").unlink(missing_ok=True)
    write_json(folder / "expected.json", expected)


def main():
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "models" / "architectures"
    torch.set_num_threads(1)
    for seed, name in enumerate(MODELS, start=1):
        if len(sys.argv) <= 2 or name in sys.argv[2:]:
            make(out / name, name, seed)
            print(out / name, flush=True)


if __name__ == "__main__":
    main()
