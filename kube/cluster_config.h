// How to reach an API server and who we are there: from a kubeconfig file, or, in a pod, from its
// service account. Read once; the token file alone is read again when it changes, because such
// tokens are rotated. A Config holds secrets: no message and no log line repeats a value of it but
// the server's address. And how patient a client is (ClientOptions), and what it counts
// (RequestMetrics). Data, and functions that read files; any thread.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/mutex.h"
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

// What an API server was asked, and what it answered.
struct RequestKind {
  std::string verb;      // get, list, watch, create, apply, patch, delete
  std::string resource;  // pods, trials/status; "" for what is no resource: /version
  std::string code;      // of HTTP; "none" if there was no answer
  auto operator<=>(const RequestKind&) const = default;
};

// In Kubernetes' words; the code is left empty. Pure.
RequestKind ClassifyRequest(const std::string& method, const std::string& target,
                            const std::string& content_type);

// How often: what /metrics says of a controller's load on its cluster. Counts for all clients that
// are given it, and outlives them. Every try counts, as it does for the server. Thread-safe.
class RequestMetrics {
 public:
  void Add(RequestKind kind);
  std::map<RequestKind, int64_t> All() const;

 private:
  mutable Mutex mutex_;
  std::map<RequestKind, int64_t> counts_ ABSL_GUARDED_BY(mutex_);
};

// How patient a client is. Code that must know soon (kube/leader_election.h) has one of its own.
struct ClientOptions {
  absl::Duration connect = absl::Seconds(10);        // to the server, TLS included
  absl::Duration answer = absl::Seconds(30);         // of one try
  absl::Duration patience = absl::Seconds(60);       // of a call: no try begins later
  absl::Duration backoff = absl::Milliseconds(100);  // before the second try; then doubled
  int tries = 6;
  int page = 500;                        // objects in a page of a list
  RequestMetrics* counts = nullptr;      // of all tries; outlives the client
  std::function<bool()> may_write = {};  // asked before each try of a write; see kUnavailable
  // Writes in a namespace are requested as its ServiceAccount of this name (kube/impersonation.h);
  // "" = as ourselves. Patches of pods are ours all the same: they take off our finalizer, also
  // where a namespace is being deleted, and the account's rights with it, before its pods.
  std::string act_as = {};
};

}  // namespace shirabe::kube
