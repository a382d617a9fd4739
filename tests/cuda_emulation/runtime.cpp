// SPDX-License-Identifier: Apache-2.0
// The emulated CUDA runtime: devices with a memory limit, streams that work on their own threads, events, graphs, and faults on
// request. A host pointer where a device pointer is expected, and a device pointer that the device does not own, is an illegal
// address, as on a GPU.
#include "tests/cuda_emulation/runtime.h"

#include "tests/cuda_emulation/execution.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

using namespace headroom::emulation;

namespace {

using Work = std::function<cudaError_t(const std::function<bool()>& stop)>;

int environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::atoi(text) : otherwise;
}

struct Device {
  size_t memory = 0, used = 0;
  std::atomic<int> error{cudaSuccess};
};

// All of the emulated machine. Never destroyed: streams may outlive main().
struct Machine {
  std::mutex mutex;
  bool read = false;
  int count = 0, capability = 90, delayMicroseconds = 0;
  std::string fault;
  std::vector<std::unique_ptr<Device>> devices;
  std::map<const char*, std::shared_ptr<Allocation>> allocations;
  std::shared_ptr<const AllocationTable> table = std::make_shared<AllocationTable>();
  int streams = 0;
  std::vector<CUstream_st*> openStreams;
  std::atomic<int> mallocs{0}, hostMallocs{0}, operations{0};
  std::atomic<int64_t> bytesToHost{0}, graphLaunches{0};
  std::string report;

  void readSettings() {
    std::lock_guard lock(mutex);
    if (read && (streams > 0 || !allocations.empty())) return;
    read = true;
    count = environment("HEADROOM_EMULATED_GPUS", 1);
    capability = environment("HEADROOM_EMULATED_CAPABILITY", 90);
    delayMicroseconds = environment("HEADROOM_EMULATED_DELAY_US", 0);
    const char* text = std::getenv("HEADROOM_EMULATED_FAULT");
    fault = text ? text : "";
    mallocs = hostMallocs = operations = 0;
    report.clear();
    devices.clear();
    for (int i = 0; i < count; ++i) {
      devices.push_back(std::make_unique<Device>());
      devices.back()->memory = static_cast<size_t>(environment("HEADROOM_EMULATED_MEMORY", 4096)) << 20;
    }
  }
  void note(int device, const std::string& what) {
    std::lock_guard lock(mutex);
    if (report.empty()) report = what;
    std::fprintf(stderr, "emulated device %d: %s\n", device, what.c_str());
  }
  // With the lock held.
  void rebuildTable() {
    auto next = std::make_shared<AllocationTable>();
    for (const auto& [begin, allocation] : allocations) next->push_back(allocation);
    table = std::move(next);
  }
  std::shared_ptr<const AllocationTable> allocationTable() {
    std::lock_guard lock(mutex);
    return table;
  }
  // The allocation that holds all of [pointer, pointer + size), or null.
  std::shared_ptr<Allocation> holding(const void* pointer, size_t size) {
    std::lock_guard lock(mutex);
    const char* begin = static_cast<const char*>(pointer);
    auto after = allocations.upper_bound(begin);
    if (after == allocations.begin()) return nullptr;
    const auto& allocation = std::prev(after)->second;
    if (begin >= allocation->begin + allocation->size) return nullptr;
    return begin + size <= allocation->begin + allocation->size ? allocation : nullptr;
  }
};
Machine& machine() {
  static Machine& machine = *new Machine;
  return machine;
}

thread_local int t_device = 0;
thread_local cudaError_t t_lastError = cudaSuccess;
cudaError_t fail(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) t_lastError = error;
  return error;
}

Device* deviceAt(int index) {
  if (index < 0 || index >= static_cast<int>(machine().devices.size())) return nullptr;
  return machine().devices[static_cast<size_t>(index)].get();
}
cudaError_t stickyError(int device) {
  Device* found = deviceAt(device);
  return found ? static_cast<cudaError_t>(found->error.load()) : cudaErrorNoDevice;
}

}  // namespace

// What a stream captures. A call that a capture does not allow makes all of it invalid, as in the runtime's thread-local mode.
struct CUgraph_st {
  std::vector<Work> works;
  std::string forbidden;  // the first such call
};
struct CUgraphExec_st {
  std::shared_ptr<std::vector<Work>> works;
  int device = 0;
  size_t bytes = 0;  // of the device's memory
};
// What the driver is taken to need of a graph: core/memory/memory_plan.cpp plans the same for the launches that it counts.
constexpr size_t kGraphNodeBytes = 2048;

// A counter that an event's record has to reach.
struct CUevent_st {
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t recorded = 0, reached = 0;
  const CUgraph_st* capture = nullptr;  // in which it was recorded last
  std::chrono::steady_clock::time_point when;
};

struct CUstream_st {
  explicit CUstream_st(int device_) : device(device_), worker([this] { work(); }) {}
  ~CUstream_st() {
    {
      std::lock_guard lock(mutex);
      ending = true;
    }
    changed.notify_all();
    worker.join();
  }
  void push(Work next) {
    {
      std::lock_guard lock(mutex);
      queue.push_back(std::move(next));
      ++pushed;
    }
    changed.notify_all();
  }
  void work() {
    const std::function<bool()> stop = [this] { return ending.load() || stickyError(device) != cudaSuccess; };
    for (;;) {
      Work next;
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return ending || !queue.empty(); });
        if (queue.empty() || ending) return;
        next = std::move(queue.front());
        queue.pop_front();
      }
      if (machine().delayMicroseconds > 0) std::this_thread::sleep_for(std::chrono::microseconds(machine().delayMicroseconds));
      // After a failure nothing is executed any more, as on a GPU.
      if (stickyError(device) == cudaSuccess) {
        if (faultNumber("hang") == ++machine().operations)
          while (!stop()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        const cudaError_t error = next(stop);
        if (error != cudaSuccess) {
          int none = cudaSuccess;
          machine().devices[static_cast<size_t>(device)]->error.compare_exchange_strong(none, error);
        }
      }
      next = nullptr;
      {
        std::lock_guard lock(mutex);
        ++done;
      }
      changed.notify_all();
    }
  }
  void wait() {
    std::unique_lock lock(mutex);
    const uint64_t target = pushed;
    changed.wait(lock, [&] { return done >= target; });
  }

  const int device;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Work> queue;
  uint64_t pushed = 0, done = 0;
  std::atomic<bool> ending{false};
  std::unique_ptr<CUgraph_st> capture;
  std::thread worker;
};

namespace {

thread_local CUstream_st* t_capturing = nullptr;  // the stream that this thread captures

// Of calls that wait, or that a capture cannot hold.
cudaError_t forbidInCapture(const char* call) {
  if (!t_capturing || !t_capturing->capture) return cudaSuccess;
  if (t_capturing->capture->forbidden.empty()) {
    t_capturing->capture->forbidden = call;
    machine().note(t_capturing->device, std::string(call) + " while a stream is captured");
  }
  return fail(cudaErrorStreamCaptureUnsupported);
}

}  // namespace

namespace headroom::emulation {

cudaError_t enqueue(cudaStream_t stream, Work work) {
  if (!stream) return fail(cudaErrorInvalidResourceHandle);
  if (stream->capture) {
    stream->capture->works.push_back(std::move(work));
    return cudaSuccess;
  }
  if (const cudaError_t error = stickyError(stream->device)) return fail(error);
  stream->push(std::move(work));
  return cudaSuccess;
}

cudaError_t enqueueKernel(const char* name, dim3 grid, dim3 block, size_t sharedBytes, cudaStream_t stream,
                          std::shared_ptr<const KernelCall> call) {
  const uint64_t threads = static_cast<uint64_t>(block.x) * block.y * block.z;
  if (threads == 0 || threads > 1024 || grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 || grid.z > 65535 ||
      block.z > 64 || sharedBytes > 227 * 1024) {
    machine().note(stream ? stream->device : t_device,
                   std::string("a launch beyond the limits of a grid, block or shared memory: ") + name);
    return fail(cudaErrorInvalidConfiguration);
  }
  auto launch = std::make_shared<Launch>(Launch{name, grid, block, sharedBytes, std::move(call), nullptr});
  return enqueue(stream, [launch, device = stream ? stream->device : 0](const std::function<bool()>& stop) {
    Launch now = *launch;
    if (checksAccesses()) now.allocations = machine().allocationTable();
    const std::string problem = runKernel(now, stop);
    if (problem.empty()) return cudaSuccess;
    machine().note(device, problem);
    return cudaErrorIllegalAddress;
  });
}

int faultNumber(const char* name) {
  const std::string& fault = machine().fault;
  const size_t colon = fault.find(':');
  if (fault.substr(0, colon) != name) return -1;
  return colon == std::string::npos ? 0 : std::atoi(fault.c_str() + colon + 1);
}

std::string firstReport() {
  std::lock_guard lock(machine().mutex);
  return machine().report;
}

}  // namespace headroom::emulation

namespace {

// Where the bytes of a copy come from: device or pinned memory is read when the copy runs, other host memory at once.
cudaError_t copy(void* to, const void* from, size_t size, cudaStream_t stream, bool corrupt = false) {
  if (size == 0) return cudaSuccess;
  const int device = stream ? stream->device : t_device;
  const auto source = machine().holding(from, size), target = machine().holding(to, size);
  const auto partly = [](const void* pointer) { return machine().holding(pointer, 1) != nullptr; };
  if ((!source && partly(from)) || (!target && partly(to))) {
    machine().note(device, "a copy of " + std::to_string(size) + " bytes runs over the end of an allocation");
    return fail(cudaErrorInvalidValue);
  }
  auto move = [=](void* destination, const void* origin) {
    std::memmove(destination, origin, size);
    if (corrupt) static_cast<unsigned char*>(destination)[size / 2] ^= 0x10;
  };
  if (stream && stream->capture && !source)
    if (const cudaError_t error = forbidInCapture("a copy from memory that is not pinned")) return error;
  if (stream && stream->capture && !target)
    if (const cudaError_t error = forbidInCapture("a copy to memory that is not pinned")) return error;
  if (!source) {
    auto snapshot = std::make_shared<std::vector<unsigned char>>(static_cast<const unsigned char*>(from),
                                                                 static_cast<const unsigned char*>(from) + size);
    return enqueue(stream, [=](const auto&) {
      move(to, snapshot->data());
      return cudaSuccess;
    });
  }
  return enqueue(stream, [=](const auto&) {
    move(to, from);
    return cudaSuccess;
  });
}

cudaError_t allocate(void** pointer, size_t size, int device) {
  const size_t page = 4096, bytes = (size + page - 1) / page * page;
  void* memory = mmap(nullptr, bytes + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return fail(cudaErrorMemoryAllocation);
  char* begin = static_cast<char*>(memory) + page;
  mprotect(memory, page, PROT_NONE);
  mprotect(begin + bytes, page, PROT_NONE);
  // Values that nobody wrote are not numbers.
  if (size <= (size_t{64} << 20)) std::memset(begin, 0xff, bytes);
  auto allocation = std::make_shared<Allocation>();
  allocation->begin = begin;
  allocation->size = size;
  allocation->device = device;
  std::lock_guard lock(machine().mutex);
  machine().allocations.emplace(begin, std::move(allocation));
  machine().rebuildTable();
  *pointer = begin;
  return cudaSuccess;
}

cudaError_t release(void* pointer) {
  if (!pointer) return cudaSuccess;
  std::lock_guard lock(machine().mutex);
  const auto found = machine().allocations.find(static_cast<char*>(pointer));
  if (found == machine().allocations.end()) return fail(cudaErrorInvalidValue);
  const size_t page = 4096, size = found->second->size, bytes = (size + page - 1) / page * page;
  if (found->second->device >= 0) machine().devices[static_cast<size_t>(found->second->device)]->used -= size;
  machine().allocations.erase(found);
  machine().rebuildTable();
  munmap(static_cast<char*>(pointer) - page, bytes + 2 * page);
  return cudaSuccess;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) const char* headroomEmulationReport() {
  static thread_local std::string report;
  report = firstReport();
  return report.c_str();
}

__attribute__((visibility("default"))) int64_t headroomEmulationBytesToHost() { return machine().bytesToHost; }

__attribute__((visibility("default"))) int64_t headroomEmulationDeviceBytes() {
  std::lock_guard lock(machine().mutex);
  int64_t bytes = 0;
  for (const auto& device : machine().devices) bytes += static_cast<int64_t>(device->used);
  return bytes;
}
__attribute__((visibility("default"))) int64_t headroomEmulationMallocs() { return machine().mallocs; }
__attribute__((visibility("default"))) int64_t headroomEmulationHostMallocs() { return machine().hostMallocs; }
__attribute__((visibility("default"))) int64_t headroomEmulationGraphLaunches() { return machine().graphLaunches; }

const char* cudaGetErrorName(cudaError_t error) { return cudaGetErrorString(error); }
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInsufficientDriver:
      return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorLaunchTimeout:
      return "the launch timed out and was terminated";
    case cudaErrorPeerAccessAlreadyEnabled:
      return "peer access is already enabled";
    case cudaErrorPeerAccessUnsupported:
      return "peer access is not supported between these two devices";
    case cudaErrorLaunchFailure:
      return "unspecified launch failure";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture";
    case cudaErrorStreamCaptureIsolation:
      return "dependency created on uncaptured work in another stream";
    default:
      return "unknown error";
  }
}
cudaError_t cudaGetLastError() { return std::exchange(t_lastError, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return t_lastError; }

cudaError_t cudaGetDeviceCount(int* count) {
  machine().readSettings();
  *count = std::max(machine().count, 0);
  if (machine().count < 0) return fail(cudaErrorInsufficientDriver);
  return machine().count == 0 ? fail(cudaErrorNoDevice) : cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = machine().count < 0 ? 11040 : 13000;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (!deviceAt(device)) return fail(cudaErrorInvalidDevice);
  t_device = device;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = t_device;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  const Device* found = deviceAt(device);
  if (!found) return fail(cudaErrorInvalidDevice);
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "Emulated GPU");
  properties->totalGlobalMem = found->memory;
  properties->major = machine().capability / 10;
  properties->minor = machine().capability % 10;
  properties->multiProcessorCount = 4;
  properties->sharedMemPerBlockOptin = machine().capability == 75 ? 64 << 10 : 227 << 10;
  properties->l2CacheSize = 4 << 20;
  properties->pciBusID = device + 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp properties;
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, device)) return error;
  switch (attribute) {
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(properties.sharedMemPerBlockOptin);
      break;
    case cudaDevAttrMultiProcessorCount:
      *value = properties.multiProcessorCount;
      break;
    case cudaDevAttrComputeCapabilityMajor:
      *value = properties.major;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = properties.minor;
      break;
    case cudaDevAttrL2CacheSize:
      *value = properties.l2CacheSize;
      break;
    default:
      *value = 0;
      return fail(cudaErrorInvalidValue);  // a driver that does not tell
  }
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  const Device* device = deviceAt(t_device);
  if (!device) return fail(cudaErrorNoDevice);
  std::lock_guard lock(machine().mutex);
  *total = device->memory;
  *free = device->memory - device->used;
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** pointer, size_t size) {
  if (const cudaError_t error = forbidInCapture("cudaMalloc")) return error;
  Device* device = deviceAt(t_device);
  if (!device) return fail(cudaErrorNoDevice);
  if (const cudaError_t error = stickyError(t_device)) return fail(error);
  const int number = ++machine().mallocs;
  {
    std::lock_guard lock(machine().mutex);
    if (faultNumber("malloc") == number || device->used + size > device->memory) return fail(cudaErrorMemoryAllocation);
    device->used += size;
  }
  return allocate(pointer, size, t_device);
}
cudaError_t cudaFree(void* pointer) {
  if (const cudaError_t error = forbidInCapture("cudaFree")) return error;
  // As on a device: memory is freed when the device is through with its work.
  std::vector<CUstream_st*> streams;
  {
    std::lock_guard lock(machine().mutex);
    for (CUstream_st* stream : machine().openStreams)
      if (stream->device == t_device && !stream->capture) streams.push_back(stream);
  }
  for (CUstream_st* stream : streams) stream->wait();
  return release(pointer);
}
cudaError_t cudaHostAlloc(void** pointer, size_t size, unsigned) {
  if (const cudaError_t error = forbidInCapture("cudaHostAlloc")) return error;
  if (faultNumber("host-malloc") == ++machine().hostMallocs) return fail(cudaErrorMemoryAllocation);
  return allocate(pointer, size, -1);
}
cudaError_t cudaFreeHost(void* pointer) {
  if (const cudaError_t error = forbidInCapture("cudaFreeHost")) return error;
  return release(pointer);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, cudaMemcpyKind kind, cudaStream_t stream) {
  if (kind == cudaMemcpyDeviceToHost) machine().bytesToHost += static_cast<int64_t>(size);
  return copy(to, from, size, stream);
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t toPitch, const void* from, size_t fromPitch, size_t width, size_t height,
                              cudaMemcpyKind, cudaStream_t stream) {
  for (size_t row = 0; row < height; ++row)
    if (const cudaError_t error =
            copy(static_cast<char*>(to) + row * toPitch, static_cast<const char*>(from) + row * fromPitch, width, stream))
      return error;
  return cudaSuccess;
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t size, cudaStream_t stream) {
  return copy(to, from, size, stream, faultNumber("peer-corrupt") >= 0);
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t size, cudaStream_t stream) {
  if (size == 0) return cudaSuccess;
  if (!machine().holding(to, size)) return fail(cudaErrorInvalidValue);
  return enqueue(stream, [=](const auto&) {
    std::memset(to, value, size);
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (!deviceAt(device) || !deviceAt(peer)) return fail(cudaErrorInvalidDevice);
  *can = device != peer && faultNumber("no-peer") < 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  if (!deviceAt(peer) || peer == t_device) return fail(cudaErrorInvalidDevice);
  return faultNumber("no-peer") < 0 ? cudaSuccess : fail(cudaErrorPeerAccessUnsupported);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  if (!deviceAt(t_device)) return fail(cudaErrorNoDevice);
  {
    std::lock_guard lock(machine().mutex);
    ++machine().streams;
  }
  *stream = new CUstream_st(t_device);
  std::lock_guard lock(machine().mutex);
  machine().openStreams.push_back(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (!stream) return fail(cudaErrorInvalidResourceHandle);
  {
    std::lock_guard lock(machine().mutex);
    std::erase(machine().openStreams, stream);
    --machine().streams;
  }
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (!stream) return fail(cudaErrorInvalidResourceHandle);
  if (const cudaError_t error = forbidInCapture("cudaStreamSynchronize")) return error;
  stream->wait();
  return fail(stickyError(stream->device));
}
cudaError_t cudaDeviceSynchronize() {
  if (const cudaError_t error = forbidInCapture("cudaDeviceSynchronize")) return error;
  return stickyError(t_device);
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (!stream) return fail(cudaErrorInvalidResourceHandle);
  if (const cudaError_t error = forbidInCapture("cudaStreamQuery")) return error;
  if (const cudaError_t error = stickyError(stream->device)) return fail(error);
  std::lock_guard lock(stream->mutex);
  return stream->done == stream->pushed ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t) {
  return cudaSuccess;  // work in streams may still look at it; events are small
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  uint64_t target = 0;
  {
    std::lock_guard lock(event->mutex);
    target = ++event->recorded;
    event->capture = stream ? stream->capture.get() : nullptr;
  }
  return enqueue(stream, [=](const auto&) {
    std::lock_guard lock(event->mutex);
    event->reached = target;
    event->when = std::chrono::steady_clock::now();
    event->changed.notify_all();
    return cudaSuccess;
  });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  uint64_t target = 0;
  {
    std::lock_guard lock(event->mutex);
    target = event->recorded;
    if (stream && stream->capture && event->capture != stream->capture.get()) {
      forbidInCapture("a wait for an event outside of the capture");
      return fail(cudaErrorStreamCaptureIsolation);
    }
  }
  return enqueue(stream, [=](const std::function<bool()>& stop) {
    std::unique_lock lock(event->mutex);
    while (event->reached < target && !stop()) event->changed.wait_for(lock, std::chrono::milliseconds(5));
    return cudaSuccess;
  });
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (const cudaError_t error = forbidInCapture("cudaEventSynchronize")) return error;
  std::unique_lock lock(event->mutex);
  const uint64_t target = event->recorded;
  while (event->reached < target) {
    if (const cudaError_t error = stickyError(t_device)) return fail(error);
    event->changed.wait_for(lock, std::chrono::milliseconds(5));
  }
  return fail(stickyError(t_device));
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (const cudaError_t error = forbidInCapture("cudaEventQuery")) return error;
  if (const cudaError_t error = stickyError(t_device)) return fail(error);
  std::lock_guard lock(event->mutex);
  return event->reached >= event->recorded ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  std::scoped_lock lock(begin->mutex, end->mutex);
  *milliseconds = std::chrono::duration<float, std::milli>(end->when - begin->when).count();
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (!stream || stream->capture || t_capturing) return fail(cudaErrorStreamCaptureUnsupported);
  stream->capture = std::make_unique<CUgraph_st>();
  t_capturing = stream;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  if (!stream || !stream->capture || t_capturing != stream) return fail(cudaErrorStreamCaptureUnsupported);
  const std::unique_ptr<CUgraph_st> captured = std::move(stream->capture);
  t_capturing = nullptr;
  if (!captured->forbidden.empty()) return fail(cudaErrorStreamCaptureInvalidated);
  *graph = new CUgraph_st(*captured);
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  if (const cudaError_t error = forbidInCapture("cudaGraphInstantiate")) return error;
  Device* device = deviceAt(t_device);
  if (!device || !graph) return fail(cudaErrorInvalidValue);
  const size_t bytes = graph->works.size() * kGraphNodeBytes;
  {
    std::lock_guard lock(machine().mutex);
    if (device->used + bytes > device->memory) return fail(cudaErrorMemoryAllocation);
    device->used += bytes;
  }
  *executable = new CUgraphExec_st{std::make_shared<std::vector<Work>>(graph->works), t_device, bytes};
  return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream) {
  return executable && stream ? forbidInCapture("cudaGraphUpload") : fail(cudaErrorInvalidResourceHandle);
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  if (!executable) return fail(cudaErrorInvalidResourceHandle);
  if (const cudaError_t error = forbidInCapture("cudaGraphLaunch")) return error;
  ++machine().graphLaunches;
  return enqueue(stream, [works = executable->works](const std::function<bool()>& stop) {
    for (const Work& work : *works)
      if (const cudaError_t error = work(stop)) return error;
    return cudaSuccess;
  });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  if (!executable) return fail(cudaErrorInvalidResourceHandle);
  if (Device* device = deviceAt(executable->device)) {
    std::lock_guard lock(machine().mutex);
    device->used -= executable->bytes;
  }
  delete executable;
  return cudaSuccess;
}

}  // extern "C"
