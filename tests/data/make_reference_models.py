#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the tiny models that the engine's tests run, and beside each what Hugging Face Transformers computes with it in float32.

usage: make_reference_models.py [FOLDER]      (default: the folder "models" beside this script)

The result is kept in the repository; the tests need neither Python nor this script. Needs torch, transformers, safetensors and gguf.

expected.json of a model, TYPE.expected.json of a GGUF file:
  cases: one entry a prompt
    prompt        token ids
    greedy        the greedy continuation; every choice leads by at least GAP
    top_logprobs  entry i: [token id, log probability] of the three likeliest tokens after the first i + 1 tokens of prompt + greedy
"""
import json
import pathlib
import sys

import gguf
import numpy
import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config
import transformers

GREEDY_TOKENS = 12
GAP = 0.02  # float32 in another order moves logits of these models by less than 1e-4
PROMPT_LENGTHS = [1, 7, 21, 40]

COMMON = dict(vocab_size=160, max_position_embeddings=256, rms_norm_eps=1e-5, bos_token_id=1, eos_token_id=2, pad_token_id=0)
LLAMA3_ROPE = dict(rope_type="llama3", rope_theta=10000.0, factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64)

# name: (configuration, stored type, files)
MODELS = {
    "llama": (LlamaConfig(hidden_size=48, intermediate_size=80, num_hidden_layers=4, num_attention_heads=6, num_key_value_heads=3, head_dim=16,
                          rope_parameters=LLAMA3_ROPE, tie_word_embeddings=False, **COMMON), torch.bfloat16, 3),
    "qwen2": (Qwen2Config(hidden_size=64, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
                          tie_word_embeddings=True, **COMMON), torch.bfloat16, 1),
    "qwen3": (Qwen3Config(hidden_size=48, intermediate_size=72, num_hidden_layers=3, num_attention_heads=5, num_key_value_heads=1, head_dim=16,
                          tie_word_embeddings=False, **COMMON), torch.float16, 1),
    "mistral": (MistralConfig(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=8,
                              sliding_window=8, tie_word_embeddings=False, **COMMON), torch.float32, 1),
}
GGUF_MODEL = LlamaConfig(hidden_size=32, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=32,
                         tie_word_embeddings=False, **COMMON)
GGUF_TYPES = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1"]


def fill(model, seed, dtype):
    """Random weights that keep activations near 1 and leave no norm or bias at its neutral value, rounded to the stored type."""
    random = torch.Generator().manual_seed(seed)
    tied = model.config.tie_word_embeddings
    with torch.no_grad():
        for name, weight in model.named_parameters():
            noise = torch.randn(weight.shape, generator=random)
            if weight.ndim == 1:
                value = 0.3 * noise if name.endswith("bias") else 1.0 + 0.2 * noise
                if name == "model.norm.weight":
                    value = value * (3.0 if tied else 1.0)
            elif "embed_tokens" in name:
                value = noise * (weight.shape[1] ** -0.5 if tied else 1.0)
            elif "lm_head" in name:
                value = 3.0 * noise * weight.shape[1] ** -0.5
            else:
                value = 1.3 * noise * weight.shape[1] ** -0.5
            weight.copy_(value.to(dtype))


def make_model(config, seed, dtype):
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=torch.float32).eval()
    fill(model, seed, dtype)
    return model


@torch.inference_mode()
def logits_of(model, tokens):
    return model(torch.tensor([tokens]), use_cache=False).logits[0].double()


def continuation(model, prompt):
    """The greedy tokens, or None where a choice is too close to call."""
    tokens = list(prompt)
    for _ in range(GREEDY_TOKENS):
        best = logits_of(model, tokens)[-1].topk(2)
        if best.values[0] - best.values[1] < GAP:
            return None
        tokens.append(best.indices[0].item())
    return tokens[len(prompt):]


def expectation(model, seed):
    random = numpy.random.default_rng(seed)
    cases = []
    for length in PROMPT_LENGTHS:
        greedy = None
        while greedy is None or len(set(greedy)) < 3:
            prompt = random.integers(3, model.config.vocab_size, length).tolist()
            greedy = continuation(model, prompt)
        likely = logits_of(model, prompt + greedy[:-1]).log_softmax(-1).topk(3)
        rows = [[[token, round(value, 5)] for token, value in zip(tokens, values)]
                for tokens, values in zip(likely.indices.tolist(), likely.values.tolist())]
        cases.append({"prompt": prompt, "greedy": greedy, "top_logprobs": rows})
    return {"transformers": transformers.__version__, "dtype": "float32", "cases": cases}


def write_json(path, value):
    path.write_text(json.dumps(value, separators=(",", ":")) + "\n")


def write_safetensors(folder, model, dtype, files):
    weights = {name: weight.detach().to(dtype).contiguous() for name, weight in model.state_dict().items()
               if not (model.config.tie_word_embeddings and name == "lm_head.weight")}
    if files == 1:
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        return
    names = list(weights)
    shard_of = {name: f"model-{i * files // len(names) + 1:05d}-of-{files:05d}.safetensors" for i, name in enumerate(names)}
    for shard in sorted(set(shard_of.values())):
        save_file({name: weights[name] for name in names if shard_of[name] == shard}, folder / shard, metadata={"format": "pt"})
    total = sum(weight.nbytes for weight in weights.values())
    write_json(folder / "model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": shard_of})


def make_folder(folder, seed, config, dtype, files):
    folder.mkdir(parents=True, exist_ok=True)
    model = make_model(config, seed, dtype)
    written = model.config.to_diff_dict() | {"architectures": [type(model).__name__], "dtype": str(dtype).split(".")[-1]}
    (folder / "config.json").write_text(json.dumps(written, indent=1, default=str) + "\n")
    write_safetensors(folder, model, dtype, files)
    write_json(folder / "expected.json", expectation(model, seed))


GGUF_NAMES = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
              "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
              "mlp.down_proj": "ffn_down"}


def gguf_name(name):
    outer = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight", "lm_head.weight": "output.weight"}
    if name in outer:
        return outer[name]
    _, _, layer, rest = name.split(".", 3)
    return f"blk.{layer}.{GGUF_NAMES[rest.removesuffix('.weight')]}.weight"


def interleaved(weight, heads):
    """Rows of q and k in the order that rotates neighbours: a head's two halves are dealt in turn."""
    return weight.reshape(heads, 2, -1, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)


def halves(weight, heads):
    return weight.reshape(heads, -1, 2, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)


def heads_of(name, config):
    return {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}.get(name.split(".")[-2])


def make_gguf(path, seed, config, kind):
    """Writes the file and lets Transformers compute with the weights as they read back from it."""
    model = make_model(config, seed, torch.float32)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny llama")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    writer.add_bos_token_id(config.bos_token_id)
    writer.add_eos_token_id(config.eos_token_id)
    quantized = gguf.GGMLQuantizationType[kind]
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            weight = parameter.numpy().copy()
            if weight.ndim == 1:
                writer.add_tensor(gguf_name(name), weight)
                continue
            heads = heads_of(name, config)
            stored = gguf.quants.quantize(interleaved(weight, heads) if heads else weight, quantized)
            writer.add_tensor(gguf_name(name), stored, raw_dtype=quantized)
            back = numpy.array(gguf.quants.dequantize(stored, quantized), numpy.float32).reshape(weight.shape)
            parameter.copy_(torch.from_numpy(numpy.ascontiguousarray(halves(back, heads) if heads else back)))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    write_json(path.with_suffix(".expected.json"), expectation(model, seed))


def main():
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "models"
    torch.set_num_threads(1)
    for seed, (name, (config, dtype, files)) in enumerate(MODELS.items(), start=1):
        make_folder(out / name, seed, config, dtype, files)
        print(out / name)
    (out / "gguf").mkdir(parents=True, exist_ok=True)
    for kind in GGUF_TYPES:
        make_gguf(out / "gguf" / f"{kind}.gguf", 11, GGUF_MODEL, kind)
        print(out / "gguf" / kind)


if __name__ == "__main__":
    main()
