// SPDX-License-Identifier: Apache-2.0
// The next tokens from logits F32 (rows, vocabulary) on the device, so that only ids cross the bus. The steps and their order are
// those of engine/sample/sampler.h: mask, bias, penalties, then greedy choice, or temperature, min_p, top_k, top_p and a draw
// with a given uniform number.
#pragma once

#include "engine/device/cuda/kernels/kernel_types.h"

namespace headroom::engine::cuda {

// Allowed tokens: row r may take token i where bit i % 32 of masks(maskOfRow[r], i / 32) is set; maskOfRow[r] < 0: all. `words`
// from row to row.
void applyMasks(Stream stream, TensorView logits, const uint32_t* masks, int64_t words, const int* maskOfRow);

// logits(row) += amount (minus infinity forbids). A row's entries name distinct tokens.
struct LogitBias {
  int row, token;
  float amount;
};
void applyBiases(Stream stream, TensorView logits, const LogitBias* biases, int64_t count);

// Distinct tokens of a row's prompt and output, with how often the output has them (0: the prompt alone). A logit above 0 is
// divided by `repetition`, another multiplied; then frequency * count + presence is subtracted where count > 0.
struct SeenToken {
  int row, token, count;
};
struct Penalties {
  float repetition = 1.0f, frequency = 0.0f, presence = 0.0f;
};
void applyPenalties(Stream stream, TensorView logits, const SeenToken* seen, int64_t count, const Penalties* ofRow);

inline constexpr double kGreedyBelow = 1e-5;
// What a row is sampled with. A temperature below kGreedyBelow is greedy; topK <= 0, topP >= 1 and minP <= 0 leave all tokens.
struct SampleRow {
  double temperature = 0.0;
  int topK = 0;
  double topP = 1.0, minP = 0.0;
  double uniform = 0.0;  // in [0, 1)
};
// ids: I32, a token a row, the lowest id among equals; -1 where no logit is above minus infinity. Weights exp((logit - highest) /
// temperature) count as multiples of 2^-32, so that sums are exact and a result depends on nothing but its row: tokens 22 e-folds
// below the likeliest are never drawn.
void sampleRows(Stream stream, int* ids, TensorView logits, const SampleRow* rows);
// The likeliest token of each row: what sampleRows gives where all rows are greedy.
void argmaxRows(Stream stream, int* ids, TensorView logits);

}  // namespace headroom::engine::cuda
