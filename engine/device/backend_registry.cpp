// SPDX-License-Identifier: Apache-2.0
#include "engine/device/backend_registry.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

namespace headroom::engine {
namespace {
constexpr int kCudaAbi = 1;
// The module's one entry: fills `reason` (at most `reasonSize` bytes with the final zero) and returns null where it cannot serve
// `abi`.
using OpenCudaModule = void* (*)(int abi, char* reason, size_t reasonSize);

std::filesystem::path cudaModulePath() {
  if (const char* path = std::getenv("HEADROOM_CUDA_MODULE")) return path;
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::filesystem::path("libheadroom_cuda.so") : program.parent_path() / "libheadroom_cuda.so";
}

// Why CUDA is off; empty when it is on.
std::string openCuda() {
  const std::filesystem::path path = cudaModulePath();
  std::error_code error;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!driver) return "CUDA is off: the NVIDIA driver library libcuda.so.1 was not found.";
  dlclose(driver);
  if (!std::filesystem::exists(path, error)) return fmt::format("CUDA is off: the CUDA module {} was not found.", path.string());
  void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!module) return fmt::format("CUDA is off: the CUDA module could not be loaded ({}).", dlerror());
  const auto open = reinterpret_cast<OpenCudaModule>(dlsym(module, "headroom_cuda_open"));
  if (!open) return fmt::format("CUDA is off: {} has no headroom_cuda_open and is not Headroom's CUDA module.", path.string());
  char reason[512] = "";
  if (!open(kCudaAbi, reason, sizeof reason))
    return fmt::format("CUDA is off: the CUDA module refused interface {}{}{}.", kCudaAbi, reason[0] ? ": " : "", reason);
  return {};
}
}  // namespace

FoundDevices findDevices(const HostDeviceSettings& settings) {
  FoundDevices found;
  found.host = hostMachine(settings);
  found.cudaOffReason = openCuda();
  return found;
}

}  // namespace headroom::engine
