// SPDX-License-Identifier: Apache-2.0
// The one forward pass: a rank's share of its stage's layers over Backend and Communicator. Model families differ by core's
// DecoderTraits.
//
// Shapes: hidden (tokens, hiddenSize); per rank q (tokens, qHeads * headDim), k and v (tokens, kvHeads * headDim), gate and up
// (tokens, columns). A row-parallel product (o, down) is summed over the TP ranks; its bias is rank 0's alone.
#pragma once

#include "engine/model/kv_cache.h"
#include "engine/model/rope_table.h"
#include "engine/model/workspace.h"
#include "engine/parallel/communicator.h"
#include "engine/schedule/step_plan.h"
#include "engine/weights/weight_loader.h"

#include <atomic>
#include <map>

namespace headroom::engine {

// What a rank is and has. Everything is borrowed and outlives the decoder.
struct RankContext {
  const ModelSource& model;
  const ParallelLayout& layout;
  const RankSlice& rank;
  const EngineLimits& limits;
  Backend& backend;
  Communicator& communicator;                    // of the stage's TP ranks
  PipelineLink* fromPrevious = nullptr;          // null on the first stage
  PipelineLink* toNext = nullptr;                // null on the last stage
  LogitsConsumer* consumer = nullptr;            // on TP rank 0 of the last stage
  const std::atomic<bool>* cancelled = nullptr;  // looked at before each layer
};

// Its rank's thread only.
class Decoder {
 public:
  Decoder(const RankContext& context, const RankWeights& weights, const KvCache& cache, const Workspace& workspace);

  // Runs one step: takes the tokens or the previous stage's hidden states, leaves keys and values in the cache, and hands the
  // hidden states on or the logits to the consumer.
  Status run(const SharedStepPlan& plan);

  // All ranks together, before the first step, on a device that loads code or takes memory at the first launch: runs the largest
  // step, and records the steps that only generate, one for each of core's graphBatches, where device and communicator can.
  // Later steps of as many sequences, or fewer, are then replayed.
  Status prepare();
  // Steps that were replayed.
  int64_t replayed() const { return m_replayed; }

 private:
  // Views of this step.
  struct Step {
    int64_t tokens = 0;
    TensorView ids, positions, slots, hidden, normed, branch, angles, localAngles;
    AttentionBatch batch;
  };

  // The arrays of a step as they are uploaded: a plan's own, or with rows without a sequence behind them.
  struct Arrays {
    const std::vector<int32_t>&tokenIds, &positions, &slots, &sequenceStart, &contextLength, &stateSlots, &blockTable;
    int64_t blocksPerSequence = 0;
  };

  Status checkFits(const StepPlan& plan) const;
  bool canRecord(int64_t batch) const;
  int64_t batchFor(const StepPlan& plan) const;
  Step uploadBatch(const StepPlan& plan, int64_t batch);
  Status runRecorded(const StepPlan& plan, int64_t batch);
  Status generateForward(Step& step);
  Status runLargestStep();
  Status recordBatch(int64_t batch);
  Status runLayers(Step& step);
  void copyStates(const std::vector<StepPlan::StateCopy>& copies);
  void angles(Step& step);
  Status embed(Step& step);
  Result<TensorView> logitsOf(TensorView last);
  void uploadFrequencies();
  Step upload(const Arrays& arrays, int64_t tableStride);
  Status runLayer(Step& step, int64_t indexInStage);
  Status attention(Step& step, int64_t indexInStage, TensorView in);
  void linearAttention(Step& step, int64_t indexInStage, TensorView in);
  void latentAttention(Step& step, int64_t indexInStage, TensorView in);
  void attentionOverCache(Step& step, int64_t indexInStage, TensorView q);
  Status normAllHeads(Step& step, TensorView q, TensorView k, const LayerWeights& weights, const LayerSpec& spec);
  void rotateAndStore(Step& step, const KvLayerView& cache, HeadsOfStep heads, const LayerWeights& weights,
                      const LayerSpec& spec);
  void mlp(Step& step, int64_t indexInStage, TensorView in);
  void gatedMlp(Step& step, TensorView in, const WeightMatrix& gate, const WeightMatrix& up, const WeightMatrix& down,
                const LayerWeights* biases);
  void experts(Step& step, int64_t indexInStage, TensorView in);
  bool sharedExpert(Step& step, const LayerWeights& weights, TensorView in);
  double attentionScale(const LayerSpec& spec) const;
  void rowParallel(TensorView out, TensorView in, const WeightMatrix& weight, const DeviceBuffer& bias);
  Status finishBranch(Step& step, const DeviceBuffer& postNorm);
  void addBranch(Step& step);
  TensorView normed(Step& step, const DeviceBuffer& weight, const DeviceBuffer& bias);
  void norm(TensorView out, TensorView in, const DeviceBuffer& weight, const DeviceBuffer& bias);
  Status project(Step& step, const StepPlan& plan);
  Status projectRows(Step& step, const StepPlan& plan, int64_t firstRow, int64_t rows);
  Status handOutHidden(const StepPlan& plan, int64_t firstRow, TensorView hidden);
  Result<float*> onHost(TensorView values, std::vector<float>& room);
  Status handOut(const StepPlan& plan, int64_t firstRow, TensorView logits, TensorView ids);

  const RankContext m_context;
  const ModelConfig& m_config;
  const DecoderTraits& m_traits;
  Backend& m_backend;
  const RankWeights& m_weights;
  const KvCache& m_cache;
  const Workspace& m_workspace;
  RopeTable m_rope, m_localRope;
  bool m_embeddingIsSplit = false, m_headIsSplit = false;
  std::vector<int64_t> m_vocabularyOfRank;        // columns of each TP rank's logits
  std::vector<int32_t> m_rows;                    // of the batch, for one chunk of logits
  std::vector<float> m_hostLogits, m_hostHidden;  // where device memory cannot be read in place
  std::vector<int32_t> m_tokens;                  // that the device sampled
  std::vector<int64_t> m_stateBegin;              // of each layer in the buffer of states, in elements
  bool m_branchPending = false;                   // hidden lacks the last branch's output
  std::map<int64_t, int> m_recordings;            // by sequences
  StepPlan m_batch;                               // of a recorded step: the plan's arrays and rows without a sequence
  int64_t m_replayed = 0;
};

}  // namespace headroom::engine
