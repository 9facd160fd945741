#include "base/clock.h"

#include "absl/time/clock.h"

#include <ctime>
#include <memory>

#include "base/status.h"

namespace shirabe {
namespace {

class SystemClock : public Clock {
 public:
  absl::Time Now() override { return absl::Now(); }
  absl::Duration Monotonic() override {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return absl::Seconds(now.tv_sec) + absl::Nanoseconds(now.tv_nsec);
  }
};

}  // namespace

void Pause(absl::Duration time) { absl::SleepFor(time); }

Clock* RealClock() {
  // Never destroyed: a thread may outlive main.
  static SystemClock* const clock = std::make_unique<SystemClock>().release();
  return clock;
}

absl::Time ManualClock::Now() {
  const MutexLock lock(mutex_);
  return now_;
}

absl::Duration ManualClock::Monotonic() {
  const MutexLock lock(mutex_);
  return monotonic_;
}

void ManualClock::Advance(absl::Duration step) {
  CHECK(step >= absl::ZeroDuration());
  const MutexLock lock(mutex_);
  now_ += step;
  monotonic_ += step;
}

void ManualClock::StepWallClock(absl::Duration step) {
  const MutexLock lock(mutex_);
  now_ += step;
}

}  // namespace shirabe
