// Leases in the SQLite store, and what only their holders may remove: see sqlite_commit.h.
#include "absl/time/time.h"
#include "base/timestamp.h"
#include "db/commit_rules.h"
#include "db/sqlite/sqlite_commit.h"
#include "db/sqlite/sqlite_reader.h"

namespace shirabe::db {
namespace {

constexpr absl::Duration kHolderRetention = absl::Hours(24);

}  // namespace

Status SaveLease(const v1::Lease& lease, int64_t id, SqliteConnection* db) {
  return db->Prepare("UPDATE name SET epoch = ?, holder = ?, expiry = ? WHERE id = ?")
      .Bind(lease.epoch())
      .Bind(lease.holder())
      .Bind(absl::ToUnixNanos(FromProto(lease.expiry())))
      .Bind(id)
      .Run();
}

StatusOr<v1::Lease> AcquireLease(const LeaseRequest& request, WriteSession* session) {
  ASSIGN_OR_RETURN(const NameRow name, FindName(request.experiment, session->db));
  if (name.revision == 0) return NoExperiment(request.experiment);
  ASSIGN_OR_RETURN(v1::Lease lease, GrantLease(request, name.lease));
  RETURN_IF_ERROR(SaveLease(lease, name.id, session->db));
  return lease;
}

// The tables with many rows, the largest first. Trials are numbered without gaps, also if we stop
// half way.
StatusOr<bool> RemoveRows(const LeaseClaim& claim, int64_t most, WriteSession* session) {
  constexpr const char* kRemovals[] = {
      "DELETE FROM observation WHERE (experiment, trial, attempt, step, metric) IN"
      " (SELECT experiment, trial, attempt, step, metric FROM observation"
      " WHERE experiment = ?1 LIMIT ?2)",
      "DELETE FROM event WHERE (experiment, id) IN"
      " (SELECT experiment, id FROM event WHERE experiment = ?1 LIMIT ?2)",
      "DELETE FROM checkpoint WHERE (experiment, trial, attempt, step) IN"
      " (SELECT experiment, trial, attempt, step FROM checkpoint WHERE experiment = ?1 LIMIT ?2)",
      "DELETE FROM attempt WHERE rowid IN"
      " (SELECT rowid FROM attempt WHERE experiment = ?1 ORDER BY trial DESC LIMIT ?2)",
      "DELETE FROM trial WHERE rowid IN"
      " (SELECT rowid FROM trial WHERE experiment = ?1 ORDER BY number DESC LIMIT ?2)",
  };
  ASSIGN_OR_RETURN(const NameRow name, FindName(claim.experiment, session->db));
  if (name.revision == 0) return NoExperiment(claim.experiment);
  RETURN_IF_ERROR(CheckClaim(claim, name.lease));
  int64_t left = most;
  for (const char* sql : kRemovals) {
    RETURN_IF_ERROR(session->db->Prepare(sql).Bind(name.id).Bind(left).Run());
    left -= session->db->changes();
    if (left <= 0) return true;
  }
  return false;
}

Status RenewLeases(const LeaseRenewal& renewal, WriteSession* session) {
  // Those of processes that ended long ago.
  RETURN_IF_ERROR(session->db
                      ->Prepare("DELETE FROM name WHERE namespace = '' AND name >= 'holder:'"
                                " AND name < 'holder;' AND expiry < ?")
                      .Bind(absl::ToUnixNanos(renewal.now - kHolderRetention))
                      .Run());
  return session->db
      ->Prepare(
          "INSERT INTO name(namespace, name, expiry) VALUES ('', 'holder:' || ?, ?)"
          " ON CONFLICT (namespace, name) DO UPDATE SET expiry = excluded.expiry")
      .Bind(renewal.holder)
      .Bind(absl::ToUnixNanos(renewal.now + renewal.ttl))
      .Run();
}

Status ReleaseLeases(const std::vector<LeaseClaim>& claims, WriteSession* session) {
  for (const LeaseClaim& claim : claims) {
    RETURN_IF_ERROR(session->db
                        ->Prepare("UPDATE name SET holder = '', expiry = 0"
                                  " WHERE namespace = ? AND name = ? AND epoch = ?")
                        .Bind(claim.experiment.ns)
                        .Bind(claim.experiment.name)
                        .Bind(claim.epoch)
                        .Run());
  }
  return absl::OkStatus();
}

}  // namespace shirabe::db
