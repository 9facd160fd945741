// The clock, the only way to read the time. Everything that waits or stamps takes a Clock, so that
// simulations run on a ManualClock. Thread-safe.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "base/mutex.h"
#include "base/timestamp.h"

namespace shirabe {

class Clock {
 public:
  virtual ~Clock() = default;
  // Wall-clock time; may step back when the machine's clock is set.
  virtual absl::Time Now() = 0;
  // Time since an arbitrary start; never steps back. For durations and time-outs.
  virtual absl::Duration Monotonic() = 0;
};

// Lets real time pass, in this thread. For what nothing can wake.
void Pause(absl::Duration time);

// The machine's clock; lives as long as the process.
Clock* RealClock();

// A clock that only moves when told to.
class ManualClock : public Clock {
 public:
  explicit ManualClock(absl::Time start = absl::FromUnixSeconds(1'700'000'000)) : now_(start) {}
  absl::Time Now() override;
  absl::Duration Monotonic() override;
  // Both clocks go on by `step`, which must not be negative.
  void Advance(absl::Duration step);
  // The wall clock alone is set, as by an administrator.
  void StepWallClock(absl::Duration step);

 private:
  Mutex mutex_;
  absl::Time now_ ABSL_GUARDED_BY(mutex_);
  absl::Duration monotonic_ ABSL_GUARDED_BY(mutex_) = absl::ZeroDuration();
};

}  // namespace shirabe
