// SPDX-License-Identifier: Apache-2.0
// Which instruction sets this processor and its operating system offer.
#include "engine/device/cpu/cpu_backend.h"

#include <fmt/format.h>
#include <hwy/targets.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

namespace headroom::engine {
namespace {
constexpr std::array<std::string_view, 6> kNames = {"baseline", "avx2", "avx2-vnni", "avx512", "avx512-vnni", "avx512-bf16"};

std::vector<CpuLevel> processorLevels() {
  std::vector<CpuLevel> levels = {CpuLevel::Baseline};
#if defined(__x86_64__)
  const int64_t targets = hwy::SupportedTargets();  // what the processor has and the operating system saves
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0, eax1 = 0, ebx1 = 0, ecx1 = 0, edx1 = 0;
  __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx);
  if (eax >= 1) __get_cpuid_count(7, 1, &eax1, &ebx1, &ecx1, &edx1);
  const bool avx512Vnni = ecx & (1u << 11), avxVnni = eax1 & (1u << 4), avx512Bf16 = eax1 & (1u << 5);
  if (targets & HWY_AVX2) {
    levels.push_back(CpuLevel::Avx2);
    if (avxVnni) levels.push_back(CpuLevel::Avx2Vnni);
  }
  if (targets & HWY_AVX3) {
    levels.push_back(CpuLevel::Avx512);
    if (avx512Vnni) levels.push_back(CpuLevel::Avx512Vnni);
    if (avx512Vnni && avx512Bf16) levels.push_back(CpuLevel::Avx512Bf16);
  }
#endif
  return levels;
}

// True where vdpbf16ps is faster than the float products it replaces. Zen issues it at the rate of a fused multiply-add; Sapphire
// and Emerald Rapids at a quarter of it, so that products of BF16 weights made floats are faster there, and more exact.
bool hasFastBf16Products() {
#if defined(__x86_64__)
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  __get_cpuid(0, &eax, &ebx, &ecx, &edx);
  return ebx == signature_AMD_ebx && ecx == signature_AMD_ecx && edx == signature_AMD_edx;
#else
  return false;
#endif
}
}  // namespace

std::string_view cpuLevelName(CpuLevel level) { return kNames[static_cast<size_t>(level)]; }

std::vector<CpuLevel> availableCpuLevels() {
  static const std::vector<CpuLevel> levels = processorLevels();
  return levels;
}

CpuLevel bestCpuLevel() {
  const std::vector<CpuLevel> levels = availableCpuLevels();
  CpuLevel best = levels.back();
  if (best == CpuLevel::Avx512Bf16 && !hasFastBf16Products()) best = CpuLevel::Avx512Vnni;
  const char* wanted = std::getenv("HEADROOM_CPU_LEVEL");
  if (!wanted || !*wanted) return best;
  const auto name = std::find(kNames.begin(), kNames.end(), wanted);
  if (name == kNames.end()) {
    static std::atomic_flag reported;
    if (!reported.test_and_set())
      fmt::print(stderr, "HEADROOM_CPU_LEVEL: found {}, expected one of {}; using {}\n", wanted, fmt::join(kNames, ", "),
                 kNames[static_cast<size_t>(best)]);
    return best;
  }
  const auto highest = static_cast<CpuLevel>(name - kNames.begin());
  return *std::prev(std::upper_bound(levels.begin(), levels.end(), highest));
}

}  // namespace headroom::engine
