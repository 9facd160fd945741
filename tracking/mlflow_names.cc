#include "tracking/mlflow_names.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/sha256.h"

namespace shirabe::tracking {
namespace {

constexpr size_t kMaxKeyBytes = 200;  // MLflow allows 250, file systems 255 for each part
constexpr size_t kDigestDigits = 16;

std::string Escaped(char byte) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  const auto value = static_cast<unsigned char>(byte);
  return {':', kDigits[value >> 4], kDigits[value & 15]};
}

// Whether each part of a path is a name, and no other one.
bool IsPlainPath(const std::string& name) {
  if (name.size() > kMaxKeyBytes) return false;
  for (const auto& part : absl::StrSplit(name, '/')) {
    if (part.empty() || absl::StartsWith(part, ".")) return false;
  }
  return true;
}

// Whether one of the names is a folder of another, as "loss" is of "loss/train".
bool AreNested(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const std::string folder = name + "/";
    const auto within = [&](const std::string& other) { return absl::StartsWith(other, folder); };
    if (std::any_of(names.begin(), names.end(), within)) return true;
  }
  return false;
}

}  // namespace

MlflowKeys::MlflowKeys(const std::vector<std::string>& names) {
  if (AreNested(names)) return;
  for (const std::string& name : names) {
    if (IsPlainPath(name)) folders_.insert(name);
  }
}

std::string MlflowKeys::KeyOf(const std::string& name) const {
  constexpr std::string_view kFit = "_.- ";
  const bool keeps_folders = folders_.contains(name);
  std::string key;
  for (const char byte : name) {
    const bool fit = absl::ascii_isalnum(static_cast<unsigned char>(byte)) ||
                     kFit.find(byte) != std::string_view::npos || (byte == '/' && keeps_folders);
    // A leading dot may be "..", or a hidden file.
    key += fit && !(byte == '.' && key.empty()) ? std::string(1, byte) : Escaped(byte);
  }
  if (key.empty()) return ":";
  if (key.size() <= kMaxKeyBytes) return key;
  return absl::StrCat(key.substr(0, kMaxKeyBytes - kDigestDigits - 1), ":",
                      HexSha256(name).substr(0, kDigestDigits));
}

}  // namespace shirabe::tracking
