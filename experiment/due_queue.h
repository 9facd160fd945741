// The experiments that wait for their next pass, in the order in which these are due. Each is in it
// at most once. Of the controller; not thread-safe.
#pragma once

#include <map>
#include <set>
#include <utility>

#include "absl/time/time.h"
#include "base/names.h"

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
  ExperimentKey Take() {
    const ExperimentKey key = order_.begin()->second;
    Remove(key);
    return key;
  }

 private:
  std::map<ExperimentKey, absl::Duration> due_;
  std::set<std::pair<absl::Duration, ExperimentKey>> order_;
};

}  // namespace shirabe::experiment
