// The SQLite store as it was at one moment: a read transaction that stays open, on a connection of
// its own. Made by db/sqlite/sqlite_store. While it lives, the log beside the file keeps growing.
#pragma once

#include <memory>
#include <vector>

#include "db/maintenance.h"
#include "db/sqlite/sqlite.h"
#include "db/sqlite/sqlite_writer.h"

namespace shirabe::db {

// Every name that was ever used, with its lease, as the connection sees them now.
StatusOr<std::vector<v1::Lease>> ListNames(SqliteConnection* db);

StatusOr<std::unique_ptr<Snapshot>> TakeSqliteSnapshot(std::unique_ptr<SqliteConnection> db);

// All of an SQLite store loaded, and rows removed, as work for db/sqlite/sqlite_writer: inside a
// transaction, on the writer's thread, and nothing that counts unless it succeeds. The contracts
// are those of db/maintenance.h. Called by db/sqlite/sqlite_store.

StatusOr<int64_t> LoadParts(const LoadOptions& options, const LoadSource& source,
                            WriteSession* session);
Status RemoveObservations(const Maintenance::Removal& removal, WriteSession* session);

}  // namespace shirabe::db
