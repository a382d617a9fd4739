// SPDX-License-Identifier: Apache-2.0
// Random matrices in every packed format: stored blocks, the numbers they stand for, and the packed form on the emulated device.
#pragma once

#include "engine/device/cuda/kernels/packed_weight.h"
#include "tests/engine/cuda_kernels_support.h"

#include <cstring>

namespace headroom::engine::cuda::test {

struct Format {
  const char* name;
  WeightFormat format;
  DType dtype;              // F32: not a type of GGUF, its scales are apart
  int64_t block;            // columns
  std::vector<int> halves;  // where a stored block has scales of 16 bits
};
inline const Format kFormats[] = {
    {"Q8_0", WeightFormat::Q8_0, DType::Q8_0, 32, {0}},           {"Q4_0", WeightFormat::Q4_0, DType::Q4_0, 32, {0}},
    {"Q4_1", WeightFormat::Q4_1, DType::Q4_1, 32, {0, 2}},        {"Q5_0", WeightFormat::Q5_0, DType::Q5_0, 32, {0}},
    {"Q5_1", WeightFormat::Q5_1, DType::Q5_1, 32, {0, 2}},        {"Q2_K", WeightFormat::Q2_K, DType::Q2_K, 256, {80, 82}},
    {"Q3_K", WeightFormat::Q3_K, DType::Q3_K, 256, {108}},        {"Q4_K", WeightFormat::Q4_K, DType::Q4_K, 256, {0, 2}},
    {"Q5_K", WeightFormat::Q5_K, DType::Q5_K, 256, {0, 2}},       {"Q6_K", WeightFormat::Q6_K, DType::Q6_K, 256, {208}},
    {"IQ4_NL", WeightFormat::IQ4_NL, DType::IQ4_NL, 32, {0}},     {"IQ4_XS", WeightFormat::IQ4_XS, DType::IQ4_XS, 256, {0}},
    {"MXFP4", WeightFormat::MXFP4, DType::MXFP4, 32, {}},         {"int4 groups", WeightFormat::Int4, DType::F32, 64, {}},
    {"fp8 tiles", WeightFormat::F8E4M3, DType::F32, 64, {}},      {"IQ1_S", WeightFormat::IQ1_S, DType::IQ1_S, 256, {0}},
    {"IQ1_M", WeightFormat::IQ1_M, DType::IQ1_M, 256, {}},        {"IQ2_XXS", WeightFormat::IQ2_XXS, DType::IQ2_XXS, 256, {0}},
    {"IQ2_XS", WeightFormat::IQ2_XS, DType::IQ2_XS, 256, {0}},    {"IQ2_S", WeightFormat::IQ2_S, DType::IQ2_S, 256, {0}},
    {"IQ3_XXS", WeightFormat::IQ3_XXS, DType::IQ3_XXS, 256, {0}}, {"IQ3_S", WeightFormat::IQ3_S, DType::IQ3_S, 256, {0}},
    {"TQ1_0", WeightFormat::TQ1_0, DType::TQ1_0, 256, {52}},      {"TQ2_0", WeightFormat::TQ2_0, DType::TQ2_0, 256, {64}},
};

inline void formats() {
  QTest::addColumn<int>("index");
  for (int i = 0; i < static_cast<int>(std::size(kFormats)); ++i) QTest::newRow(kFormats[i].name) << i;
}

inline float fp8Value(uint8_t bits) {  // E4M3: exponents biased by 7
  const int exponent = (bits >> 3) & 15, mantissa = bits & 7;
  const float magnitude =
      exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9) : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return bits & 0x80 ? -magnitude : magnitude;
}

struct StoredMatrix {
  StoredMatrix(const Format& what, int64_t outs, int64_t ins, unsigned seed)
      : format(what), out(outs), in(ins), values(outs, ins, DType::F32, 0) {
    const int64_t rowBytes = packedRowBytes(format.format, in), blockBytes = packedRowBytes(format.format, format.block);
    std::mt19937 random(seed);
    bytes.resize(static_cast<size_t>(out * rowBytes));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    std::uniform_real_distribution<float> scale(0.001f, 0.02f);
    for (int64_t block = 0; block < static_cast<int64_t>(bytes.size()) / blockBytes; ++block) {
      uint8_t* at = bytes.data() + block * blockBytes;
      for (int half : format.halves) {
        const uint16_t bits = cpu::floatToF16(scale(random) * (random() % 4 == 0 ? -1.0f : 1.0f));
        std::memcpy(at + half, &bits, 2);
      }
      if (format.format == WeightFormat::MXFP4) at[0] = static_cast<uint8_t>(118 + random() % 6);
      if (format.format == WeightFormat::IQ1_M) {  // the scale's nibbles stand above those of four words
        const uint16_t bits = cpu::floatToF16(scale(random));
        for (int i = 0; i < 4; ++i) at[49 + 2 * i] = static_cast<uint8_t>((at[49 + 2 * i] & 15) | (bits >> (4 * i) & 15) << 4);
      }
      if (format.format == WeightFormat::TQ2_0)  // three is no digit
        for (int i = 0; i < 64; ++i) at[i] &= static_cast<uint8_t>(~(at[i] >> 1 & 0x55));
    }
    if (format.dtype != DType::F32) {
      for (int64_t row = 0; row < out; ++row)
        cpu::toFloats(format.dtype, bytes.data() + row * rowBytes, in, values.values.data() + row * in);
      return;
    }
    const int64_t scaleRows = format.format == WeightFormat::F8E4M3 ? 3 : 1;
    const int64_t rows = (out + scaleRows - 1) / scaleRows, groups = in / 64;
    scales.resize(static_cast<size_t>(rows * groups));
    for (float& value : scales) value = cpu::f16ToFloat(cpu::floatToF16(scale(random)));
    if (format.format == WeightFormat::Int4)
      for (int64_t i = 0; i < rows * groups; ++i) zeros.push_back(static_cast<uint8_t>(random() % 17));
    for (int64_t row = 0; row < out; ++row) {
      for (int64_t col = 0; col < in; ++col) {
        uint8_t& byte = bytes[static_cast<size_t>(row * rowBytes + (format.format == WeightFormat::Int4 ? col / 2 : col))];
        const auto at = static_cast<size_t>(row / scaleRows * groups + col / 64);
        float code = 0;
        if (format.format == WeightFormat::Int4) code = static_cast<float>(((byte >> (col % 2 * 4)) & 15) - zeros[at]);
        if (format.format == WeightFormat::F8E4M3) {
          if ((byte & 0x7f) == 0x7f) byte ^= 1;  // no number
          code = fp8Value(byte);
        }
        values.at(row, col) = code * scales[at];
      }
    }
  }

  // The packed form, rows packed in the given ranges one after another; planes are filled with ones bits before, so that gaps are
  // seen.
  PackedWeight pack(Gpu& gpu, const std::vector<std::pair<int64_t, int64_t>>& ranges) const {
    PackedWeight weight;
    weight.format = format.format;
    weight.out = out;
    weight.in = in;
    weight.data = gpu.upload(std::vector<uint8_t>(static_cast<size_t>(packedLayout(format.format, out, in).bytes), 0xff));
    if (!scales.empty()) {
      if (format.format == WeightFormat::Int4) {  // scales of 16 bits, as checkpoints have them
        std::vector<uint16_t> halves;
        for (float scale : scales) halves.push_back(cpu::floatToF16(scale));
        weight.scales = gpu.upload(halves);
        weight.scaleType = DType::F16;
      } else {
        weight.scales = gpu.upload(scales);
      }
      weight.scaleRows = format.format == WeightFormat::F8E4M3 ? 3 : 1;
      weight.scaleColumns = 64;
    }
    if (!zeros.empty()) weight.zeros = gpu.upload(zeros);
    const int64_t rowBytes = packedRowBytes(format.format, in);
    for (const auto& [begin, end] : ranges) {
      if (begin == end) continue;
      const std::vector<uint8_t> part(bytes.begin() + begin * rowBytes, bytes.begin() + end * rowBytes);
      packRows(gpu.stream, weight, begin, end - begin, gpu.upload(part));
    }
    return weight;
  }

  Format format;
  int64_t out, in;
  std::vector<uint8_t> bytes, zeros;
  std::vector<float> scales;
  Matrix values;
};

}  // namespace headroom::engine::cuda::test
