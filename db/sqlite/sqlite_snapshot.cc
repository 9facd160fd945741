#include "db/sqlite/sqlite_snapshot.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/timestamp.h"
#include "db/commit_rules.h"
#include "db/load_rules.h"
#include "db/sqlite/sqlite_commit.h"
#include "db/sqlite/sqlite_reader.h"
#include "db/sqlite/sqlite_schedules.h"

namespace shirabe::db {
namespace {

constexpr int64_t kSnapshotPage = 2000;

// How a table is read in pages: as many columns of its key follow the experiment's as `keys` says,
// and stand first in what is selected.
struct PagedTable {
  const char* sql;
  int keys;
};

#define SHIRABE_PAGE(keys, columns, table, parameters)                                      \
  "SELECT " keys ", " columns " FROM " table                                                \
  " WHERE experiment = (SELECT id FROM name WHERE namespace = ?1 AND name = ?2) AND (" keys \
  ") "                                                                                      \
  "> (" parameters ") ORDER BY " keys " LIMIT "

constexpr PagedTable kTrialPages = {SHIRABE_PAGE("number", "body", "trial", "?3") "?4", 1};
constexpr PagedTable kAttemptPages = {
    SHIRABE_PAGE("trial, number", "body", "attempt", "?3, ?4") "?5", 2};
constexpr PagedTable kCheckpointPages = {
    SHIRABE_PAGE("trial, attempt, step", "body", "checkpoint", "?3, ?4, ?5") "?6", 3};
constexpr PagedTable kEventPages = {SHIRABE_PAGE("id", "body", "event", "?3") "?4", 1};
constexpr PagedTable kIntentPages = {SHIRABE_PAGE("id", "body", "intent", "?3") "?4", 1};
constexpr PagedTable kObservationPages = {
    SHIRABE_PAGE(
        "trial, attempt, step, metric",
        "(SELECT m.name FROM metric m WHERE m.id = observation.metric), value, time, implicit, "
        "superseded",
        "observation", "?3, ?4, ?5, ?6") "?7",
    4};

class SqliteSnapshot : public Snapshot {
 public:
  SqliteSnapshot(std::unique_ptr<SqliteConnection> db, int64_t revision)
      : db_(std::move(db)), revision_(revision) {}

  std::string source() const override { return "sqlite:" + db_->path(); }
  int64_t revision() const override { return revision_; }
  StatusOr<std::vector<v1::Lease>> Names() override { return ListNames(db_.get()); }
  StatusOr<v1::Experiment> GetExperiment(const ExperimentKey& key) override {
    ASSIGN_OR_RETURN(auto found, db::GetExperiment(key, db_.get()));
    return std::move(found.record);
  }
  StatusOr<std::vector<v1::Trial>> Trials(const ExperimentKey& key,
                                          SnapshotCursor* cursor) override {
    return Page<v1::Trial>(kTrialPages, key, cursor);
  }
  StatusOr<std::vector<v1::Attempt>> Attempts(const ExperimentKey& key,
                                              SnapshotCursor* cursor) override {
    return Page<v1::Attempt>(kAttemptPages, key, cursor);
  }
  StatusOr<std::vector<v1::Checkpoint>> Checkpoints(const ExperimentKey& key,
                                                    SnapshotCursor* cursor) override {
    return Page<v1::Checkpoint>(kCheckpointPages, key, cursor);
  }
  StatusOr<std::vector<StoredObservation>> Observations(const ExperimentKey& key,
                                                        SnapshotCursor* cursor) override {
    return Page<StoredObservation>(kObservationPages, key, cursor);
  }
  StatusOr<std::vector<v1::Event>> Events(const ExperimentKey& key,
                                          SnapshotCursor* cursor) override {
    return Page<v1::Event>(kEventPages, key, cursor);
  }
  StatusOr<std::vector<v1::Intent>> Intents(const ExperimentKey& key,
                                            SnapshotCursor* cursor) override {
    return Page<v1::Intent>(kIntentPages, key, cursor);
  }
  StatusOr<std::vector<v1::ScheduledExperiment>> Schedules() override {
    ASSIGN_OR_RETURN(auto rows, ListSchedules("", db_.get()));
    std::vector<v1::ScheduledExperiment> schedules;
    for (auto& row : rows) schedules.push_back(std::move(row.record));
    return schedules;
  }

 private:
  template <class Record>
  static Status ReadColumns(const Statement& row, int first, Record* record) {
    return row.Parse(first, "a record", record);
  }
  static Status ReadColumns(const Statement& row, int first, StoredObservation* record) {
    *record = {.trial = row.Int(0),
               .attempt = static_cast<int32_t>(row.Int(1)),
               .metric = row.Text(first),
               .step = row.Int(2),
               .value = row.Double(first + 1),
               .time = absl::FromUnixNanos(row.Int(first + 2)),
               .implicit_step = row.Int(first + 3) != 0,
               .superseded = row.Int(first + 4) != 0};
    return absl::OkStatus();
  }

  template <class Record>
  StatusOr<std::vector<Record>> Page(const PagedTable& table, const ExperimentKey& key,
                                     SnapshotCursor* cursor) {
    Statement statement = db_->Prepare(table.sql);
    statement.Bind(key.ns).Bind(key.name);
    for (int i = 0; i < table.keys; ++i) statement.Bind((*cursor)[i]);
    statement.Bind(kSnapshotPage);
    std::vector<Record> page;
    for (;;) {
      ASSIGN_OR_RETURN(const bool found, statement.Step());
      if (!found) return page;
      RETURN_IF_ERROR(ReadColumns(statement, table.keys, &page.emplace_back()));
      for (int i = 0; i < table.keys; ++i) (*cursor)[i] = statement.Int(i);
    }
  }

  const std::unique_ptr<SqliteConnection> db_;
  const int64_t revision_;
};

}  // namespace

StatusOr<std::vector<v1::Lease>> ListNames(SqliteConnection* db) {
  Statement statement = db->Prepare(
      "SELECT n.namespace, n.name, n.epoch, n.holder, max(n.expiry, ifnull((SELECT h.expiry"
      " FROM name h WHERE h.namespace = '' AND h.name = 'holder:' || n.holder), 0))"
      " FROM name n WHERE n.namespace != '' ORDER BY n.namespace, n.name");
  std::vector<v1::Lease> names;
  for (;;) {
    ASSIGN_OR_RETURN(const bool found, statement.Step());
    if (!found) return names;
    v1::Lease& lease = names.emplace_back(NoLease({statement.Text(0), statement.Text(1)}));
    lease.set_epoch(statement.Int(2));
    lease.set_holder(statement.Text(3));
    if (lease.holder().empty()) continue;
    *lease.mutable_expiry() = ToProto(absl::FromUnixNanos(statement.Int(4)));
  }
}

StatusOr<std::unique_ptr<Snapshot>> TakeSqliteSnapshot(std::unique_ptr<SqliteConnection> db) {
  RETURN_IF_ERROR(db->Execute("BEGIN"));
  // The first read is what fixes the moment.
  ASSIGN_OR_RETURN(const int64_t revision, db->ReadInt("SELECT revision FROM store"));
  return std::make_unique<SqliteSnapshot>(std::move(db), revision);
}

namespace {

Status DeleteEverything(const std::vector<v1::Lease>& names, WriteSession* session) {
  for (const v1::Lease& lease : names) {
    const ExperimentKey key = ExperimentKeyOf(lease);
    ASSIGN_OR_RETURN(const NameRow name, FindName(key, session->db));
    if (name.revision == 0) continue;
    Batch deletion{.experiment = key, .epoch = name.lease.epoch()};
    deletion.delete_experiment = true;
    RETURN_IF_ERROR(CommitBatch(deletion, session).status());
  }
  return session->db->Execute("DELETE FROM schedule");
}

// For a name that no experiment has, so that its epoch is not reached again.
Status KeepName(const ExperimentKey& key, SqliteConnection* db) {
  return db->Prepare("INSERT INTO name(namespace, name) VALUES (?, ?) ON CONFLICT DO NOTHING")
      .Bind(key.ns)
      .Bind(key.name)
      .Run();
}

Status LoadOne(LoadPart part, WriteSession* session) {
  if (part.schedule) {
    const ScheduleWrite write = LoadedSchedule(*part.schedule);
    RETURN_IF_ERROR(ValidateScheduleWrite(write));
    return WriteSchedule(write, session).status();
  }
  ASSIGN_OR_RETURN(NameRow name, FindName(part.experiment, session->db));
  if (part.batch) {
    part.batch->epoch = name.lease.epoch();
    RETURN_IF_ERROR(ValidateBatch(*part.batch));
    RETURN_IF_ERROR(CommitBatch(*part.batch, session).status());
  }
  // The experiment that is there already, of a name that the loaded store once had, is another one.
  if (!part.epoch || (!part.batch && name.revision != 0)) return absl::OkStatus();
  if (name.id == 0) {
    RETURN_IF_ERROR(KeepName(part.experiment, session->db));
    ASSIGN_OR_RETURN(name, FindName(part.experiment, session->db));
  }
  return SaveLease(LeaseAfterLoad(name.lease, *part.epoch), name.id, session->db);
}

}  // namespace

StatusOr<int64_t> LoadParts(const LoadOptions& options, const LoadSource& source,
                            WriteSession* session) {
  ASSIGN_OR_RETURN(const std::vector<v1::Lease> names, ListNames(session->db));
  ASSIGN_OR_RETURN(const int64_t experiments, CountExperiments("", session->db));
  ASSIGN_OR_RETURN(const int64_t schedules, session->db->ReadInt("SELECT count(*) FROM schedule"));
  RETURN_IF_ERROR(CheckLoad(options, names, experiments + schedules));
  if (options.mode == LoadOptions::Mode::kReplace) {
    RETURN_IF_ERROR(DeleteEverything(names, session));
  }
  for (;;) {
    LoadPart part;
    ASSIGN_OR_RETURN(const bool more, source(&part));
    if (!more) return session->revision;
    RETURN_IF_ERROR(LoadOne(std::move(part), session));
  }
}

Status RemoveObservations(const Maintenance::Removal& removal, WriteSession* session) {
  const TrialKey& key = removal.trial;
  ASSIGN_OR_RETURN(const auto stored, GetTrial(key, session->db));
  RETURN_IF_ERROR(CheckRemovable(removal, stored));
  ASSIGN_OR_RETURN(const NameRow name, FindName(key.experiment, session->db));
  Statement remove = session->db->Prepare(
      "DELETE FROM observation WHERE experiment = ? AND trial = ? AND attempt = ? AND step = ?"
      " AND metric = (SELECT id FROM metric WHERE name = ?)");
  for (const auto& [attempt, step, metric] : removal.rows) {
    remove.Bind(name.id).Bind(key.number).Bind(int64_t{attempt}).Bind(step).Bind(metric);
    RETURN_IF_ERROR(remove.Run());
  }
  return absl::OkStatus();
}

}  // namespace shirabe::db
