// A device's memory, and what there is of devices. By CUDA's runtime in suggestion/gpu/cuda, and by
// the processor in tests/gpu/shim. Calls of one context come one at a time.
#pragma once

#include <cstddef>

#include "suggestion/gpu/shirabe_cuda.h"

namespace shirabe::suggestion::gpu {

// Fills in what is known of the device; -1: chooses one.
Code FindDevice(int32_t ordinal, DeviceInfo& info);
// For what this thread does next.
Code UseDevice(int32_t ordinal);

Code Allocate(size_t bytes, void** memory);
void Free(void* memory);
Code CopyToDevice(void* to, const void* from, size_t bytes);
// After all that was launched; tells how that went.
Code CopyToHost(void* to, const void* from, size_t bytes);
Code Synchronize();

}  // namespace shirabe::suggestion::gpu
