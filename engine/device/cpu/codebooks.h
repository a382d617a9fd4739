// SPDX-License-Identifier: Apache-2.0
// The codebooks of GGUF's IQ types: runs of 8 (IQ1, IQ2) or 4 (IQ3) weights that one index stands for.
#pragma once

#include "core/model/dtype.h"

#include <array>
#include <cstdint>

namespace headroom::engine::cpu {

// (entries, 8 or 4) weights: magnitudes of IQ2_XXS (256 entries), IQ2_XS (512), IQ2_S (1024), IQ3_XXS (256) and IQ3_S (512); -1, 0 or 1
// for IQ1_S and IQ1_M (2048). Null for other types. Aligned to 64 bytes.
const int8_t* codebook(DType dtype);

// What the 4-bit codes of IQ4_NL and IQ4_XS stand for.
inline constexpr std::array<int8_t, 16> kIq4Values = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
// Twice what the codes of FP4 (E2M1) stand for.
inline constexpr std::array<int8_t, 16> kDoubledFp4Values = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

}  // namespace headroom::engine::cpu
