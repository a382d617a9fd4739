// SPDX-License-Identifier: Apache-2.0
#include "engine/model/decoder.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace headroom::engine {
namespace {

const float* floats(const DeviceBuffer& buffer) { return static_cast<const float*>(buffer.data()); }

bool isSplit(const ModelSource& model, TensorRole role) {
  const TensorEntry* tensor = model.inventory.find(role);
  return tensor && tensor->loaded && tensor->splitDim == 0;
}

}  // namespace

Decoder::Decoder(const RankContext& context, const RankWeights& weights, const KvCache& cache, const Workspace& workspace)
    : m_context(context),
      m_config(context.model.config),
      m_traits(m_config.decoder),
      m_backend(context.backend),
      m_weights(weights),
      m_cache(cache),
      m_workspace(workspace) {
  const RankSlice& rank = context.rank;
  const int tp = context.layout.tp;
  m_embeddingIsSplit = tp > 1 && isSplit(context.model, TensorRole::TokenEmbedding);
  const TensorEntry* head = context.model.inventory.find(TensorRole::LmHead);
  m_headIsSplit = tp > 1 && (head && head->loaded ? isSplit(context.model, TensorRole::LmHead)
                                                  : isSplit(context.model, TensorRole::TokenEmbedding));
  for (int peer = 0; peer < tp; ++peer)
    m_vocabularyOfRank.push_back(context.layout.at(rank.replica, rank.stage, peer).vocabulary.size());
  m_rope = makeRopeTable(m_config.rope, m_config.maxPositionEmbeddings, context.limits.maxModelLen, weights.ropeDivisors);
  m_localRope = makeRopeTable(m_config.localRope, m_config.maxPositionEmbeddings, context.limits.maxModelLen, {});
  m_rows.reserve(static_cast<size_t>(workspace.shape().logitsRows));
  const TensorView logits = workspace.view("logits", DType::F32, workspace.shape().logitsRows, workspace.shape().vocabulary);
  if (logits.data && !m_backend.hostAddress(logits.data)) m_hostLogits.resize(static_cast<size_t>(logits.rows * logits.cols));
  int64_t states = 0;
  for (int64_t i = rank.layers.begin; i < rank.layers.end; ++i) {
    const LayerSpec& spec = m_config.layers[static_cast<size_t>(i)];
    m_stateBegin.push_back(states);
    const int64_t keyHeads = layerShare(m_config, spec, rank, tp).linearKeyHeads.size();
    if (keyHeads > 0) states += workspace.shape().stateSlots * linearStateElements(spec.linear, keyHeads);
  }
  uploadFrequencies();
}

// The table of the model's frequencies, then that of the local layers; and zeros in the branch, which a rank without a share
// scales by zero.
void Decoder::uploadFrequencies() {
  const WorkspaceShape& shape = m_workspace.shape();
  std::vector<double> frequencies;
  if (shape.rotaryDim > 0) frequencies = m_rope.inverseFrequencies;
  if (shape.localRotaryDim > 0)
    frequencies.insert(frequencies.end(), m_localRope.inverseFrequencies.begin(), m_localRope.inverseFrequencies.end());
  const TensorView table = m_workspace.view("rope_frequencies", DType::F64, 1, static_cast<int64_t>(frequencies.size()));
  if (table.data) m_backend.copyToDevice(table.data, frequencies.data(), storageBytes(DType::F64, table.cols));
  const std::vector<float> zeros(static_cast<size_t>(shape.hidden), 0.0f);
  const TensorView branch = m_workspace.view("branch", DType::F32, shape.tokens, shape.hidden);
  const auto lacksPart = [](const LayerWeights& layer) {
    return layer.o.out == 0 || (layer.down.out == 0 && (layer.expertDown.empty() || layer.expertDown.front().out == 0));
  };
  if (std::any_of(m_weights.layers.begin(), m_weights.layers.end(), lacksPart)) {
    for (int64_t row = 0; row < branch.rows; ++row)
      m_backend.copyToDevice(branch.row<float>(row), zeros.data(), storageBytes(DType::F32, shape.hidden));
  }
}

Status Decoder::run(const SharedStepPlan& plan) {
  if (Status status = checkFits(*plan); !status) return status;
  copyStates(plan->stateLoads);
  if (const int64_t batch = batchFor(*plan); batch > 0) {
    if (Status status = runRecorded(*plan, batch); !status) return status;
  } else {
    Step step = upload({plan->tokenIds, plan->positions, plan->slots, plan->sequenceStart, plan->contextLength, plan->stateSlots,
                        plan->blockTable, plan->blocksPerSequence},
                       plan->blocksPerSequence);
    angles(step);
    if (Status status = m_context.fromPrevious ? m_context.fromPrevious->receive(step.hidden) : embed(step); !status)
      return status;
    if (Status status = runLayers(step); !status) return status;
    copyStates(plan->stateSaves);
    if (m_context.toNext) {
      if (Status status = m_backend.sync(); !status) return status;
      return m_context.toNext->send(step.hidden);
    }
    if (Status status = project(step, *plan); !status) return status;
  }
  if (m_context.toNext) return {};
  if (Status status = m_backend.sync(); !status) return status;
  if (m_context.consumer) m_context.consumer->stepDone(plan);
  return {};
}

Status Decoder::runLayers(Step& step) {
  m_branchPending = false;
  for (int64_t i = 0; i < m_context.rank.layers.size(); ++i) {
    if (m_context.cancelled && m_context.cancelled->load(std::memory_order_relaxed)) return failure("step", "a request to stop");
    if (Status status = runLayer(step, i); !status) return status;
  }
  addBranch(step);
  return {};
}

// ---- steps that only generate, recorded

bool Decoder::canRecord(int64_t batch) const {
  const WorkspaceShape& shape = m_workspace.shape();
  return batch <= shape.tokens && batch <= shape.sequences && (!m_context.rank.projects || batch <= shape.logitsRows) &&
         m_context.communicator.replays(storageBytes(DType::F32, batch * m_config.hiddenSize).count());
}

// The recorded step that takes the plan; 0: none does.
int64_t Decoder::batchFor(const StepPlan& plan) const {
  const auto sequences = static_cast<int64_t>(plan.sequences.size());
  if (plan.tokens() != sequences || static_cast<int64_t>(plan.logits.size()) != sequences) return 0;
  if (std::any_of(plan.logits.begin(), plan.logits.end(), [](const auto& row) { return row.hidden; })) return 0;
  const auto found = m_recordings.lower_bound(sequences);
  return found == m_recordings.end() ? 0 : found->first;
}

// The plan's sequences and, up to `batch`, rows without one: a token that is stored nowhere and sees one token of block 0.
Decoder::Step Decoder::uploadBatch(const StepPlan& plan, int64_t batch) {
  const auto rows = static_cast<size_t>(batch);
  m_batch = plan;
  m_batch.tokenIds.resize(rows, 0);
  m_batch.positions.resize(rows, 0);
  m_batch.slots.resize(rows, -1);
  m_batch.contextLength.resize(rows, 1);
  m_batch.stateSlots.resize(rows, -1);
  m_batch.blocksPerSequence = std::max<int64_t>(plan.blocksPerSequence, 1);
  m_batch.blockTable.resize(rows * static_cast<size_t>(m_batch.blocksPerSequence), 0);
  m_batch.sequenceStart.resize(rows + 1);
  for (size_t i = 0; i <= rows; ++i) m_batch.sequenceStart[i] = static_cast<int32_t>(i);
  return upload({m_batch.tokenIds, m_batch.positions, m_batch.slots, m_batch.sequenceStart, m_batch.contextLength,
                 m_batch.stateSlots, m_batch.blockTable, m_batch.blocksPerSequence},
                m_workspace.shape().blocksPerSequence);
}

// All between what comes from the host or the stage before and what goes to the next stage or the sampler.
Status Decoder::generateForward(Step& step) {
  angles(step);
  if (!m_context.fromPrevious)
    if (Status status = embed(step); !status) return status;
  if (Status status = runLayers(step); !status) return status;
  if (m_context.toNext) return {};
  const TensorView last = m_workspace.view("last_hidden", DType::F32, step.tokens, m_config.hiddenSize);
  norm(last, step.hidden, m_weights.finalNorm, m_weights.finalNormBias);
  if (const auto logits = logitsOf(last); !logits) return tl::unexpected(logits.error());
  return {};
}

Status Decoder::recordBatch(int64_t batch) {
  Step step = uploadBatch({}, batch);
  if (Status status = generateForward(step); !status) return status;  // takes the memory that it needs
  Result<int> recording = m_backend.record([&] { return generateForward(step); });
  if (!recording) return tl::unexpected(recording.error());
  m_recordings[batch] = *recording;
  return {};
}

Status Decoder::prepare() {
  if (!m_backend.records()) return {};
  if (Status status = runLargestStep(); !status) return status;
  const std::vector<int64_t> batches = graphBatches(m_context.limits);
  for (auto batch = batches.rbegin(); batch != batches.rend(); ++batch)
    if (canRecord(*batch))
      if (Status status = recordBatch(*batch); !status) return status;
  return m_backend.sync();
}

Status Decoder::runLargestStep() {
  const WorkspaceShape& shape = m_workspace.shape();
  const int64_t longest = m_context.limits.maxModelLen, tokens = std::min(shape.tokens, longest * shape.sequences);
  StepPlan plan;
  plan.tokenIds.assign(static_cast<size_t>(tokens), 0);
  plan.slots.assign(static_cast<size_t>(tokens), -1);
  for (int64_t i = 0; i < tokens; ++i) plan.positions.push_back(static_cast<int32_t>(i % longest));
  for (int64_t begin = 0; begin < tokens; begin += longest) {
    plan.sequenceStart.push_back(static_cast<int32_t>(begin));
    plan.contextLength.push_back(static_cast<int32_t>(std::min(longest, tokens - begin)));
    plan.stateSlots.push_back(-1);
  }
  plan.sequenceStart.push_back(static_cast<int32_t>(tokens));
  plan.blocksPerSequence = ceilDiv(std::min(longest, tokens), m_context.limits.blockTokens);
  plan.blockTable.assign(plan.contextLength.size() * static_cast<size_t>(plan.blocksPerSequence), 0);
  Step step = upload({plan.tokenIds, plan.positions, plan.slots, plan.sequenceStart, plan.contextLength, plan.stateSlots,
                      plan.blockTable, plan.blocksPerSequence},
                     plan.blocksPerSequence);
  angles(step);
  if (!m_context.fromPrevious)
    if (Status status = embed(step); !status) return status;
  if (Status status = runLayers(step); !status) return status;
  if (!m_context.toNext) {
    const int64_t rows = std::min(shape.logitsRows, tokens);
    const TensorView last = m_workspace.view("last_hidden", DType::F32, rows, m_config.hiddenSize);
    norm(last, step.hidden.head(rows), m_weights.finalNorm, m_weights.finalNormBias);
    if (const auto logits = logitsOf(last); !logits) return tl::unexpected(logits.error());
  }
  return m_backend.sync();
}

Status Decoder::runRecorded(const StepPlan& plan, int64_t batch) {
  Step step = uploadBatch(plan, batch);
  const TensorView hidden = step.hidden.head(plan.tokens());  // neighbours know only these
  if (m_context.fromPrevious)
    if (Status status = m_context.fromPrevious->receive(hidden); !status) return status;
  if (m_backend.replay(m_recordings.at(batch))) {
    ++m_replayed;
  } else {
    if (Status status = generateForward(step); !status) return status;
    Result<int> recording = m_backend.record([&] { return generateForward(step); });
    if (!recording) return tl::unexpected(recording.error());
    m_recordings[batch] = *recording;
  }
  copyStates(plan.stateSaves);
  if (m_context.toNext) {
    if (Status status = m_backend.sync(); !status) return status;
    return m_context.toNext->send(hidden);
  }
  const int64_t columns = m_context.rank.tpRank == 0 ? m_config.vocabSize : 0;
  return handOut(plan, 0, m_workspace.view("logits", DType::F32, plan.tokens(), columns),
                 m_workspace.view("logits_rows", DType::I32, 1, plan.tokens()));
}

Status Decoder::checkFits(const StepPlan& plan) const {
  const WorkspaceShape& shape = m_workspace.shape();
  const int64_t sequences = static_cast<int64_t>(plan.sequences.size());
  auto beyond = [&](const char* what, int64_t found, int64_t most) {
    return failure(fmt::format("step {}", plan.step), fmt::format("{} {}", found, what), fmt::format("at most {}", most));
  };
  if (plan.tokens() > shape.tokens) return beyond("tokens", plan.tokens(), shape.tokens);
  if (sequences > shape.sequences) return beyond("sequences", sequences, shape.sequences);
  if (shape.stateElements > 0 && static_cast<int64_t>(plan.stateSlots.size()) != sequences)
    return failure(fmt::format("step {}", plan.step), fmt::format("{} slots of states", plan.stateSlots.size()),
                   fmt::format("{}, one a sequence", sequences));
  const auto copies = static_cast<int64_t>(std::max(plan.stateLoads.size(), plan.stateSaves.size()));
  if (shape.stateElements > 0 && copies > shape.sequences) return beyond("copies of states", copies, shape.sequences);
  if (plan.blocksPerSequence > shape.blocksPerSequence)
    return beyond("blocks of a sequence", plan.blocksPerSequence, shape.blocksPerSequence);
  return {};
}

Decoder::Step Decoder::upload(const Arrays& arrays, int64_t tableStride) {
  Step step;
  step.tokens = static_cast<int64_t>(arrays.tokenIds.size());
  const auto sequences = static_cast<int64_t>(arrays.contextLength.size());
  auto uploaded = [&](const char* buffer, int64_t columns, const std::vector<int32_t>& values) {
    const TensorView view = m_workspace.view(buffer, DType::I32, 1, columns);
    if (view.data && columns > 0) m_backend.copyToDevice(view.data, values.data(), storageBytes(DType::I32, columns));
    return view;
  };
  step.ids = uploaded("token_ids", step.tokens, arrays.tokenIds);
  step.positions = uploaded("positions", step.tokens, arrays.positions);
  step.slots = uploaded("slots", step.tokens, arrays.slots);
  step.batch.sequences = sequences;
  step.batch.sequenceStart = uploaded("sequence_start", sequences + 1, arrays.sequenceStart);
  step.batch.contextLength = uploaded("context_length", sequences, arrays.contextLength);
  if (m_workspace.shape().stateElements > 0) step.batch.stateSlots = uploaded("state_slots", sequences, arrays.stateSlots);
  TensorView table = m_workspace.view("block_table", DType::I32, sequences, tableStride);
  step.batch.blockTable = table;
  table.cols = arrays.blocksPerSequence;
  if (table.data && table.rows * table.cols > 0) {
    if (table.cols == table.stride)
      m_backend.copyToDevice(table.data, arrays.blockTable.data(), storageBytes(DType::I32, table.rows * table.cols));
    else
      m_backend.copyRowsToDevice(table, arrays.blockTable.data());
  }

  const int64_t hidden = m_config.hiddenSize;
  step.hidden = m_workspace.view("hidden", DType::F32, step.tokens, hidden);
  step.normed = m_workspace.view("normed", DType::F32, step.tokens, hidden);
  step.branch = m_workspace.view("branch", DType::F32, step.tokens, hidden);
  return step;
}

// Whole slots, in every layer that the rank has a state of.
void Decoder::copyStates(const std::vector<StepPlan::StateCopy>& copies) {
  const WorkspaceShape& shape = m_workspace.shape();
  if (copies.empty() || shape.stateElements == 0) return;
  std::vector<int32_t> from;
  for (const StepPlan::StateCopy& copy : copies) from.push_back(copy.from);
  const auto count = static_cast<int64_t>(copies.size());
  const TensorView index = m_workspace.view("state_copies", DType::I32, 1, count);
  m_backend.copyToDevice(index.data, from.data(), storageBytes(DType::I32, count));
  float* states = m_workspace.view("linear_state", DType::F32, 1, 0).row<float>(0);
  for (size_t layer = 0; layer < m_stateBegin.size(); ++layer) {
    const int64_t end = layer + 1 < m_stateBegin.size() ? m_stateBegin[layer + 1] : shape.stateSlots * shape.stateElements;
    const int64_t elements = (end - m_stateBegin[layer]) / shape.stateSlots;
    if (elements == 0) continue;
    const TensorView slots = TensorView::of(states + m_stateBegin[layer], DType::F32, shape.stateSlots, elements);
    for (int64_t i = 0; i < count; ++i)
      m_backend.gatherRows(TensorView::of(slots.row<float>(copies[static_cast<size_t>(i)].to), DType::F32, 1, elements), slots,
                           index.columns(i, 1));
  }
}

void Decoder::angles(Step& step) {
  const WorkspaceShape& shape = m_workspace.shape();
  const auto* frequencies = static_cast<const double*>(m_workspace.view("rope_frequencies", DType::F64, 0, 0).data);
  if (shape.rotaryDim > 0) {
    step.angles = m_workspace.view("rope_angles", DType::F32, step.tokens, shape.rotaryDim);
    m_backend.ropeAngles(step.angles, step.positions, frequencies, m_rope.factor);
  }
  if (shape.localRotaryDim > 0) {
    step.localAngles = m_workspace.view("local_rope_angles", DType::F32, step.tokens, shape.localRotaryDim);
    m_backend.ropeAngles(step.localAngles, step.positions, frequencies + shape.rotaryDim / 2, m_localRope.factor);
  }
}

Status Decoder::embed(Step& step) {
  m_backend.embed(step.hidden, m_weights.embedding, step.ids, m_embeddingIsSplit ? m_context.rank.vocabulary.begin : 0);
  if (m_embeddingIsSplit) {
    if (Status status = m_context.communicator.allReduceSum(step.hidden); !status) return status;
  }
  if (m_traits.embeddingMultiplier != 1.0) m_backend.scale(step.hidden, m_traits.embeddingMultiplier);
  return {};
}

Status Decoder::runLayer(Step& step, int64_t index) {
  const LayerWeights& weights = m_weights.layers[static_cast<size_t>(index)];
  const LayerSpec& spec = m_config.layers[static_cast<size_t>(m_context.rank.layers.begin + index)];
  const TensorView attentionIn = normed(step, weights.attentionNorm, weights.attentionNormBias);
  if (spec.attention != AttentionKind::None) {
    if (Status status = attention(step, index, attentionIn); !status) return status;
    if (Status status = finishBranch(step, weights.postAttentionNorm); !status) return status;
  }
  if (spec.ffn == FfnKind::None) return {};
  if (m_traits.parallelBlock) {
    addBranch(step);
    mlp(step, index, attentionIn);
  } else {
    mlp(step, index, normed(step, weights.ffnNorm, weights.ffnNormBias));
  }
  return finishBranch(step, weights.postFfnNorm);
}

// branch = this rank's part of the attention's output.
Status Decoder::attention(Step& step, int64_t index, TensorView in) {
  const LayerWeights& weights = m_weights.layers[static_cast<size_t>(index)];
  const LayerSpec& spec = m_config.layers[static_cast<size_t>(m_context.rank.layers.begin + index)];
  if (spec.attention == AttentionKind::Latent) {
    latentAttention(step, index, in);
    return {};
  }
  if (spec.attention == AttentionKind::LinearAttention) {
    linearAttention(step, index, in);
    return {};
  }
  const TensorView q = m_workspace.q(step.tokens, weights.q.out);
  const TensorView k = m_workspace.k(step.tokens, weights.k.out);
  const TensorView v = m_workspace.v(step.tokens, weights.v.out);
  if (weights.q.out > 0) {
    const std::array tasks{LinearTask{q, &weights.q, floats(weights.qBias)}, LinearTask{k, &weights.k, floats(weights.kBias)},
                           LinearTask{v, &weights.v, floats(weights.vBias)},
                           LinearTask{m_workspace.queryGate(step.tokens, weights.queryGate.out), &weights.queryGate, nullptr}};
    m_backend.linear(in, std::span(tasks).first(weights.queryGate.out > 0 ? 4 : 3));
  }
  if (m_traits.qkNormFullWidth)
    if (Status status = normAllHeads(step, q, k, weights, spec); !status) return status;
  if (weights.q.out == 0) {
    m_backend.scale(step.branch, 0.0);
    return {};
  }
  HeadsOfStep heads;
  heads.q = q;
  heads.k = k;
  heads.v = v;
  rotateAndStore(step, m_cache.layer(index), heads, weights, spec);
  attentionOverCache(step, index, q);
  return {};
}

// Norms of the heads, the rotation and the store: one operation but where a family norms after it has rotated.
void Decoder::rotateAndStore(Step& step, const KvLayerView& cache, HeadsOfStep heads, const LayerWeights& weights,
                             const LayerSpec& spec) {
  heads.headDim = spec.headDim;
  heads.slots = step.slots;
  heads.epsilon = m_traits.normEpsilon;
  heads.offset = m_traits.normWeightOffset;
  if (m_traits.qkNorm && !m_traits.qkNormFullWidth) {
    heads.qNorm = floats(weights.qNorm);
    heads.kNorm = floats(weights.kNorm);
  }
  if (spec.rope) {
    heads.cosSin = spec.localRope ? step.localAngles : step.angles;
    heads.style = spec.localRope ? m_config.localRope.style : m_config.rope.style;
  }
  if (!spec.rope || !m_traits.plainQkNorm) {
    m_backend.rotateAndStoreKv(cache, heads);
    if (!spec.rope && m_traits.positionScale != 0.0)
      m_backend.scaleByPosition(heads.q, step.positions, m_traits.positionFloor, m_traits.positionScale);
    return;
  }
  if (heads.qNorm) m_backend.headRmsNorm(heads.q, spec.headDim, heads.qNorm, heads.epsilon, heads.offset);
  if (heads.kNorm) m_backend.headRmsNorm(heads.k, spec.headDim, heads.kNorm, heads.epsilon, heads.offset);
  m_backend.applyRope(heads.q, spec.headDim, heads.cosSin, heads.style);
  m_backend.applyRope(heads.k, spec.headDim, heads.cosSin, heads.style);
  m_backend.headRmsNorm(heads.q, spec.headDim, nullptr, heads.epsilon, 0.0);
  m_backend.headRmsNorm(heads.k, spec.headDim, nullptr, heads.epsilon, 0.0);
  m_backend.storeKv(cache, heads.k, heads.v, heads.slots);
}

// Norms over the heads of all ranks: the squares are summed over them. A KV head that several ranks hold counts once, at the rank
// of its first query head.
Status Decoder::normAllHeads(Step& step, TensorView q, TensorView k, const LayerWeights& weights, const LayerSpec& spec) {
  if (m_context.layout.tp == 1) {
    m_backend.rmsNorm(q, q, floats(weights.qNorm), m_traits.normEpsilon, m_traits.normWeightOffset);
    m_backend.rmsNorm(k, k, floats(weights.kNorm), m_traits.normEpsilon, m_traits.normWeightOffset);
    return {};
  }
  const int64_t group = std::max<int64_t>(1, spec.qHeads / spec.kvHeads);
  const bool firstIsElsewhere =
      kvHeadsOfLayer(m_config, m_context.rank, spec).begin * group < qHeadsOfLayer(m_config, m_context.rank, spec).begin;
  const int64_t skipped = std::min(firstIsElsewhere ? spec.headDim : 0, k.cols);
  const TensorView squares = m_workspace.view("norm_squares", DType::F32, step.tokens, 2);
  m_backend.rowSquareSum(squares.columns(0, 1), q);
  m_backend.rowSquareSum(squares.columns(1, 1), k.columns(skipped, k.cols - skipped));
  if (Status status = m_context.communicator.allReduceSum(squares); !status) return status;
  if (q.cols > 0)
    m_backend.normBySquareSum(q, squares.columns(0, 1), spec.qHeads * spec.headDim, floats(weights.qNorm), m_traits.normEpsilon,
                              m_traits.normWeightOffset);
  if (k.cols > 0)
    m_backend.normBySquareSum(k, squares.columns(1, 1), spec.kvHeads * spec.headDim, floats(weights.kNorm), m_traits.normEpsilon,
                              m_traits.normWeightOffset);
  return {};
}

double Decoder::attentionScale(const LayerSpec& spec) const {
  return m_traits.attentionScale != 0.0 ? m_traits.attentionScale : 1.0 / std::sqrt(static_cast<double>(spec.headDim));
}

// A gated delta net over this rank's key heads and the value heads that share them.
void Decoder::linearAttention(Step& step, int64_t index, TensorView in) {
  const LayerWeights& weights = m_weights.layers[static_cast<size_t>(index)];
  const LinearAttention& linear = m_config.layers[static_cast<size_t>(m_context.rank.layers.begin + index)].linear;
  if (weights.linearQkv.out == 0) return m_backend.scale(step.branch, 0.0);
  GatedDeltaNet net;
  net.valueHeads = weights.linearBeta.out;
  net.keyHeads = net.valueHeads / (linear.valueHeads / linear.keyHeads);
  net.keyDim = linear.keyDim;
  net.valueDim = linear.valueDim;
  net.kernel = linear.kernel;
  net.convolution = floats(weights.linearConvolution);
  net.timeBias = floats(weights.linearTimeBias);
  net.decay = floats(weights.linearDecay);
  net.norm = floats(weights.linearNorm);
  net.epsilon = m_traits.normEpsilon;
  const TensorView qkv = m_workspace.linearQkv(step.tokens, weights.linearQkv.out),
                   z = m_workspace.linearZ(step.tokens, weights.linearZ.out);
  const TensorView gates = m_workspace.linearGates(step.tokens, 2 * net.valueHeads);
  const std::array tasks{LinearTask{qkv, &weights.linearQkv, nullptr}, LinearTask{z, &weights.linearZ, nullptr},
                         LinearTask{gates.columns(0, net.valueHeads), &weights.linearBeta, nullptr},
                         LinearTask{gates.columns(net.valueHeads, net.valueHeads), &weights.linearAlpha, nullptr}};
  m_backend.linear(in, tasks);
  LinearState state;
  state.slots = m_workspace.shape().stateSlots;
  state.data = m_workspace.view("linear_state", DType::F32, 1, 0).row<float>(0) + m_stateBegin[static_cast<size_t>(index)];
  m_backend.gatedDeltaNet(z, qkv, z, gates, state, step.batch, net);
  rowParallel(step.branch, z, weights.linearOut, {});
}

// Attention in the latent space: the cache holds one latent and one rotated key for all heads, and queries and results are
// carried there and back (https://arxiv.org/abs/2405.04434, section 2.1). A few heads at a time, so that the work space is
// bounded.
void Decoder::latentAttention(Step& step, int64_t index, TensorView in) {
  constexpr double kLatentEpsilon = 1e-6;  // of the norms of latents, whatever the model's other norms have
  const LayerWeights& weights = m_weights.layers[static_cast<size_t>(index)];
  const LayerSpec& spec = m_config.layers[static_cast<size_t>(m_context.rank.layers.begin + index)];
  const LatentHeads sizes{spec.latent.qkNopeHeadDim, spec.latent.qkRopeHeadDim, spec.latent.kvLoraRank, spec.latent.vHeadDim};
  const auto heads = static_cast<int64_t>(weights.keyUp.size());
  if (heads == 0) return m_backend.scale(step.branch, 0.0);
  const int64_t tokens = step.tokens, keyDim = sizes.rope + sizes.latent, queryDim = sizes.nope + sizes.rope;
  const TensorView q = m_workspace.q(tokens, heads * queryDim), key = m_workspace.latentKey(tokens, keyDim);
  const TensorView latent = key.columns(sizes.rope, sizes.latent),
                   queryLatent = m_workspace.queryLatent(tokens, weights.qLatent.out);
  const bool twoSteps = weights.qLatent.out > 0;
  const std::array tasks{LinearTask{latent, &weights.kvLatent, nullptr},
                         LinearTask{key.columns(0, sizes.rope), &weights.keyRope, nullptr},
                         twoSteps ? LinearTask{queryLatent, &weights.qLatent, nullptr} : LinearTask{q, &weights.q, nullptr}};
  m_backend.linear(in, tasks);
  if (twoSteps) {
    m_backend.rmsNorm(queryLatent, queryLatent, floats(weights.qLatentNorm), kLatentEpsilon, m_traits.normWeightOffset);
    const std::array second{LinearTask{q, &weights.q, nullptr}};
    m_backend.linear(queryLatent, second);
  }
  m_backend.rmsNorm(latent, latent, floats(weights.kvLatentNorm), kLatentEpsilon, m_traits.normWeightOffset);
  m_backend.applyRope(key, keyDim, step.angles, m_config.rope.style);
  m_backend.storeKv(m_cache.layer(index), key, latent, step.slots);

  const TensorView out = m_workspace.attention(tokens, heads * sizes.value), work = m_workspace.latentWork();
  const int64_t atOnce = std::clamp<int64_t>(work.cols / latentWork(tokens, 1, spec.latent), 1, heads);
  AttentionParams params;
  params.scale = static_cast<float>(attentionScale(spec));
  params.softcap = static_cast<float>(m_traits.attentionSoftcap);
  for (int64_t first = 0; first < heads; first += atOnce) {
    const int64_t count = std::min(atOnce, heads - first);
    const TensorView queries = TensorView::of(work.data, DType::F32, tokens, count * keyDim);
    const TensorView results =
        TensorView::of(work.row<float>(0) + tokens * count * keyDim, DType::F32, tokens, count * sizes.latent);
    m_backend.latentQueries(queries, q.columns(first * queryDim, count * queryDim),
                            std::span(weights.keyUp).subspan(static_cast<size_t>(first), static_cast<size_t>(count)), sizes);
    m_backend.applyRope(queries, keyDim, step.angles, m_config.rope.style);
    params.qHeads = params.groupSize = count;
    m_backend.pagedAttention(results, queries, m_cache.layer(index), step.batch, params);
    m_backend.latentValues(out.columns(first * sizes.value, count * sizes.value), results,
                           std::span(weights.valueUp).subspan(static_cast<size_t>(first), static_cast<size_t>(count)), sizes);
  }
  rowParallel(step.branch, out, weights.o, weights.oBias);
}

void Decoder::attentionOverCache(Step& step, int64_t index, TensorView q) {
  const LayerWeights& weights = m_weights.layers[static_cast<size_t>(index)];
  const LayerSpec& spec = m_config.layers[static_cast<size_t>(m_context.rank.layers.begin + index)];
  AttentionParams params;
  params.scale = static_cast<float>(attentionScale(spec));
  params.softcap = static_cast<float>(m_traits.attentionSoftcap);
  if (spec.attention != AttentionKind::Full) params.window = spec.window;
  params.chunkedWindow = spec.attention == AttentionKind::ChunkedWindow;
  const Range qHeads = qHeadsOfLayer(m_config, m_context.rank, spec);
  params.qHeads = qHeads.size();
  params.qHeadBegin = qHeads.begin;
  params.kvHeadBegin = kvHeadsOfLayer(m_config, m_context.rank, spec).begin;
  params.groupSize = std::max<int64_t>(1, spec.qHeads / spec.kvHeads);
  params.sinks = floats(weights.sinks);
  const TensorView out = m_workspace.attention(step.tokens, weights.o.in);
  m_backend.pagedAttention(out, q, m_cache.layer(index), step.batch, params);
  if (weights.queryGate.out > 0) m_backend.sigmoidGate(out, m_workspace.queryGate(step.tokens, weights.queryGate.out));
  rowParallel(step.branch, out, weights.o, weights.oBias);
}

// branch = this rank's part of the MLP's output.
void Decoder::mlp(Step& step, int64_t index, TensorView in) {
  const LayerWeights& weights = m_weights.layers[static_cast<size_t>(index)];
  const LayerSpec& spec = m_config.layers[static_cast<size_t>(m_context.rank.layers.begin + index)];
  if (spec.ffn == FfnKind::MixtureOfExperts) return experts(step, index, in);
  if (weights.up.out == 0) return m_backend.scale(step.branch, 0.0);
  if (!m_traits.gatedMlp) {
    const TensorView up = m_workspace.up(step.tokens, weights.up.out);
    const std::array tasks{LinearTask{up, &weights.up, floats(weights.upBias)}};
    m_backend.linear(in, tasks);
    m_backend.activate(up, m_traits.activation);
    return rowParallel(step.branch, up, weights.down, weights.downBias);
  }
  gatedMlp(step, in, weights.gate, weights.up, weights.down, &weights);
}

// branch = down · (activation(gate · in) * (up · in)); `biases`: the layer's, or null.
void Decoder::gatedMlp(Step& step, TensorView in, const WeightMatrix& gate, const WeightMatrix& up, const WeightMatrix& down,
                       const LayerWeights* biases) {
  static const DeviceBuffer kNone;
  const TensorView gated = m_workspace.gate(step.tokens, gate.out), upped = m_workspace.up(step.tokens, up.out);
  const std::array tasks{LinearTask{gated, &gate, biases ? floats(biases->gateBias) : nullptr},
                         LinearTask{upped, &up, biases ? floats(biases->upBias) : nullptr}};
  m_backend.linear(in, tasks);
  m_backend.gatedActivation(gated, gated, upped, m_traits.activation);
  rowParallel(step.branch, gated, down, biases ? biases->downBias : kNone);
}

// branch = this rank's part of the shared expert's and the chosen experts' output. Every rank routes for itself: the hidden
// states are the same bits on all of them.
void Decoder::experts(Step& step, int64_t index, TensorView in) {
  const LayerWeights& weights = m_weights.layers[static_cast<size_t>(index)];
  const LayerSpec& spec = m_config.layers[static_cast<size_t>(m_context.rank.layers.begin + index)];
  const MoeParameters& moe = spec.moe;
  const bool shared = sharedExpert(step, weights, in);
  if (weights.expertUp.empty() || weights.expertUp.front().out == 0) {
    if (!shared) m_backend.scale(step.branch, 0.0);
    return;
  }
  const TensorView logits = m_workspace.view("router_logits", DType::F32, step.tokens, moe.experts);
  const TensorView ids = m_workspace.view("expert_ids", DType::I32, step.tokens, moe.expertsPerToken);
  const TensorView chosenWeights = m_workspace.view("expert_weights", DType::F32, step.tokens, moe.expertsPerToken);
  const std::array tasks{LinearTask{logits, &weights.router, moe.biasOnlyChooses ? nullptr : floats(weights.routerBias)}};
  m_backend.linear(in, tasks);
  ExpertRouting routing;
  routing.scoring = moe.scoring;
  routing.choiceBias = moe.biasOnlyChooses ? floats(weights.routerBias) : nullptr;
  routing.groups = moe.groups;
  routing.groupsPerToken = moe.groupsPerToken;
  routing.groupByTopTwo = moe.groupByTopTwo;
  routing.normalize = moe.normalizeWeights;
  routing.scale = moe.weightScale;
  m_backend.routeExperts(ids, chosenWeights, logits, routing);
  ExpertLayer layer;
  layer.gate = weights.expertGate;
  layer.up = weights.expertUp;
  layer.down = weights.expertDown;
  layer.gateBias = floats(weights.expertGateBias);
  layer.upBias = floats(weights.expertUpBias);
  layer.downBias = floats(weights.expertDownBias);  // rank 0 alone holds it
  layer.activation = m_traits.activation;
  layer.swigluLimit = static_cast<float>(moe.swigluLimit);
  layer.weightsOnInput = moe.weightsOnInput;
  layer.addToOut = shared;
  m_backend.expertMlp(step.branch, in, layer, ids, chosenWeights,
                      m_workspace.experts(expertScratch(step.tokens, m_config.hiddenSize, weights.expertUp.front().out)));
}

// branch = the shared expert's output, times its gate where it has one. False where this rank has no part of one.
bool Decoder::sharedExpert(Step& step, const LayerWeights& weights, TensorView in) {
  if (weights.sharedUp.out == 0) return false;
  gatedMlp(step, in, weights.sharedGate, weights.sharedUp, weights.sharedDown, nullptr);
  if (weights.sharedRouter.out > 0) {
    const TensorView gate = m_workspace.view("shared_gate", DType::F32, step.tokens, 1);
    const std::array tasks{LinearTask{gate, &weights.sharedRouter, nullptr}};
    m_backend.linear(in, tasks);
    m_backend.sigmoidGate(step.branch, gate);
  }
  return true;
}

void Decoder::rowParallel(TensorView out, TensorView in, const WeightMatrix& weight, const DeviceBuffer& bias) {
  const std::array tasks{LinearTask{out, &weight, m_context.rank.tpRank == 0 ? floats(bias) : nullptr}};
  m_backend.linear(in, tasks);
}

// The branch summed over the ranks and ready to be added to the hidden states.
Status Decoder::finishBranch(Step& step, const DeviceBuffer& postNorm) {
  if (Status status = m_context.communicator.allReduceSum(step.branch); !status) return status;
  if (m_traits.postNorm) norm(step.branch, step.branch, postNorm, {});
  if (m_traits.residualMultiplier != 1.0) m_backend.scale(step.branch, m_traits.residualMultiplier);
  m_branchPending = true;
  return {};
}

void Decoder::addBranch(Step& step) {
  if (m_branchPending) m_backend.add(step.hidden, step.branch);
  m_branchPending = false;
}

// hidden += pending branch; returns its norm, or hidden itself where the model has no norm there.
TensorView Decoder::normed(Step& step, const DeviceBuffer& weight, const DeviceBuffer& bias) {
  if (!m_traits.preNorm) {
    addBranch(step);
    return step.hidden;
  }
  if (m_branchPending && m_traits.norm == NormKind::RmsNorm) {
    m_backend.addRmsNorm(step.normed, step.hidden, step.branch, floats(weight), m_traits.normEpsilon, m_traits.normWeightOffset);
    m_branchPending = false;
    return step.normed;
  }
  addBranch(step);
  norm(step.normed, step.hidden, weight, bias);
  return step.normed;
}

void Decoder::norm(TensorView out, TensorView in, const DeviceBuffer& weight, const DeviceBuffer& bias) {
  if (m_traits.norm == NormKind::LayerNorm)
    return m_backend.layerNorm(out, in, floats(weight), floats(bias), m_traits.normEpsilon);
  m_backend.rmsNorm(out, in, floats(weight), m_traits.normEpsilon, m_traits.normWeightOffset);
}

Status Decoder::project(Step& step, const StepPlan& plan) {
  const int64_t rows = static_cast<int64_t>(plan.logits.size()), chunk = m_workspace.shape().logitsRows;
  // Rows that follow each other and want the same.
  for (int64_t first = 0, count = 0; first < rows; first += count) {
    const bool hidden = plan.logits[static_cast<size_t>(first)].hidden;
    count = 1;
    while (count < chunk && first + count < rows && plan.logits[static_cast<size_t>(first + count)].hidden == hidden) ++count;
    if (Status status = projectRows(step, plan, first, count); !status) return status;
  }
  return {};
}

Status Decoder::projectRows(Step& step, const StepPlan& plan, int64_t firstRow, int64_t rows) {
  m_rows.clear();
  for (int64_t i = 0; i < rows; ++i) m_rows.push_back(plan.logits[static_cast<size_t>(firstRow + i)].row);
  const TensorView indices = m_workspace.view("logits_rows", DType::I32, 1, rows);
  m_backend.copyToDevice(indices.data, m_rows.data(), storageBytes(DType::I32, rows));
  const TensorView last = m_workspace.view("last_hidden", DType::F32, rows, m_config.hiddenSize);
  m_backend.gatherRows(last, step.hidden, indices);
  norm(last, last, m_weights.finalNorm, m_weights.finalNormBias);
  if (plan.logits[static_cast<size_t>(firstRow)].hidden) return handOutHidden(plan, firstRow, last);
  const Result<TensorView> logits = logitsOf(last);
  if (!logits) return tl::unexpected(logits.error());
  return handOut(plan, firstRow, *logits, indices);
}

Status Decoder::handOutHidden(const StepPlan& plan, int64_t firstRow, TensorView hidden) {
  if (!m_context.consumer) return {};
  const Result<float*> rows = onHost(hidden, m_hostHidden);
  if (!rows) return tl::unexpected(rows.error());
  m_context.consumer->takeHidden(plan, firstRow, hidden.rows, *rows, hidden.cols);
  return {};
}

// Where the host finds the numbers once the device has them: in place, or as a copy in `room`.
Result<float*> Decoder::onHost(TensorView values, std::vector<float>& room) {
  if (Status status = m_backend.sync(); !status) return tl::unexpected(status.error());
  if (auto* inPlace = static_cast<float*>(const_cast<void*>(m_backend.hostAddress(values.data)))) return inPlace;
  room.resize(std::max(room.size(), static_cast<size_t>(values.rows * values.cols)));
  m_backend.copyToHost(room.data(), values.data, storageBytes(DType::F32, values.rows * values.cols));
  if (Status status = m_backend.sync(); !status) return tl::unexpected(status.error());
  return room.data();
}

// The whole logits on rank 0 of normed hidden states; other ranks have none of them.
Result<TensorView> Decoder::logitsOf(TensorView last) {
  const bool isFirst = m_context.rank.tpRank == 0;
  const TensorView all = m_workspace.view("logits", DType::F32, last.rows, isFirst ? m_config.vocabSize : 0);
  if (!m_headIsSplit && !isFirst) return all;  // rank 0 has the whole head
  const int64_t columns = m_headIsSplit ? m_vocabularyOfRank[static_cast<size_t>(m_context.rank.tpRank)] : m_config.vocabSize;
  const TensorView own = isFirst ? all.columns(0, columns) : m_workspace.view("local_logits", DType::F32, last.rows, columns);
  if (columns > 0) {
    const std::array tasks{LinearTask{own, &m_weights.projection(), floats(m_weights.headBias), true}};
    m_backend.linear(last, tasks);
    if (m_traits.logitsMultiplier != 1.0) m_backend.scale(own, m_traits.logitsMultiplier);
    if (m_traits.finalSoftcap != 0.0) m_backend.softcap(own, m_traits.finalSoftcap);
  }
  if (m_headIsSplit) {
    if (Status status = m_context.communicator.gatherColumns(all, own, m_vocabularyOfRank); !status)
      return tl::unexpected(status.error());
  }
  return all;
}

// Tokens, where the device samples and nobody asks for more; else the logits. `ids`: room for an id a row.
Status Decoder::handOut(const StepPlan& plan, int64_t firstRow, TensorView all, TensorView ids) {
  if (!m_context.consumer) return {};
  const int64_t rows = all.rows;
  std::vector<RowSampling> sampling;
  if (m_backend.samples()) sampling = m_context.consumer->deviceSampling(plan, firstRow, rows, all.cols);
  if (!sampling.empty()) {
    m_tokens.resize(static_cast<size_t>(rows));
    m_backend.sampleRows(ids, all, sampling);
    m_backend.copyToHost(m_tokens.data(), ids.data, storageBytes(DType::I32, rows));
    for (int64_t row = 0; row < rows; ++row)
      if (sampling[static_cast<size_t>(row)].wantsLogits)
        m_backend.copyToHost(m_hostLogits.data() + row * all.cols, all.row<float>(row), storageBytes(DType::F32, all.cols));
    if (Status status = m_backend.sync(); !status) return status;
    m_context.consumer->takeTokens(plan, firstRow, m_tokens);
    for (int64_t row = 0; row < rows; ++row)
      if (sampling[static_cast<size_t>(row)].wantsLogits)
        m_context.consumer->takeLogits(plan, firstRow + row, 1, m_hostLogits.data() + row * all.cols, all.cols);
    return {};
  }
  const Result<float*> logits = onHost(all, m_hostLogits);
  if (!logits) return tl::unexpected(logits.error());
  m_context.consumer->takeLogits(plan, firstRow, rows, *logits, all.cols);
  return {};
}

}  // namespace headroom::engine
