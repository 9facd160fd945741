// The exchanges of a client: keeps a few connections open, says who we are, and tries again what
// may be tried again (see kube/api_client.h). Called by kube/api_client.cc. Thread-safe; calls
// block.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/rng.h"
#include "kube/client_options.h"
#include "kube/credentials.h"
#include "kube/http_stream.h"

namespace shirabe::kube {

enum class Idempotency {
  kIdempotent,  // doing it twice is doing it once
  kNotIdempotent,
};

class Transport {
 public:
  // Of a configuration that is good; Create asks.
  Transport(const Config& config, Endpoint endpoint, Clock* clock, const ClientOptions& options);
  // kInvalidArgument for a configuration that cannot work.
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
  // Of one call: which connection, and what it may take.
  struct Try {
    Timeouts waits;
    const BodyCallback* sink = nullptr;
    std::stop_token stop = {};
  };
  struct Idle {
    std::unique_ptr<HttpStream> connection;
    absl::Duration since;
  };
  using TlsPtr = std::shared_ptr<boost::asio::ssl::context>;  // shared: see MakeTls in the .cc

  Exchange Once(const HttpRequest& request, const Try& attempt);
  void Count(const HttpRequest& request, const Exchange& exchange);
  Exchange OnceAs(HttpRequest request, const Credential& credential, const Try& attempt);
  // A connection that stands, or null.
  std::unique_ptr<HttpStream> PopIdle();
  void Keep(std::unique_ptr<HttpStream> connection, const TlsPtr& made_with);
  StatusOr<TlsPtr> TlsFor(const Credential& credential);
  absl::Duration BackoffDelay(int tried, const HttpResponse& answer);

  const Config config_;
  Clock* const clock_;
  const ClientOptions options_;
  const Endpoint endpoint_;
  Credentials credentials_;

  std::mutex mutex_;
  std::vector<Idle> idle_;
  TlsPtr tls_;               // null without TLS
  std::string certificate_;  // that tls_ was made with
  Rng rng_;
};

}  // namespace shirabe::kube
