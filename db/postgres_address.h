// The address of a PostgreSQL database: what libpq understands, as a URI or as keywords and
// values, with what the store adds to it. Made once when a store is opened, then only read.
//
// The options hold the password if the address does; `shown` never does, and is the only form that
// messages and logs may use. What the address leaves out comes from libpq's usual places when a
// connection is made: PGHOST and its like, the service file, ~/.pgpass.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"
#include "db/postgres_library.h"

namespace shirabe::db {

struct PostgresAddress {
  std::vector<std::pair<std::string, std::string>> options{};  // keyword and value
  std::string shown{};                                         // postgres://user@host:port/db
  absl::Duration patience = absl::Seconds(3);                  // with a server that does not answer
};

// `address` is what follows "postgres:", that is "//user@host/db?…" or "host=… dbname=…".
// kInvalidArgument, without any part that could be a password, if it is neither.
StatusOr<PostgresAddress> ParsePostgresAddress(const PostgresLibrary& pq,
                                               const std::string& address);

}  // namespace shirabe::db
