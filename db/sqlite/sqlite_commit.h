// The writes of the SQLite store, as work for db/sqlite/sqlite_writer: each function runs inside a
// transaction, on the writer's thread, and writes nothing that counts unless it succeeds.
#pragma once

#include <vector>

#include "db/bulk_leases.h"
#include "db/sqlite/sqlite_writer.h"

namespace shirabe::db {

// The batch has passed ValidateBatch. Returns the revision of the Commit.
StatusOr<int64_t> CommitBatch(const Batch& batch, WriteSession* session);
// Of the name with this id.
Status SaveLease(const v1::Lease& lease, int64_t id, SqliteConnection* db);
StatusOr<v1::Lease> AcquireLease(const LeaseRequest& request, WriteSession* session);
StatusOr<bool> RemoveRows(const LeaseClaim& claim, int64_t most, WriteSession* session);
Status RenewLeases(const LeaseRenewal& renewal, WriteSession* session);
Status ReleaseLeases(const std::vector<LeaseClaim>& claims, WriteSession* session);

}  // namespace shirabe::db
