// SPDX-License-Identifier: Apache-2.0
// The execution model. A block's threads are fibers that run until they must wait for others; the scheduler below resumes them
// warp by warp.
//
// Order of accesses ("happens before") inside a block: __syncthreads orders all threads, __syncwarp the lanes of its mask (vector
// clocks of 32 lanes); a shuffle orders nothing. Between blocks only atomics and release/acquire pairs order. Two accesses to one
// byte of which at least one writes, not both atomic and not ordered, are a race. Shared memory that is read before this block
// wrote it is reported too.
#include "tests/cuda_emulation/execution.h"

#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>

#include <link.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace headroom::emulation {

namespace ctx = boost::context;

// One byte's last writer and two last readers. `launch` tells stale entries.
struct Cell {
  struct Access {
    uint32_t launch = 0, block = 0;
    uint16_t thread = 0;
    uint8_t atomic = 0;
    uint32_t epoch = 0, clock = 0;  // the block's barriers so far; the lane's own clock
  };
  Access write, reads[2];
};

namespace {

constexpr size_t kStackBytes = 128 * 1024;
constexpr int kMostThreads = 1024;

enum class State : uint8_t { Runnable, Waiting, Done };

struct PendingCopy {
  void* shared;
  const void* global;
  size_t size;
  bool valid;
  int group;
};

struct Fiber;

struct WarpState {
  struct Collective {
    uint32_t mask = 0, arrived = 0;
    Combine combine = nullptr;
    bool ordersMemory = false;
    std::array<void*, 32> arguments{};
  };
  uint32_t alive = 0;
  std::vector<Collective> pending;
  uint32_t clocks[32][32] = {};  // clocks[a][b]: what lane a knows of lane b's clock
};

struct Fiber {
  ThreadPlace place;
  int index = 0, lane = 0;
  WarpState* warp = nullptr;
  State state = State::Done;
  const char* waitsFor = "";
  ctx::fiber context;    // of this fiber while it does not run
  ctx::fiber scheduler;  // to switch back to
  const char *stackLow = nullptr, *stackHigh = nullptr;
  std::vector<PendingCopy> copies;
  int copyGroup = 0;
  bool looping = false;
  // Inside of the emulation, where memory callbacks are not the kernel's: inline functions of the library may come from checked
  // sources.
  int quiet = 0;
};

std::atomic<uint32_t> g_launches{1};
std::atomic<uint64_t> g_ticks{1};  // of releases and acquires

// What the blocks of a launch have released and acquired.
struct BlockOrder {
  uint64_t lastRelease = 0, lastAcquire = 0;
};

class Runner;
thread_local Runner* t_runner = nullptr;
thread_local Fiber* t_fiber = nullptr;

class Quiet {
 public:
  Quiet() : m_fiber(t_fiber) {
    if (m_fiber) ++m_fiber->quiet;
  }
  ~Quiet() {
    if (m_fiber) --m_fiber->quiet;
  }

 private:
  Fiber* const m_fiber;
};

struct Segment {
  const char *begin, *end;
};
// Loaded files' memory: constants and tables that device code may read.
std::vector<Segment> loadedSegments() {
  std::vector<Segment> segments;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& header = info->dlpi_phdr[i];
          if (header.p_type != PT_LOAD) continue;
          const char* begin = reinterpret_cast<const char*>(info->dlpi_addr + header.p_vaddr);
          static_cast<std::vector<Segment>*>(data)->push_back({begin, begin + header.p_memsz});
        }
        return 0;
      },
      &segments);
  return segments;
}
// This thread's copy of the module's thread-local memory: where __shared__ variables are.
Segment threadLocalSegment() {
  struct Search {
    const char* inside;
    Segment found;
  } search{reinterpret_cast<const char*>(&t_runner), {nullptr, nullptr}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& wanted = *static_cast<Search*>(data);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          if (info->dlpi_phdr[i].p_type != PT_TLS || !info->dlpi_tls_data) continue;
          const char* begin = static_cast<const char*>(info->dlpi_tls_data);
          const char* end = begin + info->dlpi_phdr[i].p_memsz;
          if (wanted.inside >= begin && wanted.inside < end) wanted.found = {begin, end};
        }
        return 0;
      },
      &search);
  return search.found;
}

std::atomic<bool> g_checked{false};

class Runner {
 public:
  static Runner& ofThisThread() {
    static thread_local std::unique_ptr<Runner> runner;
    if (!runner) {
      runner = std::make_unique<Runner>();
      t_runner = runner.get();
    }
    return *runner;
  }

  Runner() : m_threadLocal(threadLocalSegment()), m_segments(loadedSegments()) {}
  ~Runner() {
    t_runner = nullptr;
    for (Cell* shadow : {m_dynamicShadow, m_staticShadow})
      if (shadow) munmap(shadow, shadow == m_dynamicShadow ? kDynamicMost * sizeof(Cell) : staticBytes() * sizeof(Cell));
    if (m_dynamic) munmap(m_dynamic, kDynamicMost + kDynamicGuard);
  }

  std::string run(const Launch& launch, const std::function<bool()>& stop) {
    m_launch = &launch;
    m_stop = &stop;
    m_error.clear();
    m_launchId = g_launches.fetch_add(1);
    m_threads = static_cast<int>(launch.block.x * launch.block.y * launch.block.z);
    if (m_threads < 1 || m_threads > kMostThreads) return "a block of " + std::to_string(m_threads) + " threads; at most 1024";
    if (launch.sharedBytes > kDynamicMost) return "more dynamic shared memory than any device has";
    const uint64_t blocks = static_cast<uint64_t>(launch.grid.x) * launch.grid.y * launch.grid.z;
    m_orders.assign(checksAccesses() ? blocks : 0, {});
    for (uint64_t i = 0; i < blocks && m_error.empty(); ++i) {
      // The order of blocks is nobody's business: every second launch runs them backwards. Except where blocks wait for those of
      // their number on other devices, on which real devices have all of them at once: there every device begins with the first.
      const bool meetsOthers = launch.name.starts_with("oneShotKernel");
      const uint64_t block = m_launchId % 2 || meetsOthers ? i : blocks - 1 - i;
      runBlock(block);
    }
    m_launch = nullptr;
    return m_error;
  }

  // ---- for the running fiber
  void wait(const char* what) {
    Fiber& fiber = *t_fiber;
    fiber.state = State::Waiting;
    fiber.waitsFor = what;
    switchBack(fiber);
  }

  int barrier(int predicate, int kind) {
    if (m_barrierArrived == 0) {
      m_barrierKind = kind;
      m_barrierResult = kind == 2 ? 1 : 0;
    } else if (m_barrierKind != kind) {
      fail("threads of one block wait at different barriers");
    }
    if (kind == 1) m_barrierResult |= predicate != 0;
    if (kind == 2) m_barrierResult &= predicate != 0;
    if (kind == 3) m_barrierResult += predicate != 0;
    ++m_barrierArrived;
    if (m_barrierArrived < m_alive) {
      wait("__syncthreads");
    } else {
      releaseBarrier();
    }
    return m_barrierOutcome;
  }

  void collective(uint32_t mask, void* arguments, Combine combine, bool ordersMemory) {
    Fiber& fiber = *t_fiber;
    WarpState& warp = *fiber.warp;
    const uint32_t bit = 1u << fiber.lane;
    if (!(mask & bit)) fail("a lane calls a warp operation whose mask does not name it");
    WarpState::Collective* found = nullptr;
    for (auto& pending : warp.pending)
      if (pending.mask == mask && !(pending.arrived & bit)) found = &pending;
    if (!found) {
      for (const auto& pending : warp.pending)
        if (pending.mask & mask) fail("lanes of one warp wait at operations with overlapping masks");
      warp.pending.push_back({mask, 0, combine, ordersMemory, {}});
      found = &warp.pending.back();
    }
    if (found->combine != combine) fail("lanes of one warp wait at different operations");
    found->arrived |= bit;
    found->arguments[static_cast<size_t>(fiber.lane)] = arguments;
    if ((found->arrived & warp.alive) == (mask & warp.alive)) {
      finishCollective(warp, *found);
    } else {
      wait("a warp operation");
    }
  }

  void pauseInLoop() {
    if (*m_stop && (*m_stop)()) fail("a wait in a loop was given up");
    Fiber& fiber = *t_fiber;
    fiber.looping = true;
    switchBack(fiber);  // still runnable
    std::this_thread::yield();
  }

  // Ends the launch; the fiber never runs again.
  [[noreturn]] void fail(const std::string& what) {
    Fiber& fiber = *t_fiber;
    if (m_error.empty()) {
      char where[256];
      std::snprintf(where, sizeof where, " (block %u,%u,%u, thread %u,%u,%u of ", fiber.place.block.x, fiber.place.block.y,
                    fiber.place.block.z, fiber.place.thread.x, fiber.place.thread.y, fiber.place.thread.z);
      m_error = what + where + m_launch->name.substr(0, 120) + ")";
    }
    fiber.state = State::Waiting;
    for (;;) switchBack(fiber);
  }

  void* dynamicShared() const { return m_dynamicBegin; }

  void releaseOrder(bool acquires, bool releases) {
    if (m_orders.empty()) return;
    BlockOrder& order = m_orders[m_block];
    const uint64_t tick = g_ticks.fetch_add(1);
    if (acquires) order.lastAcquire = tick;
    if (releases) order.lastRelease = tick;
  }

  void access(const void* address, size_t size, AccessKind kind) {
    const char* begin = static_cast<const char*>(address);
    Fiber& fiber = *t_fiber;
    if (begin >= fiber.stackLow && begin < fiber.stackHigh) return;
    if (begin >= reinterpret_cast<const char*>(&fiber.place) && begin < reinterpret_cast<const char*>(&fiber.place + 1))
      return;  // threadIdx …
    const bool writes = kind == AccessKind::Write || kind == AccessKind::Atomic || kind == AccessKind::Release;
    const bool atomic = kind == AccessKind::Atomic || kind == AccessKind::Acquire || kind == AccessKind::Release;
    if (atomic) releaseOrder(kind != AccessKind::Release, kind != AccessKind::Acquire);
    const auto text = [&] {
      char buffer[96];
      std::snprintf(buffer, sizeof buffer, "%s of %zu bytes at %p", writes ? "write" : "read", size, address);
      return std::string(buffer);
    };
    if (begin >= m_dynamic && begin < m_dynamic + kDynamicMost + kDynamicGuard) {
      if (begin < m_dynamicBegin || begin + size > m_dynamicBegin + m_launch->sharedBytes)
        fail(text() + ", " + std::to_string(begin - m_dynamicBegin) + " bytes into dynamic shared memory of " +
             std::to_string(m_launch->sharedBytes) + " bytes");
      return conflict(shadowOf(m_dynamicShadow, kDynamicMost) + (begin - m_dynamicBegin), size, writes, atomic, true, text);
    }
    if (begin >= m_threadLocal.begin && begin < m_threadLocal.end)
      return conflict(shadowOf(m_staticShadow, staticBytes()) + (begin - m_threadLocal.begin), size, writes, atomic, true, text);
    const Allocation* allocation = m_last;
    if (!allocation || begin < allocation->begin || begin >= allocation->begin + allocation->size) allocation = find(begin);
    if (allocation) {
      m_last = allocation;
      if (begin + size > allocation->begin + allocation->size)
        fail(text() + " runs over the end of an allocation of " + std::to_string(allocation->size) + " bytes");
      if (reinterpret_cast<uintptr_t>(begin) % std::min<size_t>(size, 16) != 0 && (size & (size - 1)) == 0)
        fail(text() + " is not aligned");
      return conflict(shadowOf(*allocation) + (begin - allocation->begin), size, writes, atomic, false, text);
    }
    const char* parameters = reinterpret_cast<const char*>(m_launch->call.get());
    if (!writes && begin >= parameters && begin + size <= parameters + m_launch->call->bytes) return;
    if (!writes)
      for (const Segment& segment : m_segments)
        if (begin >= segment.begin && begin + size <= segment.end) return;
    fail(text() + " is outside of every allocation of the device");
  }

 private:
  static constexpr size_t kDynamicMost = 256 * 1024, kDynamicGuard = 64 * 1024;
  size_t staticBytes() const { return static_cast<size_t>(m_threadLocal.end - m_threadLocal.begin); }

  static Cell* mapCells(size_t bytes) {
    void* memory =
        mmap(nullptr, bytes * sizeof(Cell), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<Cell*>(memory);
  }
  Cell* shadowOf(Cell*& shadow, size_t bytes) {
    if (!shadow) shadow = mapCells(bytes);
    return shadow;
  }
  static Cell* shadowOf(const Allocation& allocation) {
    if (Cell* shadow = __atomic_load_n(&allocation.shadow, __ATOMIC_ACQUIRE)) return shadow;
    static std::mutex mutex;
    std::lock_guard lock(mutex);
    if (!allocation.shadow) {
      allocation.shadowBytes = allocation.size * sizeof(Cell);
      __atomic_store_n(&allocation.shadow, mapCells(allocation.size), __ATOMIC_RELEASE);
    }
    return allocation.shadow;
  }

  const Allocation* find(const char* address) const {
    const AllocationTable& table = *m_launch->allocations;
    auto after = std::upper_bound(table.begin(), table.end(), address,
                                  [](const char* a, const auto& allocation) { return a < allocation->begin; });
    if (after == table.begin()) return nullptr;
    const Allocation* allocation = std::prev(after)->get();
    return address < allocation->begin + allocation->size ? allocation : nullptr;
  }

  bool ordered(const Cell::Access& before) const {
    const Fiber& fiber = *t_fiber;
    if (before.block != static_cast<uint32_t>(m_block)) {
      const BlockOrder &theirs = m_orders[before.block], &own = m_orders[m_block];
      return theirs.lastRelease > 0 && own.lastAcquire > theirs.lastRelease;
    }
    if (before.epoch != m_epoch || before.thread == fiber.index) return true;
    if (before.thread / 32 != fiber.index / 32) return false;
    return before.clock < fiber.warp->clocks[fiber.lane][before.thread % 32];
  }

  template <class Text>
  void conflict(Cell* cells, size_t size, bool writes, bool atomic, bool shared, const Text& text) {
    Fiber& fiber = *t_fiber;
    const Cell::Access now{m_launchId,
                           static_cast<uint32_t>(m_block),
                           static_cast<uint16_t>(fiber.index),
                           static_cast<uint8_t>(atomic),
                           m_epoch,
                           fiber.warp->clocks[fiber.lane][fiber.lane]};
    for (size_t i = 0; i < size; ++i) {
      Cell& cell = cells[i];
      const bool written = cell.write.launch == m_launchId && (!shared || cell.write.block == now.block);
      if (written && !(atomic && cell.write.atomic) && !ordered(cell.write)) race(text(), cell.write, shared, "written");
      if (shared && !writes && !written) fail(text() + " reads shared memory that this block has not written");
      if (writes) {
        for (const Cell::Access& read : cell.reads) {
          if (read.launch != m_launchId || (shared && read.block != now.block)) continue;
          if (!(atomic && read.atomic) && !ordered(read)) race(text(), read, shared, "read");
        }
        cell.write = now;
      } else {
        Cell::Access& first = cell.reads[0];
        const bool same = first.launch == m_launchId && first.block == now.block && first.thread == now.thread;
        if (!same) cell.reads[1] = first;
        first = now;
      }
    }
  }
  void race(const std::string& what, const Cell::Access& other, bool shared, const char* did) {
    fail(what + " races: " + (shared ? "shared" : "global") + " memory " + did + " by block " + std::to_string(other.block) +
         ", thread " + std::to_string(other.thread) + " with no barrier between");
  }

  void prepare(int threads) {
    if (!m_dynamic) {
      void* memory =
          mmap(nullptr, kDynamicMost + kDynamicGuard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      m_dynamic = static_cast<char*>(memory);
      m_dynamicBegin = m_dynamic;
    }
    while (static_cast<int>(m_fibers.size()) < threads) m_fibers.push_back(makeFiber());
    while (static_cast<int>(m_warps.size()) < (threads + 31) / 32) m_warps.push_back(std::make_unique<WarpState>());
  }

  static std::unique_ptr<Fiber> makeFiber() {
    auto fiber = std::make_unique<Fiber>();
    Fiber* self = fiber.get();
    ctx::protected_fixedsize_stack allocator(kStackBytes);
    const ctx::stack_context stack = allocator.allocate();
    fiber->stackHigh = static_cast<const char*>(stack.sp);
    fiber->stackLow = fiber->stackHigh - stack.size;
    fiber->context =
        ctx::fiber(std::allocator_arg, ctx::preallocated(stack.sp, stack.size, stack), allocator, [self](ctx::fiber&& scheduler) {
          self->scheduler = std::move(scheduler);
          for (;;) {
            self->quiet = 0;
            t_runner->m_launch->call->runThread();
            self->quiet = 1;
            t_runner->threadEnds(*self);
          }
          return ctx::fiber();
        });
    return fiber;
  }

  void switchBack(Fiber& fiber) { fiber.scheduler = std::move(fiber.scheduler).resume(); }

  void threadEnds(Fiber& fiber) {
    for (int group = 0; group <= fiber.copyGroup; ++group) perform(fiber, group);
    fiber.state = State::Done;
    --m_alive;
    WarpState& warp = *fiber.warp;
    warp.alive &= ~(1u << fiber.lane);
    // Whoever waited for this thread alone goes on.
    if (m_alive > 0 && m_barrierArrived == m_alive) releaseBarrier();
    for (size_t i = 0; i < warp.pending.size();) {
      auto& pending = warp.pending[i];
      if ((pending.arrived & warp.alive) == (pending.mask & warp.alive)) {
        finishCollective(warp, pending);
        i = 0;
      } else {
        ++i;
      }
    }
    switchBack(fiber);
  }

  void releaseBarrier() {
    m_barrierOutcome = m_barrierResult;
    m_barrierArrived = 0;
    ++m_epoch;
    const Fiber* self = t_fiber;
    for (int i = 0; i < m_threads; ++i) {
      Fiber& fiber = *m_fibers[static_cast<size_t>(i)];
      if (fiber.state == State::Waiting && &fiber != self) fiber.state = State::Runnable;
    }
  }

  void finishCollective(WarpState& warp, WarpState::Collective& collective) {
    const WarpState::Collective done = collective;
    std::erase_if(warp.pending, [&](const auto& pending) { return &pending == &collective; });
    if (done.combine) done.combine(done.arguments.data(), done.arrived);
    if (done.ordersMemory) join(warp, done.arrived);
    const int first = (t_fiber->index / 32) * 32;
    for (int lane = 0; lane < 32; ++lane) {
      if (!(done.arrived >> lane & 1)) continue;
      Fiber& fiber = *m_fibers[static_cast<size_t>(first + lane)];
      if (fiber.state == State::Waiting) fiber.state = State::Runnable;
    }
  }

  static void join(WarpState& warp, uint32_t lanes) {
    uint32_t joined[32] = {};
    for (int a = 0; a < 32; ++a)
      if (lanes >> a & 1)
        for (int b = 0; b < 32; ++b) joined[b] = std::max(joined[b], warp.clocks[a][b]);
    for (int a = 0; a < 32; ++a) {
      if (!(lanes >> a & 1)) continue;
      for (int b = 0; b < 32; ++b) warp.clocks[a][b] = joined[b] + (lanes >> b & 1 ? 1 : 0);
    }
  }

  void runBlock(uint64_t index) {
    prepare(m_threads);
    m_block = index;
    m_epoch = 0;
    m_alive = m_threads;
    m_barrierArrived = 0;
    m_last = nullptr;
    // The end of dynamic shared memory coincides with the guard's begin only by its size: accesses are checked against it.
    std::memset(m_dynamicBegin, 0xa5, m_launch->sharedBytes);
    const dim3 &grid = m_launch->grid, &block = m_launch->block;
    const uint3 place{static_cast<unsigned>(index % grid.x), static_cast<unsigned>(index / grid.x % grid.y),
                      static_cast<unsigned>(index / grid.x / grid.y)};
    for (int i = 0; i < m_threads; ++i) {
      Fiber& fiber = *m_fibers[static_cast<size_t>(i)];
      const unsigned u = static_cast<unsigned>(i);
      fiber.place = {{u % block.x, u / block.x % block.y, u / block.x / block.y}, place, block, grid};
      fiber.index = i;
      fiber.lane = i % 32;
      fiber.warp = m_warps[static_cast<size_t>(i / 32)].get();
      fiber.state = State::Runnable;
      fiber.looping = false;
      fiber.copies.clear();
      fiber.copyGroup = 0;
    }
    for (int w = 0; w * 32 < m_threads; ++w) {
      WarpState& warp = *m_warps[static_cast<size_t>(w)];
      const int lanes = std::min(32, m_threads - w * 32);
      warp.alive = lanes == 32 ? 0xffffffffu : (1u << lanes) - 1;
      warp.pending.clear();
      // A lane's own clock starts at 1, and of the others it knows nothing (0): an access at clock 1 is not before anything.
      std::memset(warp.clocks, 0, sizeof warp.clocks);
      for (int lane = 0; lane < 32; ++lane) warp.clocks[lane][lane] = 1;
    }
    schedule();
    if (!m_error.empty()) abandonFibers();
  }

  void schedule() {
    const int warps = (m_threads + 31) / 32;
    const bool backwards = m_block % 2 == 1;
    while (m_alive > 0 && m_error.empty()) {
      bool progress = false, looping = false;
      for (int w = 0; w < warps; ++w) {
        const int warp = backwards ? warps - 1 - w : w;
        for (bool again = true; again && m_error.empty();) {
          again = false;
          for (int lane = 0; lane < 32 && m_error.empty(); ++lane) {
            const int index = warp * 32 + (backwards ? 31 - lane : lane);
            if (index >= m_threads) continue;
            Fiber& fiber = *m_fibers[static_cast<size_t>(index)];
            if (fiber.state != State::Runnable) continue;
            t_fiber = &fiber;
            fiber.context = std::move(fiber.context).resume();
            t_fiber = nullptr;
            progress = true;
            if (std::exchange(fiber.looping, false))
              looping = true;
            else
              again = true;
          }
          if (looping) break;
        }
      }
      if (!progress && m_alive > 0 && m_error.empty()) deadlock();
    }
  }

  void deadlock() {
    std::string what = "deadlock:";
    const char* last = "";
    for (int i = 0; i < m_threads; ++i) {
      const Fiber& fiber = *m_fibers[static_cast<size_t>(i)];
      if (fiber.state != State::Waiting || std::string_view(last) == fiber.waitsFor) continue;
      last = fiber.waitsFor;
      what += " thread " + std::to_string(i) + " waits for " + last + ";";
    }
    m_error = what + " others never arrive (block " + std::to_string(m_block) + " of " + m_launch->name.substr(0, 120) + ")";
  }

  // Fibers in the middle of a thread can neither be finished nor unwound: their stacks stay behind.
  void abandonFibers() {
    for (auto& fiber : m_fibers)
      if (fiber->state != State::Done) {
        static std::mutex mutex;
        static std::vector<std::unique_ptr<Fiber>>& abandoned = *new std::vector<std::unique_ptr<Fiber>>;
        std::lock_guard lock(mutex);
        abandoned.push_back(std::exchange(fiber, makeFiber()));
      }
  }

 public:
  void startCopy(void* shared, const void* global, size_t size, bool valid) {
    Fiber& fiber = *t_fiber;
    if (checksAccesses()) {
      if (valid) access(global, size, AccessKind::Read);
      access(shared, size, AccessKind::Write);
    }
    if (reinterpret_cast<uintptr_t>(shared) % size || (valid && reinterpret_cast<uintptr_t>(global) % size))
      fail("an asynchronous copy is not aligned");
    fiber.copies.push_back({shared, global, size, valid, fiber.copyGroup});
  }
  void perform(Fiber& fiber, int group) {
    for (PendingCopy& copy : fiber.copies) {
      if (copy.group != group) continue;
      if (copy.valid)
        std::memcpy(copy.shared, copy.global, copy.size);
      else
        std::memset(copy.shared, 0, copy.size);
      if (checksAccesses() && fiber.state != State::Done) access(copy.shared, copy.size, AccessKind::Write);
      copy.group = -1;
    }
    std::erase_if(fiber.copies, [](const PendingCopy& copy) { return copy.group < 0; });
  }
  // Groups 0 … copyGroup - 1 are committed.
  void waitCopies(int pending) {
    Fiber& fiber = *t_fiber;
    for (int group = 0; group < fiber.copyGroup - pending; ++group) perform(fiber, group);
  }

  const Launch* m_launch = nullptr;

 private:
  const Segment m_threadLocal;
  const std::vector<Segment> m_segments;
  const std::function<bool()>* m_stop = nullptr;
  std::string m_error;
  uint32_t m_launchId = 0;
  int m_threads = 0, m_alive = 0;
  uint64_t m_block = 0;
  uint32_t m_epoch = 0;
  int m_barrierArrived = 0, m_barrierKind = 0, m_barrierResult = 0, m_barrierOutcome = 0;
  std::vector<std::unique_ptr<Fiber>> m_fibers;
  std::vector<std::unique_ptr<WarpState>> m_warps;
  std::vector<BlockOrder> m_orders;
  char *m_dynamic = nullptr, *m_dynamicBegin = nullptr;
  Cell *m_dynamicShadow = nullptr, *m_staticShadow = nullptr;
  const Allocation* m_last = nullptr;
};

}  // namespace

Allocation::~Allocation() {
  if (shadow) munmap(shadow, shadowBytes);
}

std::string runKernel(const Launch& launch, const std::function<bool()>& stop) {
  return Runner::ofThisThread().run(launch, stop);
}
bool checksAccesses() { return g_checked.load(std::memory_order_relaxed); }

const ThreadPlace& place() {
  static const ThreadPlace host{};
  return t_fiber ? t_fiber->place : host;
}
int laneIndex() { return t_fiber->lane; }
int blockBarrier(int predicate, int kind) {
  const Quiet quiet;
  return t_runner->barrier(predicate, kind);
}
void warpCollective(uint32_t mask, void* arguments, Combine combine, bool ordersMemory) {
  const Quiet quiet;
  t_runner->collective(mask, arguments, combine, ordersMemory);
}
void noteAccess(const void* address, size_t size, AccessKind kind) {
  const Quiet quiet;
  if (checksAccesses() && t_fiber) t_runner->access(address, size, kind);
}
void* dynamicShared() { return t_runner->dynamicShared(); }
void fence() {}
void trap() {
  const Quiet quiet;
  t_runner->fail("a trap");
}
void pauseInLoop() {
  const Quiet quiet;
  t_runner->pauseInLoop();
}
void startCopy(void* shared, const void* global, size_t size, bool valid) {
  const Quiet quiet;
  t_runner->startCopy(shared, global, size, valid);
}
void commitCopies() { ++t_fiber->copyGroup; }
void waitCopies(int pending) {
  const Quiet quiet;
  t_runner->waitCopies(pending);
}

void combineShuffles(void* const arguments[32], uint32_t lanes) {
  // First all values are taken: a lane's result may lie where its value was.
  alignas(16) unsigned char values[32][16];
  for (int lane = 0; lane < 32; ++lane) {
    if (!(lanes >> lane & 1)) continue;
    const auto& shuffle = *static_cast<const Shuffle*>(arguments[lane]);
    std::memcpy(values[lane], shuffle.value, shuffle.size);
  }
  for (int lane = 0; lane < 32; ++lane) {
    if (!(lanes >> lane & 1)) continue;
    const auto& shuffle = *static_cast<const Shuffle*>(arguments[lane]);
    if (!(lanes >> shuffle.source & 1)) t_runner->fail("a shuffle reads from a lane that takes no part");
    std::memcpy(shuffle.result, values[shuffle.source], shuffle.size);
  }
}

namespace {
struct Ballot {
  bool predicate;
  uint32_t result;
};
void combineBallots(void* const arguments[32], uint32_t lanes) {
  uint32_t votes = 0;
  for (int lane = 0; lane < 32; ++lane)
    if ((lanes >> lane & 1) && static_cast<const Ballot*>(arguments[lane])->predicate) votes |= 1u << lane;
  for (int lane = 0; lane < 32; ++lane)
    if (lanes >> lane & 1) static_cast<Ballot*>(arguments[lane])->result = votes;
}
}  // namespace

uint32_t ballot(uint32_t mask, bool predicate) {
  Ballot arguments{predicate, 0};
  warpCollective(mask, &arguments, combineBallots, false);
  return arguments.result;
}

}  // namespace headroom::emulation

void __syncwarp(unsigned mask) { headroom::emulation::warpCollective(mask, nullptr, nullptr, true); }

// ---- floating types and tiles
namespace headroom::engine::cuda {

float halfToFloat(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16, exponent = (bits >> 10) & 0x1fu, mantissa = bits & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | mantissa << 13);
  if (exponent == 0) return std::copysign(std::ldexp(static_cast<float>(mantissa), -24), std::bit_cast<float>(sign));
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

namespace {
// The nearest multiple of 2^quantum, ties to even: exact, because scaling by powers of two is.
float roundToQuantum(float value, int quantum) { return std::ldexp(std::nearbyint(std::ldexp(value, -quantum)), quantum); }
}  // namespace

uint16_t floatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  if (std::isnan(value)) return 0x7fff;
  if (std::isinf(value)) return static_cast<uint16_t>(sign | 0x7c00u);
  const float magnitude = std::fabs(value);
  if (magnitude == 0.0f) return sign;
  const int exponent = std::max(std::ilogb(magnitude), -14);
  const float rounded = roundToQuantum(magnitude, exponent - 10);
  if (rounded >= 65520.0f) return static_cast<uint16_t>(sign | 0x7c00u);
  const int units = static_cast<int>(std::ldexp(rounded, 10 - exponent));  // 1024 … 2048, less for subnormal numbers
  return static_cast<uint16_t>(sign | (units + ((exponent + 14) << 10)));
}

float fp8ToFloat(uint8_t bits, int mantissaBits) {
  const int exponentBits = 7 - mantissaBits, bias = (1 << (exponentBits - 1)) - 1;
  const int exponent = (bits & 0x7f) >> mantissaBits, mantissa = bits & ((1 << mantissaBits) - 1);
  const float sign = bits & 0x80 ? -1.0f : 1.0f;
  if (mantissaBits == 3 && (bits & 0x7f) == 0x7f) return NAN;
  if (mantissaBits == 2 && exponent == 31) return mantissa ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), 1 - bias - mantissaBits);
  return sign * std::ldexp(static_cast<float>(mantissa + (1 << mantissaBits)), exponent - bias - mantissaBits);
}

uint8_t floatToFp8(float value, int mantissaBits) {
  const int exponentBits = 7 - mantissaBits, bias = (1 << (exponentBits - 1)) - 1;
  const float largest = mantissaBits == 3 ? 448.0f : 57344.0f;
  const uint8_t sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return static_cast<uint8_t>(sign | 0x7f);
  const float magnitude = std::fabs(value);
  if (magnitude == 0.0f) return sign;
  const int exponent = std::isinf(magnitude) ? 127 : std::max(std::ilogb(magnitude), 1 - bias);
  const float rounded = std::isinf(magnitude) ? largest : std::min(roundToQuantum(magnitude, exponent - mantissaBits), largest);
  const int used = std::max(std::ilogb(rounded == 0.0f ? 1e-30f : rounded), 1 - bias);
  const int units = static_cast<int>(std::ldexp(rounded, mantissaBits - used));
  return static_cast<uint8_t>(sign | (units + ((used + bias - 1) << mantissaBits)));
}

namespace {

using headroom::emulation::noteAccess;
using headroom::emulation::warpCollective;

struct Mma {
  float* c;
  const uint32_t *a, *b;
};
struct MmaInt8 {
  int* c;
  const uint32_t *a, *b;
};

// The matrices of a warp's fragments: A (16, K) row-major, B as (8 columns, K).
template <class Element, int K, class Arguments, class Read>
void gather(void* const arguments[32], Element (&a)[16][K], Element (&b)[8][K], Read read) {
  constexpr int kEach = K / 8;  // elements a register
  for (int lane = 0; lane < 32; ++lane) {
    const auto& fragment = *static_cast<const Arguments*>(arguments[lane]);
    const int g = lane / 4, t = lane % 4;
    for (int i = 0; i < kEach; ++i) {
      for (int part = 0; part < 4; ++part)
        a[g + (part & 1) * 8][kEach * t + i + (part >> 1) * (K / 2)] = read(fragment.a[part], i);
      for (int part = 0; part < 2; ++part) b[g][kEach * t + i + part * (K / 2)] = read(fragment.b[part], i);
    }
  }
}

template <class T>
void combineMma(void* const arguments[32], uint32_t lanes) {
  if (lanes != 0xffffffffu) headroom::emulation::trap();
  float a[16][16], b[8][16];
  gather<float, 16, Mma>(arguments, a, b,
                         [](uint32_t pair, int i) { return toFloat(T{static_cast<uint16_t>(pair >> (16 * i))}); });
  for (int lane = 0; lane < 32; ++lane) {
    float* c = static_cast<const Mma*>(arguments[lane])->c;
    for (int i = 0; i < 4; ++i) {
      const float *row = a[lane / 4 + (i / 2) * 8], *column = b[2 * (lane % 4) + i % 2];
      float sum = 0;
      for (int k = 0; k < 16; ++k) sum += row[k] * column[k];
      c[i] += sum;
    }
  }
}
void combineMmaInt8(void* const arguments[32], uint32_t lanes) {
  if (lanes != 0xffffffffu) headroom::emulation::trap();
  int a[16][32], b[8][32];
  gather<int, 32, MmaInt8>(arguments, a, b,
                           [](uint32_t four, int i) { return static_cast<int>(static_cast<int8_t>(four >> (8 * i))); });
  for (int lane = 0; lane < 32; ++lane) {
    int* c = static_cast<const MmaInt8*>(arguments[lane])->c;
    for (int i = 0; i < 4; ++i)
      for (int k = 0; k < 32; ++k) c[i] += a[lane / 4 + (i / 2) * 8][k] * b[2 * (lane % 4) + i % 2][k];
  }
}

struct Tiles {
  uint32_t* r;
  const void* row;
  bool transposed;
};
void combineTiles(void* const arguments[32], uint32_t lanes) {
  if (lanes != 0xffffffffu) headroom::emulation::trap();
  for (int lane = 0; lane < 32; ++lane) {
    const auto& own = *static_cast<const Tiles*>(arguments[lane]);
    for (int tile = 0; tile < 4; ++tile) {
      uint16_t pair[2];
      for (int i = 0; i < 2; ++i) {
        const int major = lane / 4, minor = 2 * (lane % 4) + i;
        const int row = own.transposed ? minor : major, column = own.transposed ? major : minor;
        pair[i] = static_cast<const uint16_t*>(static_cast<const Tiles*>(arguments[tile * 8 + row])->row)[column];
      }
      own.r[tile] = static_cast<uint32_t>(pair[0]) | static_cast<uint32_t>(pair[1]) << 16;
    }
  }
}
void readTiles(uint32_t (&r)[4], const void* row, bool transposed) {
  noteAccess(row, 16, headroom::emulation::AccessKind::Read);
  if (reinterpret_cast<uintptr_t>(row) % 16) headroom::emulation::trap();
  Tiles arguments{r, row, transposed};
  warpCollective(0xffffffffu, &arguments, combineTiles, false);
}

}  // namespace

void mmaTileHalf(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  Mma arguments{c, a, b};
  warpCollective(0xffffffffu, &arguments, combineMma<Half>, false);
}
void mmaTileBFloat16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  Mma arguments{c, a, b};
  warpCollective(0xffffffffu, &arguments, combineMma<BFloat16>, false);
}
void mmaTileInt8(int (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  MmaInt8 arguments{c, a, b};
  warpCollective(0xffffffffu, &arguments, combineMmaInt8, false);
}
void loadTiles4(uint32_t (&r)[4], const void* row) { readTiles(r, row, false); }
void loadTiles4Transposed(uint32_t (&r)[4], const void* row) { readTiles(r, row, true); }

uint32_t loadAcquireSystem(const uint32_t* flag) {
  noteAccess(flag, sizeof *flag, headroom::emulation::AccessKind::Acquire);
  return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}
void storeReleaseSystem(uint32_t* flag, uint32_t value) {
  noteAccess(flag, sizeof *flag, headroom::emulation::AccessKind::Release);
  __atomic_store_n(flag, value, __ATOMIC_RELEASE);
}

}  // namespace headroom::engine::cuda

// ---- memory callbacks: what the compiler inserts with -fsanitize=thread; libtsan is not linked
namespace {
inline void callback(const void* address, size_t size, headroom::emulation::AccessKind kind) {
  headroom::emulation::Fiber* fiber = headroom::emulation::t_fiber;
  if (!fiber || fiber->quiet) return;
  const headroom::emulation::Quiet quiet;
  headroom::emulation::t_runner->access(address, size, kind);
}
}  // namespace

#define HEADROOM_CALLBACKS(size)                                                                                        \
  void __tsan_read##size(void* address) { callback(address, size, headroom::emulation::AccessKind::Read); }             \
  void __tsan_write##size(void* address) { callback(address, size, headroom::emulation::AccessKind::Write); }           \
  void __tsan_unaligned_read##size(void* address) { callback(address, size, headroom::emulation::AccessKind::Read); }   \
  void __tsan_unaligned_write##size(void* address) { callback(address, size, headroom::emulation::AccessKind::Write); } \
  void __tsan_volatile_read##size(void* address) { callback(address, size, headroom::emulation::AccessKind::Read); }    \
  void __tsan_volatile_write##size(void* address) { callback(address, size, headroom::emulation::AccessKind::Write); }
// Atomic operations of host code in such sources (reference counts): done plainly.
#define HEADROOM_ATOMICS(bits)                                                                                                   \
  uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t* p, int) {                                             \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                                                 \
  }                                                                                                                              \
  void __tsan_atomic##bits##_store(volatile uint##bits##_t* p, uint##bits##_t v, int) {                                          \
    __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                                                                    \
  }                                                                                                                              \
  uint##bits##_t __tsan_atomic##bits##_exchange(volatile uint##bits##_t* p, uint##bits##_t v, int) {                             \
    return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);                                                                          \
  }                                                                                                                              \
  uint##bits##_t __tsan_atomic##bits##_fetch_add(volatile uint##bits##_t* p, uint##bits##_t v, int) {                            \
    return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST);                                                                           \
  }                                                                                                                              \
  uint##bits##_t __tsan_atomic##bits##_fetch_sub(volatile uint##bits##_t* p, uint##bits##_t v, int) {                            \
    return __atomic_fetch_sub(p, v, __ATOMIC_SEQ_CST);                                                                           \
  }                                                                                                                              \
  uint##bits##_t __tsan_atomic##bits##_fetch_or(volatile uint##bits##_t* p, uint##bits##_t v, int) {                             \
    return __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST);                                                                            \
  }                                                                                                                              \
  uint##bits##_t __tsan_atomic##bits##_fetch_and(volatile uint##bits##_t* p, uint##bits##_t v, int) {                            \
    return __atomic_fetch_and(p, v, __ATOMIC_SEQ_CST);                                                                           \
  }                                                                                                                              \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile uint##bits##_t* p, uint##bits##_t* e, uint##bits##_t v, int, int) { \
    return __atomic_compare_exchange_n(p, e, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                                      \
  }                                                                                                                              \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile uint##bits##_t* p, uint##bits##_t* e, uint##bits##_t v, int, int) {   \
    return __atomic_compare_exchange_n(p, e, v, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                                       \
  }
extern "C" {
HEADROOM_ATOMICS(8)
HEADROOM_ATOMICS(16)
HEADROOM_ATOMICS(32)
HEADROOM_ATOMICS(64)
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_init() { headroom::emulation::g_checked.store(true); }
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_read_range(void* address, unsigned long size) { callback(address, size, headroom::emulation::AccessKind::Read); }
void __tsan_write_range(void* address, unsigned long size) { callback(address, size, headroom::emulation::AccessKind::Write); }
HEADROOM_CALLBACKS(1)
HEADROOM_CALLBACKS(2)
HEADROOM_CALLBACKS(4)
HEADROOM_CALLBACKS(8)
HEADROOM_CALLBACKS(16)
}
