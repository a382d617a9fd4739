// SPDX-License-Identifier: Apache-2.0
// device_api.cuh on a real device: thin names over CUDA C++ and PTX. What an architecture lacks is composed from what it has.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cmath>
#include <type_traits>
#include <utility>

#define HEADROOM_DYNAMIC_SHARED(T, name)                                  \
  extern __shared__ __align__(128) unsigned char headroomDynamicShared[]; \
  T* name = reinterpret_cast<T*>(headroomDynamicShared)

namespace headroom::engine::cuda {

using Half = __half;
using BFloat16 = __nv_bfloat16;
struct Fp8E4M3 {
  uint8_t bits;
};
struct Fp8E5M2 {
  uint8_t bits;
};

// Kernels that want more than the 48 KiB every launch may have are told so once a device.
template <class... Parameters, class... Arguments>
cudaError_t launchKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t sharedBytes, cudaStream_t stream,
                         Arguments&&... arguments) {
  if (sharedBytes > 48 * 1024)
    cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                         static_cast<int>(sharedBytes));
  kernel<<<grid, block, sharedBytes, stream>>>(static_cast<Parameters>(std::forward<Arguments>(arguments))...);
  return cudaPeekAtLastError();
}

__device__ __forceinline__ float toFloat(float x) { return x; }
__device__ __forceinline__ float toFloat(Half x) { return __half2float(x); }
__device__ __forceinline__ float toFloat(BFloat16 x) { return __bfloat162float(x); }
__device__ __forceinline__ float toFloat(Fp8E4M3 x) { return __half2float(__half(__nv_cvt_fp8_to_halfraw(x.bits, __NV_E4M3))); }
__device__ __forceinline__ float toFloat(Fp8E5M2 x) { return __half2float(__half(__nv_cvt_fp8_to_halfraw(x.bits, __NV_E5M2))); }

template <class T>
__device__ __forceinline__ T fromFloat(float x) {
  if constexpr (std::is_same_v<T, Half>)
    return __float2half_rn(x);
  else if constexpr (std::is_same_v<T, BFloat16>)
    return __float2bfloat16_rn(x);
  else if constexpr (std::is_same_v<T, Fp8E4M3>)
    return {__nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3)};
  else if constexpr (std::is_same_v<T, Fp8E5M2>)
    return {__nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E5M2)};
  else
    return x;
}

namespace detail {
__device__ __forceinline__ __half2 asHalf2(uint32_t x) { return *reinterpret_cast<__half2*>(&x); }
__device__ __forceinline__ __nv_bfloat162 asBf162(uint32_t x) { return *reinterpret_cast<__nv_bfloat162*>(&x); }
template <class V>
__device__ __forceinline__ uint32_t asBits(V x) {
  return *reinterpret_cast<uint32_t*>(&x);
}
__device__ __forceinline__ uint32_t sharedAddress(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}
}  // namespace detail

template <class T>
__device__ __forceinline__ float2 unpackPair(uint32_t pair) {
  if constexpr (std::is_same_v<T, Half>)
    return __half22float2(detail::asHalf2(pair));
  else
    return make_float2(__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u));
}
template <class T>
__device__ __forceinline__ uint32_t packPair(float a, float b) {
  if constexpr (std::is_same_v<T, Half>)
    return detail::asBits(__floats2half2_rn(a, b));
  else
    return detail::asBits(__floats2bfloat162_rn(a, b));
}
template <class T>
__device__ __forceinline__ uint32_t fmaPair(uint32_t a, uint32_t b, uint32_t c) {
  if constexpr (std::is_same_v<T, Half>)
    return detail::asBits(__hfma2(detail::asHalf2(a), detail::asHalf2(b), detail::asHalf2(c)));
#if __CUDA_ARCH__ >= 800
  else
    return detail::asBits(__hfma2(detail::asBf162(a), detail::asBf162(b), detail::asBf162(c)));
#else
  else {
    const float2 x = unpackPair<T>(a), y = unpackPair<T>(b), z = unpackPair<T>(c);
    return packPair<T>(fmaf(x.x, y.x, z.x), fmaf(x.y, y.y, z.y));
  }
#endif
}

template <class V>
__device__ __forceinline__ V loadStreaming(const V* pointer) {
  return __ldcs(pointer);
}

__device__ __forceinline__ void copyAsync16(void* shared, const void* global, bool valid = true) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(detail::sharedAddress(shared)), "l"(global),
               "r"(valid ? 16 : 0)
               : "memory");
#else
  *static_cast<uint4*>(shared) = valid ? *static_cast<const uint4*>(global) : make_uint4(0, 0, 0, 0);
#endif
}
__device__ __forceinline__ void copyAsync4(void* shared, const void* global, bool valid = true) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(detail::sharedAddress(shared)), "l"(global),
               "r"(valid ? 4 : 0)
               : "memory");
#else
  *static_cast<uint32_t*>(shared) = valid ? *static_cast<const uint32_t*>(global) : 0u;
#endif
}
__device__ __forceinline__ void commitCopies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;\n" ::: "memory");
#endif
}
template <int Pending>
__device__ __forceinline__ void waitCopies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;\n" ::"n"(Pending) : "memory");
#endif
}

template <class T>
__device__ __forceinline__ void mmaTile(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  if constexpr (std::is_same_v<T, Half>)
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#elif __CUDA_ARCH__ >= 750
  if constexpr (std::is_same_v<T, Half>) {
    for (int k = 0; k < 2; ++k)
      asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};\n"
                   : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                   : "r"(a[2 * k]), "r"(a[2 * k + 1]), "r"(b[k]));
  } else {
    __trap();
  }
#else
  __trap();
#endif
}

__device__ __forceinline__ void mmaTileInt8(int (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
               : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#elif __CUDA_ARCH__ >= 750
  for (int k = 0; k < 2; ++k)
    for (int half = 0; half < 2; ++half)
      asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};\n"
                   : "+r"(c[2 * half]), "+r"(c[2 * half + 1])
                   : "r"(a[2 * k + half]), "r"(b[k]));
#else
  __trap();
#endif
}

__device__ __forceinline__ void loadTiles4(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(detail::sharedAddress(row))
               : "memory");
}
__device__ __forceinline__ void loadTiles4Transposed(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(detail::sharedAddress(row))
               : "memory");
}

__device__ __forceinline__ uint32_t loadAcquireSystem(const uint32_t* flag) {
  uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];\n" : "=r"(value) : "l"(flag) : "memory");
  return value;
}
__device__ __forceinline__ void storeReleaseSystem(uint32_t* flag, uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;\n" ::"l"(flag), "r"(value) : "memory");
}
__device__ __forceinline__ void pauseInLoop() { __nanosleep(100); }

}  // namespace headroom::engine::cuda
