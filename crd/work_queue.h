// Which experiments are to be looked at, and when: each at most once in an interval, by one worker
// at a time, however often it is asked for. Thread-safe.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/names.h"

namespace shirabe::crd {

class WorkQueue {
 public:
  WorkQueue(Clock* clock, absl::Duration interval) : clock_(clock), interval_(interval) {}

  // It is due after `delay`, or earlier if it already is.
  void Add(const ExperimentKey& key, absl::Duration delay = absl::ZeroDuration());
  // Waits for one that is due and takes it; nullopt once `stop` is asked for. Done must follow.
  std::optional<ExperimentKey> Pop(std::stop_token stop);
  // What was added meanwhile comes an interval later.
  void Done(const ExperimentKey& key);

 private:
  std::map<ExperimentKey, absl::Duration>::iterator Next();

  Clock* const clock_;
  const absl::Duration interval_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<ExperimentKey, absl::Duration> due_;       // monotonic; guarded by mutex_, as are these
  std::map<ExperimentKey, absl::Duration> earliest_;  // by the interval
  std::set<ExperimentKey> busy_;
};

}  // namespace shirabe::crd
