// SPDX-License-Identifier: Apache-2.0
// CUDA C++ for a host compiler, as far as device_api.cuh promises it. Each thread of a block is a fiber; all fibers of a block
// share one OS thread, so `static thread_local` serves for __shared__. Meanings come from the CUDA C++ programming guide and the
// PTX manual; the work is done in execution.cpp, which also checks every access of sources compiled with memory callbacks.
#pragma once

#include "tests/cuda_emulation/include/cuda_runtime_api.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__ static thread_local
// Not seen by the memory callbacks: the emulation's own work.
#define HEADROOM_UNCHECKED __attribute__((no_sanitize("thread")))

struct alignas(8) float2 {
  float x, y;
};
struct float3 {
  float x, y, z;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) int2 {
  int x, y;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(4) uchar4 {
  unsigned char x, y, z, w;
};
struct alignas(4) char4 {
  signed char x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline uchar4 make_uchar4(unsigned char x, unsigned char y, unsigned char z, unsigned char w) { return {x, y, z, w}; }

namespace headroom::emulation {

struct ThreadPlace {
  uint3 thread, block;
  dim3 blockSize, gridSize;
};
const ThreadPlace& place();  // of the running device thread

// All fibers of a warp that `mask` names arrive with their arguments; the last one runs `combine` over them (null where a lane is
// not there).
using Combine = void (*)(void* const arguments[32], uint32_t lanes);
void warpCollective(uint32_t mask, void* arguments, Combine combine, bool ordersMemory);
int laneIndex();
int blockBarrier(int predicate, int kind);  // kind 0: nothing, 1: or, 2: and, 3: count
enum class AccessKind : uint8_t { Read, Write, Atomic, Acquire, Release };
void noteAccess(const void* address, size_t size, AccessKind kind);  // for what the callbacks do not see
void* dynamicShared();
void fence();
void trap();
void pauseInLoop();
void startCopy(void* shared, const void* global, size_t size, bool valid);
void commitCopies();
void waitCopies(int pending);
// A kernel with its parameters. The device may read the object (`bytes` of it): it stands for the parameter memory.
struct KernelCall {
  size_t bytes = 0;
  virtual ~KernelCall() = default;
  virtual void runThread() const = 0;
};
template <class... Parameters>
struct KernelCallOf final : KernelCall {
  void (*kernel)(Parameters...);
  std::tuple<std::decay_t<Parameters>...> parameters;
  void runThread() const override { std::apply(kernel, parameters); }
};
cudaError_t enqueueKernel(const char* name, dim3 grid, dim3 block, size_t sharedBytes, cudaStream_t stream,
                          std::shared_ptr<const KernelCall> call);

struct Shuffle {
  const void* value;
  void* result;
  int source;
  size_t size;
};
void combineShuffles(void* const arguments[32], uint32_t lanes);

template <class T>
HEADROOM_UNCHECKED T shuffle(uint32_t mask, T value, int source) {
  T result = value;
  Shuffle arguments{&value, &result, source, sizeof(T)};
  warpCollective(mask, &arguments, combineShuffles, false);
  return result;
}
uint32_t ballot(uint32_t mask, bool predicate);

template <class T>
HEADROOM_UNCHECKED T atomicUpdate(T* address, auto&& change) {
  noteAccess(address, sizeof(T), AccessKind::Atomic);
  T old = *static_cast<volatile T*>(address);
  for (;;) {
    T next = change(old);
    using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
    static_assert(sizeof(T) == sizeof(Bits));
    Bits expected = std::bit_cast<Bits>(old);
    if (__atomic_compare_exchange_n(reinterpret_cast<Bits*>(address), &expected, std::bit_cast<Bits>(next), false,
                                    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
      return old;
    old = std::bit_cast<T>(expected);
  }
}

}  // namespace headroom::emulation

#define threadIdx (headroom::emulation::place().thread)
#define blockIdx (headroom::emulation::place().block)
#define blockDim (headroom::emulation::place().blockSize)
#define gridDim (headroom::emulation::place().gridSize)
inline constexpr int warpSize = 32;

inline void __syncthreads() { headroom::emulation::blockBarrier(0, 0); }
inline int __syncthreads_or(int predicate) { return headroom::emulation::blockBarrier(predicate, 1); }
inline int __syncthreads_and(int predicate) { return headroom::emulation::blockBarrier(predicate, 2); }
inline int __syncthreads_count(int predicate) { return headroom::emulation::blockBarrier(predicate, 3); }
void __syncwarp(unsigned mask = 0xffffffffu);

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  const int lane = headroom::emulation::laneIndex();
  return headroom::emulation::shuffle(mask, value, (lane & ~(width - 1)) | (source & (width - 1)));
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32) {
  const int lane = headroom::emulation::laneIndex(), source = lane ^ lanes;
  return headroom::emulation::shuffle(mask, value, (source & ~(width - 1)) > (lane & ~(width - 1)) ? lane : source);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const int lane = headroom::emulation::laneIndex();
  return headroom::emulation::shuffle(
      mask, value, (lane & (width - 1)) + static_cast<int>(delta) < width ? lane + static_cast<int>(delta) : lane);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const int lane = headroom::emulation::laneIndex();
  return headroom::emulation::shuffle(mask, value,
                                      (lane & (width - 1)) >= static_cast<int>(delta) ? lane - static_cast<int>(delta) : lane);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) { return headroom::emulation::ballot(mask, predicate != 0); }
inline int __any_sync(unsigned mask, int predicate) { return headroom::emulation::ballot(mask, predicate != 0) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return headroom::emulation::ballot(mask, predicate == 0) == 0; }

template <class T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  return headroom::emulation::atomicUpdate(address, [=](T old) { return static_cast<T>(old + value); });
}
template <class T>
T atomicMax(T* address, std::type_identity_t<T> value) {
  return headroom::emulation::atomicUpdate(address, [=](T old) { return old < value ? value : old; });
}
template <class T>
T atomicMin(T* address, std::type_identity_t<T> value) {
  return headroom::emulation::atomicUpdate(address, [=](T old) { return value < old ? value : old; });
}
template <class T>
T atomicOr(T* address, std::type_identity_t<T> value) {
  return headroom::emulation::atomicUpdate(address, [=](T old) { return old | value; });
}
template <class T>
T atomicExch(T* address, std::type_identity_t<T> value) {
  return headroom::emulation::atomicUpdate(address, [=](T) { return value; });
}
template <class T>
T atomicCAS(T* address, std::type_identity_t<T> compare, std::type_identity_t<T> value) {
  return headroom::emulation::atomicUpdate(address, [=](T old) { return old == compare ? value : old; });
}
inline void __threadfence() { headroom::emulation::fence(); }
inline void __threadfence_system() { headroom::emulation::fence(); }
inline void __threadfence_block() {}
inline void __trap() { headroom::emulation::trap(); }

inline int __popc(unsigned x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1; }
inline unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int i = 0; i < 32; ++i) reversed |= ((x >> i) & 1u) << (31 - i);
  return reversed;
}
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; ++i) c += static_cast<int8_t>(a >> (8 * i)) * static_cast<int8_t>(b >> (8 * i));
  return c;
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 4; ++i) c += static_cast<unsigned>(static_cast<uint8_t>(a >> (8 * i))) * static_cast<uint8_t>(b >> (8 * i));
  return c;
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selectors) {
  const uint64_t bytes = static_cast<uint64_t>(y) << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned selector = (selectors >> (4 * i)) & 0xf;
    unsigned byte = static_cast<unsigned>(bytes >> (8 * (selector & 7))) & 0xff;
    if (selector & 8) byte = byte & 0x80 ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>(((static_cast<uint64_t>(high) << 32 | low) << (shift & 31)) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<uint64_t>(high) << 32 | low) >> (shift & 31));
}
template <class T>
T __ldg(const T* address) {
  return *address;
}
template <class T>
T __ldcs(const T* address) {
  return *address;
}
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
template <class A, class B>
constexpr std::common_type_t<A, B> min(A a, B b) {
  const std::common_type_t<A, B> x = a, y = b;
  return y < x ? y : x;
}
template <class A, class B>
constexpr std::common_type_t<A, B> max(A a, B b) {
  const std::common_type_t<A, B> x = a, y = b;
  return x < y ? y : x;
}

#define HEADROOM_DYNAMIC_SHARED(T, name) T* name = static_cast<T*>(headroom::emulation::dynamicShared())

namespace headroom::engine::cuda {

struct Half {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};
struct Fp8E4M3 {
  uint8_t bits;
};
struct Fp8E5M2 {
  uint8_t bits;
};

// Floating types of fewer bits: conversions by arithmetic on the bits, rounding to nearest even.
float halfToFloat(uint16_t bits);
uint16_t floatToHalf(float value);
float fp8ToFloat(uint8_t bits, int mantissaBits);
uint8_t floatToFp8(float value, int mantissaBits);
HEADROOM_UNCHECKED inline uint16_t floatToBFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

inline float toFloat(float x) { return x; }
inline float toFloat(Half x) { return halfToFloat(x.bits); }
inline float toFloat(BFloat16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }
inline float toFloat(Fp8E4M3 x) { return fp8ToFloat(x.bits, 3); }
inline float toFloat(Fp8E5M2 x) { return fp8ToFloat(x.bits, 2); }
template <class T>
T fromFloat(float x) {
  if constexpr (std::is_same_v<T, Half>)
    return {floatToHalf(x)};
  else if constexpr (std::is_same_v<T, BFloat16>)
    return {floatToBFloat16(x)};
  else if constexpr (std::is_same_v<T, Fp8E4M3>)
    return {floatToFp8(x, 3)};
  else if constexpr (std::is_same_v<T, Fp8E5M2>)
    return {floatToFp8(x, 2)};
  else
    return x;
}
template <class T>
float2 unpackPair(uint32_t pair) {
  return {toFloat(T{static_cast<uint16_t>(pair)}), toFloat(T{static_cast<uint16_t>(pair >> 16)})};
}
template <class T>
uint32_t packPair(float a, float b) {
  return static_cast<uint32_t>(fromFloat<T>(a).bits) | static_cast<uint32_t>(fromFloat<T>(b).bits) << 16;
}
template <class T>
uint32_t fmaPair(uint32_t a, uint32_t b, uint32_t c) {
  const float2 x = unpackPair<T>(a), y = unpackPair<T>(b), z = unpackPair<T>(c);
  return packPair<T>(std::fma(x.x, y.x, z.x), std::fma(x.y, y.y, z.y));
}
template <class V>
V loadStreaming(const V* pointer) {
  return *pointer;
}

inline void copyAsync16(void* shared, const void* global, bool valid = true) { emulation::startCopy(shared, global, 16, valid); }
inline void copyAsync4(void* shared, const void* global, bool valid = true) { emulation::startCopy(shared, global, 4, valid); }
inline void commitCopies() { emulation::commitCopies(); }
template <int Pending>
void waitCopies() {
  emulation::waitCopies(Pending);
}

void mmaTileHalf(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);
void mmaTileBFloat16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);
template <class T>
void mmaTile(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  if constexpr (std::is_same_v<T, Half>)
    mmaTileHalf(c, a, b);
  else
    mmaTileBFloat16(c, a, b);
}
void mmaTileInt8(int (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);
void loadTiles4(uint32_t (&r)[4], const void* row);
void loadTiles4Transposed(uint32_t (&r)[4], const void* row);
uint32_t loadAcquireSystem(const uint32_t* flag);
void storeReleaseSystem(uint32_t* flag, uint32_t value);
inline void pauseInLoop() { emulation::pauseInLoop(); }

template <class... Parameters, class... Arguments>
cudaError_t launchKernelNamed(const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t sharedBytes,
                              cudaStream_t stream, Arguments&&... arguments) {
  auto call = std::make_shared<emulation::KernelCallOf<Parameters...>>();
  call->bytes = sizeof *call;
  call->kernel = kernel;
  call->parameters = {static_cast<std::decay_t<Parameters>>(std::forward<Arguments>(arguments))...};
  return emulation::enqueueKernel(name, grid, block, sharedBytes, stream, std::move(call));
}

}  // namespace headroom::engine::cuda

// The text of the call names the kernel in reports.
#define launchKernel(...) launchKernelNamed(#__VA_ARGS__, __VA_ARGS__)
