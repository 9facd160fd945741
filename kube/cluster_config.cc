#include "kube/cluster_config.h"

#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
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

}  // namespace shirabe::kube
