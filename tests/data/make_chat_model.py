# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/models/chat: a tiny random Llama with a tokenizer and a chat template, for tests of the server and the window that need text.

What it says is noise; that it says something, in whole characters, with usage and an end, is what the tests look at.
usage: make_chat_model.py OUT    (needs numpy, safetensors, tokenizers)
"""
import json, pathlib, sys

import numpy
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

TEXT = """A workbench shows what fits before anything is loaded. Six devices share the layers and the heads.
Every question gets an answer, and every answer ends. Hello, how are you? I am a small model and I know very little."""
SPECIAL = ["<|end|>", "<|im_start|>", "<|im_end|>"]
TEMPLATE = ("{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
            "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")
HEADS, KV_HEADS, HEAD_DIM, HIDDEN, INTERMEDIATE, LAYERS, VOCAB = 6, 3, 8, 48, 96, 4, 320


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator([TEXT], trainers.BpeTrainer(vocab_size=VOCAB, special_tokens=SPECIAL, show_progress=False,
                                                              initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    assert tokenizer.get_vocab_size() == VOCAB, tokenizer.get_vocab_size()
    tokenizer.save(str(out / "tokenizer.json"))
    (out / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>", "chat_template": TEMPLATE}, indent=1) + "\n")
    (out / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN, "intermediate_size": INTERMEDIATE,
        "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "head_dim": HEAD_DIM, "num_hidden_layers": LAYERS, "vocab_size": VOCAB,
        "max_position_embeddings": 1024, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": True,
        "torch_dtype": "float32", "eos_token_id": tokenizer.token_to_id("<|im_end|>")}, indent=1) + "\n")
    random = numpy.random.default_rng(3)
    draw = lambda *shape: (random.standard_normal(shape) * 1.3 / shape[-1] ** 0.5).astype(numpy.float32)
    tensors = {"model.embed_tokens.weight": draw(VOCAB, HIDDEN), "model.norm.weight": numpy.full(HIDDEN, 4, numpy.float32)}
    for layer in range(LAYERS):
        name = f"model.layers.{layer}."
        tensors |= {name + "input_layernorm.weight": numpy.ones(HIDDEN, numpy.float32), name + "post_attention_layernorm.weight": numpy.ones(HIDDEN, numpy.float32),
                    name + "self_attn.q_proj.weight": draw(HEADS * HEAD_DIM, HIDDEN), name + "self_attn.k_proj.weight": draw(KV_HEADS * HEAD_DIM, HIDDEN),
                    name + "self_attn.v_proj.weight": draw(KV_HEADS * HEAD_DIM, HIDDEN), name + "self_attn.o_proj.weight": draw(HIDDEN, HEADS * HEAD_DIM),
                    name + "mlp.gate_proj.weight": draw(INTERMEDIATE, HIDDEN), name + "mlp.up_proj.weight": draw(INTERMEDIATE, HIDDEN),
                    name + "mlp.down_proj.weight": draw(HIDDEN, INTERMEDIATE)}
    save_file(tensors, out / "model.safetensors", metadata={"format": "pt"})


main()
