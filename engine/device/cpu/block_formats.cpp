// SPDX-License-Identifier: Apache-2.0
// GGUF's blocks: https://github.com/ggml-org/ggml (the block_* structures say what the bytes are). Each reader takes one block.
#include "engine/device/cpu/block_formats.h"

#include "core/result.h"
#include "engine/device/cpu/codebooks.h"

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

// Scale, 16 bytes of codes as Q4_0's.
void readIQ4_NL(const uint8_t* block, float* to) {
  const float d = half(block);
  for (int i = 0; i < 16; ++i) {
    to[i] = d * static_cast<float>(kIq4Values[block[2 + i] & 15]);
    to[i + 16] = d * static_cast<float>(kIq4Values[block[2 + i] >> 4]);
  }
}

// Super-scale, the high bit pairs of eight scales, 4 bytes of their low nibbles; then for each group of 32 codes as IQ4_NL's.
void readIQ4_XS(const uint8_t* block, float* to) {
  const float d = half(block);
  const int high = readAs<uint16_t>(block + 2);
  for (int j = 0; j < 8; ++j) {
    const int scale = ((block[4 + j / 2] >> (j % 2 * 4)) & 15) | ((high >> (2 * j)) & 3) << 4;
    const float dl = d * static_cast<float>(scale - 32);
    for (int i = 0; i < 16; ++i) {
      const uint8_t byte = block[8 + j * 16 + i];
      to[j * 32 + i] = dl * static_cast<float>(kIq4Values[byte & 15]);
      to[j * 32 + 16 + i] = dl * static_cast<float>(kIq4Values[byte >> 4]);
    }
  }
}

// An exponent (E8M0) of half the scale, since the codes count halves; 16 bytes of FP4 codes as Q4_0's.
void readMXFP4(const uint8_t* block, float* to) {
  const float d = std::bit_cast<float>(block[0] < 2 ? 0x00200000u << block[0] : (block[0] - 1u) << 23);
  for (int i = 0; i < 16; ++i) {
    to[i] = d * static_cast<float>(kDoubledFp4Values[block[1 + i] & 15]);
    to[i + 16] = d * static_cast<float>(kDoubledFp4Values[block[1 + i] >> 4]);
  }
}

// 7 stored signs; the eighth makes their number even.
uint32_t eightSigns(uint32_t seven) { return seven | (static_cast<uint32_t>(std::popcount(seven)) & 1u) << 7; }

void signedRun(float scale, const int8_t* magnitudes, uint32_t signs, int count, float* to) {
  for (int i = 0; i < count; ++i) to[i] = scale * static_cast<float>((signs >> i) & 1 ? -magnitudes[i] : magnitudes[i]);
}

// Scale; for each group of 32: 4 indices of 8 weights, four times 7 signs, a 4-bit scale.
void readIQ2_XXS(const uint8_t* block, float* to) {
  const float d = half(block);
  for (int j = 0; j < 8; ++j) {
    const uint8_t* group = block + 2 + j * 8;
    const auto signs = readAs<uint32_t>(group + 4);
    const float dl = d * (0.5f + static_cast<float>(signs >> 28)) * 0.25f;
    for (int l = 0; l < 4; ++l)
      signedRun(dl, codebook(DType::IQ2_XXS) + group[l] * 8, eightSigns((signs >> (7 * l)) & 127), 8, to + j * 32 + l * 8);
  }
}

// Scale; 32 times 9 bits of index and 7 signs; 16 scales of 4 bits.
void readIQ2_XS(const uint8_t* block, float* to) {
  const float d = half(block);
  for (int e = 0; e < 32; ++e) {
    const uint32_t code = readAs<uint16_t>(block + 2 + 2 * e);
    const int scale = (block[66 + e / 4] >> (e / 2 % 2 * 4)) & 15;
    const float dl = d * (0.5f + static_cast<float>(scale)) * 0.25f;
    signedRun(dl, codebook(DType::IQ2_XS) + (code & 511) * 8, eightSigns(code >> 9), 8, to + e * 8);
  }
}

// Scale; 32 low bytes of indices, 32 bytes of signs, 8 bytes of high bit pairs, 16 scales of 4 bits.
void readIQ2_S(const uint8_t* block, float* to) {
  const float d = half(block);
  for (int e = 0; e < 32; ++e) {
    const int index = block[2 + e] | ((block[66 + e / 4] >> (e % 4 * 2)) & 3) << 8;
    const int scale = (block[74 + e / 4] >> (e / 2 % 2 * 4)) & 15;
    const float dl = d * (0.5f + static_cast<float>(scale)) * 0.25f;
    signedRun(dl, codebook(DType::IQ2_S) + index * 8, block[34 + e], 8, to + e * 8);
  }
}

// Scale; 64 indices of 4 weights; for each group of 32 four times 7 signs and a 4-bit scale.
void readIQ3_XXS(const uint8_t* block, float* to) {
  const float d = half(block);
  for (int j = 0; j < 8; ++j) {
    const auto signs = readAs<uint32_t>(block + 66 + 4 * j);
    const float dl = d * (0.5f + static_cast<float>(signs >> 28)) * 0.5f;
    for (int l = 0; l < 8; ++l) {
      const uint32_t eight = eightSigns((signs >> (l / 2 * 7)) & 127);
      signedRun(dl, codebook(DType::IQ3_XXS) + block[2 + j * 8 + l] * 4, eight >> (l % 2 * 4), 4, to + j * 32 + l * 4);
    }
  }
}

// Scale; 64 low bytes of indices, 64 ninth bits, 32 bytes of signs, 8 scales of 4 bits.
void readIQ3_S(const uint8_t* block, float* to) {
  const float d = half(block);
  for (int e = 0; e < 64; ++e) {
    const int index = block[2 + e] | ((block[66 + e / 8] >> (e % 8)) & 1) << 8;
    const int scale = (block[106 + e / 16] >> (e / 8 % 2 * 4)) & 15;
    signedRun(d * static_cast<float>(1 + 2 * scale), codebook(DType::IQ3_S) + index * 4, block[74 + e / 2] >> (e % 2 * 4), 4,
              to + e * 4);
  }
}

void shiftedRun(float scale, const int8_t* digits, float delta, float* to) {
  for (int i = 0; i < 8; ++i) to[i] = scale * (static_cast<float>(digits[i]) + delta);
}

// Scale; 32 low bytes of indices; for each group of 32 four times 3 high bits, a 3-bit scale, the sign of the shift.
void readIQ1_S(const uint8_t* block, float* to) {
  const float d = half(block);
  for (int e = 0; e < 32; ++e) {
    const uint32_t high = readAs<uint16_t>(block + 34 + e / 4 * 2);
    const uint32_t index = block[2 + e] | ((high >> (e % 4 * 3)) & 7) << 8;
    const float dl = d * static_cast<float>(2 * ((high >> 12) & 7) + 1);
    shiftedRun(dl, codebook(DType::IQ1_S) + index * 8, high & 0x8000 ? -0.125f : 0.125f, to + e * 8);
  }
}

// 32 low bytes of indices, 32 nibbles (3 high bits, the sign of the shift), four 16-bit words: four 3-bit scales each, and in the
// top nibbles the super-scale.
void readIQ1_M(const uint8_t* block, float* to) {
  uint32_t bits = 0;
  for (int i = 0; i < 4; ++i) bits |= (readAs<uint16_t>(block + 48 + 2 * i) >> 12u) << (4 * i);
  const float d = f16ToFloat(static_cast<uint16_t>(bits));
  for (int e = 0; e < 32; ++e) {
    const uint32_t high = (block[32 + e / 2] >> (e % 2 * 4)) & 15;
    const uint32_t scale = (readAs<uint16_t>(block + 48 + e / 8 * 2) >> (e / 2 % 4 * 3)) & 7;
    shiftedRun(d * static_cast<float>(2 * scale + 1), codebook(DType::IQ1_M) + (block[e] | (high & 7) << 8) * 8,
               high & 8 ? -0.125f : 0.125f, to + e * 8);
  }
}

// 0, 1 or 2: the digit of 3^-(n+1) of byte / 256.
int ternaryDigit(uint8_t byte, int n) {
  constexpr int kPowers[] = {1, 3, 9, 27, 81};
  return (((byte * kPowers[n]) & 255) * 3) >> 8;
}

// 48 bytes of five ternary digits (the first 32, then 16), 4 bytes of four, scale.
void readTQ1_0(const uint8_t* block, float* to) {
  const float d = half(block + 52);
  const auto digit = [&](int byte, int n) { return d * static_cast<float>(ternaryDigit(block[byte], n) - 1); };
  for (int n = 0; n < 5; ++n)
    for (int i = 0; i < 32; ++i) to[n * 32 + i] = digit(i, n);
  for (int n = 0; n < 5; ++n)
    for (int i = 0; i < 16; ++i) to[160 + n * 16 + i] = digit(32 + i, n);
  for (int n = 0; n < 4; ++n)
    for (int i = 0; i < 4; ++i) to[240 + n * 4 + i] = digit(48 + i, n);
}

// 64 bytes of four digits in bit pairs, scale.
void readTQ2_0(const uint8_t* block, float* to) {
  const float d = half(block + 64);
  for (int i = 0; i < 256; ++i) to[i] = d * static_cast<float>(((block[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2)) & 3) - 1);
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
    case DType::IQ4_NL:
      return readIQ4_NL;
    case DType::IQ4_XS:
      return readIQ4_XS;
    case DType::MXFP4:
      return readMXFP4;
    case DType::IQ2_XXS:
      return readIQ2_XXS;
    case DType::IQ2_XS:
      return readIQ2_XS;
    case DType::IQ2_S:
      return readIQ2_S;
    case DType::IQ3_XXS:
      return readIQ3_XXS;
    case DType::IQ3_S:
      return readIQ3_S;
    case DType::IQ1_S:
      return readIQ1_S;
    case DType::IQ1_M:
      return readIQ1_M;
    case DType::TQ1_0:
      return readTQ1_0;
    case DType::TQ2_0:
      return readTQ2_0;
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
