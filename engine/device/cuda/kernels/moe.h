// SPDX-License-Identifier: Apache-2.0
// Mixture of experts around the grouped linear layers (ExpertRows in linear.h): choosing experts, sorting tokens by expert, and
// joining the experts' results. A step is: routeExperts, sortByExpert, packedLinear of gate and up with `inputRows` = tokenOf,
// activation over the sorted rows, packedLinear of down, combineExperts. Nothing of it is decided on the host, so that it may be
// replayed.
#pragma once

#include "engine/device/cuda/kernels/kernel_types.h"

namespace headroom::engine::cuda {

struct RoutingRule {
  bool sigmoid = false;                // else softmax over all experts
  const float* choiceBias = nullptr;   // device memory, (experts): added to the scores for the choice alone; may be null
  int groups = 1, groupsPerToken = 1;  // choose from the best groupsPerToken of `groups` equal runs of experts
  bool groupByTopTwo = false;          // a group's score is the sum of its best two, else its best
  bool normalize = false;              // chosen weights divided by their sum
  float scale = 1.0f;                  // and multiplied by this
};

// ids I32 and weights F32 (tokens, expertsPerToken) from logits F32 (tokens, experts), a token's best first; equal scores: the
// lower expert first. Scores that are no numbers are chosen last. At most 2048 experts, 256 groups.
void routeExperts(Stream stream, TensorView ids, TensorView weights, TensorView logits, const RoutingRule& rule);

// Tokens by expert, in their order. A slot is token * expertsPerToken + choice; ids outside 0 … experts-1 have no row.
//   begin (experts + 1): rows begin[e] … begin[e+1] are expert e's     tokenOf (slots): the token of a row; 0 for rows past the
//   last rowOf (slots): the row of a slot, -1: none
void sortByExpert(Stream stream, int* begin, int* tokenOf, int* rowOf, TensorView ids, int experts);

// out(row) = in(token of the row) * weight of its slot: where weights go on the input. Rows past the last are not written.
void gatherWeighted(Stream stream, TensorView out, TensorView in, const int* rowOf, TensorView weights);

// out(t) = the sum over the token's experts, in ascending order of expert, of weight * rows(rowOf[slot]); weights may have no
// data: 1. addToOut: out += the sum.
void combineExperts(Stream stream, TensorView out, TensorView rows, const int* rowOf, TensorView ids, TensorView weights,
                    bool addToOut);

}  // namespace headroom::engine::cuda
