// What the controller keeps of an experiment that it owns, beside what the reconciler does. Data,
// guarded by the controller's mutex.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace shirabe::experiment {

// The state of one owned experiment in the queue.
struct Entry {
  int64_t epoch = 0;
  int64_t since = 0;     // which renewal of all leases came before it
  bool running = false;  // a worker has it
  bool again = false;    // something happened meanwhile
  bool recheck = false;  // where attempts run, something changed
  bool suspended = false;
  bool ended = false;
  bool deleted = false;  // one that is made anew under its name must be owned anew
  bool idle = false;
  int failures = 0;  // errors in a row
  Status lost = {};  // not OK: the lease is gone, with the reason
  std::string trouble = {};
};

// Whether its Await returns.
inline bool IsOver(const Entry& entry) {
  return entry.ended || !entry.lost.ok() || (entry.suspended && entry.idle);
}

}  // namespace shirabe::experiment
