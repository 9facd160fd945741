// The schedules of a store: the records of ScheduledExperiments, beside db/store.h, which has what
// belongs to experiments. Every store of ours has this side; see SchedulesOf. Thread-safe, with the
// errors of db/store.h.
//
// A write names the revision that its writer read, and may create an experiment in the same step:
// both are written, or neither. So of any number of processes that find a start due, one makes it,
// once, wherever they are killed. Revisions of schedules are numbers of their own, greater each
// time, also where a schedule is made again under its name; they make no entry in the feed of
// changes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "db/store.h"
#include "proto/shirabe/v1/schedule.pb.h"

namespace shirabe::db {

struct ScheduleWrite {
  ExperimentKey key{};
  int64_t expected = 0;                          // the revision read; 0 = must not exist
  std::optional<v1::ScheduledExperiment> put{};  // none = it is deleted
  std::optional<Batch> start{};                  // creates an experiment
};

class Schedules {
 public:
  virtual ~Schedules() = default;

  // kNotFound if there is none.
  virtual StatusOr<Versioned<v1::ScheduledExperiment>> GetSchedule(const ExperimentKey& key) = 0;
  // Of one namespace, or of all (""), by namespace and name.
  virtual StatusOr<std::vector<Versioned<v1::ScheduledExperiment>>> ListSchedules(
      const std::string& ns) = 0;
  // All or nothing, durable when it returns. kAborted if the schedule has another revision, or is
  // gone, or if the experiment is there already.
  virtual Status WriteSchedule(const ScheduleWrite& write) = 0;
};

// The same store.
inline Schedules& SchedulesOf(Store& store) {
  auto* const schedules = dynamic_cast<Schedules*>(&store);
  CHECK(schedules != nullptr);
  return *schedules;
}

// What every store refuses, as pure functions, called by the stores only.

// kInvalidArgument for a record of another name, text that is not UTF-8, and a start that creates
// nothing.
Status ValidateScheduleWrite(const ScheduleWrite& write);
// kAborted unless the schedule is at the revision that was read (0 = it is not there).
Status CheckScheduleRevision(const ScheduleWrite& write, int64_t current);
Status NoSchedule(const ExperimentKey& key);

}  // namespace shirabe::db
