// One transaction of the PostgreSQL store, for any number of Commits and lease requests at once, in
// two round trips: lock and read, then write and COMMIT. Called by db/postgres/postgres_writer on
// its thread.
//
// Revisions must be in commit order: a reader that has seen revision 8 must never find a 7 later. A
// sequence does not give that, for its numbers are taken long before they commit. So the one row of
// shirabe.store is the lock: it is locked FOR UPDATE before anything else, and holds the last
// revision. Transactions that write thus follow each other, also those of other servers, and what
// the first round trip reads stays true until the end; no check can be overtaken, and there are no
// deadlocks. The price, one fsync after the other, is paid once for all Commits that are waiting.
//
// A session of a writer has a random number, and its transactions are counted in the table
// `writer`. When a connection breaks after COMMIT was sent, that row tells whether it took effect.
// (PostgreSQL's own transaction ids would not do: after a crash they can be given out again.)
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "db/bulk_leases.h"
#include "db/maintenance.h"
#include "db/postgres/postgres_connection.h"
#include "db/schedules.h"

namespace shirabe::db {

// One write, by what it is; the others are null. `status` and the answer are filled in.
struct PostgresRequest {
  const Batch* batch = nullptr;  // has passed ValidateBatch
  const LeaseRequest* acquire = nullptr;
  const LeaseRenewal* renew = nullptr;
  const LeaseClaim* remove = nullptr;  // rows of its experiment, so many of a table
  int64_t most = 0;
  const std::vector<LeaseClaim>* release = nullptr;
  const ScheduleWrite* schedule = nullptr;  // has passed ValidateScheduleWrite
  Status status{};
  int64_t revision = 0;
  v1::Lease lease{};
};

struct PostgresSession {
  std::unique_ptr<PostgresConnection> db;
  int64_t id = 0;                                    // at random
  int64_t sequence = 0;                              // of the last COMMIT sent
  std::unordered_map<std::string, int64_t> metrics;  // ids known
  int64_t version = 0;                               // of the schema
};

int64_t RandomSessionId();

// Each request is accepted, and written, or refused in its `status`. The status returned is the
// transaction's: if it is not OK nothing of it was written, unless the connection was lost and
// session->sequence has grown, in which case it is not known.
Status WriteTogether(const std::vector<PostgresRequest*>& requests, PostgresSession* session);

// As Maintenance::Load, in one transaction of a session that nothing else uses. If the connection
// breaks at its COMMIT, it is not known whether it took effect.
StatusOr<int64_t> LoadParts(const LoadOptions& options, const LoadSource& source,
                            PostgresSession* session);

// Whether transaction `sequence` of the session `id` took effect. Waits until it is certain.
StatusOr<bool> WasCommitted(int64_t id, int64_t sequence, PostgresConnection* db);

// Removes the rows of sessions that ended long ago.
Status ForgetOldWriters(PostgresConnection* db);

}  // namespace shirabe::db
