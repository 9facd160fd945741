// Which namespace a caller without a token is of, by the address that it calls from: that of the
// one pod that has this address. Asked of the API server and kept for seconds, since addresses are
// given out again. Pods of a node's own network share its address with whatever else runs there,
// so they are of no namespace. Made by the controller. Thread-safe; calls block.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/rate_limits.h"
#include "kube/api_client.h"
#include "kube/ttl_cache.h"

namespace shirabe::kube {

class PodFinder {
 public:
  // Both outlive it.
  PodFinder(Client* client, Clock* clock);

  // kPermissionDenied for an address that is no running pod's; kUnavailable if the API server
  // cannot be asked, or too many unknown addresses call.
  StatusOr<std::string> NamespaceOf(const std::string& address);

 private:
  StatusOr<std::string> Ask(const std::string& address);

  Client* const client_;
  Clock* const clock_;
  RateLimiter limiter_;
  TtlCache<StatusOr<std::string>> answers_;  // by address
};

}  // namespace shirabe::kube
