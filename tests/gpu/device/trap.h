// Makes a real GPU fail under the library: what is done in one context of a process, all that share
// it see.
#pragma once

namespace shirabe::suggestion::gpu {

// Runs a kernel that stops itself. False where the GPU did not fail.
bool LoseDevice();

}  // namespace shirabe::suggestion::gpu
