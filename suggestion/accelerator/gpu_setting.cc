#include "suggestion/accelerator/gpu_setting.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace shirabe::suggestion::accelerator {
namespace {

constexpr int kMaxOrdinal = 255;
constexpr size_t kLongestFolder = 1024;

// As it can be shown: of hostile values the beginning, without what a terminal obeys.
std::string Shown(const std::string& value) {
  constexpr size_t kShown = 64;
  return absl::StrCat("\"", absl::CHexEscape(value.substr(0, kShown)),
                      value.size() > kShown ? "…\"" : "\"");
}

// Why not, or "".
std::string WrongWithFolder(const std::string& folder) {
  if (folder[0] != '/') return " is not an absolute path";
  if (folder.size() > kLongestFolder) return " is too long";
  const bool controls = std::any_of(folder.begin(), folder.end(), [](char c) {
    return absl::ascii_iscntrl(static_cast<unsigned char>(c));
  });
  return controls ? " has a control character" : "";
}

bool IsNumber(const std::string& text) {
  return !text.empty() && text.size() <= 3 && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
}

}  // namespace

StatusOr<GpuSetting> ParseGpuSetting(const char* gpu, const char* folder) {
  GpuSetting setting;
  const std::string which = gpu == nullptr ? "" : gpu;
  setting.said = !which.empty();
  if (which == "off") {
    setting.off = true;
  } else if (!which.empty() && which != "auto") {
    if (!IsNumber(which) || !absl::SimpleAtoi(which, &setting.ordinal) ||
        setting.ordinal > kMaxOrdinal) {
      return absl::InvalidArgumentError(
          absl::StrCat("SHIRABE_GPU: ", Shown(which),
                       " is not auto, off or the number of a GPU: set it to one of them"));
    }
  }
  setting.folder = folder == nullptr ? "" : folder;
  if (setting.folder.empty()) return setting;
  if (const std::string wrong = WrongWithFolder(setting.folder); !wrong.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("SHIRABE_GPU_LIBRARY_DIR: ", Shown(setting.folder), wrong,
                     ": write the whole path of the folder that has libshirabe-cuda.so"));
  }
  return setting;
}

StatusOr<GpuSetting> ReadGpuSetting() {
  return ParseGpuSetting(std::getenv("SHIRABE_GPU"), std::getenv("SHIRABE_GPU_LIBRARY_DIR"));
}

}  // namespace shirabe::suggestion::accelerator
