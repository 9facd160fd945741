// The functions of suggestion/gpu/tile.h by CUDA's runtime, which is linked statically and
// opens the driver's library itself: without one, the first call says so.
#include <cuda_runtime.h>

#include <cstdio>

#include "suggestion/gpu/runtime.h"

namespace shirabe::suggestion::gpu {
namespace {

constexpr int kLeastDriver = 13000;  // CUDA 13.0, with which this is compiled
constexpr int kLeastMajor = 7, kLeastMinor = 5;

// Memory that is not there leaves the context as it is. Of other errors a few concern one call; the
// rest stay with the context, and it is given up.
Code CodeOf(cudaError_t error) {
  if (error == cudaSuccess) return kOk;
  cudaGetLastError();  // is not told again
  if (error == cudaErrorMemoryAllocation) return kNoMemory;
  if (error == cudaErrorInvalidValue || error == cudaErrorInvalidConfiguration) return kInternal;
  return kDeviceLost;
}

Code Refuse(DeviceInfo& info, const char* reason) {
  std::snprintf(info.reason, sizeof info.reason, "%s", reason);
  return kNoDevice;
}

int Attribute(cudaDeviceAttr attribute, int ordinal) {
  int value = 0;
  if (cudaDeviceGetAttribute(&value, attribute, ordinal) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return value;
}

// Fills in what can be asked without making a context.
void Describe(int ordinal, DeviceInfo& info) {
  info.ordinal = ordinal;
  info.major = Attribute(cudaDevAttrComputeCapabilityMajor, ordinal);
  info.minor = Attribute(cudaDevAttrComputeCapabilityMinor, ordinal);
  info.single_to_double = Attribute(cudaDevAttrSingleToDoublePrecisionPerfRatio, ordinal);
  cudaDeviceProp properties;
  if (cudaGetDeviceProperties(&properties, ordinal) == cudaSuccess) {
    std::snprintf(info.name, sizeof info.name, "%.127s", properties.name);
    info.total_bytes = properties.totalGlobalMem;
  }
}

bool CanRun(const DeviceInfo& info) {
  return info.major > kLeastMajor || (info.major == kLeastMajor && info.minor >= kLeastMinor);
}

// Makes the device's context, which costs a tenth of a second and some memory.
cudaError_t AskMemory(DeviceInfo& info) {
  size_t free = 0, total = 0;
  cudaError_t error = cudaSetDevice(info.ordinal);
  if (error == cudaSuccess) error = cudaMemGetInfo(&free, &total);
  info.free_bytes = free;
  if (error == cudaSuccess) info.total_bytes = total;
  return error;
}

bool Better(const DeviceInfo& a, const DeviceInfo& b) {
  if (a.single_to_double != b.single_to_double) return a.single_to_double < b.single_to_double;
  return a.free_bytes > b.free_bytes;
}

Code Choose(DeviceInfo& info) {
  DeviceInfo best = info;
  best.ordinal = -1;
  cudaError_t last = cudaSuccess;
  for (int ordinal = 0; ordinal < info.devices; ++ordinal) {
    DeviceInfo one = info;
    Describe(ordinal, one);
    if (!CanRun(one)) continue;
    last = AskMemory(one);
    if (last == cudaSuccess && (best.ordinal < 0 || Better(one, best))) best = one;
  }
  if (best.ordinal >= 0) {
    info = best;
    return kOk;
  }
  if (last != cudaSuccess) return Refuse(info, cudaGetErrorString(last));
  return Refuse(info, "no GPU of compute capability 7.5 or later");
}

}  // namespace

Code FindDevice(int32_t ordinal, DeviceInfo& info) {
  cudaDriverGetVersion(&info.driver_version);  // 0 where there is none
  if (info.driver_version == 0) return Refuse(info, "no NVIDIA driver");
  int devices = 0;
  const cudaError_t counted = cudaGetDeviceCount(&devices);
  if (info.driver_version < kLeastDriver) {
    return Refuse(info, "the NVIDIA driver is too old: 580 or later (CUDA 13.0) is needed");
  }
  if (counted != cudaSuccess) return Refuse(info, cudaGetErrorString(counted));
  info.devices = devices;
  if (ordinal < 0) return Choose(info);
  if (ordinal >= devices) return Refuse(info, "the driver shows no GPU of this number");
  Describe(ordinal, info);
  if (!CanRun(info)) return Refuse(info, "its compute capability is less than 7.5");
  const cudaError_t asked = AskMemory(info);
  return asked == cudaSuccess ? kOk : Refuse(info, cudaGetErrorString(asked));
}

Code UseDevice(int32_t ordinal) { return CodeOf(cudaSetDevice(ordinal)); }

Code Allocate(size_t bytes, void** memory) { return CodeOf(cudaMalloc(memory, bytes)); }

void Free(void* memory) { cudaFree(memory); }

Code CopyToDevice(void* to, const void* from, size_t bytes) {
  return CodeOf(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
}

Code CopyToHost(void* to, const void* from, size_t bytes) {
  const Code code = CodeOf(cudaGetLastError());
  if (code != kOk) return code;
  return CodeOf(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost));
}

Code Synchronize() {
  const Code code = CodeOf(cudaGetLastError());
  if (code != kOk) return code;
  return CodeOf(cudaDeviceSynchronize());
}

}  // namespace shirabe::suggestion::gpu
