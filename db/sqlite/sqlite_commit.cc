#include "db/sqlite/sqlite_commit.h"

#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "db/commit_rules.h"
#include "db/sqlite/sqlite_reader.h"

namespace shirabe::db {
namespace {

// A program can print a new metric with every line; what we remember of them stays bounded.
constexpr size_t kMaxMetrics = 1 << 16;

// How a record of one kind is written: the parameters are its key, its filter columns, revision,
// body and, in an update, the revision expected.
struct PutSql {
  const char* insert;
  const char* update;
  const char* revision;  // by the key
};

constexpr PutSql kPutExperiment = {
    "INSERT INTO experiment(id, revision, body) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
    "UPDATE experiment SET revision = ?2, body = ?3 WHERE id = ?1 AND revision = ?4",
    "SELECT revision FROM experiment WHERE id = ?"};
constexpr PutSql kPutTrial = {
    "INSERT INTO trial(experiment, number, live, revision, body)"
    " VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
    "UPDATE trial SET live = ?3, revision = ?4, body = ?5"
    " WHERE experiment = ?1 AND number = ?2 AND revision = ?6",
    "SELECT revision FROM trial WHERE experiment = ? AND number = ?"};
constexpr PutSql kPutAttempt = {
    "INSERT INTO attempt(experiment, trial, number, open, revision, body)"
    " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
    "UPDATE attempt SET open = ?4, revision = ?5, body = ?6"
    " WHERE experiment = ?1 AND trial = ?2 AND number = ?3 AND revision = ?7",
    "SELECT revision FROM attempt WHERE experiment = ? AND trial = ? AND number = ?"};
constexpr PutSql kPutCheckpoint = {
    "INSERT INTO checkpoint(experiment, trial, attempt, step, revision, body)"
    " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
    "UPDATE checkpoint SET revision = ?5, body = ?6"
    " WHERE experiment = ?1 AND trial = ?2 AND attempt = ?3 AND step = ?4 AND revision = ?7",
    "SELECT revision FROM checkpoint"
    " WHERE experiment = ? AND trial = ? AND attempt = ? AND step = ?"};

const PutSql& SqlOf(const v1::Experiment&) { return kPutExperiment; }
const PutSql& SqlOf(const v1::Trial&) { return kPutTrial; }
const PutSql& SqlOf(const v1::Attempt&) { return kPutAttempt; }
const PutSql& SqlOf(const v1::Checkpoint&) { return kPutCheckpoint; }

// The rest of the key, after the experiment's.
void BindKey(const v1::Experiment&, Statement*) {}
void BindKey(const v1::Trial& trial, Statement* statement) { statement->Bind(trial.number()); }
void BindKey(const v1::Attempt& attempt, Statement* statement) {
  statement->Bind(attempt.trial()).Bind(attempt.number());
}
void BindKey(const v1::Checkpoint& checkpoint, Statement* statement) {
  statement->Bind(checkpoint.trial()).Bind(checkpoint.attempt()).Bind(checkpoint.step());
}

void BindFilter(const v1::Experiment&, Statement*) {}
void BindFilter(const v1::Trial& trial, Statement* statement) {
  statement->Bind(IsLive(trial) ? 1 : 0);
}
void BindFilter(const v1::Attempt& attempt, Statement* statement) {
  statement->Bind(IsOpen(attempt) ? 1 : 0);
}
void BindFilter(const v1::Checkpoint&, Statement*) {}

// One batch on its way into the tables of one experiment.
class BatchWriter {
 public:
  BatchWriter(const Batch& batch, int64_t experiment, WriteSession* session)
      : batch_(batch), experiment_(experiment), session_(session), db_(session->db) {}

  Status Write();
  Status Delete();

 private:
  template <class Record>
  Status Put(const db::Write<Record>& write);
  template <class Record>
  Status PutAll(const std::vector<db::Write<Record>>& writes);
  Status CheckParents();
  Status CheckTrial(int64_t trial);
  Status AddIntents();
  Status AddObservations();
  Status Supersede();
  Status SupersedeCounted(const Batch::Supersede& supersede);
  Status CheckFences();
  Status CheckConditions();
  Status AddEvents();
  Status RemoveIntents();
  StatusOr<int64_t> MetricId(const std::string& name);

  const Batch& batch_;
  const int64_t experiment_;
  WriteSession* const session_;
  SqliteConnection* const db_;
  std::set<int64_t> trials_;  // known to exist
};

Status BatchWriter::Write() {
  RETURN_IF_ERROR(CheckFences());
  if (HasConditions(batch_)) RETURN_IF_ERROR(CheckConditions());
  if (batch_.put) RETURN_IF_ERROR(Put(*batch_.put));
  RETURN_IF_ERROR(PutAll(batch_.trials));
  RETURN_IF_ERROR(PutAll(batch_.attempts));
  RETURN_IF_ERROR(PutAll(batch_.checkpoints));
  RETURN_IF_ERROR(CheckParents());
  RETURN_IF_ERROR(AddIntents());
  RETURN_IF_ERROR(AddObservations());
  RETURN_IF_ERROR(Supersede());
  RETURN_IF_ERROR(AddEvents());
  return RemoveIntents();
}

template <class Record>
Status BatchWriter::Put(const db::Write<Record>& write) {
  const PutSql& sql = SqlOf(write.record);
  Statement put = db_->Prepare(write.expected == 0 ? sql.insert : sql.update);
  put.Bind(experiment_);
  BindKey(write.record, &put);
  BindFilter(write.record, &put);
  put.Bind(session_->revision).BindBlob(write.record.SerializeAsString());
  if (write.expected != 0) put.Bind(write.expected);
  RETURN_IF_ERROR(put.Run());
  if (db_->changes() == 1) return absl::OkStatus();

  Statement revision = db_->Prepare(sql.revision);
  revision.Bind(experiment_);
  BindKey(write.record, &revision);
  ASSIGN_OR_RETURN(const bool found, revision.Step());
  return Conflict(Describe(write.record), write.expected, found ? revision.Int(0) : 0);
}

template <class Record>
Status BatchWriter::PutAll(const std::vector<db::Write<Record>>& writes) {
  for (const db::Write<Record>& write : writes) RETURN_IF_ERROR(Put(write));
  return absl::OkStatus();
}

Status BatchWriter::CheckParents() {
  for (const auto& write : batch_.trials) trials_.insert(write.record.number());
  for (const auto& write : batch_.attempts) RETURN_IF_ERROR(CheckTrial(write.record.trial()));
  for (const auto& write : batch_.checkpoints) RETURN_IF_ERROR(CheckTrial(write.record.trial()));
  for (const auto& row : batch_.observations) RETURN_IF_ERROR(CheckTrial(row.trial));
  return absl::OkStatus();
}

Status BatchWriter::CheckTrial(int64_t trial) {
  if (trials_.contains(trial)) return absl::OkStatus();
  Statement statement = db_->Prepare("SELECT 1 FROM trial WHERE experiment = ? AND number = ?");
  statement.Bind(experiment_).Bind(trial);
  ASSIGN_OR_RETURN(const bool found, statement.Step());
  if (!found) return NoTrial({batch_.experiment, trial});
  trials_.insert(trial);
  return absl::OkStatus();
}

Status BatchWriter::AddIntents() {
  for (v1::Intent intent : batch_.intents) {
    intent.set_id(++session_->last_id);
    RETURN_IF_ERROR(
        db_->Prepare("INSERT INTO intent(id, experiment, revision, body) VALUES (?, ?, ?, ?)")
            .Bind(intent.id())
            .Bind(experiment_)
            .Bind(session_->revision)
            .BindBlob(intent.SerializeAsString())
            .Run());
  }
  return absl::OkStatus();
}

StatusOr<int64_t> BatchWriter::MetricId(const std::string& name) {
  const auto known = session_->metrics.find(name);
  if (known != session_->metrics.end()) return known->second;
  if (session_->metrics.size() >= kMaxMetrics) session_->metrics.clear();
  RETURN_IF_ERROR(
      db_->Prepare("INSERT INTO metric(name) VALUES (?) ON CONFLICT DO NOTHING").Bind(name).Run());
  Statement statement = db_->Prepare("SELECT id FROM metric WHERE name = ?");
  statement.Bind(name);
  ASSIGN_OR_RETURN(const bool found, statement.Step());
  if (!found) return db_->Failure(SQLITE_CORRUPT);
  return session_->metrics[name] = statement.Int(0);
}

Status BatchWriter::AddObservations() {
  if (batch_.observations.empty()) return absl::OkStatus();
  // IS, because a repeated NaN (NULL here) must be a no-op like any other repeated value.
  Statement upsert = db_->Prepare(
      "INSERT INTO observation VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE"
      " SET value = excluded.value, time = excluded.time, implicit = excluded.implicit,"
      " superseded = max(superseded, excluded.superseded)"
      " WHERE value IS NOT excluded.value OR superseded < excluded.superseded");
  for (const StoredObservation& row : batch_.observations) {
    ASSIGN_OR_RETURN(const int64_t metric, MetricId(row.metric));
    upsert.Bind(experiment_).Bind(row.trial).Bind(row.attempt).Bind(row.step).Bind(metric);
    upsert.BindDouble(row.value).Bind(absl::ToUnixNanos(row.time));
    upsert.Bind(row.implicit_step ? 1 : 0).Bind(row.superseded ? 1 : 0);
    RETURN_IF_ERROR(upsert.Run());
  }
  return absl::OkStatus();
}

// Before the attempts themselves are written: the batch may be what closes them.
Status BatchWriter::CheckFences() {
  for (const Batch::Fence& fence : batch_.fences) {
    Statement statement =
        db_->Prepare("SELECT body FROM attempt WHERE experiment = ? AND trial = ? AND number = ?");
    statement.Bind(experiment_).Bind(fence.trial).Bind(fence.attempt);
    ASSIGN_OR_RETURN(const bool found, statement.Step());
    v1::Attempt attempt;
    if (found) RETURN_IF_ERROR(statement.Parse(0, "an attempt", &attempt));
    RETURN_IF_ERROR(CheckFence(batch_, fence, found ? &attempt : nullptr));
  }
  return absl::OkStatus();
}

Status BatchWriter::CheckConditions() {
  Statement statement = db_->Prepare("SELECT body FROM experiment WHERE id = ?");
  statement.Bind(experiment_);
  ASSIGN_OR_RETURN(const bool found, statement.Step());
  v1::Experiment stored;
  if (found) RETURN_IF_ERROR(statement.Parse(0, "an experiment", &stored));
  ASSIGN_OR_RETURN(const auto waiting, ListIntents(batch_.experiment, db_));
  return db::CheckConditions(batch_, stored.metadata().generation(), waiting);
}

Status BatchWriter::Supersede() {
  for (const Batch::Supersede& supersede : batch_.supersede) {
    RETURN_IF_ERROR(SupersedeCounted(supersede));
    RETURN_IF_ERROR(db_->Prepare("UPDATE observation SET superseded = 1 WHERE experiment = ?"
                                 " AND trial = ? AND attempt <= ? AND step > ? AND superseded = 0"
                                 " AND implicit = 0")
                        .Bind(experiment_)
                        .Bind(supersede.trial)
                        .Bind(supersede.attempt)
                        .Bind(supersede.past_step)
                        .Run());
  }
  return absl::OkStatus();
}

// What Covers says of rows whose steps were counted. They are few metrics: a statement for each.
Status BatchWriter::SupersedeCounted(const Batch::Supersede& supersede) {
  Statement find = db_->Prepare(
      "SELECT DISTINCT o.metric, m.name FROM observation o JOIN metric m ON m.id = o.metric"
      " WHERE o.experiment = ? AND o.trial = ? AND o.attempt <= ? AND implicit = 1"
      " AND superseded = 0");
  find.Bind(experiment_).Bind(supersede.trial).Bind(supersede.attempt);
  std::vector<std::pair<int64_t, int64_t>> past;  // metric, the last step that counts
  for (;;) {
    ASSIGN_OR_RETURN(const bool found, find.Step());
    if (!found) break;
    const auto count = supersede.counts.find(find.Text(1));
    past.emplace_back(find.Int(0), count == supersede.counts.end() ? 0 : count->second);
  }
  for (const auto& [metric, step] : past) {
    RETURN_IF_ERROR(db_->Prepare("UPDATE observation SET superseded = 1 WHERE experiment = ?"
                                 " AND trial = ? AND attempt <= ? AND step > ? AND superseded = 0"
                                 " AND implicit = 1 AND metric = ?")
                        .Bind(experiment_)
                        .Bind(supersede.trial)
                        .Bind(supersede.attempt)
                        .Bind(step)
                        .Bind(metric)
                        .Run());
  }
  return absl::OkStatus();
}

Status BatchWriter::AddEvents() {
  for (v1::Event event : batch_.events) {
    event.set_id(++session_->last_id);
    RETURN_IF_ERROR(db_->Prepare("INSERT INTO event(experiment, id, body) VALUES (?, ?, ?)")
                        .Bind(experiment_)
                        .Bind(event.id())
                        .BindBlob(event.SerializeAsString())
                        .Run());
  }
  return absl::OkStatus();
}

Status BatchWriter::RemoveIntents() {
  for (const int64_t id : batch_.intents_done) {
    RETURN_IF_ERROR(db_->Prepare("DELETE FROM intent WHERE id = ? AND experiment = ?")
                        .Bind(id)
                        .Bind(experiment_)
                        .Run());
  }
  return absl::OkStatus();
}

Status BatchWriter::Delete() {
  for (const char* table : {"trial", "attempt", "checkpoint", "observation", "event", "intent"}) {
    const std::string sql = std::string("DELETE FROM ") + table + " WHERE experiment = ?";
    RETURN_IF_ERROR(db_->Prepare(sql).Bind(experiment_).Run());
  }
  RETURN_IF_ERROR(db_->Prepare("DELETE FROM experiment WHERE id = ?").Bind(experiment_).Run());
  return db_->Prepare("UPDATE name SET deleted = ? WHERE id = ?")
      .Bind(session_->revision)
      .Bind(experiment_)
      .Run();
}

StatusOr<int64_t> AddName(const ExperimentKey& key, SqliteConnection* db) {
  Statement insert = db->Prepare("INSERT INTO name(namespace, name) VALUES (?, ?) RETURNING id");
  insert.Bind(key.ns).Bind(key.name);
  RETURN_IF_ERROR(insert.Step().status());
  return insert.Int(0);
}

}  // namespace

StatusOr<int64_t> CommitBatch(const Batch& batch, WriteSession* session) {
  ASSIGN_OR_RETURN(NameRow name, FindName(batch.experiment, session->db));
  const bool exists = name.revision != 0;
  if (Creates(batch)) {
    if (exists) return Conflict(Describe(batch.put->record), 0, name.revision);
    if (name.id == 0) {
      ASSIGN_OR_RETURN(name.id, AddName(batch.experiment, session->db));
    }
  } else {
    if (!exists) return NoExperiment(batch.experiment);
    RETURN_IF_ERROR(CheckEpoch(batch, name.lease));
  }
  ++session->revision;
  BatchWriter writer(batch, name.id, session);
  RETURN_IF_ERROR(batch.delete_experiment ? writer.Delete() : writer.Write());
  if (batch.delete_experiment) {
    RETURN_IF_ERROR(SaveLease(LeaseAfterDeletion(name.lease), name.id, session->db));
  }
  return session->revision;
}

}  // namespace shirabe::db
