// The exchanges of a client with its API server, over net/http_client.h: says who we are, and tries
// again what may be tried again (see kube/api_client.h). Called by kube/api_client.cc. Thread-safe;
// calls block.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/rng.h"
#include "kube/credentials.h"
#include "kube/resource_path.h"
#include "net/http_client.h"

namespace shirabe::kube {

// How often an API server was asked, and what it answered: what /metrics says of a controller's
// load on its cluster. One RequestMetrics counts for all clients that are given it, and outlives
// them. Every try counts, as it does for the server. Thread-safe.
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

using net::BodyCallback;
using net::HttpRequest;
using net::HttpResponse;

enum class Idempotency {
  kIdempotent,  // doing it twice is doing it once
  kNotIdempotent,
};

class Transport {
 public:
  // Of a configuration that is good; Create asks.
  Transport(const Config& config, Endpoint endpoint, Clock* clock, const ClientOptions& options);
  // kInvalidArgument for a configuration that cannot work; kUnimplemented if there is no libcurl.
  static StatusOr<std::unique_ptr<Transport>> Create(const Config& config, Clock* clock,
                                                     const ClientOptions& options);

  struct Reply {
    HttpResponse answer;  // whatever the server said at last
    // An earlier try may have been done although its answer was lost.
    bool maybe_applied = false;
  };
  // An error only if no answer came.
  StatusOr<Reply> Call(const HttpRequest& request, Idempotency repeat);

  // A long answer, told as it comes, over a connection of its own. Tried once.
  StatusOr<HttpResponse> Stream(const HttpRequest& request, absl::Duration silence,
                                const BodyCallback& sink, std::stop_token stop);

 private:
  // How one try is made.
  struct Try {
    net::HttpLimits limits;
    const BodyCallback* sink = nullptr;
    std::stop_token stop = {};
  };

  net::HttpExchange Once(const HttpRequest& request, const Try& attempt);
  net::HttpExchange OnceAs(const HttpRequest& request, const Credential& credential,
                           const Try& attempt);
  void Count(const HttpRequest& request, const net::HttpExchange& exchange);
  absl::Duration BackoffDelay(int tried, const HttpResponse& answer);

  const Config config_;
  Clock* const clock_;
  const ClientOptions options_;
  const Endpoint endpoint_;
  Credentials credentials_;
  std::unique_ptr<net::HttpClient> http_;  // set by Create

  Mutex mutex_;
  Rng rng_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shirabe::kube
