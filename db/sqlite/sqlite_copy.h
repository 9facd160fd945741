// The copy of an SQLite file that is made before its schema is changed, so that the program which
// wrote it can go on with it. Called by db/sqlite/sqlite_schema while it holds the lock for
// writing, so that nothing is committed between copy and change, and no one else makes one.
#pragma once

#include <cstdint>
#include <string>

#include "db/sqlite/sqlite.h"

namespace shirabe::db {

// Makes PATH.schema-VERSION, or PATH.schema-VERSION-2 and so on if that is there, readable by its
// owner alone and on the disk when this returns; its path. What is committed is in it, and nothing
// else. kResourceExhausted, saying how much room it needs, if there is none: then nothing is left
// of it.
StatusOr<std::string> CopyBeforeMigration(const SqliteConnection& db, int64_t version);

}  // namespace shirabe::db
