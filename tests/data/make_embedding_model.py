#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the tiny embedding model of the engine's tests as sentence-transformers and AutoModel save one (no head, no "model." before
the names, modules.json), and beside it the vectors that Hugging Face Transformers computes with it in float32.

usage: make_embedding_model.py [FOLDER]      (default: models/embedding beside this script)

expected.json:
  cases: one entry a prompt
    prompt   token ids
    vectors  by pooling, as headroom-engine's --pooling names them, not normalized
"""
import json
import pathlib
import sys

import numpy
import torch
import transformers
from safetensors.torch import save_file
from transformers import AutoModel, Qwen3Config

from make_reference_models import COMMON, PROMPT_LENGTHS, fill, write_json

CONFIG = Qwen3Config(hidden_size=40, intermediate_size=56, num_hidden_layers=3, num_attention_heads=5, num_key_value_heads=1, head_dim=8,
                     tie_word_embeddings=False, **COMMON)


def poolings(hidden):
    """hidden: (tokens, hidden_size) behind the last norm."""
    count = len(hidden)
    weights = torch.arange(1, count + 1, dtype=hidden.dtype)[:, None]
    return {"last": hidden[-1], "cls": hidden[0], "mean": hidden.mean(0), "max": hidden.max(0).values,
            "mean_sqrt_len": hidden.sum(0) / count ** 0.5, "weighted_mean": (weights * hidden).sum(0) / weights.sum()}


@torch.inference_mode()
def expectation(model):
    random = numpy.random.default_rng(11)
    cases = []
    for length in PROMPT_LENGTHS:
        prompt = random.integers(3, model.config.vocab_size, length).tolist()
        hidden = model(torch.tensor([prompt]), use_cache=False).last_hidden_state[0].double()
        cases.append({"prompt": prompt,
                      "vectors": {name: [round(value, 6) for value in vector.tolist()] for name, vector in poolings(hidden).items()}})
    return {"transformers": transformers.__version__, "dtype": "float32", "cases": cases}


def main():
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "models" / "embedding"
    torch.set_num_threads(1)
    (out / "1_Pooling").mkdir(parents=True, exist_ok=True)
    model = AutoModel.from_config(CONFIG, attn_implementation="eager", dtype=torch.float32).eval()
    fill(model, 11, torch.bfloat16)
    written = model.config.to_diff_dict() | {"architectures": ["Qwen3Model"], "dtype": "bfloat16"}
    (out / "config.json").write_text(json.dumps(written, indent=1, default=str) + "\n")
    save_file({name: weight.detach().to(torch.bfloat16).contiguous() for name, weight in model.state_dict().items()},
              out / "model.safetensors", metadata={"format": "pt"})
    write_json(out / "modules.json", [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}])
    write_json(out / "1_Pooling" / "config.json", {
        "word_embedding_dimension": CONFIG.hidden_size, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": False,
        "pooling_mode_max_tokens": False, "pooling_mode_mean_sqrt_len_tokens": False, "pooling_mode_weightedmean_tokens": False,
        "pooling_mode_lasttoken": True, "include_prompt": True})
    write_json(out / "expected.json", expectation(model))


if __name__ == "__main__":
    main()
