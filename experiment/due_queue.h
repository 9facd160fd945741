// The queue of a controller: the experiments that wait for their next pass, in the order in which
// these are due, each at most once; and what the controller keeps of each (Entry). Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "base/names.h"
#include "base/status.h"

namespace shirabe::experiment {

class DueQueue {
 public:
  // Adds it, or moves it to another time.
  void Set(const ExperimentKey& key, absl::Duration due) {
    Remove(key);
    due_[key] = due;
    order_.insert({due, key});
  }
  void Remove(const ExperimentKey& key) {
    const auto found = due_.find(key);
    if (found == due_.end()) return;
    order_.erase({found->second, key});
    due_.erase(found);
  }
  // Infinite if there is none.
  absl::Duration NextDue() const {
    return order_.empty() ? absl::InfiniteDuration() : order_.begin()->first;
  }
  // The first, which is not in it any more; there must be one.
  ExperimentKey Pop() {
    const ExperimentKey key = order_.begin()->second;
    Remove(key);
    return key;
  }

 private:
  std::map<ExperimentKey, absl::Duration> due_;
  std::set<std::pair<absl::Duration, ExperimentKey>> order_;
};

// What the controller keeps of an experiment that it owns, beside what the reconciler does. Data,
// guarded by the controller's mutex.
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
inline bool CanReturn(const Entry& entry) {
  return entry.ended || !entry.lost.ok() || (entry.suspended && entry.idle);
}

}  // namespace shirabe::experiment
