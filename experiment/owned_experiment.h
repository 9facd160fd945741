// What the controller keeps of an experiment that it owns, beside what the reconciler does. Data,
// guarded by the controller's mutex.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace shirabe::experiment {

struct OwnedExperiment {
  int64_t epoch = 0;
  int64_t since = 0;     // which renewal of all leases came before it
  bool running = false;  // a worker has it
  bool again = false;    // something happened meanwhile
  bool recheck = false;  // where attempts run, something changed
  bool suspended = false;
  bool ended = false;
  bool deleted = false;  // one that is made again under its name must be owned again
  bool idle = false;
  int failures = 0;  // errors in a row
  Status lost = {};  // not OK: the lease is gone, with the reason
  std::string last_error = {};
};

// Whether its Await returns.
inline bool CanReturn(const OwnedExperiment& entry) {
  return entry.ended || !entry.lost.ok() || (entry.suspended && entry.idle);
}

}  // namespace shirabe::experiment
