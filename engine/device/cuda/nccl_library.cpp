// SPDX-License-Identifier: Apache-2.0
#include "engine/device/cuda/nccl_library.h"

#include <dlfcn.h>

namespace headroom::engine::cuda {

namespace {

// Where the calls are looked up: the library, or this module where it brings its own (the emulation).
void* openLibrary() {
#if defined(HEADROOM_CUDA_EMULATION)
  static const int here = 0;
  Dl_info info{};
  return dladdr(&here, &info) ? dlopen(info.dli_fname, RTLD_NOW | RTLD_LOCAL) : nullptr;
#else
  return dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
#endif
}

Result<NcclLibrary> load() {
  void* library = openLibrary();
  if (!library)
    return failure("NCCL", std::string("no libnccl.so.2 (") + dlerror() + ")", "NCCL 2.18 or above", "install libnccl2");
  NcclLibrary calls{};
  std::string missing;
  auto find = [&](auto& call, const char* name) {
    call = reinterpret_cast<std::remove_reference_t<decltype(call)>>(dlsym(library, name));
    if (!call) missing += missing.empty() ? name : std::string(", ") + name;
  };
  find(calls.getVersion, "ncclGetVersion");
  find(calls.getUniqueId, "ncclGetUniqueId");
  find(calls.commInitRankConfig, "ncclCommInitRankConfig");
  find(calls.commGetAsyncError, "ncclCommGetAsyncError");
  find(calls.commAbort, "ncclCommAbort");
  find(calls.commDestroy, "ncclCommDestroy");
  find(calls.allReduce, "ncclAllReduce");
  find(calls.send, "ncclSend");
  find(calls.recv, "ncclRecv");
  find(calls.groupStart, "ncclGroupStart");
  find(calls.groupEnd, "ncclGroupEnd");
  find(calls.getErrorString, "ncclGetErrorString");
  if (!missing.empty()) return failure("NCCL", "a library without " + missing, "NCCL 2.18 or above", "install a newer libnccl2");
  return calls;
}

}  // namespace

Result<const NcclLibrary*> NcclLibrary::open() {
  static const Result<NcclLibrary> library = load();
  if (!library) return tl::unexpected(library.error());
  return &*library;
}

}  // namespace headroom::engine::cuda
