// Which experiments are to be looked at, and when: each at most once in an interval, by one worker
// at a time, however often it is asked for. Thread-safe.
#pragma once

#include <map>
#include <optional>
#include <stop_token>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/delaying_queue.h"
#include "base/mutex.h"
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
  Clock* const clock_;
  const absl::Duration interval_;
  Mutex mutex_;
  CondVar changed_;
  DelayingQueue<ExperimentKey> due_ ABSL_GUARDED_BY(mutex_);  // those that no worker has
  std::map<ExperimentKey, absl::Duration> earliest_ ABSL_GUARDED_BY(mutex_);  // by the interval
  // Those that a worker has, and when they are due again; infinite if they are not.
  std::map<ExperimentKey, absl::Duration> busy_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shirabe::crd
