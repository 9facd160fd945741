// All of an SQLite store loaded, and rows removed, as work for db/sqlite/sqlite_writer: inside a
// transaction, on the writer's thread, and nothing that counts unless it succeeds. The contracts
// are those of db/maintenance.h. Called by db/sqlite/sqlite_store.
#pragma once

#include <vector>

#include "db/maintenance.h"
#include "db/sqlite/sqlite_writer.h"

namespace shirabe::db {

StatusOr<int64_t> LoadParts(const LoadOptions& options, const LoadSource& source,
                            WriteSession* session);
Status RemoveObservations(const Maintenance::Removal& removal, WriteSession* session);

}  // namespace shirabe::db
