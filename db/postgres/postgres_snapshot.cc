#include "db/postgres/postgres_snapshot.h"

#include <string>
#include <utility>

#include "absl/time/time.h"
#include "db/load_rules.h"
#include "db/postgres/postgres_reader.h"
#include "db/postgres/postgres_schedules.h"

namespace shirabe::db {
namespace {

constexpr int64_t kSnapshotRows = 5000;

// How a table is read in pages: as many columns of its key follow the experiment's as `keys` says,
// and stand first in what is selected.
struct PagedQuery {
  const char* sql;
  int keys;
};

#define SHIRABE_PAGES(keys, columns, table, parameters)                                      \
  "SELECT " keys ", " columns " FROM " table                                                 \
  " WHERE experiment = (SELECT id FROM name WHERE namespace = $1::text AND name = $2::text)" \
  " AND (" keys ") > (" parameters ") ORDER BY " keys " LIMIT "

constexpr PagedQuery kTrialRows = {SHIRABE_PAGES("number", "body", "trial", "$3::int8") "$4::int8",
                                   1};
constexpr PagedQuery kAttemptRows = {
    SHIRABE_PAGES("trial, number", "body", "attempt", "$3::int8, $4::int8") "$5::int8", 2};
constexpr PagedQuery kCheckpointRows = {SHIRABE_PAGES("trial, attempt, step", "body", "checkpoint",
                                                      "$3::int8, $4::int8, $5::int8") "$6::int8",
                                        3};
constexpr PagedQuery kEventRows = {SHIRABE_PAGES("id", "body", "event", "$3::int8") "$4::int8", 1};
constexpr PagedQuery kIntentRows = {SHIRABE_PAGES("id", "body", "intent", "$3::int8") "$4::int8",
                                    1};
constexpr PagedQuery kObservationRows = {
    SHIRABE_PAGES("trial, attempt, step, metric",
                  "(SELECT m.name FROM metric m WHERE m.id = observation.metric), value, time,"
                  " implicit, superseded",
                  "observation", "$3::int8, $4::int8, $5::int8, $6::int8") "$7::int8",
    4};
constexpr char kAllNames[] =
    "SELECT n.namespace, n.name, n.epoch, n.holder, greatest(n.expiry, (SELECT h.expiry FROM name h"
    " WHERE h.namespace = '' AND h.name = 'holder:' || n.holder))"
    " FROM name n WHERE n.namespace <> '' ORDER BY n.namespace, n.name";

// Each row by its key: planned as one join, all rows of the trial were compared with all of these.
// The first condition is for a trial that was deleted, and made again, since it was looked at.
constexpr char kRemoveObservations[] =
    "DELETE FROM observation WHERE ctid = ANY (ARRAY("
    "SELECT o.row FROM trial t, unnest($4::int4[], $5::int8[], $6::bytea[]) q(attempt, step, name),"
    " LATERAL (SELECT id FROM metric WHERE sha256(metric.name) = sha256(q.name) OFFSET 0) m,"
    " LATERAL (SELECT ctid AS row FROM observation WHERE experiment = t.experiment"
    " AND trial = t.number AND attempt = q.attempt AND step = q.step AND metric = m.id OFFSET 0) o"
    " WHERE t.experiment = (SELECT id FROM name WHERE namespace = $1::text AND name = $2::text)"
    " AND t.number = $3::int8 AND t.revision = $7::int8))";

class PostgresSnapshot : public Snapshot {
 public:
  PostgresSnapshot(std::unique_ptr<PostgresConnection> db, int64_t revision)
      : db_(std::move(db)), revision_(revision) {}

  std::string source() const override { return db_->options().address.shown; }
  int64_t revision() const override { return revision_; }
  StatusOr<std::vector<v1::Lease>> Names() override { return ListNames(db_.get()); }
  StatusOr<v1::Experiment> GetExperiment(const ExperimentKey& key) override {
    ASSIGN_OR_RETURN(auto found, db::GetExperiment(key, db_.get()));
    return std::move(found.record);
  }
  StatusOr<std::vector<v1::Trial>> Trials(const ExperimentKey& key,
                                          SnapshotCursor* cursor) override {
    return Page<v1::Trial>(kTrialRows, key, cursor);
  }
  StatusOr<std::vector<v1::Attempt>> Attempts(const ExperimentKey& key,
                                              SnapshotCursor* cursor) override {
    return Page<v1::Attempt>(kAttemptRows, key, cursor);
  }
  StatusOr<std::vector<v1::Checkpoint>> Checkpoints(const ExperimentKey& key,
                                                    SnapshotCursor* cursor) override {
    return Page<v1::Checkpoint>(kCheckpointRows, key, cursor);
  }
  StatusOr<std::vector<StoredObservation>> Observations(const ExperimentKey& key,
                                                        SnapshotCursor* cursor) override {
    return Page<StoredObservation>(kObservationRows, key, cursor);
  }
  StatusOr<std::vector<v1::Event>> Events(const ExperimentKey& key,
                                          SnapshotCursor* cursor) override {
    return Page<v1::Event>(kEventRows, key, cursor);
  }
  StatusOr<std::vector<v1::Intent>> Intents(const ExperimentKey& key,
                                            SnapshotCursor* cursor) override {
    return Page<v1::Intent>(kIntentRows, key, cursor);
  }
  StatusOr<std::vector<v1::ScheduledExperiment>> Schedules() override {
    ASSIGN_OR_RETURN(auto rows, ListSchedules("", db_.get()));
    std::vector<v1::ScheduledExperiment> schedules;
    for (auto& row : rows) schedules.push_back(std::move(row.record));
    return schedules;
  }

 private:
  template <class Record>
  static Status ReadColumns(const PostgresResult& rows, int i, int first, Record* record) {
    return rows.Parse(i, first, record);
  }
  static Status ReadColumns(const PostgresResult& rows, int i, int first,
                            StoredObservation* record) {
    *record = {.trial = rows.Int(i, 0),
               .attempt = static_cast<int32_t>(rows.Int(i, 1)),
               .metric = rows.Bytes(i, first),
               .step = rows.Int(i, 2),
               .value = rows.Double(i, first + 1),
               .time = absl::FromUnixNanos(rows.Int(i, first + 2)),
               .implicit_step = rows.Int(i, first + 3) != 0,
               .superseded = rows.Int(i, first + 4) != 0};
    return absl::OkStatus();
  }

  template <class Record>
  StatusOr<std::vector<Record>> Page(const PagedQuery& table, const ExperimentKey& key,
                                     SnapshotCursor* cursor) {
    PostgresParams params;
    params.Text(key.ns).Text(key.name);
    for (int i = 0; i < table.keys; ++i) params.Int((*cursor)[i]);
    ASSIGN_OR_RETURN(const PostgresResult rows, db_->Query(table.sql, params.Int(kSnapshotRows)));
    std::vector<Record> page(rows.rows());
    for (int i = 0; i < rows.rows(); ++i) {
      RETURN_IF_ERROR(ReadColumns(rows, i, table.keys, &page[i]));
    }
    for (int k = 0; k < table.keys && !page.empty(); ++k) {
      (*cursor)[k] = rows.Int(rows.rows() - 1, k);
    }
    return page;
  }

  const std::unique_ptr<PostgresConnection> db_;
  const int64_t revision_;
};

}  // namespace

StatusOr<std::vector<v1::Lease>> ListNames(PostgresConnection* db) {
  ASSIGN_OR_RETURN(const PostgresResult rows, db->Query(kAllNames));
  std::vector<v1::Lease> names;
  for (int i = 0; i < rows.rows(); ++i) {
    names.push_back(LeaseOfRow({rows.Bytes(i, 0), rows.Bytes(i, 1)}, rows.Int(i, 2),
                               rows.Bytes(i, 3), rows.Int(i, 4)));
  }
  return names;
}

StatusOr<std::unique_ptr<Snapshot>> TakePostgresSnapshot(std::unique_ptr<PostgresConnection> db) {
  RETURN_IF_ERROR(db->Execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"));
  // The first read is what fixes the moment.
  ASSIGN_OR_RETURN(const int64_t revision, Revision(db.get()));
  return std::make_unique<PostgresSnapshot>(std::move(db), revision);
}

Status RemoveObservations(const Maintenance::Removal& removal, PostgresConnection* db) {
  const TrialKey& key = removal.trial;
  ASSIGN_OR_RETURN(const auto stored, GetTrial(key, db));
  RETURN_IF_ERROR(CheckRemovable(removal, stored));
  PostgresArray attempts(PostgresArray::Type::kInt4), steps(PostgresArray::Type::kInt8),
      metrics(PostgresArray::Type::kBytes);
  for (const auto& [attempt, step, metric] : removal.rows) {
    attempts.Add(attempt);
    steps.Add(step);
    metrics.AddBytes(metric);
  }
  PostgresParams params;
  params.Text(key.experiment.ns).Text(key.experiment.name).Int(key.number);
  params.Array(attempts).Array(steps).Array(metrics).Int(removal.revision);
  return db->Query(kRemoveObservations, params).status();
}

std::vector<PostgresStatement> PostgresSnapshotStatements() {
  return {{"pages of trials", kTrialRows.sql, "trial_pkey"},
          {"pages of attempts", kAttemptRows.sql, "attempt_pkey"},
          {"pages of checkpoints", kCheckpointRows.sql, "checkpoint_pkey"},
          {"pages of observations", kObservationRows.sql, "observation_pkey"},
          {"pages of events", kEventRows.sql, "event_pkey"},
          {"pages of intents", kIntentRows.sql, "intent_pkey"},
          {"removed observations", kRemoveObservations, "observation_pkey"}};
}

}  // namespace shirabe::db
