// SPDX-License-Identifier: Apache-2.0
#include "engine/weights/tensor_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>

namespace headroom::engine {
namespace {

constexpr int64_t kBufferBytes = (8_MiB).count();

float floatOfHalf(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16, exponent = (half >> 10) & 0x1f, fraction = half & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent > 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float small = std::ldexp(static_cast<float>(fraction), -24);
  return sign ? -small : small;
}

template <class Stored, class Convert>
void convertEach(const void* from, int64_t count, float* to, Convert convert) {
  for (int64_t i = 0; i < count; ++i) {
    Stored value;
    std::memcpy(&value, static_cast<const std::byte*>(from) + i * static_cast<int64_t>(sizeof value), sizeof value);
    to[i] = convert(value);
  }
}

}  // namespace

bool convertToFloat(DType dtype, const void* from, int64_t count, float* to) {
  switch (dtype) {
    case DType::F32:
      convertEach<float>(from, count, to, [](float x) { return x; });
      return true;
    case DType::F64:
      convertEach<double>(from, count, to, [](double x) { return static_cast<float>(x); });
      return true;
    case DType::F16:
      convertEach<uint16_t>(from, count, to, floatOfHalf);
      return true;
    case DType::BF16:
      convertEach<uint16_t>(from, count, to, [](uint16_t x) { return std::bit_cast<float>(static_cast<uint32_t>(x) << 16); });
      return true;
    default:
      return false;
  }
}

TensorReader::~TensorReader() {
  for (int descriptor : m_descriptors)
    if (descriptor >= 0) ::close(descriptor);
}

Result<int> TensorReader::open(int file) {
  expects(file >= 0 && file < static_cast<int>(m_paths.size()), "a tensor lies in a file that the model does not have");
  int& descriptor = m_descriptors[file];
  if (descriptor < 0) {
    descriptor = ::open(m_paths[file].c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return failure(m_paths[file].string(), std::strerror(errno), "a readable weight file");
  }
  return descriptor;
}

Status TensorReader::readAt(const TensorEntry& tensor, int64_t offset, int64_t size, std::byte* to) {
  const Result<int> descriptor = open(tensor.location->file);
  if (!descriptor) return tl::unexpected(descriptor.error());
  const std::string path = m_paths[tensor.location->file].string();
  for (int64_t done = 0; done < size;) {
    const ssize_t count = ::pread(*descriptor, to + done, static_cast<size_t>(size - done), offset + done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failure(path, fmt::format("{} while reading {}", std::strerror(errno), tensor.name));
    if (count == 0)
      return failure(path, fmt::format("the end of the file at byte {}", offset + done),
                     fmt::format("{} to reach byte {}", tensor.name, tensor.location->offset + tensor.location->bytes.count()),
                     "the file is cut off; download it again");
    done += count;
  }
  return {};
}

Status TensorReader::read(const TensorEntry& tensor, std::span<const Range> rows, std::span<const Range> columns,
                          const ChunkSink& sink) {
  const int64_t storedColumns = tensor.shape.back();
  const int64_t storedRowBytes = storageBytes(tensor.dtype, storedColumns).count();
  int64_t rowBytes = 0;
  for (Range piece : columns) rowBytes += storageBytes(tensor.dtype, piece.size()).count();
  const bool wholeRows = rowBytes == storedRowBytes;
  const int64_t chunkRows = std::max<int64_t>(1, kBufferBytes / std::max<int64_t>(1, rowBytes));

  int64_t firstRow = 0;
  for (Range range : rows) {
    for (int64_t row = range.begin; row < range.end;) {
      const int64_t count = std::min(chunkRows, range.end - row);
      const int64_t begin = tensor.location->offset + row * storedRowBytes;
      if (static_cast<int64_t>(m_buffer.size()) < count * rowBytes) m_buffer.resize(static_cast<size_t>(count * rowBytes));
      std::byte* to = m_buffer.data();
      if (wholeRows) {
        if (Status status = readAt(tensor, begin, count * rowBytes, to); !status) return status;
      } else {
        for (int64_t i = 0; i < count; ++i) {
          for (Range piece : columns) {
            const int64_t size = storageBytes(tensor.dtype, piece.size()).count();
            const int64_t offset = begin + i * storedRowBytes + storageBytes(tensor.dtype, piece.begin).count();
            if (Status status = readAt(tensor, offset, size, to); !status) return status;
            to += size;
          }
        }
      }
      if (Status status = sink({firstRow, count, m_buffer.data(), Bytes(count * rowBytes)}); !status) return status;
      firstRow += count;
      row += count;
    }
  }
  return {};
}

}  // namespace headroom::engine
