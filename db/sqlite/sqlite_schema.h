// The schema of the SQLite store, and how older files become newer ones. Called once when a
// database is opened. The table of steps is the schema's history: a released step never changes,
// a new one is appended. Without state, safe from any thread (on different connections).
//
// A file says what it is in two numbers of its header: application_id (ours) and user_version (how
// many steps it has been through). A file with neither and without tables is a new one.
#pragma once

#include <string>
#include <vector>

#include "db/sqlite/sqlite.h"

namespace shirabe::db {

// Step i, as SQL, takes a file from version i to i + 1.
using SchemaSteps = std::vector<std::string>;
const SchemaSteps& CurrentSchema();

// Brings the file to the newest version, all in one transaction, after a copy of one that is older;
// with `read_only` only checks it. What its users should be told of that, in a sentence; "" where
// nothing was changed.
// kUnimplemented if the file is newer than this program, kInvalidArgument if it is the database of
// another program, kFailedPrecondition if it is older and must not be migrated now, kNotFound if
// it is still empty and must stay so, kResourceExhausted if there is no room for the copy.
StatusOr<std::string> PrepareSchema(SqliteConnection* db, const SchemaSteps& steps, bool read_only);

// kUnimplemented if the file no longer has this version: a newer program has migrated it since.
Status CheckUnchanged(SqliteConnection* db, int64_t version);

}  // namespace shirabe::db
