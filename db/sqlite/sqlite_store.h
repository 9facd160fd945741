// The store in one SQLite file, to be shared by several processes of one machine. Most callers say
// db::Open("sqlite:PATH"); this header is for tests and tools that need other options.
#pragma once

#include <memory>

#include "db/sqlite/sqlite_file.h"
#include "db/store.h"

namespace shirabe::db {

// Creates the file and its folder, unless `read_only`. See db/store.h for errors.
StatusOr<std::unique_ptr<Store>> OpenSqlite(const SqliteOptions& options);

}  // namespace shirabe::db
