// The store in a PostgreSQL database, to be shared by any number of servers. Most callers say
// db::Open("postgres://…"); this header is for tests and tools that need other options. A proxy in
// between must leave sessions whole: statements are prepared, and changes come by LISTEN.
#pragma once

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "db/postgres/postgres_schema.h"
#include "db/store.h"

namespace shirabe::db {

struct PostgresStoreOptions {
  std::string address;  // after "postgres:"
  bool read_only = false;
  // With a server that is away: how long a read or a write tries before it says kUnavailable, and
  // how long a write whose COMMIT may have taken effect tries to learn whether it did.
  absl::Duration patience = absl::Seconds(3);
  absl::Duration resolve_timeout = absl::Seconds(30);
  PostgresSteps schema = CurrentPostgresSchema();
};

// Creates the tables unless `read_only`; the database itself must exist. See db/store.h for errors.
StatusOr<std::unique_ptr<Store>> OpenPostgres(const PostgresStoreOptions& options);

// Names, to StoreInfo::scratch, a throw-away server on which databases may be created: an address
// as after "postgres:".
inline constexpr char kScratchServer[] = "SHIRABE_TEST_POSTGRES";

}  // namespace shirabe::db
