// The schedules of a store: made, changed, suspended, deleted; and a pass, which starts what is
// due. Held by the client over the store; its server calls Reconcile for each, again and again.
// Level-based and without memory: any number of processes may do so for one store. What is started
// is stored together with the mark that it was, in one write on the revision that was read: so a
// start is made once, or not yet, wherever a process is killed. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/names.h"
#include "base/status.h"
#include "db/schedules.h"
#include "proto/shirabe/v1/api.pb.h"
#include "schedule/schedule_pass.h"

namespace shirabe::schedule {

// Schedules of one namespace, at most.
inline constexpr size_t kMaxSchedules = 200;

class ScheduleRecords {
 public:
  explicit ScheduleRecords(RecordsOptions options) : options_(std::move(options)) {}

  // kNotFound if there is none, or if its namespace is gone.
  StatusOr<v1::ScheduledExperiment> Get(const ExperimentKey& key) const;
  // Of one namespace, or of all ("").
  StatusOr<std::vector<v1::ScheduledExperiment>> List(const std::string& ns) const;
  // kInvalidArgument with all its mistakes, kAlreadyExists where only a new one is wanted,
  // kResourceExhausted beyond kMaxSchedules. Of its status, createdBy counts: who wants it.
  StatusOr<v1::SubmitReply> Submit(const v1::SubmitScheduleRequest& request) const;
  StatusOr<v1::SteerScheduleReply> Steer(const v1::SteerScheduleRequest& request) const;
  Status Delete(const v1::DeleteScheduleRequest& request) const;

  // One pass: looks at what it has started, and starts what is due. When to look again at the
  // latest; InfiniteFuture if the schedule is not there. kAborted if another process was faster:
  // its next pass is due at once.
  StatusOr<absl::Time> Reconcile(const ExperimentKey& key) const;

 private:
  using Row = db::Versioned<v1::ScheduledExperiment>;

  struct Wanted {
    v1::ScheduledExperiment schedule;  // with defaults, without status
    v1::Actor actor{};
  };

  StatusOr<Row> Read(const ExperimentKey& key) const;
  v1::ScheduledExperiment Changed(v1::ScheduledExperiment schedule, const Wanted& wanted) const;
  v1::ScheduledExperiment Created(const Wanted& wanted) const;
  StatusOr<v1::SubmitReply> TrySubmit(const Wanted& wanted, bool absent) const;
  StatusOr<v1::SteerScheduleReply> TrySuspend(const ExperimentKey& key, bool suspend,
                                              const v1::Actor& actor) const;
  bool IsGone(const v1::ScheduledExperiment& schedule) const;
  Status CheckMayAdd(const std::string& ns) const;
  StatusOr<std::string> StartNow(const ExperimentKey& key, const v1::Actor& actor) const;

  const RecordsOptions options_;
};

}  // namespace shirabe::schedule
