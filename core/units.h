// SPDX-License-Identifier: Apache-2.0
// Units as types: a number of bytes never passes for a number of tokens.
#pragma once

#include <compare>
#include <cstdint>

namespace headroom {

// A signed amount of memory in bytes (negative: what is missing).
class Bytes {
 public:
  constexpr Bytes() = default;
  constexpr explicit Bytes(int64_t count) : m_count(count) {}
  constexpr int64_t count() const { return m_count; }
  constexpr double gib() const { return static_cast<double>(m_count) / (1024.0 * 1024.0 * 1024.0); }

  constexpr Bytes& operator+=(Bytes other) { m_count += other.m_count; return *this; }
  constexpr Bytes& operator-=(Bytes other) { m_count -= other.m_count; return *this; }
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return Bytes(a.m_count + b.m_count); }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return Bytes(a.m_count - b.m_count); }
  friend constexpr Bytes operator-(Bytes a) { return Bytes(-a.m_count); }
  friend constexpr Bytes operator*(Bytes a, int64_t times) { return Bytes(a.m_count * times); }
  friend constexpr Bytes operator*(int64_t times, Bytes a) { return Bytes(a.m_count * times); }
  // How often b goes into a, rounded towards zero.
  friend constexpr int64_t operator/(Bytes a, Bytes b) { return a.m_count / b.m_count; }
  friend constexpr auto operator<=>(Bytes, Bytes) = default;

 private:
  int64_t m_count = 0;
};

constexpr Bytes operator""_B(unsigned long long n) { return Bytes(static_cast<int64_t>(n)); }
constexpr Bytes operator""_KiB(unsigned long long n) { return Bytes(static_cast<int64_t>(n) << 10); }
constexpr Bytes operator""_MiB(unsigned long long n) { return Bytes(static_cast<int64_t>(n) << 20); }
constexpr Bytes operator""_GiB(unsigned long long n) { return Bytes(static_cast<int64_t>(n) << 30); }

// A half-open range [begin, end).
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  constexpr int64_t size() const { return end - begin; }
  constexpr bool empty() const { return end <= begin; }
  constexpr bool contains(int64_t index) const { return begin <= index && index < end; }
  friend constexpr bool operator==(const Range&, const Range&) = default;
};

constexpr int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t roundUp(int64_t a, int64_t multiple) { return ceilDiv(a, multiple) * multiple; }

}  // namespace headroom
