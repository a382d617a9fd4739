// SPDX-License-Identifier: Apache-2.0
// Mixture of experts on the CPU: the choice of experts, and their MLPs one after another, each over all its tokens at once, so
// that only chosen experts are read and each once.
#pragma once

#include "engine/device/backend.h"
#include "engine/device/cpu/cpu_linear.h"
#include "engine/device/cpu/vector_operations.h"

#include <vector>

namespace headroom::engine::cpu {

// The chosen experts of one token, best first: `count` of them. `choice` has room for the experts and the groups.
void chooseExperts(const float* logits, int64_t experts, const ExpertRouting& routing, int64_t count, float* scores,
                   float* choice, int32_t* ids, float* weights);

class CpuExperts {
 public:
  CpuExperts(CpuLinear& linear, const VectorOperations& operations) : m_linear(linear), m_operations(operations) {}

  void route(TensorView ids, TensorView weights, TensorView logits, const ExpertRouting& routing);
  void run(TensorView out, TensorView in, const ExpertLayer& experts, TensorView ids, TensorView weights, TensorView scratch);

 private:
  struct Chosen {
    int64_t token;
    float weight;
  };
  void sort(TensorView ids, TensorView weights, int64_t experts);
  void runExpert(TensorView out, TensorView in, const ExpertLayer& experts, int64_t expert, TensorView scratch);
  void activate(TensorView gate, TensorView up, const ExpertLayer& experts) const;

  CpuLinear& m_linear;
  const VectorOperations& m_operations;
  // Tokens by expert: those of expert e stand at m_begin[e] … m_begin[e + 1].
  std::vector<int64_t> m_begin, m_next;
  std::vector<Chosen> m_chosen;
  std::vector<float> m_scores, m_choice;
};

}  // namespace headroom::engine::cpu
