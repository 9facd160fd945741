#include "artifacts/package/code_package.h"

#include <fnmatch.h>
#include <re2/re2.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
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

namespace {

constexpr size_t kMaxPatterns = 1000;
constexpr size_t kMaxPatternBytes = 500;

const std::vector<std::string>& AlwaysLeftOut() {
  static const std::vector<std::string> names = {".git", "__pycache__", kIgnoreFile};
  return names;
}

Status RefuseLine(int line, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(kIgnoreFile, " line ", line, ": ", what));
}

}  // namespace

StatusOr<std::vector<IgnorePattern>> ReadIgnoreFile(const std::string& text) {
  std::vector<IgnorePattern> patterns;
  int line = 0;
  for (const auto part : absl::StrSplit(text, '\n')) {
    ++line;
    std::string glob(absl::StripTrailingAsciiWhitespace(part));
    if (glob.empty() || glob.front() == '#') continue;
    if (glob.size() > kMaxPatternBytes) return RefuseLine(line, "the pattern is too long");
    if (glob.front() == '!' || absl::StrContains(glob, "**")) {
      return RefuseLine(line, Quoted(Printable(glob)) +
                                  ": '!' and '**' are not known here: name what is left out");
    }
    IgnorePattern pattern;
    pattern.folders_only = glob.back() == '/';
    if (pattern.folders_only) glob.pop_back();
    pattern.anchored = absl::StrContains(glob, "/");
    if (!glob.empty() && glob.front() == '/') glob.erase(0, 1);
    pattern.glob = std::move(glob);
    if (pattern.glob.empty()) return RefuseLine(line, "the pattern names nothing");
    patterns.push_back(std::move(pattern));
    if (patterns.size() > kMaxPatterns) return RefuseLine(line, "there are too many patterns");
  }
  return patterns;
}

bool IsIgnored(const std::vector<IgnorePattern>& patterns, const std::string& path, bool folder) {
  const std::string name = path.substr(path.rfind('/') + 1);
  const std::vector<std::string>& always = AlwaysLeftOut();
  if (std::find(always.begin(), always.end(), name) != always.end()) return true;
  return std::any_of(patterns.begin(), patterns.end(), [&](const IgnorePattern& pattern) {
    if (pattern.folders_only && !folder) return false;
    const std::string& text = pattern.anchored ? path : name;
    return fnmatch(pattern.glob.c_str(), text.c_str(), FNM_PATHNAME) == 0;
  });
}

}  // namespace shirabe::artifacts
