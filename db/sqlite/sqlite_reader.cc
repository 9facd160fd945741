#include "db/sqlite/sqlite_reader.h"

#include "absl/time/time.h"
#include "base/timestamp.h"
#include "db/commit_rules.h"

namespace shirabe::db {
namespace {

// The experiment's integer key, from the first two parameters.
#define SHIRABE_EXPERIMENT "experiment = (SELECT id FROM name WHERE namespace = ?1 AND name = ?2)"

constexpr char kTrials[] = "SELECT revision, body FROM trial WHERE " SHIRABE_EXPERIMENT
                           " AND number > ?3 AND revision > ?4 ORDER BY number LIMIT ?5";
constexpr char kLiveTrials[] =
    "SELECT revision, body FROM trial WHERE " SHIRABE_EXPERIMENT
    " AND live = 1 AND number > ?3 AND revision > ?4 ORDER BY number LIMIT ?5";
// What changed lately is little, so it is found by its revision and then put in order.
constexpr char kChangedTrials[] =
    "SELECT revision, body FROM trial INDEXED BY trial_by_revision WHERE +" SHIRABE_EXPERIMENT
    " AND number > ?3 AND revision > ?4 ORDER BY number LIMIT ?5";

#define SHIRABE_ATTEMPTS_AFTER \
  " AND (trial, number) > (?3, ?4) AND revision > ?5 ORDER BY trial, number LIMIT ?6"
constexpr char kAttempts[] =
    "SELECT revision, body FROM attempt WHERE " SHIRABE_EXPERIMENT SHIRABE_ATTEMPTS_AFTER;
constexpr char kOpenAttempts[] = "SELECT revision, body FROM attempt WHERE " SHIRABE_EXPERIMENT
                                 " AND open = 1" SHIRABE_ATTEMPTS_AFTER;
constexpr char kTrialsAttempts[] = "SELECT revision, body FROM attempt WHERE " SHIRABE_EXPERIMENT
                                   " AND trial = ?7 AND open >= ?8" SHIRABE_ATTEMPTS_AFTER;
constexpr char kChangedAttempts[] =
    "SELECT revision, body FROM attempt INDEXED BY attempt_by_revision"
    " WHERE +" SHIRABE_EXPERIMENT SHIRABE_ATTEMPTS_AFTER;

constexpr char kObservations[] =
    "SELECT attempt, step, m.name, value, time, implicit, superseded"
    " FROM observation CROSS JOIN metric m ON m.id = metric WHERE " SHIRABE_EXPERIMENT
    " AND trial = ?3 AND superseded <= ?4 ORDER BY attempt, step, m.name";
constexpr char kObservationsOfMetric[] =
    "SELECT attempt, step, ?5, value, time, implicit, superseded FROM observation"
    " WHERE " SHIRABE_EXPERIMENT
    " AND trial = ?3 AND superseded <= ?4 AND metric = (SELECT id FROM metric WHERE name = ?5)"
    " ORDER BY attempt, step";

// In the order of Change::Kind. Each part is read in the order of its index, and they are merged.
constexpr char kChanges[] =
    "SELECT revision, 0 AS kind, namespace, name, 0 AS trial"
    " FROM experiment JOIN name USING (id) WHERE revision > ?1"
    " UNION ALL SELECT revision, 1, namespace, name, number"
    " FROM trial t JOIN name n ON n.id = t.experiment WHERE revision > ?1"
    " UNION ALL SELECT revision, 2, namespace, name, trial"
    " FROM attempt a JOIN name n ON n.id = a.experiment WHERE revision > ?1"
    " UNION ALL SELECT revision, 3, namespace, name, 0"
    " FROM intent i JOIN name n ON n.id = i.experiment WHERE revision > ?1"
    " UNION ALL SELECT deleted, 4, namespace, name, 0"
    " FROM name WHERE deleted > ?1 AND deleted > 0"
    " ORDER BY revision, kind, trial";

const char* NameOf(const Versioned<v1::Experiment>&) { return "an experiment"; }
const char* NameOf(const Versioned<v1::Trial>&) { return "a trial"; }
const char* NameOf(const Versioned<v1::Attempt>&) { return "an attempt"; }
const char* NameOf(const Versioned<v1::Checkpoint>&) { return "a checkpoint"; }
const char* NameOf(const v1::Event&) { return "an event"; }
const char* NameOf(const v1::Intent&) { return "an intent"; }

template <class Record>
Status ReadRow(const Statement& statement, Versioned<Record>* row) {
  row->revision = statement.Int(0);
  return statement.Parse(1, NameOf(*row), &row->record);
}

template <class Record>
Status ReadRow(const Statement& statement, Record* record) {
  return statement.Parse(0, NameOf(*record), record);
}

template <class Row>
Status ReadAll(Statement* statement, std::vector<Row>* rows) {
  for (;;) {
    ASSIGN_OR_RETURN(const bool found, statement->Step());
    if (!found) return absl::OkStatus();
    RETURN_IF_ERROR(ReadRow(*statement, &rows->emplace_back()));
  }
}

template <class Row>
StatusOr<std::vector<Row>> ReadAll(Statement* statement) {
  std::vector<Row> rows;
  RETURN_IF_ERROR(ReadAll(statement, &rows));
  return rows;
}

template <class Row>
StatusOr<Row> ReadOne(Statement* statement, const Status& missing) {
  Row row;
  ASSIGN_OR_RETURN(const bool found, statement->Step());
  if (!found) return missing;
  RETURN_IF_ERROR(ReadRow(*statement, &row));
  return row;
}

const char* QueryOf(const TrialQuery& query) {
  if (query.live_only) return kLiveTrials;
  return query.changed_after > 0 ? kChangedTrials : kTrials;
}

}  // namespace

StatusOr<NameRow> FindName(const ExperimentKey& key, SqliteConnection* db) {
  Statement statement = db->Prepare(
      "SELECT n.id, n.epoch, n.holder, max(n.expiry, ifnull((SELECT h.expiry FROM name h"
      " WHERE h.namespace = '' AND h.name = 'holder:' || n.holder), 0)), revision FROM name n"
      " LEFT JOIN experiment USING (id) WHERE n.namespace = ? AND n.name = ?");
  statement.Bind(key.ns).Bind(key.name);
  NameRow row{.lease = NoLease(key)};
  ASSIGN_OR_RETURN(const bool found, statement.Step());
  if (!found) return row;
  row.id = statement.Int(0);
  row.lease.set_epoch(statement.Int(1));
  row.lease.set_holder(statement.Text(2));
  if (!row.lease.holder().empty()) {
    *row.lease.mutable_expiry() = ToProto(absl::FromUnixNanos(statement.Int(3)));
  }
  row.revision = statement.Int(4);
  return row;
}

StatusOr<std::vector<LeaseClaim>> ListLeases(const std::string& holder, SqliteConnection* db) {
  Statement statement = db->Prepare("SELECT namespace, name, epoch FROM name WHERE holder = ?");
  statement.Bind(holder);
  std::vector<LeaseClaim> leases;
  for (;;) {
    ASSIGN_OR_RETURN(const bool found, statement.Step());
    if (!found) return leases;
    leases.push_back({{statement.Text(0), statement.Text(1)}, statement.Int(2)});
  }
}

StatusOr<int64_t> CountExperiments(const std::string& ns, SqliteConnection* db) {
  Statement statement =
      db->Prepare(ns.empty() ? "SELECT count(*) FROM experiment"
                             : "SELECT count(*) FROM name JOIN experiment USING (id)"
                               " WHERE namespace = ?");
  if (!ns.empty()) statement.Bind(ns);
  RETURN_IF_ERROR(statement.Step().status());
  return statement.Int(0);
}

StatusOr<Versioned<v1::Experiment>> GetExperiment(const ExperimentKey& key, SqliteConnection* db) {
  Statement statement = db->Prepare(
      "SELECT revision, body FROM name JOIN experiment USING (id)"
      " WHERE namespace = ? AND name = ?");
  statement.Bind(key.ns).Bind(key.name);
  return ReadOne<Versioned<v1::Experiment>>(&statement, NoExperiment(key));
}

StatusOr<std::vector<Versioned<v1::Experiment>>> ListExperiments(const std::string& ns,
                                                                 SqliteConnection* db) {
  Statement statement = db->Prepare(
      "SELECT revision, body FROM name JOIN experiment USING (id)"
      " WHERE ?1 IN ('', namespace) ORDER BY namespace, name");
  statement.Bind(ns);
  return ReadAll<Versioned<v1::Experiment>>(&statement);
}

StatusOr<Versioned<v1::Trial>> GetTrial(const TrialKey& key, SqliteConnection* db) {
  Statement statement =
      db->Prepare("SELECT revision, body FROM trial WHERE " SHIRABE_EXPERIMENT " AND number = ?3");
  statement.Bind(key.experiment.ns).Bind(key.experiment.name).Bind(key.number);
  return ReadOne<Versioned<v1::Trial>>(&statement, NoTrial(key));
}

StatusOr<std::vector<Versioned<v1::Trial>>> ListTrials(const TrialQuery& query,
                                                       SqliteConnection* db) {
  const char* sql = QueryOf(query);
  std::vector<Versioned<v1::Trial>> trials;
  if (sql == kTrials && query.limit < 0) {
    // To count is quick, and growing a vector of messages touches twice the memory.
    Statement count = db->Prepare("SELECT count(*) FROM trial WHERE " SHIRABE_EXPERIMENT);
    count.Bind(query.experiment.ns).Bind(query.experiment.name);
    ASSIGN_OR_RETURN(const bool found, count.Step());
    if (found) trials.reserve(count.Int(0));
  }
  Statement statement = db->Prepare(sql);
  statement.Bind(query.experiment.ns).Bind(query.experiment.name);
  statement.Bind(query.after_number).Bind(query.changed_after).Bind(query.limit);
  RETURN_IF_ERROR(ReadAll(&statement, &trials));
  return trials;
}

StatusOr<std::vector<Versioned<v1::Attempt>>> ListAttempts(const AttemptQuery& query,
                                                           SqliteConnection* db) {
  const bool one_trial = query.trial != 0;
  Statement statement = db->Prepare(one_trial                 ? kTrialsAttempts
                                    : query.open_only         ? kOpenAttempts
                                    : query.changed_after > 0 ? kChangedAttempts
                                                              : kAttempts);
  statement.Bind(query.experiment.ns).Bind(query.experiment.name);
  statement.Bind(query.after_trial).Bind(query.after_number);
  statement.Bind(query.changed_after).Bind(query.limit);
  if (one_trial) statement.Bind(query.trial).Bind(query.open_only ? 1 : 0);
  return ReadAll<Versioned<v1::Attempt>>(&statement);
}

StatusOr<std::vector<Versioned<v1::Checkpoint>>> ListCheckpoints(const TrialKey& key,
                                                                 SqliteConnection* db) {
  Statement statement =
      db->Prepare("SELECT revision, body FROM checkpoint WHERE " SHIRABE_EXPERIMENT
                  " AND trial = ?3 ORDER BY attempt, step");
  statement.Bind(key.experiment.ns).Bind(key.experiment.name).Bind(key.number);
  return ReadAll<Versioned<v1::Checkpoint>>(&statement);
}

StatusOr<std::vector<StoredObservation>> ListObservations(const ObservationQuery& query,
                                                          SqliteConnection* db) {
  Statement statement = db->Prepare(query.metric.empty() ? kObservations : kObservationsOfMetric);
  statement.Bind(query.trial.experiment.ns).Bind(query.trial.experiment.name);
  statement.Bind(query.trial.number).Bind(query.include_superseded ? 1 : 0);
  if (!query.metric.empty()) statement.Bind(query.metric);
  std::vector<StoredObservation> rows;
  for (;;) {
    ASSIGN_OR_RETURN(const bool found, statement.Step());
    if (!found) return rows;
    rows.push_back({.trial = query.trial.number,
                    .attempt = static_cast<int32_t>(statement.Int(0)),
                    .metric = statement.Text(2),
                    .step = statement.Int(1),
                    .value = statement.Double(3),
                    .time = absl::FromUnixNanos(statement.Int(4)),
                    .implicit_step = statement.Int(5) != 0,
                    .superseded = statement.Int(6) != 0});
  }
}

StatusOr<std::vector<v1::Event>> ListEvents(const EventQuery& query, SqliteConnection* db) {
  Statement statement = db->Prepare("SELECT body FROM event WHERE " SHIRABE_EXPERIMENT
                                    " AND id > ?3 ORDER BY id LIMIT ?4");
  statement.Bind(query.experiment.ns).Bind(query.experiment.name);
  statement.Bind(query.after_id).Bind(query.limit);
  return ReadAll<v1::Event>(&statement);
}

StatusOr<std::vector<v1::Intent>> ListIntents(const ExperimentKey& key, SqliteConnection* db) {
  Statement statement =
      db->Prepare("SELECT body FROM intent WHERE " SHIRABE_EXPERIMENT " ORDER BY id");
  statement.Bind(key.ns).Bind(key.name);
  return ReadAll<v1::Intent>(&statement);
}

StatusOr<std::vector<Change>> ListChanges(int64_t after, int64_t limit, SqliteConnection* db) {
  Statement statement = db->Prepare(kChanges);
  statement.Bind(after);
  std::vector<Change> changes;
  for (;;) {
    ASSIGN_OR_RETURN(const bool found, statement.Step());
    if (!found) return changes;
    const Change change{.kind = static_cast<Change::Kind>(statement.Int(1)),
                        .experiment = {statement.Text(2), statement.Text(3)},
                        .trial = statement.Int(4),
                        .revision = statement.Int(0)};
    if (!AddChange(change, limit, &changes)) return changes;
  }
}

}  // namespace shirabe::db
