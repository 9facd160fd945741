// Of CUDA, kernels use what tests/gpu/shim models, and nothing else: what it does not model would
// not be tested.
#include <re2/re2.h>

#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/tidy/rules.h"

namespace shirabe::tidy {
namespace {

// Where there is a GPU.
constexpr const char* kReal[] = {"suggestion/gpu/cuda/", "tests/gpu/device/"};

bool IsKernelSource(const std::string& path) {
  for (const char* folder : kReal) {
    if (absl::StartsWith(path, folder)) return false;
  }
  return absl::EndsWith(path, ".cu") || absl::EndsWith(path, ".cuh") ||
         (absl::StartsWith(path, "suggestion/gpu/") && absl::EndsWith(path, ".h"));
}

// All others of these names are CUDA's: votes, shuffles, fences, intrinsics of arithmetic.
const std::set<std::string>& Modelled() {
  static const std::set<std::string> names = {"__global__", "__device__", "__shared__",
                                              "__syncthreads", "__launch_bounds__"};
  return names;
}

struct Refusal {
  const char* pattern;
  const char* message;
};
constexpr Refusal kRefusals[] = {
    {R"(\batomic\w*\s*\(|\bcuda::)", "an atomic: sums have a fixed order"},
    {R"(\bcooperative_groups\b|\bthis_grid\b|\bcg::)", "cooperative groups"},
    {R"(<<<)", "a launch that is not Launch of tile.h"},
    {R"(\basm\b)", "machine code"},
    {R"(\btex[123]D\w*|\bsurf[123]D\w*|\btexture\s*<|\bcudaTextureObject_t\b)", "a texture"},
    {R"(\bcuda[A-Z]\w*\s*\()", "a function of CUDA's runtime: use suggestion/gpu/runtime.h"},
    {R"(\bextern\s+__shared__)", "shared memory whose size is not in the source"},
    {R"(\bthreadIdx\s*\.\s*[yz]|\b(?:blockDim|gridDim|warpSize)\b)",
     "blocks of another shape than kThreads in a row"},
    {R"(\bclock(?:64)?\s*\(|\bprintf\s*\(|\bassert\s*\(|\bmalloc\s*\()",
     "a function of the device that the shim has not"},
    {R"(^\s*#\s*include\s*<(?:cuda|cooperative_groups|cub|thrust|mma)[\w/.]*>)",
     "a header of CUDA"},
};

}  // namespace

void CheckKernels(const Source& source, Violations& out) {
  if (!IsKernelSource(source.path)) return;
  static const RE2 reserved(R"((\b__\w+))");
  for (int n = 1; n <= source.lines(); ++n) {
    const std::string_view code = source.Line(source.code, n);
    const re2::StringPiece line(code.data(), code.size());
    for (const Refusal& refusal : kRefusals) {
      if (RE2::PartialMatch(line, refusal.pattern)) {
        out.push_back({source.path, n,
                       absl::StrCat(refusal.message, ", which the tests of kernels do not model")});
      }
    }
    re2::StringPiece rest = line;
    std::string name;
    while (RE2::FindAndConsume(&rest, reserved, &name)) {
      if (Modelled().contains(name)) continue;
      out.push_back(
          {source.path, n, absl::StrCat(name, ", which the tests of kernels do not model")});
    }
  }
}

}  // namespace shirabe::tidy
