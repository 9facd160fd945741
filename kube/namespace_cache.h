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
#include "kube/api_client.h"

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

}  // namespace shirabe::kube
