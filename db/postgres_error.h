// What PostgreSQL's error codes (SQLSTATE) mean in the words of db/store.h. Pure functions, called
// by db/postgres_*.cc; safe from any thread.
#pragma once

#include <string>

#include "base/status.h"

namespace shirabe::db {

// What the server said; an empty code stands for a connection that broke before it said anything.
struct PostgresError {
  std::string state{};    // five characters, such as 53100
  std::string message{};  // the first line of it
};

// `database` is the address as it may be shown.
Status StatusOf(const PostgresError& error, const std::string& database);

// Whether the same transaction may succeed if it is simply made again: it was in another's way.
bool IsTransient(const PostgresError& error);

// Whether it makes sense to connect again in a moment: the server is gone, starting, stopping, or
// has ended this session. A wrong password stays wrong.
bool IsConnectionLost(const PostgresError& error);

// A connection could not be made: from libpq's message in its verbose form, which is the only
// place where the code is then found.
PostgresError ParseConnectError(const std::string& message);

}  // namespace shirabe::db
