// libshirabe-cuda.so, opened when a history is first large enough for it, never linked. Its name is
// fixed and its folder is the program's own, ../lib/shirabe beside it, or the administrator's
// (GpuSetting). A file that another user could have put there is not opened: where all symbolic
// links lead to, it and every folder above it belong to root or to the user of this process, and
// only their owner may write to them.
//
// The members are the functions of suggestion/gpu/shirabe_cuda.h under their own names, which says
// what they do and from which thread. What is opened stays for good.
#pragma once

#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "suggestion/gpu/shirabe_cuda.h"

#define SHIRABE_GPU_FUNCTIONS(F) \
  F(shirabe_cuda_text)           \
  F(shirabe_cuda_open)           \
  F(shirabe_cuda_close)          \
  F(shirabe_cuda_upload)         \
  F(shirabe_cuda_evaluate)       \
  F(shirabe_cuda_condition)      \
  F(shirabe_cuda_score)          \
  F(shirabe_cuda_release)

namespace shirabe::suggestion::accelerator {

// What an administrator says of GPUs for the algorithms, by two variables of the environment of the
// program. Nothing of an experiment, a request or a file is asked. Pure but for reading the
// environment; any thread.
//
//   SHIRABE_GPU=auto|off|N         auto: the best one there is; N: the N-th, from 0. Without it
//                                  auto for a server (serve, controller), and off for what runs
//                                  trials here for one user: they may be training on that GPU
//   SHIRABE_GPU_LIBRARY_DIR=DIR    where libshirabe-cuda.so is, and nowhere else; an absolute path
struct GpuSetting {
  bool said = false;  // SHIRABE_GPU is set
  bool off = false;
  int ordinal = -1;    // -1: the best one
  std::string folder;  // "": where the program is installed
};

// kInvalidArgument, naming the variable, its value and the fix. Null: not set.
StatusOr<GpuSetting> ParseGpuSetting(const char* gpu, const char* folder);

// Of this process.
StatusOr<GpuSetting> ReadGpuSetting();

struct GpuLibrary {
#define SHIRABE_GPU_MEMBER(name) decltype(&gpu::name) name = nullptr;
  SHIRABE_GPU_FUNCTIONS(SHIRABE_GPU_MEMBER)
#undef SHIRABE_GPU_MEMBER
};

// Where it is looked for, in this order.
std::vector<std::string> GpuLibraryFolders(const GpuSetting& setting);

// From the first folder that has it. kNotFound where none has; kPermissionDenied, with the path and
// the fix, for one that others may write; kUnimplemented for another version, or one that this
// machine cannot load.
StatusOr<GpuLibrary> LoadGpuLibrary(const std::vector<std::string>& folders);

// A GPU in use: the calls of libshirabe-cuda.so with statuses for its codes, and what lives on the
// device, which is released with the session at the latest. One thread at a time, that of
// shared_gpu.h.
//
// kUnavailable: the device is gone, and with it the session. kResourceExhausted: no memory for this
// call. kFailedPrecondition: a matrix that cannot be factored. kInvalidArgument: a number that is
// not finite, or a size that it does not take.
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
