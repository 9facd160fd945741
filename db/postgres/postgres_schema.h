// The tables of the PostgreSQL store, all in the schema "shirabe" of its database, and how older
// ones become newer ones. Called once when a store is opened. The list of steps is the history: a
// released step never changes, a new one is appended. Without state, safe from any thread (on
// different connections) and from several servers that start at once.
//
// The database says what it is in the one row of shirabe.store: its version is the number of steps
// it has been through. A server that changes the tables holds an advisory lock meanwhile, since
// there is nothing else to lock before the first of them exists.
#pragma once

#include <string>
#include <vector>

#include "db/postgres/postgres_connection.h"

namespace shirabe::db {

// Step i, as SQL, takes a database from version i to i + 1.
using PostgresSteps = std::vector<std::string>;
const PostgresSteps& CurrentPostgresSchema();

// Brings the database to the newest version, in one transaction; for a store that is read only it
// only checks. kUnimplemented if the tables are newer than this program, kInvalidArgument if the
// schema is another program's, kFailedPrecondition if they are older and must not be migrated now,
// kNotFound if there are none and must be none.
Status PreparePostgresSchema(PostgresConnection* db, const PostgresSteps& steps);

// kUnimplemented unless the database still has `version`, as read in a transaction that writes: a
// newer program may have migrated it since.
Status CheckPostgresVersion(const PostgresConnection& db, int64_t found, int64_t version);

}  // namespace shirabe::db
