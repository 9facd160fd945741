// The address of a PostgreSQL database: what libpq understands, as a URI or as keywords and values,
// with what the store adds to it (PostgresAddress); and libpq itself (PostgresLibrary). An address
// is made once when a store is opened, then only read.
//
// The options hold the password if the address does; `shown` never does, and is the only form that
// messages and logs may use. What the address leaves out comes from libpq's usual places when a
// connection is made: PGHOST and its like, the service file, ~/.pgpass.
#pragma once

#include <libpq-fe.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"

// One line for each function that is used: an entry in the table below and a name to look up.
#define SHIRABE_LIBPQ_FUNCTIONS(F) \
  F(PQclear)                       \
  F(PQconnectPoll)                 \
  F(PQconnectStartParams)          \
  F(PQconninfoFree)                \
  F(PQconninfoParse)               \
  F(PQconsumeInput)                \
  F(PQenterPipelineMode)           \
  F(PQerrorMessage)                \
  F(PQexitPipelineMode)            \
  F(PQfinish)                      \
  F(PQflush)                       \
  F(PQfreemem)                     \
  F(PQgetResult)                   \
  F(PQgetisnull)                   \
  F(PQgetlength)                   \
  F(PQgetvalue)                    \
  F(PQisBusy)                      \
  F(PQnotifies)                    \
  F(PQntuples)                     \
  F(PQpipelineSync)                \
  F(PQresultErrorField)            \
  F(PQresultErrorMessage)          \
  F(PQresultStatus)                \
  F(PQsendPrepare)                 \
  F(PQsendQuery)                   \
  F(PQsendQueryPrepared)           \
  F(PQserverVersion)               \
  F(PQsetErrorVerbosity)           \
  F(PQsetNoticeProcessor)          \
  F(PQsetnonblocking)              \
  F(PQsocket)                      \
  F(PQstatus)

namespace shirabe::db {

// libpq, PostgreSQL's own client library, loaded when the first address of a PostgreSQL is opened.
// It brings twenty other libraries (TLS, Kerberos, LDAP) that exist as shared ones only; linked,
// they would cost every start of the program several milliseconds, also of those who keep their
// records in SQLite. Used by db/postgres/*.cc only; a loaded library stays for good. Thread-safe.
//
// The members are libpq's functions under their own names, as documented in PostgreSQL's manual.
struct PostgresLibrary {
#define SHIRABE_LIBPQ_MEMBER(name) decltype(&::name) name = nullptr;
  SHIRABE_LIBPQ_FUNCTIONS(SHIRABE_LIBPQ_MEMBER)
#undef SHIRABE_LIBPQ_MEMBER
};

// kUnimplemented, naming the Debian package, if this machine has no libpq.
StatusOr<const PostgresLibrary*> LoadPostgresLibrary();

// The same from a file of another name; for tests. Not kept.
StatusOr<PostgresLibrary> LoadPostgresLibraryFrom(const char* file);

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
