// The options of a client (ClientOptions), and its counts (RequestMetrics): how often an API server
// was asked, and what it answered: what /metrics says of a controller's load on its cluster. One
// RequestMetrics counts for all clients that are given it, and outlives them. Every try counts, as
// it does for the server. Thread-safe.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "base/mutex.h"

namespace shirabe::kube {

struct RequestKind {
  std::string verb;      // get, list, watch, create, apply, patch, delete
  std::string resource;  // pods, trials/status; "" for what is no resource: /version
  std::string code;      // of HTTP; "none" if there was no answer
  auto operator<=>(const RequestKind&) const = default;
};

// In Kubernetes' words; the code is left empty. Pure.
RequestKind ClassifyRequest(const std::string& method, const std::string& target,
                            const std::string& content_type);

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
