// The functions of suggestion/gpu/runtime.h on the processor. Memory is the host's, filled with NaN
// when it is allocated; a launch is over when it returns.
#include "suggestion/gpu/runtime.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "tests/gpu/shim/shim.h"

namespace shirabe::suggestion::gpu {
namespace {

constexpr int kUnwritten = 0xff;  // each byte: a NaN

std::map<void*, size_t>& Allocations() {
  static std::map<void*, size_t> allocations;
  return allocations;
}

// As compute-sanitizer's initcheck: what nothing has written still is as Allocate filled it, and so
// is what was computed from it.
bool IsWritten(const void* from, size_t bytes) {
  uint64_t unwritten, number;
  std::memset(&unwritten, kUnwritten, sizeof unwritten);
  for (size_t at = 0; at + sizeof number <= bytes; at += sizeof number) {
    std::memcpy(&number, static_cast<const char*>(from) + at, sizeof number);
    if (number == unwritten) return false;
  }
  return true;
}

Code Lost() { return TheShim().fault.empty() ? kOk : kDeviceLost; }

}  // namespace

Shim& TheShim() {
  static Shim shim;
  return shim;
}

void ResetShim() {
  Shim fresh;
  fresh.used = TheShim().used;
  TheShim() = fresh;
}

Code FindDevice(int32_t ordinal, DeviceInfo& info) {
  info.driver_version = TheShim().no_driver ? 0 : TheShim().old_driver ? 12020 : 13000;
  info.devices = info.driver_version < 13000 ? 0 : 1;
  if (ordinal >= info.devices || info.devices == 0) {
    std::snprintf(info.reason, sizeof info.reason, "%s", "no such device, or no driver for it");
    return kNoDevice;
  }
  std::snprintf(info.name, sizeof info.name, "%s", "the processor, in its place");
  info.ordinal = 0;
  info.major = 9;
  info.single_to_double = 2;
  info.total_bytes = TheShim().memory;
  info.free_bytes = TheShim().memory - TheShim().used;
  return kOk;
}

Code UseDevice(int32_t) { return Lost(); }

Code Allocate(size_t bytes, void** memory) {
  Shim& shim = TheShim();
  if (!shim.fault.empty()) return kDeviceLost;
  if (shim.used + static_cast<int64_t>(bytes) > shim.memory) return kNoMemory;
  *memory = std::malloc(bytes);
  std::memset(*memory, kUnwritten, bytes);
  Allocations()[*memory] = bytes;
  shim.used += static_cast<int64_t>(bytes);
  ++shim.reserved;
  return kOk;
}

void Free(void* memory) {
  TheShim().used -= static_cast<int64_t>(Allocations().at(memory));
  Allocations().erase(memory);
  std::free(memory);
}

Code CopyToDevice(void* to, const void* from, size_t bytes) {
  if (Lost() != kOk) return kDeviceLost;
  std::memcpy(to, from, bytes);
  return kOk;
}

Code CopyToHost(void* to, const void* from, size_t bytes) {
  if (!IsWritten(from, bytes)) TheShim().fault = "copies memory that nothing has written";
  if (Lost() != kOk) return kDeviceLost;
  std::memcpy(to, from, bytes);
  return kOk;
}

Code Synchronize() { return Lost(); }

}  // namespace shirabe::suggestion::gpu
