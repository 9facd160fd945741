#include "db/postgres/postgres_commit.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/rng.h"
#include "base/timestamp.h"
#include "db/commit_rules.h"
#include "db/load_rules.h"
#include "db/postgres/postgres_schedules.h"
#include "db/postgres/postgres_schema.h"
#include "db/postgres/postgres_snapshot.h"
#include "db/postgres/postgres_state.h"
#include "db/postgres/postgres_statements.h"

namespace shirabe::db {
namespace {

// A program can print a new metric with every line; what we remember of them stays bounded.
constexpr size_t kMaxMetrics = 1 << 16;

constexpr char kLock[] =
    "SELECT version::int8, revision, last_id FROM store WHERE id = 1 FOR UPDATE";
constexpr char kSave[] = "UPDATE store SET revision = $1::int8, last_id = $2::int8 WHERE id = 1";
constexpr char kCount[] =
    "INSERT INTO writer VALUES ($1::int8, $2::int8, now()) ON CONFLICT (id)"
    " DO UPDATE SET sequence = excluded.sequence, used = excluded.used";
// Who waits in Store::AwaitChange hears of it when the transaction commits.
constexpr char kNotify[] = "SELECT pg_notify('shirabe', $1::text)";
// Much longer than anyone waits to learn what became of a COMMIT.
constexpr char kDeleteOldWriters[] = "DELETE FROM writer WHERE used < now() - interval '1 day'";
// And holders of leases (see sqlite_schema.cc) that ended as long ago.
constexpr char kDeleteOldHolders[] =
    "DELETE FROM name WHERE namespace = '' AND starts_with(name, 'holder:')"
    " AND expiry < $1::int8";
constexpr absl::Duration kHolderRetention = absl::Hours(24);

ExperimentKey HolderName(const LeaseRenewal& renewal) { return {"", "holder:" + renewal.holder}; }

class Transaction {
 public:
  explicit Transaction(PostgresSession* session)
      : session_(session),
        db_(session->db.get()),
        state_(std::in_place, &session->metrics),
        writes_(db_) {}

  StatusOr<int64_t> Load(const LoadOptions& options, const LoadSource& source);
  Status Read(const std::vector<PostgresRequest*>& requests);
  void Run(PostgresRequest* request);
  Status Finish();

 private:
  Status ReadStore(const PostgresResult& store);
  Status DeleteEverything(const std::vector<v1::Lease>& names);
  Status LoadOne(LoadPart part);
  Status LoadSchedule(const ScheduleWrite& write);
  Status Look(const Batch& batch);
  Status LoadBatch(const Batch& batch);
  Status Commit(const Batch& batch, int64_t* revision);
  Status WriteSchedule(const ScheduleWrite& write, int64_t* revision);
  Status Acquire(const LeaseRequest& request, v1::Lease* lease);
  Status RemoveRows(const LeaseClaim& claim, int64_t most);
  void Renew(const LeaseRenewal& renewal);
  void Release(const std::vector<LeaseClaim>& claims);
  void Delete(NameState* name);
  void WriteRecords(const Batch& batch, NameState* name);
  void WriteObservations(const Batch& batch, int64_t experiment);

  PostgresSession* const session_;
  PostgresConnection* const db_;
  std::optional<PostgresState> state_;
  PostgresWrites writes_;
  ScheduleState schedules_;
  int64_t first_revision_ = 0;
  int64_t revision_ = 0;
  int64_t last_id_ = 0;
  bool wrote_ = false;
};

Status Transaction::Read(const std::vector<PostgresRequest*>& requests) {
  if (session_->metrics.size() > kMaxMetrics) session_->metrics.clear();
  for (const PostgresRequest* request : requests) {
    if (request->batch != nullptr) state_->Want(*request->batch);
    if (request->acquire != nullptr) state_->Want(request->acquire->experiment);
    if (request->remove != nullptr) state_->Want(request->remove->experiment);
    if (request->renew != nullptr) state_->Want(HolderName(*request->renew));
    if (request->schedule != nullptr) schedules_.Want(*request->schedule, &*state_);
    if (request->release == nullptr) continue;
    for (const LeaseClaim& claim : *request->release) state_->Want(claim.experiment);
  }
  db_->Send("BEGIN");
  db_->Send(kLock);
  state_->Send(db_);
  schedules_.Send(db_);
  ASSIGN_OR_RETURN(const std::vector<PostgresResult> results, db_->Receive());
  RETURN_IF_ERROR(ReadStore(results[1]));
  size_t next = 2;
  RETURN_IF_ERROR(state_->ParseResults(results, &next));
  schedules_.ParseResults(results, &next);
  return absl::OkStatus();
}

Status Transaction::ReadStore(const PostgresResult& store) {
  if (store.rows() != 1) {
    return absl::DataLossError(absl::StrCat("database ", db_->options().address.shown,
                                            " is damaged: the row of shirabe.store is gone"));
  }
  RETURN_IF_ERROR(CheckPostgresVersion(*db_, store.Int(0, 0), session_->version));
  first_revision_ = revision_ = store.Int(0, 1);
  last_id_ = store.Int(0, 2);
  return absl::OkStatus();
}

void Transaction::Run(PostgresRequest* request) {
  if (request->schedule != nullptr) {
    request->status = WriteSchedule(*request->schedule, &request->revision);
  } else if (request->batch != nullptr) {
    request->status = Commit(*request->batch, &request->revision);
  } else if (request->remove != nullptr) {
    request->status = RemoveRows(*request->remove, request->most);
  } else if (request->acquire != nullptr) {
    request->status = Acquire(*request->acquire, &request->lease);
  } else {
    if (request->renew != nullptr) Renew(*request->renew);
    if (request->release != nullptr) Release(*request->release);
    request->status = absl::OkStatus();
  }
}

Status Transaction::Commit(const Batch& batch, int64_t* revision) {
  RETURN_IF_ERROR(state_->Check(batch));
  *revision = ++revision_;
  wrote_ = true;
  NameState* name = &state_->Name(batch.experiment);
  if (name->id == 0) {
    name->id = ++last_id_;
    writes_.AddName(name->id, batch.experiment);
  }
  state_->Apply(batch, revision_);
  batch.delete_experiment ? Delete(name) : WriteRecords(batch, name);
  return absl::OkStatus();
}

Status Transaction::WriteSchedule(const ScheduleWrite& write, int64_t* revision) {
  RETURN_IF_ERROR(CheckScheduleRevision(write, schedules_.RevisionOf(write.key)));
  if (write.start) RETURN_IF_ERROR(Commit(*write.start, revision));
  schedules_.Write(write, write.put ? ++last_id_ : 0, db_);
  wrote_ = true;
  return absl::OkStatus();
}

void Transaction::Delete(NameState* name) {
  writes_.Delete({name->id, revision_});
  writes_.SaveLease(name->id, name->lease);
}

void Transaction::WriteRecords(const Batch& batch, NameState* name) {
  const RowPlace place{name->id, revision_};
  if (batch.put) writes_.Put(place, batch.put->record);
  for (const auto& write : batch.trials) writes_.Put(place, write.record);
  for (const auto& write : batch.attempts) writes_.Put(place, write.record);
  for (const auto& write : batch.checkpoints) writes_.Put(place, write.record);
  for (const int64_t id : batch.intents_done) {
    if (id <= last_id_) writes_.Remove(name->id, id);  // else of one that is not there yet
  }
  for (v1::Intent intent : batch.intents) {
    intent.set_id(++last_id_);
    writes_.Add(place, intent);
  }
  WriteObservations(batch, name->id);
  for (v1::Event event : batch.events) {
    event.set_id(++last_id_);
    writes_.Add(place, event);
  }
}

void Transaction::WriteObservations(const Batch& batch, int64_t experiment) {
  for (const std::string& metric : state_->new_metrics(batch)) {
    if (state_->MetricId(metric) != 0) continue;
    state_->SetMetricId(metric, ++last_id_);
    writes_.AddMetric(last_id_, metric);
  }
  for (const StoredObservation& row : batch.observations) {
    writes_.Observe({.experiment = experiment,
                     .trial = row.trial,
                     .attempt = row.attempt,
                     .step = row.step,
                     .metric = state_->MetricId(row.metric),
                     .value = row.value,
                     .time = absl::ToUnixNanos(row.time),
                     .implicit = row.implicit_step,
                     .superseded = row.superseded});
  }
  for (const Batch::Supersede& supersede : batch.supersede) {
    std::map<int64_t, int64_t> counts;
    for (const auto& [metric, count] : supersede.counts) counts[state_->MetricId(metric)] = count;
    writes_.Supersede(experiment, supersede, counts);
  }
}

Status Transaction::Acquire(const LeaseRequest& request, v1::Lease* lease) {
  NameState& name = state_->Name(request.experiment);
  if (name.revision == 0) return NoExperiment(request.experiment);
  ASSIGN_OR_RETURN(*lease, GrantLease(request, name.lease));
  name.lease = *lease;
  writes_.SaveLease(name.id, name.lease);
  wrote_ = true;
  return absl::OkStatus();
}

Status Transaction::RemoveRows(const LeaseClaim& claim, int64_t most) {
  const NameState& name = state_->Name(claim.experiment);
  if (name.revision == 0) return NoExperiment(claim.experiment);
  RETURN_IF_ERROR(CheckClaim(claim, name.lease));
  writes_.RemoveRows(name.id, most);
  wrote_ = true;
  return absl::OkStatus();
}

void Transaction::Renew(const LeaseRenewal& renewal) {
  NameState& name = state_->Name(HolderName(renewal));
  if (name.id == 0) {
    name.id = ++last_id_;
    writes_.AddName(name.id, name.key);
  }
  *name.lease.mutable_expiry() = ToProto(renewal.now + renewal.ttl);
  writes_.SaveLease(name.id, name.lease);
  db_->Send(kDeleteOldHolders,
            PostgresParams().Int(absl::ToUnixNanos(renewal.now - kHolderRetention)));
  wrote_ = true;
}

void Transaction::Release(const std::vector<LeaseClaim>& claims) {
  for (const LeaseClaim& claim : claims) {
    NameState& name = state_->Name(claim.experiment);
    if (name.id == 0 || name.lease.epoch() != claim.epoch) continue;
    name.lease.clear_holder();
    name.lease.clear_expiry();
    writes_.SaveLease(name.id, name.lease);
    wrote_ = true;
  }
}

// The state that a batch is checked against is read again for each: what those before it have
// written is in the tables already.
StatusOr<int64_t> Transaction::Load(const LoadOptions& options, const LoadSource& source) {
  db_->Send("BEGIN");
  db_->Send(kLock);
  db_->Send("SELECT (SELECT count(*) FROM experiment) + (SELECT count(*) FROM schedule)");
  ASSIGN_OR_RETURN(const std::vector<PostgresResult> results, db_->Receive());
  RETURN_IF_ERROR(ReadStore(results[1]));
  ASSIGN_OR_RETURN(const std::vector<v1::Lease> names, ListNames(db_));
  RETURN_IF_ERROR(CheckLoad(options, names, results[2].Int(0, 0)));
  if (options.mode == LoadOptions::Mode::kReplace) RETURN_IF_ERROR(DeleteEverything(names));
  for (;;) {
    LoadPart part;
    ASSIGN_OR_RETURN(const bool more, source(&part));
    if (!more) break;
    RETURN_IF_ERROR(LoadOne(std::move(part)));
  }
  wrote_ = true;
  RETURN_IF_ERROR(Finish());
  return revision_;
}

Status Transaction::LoadBatch(const Batch& batch) {
  RETURN_IF_ERROR(ValidateBatch(batch));
  int64_t revision = 0;
  RETURN_IF_ERROR(Commit(batch, &revision));
  writes_.Flush();
  return db_->Receive().status();
}

Status Transaction::DeleteEverything(const std::vector<v1::Lease>& names) {
  for (const v1::Lease& lease : names) {
    Batch deletion{.experiment = ExperimentKeyOf(lease)};
    deletion.delete_experiment = true;
    RETURN_IF_ERROR(Look(deletion));
    const NameState& name = state_->Name(deletion.experiment);
    if (name.revision == 0) continue;
    deletion.epoch = name.lease.epoch();
    RETURN_IF_ERROR(LoadBatch(deletion));
  }
  return db_->Execute("DELETE FROM schedule");
}

Status Transaction::LoadSchedule(const ScheduleWrite& write) {
  RETURN_IF_ERROR(ValidateScheduleWrite(write));
  ASSIGN_OR_RETURN(const int64_t current, ScheduleState::ReadRevision(write.key, db_));
  RETURN_IF_ERROR(CheckScheduleRevision(write, current));
  schedules_.Write(write, ++last_id_, db_);
  return db_->Receive().status();
}

Status Transaction::LoadOne(LoadPart part) {
  if (part.schedule) return LoadSchedule(LoadedSchedule(*part.schedule));
  const Batch batch = part.batch.value_or(Batch{.experiment = part.experiment});
  RETURN_IF_ERROR(Look(batch));
  NameState& name = state_->Name(part.experiment);
  const v1::Lease lease = name.lease;
  const bool existed = name.revision != 0;
  if (part.batch) {
    part.batch->epoch = lease.epoch();
    RETURN_IF_ERROR(LoadBatch(*part.batch));
  }
  // The experiment that is there already, of a name that the loaded store once had, is another one.
  if (!part.epoch || (!part.batch && existed)) return absl::OkStatus();
  if (name.id == 0) {
    name.id = ++last_id_;
    writes_.AddName(name.id, name.key);
  }
  writes_.SaveLease(name.id, LeaseAfterLoad(lease, *part.epoch));
  writes_.Flush();
  return db_->Receive().status();
}

// Reads what a batch is checked against.
Status Transaction::Look(const Batch& batch) {
  state_.emplace(&session_->metrics);
  state_->Want(batch);
  state_->Send(db_);
  ASSIGN_OR_RETURN(const std::vector<PostgresResult> results, db_->Receive());
  size_t next = 0;
  return state_->ParseResults(results, &next);
}

Status Transaction::Finish() {
  if (!wrote_) return db_->Query("ROLLBACK").status();
  writes_.Flush();
  PostgresParams counters, writer, payload;
  db_->Send(kSave, counters.Int(revision_).Int(last_id_));
  db_->Send(kCount, writer.Int(session_->id).Int(++session_->sequence));
  if (revision_ != first_revision_) db_->Send(kNotify, payload.Text(absl::StrCat(revision_)));
  db_->Send("COMMIT");
  return db_->Receive().status();
}

}  // namespace

int64_t RandomSessionId() {
  int64_t id = 0;
  for (const char byte : RandomBytes(8)) id = id << 8 | static_cast<unsigned char>(byte);
  return id;
}

Status WriteTogether(const std::vector<PostgresRequest*>& requests, PostgresSession* session) {
  Transaction transaction(session);
  RETURN_IF_ERROR(transaction.Read(requests));
  for (PostgresRequest* request : requests) transaction.Run(request);
  return transaction.Finish();
}

StatusOr<int64_t> LoadParts(const LoadOptions& options, const LoadSource& source,
                            PostgresSession* session) {
  return Transaction(session).Load(options, source);
}

StatusOr<bool> WasCommitted(int64_t id, int64_t sequence, PostgresConnection* db) {
  // If it is still under way it holds the lock, until its connection is found to be dead.
  db->Send("BEGIN");
  db->Send(kLock);
  db->Send("SELECT sequence FROM writer WHERE id = $1::int8", PostgresParams().Int(id));
  db->Send("ROLLBACK");
  ASSIGN_OR_RETURN(const std::vector<PostgresResult> results, db->Receive());
  return results[2].rows() == 1 && results[2].Int(0, 0) >= sequence;
}

Status ForgetOldWriters(PostgresConnection* db) { return db->Query(kDeleteOldWriters).status(); }

}  // namespace shirabe::db
