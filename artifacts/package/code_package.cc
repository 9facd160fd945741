#include "artifacts/package/code_package.h"

#include <re2/re2.h>

#include "absl/strings/str_cat.h"
#include "base/printable.h"

namespace shirabe::artifacts {

StatusOr<std::string> DigestOfPackage(const std::string& package) {
  static const RE2 form("sha256:([0-9a-f]{64})");
  std::string digest;
  if (RE2::FullMatch(package, form, &digest)) return digest;
  return absl::InvalidArgumentError(
      absl::StrCat(Quoted(Printable(package.substr(0, 100))),
                   " is no digest of a package: write sha256: and the 64 digits (0-9, a-f) that "
                   "shirabe upload has printed"));
}

std::string PackageKey(const std::string& prefix, const std::string& sha256) {
  return absl::StrCat(prefix, prefix.empty() ? "" : "/", "code/", sha256, ".tar.gz");
}

}  // namespace shirabe::artifacts
