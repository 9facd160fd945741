// The uid of the namespace that has a name now. A name may be given to another one later; what was
// of the one before then belongs to none. Asked of the API server, and believed for seconds; while
// that cannot be asked, what was known last stands. Thread-safe; a call may block for as long as a
// Get does.
#pragma once

#include <map>
#include <string>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/rate_limits.h"
#include "kube/api_client.h"
#include "kube/ttl_cache.h"

namespace shirabe::kube {

class NamespaceCache {
 public:
  // Both outlive it. The client is best one that is not patient.
  NamespaceCache(Client* client, Clock* clock) : client_(client), clock_(clock) {}

  // kNotFound: there is none of this name. Anything else: it cannot be known, or we may not ask.
  StatusOr<std::string> Uid(const std::string& name);

 private:
  struct Entry {
    StatusOr<std::string> answer = absl::UnavailableError("not asked yet");
    absl::Duration until = -absl::InfiniteDuration();  // monotonic
    bool asking = false;
  };

  Client* const client_;
  Clock* const clock_;
  Mutex mutex_;
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

// Which namespace a caller without a token is of, by the address that it calls from: that of the
// one pod that has this address. Asked of the API server and kept for seconds, since addresses are
// given out again. Pods of a node's own network share its address with whatever else runs there,
// so they are of no namespace. Made by the controller. Thread-safe; calls block.
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
