#include "kube/cluster_config.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file_io.h"
#include "kube/resource_path.h"

namespace shirabe::kube {
namespace {

constexpr char kServiceAccount[] = "/var/run/secrets/kubernetes.io/serviceaccount";

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

StatusOr<Config> ServiceAccountConfig(const std::string& folder, const std::string& host,
                                      const std::string& port) {
  Config config;
  config.server = absl::StrCat("https://", Endpoint{.host = host, .port = port}.Address());
  config.context = "in-cluster";
  config.token_file = folder + "/token";
  RETURN_IF_ERROR(ReadFile(config.token_file).status());
  ASSIGN_OR_RETURN(config.ca, ReadFile(folder + "/ca.crt"));
  const auto space = ReadFile(folder + "/namespace");
  config.namespace_name = space.ok() ? std::string(absl::StripAsciiWhitespace(*space)) : "default";
  return config;
}

StatusOr<Config> InClusterConfig() {
  const std::string host = Variable("KUBERNETES_SERVICE_HOST");
  const std::string port = Variable("KUBERNETES_SERVICE_PORT");
  if (host.empty() || port.empty()) {
    return absl::NotFoundError("this process runs in no pod: KUBERNETES_SERVICE_HOST is not set");
  }
  auto config = ServiceAccountConfig(kServiceAccount, host, port);
  if (!absl::IsNotFound(config.status())) return config;
  return absl::NotFoundError(
      absl::StrCat("this pod has no service account token (", Message(config.status()),
                   "): set automountServiceAccountToken: true, or name a kubeconfig"));
}

StatusOr<Config> FindConfig(const std::string& path, const std::string& context) {
  if (!path.empty()) return LoadKubeconfig(path, context);
  // A context that is named is one of a file.
  if (context.empty()) {
    auto config = InClusterConfig();
    if (config.ok() || !Variable("KUBERNETES_SERVICE_HOST").empty()) return config;
  }
  const std::string named = Variable("KUBECONFIG");
  if (!named.empty()) return LoadKubeconfig(named, context);
  auto config = LoadKubeconfig(Variable("HOME") + "/.kube/config", context);
  if (!absl::IsNotFound(config.status()) || !context.empty()) return config;
  return absl::NotFoundError(absl::StrCat("no cluster is known (", Message(config.status()),
                                          "): name a kubeconfig, set KUBECONFIG, or run in a pod"));
}

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
