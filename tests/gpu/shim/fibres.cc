// Runs the blocks of a grid, a fibre for each thread.
#include <ucontext.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include <gpu_platform.h>

#include "tests/gpu/shim/shim.h"

// AddressSanitizer's, where it is linked: it has to know which stack is in use.
extern "C" {
void __sanitizer_start_switch_fiber(void** save, const void* bottom, size_t size)
    __attribute__((weak));
void __sanitizer_finish_switch_fiber(void* saved, const void** bottom, size_t* size)
    __attribute__((weak));
void __asan_unpoison_memory_region(const volatile void* begin, size_t size) __attribute__((weak));
// The shared memory of all kernels, which the linker puts together.
extern char __start_gpu_shared[], __stop_gpu_shared[];
}

namespace shirabe::suggestion::gpu {

dim3 threadIdx, blockIdx;

namespace {

constexpr size_t kStack = 256 << 10;

// As Place, without allocating: it is written at every barrier.
struct Barrier {
  const char* file = "";
  int line = 0;
  bool operator==(const Barrier& other) const {
    return line == other.line && std::strcmp(file, other.file) == 0;
  }
};

struct Fibre {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  void* asan = nullptr;  // its fake stack while it waits
  bool running = false;  // a thread of the block that has not ended
  Barrier at;            // where it waits
};

// One block at a time, and one grid.
struct Scheduler {
  ucontext_t context;
  void* asan = nullptr;
  const void* bottom = nullptr;  // of the stack that schedules
  size_t size = 0;
  std::vector<Fibre> fibres;
  int current = 0;
  const std::function<void()>* thread = nullptr;
};
Scheduler scheduler;

// SplitMix64.
uint64_t Draw(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

void Shuffle(std::vector<int>& order, uint64_t& state) {
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[Draw(state) % i]);
}

void ToScheduler() {
  Fibre& fibre = scheduler.fibres[scheduler.current];
  if (__sanitizer_start_switch_fiber != nullptr) {
    __sanitizer_start_switch_fiber(&fibre.asan, scheduler.bottom, scheduler.size);
  }
  swapcontext(&fibre.context, &scheduler.context);
  if (__sanitizer_finish_switch_fiber != nullptr) {
    __sanitizer_finish_switch_fiber(fibre.asan, nullptr, nullptr);
  }
}

// A fibre's whole life: thread after thread.
void Live() {
  if (__sanitizer_finish_switch_fiber != nullptr) {
    __sanitizer_finish_switch_fiber(nullptr, &scheduler.bottom, &scheduler.size);
  }
  for (;;) {
    (*scheduler.thread)();
    scheduler.fibres[scheduler.current].running = false;
    ToScheduler();
  }
}

void Resume(int index) {
  scheduler.current = index;
  threadIdx = dim3(static_cast<unsigned>(index), 0, 0);
  Fibre& fibre = scheduler.fibres[index];
  if (__sanitizer_start_switch_fiber != nullptr) {
    __sanitizer_start_switch_fiber(&scheduler.asan, fibre.stack.get(), kStack);
  }
  swapcontext(&scheduler.context, &fibre.context);
  if (__sanitizer_finish_switch_fiber != nullptr) {
    __sanitizer_finish_switch_fiber(scheduler.asan, nullptr, nullptr);
  }
}

// By itself: getcontext may return twice, and nothing else is to depend on it.
__attribute__((noinline)) void MakeFibre(Fibre& fibre) {
  getcontext(&fibre.context);
  fibre.context.uc_stack.ss_sp = fibre.stack.get();
  fibre.context.uc_stack.ss_size = kStack;
  fibre.context.uc_link = nullptr;
  makecontext(&fibre.context, Live, 0);
}

// Fibres that have not begun, or whose threads were abandoned.
void MakeFibres() {
  scheduler.fibres.resize(kBlockThreads);
  for (Fibre& fibre : scheduler.fibres) {
    if (fibre.stack == nullptr) fibre.stack = std::make_unique<char[]>(kStack);
    if (__asan_unpoison_memory_region != nullptr) {
      __asan_unpoison_memory_region(fibre.stack.get(), kStack);
    }
    fibre.asan = nullptr;
    MakeFibre(fibre);
  }
}

std::string Describe(const Barrier& barrier) {
  return std::string(barrier.file) + ":" + std::to_string(barrier.line);
}

// After each thread has run to a barrier or to its end: all must be at the same. Empty if so.
std::string Divergence() {
  const Fibre& first = scheduler.fibres[0];
  for (const Fibre& fibre : scheduler.fibres) {
    if (fibre.running && !first.running) return "ended before " + Describe(fibre.at);
    if (!fibre.running && first.running) return "ended before " + Describe(first.at);
    if (fibre.running && !(fibre.at == first.at)) {
      return Describe(first.at) + " and " + Describe(fibre.at);
    }
  }
  return "";
}

// Not instrumented: between the arrays stand what guards them against each other.
__attribute__((no_sanitize("address"))) void FillShared() {
  for (char* at = __start_gpu_shared; at != __stop_gpu_shared; ++at) *at = '\xff';
}

// False: threads diverged, and the block was given up.
bool RunBlock(uint64_t& state) {
  FillShared();
  std::vector<int> order(kBlockThreads);
  for (int i = 0; i < kBlockThreads; ++i) order[i] = i;
  for (Fibre& fibre : scheduler.fibres) fibre.running = true;
  while (scheduler.fibres[0].running) {
    if (state != 0) Shuffle(order, state);
    for (const int index : order) Resume(index);
    const std::string divergence = Divergence();
    if (!divergence.empty()) {
      TheShim().fault = "threads of a block diverge at a barrier: " + divergence;
      MakeFibres();
      return false;
    }
  }
  return true;
}

}  // namespace

void WaitAtBarrier(const char* file, int line) {
  Shim& shim = TheShim();
  if (scheduler.current == 0) shim.barriers.insert({file, line});
  if (line == shim.removed.second && file == shim.removed.first) return;
  scheduler.fibres[scheduler.current].at = {file, line};
  ToScheduler();
}

void RunGrid(const dim3& grid, const std::function<void()>& thread) {
  Shim& shim = TheShim();
  ++shim.launches;
  if (shim.launches_until_lost >= 0 && shim.launches_until_lost-- == 0) {
    shim.fault = "lost, as the test wanted";
  }
  if (!shim.fault.empty()) return;
  if (scheduler.fibres.empty()) MakeFibres();
  scheduler.thread = &thread;
  const unsigned count = grid.x * grid.y * grid.z;
  std::vector<int> order(count);
  for (unsigned i = 0; i < count; ++i) order[i] = static_cast<int>(i);
  uint64_t state = shim.seed;
  if (state != 0) Shuffle(order, state);
  for (const int block : order) {
    const auto b = static_cast<unsigned>(block);
    blockIdx = dim3(b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y);
    if (!RunBlock(state)) return;
  }
}

}  // namespace shirabe::suggestion::gpu
