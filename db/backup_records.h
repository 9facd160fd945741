// A store as a sequence of backup records, and back: the same whichever store it is. Used by
// client/store_backup. Functions without state, safe from any thread.
//
// In the sequence a name comes first, then its experiment, if there is one, its trials, attempts,
// checkpoints, observations, events and intents; then the next name. Schedules stand at the end.
#pragma once

#include <functional>

#include "db/maintenance.h"
#include "proto/shirabe/v1/backup.pb.h"

namespace shirabe::db {

// Gives every record of a snapshot, but for header and counts, to `sink`, whose errors end it.
using BackupSink = std::function<Status(const v1::BackupRecord&)>;
Status DumpRecords(Snapshot* snapshot, const BackupSink& sink);

// Records in that order, as the parts of a load; `next` is false at the end. Nothing is believed:
// kInvalidArgument for names that could not be, and for records out of their order; what else is
// wrong with one is refused by the store (db/commit_rules.h).
using BackupSource = std::function<StatusOr<bool>(v1::BackupRecord*)>;
LoadSource PartsOf(BackupSource next);

}  // namespace shirabe::db
