// SPDX-License-Identifier: Apache-2.0
#include "engine/device/backend_registry.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

namespace headroom::engine {
namespace {

namespace fs = std::filesystem;

// The module's one entry, extern "C": returns null and a reason (at most `size` bytes with the final zero) where it does not
// speak interface `abi` or finds no usable device.
using OpenCudaModule = void* (*)(int abi, char* reason, size_t size);
constexpr int kCudaAbi = 1;

fs::path cudaModulePath() {
  if (const char* path = std::getenv("HEADROOM_CUDA_MODULE"); path && *path) return path;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return (error ? fs::path(".") : program.parent_path()) / "libheadroom_cuda.so";
}

// Why CUDA is off, as one sentence; empty when the module is open. An open module stays loaded as long as the program runs.
std::string openCudaModule() {
  const fs::path path = cudaModulePath();
  std::error_code error;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!driver) return "CUDA is off: the NVIDIA driver library libcuda.so.1 was not found.";
  dlclose(driver);
  if (!fs::exists(path, error)) return fmt::format("CUDA is off: Headroom's CUDA module {} was not found.", path.string());
  void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!module) return fmt::format("CUDA is off: {} could not be loaded ({}).", path.string(), dlerror());
  const auto open = reinterpret_cast<OpenCudaModule>(dlsym(module, "headroom_cuda_open"));
  if (!open) return fmt::format("CUDA is off: {} is not Headroom's CUDA module (it has no headroom_cuda_open).", path.string());
  char reason[512] = "it does not offer it";
  if (!open(kCudaAbi, reason, sizeof reason))
    return fmt::format("CUDA is off: {} refused interface {} ({}).", path.string(), kCudaAbi, reason);
  return {};
}

}  // namespace

FoundDevices findDevices(const HostDeviceSettings& settings) {
  FoundDevices found;
  found.host = hostMachine(settings);
  found.cudaOffReason = openCudaModule();
  return found;
}

}  // namespace headroom::engine
