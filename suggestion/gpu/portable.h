// All that kernels use of a GPU, so that the same sources run on one and, in the tests, on the
// processor. gpu_platform.h is that of suggestion/gpu/cuda (nvcc) or of tests/gpu/shim (g++),
// whichever the build's include path has, and brings
//
//   __global__, __device__, __shared__ (of fixed size), __syncthreads(), UNROLL before a loop
//   __launch_bounds__(), threadIdx.x, blockIdx, dim3
//   Launch(kernel, grid, arguments…): blocks of kThreads threads, one launch after another
//
// Kernels use nothing else of CUDA: no warp intrinsics, no atomics, no textures (tests/tidy).
// Include in .cu files only; what the code around them needs is in suggestion/gpu/runtime.h.
#pragma once

#include <gpu_platform.h>

namespace shirabe::suggestion::gpu {

constexpr int kThreads = kBlockThreads;

}  // namespace shirabe::suggestion::gpu
