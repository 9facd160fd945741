// Time, the only door to it. Everything that waits or stamps takes a Clock, so that simulations
// run on a ManualClock. Thread-safe.
#pragma once

#include <mutex>
#include <string>

#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"

namespace shirabe {

// Points in time and durations as messages keep them, and as people read them. Pure functions.

// The last second that a timestamp may have, in the year 9999; of Unix time.
inline constexpr double kMaxUnixSeconds = 253402300799;

google::protobuf::Timestamp ToProto(absl::Time time);
absl::Time FromProto(const google::protobuf::Timestamp& time);
google::protobuf::Duration ToProto(absl::Duration duration);  // a finite one
absl::Duration FromProto(const google::protobuf::Duration& duration);
// RFC 3339 in UTC, seconds: 2026-11-21T08:30:00Z. "" for an unset timestamp.
std::string FormatTime(const google::protobuf::Timestamp& time);
// 45s, 2m5s, 12m, 3h20m, 30h, 5d4h, 90d: as precise as a reader of tables needs, like kubectl.
std::string FormatAge(absl::Duration age);

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
  std::mutex mutex_;
  absl::Time now_;
  absl::Duration monotonic_ = absl::ZeroDuration();
};

}  // namespace shirabe
