// SPDX-License-Identifier: Apache-2.0
// Writes small GGUF files, well-formed or not, for the tests of their reader.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

class GgufWriter {
 public:
  GgufWriter& raw(const std::string& key, uint32_t type, const std::string& value) {
    ++m_keys;
    m_metadata += counted(key) + number(type) + value;
    return *this;
  }
  GgufWriter& text(const std::string& key, const std::string& value) { return raw(key, 8, counted(value)); }
  GgufWriter& u16(const std::string& key, uint16_t value) { return raw(key, 2, number(value)); }
  GgufWriter& u32(const std::string& key, uint32_t value) { return raw(key, 4, number(value)); }
  GgufWriter& i32(const std::string& key, int32_t value) { return raw(key, 5, number(value)); }
  GgufWriter& f32(const std::string& key, float value) { return raw(key, 6, number(value)); }
  GgufWriter& flag(const std::string& key, bool value) { return raw(key, 7, std::string(1, value ? '\1' : '\0')); }
  GgufWriter& u64(const std::string& key, uint64_t value) { return raw(key, 10, number(value)); }
  GgufWriter& texts(const std::string& key, const std::vector<std::string>& values) {
    std::string data = number(uint32_t{8}) + number(static_cast<uint64_t>(values.size()));
    for (const auto& value : values) data += counted(value);
    return raw(key, 9, data);
  }
  GgufWriter& i32s(const std::string& key, const std::vector<int32_t>& values) {
    std::string data = number(uint32_t{5}) + number(static_cast<uint64_t>(values.size()));
    for (int32_t value : values) data += number(value);
    return raw(key, 9, data);
  }

  // Extents innermost first, as the file has them. `bytes`: its data, where the type does not tell.
  GgufWriter& tensor(const std::string& name, uint32_t type, const std::vector<int64_t>& extents, int64_t bytes = -1) {
    int64_t elements = 1;
    if (bytes < 0)
      for (int64_t extent : extents) elements *= extent;
    if (bytes < 0) bytes = type == 8 ? elements / 32 * 34 : type == 1 ? elements * 2 : elements * 4;
    return tensorAt(name, type, extents, (static_cast<int64_t>(m_data.size()) + 31) / 32 * 32, bytes);
  }
  GgufWriter& tensorAt(const std::string& name, uint32_t type, const std::vector<int64_t>& extents, int64_t offset, int64_t bytes,
                       const std::string& content = {}) {
    ++m_tensors;
    m_infos += counted(name) + number(static_cast<uint32_t>(extents.size()));
    for (int64_t extent : extents) m_infos += number(static_cast<uint64_t>(extent));
    m_infos += number(type) + number(static_cast<uint64_t>(offset));
    m_data.resize((m_data.size() + 31) / 32 * 32, '\0');
    m_data += content.empty() ? std::string(static_cast<size_t>(bytes), '\0') : content;
    return *this;
  }
  GgufWriter& floats(const std::string& name, const std::vector<float>& values) {
    std::string content(values.size() * sizeof(float), '\0');
    std::memcpy(content.data(), values.data(), content.size());
    return tensorAt(name, 0, {static_cast<int64_t>(values.size())}, (static_cast<int64_t>(m_data.size()) + 31) / 32 * 32, 0,
                    content);
  }

  std::string bytes() const {
    std::string result = "GGUF" + number(uint32_t{3}) + number(m_tensors) + number(m_keys) + m_metadata + m_infos;
    if (m_tensors > 0) result.resize((result.size() + 31) / 32 * 32, '\0');
    return result + m_data;
  }

 private:
  template <class T>
  static std::string number(T value) {
    std::string text(sizeof(T), '\0');
    std::memcpy(text.data(), &value, sizeof(T));
    return text;
  }
  static std::string counted(const std::string& text) { return number(static_cast<uint64_t>(text.size())) + text; }

  uint64_t m_tensors = 0, m_keys = 0;
  std::string m_metadata, m_infos, m_data;
};
