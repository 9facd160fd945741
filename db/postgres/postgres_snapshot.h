// The PostgreSQL store as it was at one moment: a transaction that reads only, under REPEATABLE
// READ, on a connection of its own. Made by db/postgres/postgres_store.
#pragma once

#include <memory>
#include <vector>

#include "db/maintenance.h"
#include "db/postgres/postgres_connection.h"

namespace shirabe::db {

// Every name that was ever used, with its lease, as the connection sees them now.
StatusOr<std::vector<v1::Lease>> ListNames(PostgresConnection* db);

StatusOr<std::unique_ptr<Snapshot>> TakePostgresSnapshot(std::unique_ptr<PostgresConnection> db);

// As Maintenance says.
Status RemoveObservations(const Maintenance::Removal& removal, PostgresConnection* db);

// The statements of all of them, for tests.
std::vector<PostgresStatement> PostgresSnapshotStatements();

}  // namespace shirabe::db
