// What every store refuses when all of it is loaded, or rows of a trial are removed: the rules of
// db/maintenance.h as pure functions, as db/commit_rules.h has those of a commit. Called by the
// stores only; safe from any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "db/maintenance.h"
#include "db/schedules.h"

namespace shirabe::db {

// Before anything is written: `names` are all that the store has, of which `experiments` have an
// experiment. kAlreadyExists if it must be empty and is not, or if someone may still write what is
// to be replaced.
Status CheckLoad(const LoadOptions& options, const std::vector<v1::Lease>& names,
                 int64_t experiments);

// A schedule as it is written: beside no other of its name.
ScheduleWrite LoadedSchedule(const v1::ScheduledExperiment& schedule);

// A name's lease once its experiment was loaded: held by none, and past every epoch that any owner
// of that name can have had.
v1::Lease LeaseAfterLoad(v1::Lease lease, int64_t loaded_epoch);

// kAborted or kFailedPrecondition unless the rows of this trial, as it is now, may be removed.
Status CheckRemovable(const Maintenance::Removal& removal, const Versioned<v1::Trial>& trial);

}  // namespace shirabe::db
