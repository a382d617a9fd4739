// SPDX-License-Identifier: Apache-2.0
#include "engine/device/cpu/codebooks.h"

#include "engine/device/codebook_digits.h"

#include <array>
#include <cstddef>
#include <initializer_list>

namespace headroom::engine::cpu {
namespace {

using namespace codebook_digits;

struct Codebook {
  template <size_t n>
  Codebook(const uint16_t (&entries)[n], int bits, int elements, std::initializer_list<int8_t> digits) {
    size_t at = 0;
    for (uint16_t entry : entries)
      for (int i = 0; i < elements; ++i) bytes[at++] = digits.begin()[(entry >> (bits * i)) & ((1 << bits) - 1)];
  }
  alignas(64) std::array<int8_t, 2048 * 8> bytes{};
};

}  // namespace

const int8_t* codebook(DType dtype) {
  switch (dtype) {
    case DType::IQ2_XXS: {
      static const Codebook book(kIQ2_XXS, 2, 8, {8, 25, 43});
      return book.bytes.data();
    }
    case DType::IQ2_XS: {
      static const Codebook book(kIQ2_XS, 2, 8, {8, 25, 43});
      return book.bytes.data();
    }
    case DType::IQ2_S: {
      static const Codebook book(kIQ2_S, 2, 8, {8, 25, 43});
      return book.bytes.data();
    }
    case DType::IQ3_XXS: {
      static const Codebook book(kIQ3_XXS, 3, 4, {4, 12, 20, 28, 36, 44, 52, 62});
      return book.bytes.data();
    }
    case DType::IQ3_S: {
      static const Codebook book(kIQ3_S, 3, 4, {1, 3, 5, 7, 9, 11, 13, 15});
      return book.bytes.data();
    }
    case DType::IQ1_S:
    case DType::IQ1_M: {
      static const Codebook book(kIQ1_S, 2, 8, {-1, 0, 1});
      return book.bytes.data();
    }
    default:
      return nullptr;
  }
}

}  // namespace headroom::engine::cpu
