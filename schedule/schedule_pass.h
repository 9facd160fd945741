// One pass of a schedule over the store, and the start that a user wants at once: what
// schedule_records.cc is made of. Functions without state; what is written depends on the revision
// that was read.
#pragma once

#include <functional>
#include <string>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status.h"
#include "db/schedules.h"

namespace shirabe::schedule {

struct RecordsOptions {
  db::Store* store = nullptr;
  Clock* clock = nullptr;
  // Whether the experiment may be stored here; unset = it may. As for one that is submitted.
  std::function<Status(const v1::Experiment&)> check{};
  // The uid of a namespace now, "" where that is not known; and whether one that had this uid is
  // gone. Unset where there is no cluster.
  std::function<std::string(const std::string& ns)> namespace_uid{};
  std::function<bool(const std::string& ns, const std::string& uid)> namespace_gone{};
};

using ScheduleRow = db::Versioned<v1::ScheduledExperiment>;

// When to look again at the latest.
StatusOr<absl::Time> RunPass(const RecordsOptions& options, ScheduleRow row);
// The name of the experiment. kAborted if another write came between, or if there is one of that
// name.
StatusOr<std::string> StartByHand(const RecordsOptions& options, ScheduleRow row,
                                  const v1::Actor& actor);

struct EventText {
  absl::Time time;
  std::string reason;
  std::string message;
  bool warning = false;
  std::string actor{};
};
// The latest kMaxEvents are kept; a warning that is the same as the last is not said again.
void AddEvent(v1::ScheduledExperiment& schedule, const EventText& event);
inline constexpr int kMaxEvents = 20;

}  // namespace shirabe::schedule
