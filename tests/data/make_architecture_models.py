#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes one tiny model of each architecture that is more than a dense Llama, and what Transformers computes with it in float32.

usage: make_architecture_models.py [FOLDER] [NAME...]      (default: the folder "models/architectures" beside this script, all of them)

The result is kept in the repository, in the form of make_reference_models.py. Weights are saved as the architecture's checkpoints are published
(one tensor an expert where they are), configurations have the published keys. Some are written once more as GGUF files, with the names, the
stacked experts and the permuted rows that files of their architecture have. Needs torch, transformers, safetensors and gguf.
"""
import json
import pathlib
import sys

import gguf
import numpy
import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM, Mxfp4Config

from make_reference_models import expectation, write_json

YARN = {"type": "yarn", "factor": 4.0, "beta_fast": 32, "beta_slow": 1, "mscale": 0.8, "mscale_all_dim": 0.8, "original_max_position_embeddings": 64}
LATENT = dict(kv_lora_rank=24, qk_nope_head_dim=12, qk_rope_head_dim=8, v_head_dim=10)


def model(architecture, model_type, hidden, layers, heads, **more):
    return {"architectures": [architecture], "model_type": model_type, "vocab_size": 160, "hidden_size": hidden, "num_hidden_layers": layers,
            "num_attention_heads": heads[0], "num_key_value_heads": heads[1], "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "hidden_act": "silu",
            "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "tie_word_embeddings": False, "torch_dtype": "bfloat16"} | more


MODELS = {
    "mixtral": model("MixtralForCausalLM", "mixtral", 32, 2, (4, 2), intermediate_size=24, num_local_experts=4, num_experts_per_tok=2,
                     sliding_window=None),
    "qwen2_moe": model("Qwen2MoeForCausalLM", "qwen2_moe", 32, 3, (4, 2), intermediate_size=40, moe_intermediate_size=20, num_experts=6,
                       num_experts_per_tok=3, shared_expert_intermediate_size=28, norm_topk_prob=False, decoder_sparse_step=1, mlp_only_layers=[],
                       use_sliding_window=False),
    "qwen3_moe": model("Qwen3MoeForCausalLM", "qwen3_moe", 32, 2, (5, 1), head_dim=8, intermediate_size=40, moe_intermediate_size=22, num_experts=8,
                       num_experts_per_tok=3, norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[], attention_bias=False,
                       use_sliding_window=False),
    "gpt_oss": model("GptOssForCausalLM", "gpt_oss", 32, 2, (6, 2), head_dim=8, intermediate_size=20, num_local_experts=4, num_experts_per_tok=2,
                     experts_per_token=2, swiglu_limit=7.0, sliding_window=8, attention_bias=True, rope_theta=150000.0,
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
    "qwen3_5": model("Qwen3_5ForCausalLM", "qwen3_5_text", 32, 4, (4, 2), head_dim=8, intermediate_size=40, full_attention_interval=4,
                     partial_rotary_factor=0.5, linear_conv_kernel_dim=4, linear_key_head_dim=6, linear_value_head_dim=8, linear_num_key_heads=2,
                     linear_num_value_heads=4, attention_bias=False),
}


@torch.no_grad()
def fill(network, seed):
    """Random weights that keep activations near 1 and leave no norm, bias or sink at its neutral value, rounded to bfloat16."""
    random = torch.Generator().manual_seed(seed)
    offset = 1.0 if network.config.model_type in ("qwen3_next", "qwen3_5_text") else 0.0
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
    if name in GGUFS:
        make_gguf(folder / f"{name}.gguf", name, network.float())


E2M1 = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0])


def pack_mxfp4(weight):
    """Codes and exponents of rows whose width is a multiple of 32, as gpt-oss is published: a byte holds two neighbours, the first below."""
    blocks = weight.unflatten(-1, (-1, 32))
    exponents = torch.floor(torch.log2(blocks.abs().amax(-1))) - 2
    codes = ((blocks / torch.exp2(exponents)[..., None])[..., None] - E2M1).abs().argmin(-1).to(torch.uint8)
    return codes[..., 0::2] | codes[..., 1::2] << 4, (exponents + 127).to(torch.uint8)


@torch.no_grad()
def make_mxfp4(folder, seed):
    """gpt_oss with experts in MXFP4. What they stand for is what Transformers reads back."""
    folder.mkdir(parents=True, exist_ok=True)
    config = MODELS["gpt_oss"] | {"hidden_size": 64, "intermediate_size": 96, "quantization_config": {
        "quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]}}
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    plain = AutoConfig.for_model(**{key: value for key, value in config.items() if key != "quantization_config"})
    network = AutoModelForCausalLM.from_config(plain, dtype=torch.float32)
    fill(network, seed)
    stored = {}
    for name, tensor in network.state_dict().items():
        if name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            stored[name + "_blocks"], stored[name + "_scales"] = pack_mxfp4(tensor.swapaxes(1, 2))
        else:
            stored[name] = tensor.bfloat16()
    save_file({name: tensor.contiguous() for name, tensor in stored.items()}, folder / "model.safetensors", metadata={"format": "pt"})
    read = AutoModelForCausalLM.from_pretrained(folder, quantization_config=Mxfp4Config(dequantize=True), attn_implementation="eager",
                                                experts_implementation="eager", dtype=torch.bfloat16).float().eval()
    write_json(folder / "expected.json", expectation(read, seed))


# name: (general.architecture, whether rows of q and k are permuted)
GGUFS = {"mixtral": ("llama", True), "qwen2_moe": ("qwen2moe", False), "gpt_oss": ("gpt-oss", False), "deepseek_v3": ("deepseek2", False),
         "glm4_moe": ("glm4moe", False), "minimax_m2": ("minimax-m2", False)}
LAYER_NAMES = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
               "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
               "self_attn.sinks": "attn_sinks", "self_attn.q_a_proj": "attn_q_a", "self_attn.q_a_layernorm": "attn_q_a_norm",
               "self_attn.q_b_proj": "attn_q_b", "self_attn.kv_a_proj_with_mqa": "attn_kv_a_mqa", "self_attn.kv_a_layernorm": "attn_kv_a_norm",
               "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "mlp.gate": "ffn_gate_inp",
               "mlp.router": "ffn_gate_inp", "mlp.shared_expert_gate": "ffn_gate_inp_shexp"}
EXPERT_NAMES = {"gate_proj": "gate", "up_proj": "up", "down_proj": "down"}


def gguf_tensors(network, permuted):
    """(name, array) of the file, from the names that Transformers uses inside."""
    config = network.config
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    afterwards = "post_attention_norm" if config.model_type in ("gpt_oss", "glm4_moe") else "ffn_norm"
    outer = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight", "lm_head.weight": "output.weight"}
    for name, tensor in network.state_dict().items():
        array = tensor.float().numpy()
        if name in outer:
            yield outer[name], array
            continue
        _, _, layer, rest = name.split(".", 3)
        at = f"blk.{layer}."
        stem, _, kind = rest.rpartition(".")
        if rest == "self_attn.sinks":
            yield at + "attn_sinks.weight", array
        elif rest == "post_attention_layernorm.weight":
            yield at + afterwards + ".weight", array
        elif kind == "e_score_correction_bias":
            yield at + "exp_probs_b.bias", array
        elif rest == "self_attn.kv_b_proj.weight":
            both = array.reshape(config.num_attention_heads, config.qk_nope_head_dim + config.v_head_dim, -1)
            yield at + "attn_k_b.weight", both[:, :config.qk_nope_head_dim].swapaxes(1, 2)
            yield at + "attn_v_b.weight", both[:, config.qk_nope_head_dim:]
        elif "shared_expert" in stem and stem in LAYER_NAMES:
            yield at + LAYER_NAMES[stem] + "." + kind, array[0]  # one row becomes a vector
        elif "shared_expert" in stem:
            yield at + f"ffn_{EXPERT_NAMES[stem.split('.')[-1]]}_shexp.weight", array
        elif ".experts." in rest:
            turned, part = config.model_type == "gpt_oss", rest.split(".")[-1]
            suffix = "bias" if part.endswith("_bias") else "weight"
            if turned and suffix == "weight":
                array = array.swapaxes(1, 2)
            if "down" in part:
                yield at + f"ffn_down_exps.{suffix}", array
            else:
                gate, up = (array[:, 0::2], array[:, 1::2]) if turned else numpy.split(array, 2, axis=1)
                yield at + f"ffn_gate_exps.{suffix}", gate
                yield at + f"ffn_up_exps.{suffix}", up
        else:
            if permuted and stem.split(".")[-1] in heads:
                array = array.reshape(heads[stem.split(".")[-1]], 2, -1, array.shape[1]).swapaxes(1, 2).reshape(array.shape)
            yield at + LAYER_NAMES[stem] + "." + kind, array


def make_gguf(path, name, network):
    keys, (architecture, permuted) = MODELS[name], GGUFS[name]
    writer = gguf.GGUFWriter(path, architecture)
    number, real = (lambda key, value: writer.add_uint32(f"{architecture}.{key}", value)), (lambda key, value: writer.add_float32(f"{architecture}.{key}", value))
    head_dim = keys.get("head_dim") or keys["hidden_size"] // keys["num_attention_heads"]
    number("context_length", keys["max_position_embeddings"])
    number("embedding_length", keys["hidden_size"])
    number("block_count", keys["num_hidden_layers"])
    number("feed_forward_length", keys["intermediate_size"])
    number("attention.head_count", keys["num_attention_heads"])
    number("vocab_size", keys["vocab_size"])
    real("attention.layer_norm_rms_epsilon", keys["rms_norm_eps"])
    real("rope.freq_base", network.config.rope_parameters["rope_theta"])
    number("expert_count", keys.get("num_local_experts") or keys.get("num_experts") or keys["n_routed_experts"])
    number("expert_used_count", keys["num_experts_per_tok"])
    if "moe_intermediate_size" in keys or name in ("gpt_oss", "minimax_m2"):
        number("expert_feed_forward_length", keys.get("moe_intermediate_size", keys["intermediate_size"]))
    if name == "deepseek_v3":
        number("attention.head_count_kv", 1)
        number("attention.q_lora_rank", keys["q_lora_rank"])
        number("attention.kv_lora_rank", keys["kv_lora_rank"])
        number("attention.key_length", keys["kv_lora_rank"] + keys["qk_rope_head_dim"])
        number("attention.value_length", keys["kv_lora_rank"])
        number("attention.key_length_mla", keys["qk_nope_head_dim"] + keys["qk_rope_head_dim"])
        number("attention.value_length_mla", keys["v_head_dim"])
        number("rope.dimension_count", keys["qk_rope_head_dim"])
        number("expert_group_count", keys["n_group"])
        number("expert_group_used_count", keys["topk_group"])
        # In the file all of YaRN's sharpening stands in the softmax, which needs the two mscales to be equal.
        real("rope.scaling.yarn_log_multiplier", 0.1 * keys["rope_scaling"]["mscale_all_dim"])
    else:
        number("attention.head_count_kv", keys["num_key_value_heads"])
        number("attention.key_length", head_dim)
        number("attention.value_length", head_dim)
        number("rope.dimension_count", keys.get("rotary_dim") or int(head_dim * keys.get("partial_rotary_factor", 1.0)))
    if "rope_scaling" in keys:
        writer.add_string(f"{architecture}.rope.scaling.type", "yarn")
        real("rope.scaling.factor", keys["rope_scaling"]["factor"])
        number("rope.scaling.original_context_length", keys["rope_scaling"]["original_max_position_embeddings"])
    if "first_k_dense_replace" in keys:
        number("leading_dense_block_count", keys["first_k_dense_replace"])
        number("expert_shared_count", keys["n_shared_experts"])
        number("expert_gating_func", 2)
        real("expert_weights_scale", keys["routed_scaling_factor"])
        writer.add_bool(f"{architecture}.expert_weights_norm", keys["norm_topk_prob"])
    if name == "qwen2_moe":
        number("expert_shared_feed_forward_length", keys["shared_expert_intermediate_size"])
    if keys.get("sliding_window"):
        number("attention.sliding_window", keys["sliding_window"])
    kind = gguf.GGMLQuantizationType.BF16
    for tensor, array in gguf_tensors(network, permuted):
        if array.ndim == 1 or tensor.endswith(".bias"):
            writer.add_tensor(tensor, numpy.ascontiguousarray(array))
        else:
            writer.add_tensor(tensor, gguf.quants.quantize(numpy.ascontiguousarray(array), kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "models" / "architectures"
    torch.set_num_threads(1)
    for seed, name in enumerate(MODELS, start=1):
        if len(sys.argv) <= 2 or name in sys.argv[2:]:
            make(out / name, name, seed)
            print(out / name, flush=True)
    if len(sys.argv) <= 2 or "gpt_oss_mxfp4" in sys.argv[2:]:
        make_mxfp4(out / "gpt_oss_mxfp4", len(MODELS) + 1)


if __name__ == "__main__":
    main()
