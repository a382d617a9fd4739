// SPDX-License-Identifier: Apache-2.0
// Splits a GGUF file as llama-gguf-split does: the first part keeps all metadata, each part says split.no, split.count and
// split.tensors.count, and tensors go to the parts in turn of their order.
#pragma once

#include "core/model/gguf_header.h"

#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

namespace headroom::engine::test {

class GgufSplitter {
 public:
  explicit GgufSplitter(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    m_bytes.assign(std::istreambuf_iterator<char>(stream), {});
    m_header = *readGgufHeader(file, false);
  }

  // FOLDER/PREFIX-00001-of-0000N.gguf and so on. Without tensors in the first part where `tensorsFirst` is false, as
  // llama-gguf-split --no-tensor-first-split makes them.
  void write(const std::filesystem::path& folder, const std::string& prefix, int parts, bool tensorsFirst = true) const {
    const int tensorParts = tensorsFirst ? parts : parts - 1;
    const size_t count = m_header.tensors.size(),
                 each = (count + static_cast<size_t>(tensorParts) - 1) / static_cast<size_t>(tensorParts);
    size_t next = 0;
    for (int part = 0; part < parts; ++part) {
      uint64_t keys = 3;
      std::string metadata;
      if (part == 0) {
        keys += number<uint64_t>(16);
        metadata = m_bytes.substr(24, endOfMetadata() - 24);
      }
      metadata +=
          key("split.no", 2) + raw(static_cast<uint16_t>(part)) + key("split.count", 2) + raw(static_cast<uint16_t>(parts));
      metadata += key("split.tensors.count", 5) + raw(static_cast<int32_t>(count));
      std::string infos, data;
      uint64_t tensors = 0;
      const size_t end = part == 0 && !tensorsFirst ? 0 : std::min(count, next + each);
      for (; next < end; ++next, ++tensors) {
        const GgufTensor& tensor = m_header.tensors[next];
        infos += text(tensor.name) + raw(static_cast<uint32_t>(tensor.shape.size()));
        for (auto extent = tensor.shape.rbegin(); extent != tensor.shape.rend(); ++extent)
          infos += raw(static_cast<uint64_t>(*extent));
        infos += raw(typeOf(tensor.dtype)) + raw(static_cast<uint64_t>(data.size()));
        data += m_bytes.substr(static_cast<size_t>(tensor.offset), static_cast<size_t>(tensor.bytes.count()));
        data.resize((data.size() + 31) / 32 * 32);
      }
      std::string all = "GGUF" + raw(uint32_t{3}) + raw(tensors) + raw(keys) + metadata + infos;
      all.resize((all.size() + 31) / 32 * 32);
      std::ofstream(folder / fmt::format("{}-{:05}-of-{:05}.gguf", prefix, part + 1, parts), std::ios::binary) << all << data;
    }
  }

 private:
  template <class T>
  static std::string raw(T value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof value);
  }
  static std::string text(const std::string& value) { return raw(static_cast<uint64_t>(value.size())) + value; }
  static std::string key(const std::string& name, uint32_t type) { return text(name) + raw(type); }
  static uint32_t typeOf(DType dtype) {
    for (uint32_t type = 0; type < 64; ++type)
      if (dtypeOfGgufType(type) == dtype) return type;
    return UINT32_MAX;
  }
  template <class T>
  T number(size_t at) const {
    T value;
    std::memcpy(&value, m_bytes.data() + at, sizeof value);
    return value;
  }
  size_t sizeOfValue(size_t at, uint32_t type) const {
    static constexpr size_t kSizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (type == 8) return 8 + number<uint64_t>(at);
    if (type != 9) return kSizes[type];
    const uint32_t element = number<uint32_t>(at);
    size_t size = 12;
    for (uint64_t i = number<uint64_t>(at + 4); i > 0; --i) size += sizeOfValue(at + size, element);
    return size;
  }
  size_t endOfMetadata() const {
    size_t at = 24;
    for (uint64_t keys = number<uint64_t>(16); keys > 0; --keys) {
      at += 8 + number<uint64_t>(at);
      at += 4 + sizeOfValue(at + 4, number<uint32_t>(at));
    }
    return at;
  }

  std::string m_bytes;
  GgufHeader m_header;
};

}  // namespace headroom::engine::test
