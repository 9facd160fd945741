// suggestion/gpu/tile.h on a GPU, by nvcc.
#pragma once

#include <cuda_runtime.h>

#define UNROLL _Pragma("unroll")

namespace shirabe::suggestion::gpu {

constexpr int kBlockThreads = 256;

// A launch that fails is seen by the next Synchronize or CopyToHost.
template <class... Parameters, class... Arguments>
void Launch(void (*kernel)(Parameters...), dim3 grid, Arguments... arguments) {
  kernel<<<grid, kBlockThreads>>>(arguments...);
}

}  // namespace shirabe::suggestion::gpu
