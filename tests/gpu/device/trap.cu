#include <cuda_runtime.h>

#include "tests/gpu/device/trap.h"

namespace shirabe::suggestion::gpu {
namespace {

__global__ void TrapKernel() { __trap(); }

}  // namespace

bool LoseDevice() {
  TrapKernel<<<1, 1>>>();
  return cudaDeviceSynchronize() != cudaSuccess;
}

}  // namespace shirabe::suggestion::gpu
