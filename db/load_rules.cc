#include "db/load_rules.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/timestamp.h"
#include "db/commit_rules.h"

namespace shirabe::db {

Status CheckLoad(const LoadOptions& options, const std::vector<v1::Lease>& names,
                 int64_t experiments) {
  if (options.mode == LoadOptions::Mode::kIntoEmpty && experiments > 0) {
    return absl::AlreadyExistsError(absl::StrCat("the database has ", experiments,
                                                 " experiments already: nothing was written"));
  }
  if (options.mode != LoadOptions::Mode::kReplace) return absl::OkStatus();
  for (const v1::Lease& lease : names) {
    if (lease.holder().empty() || !options.is_held || !options.is_held(lease)) continue;
    return absl::AlreadyExistsError(absl::StrCat(
        "experiment ", ToString(ExperimentKeyOf(lease)), " is run by \"", lease.holder(),
        "\" until ", FormatTime(lease.expiry()), ": stop that process first; nothing was written"));
  }
  return absl::OkStatus();
}

ScheduleWrite LoadedSchedule(const v1::ScheduledExperiment& schedule) {
  const v1::ObjectMeta& metadata = schedule.metadata();
  return {.key = {metadata.namespace_(), metadata.name()}, .put = schedule};
}

v1::Lease LeaseAfterLoad(v1::Lease lease, int64_t loaded_epoch) {
  lease.set_epoch(std::max(lease.epoch(), loaded_epoch));
  return LeaseAfterDeletion(std::move(lease));
}

Status CheckRemovable(const Maintenance::Removal& removal, const Versioned<v1::Trial>& trial) {
  if (IsLive(trial.record)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "trial ", TrialName(removal.trial), " has not ended: its observations are still needed"));
  }
  if (trial.revision == removal.revision) return absl::OkStatus();
  return Conflict(Describe(trial.record), removal.revision, trial.revision);
}

}  // namespace shirabe::db
