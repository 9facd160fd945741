// The SQLite store as it was at one moment: a read transaction that stays open, on a connection of
// its own. Made by db/sqlite/sqlite_store. While it lives, the log beside the file keeps growing.
#pragma once

#include <memory>

#include "db/maintenance.h"
#include "db/sqlite/sqlite.h"

namespace shirabe::db {

// Every name that was ever used, with its lease, as the connection sees them now.
StatusOr<std::vector<v1::Lease>> ListNames(SqliteConnection* db);

StatusOr<std::unique_ptr<Snapshot>> TakeSqliteSnapshot(std::unique_ptr<SqliteConnection> db);

}  // namespace shirabe::db
