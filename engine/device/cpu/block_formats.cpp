// SPDX-License-Identifier: Apache-2.0
// GGUF's blocks: https://github.com/ggml-org/ggml (the block_* structures say what the bytes are). Each reader takes one block.
#include "engine/device/cpu/block_formats.h"

#include "core/result.h"

namespace headroom::engine::cpu {
namespace {

float half(const uint8_t* from) { return f16ToFloat(readAs<uint16_t>(from)); }

// 32 elements: scale, 16 bytes; element i in the low nibble of byte i, element i + 16 in the high one.
void readQ4_0(const uint8_t* block, float* to) {
  const float d = half(block);
  for (int i = 0; i < 16; ++i) {
    to[i] = d * static_cast<float>((block[2 + i] & 15) - 8);
    to[i + 16] = d * static_cast<float>((block[2 + i] >> 4) - 8);
  }
}

// Scale, minimum, 16 bytes as above.
void readQ4_1(const uint8_t* block, float* to) {
  const float d = half(block), m = half(block + 2);
  for (int i = 0; i < 16; ++i) {
    to[i] = d * static_cast<float>(block[4 + i] & 15) + m;
    to[i + 16] = d * static_cast<float>(block[4 + i] >> 4) + m;
  }
}

// Scale, 32 fifth bits, 16 bytes as above.
void readQ5_0(const uint8_t* block, float* to) {
  const float d = half(block);
  const uint32_t high = readAs<uint32_t>(block + 2);
  for (int i = 0; i < 16; ++i) {
    const int low0 = block[6 + i] & 15, low1 = block[6 + i] >> 4;
    to[i] = d * static_cast<float>((low0 | static_cast<int>((high >> i) & 1) << 4) - 16);
    to[i + 16] = d * static_cast<float>((low1 | static_cast<int>((high >> (i + 16)) & 1) << 4) - 16);
  }
}

void readQ5_1(const uint8_t* block, float* to) {
  const float d = half(block), m = half(block + 2);
  const uint32_t high = readAs<uint32_t>(block + 4);
  for (int i = 0; i < 16; ++i) {
    const int low0 = block[8 + i] & 15, low1 = block[8 + i] >> 4;
    to[i] = d * static_cast<float>(low0 | static_cast<int>((high >> i) & 1) << 4) + m;
    to[i + 16] = d * static_cast<float>(low1 | static_cast<int>((high >> (i + 16)) & 1) << 4) + m;
  }
}

void readQ8_0(const uint8_t* block, float* to) {
  const float d = half(block);
  for (int i = 0; i < 32; ++i) to[i] = d * static_cast<float>(static_cast<int8_t>(block[2 + i]));
}

// The j-th 6-bit scale and minimum of the 12 bytes that Q4_K and Q5_K keep for 8 groups of 32.
void scaleAndMinimum(const uint8_t* packed, int j, int& scale, int& minimum) {
  if (j < 4) {
    scale = packed[j] & 63;
    minimum = packed[j + 4] & 63;
  } else {
    scale = (packed[j + 4] & 15) | (packed[j - 4] >> 6) << 4;
    minimum = (packed[j + 4] >> 4) | (packed[j] >> 6) << 4;
  }
}

// Super-scale, super-minimum, 12 bytes of scales, 128 bytes: each 32 bytes hold two groups, low nibbles first.
void readQ4_K(const uint8_t* block, float* to) {
  const float d = half(block), dmin = half(block + 2);
  for (int j = 0; j < 8; ++j) {
    int scale, minimum;
    scaleAndMinimum(block + 4, j, scale, minimum);
    const uint8_t* quants = block + 16 + (j / 2) * 32;
    for (int i = 0; i < 32; ++i) {
      const int q = j % 2 ? quants[i] >> 4 : quants[i] & 15;
      to[j * 32 + i] = d * static_cast<float>(scale) * static_cast<float>(q) - dmin * static_cast<float>(minimum);
    }
  }
}

// As Q4_K with 32 bytes of fifth bits (bit j belongs to group j) before the nibbles.
void readQ5_K(const uint8_t* block, float* to) {
  const float d = half(block), dmin = half(block + 2);
  for (int j = 0; j < 8; ++j) {
    int scale, minimum;
    scaleAndMinimum(block + 4, j, scale, minimum);
    const uint8_t *high = block + 16, *quants = block + 48 + (j / 2) * 32;
    for (int i = 0; i < 32; ++i) {
      const int q = (j % 2 ? quants[i] >> 4 : quants[i] & 15) | ((high[i] >> j) & 1) << 4;
      to[j * 32 + i] = d * static_cast<float>(scale) * static_cast<float>(q) - dmin * static_cast<float>(minimum);
    }
  }
}

// 128 bytes of low nibbles, 64 bytes of high bit pairs, 16 int8 scales of 16 elements each, super-scale.
void readQ6_K(const uint8_t* block, float* to) {
  const float d = half(block + 208);
  for (int half128 = 0; half128 < 2; ++half128) {
    const uint8_t *low = block + half128 * 64, *high = block + 128 + half128 * 32;
    const uint8_t* scales = block + 192 + half128 * 8;
    for (int part = 0; part < 4; ++part) {
      for (int i = 0; i < 32; ++i) {
        const uint8_t byte = low[(part % 2) * 32 + i];
        const int q = ((part < 2 ? byte & 15 : byte >> 4) | ((high[i] >> (2 * part)) & 3) << 4) - 32;
        const int scale = static_cast<int8_t>(scales[part * 2 + i / 16]);
        to[half128 * 128 + part * 32 + i] = d * static_cast<float>(scale) * static_cast<float>(q);
      }
    }
  }
}

// 16 bytes of scales (low nibble) and minimums (high nibble) of 16 elements each, 64 bytes of bit pairs, super-scale,
// super-minimum.
void readQ2_K(const uint8_t* block, float* to) {
  const float d = half(block + 80), dmin = half(block + 82);
  for (int j = 0; j < 16; ++j) {
    const float scale = d * static_cast<float>(block[j] & 15), minimum = dmin * static_cast<float>(block[j] >> 4);
    const uint8_t* quants = block + 16 + (j / 8) * 32 + (j % 2) * 16;
    const int shift = (j % 8) / 2 * 2;
    for (int i = 0; i < 16; ++i) to[j * 16 + i] = scale * static_cast<float>((quants[i] >> shift) & 3) - minimum;
  }
}

// 32 bytes of third bits (a clear bit subtracts 4), 64 bytes of bit pairs, 12 bytes of sixteen 6-bit scales less 32, super-scale.
void readQ3_K(const uint8_t* block, float* to) {
  const float d = half(block + 108);
  const uint8_t* packed = block + 96;
  for (int j = 0; j < 16; ++j) {
    const int low = j < 8 ? packed[j] & 15 : packed[j - 8] >> 4;
    const int top = (packed[8 + j % 4] >> (2 * (j / 4))) & 3;
    const float scale = d * static_cast<float>((low | top << 4) - 32);
    const uint8_t *quants = block + 32 + (j / 8) * 32 + (j % 2) * 16, *high = block + (j % 2) * 16;
    const int shift = (j % 8) / 2 * 2, bit = j / 2;
    for (int i = 0; i < 16; ++i) {
      const int q = ((quants[i] >> shift) & 3) - ((high[i] >> bit) & 1 ? 0 : 4);
      to[j * 16 + i] = scale * static_cast<float>(q);
    }
  }
}

using BlockReader = void (*)(const uint8_t* block, float* to);

BlockReader blockReader(DType dtype) {
  switch (dtype) {
    case DType::Q4_0:
      return readQ4_0;
    case DType::Q4_1:
      return readQ4_1;
    case DType::Q5_0:
      return readQ5_0;
    case DType::Q5_1:
      return readQ5_1;
    case DType::Q8_0:
      return readQ8_0;
    case DType::Q2_K:
      return readQ2_K;
    case DType::Q3_K:
      return readQ3_K;
    case DType::Q4_K:
      return readQ4_K;
    case DType::Q5_K:
      return readQ5_K;
    case DType::Q6_K:
      return readQ6_K;
    default:
      return nullptr;
  }
}

}  // namespace

bool canRead(DType dtype) {
  return dtype == DType::F64 || dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16 || blockReader(dtype);
}

void toFloats(DType dtype, const void* from, int64_t count, float* to) {
  const auto* bytes = static_cast<const uint8_t*>(from);
  switch (dtype) {
    case DType::F32:
      std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
      return;
    case DType::F64:
      for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(readAs<double>(bytes + 8 * i));
      return;
    case DType::F16:
      for (int64_t i = 0; i < count; ++i) to[i] = f16ToFloat(readAs<uint16_t>(bytes + 2 * i));
      return;
    case DType::BF16:
      for (int64_t i = 0; i < count; ++i) to[i] = bf16ToFloat(readAs<uint16_t>(bytes + 2 * i));
      return;
    default:
      break;
  }
  const BlockReader read = blockReader(dtype);
  expects(read != nullptr, "the CPU backend was given an element type that it does not read");
  const DTypeInfo& info = dtypeInfo(dtype);
  for (int64_t i = 0; i < count; i += info.blockElements, bytes += info.blockBytes) read(bytes, to + i);
}

void fromFloats(DType dtype, const float* from, int64_t count, void* to) {
  if (dtype == DType::F32) {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
    return;
  }
  expects(dtype == DType::F16 || dtype == DType::BF16, "floats are rounded to F16 or BF16 only");
  auto* bits = static_cast<uint16_t*>(to);
  for (int64_t i = 0; i < count; ++i) bits[i] = dtype == DType::F16 ? floatToF16(from[i]) : floatToBf16(from[i]);
}

}  // namespace headroom::engine::cpu
