#include "kube/client_options.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace shirabe::kube {
namespace {

// What follows /api/v1 or /apis/GROUP/VERSION, wherever the server's own prefix ends.
std::vector<std::string> PartsOf(const std::string& path) {
  const std::vector<std::string> words = absl::StrSplit(path, '/', absl::SkipEmpty());
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (*word != "api" && *word != "apis") continue;
    const auto begin =
        words.begin() +
        std::min<ptrdiff_t>(words.size(), word - words.begin() + (*word == "api" ? 2 : 3));
    std::vector<std::string> parts(begin, words.end());
    // A namespace is where the rest lies, unless it is what is asked for.
    if (parts.size() > 2 && parts[0] == "namespaces") parts.erase(parts.begin(), parts.begin() + 2);
    return parts;
  }
  return {};
}

std::string VerbOf(const std::string& method, bool named, bool watch, bool apply) {
  if (method == "POST") return "create";
  if (method == "PATCH") return apply ? "apply" : "patch";
  if (method == "DELETE") return "delete";
  if (watch) return "watch";
  return named ? "get" : "list";
}

}  // namespace

RequestKind ClassifyRequest(const std::string& method, const std::string& target,
                            const std::string& content_type) {
  const std::vector<std::string> halves = absl::StrSplit(target, absl::MaxSplits('?', 1));
  const std::vector<std::string> parts = PartsOf(halves[0]);
  const bool watch = halves.size() > 1 && absl::StrContains(halves[1], "watch=true");
  const bool apply = absl::StartsWith(content_type, "application/apply-patch");
  RequestKind kind;
  kind.verb = VerbOf(method, parts.size() != 1, watch, apply);
  if (!parts.empty()) kind.resource = parts[0];
  if (parts.size() > 2) kind.resource += "/" + parts[2];
  return kind;
}

void RequestMetrics::Add(RequestKind kind) {
  const MutexLock lock(mutex_);
  ++counts_[std::move(kind)];
}

std::map<RequestKind, int64_t> RequestMetrics::All() const {
  const MutexLock lock(mutex_);
  return counts_;
}

}  // namespace shirabe::kube
