// The store in one SQLite file, to be shared by several processes of one machine. Most callers say
// db::Open("sqlite:PATH"); this header is for tests and tools that need other options.
#pragma once

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "db/sqlite/sqlite_schema.h"
#include "db/store.h"

namespace shirabe::db {

struct SqliteOptions {
  std::string path;
  bool read_only = false;
  absl::Duration patience = absl::Seconds(5);  // with other processes that hold the file
  SchemaSteps schema = CurrentSchema();
};

// Creates the file and its folder, unless `read_only`. See db/store.h for errors.
StatusOr<std::unique_ptr<Store>> OpenSqlite(const SqliteOptions& options);

}  // namespace shirabe::db
