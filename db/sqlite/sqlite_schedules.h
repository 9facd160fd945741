// The schedules of the SQLite store: reads, each one statement, as in sqlite_reader.h; and the
// write, as work for db/sqlite/sqlite_writer. The contract of each is that of the method of the
// same name in db/schedules.h. Called by db/sqlite/sqlite_store.
#pragma once

#include <string>
#include <vector>

#include "db/schedules.h"
#include "db/sqlite/sqlite.h"
#include "db/sqlite/sqlite_writer.h"

namespace shirabe::db {

StatusOr<Versioned<v1::ScheduledExperiment>> GetSchedule(const ExperimentKey& key,
                                                         SqliteConnection* db);
StatusOr<std::vector<Versioned<v1::ScheduledExperiment>>> ListSchedules(const std::string& ns,
                                                                        SqliteConnection* db);
// The write has passed ValidateScheduleWrite. Returns the store's revision.
StatusOr<int64_t> WriteSchedule(const ScheduleWrite& write, WriteSession* session);

}  // namespace shirabe::db
