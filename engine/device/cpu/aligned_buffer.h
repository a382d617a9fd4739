// SPDX-License-Identifier: Apache-2.0
// Scratch memory of the CPU backend that only grows, 64-byte aligned.
#pragma once

#include "core/units.h"

#include <cstdlib>
#include <memory>
#include <new>

namespace headroom::engine::cpu {

class AlignedBuffer {
 public:
  // At least `bytes`; what was in it is lost when it grows.
  template <class T = std::byte>
  T* reserve(int64_t bytes) {
    if (bytes > m_size) {
      m_data.reset();
      m_size = roundUp(bytes, 64);
      m_data.reset(std::aligned_alloc(64, static_cast<size_t>(m_size)));
      if (!m_data) throw std::bad_alloc();
    }
    return data<T>();
  }
  template <class T = std::byte>
  T* data() const {
    return static_cast<T*>(m_data.get());
  }

 private:
  struct Free {
    void operator()(void* data) const { std::free(data); }
  };
  std::unique_ptr<void, Free> m_data;
  int64_t m_size = 0;
};

}  // namespace headroom::engine::cpu
