// How to reach an API server and who we are there: from a kubeconfig file, or, in a pod, from its
// service account. Read once; the token file alone is read again when it changes, because such
// tokens are rotated. A Config holds secrets: no message and no log line repeats a value of it but
// the server's address. Pure data, and functions that read files; any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/status.h"

namespace shirabe::kube {

// A program that prints a credential (client.authentication.k8s.io), as cloud providers use.
struct ExecPlugin {
  std::string command;
  std::vector<std::string> args;
  std::map<std::string, std::string> env;
  std::string api_version;
  bool provide_cluster_info = false;
};

struct Config {
  std::string server;       // https://HOST:PORT[/PREFIX]
  std::string server_name;  // for TLS, if it is not HOST
  std::string ca;           // PEM; "" = the system's authorities
  bool insecure = false;    // insecure-skip-tls-verify
  std::string certificate;  // PEM of the client
  std::string key;
  std::string token;
  std::string token_file;  // read again when it changes; before `token`
  std::string username;
  std::string password;
  ExecPlugin exec;             // command "" = none
  std::string namespace_name;  // of the context or the pod; "default" if none is said
  std::string context;         // its name, for people
};

// The context of that name, or the current one. `path` may be a list with ':' as in $KUBECONFIG:
// the files are merged, the first that has a name wins. kNotFound, kInvalidArgument: the file, the
// field and the fix.
StatusOr<Config> LoadKubeconfig(const std::string& path, const std::string& context);

// Of the pod that this process runs in. kNotFound if it runs in none.
StatusOr<Config> InClusterConfig();
// Of the service account whose files lie in `folder`, as Kubernetes mounts them in a pod.
StatusOr<Config> ServiceAccountConfig(const std::string& folder, const std::string& host,
                                      const std::string& port);

// `path` if it is given, else the pod's, else $KUBECONFIG, else ~/.kube/config.
StatusOr<Config> FindConfig(const std::string& path, const std::string& context);

}  // namespace shirabe::kube
