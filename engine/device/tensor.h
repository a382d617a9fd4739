// SPDX-License-Identifier: Apache-2.0
// Borrowed views and owned buffers of device memory.
#pragma once

#include "core/model/dtype.h"

#include <cstddef>
#include <utility>

namespace headroom::engine {

// A borrowed (rows, cols) matrix of plain numbers, row-major; `stride` elements from row to row.
struct TensorView {
  void* data = nullptr;
  DType dtype = DType::F32;
  int64_t rows = 0, cols = 0, stride = 0;

  static TensorView of(void* data, DType dtype, int64_t rows, int64_t cols) { return {data, dtype, rows, cols, cols}; }
  template <class T>
  T* row(int64_t index) const { return static_cast<T*>(data) + index * stride; }
  // The first `count` rows.
  TensorView head(int64_t count) const { return {data, dtype, count, cols, stride}; }
  TensorView columns(int64_t begin, int64_t count) const {
    return {static_cast<std::byte*>(data) + storageBytes(dtype, begin).count(), dtype, rows, count, stride};
  }
};

class Backend;

// Owned device memory; returns to its backend when destroyed.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(Backend* backend, void* data, Bytes size) : m_backend(backend), m_data(data), m_size(size) {}
  DeviceBuffer(DeviceBuffer&& other) noexcept { swap(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    DeviceBuffer(std::move(other)).swap(*this);
    return *this;
  }
  ~DeviceBuffer();
  void* data() const { return m_data; }
  Bytes size() const { return m_size; }
  explicit operator bool() const { return m_data != nullptr; }

 private:
  void swap(DeviceBuffer& other) noexcept {
    std::swap(m_backend, other.m_backend);
    std::swap(m_data, other.m_data);
    std::swap(m_size, other.m_size);
  }
  Backend* m_backend = nullptr;
  void* m_data = nullptr;
  Bytes m_size;
};

// A linear layer's weight (out, in), or an embedding table (vocabulary, hidden), in the form that its backend likes best. storage.size() is
// exactly storageBytes(dtype, in) * out: packing never adds bytes.
struct WeightMatrix {
  DType dtype = DType::F32;
  int64_t out = 0, in = 0;
  int packing = 0;  // meaning is the backend's own
  DeviceBuffer storage;
};

}  // namespace headroom::engine
