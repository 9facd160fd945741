// suggestion/gpu/tile.h on the processor, by g++: kernels are functions, and each thread of a
// block is a fibre that runs to its next barrier. Their order is shuffled (tests/gpu/shim/shim.h).
// Blocks run one after the other, so that shared memory can be static; it is filled with NaN
// before each.
#pragma once

#include <functional>

#define __global__
#define __device__
#define __launch_bounds__(...)
#define __shared__ static __attribute__((section("gpu_shared")))
#define __syncthreads() ::shirabe::suggestion::gpu::WaitAtBarrier(__FILE__, __LINE__)
#define UNROLL

namespace shirabe::suggestion::gpu {

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  dim3() = default;
  dim3(unsigned width, unsigned height, unsigned depth) : x(width), y(height), z(depth) {}
};

constexpr int kBlockThreads = 256;

// Of the thread that runs.
extern dim3 threadIdx, blockIdx;

void WaitAtBarrier(const char* file, int line);
void RunGrid(const dim3& grid, const std::function<void()>& thread);

template <class... Parameters, class... Arguments>
void Launch(void (*kernel)(Parameters...), dim3 grid, Arguments... arguments) {
  RunGrid(grid, [&] { kernel(arguments...); });
}

}  // namespace shirabe::suggestion::gpu
