#include "suggestion/accelerator/gpu_setting.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace shirabe::suggestion::accelerator {
namespace {

constexpr int kMaxOrdinal = 255;

bool IsNumber(const std::string& text) {
  return !text.empty() && text.size() <= 3 && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
}

}  // namespace

StatusOr<GpuSetting> ParseGpuSetting(const char* gpu, const char* folder) {
  GpuSetting setting;
  const std::string which = gpu == nullptr ? "" : gpu;
  if (which == "off") {
    setting.off = true;
  } else if (!which.empty() && which != "auto") {
    if (!IsNumber(which) || !absl::SimpleAtoi(which, &setting.ordinal) ||
        setting.ordinal > kMaxOrdinal) {
      return absl::InvalidArgumentError(
          absl::StrCat("SHIRABE_GPU: \"", which.substr(0, 64),
                       "\" is not auto, off or the number of a GPU: set it to one of them"));
    }
  }
  setting.folder = folder == nullptr ? "" : folder;
  if (!setting.folder.empty() && setting.folder[0] != '/') {
    return absl::InvalidArgumentError(
        absl::StrCat("SHIRABE_GPU_LIBRARY_DIR: \"", setting.folder.substr(0, 256),
                     "\" is not an absolute path: write the whole path of the folder that has "
                     "libshirabe-cuda.so"));
  }
  return setting;
}

StatusOr<GpuSetting> ReadGpuSetting() {
  return ParseGpuSetting(std::getenv("SHIRABE_GPU"), std::getenv("SHIRABE_GPU_LIBRARY_DIR"));
}

}  // namespace shirabe::suggestion::accelerator
