// SPDX-License-Identifier: Apache-2.0
#include "engine/weights/held_weight_reader.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace headroom::engine {
namespace {

constexpr int64_t kBandBytes = (2_MiB).count();

// Rounded to nearest, ties to even; empty beyond the range of half precision.
std::optional<uint16_t> halfOf(float value) {
  const float magnitude = std::fabs(value);
  if (!(magnitude < 65520.0f)) return {};
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (magnitude < 0x1p-14f) return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(magnitude * 0x1p24f)));
  const uint32_t bits = std::bit_cast<uint32_t>(magnitude) - 0x38000000u;
  return static_cast<uint16_t>(sign | ((bits + 0xfffu + ((bits >> 13) & 1u)) >> 13));
}

float e4m3(uint8_t bits) {
  const int exponent = bits >> 3 & 15, fraction = bits & 7;
  const float magnitude =
      exponent == 0 ? std::ldexp(static_cast<float>(fraction), -9) : std::ldexp(static_cast<float>(8 + fraction), exponent - 10);
  return bits & 0x80 ? -magnitude : magnitude;
}

// 32 whole numbers with one scale as a block of `dtype`.
Status writeBlock(DType dtype, float scale, const int32_t* values, uint8_t* to, const std::string& name) {
  const std::optional<uint16_t> d = halfOf(scale);
  if (!d) return failure(name, fmt::format("a scale of {}", scale), "scales within the range of half precision");
  std::memcpy(to, &*d, 2);
  if (dtype == DType::Q8_0) {
    for (int i = 0; i < 32; ++i) to[2 + i] = static_cast<uint8_t>(values[i]);
    return {};
  }
  const int zero = dtype == DType::Q4_0 ? 8 : 16;
  uint32_t fifth = 0;
  uint8_t* nibbles = to + (dtype == DType::Q4_0 ? 2 : 6);
  for (int i = 0; i < 16; ++i) {
    const int low = values[i] + zero, high = values[i + 16] + zero;
    nibbles[i] = static_cast<uint8_t>((low & 15) | (high & 15) << 4);
    fifth |= static_cast<uint32_t>(low >> 4 & 1) << i | static_cast<uint32_t>(high >> 4 & 1) << (i + 16);
  }
  if (dtype == DType::Q5_0) std::memcpy(to + 2, &fifth, 4);
  return {};
}

auto wrong(const std::string& name, const std::string& found, const std::string& expected) {
  return failure(name, found, expected, "the files do not follow the quantization_config of config.json");
}

}  // namespace

// Scales by scaleRow(row) and group; codes of the band of rows that is being read.
struct HeldWeightReader::Parts {
  std::vector<float> scales;
  std::vector<int32_t> zeros;   // (groups or 1, out), or one for all; empty: those of symmetric codes
  std::vector<int32_t> groups;  // of each column, where g_idx says so
  int64_t scaleColumns = 1, tileRows = 1;
  bool byGroup = false;  // scales are (groups, out), else (rows or tiles of them, groups)
  std::vector<std::byte> band;
  Range bandRows;
  int64_t bandStride = 0;  // bytes from line to line: of a row, or (AWQ, GPTQ) of an input

  int64_t group(const HeldWeight& weight, int64_t column) const {
    return groups.empty() ? column / weight.groupColumns : groups[static_cast<size_t>(column)];
  }
  float scale(const HeldWeight& weight, int64_t row, int64_t group) const {
    if (scales.size() == 1) return scales[0];
    if (byGroup) return scales[static_cast<size_t>(group * weight.out + row)];
    return scales[static_cast<size_t>(row / tileRows * scaleColumns + (scaleColumns == 1 ? 0 : group))];
  }
  int32_t zero(const HeldWeight& weight, int64_t row, int64_t group) const {
    if (zeros.empty()) return weight.codes == HeldWeight::Codes::PackedInt ? 1 << (weight.bits - 1) : 0;
    if (zeros.size() == 1) return zeros[0];
    return zeros[static_cast<size_t>((!byGroup && scaleColumns == 1 ? 0 : group * weight.out) + row)];
  }
  uint32_t word(int64_t line, int64_t index) const {
    uint32_t value;
    std::memcpy(&value, band.data() + line * bandStride + index * 4, 4);
    return value;
  }
  // The code less its zero point.
  int32_t value(const HeldWeight& weight, int64_t row, int64_t column, int64_t group) const {
    constexpr int kAwqPlace[] = {0, 4, 1, 5, 2, 6, 3, 7};  // of output r % 8 among the nibbles
    const int64_t perWord = 32 / weight.bits;
    const uint32_t mask = (1u << weight.bits) - 1;
    switch (weight.codes) {
      case HeldWeight::Codes::Awq: {
        const uint32_t code = word(column, row / 8 - bandRows.begin / 8) >> (4 * kAwqPlace[row % 8]) & 15;
        return static_cast<int32_t>(code) - zero(weight, row, group);
      }
      case HeldWeight::Codes::Gptq: {
        const uint32_t code = word(column / perWord, row - bandRows.begin) >> (weight.bits * (column % perWord)) & mask;
        return static_cast<int32_t>(code) - zero(weight, row, group);
      }
      case HeldWeight::Codes::PackedInt: {
        const uint32_t code = word(row - bandRows.begin, column / perWord) >> (weight.bits * (column % perWord)) & mask;
        return static_cast<int32_t>(code) - zero(weight, row, group);
      }
      case HeldWeight::Codes::Int8:
        return static_cast<int8_t>(band[static_cast<size_t>((row - bandRows.begin) * bandStride + column)]) -
               zero(weight, row, group);
      case HeldWeight::Codes::Mxfp4:
      case HeldWeight::Codes::Fp8:
        break;
    }
    return 0;
  }
};

HeldWeightReader::HeldWeightReader(const ModelSource& model, TensorReader& reader) : m_model(model), m_reader(reader) {
  if (!model.config.quantization || model.config.quantization->method == "gguf") return;
  for (const TensorEntry& tensor : model.inventory.tensors)
    if (!tensor.loaded) m_stored.emplace(tensor.name, &tensor);
}

const TensorEntry* HeldWeightReader::part(const std::string& name) const {
  const auto found = m_stored.find(name);
  return found == m_stored.end() ? nullptr : found->second;
}

const TensorEntry* HeldWeightReader::codesOf(const TensorEntry& held) const {
  if (m_stored.empty()) return nullptr;
  if (!held.name.ends_with(".weight")) return part(held.name + "_blocks");
  const std::string module = held.name.substr(0, held.name.size() - 7);
  for (const char* name : {".qweight", ".weight_packed", ".weight"})
    if (const TensorEntry* codes = part(module + name); codes && codes->location) return codes;
  return nullptr;
}

Result<std::vector<std::byte>> HeldWeightReader::readBytes(const TensorEntry& tensor) {
  TensorEntry flat = tensor;
  flat.shape = {tensor.elements()};
  std::vector<std::byte> values(static_cast<size_t>(tensor.elements()));
  const Range row{0, 1}, columns{0, tensor.elements()};
  Status status = m_reader.read(flat, {&row, 1}, {&columns, 1}, [&](const TensorReader::Chunk& chunk) -> Status {
    std::memcpy(values.data(), chunk.data, values.size());
    return {};
  });
  if (!status) return tl::unexpected(status.error());
  return values;
}

Result<std::vector<float>> HeldWeightReader::readFloats(const TensorEntry& tensor) {
  TensorEntry flat = tensor;
  flat.shape = {tensor.elements()};
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  const Range row{0, 1}, columns{0, tensor.elements()};
  Status status = m_reader.read(flat, {&row, 1}, {&columns, 1}, [&](const TensorReader::Chunk& chunk) -> Status {
    if (!convertToFloat(tensor.dtype, chunk.data, tensor.elements(), values.data()))
      return failure(tensor.name, fmt::format("type {}", dtypeName(tensor.dtype)), "float32, float16 or bfloat16");
    return {};
  });
  if (!status) return tl::unexpected(status.error());
  return values;
}

Result<std::vector<int32_t>> HeldWeightReader::readInts(const TensorEntry& tensor) {
  if (tensor.dtype != DType::I32) return failure(tensor.name, fmt::format("type {}", dtypeName(tensor.dtype)), "int32");
  TensorEntry flat = tensor;
  flat.shape = {tensor.elements()};
  std::vector<int32_t> values(static_cast<size_t>(tensor.elements()));
  const Range row{0, 1}, columns{0, tensor.elements()};
  Status status = m_reader.read(flat, {&row, 1}, {&columns, 1}, [&](const TensorReader::Chunk& chunk) -> Status {
    std::memcpy(values.data(), chunk.data, values.size() * sizeof(int32_t));
    return {};
  });
  if (!status) return tl::unexpected(status.error());
  return values;
}

Status HeldWeightReader::readParts(const HeldWeight& weight, Parts& parts) {
  const TensorEntry* scales = nullptr;
  for (const char* name : {".scales", ".weight_scale", ".weight_scale_inv"})
    if (!scales) scales = part(weight.module + name);
  if (!scales || !scales->location) return wrong(weight.module, "no scales", "scales or weight_scale beside the codes");
  Result<std::vector<float>> values = readFloats(*scales);
  if (!values) return tl::unexpected(values.error());
  parts.scales = std::move(*values);

  const int64_t groups = ceilDiv(weight.in, weight.groupColumns), count = static_cast<int64_t>(parts.scales.size());
  parts.byGroup = weight.codes == HeldWeight::Codes::Awq || weight.codes == HeldWeight::Codes::Gptq;
  if (parts.byGroup) {
    if (count != groups * weight.out)
      return wrong(scales->name, fmt::format("{} scales", count), fmt::format("{} groups x {}", groups, weight.out));
  } else if (count > 1 || weight.out == 1) {
    const auto& blocks = m_model.config.quantization->weightBlock;
    parts.tileRows = weight.codes == HeldWeight::Codes::Fp8 && blocks.size() == 2 ? blocks[0] : 1;
    const int64_t rows = ceilDiv(weight.out, parts.tileRows);
    parts.scaleColumns = count / rows;
    if (count % rows != 0 || (parts.scaleColumns != 1 && parts.scaleColumns != groups))
      return wrong(scales->name, fmt::format("{} scales", count), fmt::format("{} x {} or {} x 1", rows, groups, rows));
  }
  if (!parts.byGroup) {
    if (weight.zeroPoints)
      if (Status status = readPackedZeros(weight, parts); !status) return status;
    return weight.columnGroups ? readColumnGroups(weight, groups, ".weight_g_idx", parts) : Status{};
  }

  const TensorEntry* zeros = part(weight.module + ".qzeros");
  if (!zeros || !zeros->location) return wrong(weight.module, "no qzeros", "zero points beside the codes");
  Result<std::vector<int32_t>> packed = readInts(*zeros);
  if (!packed) return tl::unexpected(packed.error());
  const int64_t perWord = 32 / weight.bits;
  if (static_cast<int64_t>(packed->size()) * perWord != groups * weight.out)
    return wrong(zeros->name, fmt::format("{} words", packed->size()), fmt::format("{} groups x {} outputs", groups, weight.out));
  constexpr int kAwqPlace[] = {0, 4, 1, 5, 2, 6, 3, 7};
  const bool awq = weight.codes == HeldWeight::Codes::Awq;
  parts.zeros.resize(static_cast<size_t>(groups * weight.out));
  for (int64_t i = 0; i < groups * weight.out; ++i) {
    const int64_t place = awq ? kAwqPlace[i % perWord] : i % perWord;
    const uint32_t word = static_cast<uint32_t>((*packed)[static_cast<size_t>(i / perWord)]);
    parts.zeros[static_cast<size_t>(i)] =
        static_cast<int32_t>(word >> (weight.bits * place) & ((1u << weight.bits) - 1)) + (awq ? 0 : 1);
  }
  if (weight.held == DType::Q8_0 && std::any_of(parts.zeros.begin(), parts.zeros.end(), [](int32_t zero) { return zero != 128; }))
    return wrong(zeros->name, "zero points other than 128", "those of symmetric quantization (\"sym\": true)");
  return weight.columnGroups ? readColumnGroups(weight, groups, ".g_idx", parts) : Status{};
}

Status HeldWeightReader::readColumnGroups(const HeldWeight& weight, int64_t groups, const char* suffix, Parts& parts) {
  const TensorEntry* order = part(weight.module + suffix);
  if (!order || !order->location)
    return wrong(weight.module, fmt::format("no {}", suffix + 1), "the group of each input (activation order)");
  Result<std::vector<int32_t>> indices = readInts(*order);
  if (!indices) return tl::unexpected(indices.error());
  parts.groups = std::move(*indices);
  const bool inside = std::all_of(parts.groups.begin(), parts.groups.end(), [&](int32_t g) { return g >= 0 && g < groups; });
  if (!inside || static_cast<int64_t>(parts.groups.size()) != weight.in)
    return wrong(order->name, fmt::format("{} groups of inputs", parts.groups.size()),
                 fmt::format("{} numbers below {}", weight.in, groups));
  return {};
}

// Zero points of compressed-tensors: packed along the outputs as 32-bit words, or a byte each.
Status HeldWeightReader::readPackedZeros(const HeldWeight& weight, Parts& parts) {
  const TensorEntry* zeros = part(weight.module + ".weight_zero_point");
  if (!zeros || !zeros->location)
    return wrong(weight.module, "no weight_zero_point", "zero points beside the codes (\"symmetric\": false)");
  const int64_t columns = parts.scales.size() == 1 && weight.out > 1 ? 1 : parts.scaleColumns,
                rows = parts.scales.size() == 1 && weight.out > 1 ? 1 : weight.out;
  const int32_t shift = weight.codes == HeldWeight::Codes::PackedInt ? 1 << (weight.bits - 1) : 0;
  const auto count = [&](int64_t found) { return fmt::format("{} of type {}", found, dtypeName(zeros->dtype)); };
  parts.zeros.resize(static_cast<size_t>(rows * columns));
  if (zeros->dtype == DType::I8) {
    if (zeros->elements() != rows * columns)
      return wrong(zeros->name, count(zeros->elements()), fmt::format("{} x {} zero points", rows, columns));
    const Result<std::vector<std::byte>> bytes = readBytes(*zeros);
    if (!bytes) return tl::unexpected(bytes.error());
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column)
        parts.zeros[static_cast<size_t>(column * rows + row)] =
            static_cast<int8_t>((*bytes)[static_cast<size_t>(row * columns + column)]) + shift;
    return {};
  }
  const int64_t perWord = 32 / weight.bits, lines = ceilDiv(rows, perWord);
  if (zeros->elements() != lines * columns)
    return wrong(zeros->name, count(zeros->elements()), fmt::format("{} x {} words of zero points", lines, columns));
  const Result<std::vector<int32_t>> words = readInts(*zeros);
  if (!words) return tl::unexpected(words.error());
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column) {
      const auto word = static_cast<uint32_t>((*words)[static_cast<size_t>(row / perWord * columns + column)]);
      parts.zeros[static_cast<size_t>(column * rows + row)] =
          static_cast<int32_t>(word >> (weight.bits * (row % perWord)) & ((1u << weight.bits) - 1));
    }
  return {};
}

// Codes of the rows `band`, for all columns.
Status HeldWeightReader::readBand(const TensorEntry& codes, const HeldWeight& weight, Range band, Parts& parts) {
  Range lines = band, columns{0, codes.shape[1]};
  if (weight.codes == HeldWeight::Codes::Awq) {
    lines = {0, codes.shape[0]};
    columns = {band.begin / 8, ceilDiv(band.end, 8)};
  } else if (weight.codes == HeldWeight::Codes::Gptq) {
    lines = {0, codes.shape[0]};
    columns = band;
  }
  parts.bandRows = band;
  parts.bandStride = storageBytes(codes.dtype, columns.size()).count();
  parts.band.resize(static_cast<size_t>(parts.bandStride * lines.size()));
  return m_reader.read(codes, {&lines, 1}, {&columns, 1}, [&](const TensorReader::Chunk& chunk) -> Status {
    std::memcpy(parts.band.data() + chunk.firstRow * parts.bandStride, chunk.data,
                static_cast<size_t>(chunk.rows * parts.bandStride));
    return {};
  });
}

// MXFP4: a byte holds two neighbours there, and numbers i and i + 16 of the block here; codes and scales stay.
Status HeldWeightReader::readBlockScaled(const TensorEntry& codes, const HeldWeight& weight, const std::vector<Range>& rows,
                                         const std::vector<Range>& columns, const RowSink& sink) {
  constexpr int64_t kCodes = 16, kBlockBytes = 17;
  const TensorEntry* scales = part(weight.module + "_scales");
  const int64_t lines = weight.experts * weight.out, blocks = weight.in / 32;
  if (!scales || !scales->location) return wrong(weight.module, "no scales", weight.module + "_scales beside the codes");
  if (scales->dtype != DType::U8 || scales->elements() != lines * blocks)
    return wrong(scales->name, fmt::format("{} of type {}", scales->elements(), dtypeName(scales->dtype)),
                 fmt::format("{} x {} x {} bytes", weight.experts, weight.out, blocks));
  TensorEntry flatCodes = codes, flatScales = *scales;
  flatCodes.shape = {lines, blocks * kCodes};
  flatScales.shape = {lines, blocks};
  std::vector<Range> codeColumns, scaleColumns;
  int64_t width = 0;
  for (Range range : columns) {
    expects(range.begin % 32 == 0 && range.end % 32 == 0, "a cut inside a block of 32");
    codeColumns.push_back({range.begin / 2, range.end / 2});
    scaleColumns.push_back({range.begin / 32, range.end / 32});
    width += range.size() / 32;
  }
  // Rows of gate and up may alternate: what lies between the wanted ones is read with them.
  std::vector<int64_t> wanted;
  for (Range range : rows)
    for (int64_t row = range.begin; row < range.end; ++row) wanted.push_back(row);
  const int64_t bandRows = std::max<int64_t>(1, kBandBytes / std::max<int64_t>(1, width * kCodes));
  std::vector<uint8_t> band, exponents, made;
  for (size_t at = 0; at < wanted.size();) {
    size_t end = at;
    while (end < wanted.size() && wanted[end] >= wanted[at] && wanted[end] - wanted[at] < bandRows) ++end;
    const Range hull{wanted[at], wanted[end - 1] + 1};
    const auto fill = [&](const TensorEntry& flat, const std::vector<Range>& pieces, int64_t rowBytes, std::vector<uint8_t>& to) {
      to.resize(static_cast<size_t>(hull.size() * rowBytes));
      return m_reader.read(flat, {&hull, 1}, pieces, [&](const TensorReader::Chunk& chunk) -> Status {
        std::memcpy(to.data() + chunk.firstRow * rowBytes, chunk.data, static_cast<size_t>(chunk.rows * rowBytes));
        return {};
      });
    };
    if (Status status = fill(flatCodes, codeColumns, width * kCodes, band); !status) return status;
    if (Status status = fill(flatScales, scaleColumns, width, exponents); !status) return status;
    made.resize((end - at) * static_cast<size_t>(width * kBlockBytes));
    uint8_t* to = made.data();
    for (size_t i = at; i < end; ++i) {
      const int64_t line = wanted[i] - hull.begin;
      for (int64_t block = 0; block < width; ++block, to += kBlockBytes) {
        const uint8_t* from = band.data() + (line * width + block) * kCodes;
        const auto code = [&](int64_t number) { return from[number / 2] >> (4 * (number % 2)) & 15; };
        to[0] = exponents[static_cast<size_t>(line * width + block)];
        for (int64_t j = 0; j < kCodes; ++j) to[1 + j] = static_cast<uint8_t>(code(j) | code(j + 16) << 4);
      }
    }
    const auto first = static_cast<int64_t>(at);
    if (Status status = sink(first, static_cast<int64_t>(end - at), DType::MXFP4, made.data()); !status) return status;
    at = end;
  }
  return {};
}

Status HeldWeightReader::read(const TensorEntry& held, const std::vector<Range>& rows, const std::vector<Range>& columns,
                              const RowSink& sink) {
  const TensorEntry* codes = codesOf(held);
  expects(codes != nullptr, "a weight that is not held in another form was read as one");
  const std::optional<HeldWeight> weight = heldWeightOf(*codes, m_model.config);
  expects(weight.has_value(), "a held weight's codes are not codes");
  if (weight->codes == HeldWeight::Codes::Mxfp4) return readBlockScaled(*codes, *weight, rows, columns, sink);
  Parts parts;
  if (Status status = readParts(*weight, parts); !status) return status;
  std::vector<int64_t> wanted;
  for (Range range : columns)
    for (int64_t column = range.begin; column < range.end; ++column) wanted.push_back(column);
  const bool blocks = isBlockQuantized(weight->held), fp8 = weight->codes == HeldWeight::Codes::Fp8;
  const DType dtype = blocks ? weight->held : DType::F32;
  const auto width = static_cast<int64_t>(wanted.size());
  const int64_t rowBytes = storageBytes(dtype, width).count();
  const int64_t bandRows = std::max<int64_t>(8, kBandBytes / std::max(rowBytes, weight->in) / 8 * 8);
  std::vector<uint8_t> made;
  std::vector<float> table;
  for (int code = 0; fp8 && code < 256; ++code) table.push_back(e4m3(static_cast<uint8_t>(code)));
  int64_t firstRow = 0;
  for (Range range : rows) {
    while (!range.empty()) {
      const Range band{range.begin, std::min(range.end, (range.begin / 8 * 8) + bandRows)};
      if (Status status = readBand(*codes, *weight, band, parts); !status) return status;
      made.resize(static_cast<size_t>(band.size() * rowBytes));
      for (int64_t row = band.begin; row < band.end; ++row) {
        uint8_t* to = made.data() + (row - band.begin) * rowBytes;
        if (blocks) {
          for (int64_t i = 0; i < width; i += 32, to += dtypeInfo(dtype).blockBytes) {
            const int64_t group = parts.group(*weight, wanted[static_cast<size_t>(i)]);
            int32_t values[32];
            for (int64_t j = 0; j < 32; ++j) values[j] = parts.value(*weight, row, wanted[static_cast<size_t>(i + j)], group);
            if (Status status = writeBlock(dtype, parts.scale(*weight, row, group), values, to, held.name); !status)
              return status;
          }
          continue;
        }
        for (int64_t i = 0; i < width; ++i, to += sizeof(float)) {
          const int64_t column = wanted[static_cast<size_t>(i)], group = parts.group(*weight, column);
          const float code =
              fp8 ? table[static_cast<uint8_t>(parts.band[static_cast<size_t>((row - band.begin) * parts.bandStride + column)])]
                  : static_cast<float>(parts.value(*weight, row, column, group));
          const float value = code * parts.scale(*weight, row, group);
          std::memcpy(to, &value, sizeof value);
        }
      }
      if (Status status = sink(firstRow, band.size(), dtype, made.data()); !status) return status;
      firstRow += band.size();
      range.begin = band.end;
    }
  }
  return {};
}

}  // namespace headroom::engine
