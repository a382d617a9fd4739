// SPDX-License-Identifier: Apache-2.0
#include "engine/device/cpu/cpu_linear.h"

#include "engine/device/cpu/block_formats.h"

#include <algorithm>

namespace headroom::engine::cpu {
namespace {
constexpr int64_t kTokensAtOnce = 512;  // bounds the scratch of long prompts
constexpr int64_t kGroupsPerItem = 4;   // 64 rows: enough to hide a token's latencies, few enough to share out

const LinearFamily* int8Family(CpuLevel level) {
  switch (level) {
    case CpuLevel::Baseline:
      return nullptr;
    case CpuLevel::Avx2:
    case CpuLevel::Avx512:
      return int8FamilyAvx2();
    case CpuLevel::Avx2Vnni:
      return int8FamilyAvx2Vnni();
    case CpuLevel::Avx512Vnni:
    case CpuLevel::Avx512Bf16:
      return int8FamilyAvx512Vnni();
  }
  return nullptr;
}
}  // namespace

CpuLinear::CpuLinear(CpuLevel level, bool exact, ThreadPool& pool)
    : m_level(level), m_exact(exact), m_pool(pool), m_rows(static_cast<size_t>(pool.threads())) {
  m_families[kFloats] = &floatFamily(level);
  m_families[kInt8] = int8Family(level);
  m_families[kInt8Fine] = m_families[kInt8];
  m_families[kBf16] = level >= CpuLevel::Avx512Bf16 ? bf16FamilyAvx512() : nullptr;
}

void CpuLinear::writeRows(WeightMatrix& matrix, int64_t firstRow, int64_t rows, DType dtype, const void* data) {
  const int64_t fromBytes = storageBytes(dtype, matrix.in).count();
  const int64_t firstGroup = firstRow / kGroupRows, groups = ceilDiv(firstRow + rows, kGroupRows) - firstGroup;
  m_pool.run(groups, [&](int64_t group, int) {
    thread_local std::vector<float> floats;
    thread_local std::vector<std::byte> converted;
    const int64_t begin = std::max(firstRow, (firstGroup + group) * kGroupRows);
    const int64_t end = std::min(firstRow + rows, (firstGroup + group + 1) * kGroupRows);
    for (int64_t row = begin; row < end; ++row) {
      const auto* from = static_cast<const std::byte*>(data) + (row - firstRow) * fromBytes;
      if (dtype != matrix.dtype) {
        floats.resize(static_cast<size_t>(matrix.in));
        converted.resize(static_cast<size_t>(rowBytes(matrix)));
        toFloats(dtype, from, matrix.in, floats.data());
        fromFloats(matrix.dtype, floats.data(), matrix.in, converted.data());
        from = converted.data();
      }
      writeRow(matrix, row, from);
    }
  });
}

void CpuLinear::readRow(const WeightMatrix& matrix, int64_t row, float* to) {
  thread_local std::vector<std::byte> raw;
  raw.resize(static_cast<size_t>(rowBytes(matrix)));
  cpu::readRow(matrix, row, raw.data());
  toFloats(matrix.dtype, raw.data(), matrix.in, to);
}

CpuLinear::Form CpuLinear::formOf(const LinearTask& task) const {
  const WeightMatrix& matrix = *task.weight;
  if (m_exact || matrix.packing != kRowGroups) return kFloats;
  for (Form form : {kInt8, kBf16})
    if (m_families[form] && m_families[form]->find(matrix.dtype, 0))
      return task.fine && m_families[form]->lost ? kInt8Fine : form;
  return kFloats;
}

void CpuLinear::run(TensorView in, std::span<const LinearTask> tasks) {
  if (tasks.empty()) return;
  const int64_t tokens = tasks[0].out.rows;
  for (int64_t first = 0; first < tokens; first += kTokensAtOnce)
    runTokens(in, tasks, first, std::min(kTokensAtOnce, tokens - first));
}

// Each row, and behind it what the int8 form of it loses.
TensorView CpuLinear::withLost(TensorView in) {
  auto* rows = m_withLost.reserve<float>(2 * in.rows * in.cols * static_cast<int64_t>(sizeof(float)));
  m_pool.run(in.rows, [&](int64_t token, int) {
    float* row = rows + 2 * token * in.cols;
    std::copy_n(in.row<float>(token), in.cols, row);
    m_families[kInt8Fine]->lost(row, in.cols, row + in.cols);
  });
  return TensorView::of(rows, DType::F32, 2 * in.rows, in.cols);
}

// Tiles of equal width that waste the least.
void CpuLinear::prepare(Form form, TensorView in, int64_t tokens) {
  Prepared& prepared = m_prepared[form];
  if (prepared.tiles > 0) return;
  const LinearFamily& family = *m_families[form];
  const int64_t together = form == kInt8Fine ? 2 : 1;  // rows of a token stay in one tile
  if (form == kInt8Fine) {
    in = withLost(in.head(tokens));
    tokens *= together;
  }
  prepared.tiles = ceilDiv(tokens, family.tileTokens.back());
  prepared.tileTokens = roundUp(ceilDiv(tokens, prepared.tiles), together);
  const auto width = std::lower_bound(family.tileTokens.begin(), family.tileTokens.end(), prepared.tileTokens);
  prepared.width = static_cast<size_t>(width - family.tileTokens.begin());
  prepared.tiles = ceilDiv(tokens, prepared.tileTokens);
  prepared.tileBytes = roundUp(family.tokenBytes(in.cols) * *width, 64);
  std::byte* to = m_activations[form].reserve(prepared.tileBytes * prepared.tiles);
  const auto fill = [&](int64_t tile, int) {
    const int64_t first = tile * prepared.tileTokens;
    family.fill(in.row<float>(first), in.stride, std::min(prepared.tileTokens, tokens - first), in.cols, *width,
                to + tile * prepared.tileBytes);
  };
  if (tokens * in.cols < 16384) {
    for (int64_t tile = 0; tile < prepared.tiles; ++tile) fill(tile, 0);
  } else {
    m_pool.run(prepared.tiles, fill);
  }
}

void CpuLinear::runTokens(TensorView in, std::span<const LinearTask> tasks, int64_t firstToken, int64_t tokens) {
  const TensorView input = {in.row<float>(firstToken), in.dtype, tokens, in.cols, in.stride};
  m_prepared = {};
  m_shares.clear();
  int64_t items = 0;
  for (const LinearTask& task : tasks) {
    const WeightMatrix& weight = *task.weight;
    expects(weight.in == in.cols && task.out.cols >= weight.out, "a linear layer's shapes do not match its weight");
    const int64_t groups = fullGroups(weight), plainRows = weight.out - groups * kGroupRows;
    Share share = {&task, formOf(task), items, ceilDiv(groups, kGroupsPerItem), ceilDiv(plainRows, kGroupRows), 1};
    if (groups > 0) prepare(share.form, input, tokens);
    if (plainRows > 0) prepare(kFloats, input, tokens);
    // Few rows and many tokens: deal out the tokens too.
    share.tileSplits = std::clamp<int64_t>(ceilDiv(4 * m_pool.threads(), std::max<int64_t>(share.groupItems, 1)), 1,
                                           std::max<int64_t>(m_prepared[share.form].tiles, 1));
    items += share.groupItems * share.tileSplits + share.plainItems;
    m_shares.push_back(share);
  }
  m_pool.run(items, [&](int64_t item, int thread) {
    size_t index = m_shares.size() - 1;
    while (item < m_shares[index].firstItem) --index;
    const Share& share = m_shares[index];
    item -= share.firstItem;
    if (item < share.groupItems * share.tileSplits) {
      runGroups(share, item, firstToken, tokens, thread);
    } else {
      runPlainRows(share, item - share.groupItems * share.tileSplits, firstToken, tokens, thread);
    }
  });
}

namespace {

// Both rows of each token that the tile computed, added up into rows of `out`.
void addLost(const LinearTile& tile, const float* bias, float* out, int64_t outStride) {
  for (int64_t t = 0; t < tile.tokens; t += 2, out += outStride) {
    const float *rounded = tile.out + t * tile.outStride, *lost = rounded + tile.outStride;
    for (int64_t c = 0; c < tile.outStride; ++c) out[c] = rounded[c] + lost[c] + (bias ? bias[c] : 0.0f);
  }
}

}  // namespace

void CpuLinear::runGroups(const Share& share, int64_t item, int64_t firstToken, int64_t tokens, int thread) {
  const LinearTask& task = *share.task;
  const WeightMatrix& weight = *task.weight;
  const Prepared& prepared = m_prepared[share.form];
  const int64_t firstGroup = item / share.tileSplits * kGroupsPerItem, split = item % share.tileSplits;
  const int64_t groups = std::min(kGroupsPerItem, fullGroups(weight) - firstGroup);
  const LinearKernel packed = m_families[share.form]->find(weight.dtype, prepared.width);
  const int64_t rowsOfToken = share.form == kInt8Fine ? 2 : 1;
  const auto runTiles = [&](LinearKernel kernel, LinearTile tile, int64_t group) {
    const float* bias = task.bias ? task.bias + group * kGroupRows : nullptr;
    tile.in = weight.in;
    if (rowsOfToken == 1) {
      tile.outStride = task.out.stride;
      tile.bias = bias;
    } else {
      tile.outStride = tile.groupCount * kGroupRows;
      tile.out = m_rows[static_cast<size_t>(thread)].reserve<float>(prepared.tileTokens * tile.outStride *
                                                                    static_cast<int64_t>(sizeof(float)));
    }
    for (int64_t i = prepared.tiles * split / share.tileSplits; i < prepared.tiles * (split + 1) / share.tileSplits; ++i) {
      const int64_t first = i * prepared.tileTokens;
      float* out = task.out.row<float>(firstToken + first / rowsOfToken) + group * kGroupRows;
      tile.activations = m_activations[share.form].data() + i * prepared.tileBytes;
      tile.tokens = std::min(prepared.tileTokens, rowsOfToken * tokens - first);
      if (rowsOfToken == 1) tile.out = out;
      kernel(tile);
      if (rowsOfToken > 1) addLost(tile, bias, out, task.out.stride);
    }
  };
  if (packed) {
    runTiles(packed, {.groups = groupAt(weight, firstGroup), .groupCount = groups, .groupBytes = kGroupRows * rowBytes(weight)},
             firstGroup);
    return;
  }
  // No kernel for the type itself: each group becomes floats in the thread's scratch.
  const LinearKernel floats = m_families[kFloats]->find(DType::F32, prepared.width);
  auto* scratch =
      m_rows[static_cast<size_t>(thread)].reserve<float>(2 * weight.in * kGroupRows * static_cast<int64_t>(sizeof(float)));
  for (int64_t group = firstGroup; group < firstGroup + groups; ++group) {
    groupToFloats(weight, group, scratch);
    runTiles(floats, {.groups = reinterpret_cast<const std::byte*>(scratch), .groupCount = 1}, group);
  }
}

// `to` has room for two groups.
void CpuLinear::groupToFloats(const WeightMatrix& weight, int64_t group, float* to) const {
  GroupToFloats vectors = nullptr;
  if (m_level >= CpuLevel::Avx512Vnni) {
    vectors = groupToFloatsAvx512(weight.dtype);
  } else if (m_level >= CpuLevel::Avx2) {
    vectors = groupToFloatsAvx2(weight.dtype);
  }
  if (vectors) return vectors(groupAt(weight, group), weight.in, to);
  float* rows = to + weight.in * kGroupRows;
  for (int64_t r = 0; r < kGroupRows; ++r) readRow(weight, group * kGroupRows + r, rows + r * weight.in);
  interleave(rows, weight.in, to);
}

// Rows outside row groups become a group of floats in the thread's scratch.
void CpuLinear::runPlainRows(const Share& share, int64_t item, int64_t firstToken, int64_t tokens, int thread) {
  const LinearTask& task = *share.task;
  const WeightMatrix& weight = *task.weight;
  const Prepared& prepared = m_prepared[kFloats];
  const int width = m_families[kFloats]->tileTokens[prepared.width];
  const int64_t firstRow = fullGroups(weight) * kGroupRows + item * kGroupRows,
                rows = std::min(kGroupRows, weight.out - firstRow);
  auto* floats = m_rows[static_cast<size_t>(thread)].reserve<float>((2 * weight.in + width + 1) * kGroupRows *
                                                                    static_cast<int64_t>(sizeof(float)));
  float *group = floats + weight.in * kGroupRows, *results = group + weight.in * kGroupRows, *bias = results + width * kGroupRows;
  for (int64_t r = 0; r < kGroupRows; ++r) {
    if (r < rows) {
      toFloats(weight.dtype, groupAt(weight, 0) + (firstRow + r) * rowBytes(weight), weight.in, floats + r * weight.in);
    } else {
      std::fill_n(floats + r * weight.in, weight.in, 0.0f);
    }
    bias[r] = task.bias && r < rows ? task.bias[firstRow + r] : 0.0f;
  }
  interleave(floats, weight.in, group);
  LinearTile tile;
  tile.groups = reinterpret_cast<const std::byte*>(group);
  tile.groupCount = 1;
  tile.in = weight.in;
  tile.out = results;
  tile.outStride = kGroupRows;
  tile.bias = bias;
  const LinearKernel kernel = m_families[kFloats]->find(DType::F32, prepared.width);
  for (int64_t i = 0; i < prepared.tiles; ++i) {
    tile.activations = m_activations[kFloats].data() + i * prepared.tileBytes;
    tile.tokens = std::min(prepared.tileTokens, tokens - i * prepared.tileTokens);
    kernel(tile);
    for (int64_t t = 0; t < tile.tokens; ++t)
      std::copy_n(results + t * kGroupRows, rows, task.out.row<float>(firstToken + i * prepared.tileTokens + t) + firstRow);
  }
}

}  // namespace headroom::engine::cpu
