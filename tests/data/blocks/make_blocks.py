#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes blocks.json beside this file: for each block type of GGUF some random blocks with sensible scales, and what the gguf package (PyPI)
makes of them. Needs gguf and numpy."""
import json, pathlib
import gguf, numpy

TYPES = "Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS MXFP4 IQ2_XXS IQ2_XS IQ2_S IQ3_XXS IQ3_S IQ1_S IQ1_M TQ1_0 TQ2_0".split()
# Bytes where half-precision factors begin; IQ1_M spreads its one over the top nibbles of four words.
FACTORS = {"Q4_1": [0, 2], "Q5_1": [0, 2], "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "TQ1_0": [52], "TQ2_0": [64]}


def main():
    random, found = numpy.random.default_rng(20240229), {}
    for name in TYPES:
        kind = gguf.GGMLQuantizationType[name]
        elements, size = gguf.GGML_QUANT_SIZES[kind]
        blocks = random.integers(0, 256, (128 // elements if elements < 128 else 1, size), dtype=numpy.uint8)
        for block in blocks:
            half = lambda: numpy.frombuffer(numpy.float16(random.uniform(0.01, 0.03) * random.choice([-1, 1])).tobytes(), numpy.uint8)
            if name == "MXFP4":
                block[0] = random.integers(118, 124)
            elif name == "IQ1_M":
                bits = int.from_bytes(half().tobytes(), "little")
                for i in range(4):
                    block[49 + 2 * i] = (block[49 + 2 * i] & 15) | ((bits >> (4 * i)) & 15) << 4
            else:
                for at in FACTORS.get(name, [0]):
                    block[at:at + 2] = half()
        values = gguf.quants.dequantize(blocks.reshape(1, -1), kind).astype(numpy.float32).reshape(-1)
        found[name] = {"blocks": blocks.tobytes().hex(), "floats": values.tobytes().hex()}
    lines = ",\n".join(f'"{name}": {json.dumps(value)}' for name, value in found.items())
    pathlib.Path(__file__).with_name("blocks.json").write_text("{\n" + lines + "\n}\n")


main()
