// libshirabe-cuda.so, opened when a history is first large enough for it, never linked. Its name is
// fixed and its folder is the program's own, ../lib/shirabe beside it, or the administrator's
// (gpu_setting.h). A file that another user could have put there is not opened: where all symbolic
// links lead to, it and every folder above it belong to root or to the user of this process, and
// only their owner may write to them.
//
// The members are the functions of suggestion/gpu/shirabe_cuda.h under their own names, which says
// what they do and from which thread. What is opened stays for good.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "suggestion/accelerator/gpu_setting.h"
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

}  // namespace shirabe::suggestion::accelerator
