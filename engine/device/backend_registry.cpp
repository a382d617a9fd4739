// SPDX-License-Identifier: Apache-2.0
#include "engine/device/backend_registry.h"

#include "core/hardware/local_gpus.h"
#include "engine/device/cuda/cuda_module.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

namespace headroom::engine {
namespace {

namespace fs = std::filesystem;

fs::path cudaModulePath() {
  if (const char* path = std::getenv("HEADROOM_CUDA_MODULE"); path && *path) return path;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return (error ? fs::path(".") : program.parent_path()) / "libheadroom_cuda.so";
}

// Opens the module, or says in one sentence why it cannot be. An open module stays loaded as long as the program runs.
std::unique_ptr<CudaModule> openCudaModule(std::string& offReason) {
  const fs::path path = cudaModulePath();
  std::error_code error;
  auto off = [&](std::string why) {
    offReason = std::move(why);
    return nullptr;
  };
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver) dlclose(driver);
  const std::string noDriver = driver ? "" : "the NVIDIA driver library libcuda.so.1 was not found";
  if (!fs::exists(path, error) && !driver) return off(fmt::format("CUDA is off: {}.", noDriver));
  if (!fs::exists(path, error)) return off(fmt::format("CUDA is off: Headroom's CUDA module {} was not found; packaging/setup --cuda builds it.", path.string()));
  void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!module) return off(fmt::format("CUDA is off: {} could not be loaded ({}).", path.string(), dlerror()));
  const auto open = reinterpret_cast<OpenCudaModule>(dlsym(module, "headroom_cuda_open"));
  if (!open) return off(fmt::format("CUDA is off: {} is not Headroom's CUDA module (it has no headroom_cuda_open).", path.string()));
  char reason[512] = "it gives no reason";
  std::unique_ptr<CudaModule> opened(open(kCudaAbi, reason, sizeof reason));
  if (!opened) return off(fmt::format("CUDA is off: {} cannot be used ({}{}{}).", path.string(), reason, driver ? "" : "; ", noDriver));
  return opened;
}

// The devices that the module finds, with the catalog's figures where it knows the card.
Machine describeCuda(const CudaModule& module, std::string& offReason) {
  std::vector<MachineGpu> gpus;
  for (int index = 0; index < module.deviceCount(); ++index) {
    CudaDeviceInfo info;
    char reason[512] = "";
    if (!module.describe(index, info, reason, sizeof reason)) {
      offReason = fmt::format("CUDA is off: device {} does not answer ({}).", index, reason);
      return {};
    }
    gpus.push_back(localGpu(index, info.name, info.major + info.minor / 10.0,
                            info.bandwidthGBs > 0 ? std::optional(info.bandwidthGBs) : std::nullopt, Bytes(info.totalBytes),
                            Bytes(info.totalBytes - info.freeBytes)));
  }
  return gpuMachine(std::move(gpus));
}

}  // namespace

FoundDevices findDevices(const HostDeviceSettings& settings) {
  FoundDevices found;
  found.host = hostMachine(settings);
  if (std::shared_ptr<CudaModule> module = openCudaModule(found.cudaOffReason)) {
    found.cuda = describeCuda(*module, found.cudaOffReason);
    if (found.cudaOffReason.empty()) found.cudaModule = std::move(module);
  }
  return found;
}

}  // namespace headroom::engine
