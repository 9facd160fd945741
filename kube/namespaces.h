// Which namespace a name is now: its uid. A name may be given to another one later; what was of the
// one before is then nobody's. Asked of the API server, and believed for seconds; while nobody can
// be asked, what was known last stands. Thread-safe; a call may block for as long as a Get does.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "kube/client.h"

namespace shirabe::kube {

class Namespaces {
 public:
  // Both outlive it. The client is best one that is not patient.
  Namespaces(Client* client, Clock* clock) : client_(client), clock_(clock) {}

  // kNotFound: there is none of this name. Anything else: nobody can say, or we may not ask.
  StatusOr<std::string> Uid(const std::string& name);

 private:
  struct Entry {
    StatusOr<std::string> answer = absl::UnavailableError("not asked yet");
    absl::Duration until = -absl::InfiniteDuration();  // monotonic
    bool asking = false;
  };

  Client* const client_;
  Clock* const clock_;
  std::mutex mutex_;
  std::map<std::string, Entry> entries_;  // guarded by mutex_
};

}  // namespace shirabe::kube
