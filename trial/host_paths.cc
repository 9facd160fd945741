#include "trial/host_paths.h"

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace shirabe::trial {
namespace {

constexpr char kField[] = "spec.shirabe.checkpoint.volume.hostPath";

std::string WithoutSlash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// No "..", no ".", no double '/': what is compared is what will be mounted.
bool IsPlain(const std::string& path) {
  const std::string normal = std::filesystem::path(path).lexically_normal().string();
  return absl::StartsWith(path, "/") && WithoutSlash(normal) == WithoutSlash(path) &&
         path.find('\0') == path.npos;
}

}  // namespace

Status CheckHostPath(const v1::CheckpointVolume& volume, const std::vector<std::string>& allowed) {
  const std::string path = WithoutSlash(volume.host_path());
  if (path.empty()) return absl::OkStatus();
  for (const std::string& one : allowed) {
    const std::string folder = WithoutSlash(one);
    if (IsPlain(path) && (path == folder || absl::StartsWith(path, folder + "/"))) {
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      kField, ": \"", volume.host_path(), "\" is a folder of the nodes that no administrator has ",
      "allowed (allowed: ", allowed.empty() ? "none" : absl::StrJoin(allowed, ", "),
      "): use volume.claim or volume.size, or have the server started with --allow-host-path"));
}

Status ValidateHostPath(const std::string& path) {
  if (IsPlain(path) && path.size() > 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", path, "\" is not an absolute path of a folder below /, without . and .. in it"));
}

}  // namespace shirabe::trial
