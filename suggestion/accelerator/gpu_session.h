// A GPU in use: the calls of libshirabe-cuda.so with statuses for its codes, and what lives on the
// device, which is released with the session at the latest. One thread at a time, that of
// shared_gpu.h.
//
// kUnavailable: the device is gone, and with it the session. kResourceExhausted: no memory for this
// call. kFailedPrecondition: a matrix that cannot be factored. kInvalidArgument: a number that is
// not finite, or a size that it does not take.
#pragma once

#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "suggestion/accelerator/gpu_library.h"

namespace shirabe::suggestion::accelerator {

class GpuSession {
 public:
  // kUnavailable, with the reason in words, where the device or its driver will not do; so also
  // where doubles are over `most_ratio` times slower than floats: the processor is quicker then.
  static StatusOr<GpuSession> Open(const GpuLibrary& library, int ordinal, int most_ratio);
  GpuSession(GpuSession&& other) noexcept;
  GpuSession& operator=(GpuSession&&) = delete;
  ~GpuSession();

  const gpu::DeviceInfo& info() const { return info_; }

  StatusOr<gpu::DeviceModel*> Upload(const gpu::ModelData& data);
  Status Evaluate(std::span<gpu::Evaluation> batch);
  StatusOr<gpu::DevicePosterior*> Condition(const gpu::DeviceModel* model,
                                            const gpu::Conditioning& conditioning,
                                            gpu::PosteriorParts* parts);
  Status Score(std::span<const gpu::Scoring> batch);
  // Null is fine, and so is what is not there any more.
  void Release(gpu::DeviceModel* model, gpu::DevicePosterior* posterior);

 private:
  GpuSession(const GpuLibrary& library, gpu::Context* context, const gpu::DeviceInfo& info)
      : library_(library), context_(context), info_(info) {}
  Status StatusFor(int code) const;

  GpuLibrary library_;
  gpu::Context* context_;
  gpu::DeviceInfo info_;
  std::unordered_set<gpu::DeviceModel*> models_;
  std::unordered_set<gpu::DevicePosterior*> posteriors_;
};

// "NVIDIA H100, 80 GB, compute capability 9.0, GPU 0 of 1".
std::string DescribeDevice(const gpu::DeviceInfo& info);

}  // namespace shirabe::suggestion::accelerator
