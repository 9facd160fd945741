// The exchanges of a client with its API server, over net/http_client.h: says who we are, and tries
// again what may be tried again (see kube/api_client.h). Called by kube/api_client.cc. Thread-safe;
// calls block.
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/rng.h"
#include "kube/cluster_config.h"
#include "kube/credentials.h"
#include "kube/resource_path.h"
#include "net/http_client.h"

namespace shirabe::kube {

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
