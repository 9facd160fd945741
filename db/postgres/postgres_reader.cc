#include "db/postgres/postgres_reader.h"

#include <utility>

#include "absl/time/time.h"
#include "base/timestamp.h"
#include "db/commit_rules.h"

namespace shirabe::db {
namespace {

// The experiment's integer key, from the first two parameters.
#define SHIRABE_EXPERIMENT \
  "experiment = (SELECT id FROM name WHERE namespace = $1::text AND name = $2::text)"

constexpr char kExperiment[] =
    "SELECT revision, body FROM experiment"
    " WHERE id = (SELECT id FROM name WHERE namespace = $1::text AND name = $2::text)";
// OFFSET 0, here and below, keeps the planner from joining in another order: it may plan while the
// tables are empty or have one row, and think then that any order will do.
#define SHIRABE_OF_NAME \
  " LATERAL (SELECT revision, body FROM experiment WHERE id = n.id OFFSET 0) e"
constexpr char kExperiments[] =
    "SELECT e.revision, e.body FROM name n," SHIRABE_OF_NAME " ORDER BY n.namespace, n.name";
constexpr char kExperimentsOfNamespace[] = "SELECT e.revision, e.body FROM name n," SHIRABE_OF_NAME
                                           " WHERE n.namespace = $1::text ORDER BY n.name";

constexpr char kTrial[] =
    "SELECT revision, body FROM trial WHERE " SHIRABE_EXPERIMENT " AND number = $3::int8";
constexpr char kTrials[] = "SELECT revision, body FROM trial WHERE " SHIRABE_EXPERIMENT
                           " AND number > $3::int8 ORDER BY number LIMIT $4::int8";
// Adding 0 keeps the index on that column out of it: few rows live, so they are found as such; few
// rows have changed lately, so they are found by their revision and then put in order.
constexpr char kLiveTrials[] =
    "SELECT revision, body FROM trial WHERE " SHIRABE_EXPERIMENT
    " AND live AND number > $3::int8 AND revision + 0 > $5::int8 ORDER BY number LIMIT $4::int8";
constexpr char kChangedTrials[] =
    "SELECT revision, body FROM trial WHERE 0 + " SHIRABE_EXPERIMENT
    " AND number + 0 > $3::int8 AND revision > $5::int8 ORDER BY number LIMIT $4::int8";

#define SHIRABE_ATTEMPTS_AFTER                                              \
  " AND (trial, number) > ($3::int8, $4::int8) AND revision + 0 > $5::int8" \
  " ORDER BY trial, number LIMIT $6::int8"
constexpr char kAttempts[] =
    "SELECT revision, body FROM attempt WHERE " SHIRABE_EXPERIMENT SHIRABE_ATTEMPTS_AFTER;
constexpr char kOpenAttempts[] = "SELECT revision, body FROM attempt WHERE " SHIRABE_EXPERIMENT
                                 " AND open" SHIRABE_ATTEMPTS_AFTER;
constexpr char kTrialsAttempts[] =
    "SELECT revision, body FROM attempt WHERE " SHIRABE_EXPERIMENT
    " AND trial = $7::int8 AND open >= $8::bool" SHIRABE_ATTEMPTS_AFTER;
constexpr char kChangedAttempts[] =
    "SELECT revision, body FROM attempt WHERE 0 + " SHIRABE_EXPERIMENT
    " AND (trial + 0, number + 0) > ($3::int8, $4::int8) AND revision > $5::int8"
    " ORDER BY trial, number LIMIT $6::int8";

constexpr char kCheckpoints[] = "SELECT revision, body FROM checkpoint WHERE " SHIRABE_EXPERIMENT
                                " AND trial = $3::int8 ORDER BY attempt, step";

constexpr char kObservations[] =
    "SELECT attempt, step, (SELECT m.name FROM metric m WHERE m.id = o.metric) AS named, value,"
    " time, implicit, superseded FROM observation o WHERE " SHIRABE_EXPERIMENT
    " AND trial = $3::int8 AND superseded <= $4::bool ORDER BY attempt, step, named";
constexpr char kObservationsOfMetric[] =
    "SELECT attempt, step, NULL::bytea, value, time, implicit, superseded FROM observation"
    " WHERE " SHIRABE_EXPERIMENT
    " AND trial = $3::int8 AND superseded <= $4::bool"
    " AND metric = (SELECT id FROM metric WHERE sha256(name) = sha256($5::bytea))"
    " ORDER BY attempt, step";

constexpr char kEvents[] = "SELECT body FROM event WHERE " SHIRABE_EXPERIMENT
                           " AND id > $3::int8 ORDER BY id LIMIT $4::int8";
constexpr char kIntents[] = "SELECT body FROM intent WHERE " SHIRABE_EXPERIMENT " ORDER BY id";
constexpr char kLease[] =
    "SELECT epoch, holder, greatest(expiry, (SELECT h.expiry FROM name h WHERE h.namespace = ''"
    " AND h.name = 'holder:' || n.holder)),"
    " (SELECT revision FROM experiment e WHERE e.id = n.id)"
    " FROM name n WHERE namespace = $1::text AND name = $2::text";
constexpr char kLeases[] = "SELECT namespace, name, epoch FROM name WHERE holder = $1::text";
constexpr char kHasRows[] = "SELECT EXISTS (SELECT FROM observation WHERE " SHIRABE_EXPERIMENT
                            ") OR EXISTS (SELECT FROM event WHERE " SHIRABE_EXPERIMENT
                            ") OR EXISTS (SELECT FROM checkpoint WHERE " SHIRABE_EXPERIMENT
                            ") OR EXISTS (SELECT FROM attempt WHERE " SHIRABE_EXPERIMENT
                            ") OR EXISTS (SELECT FROM trial WHERE " SHIRABE_EXPERIMENT ")";
constexpr char kCountExperiments[] =
    "SELECT count(*) FROM name JOIN experiment USING (id) WHERE $1::text IN ('', namespace)";
constexpr char kRevision[] = "SELECT revision FROM store WHERE id = 1";

// First the revision of the last row that is wanted, from the heads of the indexes; then all rows
// up to it, so that the last Commit is whole; then their names. In the order of Change::Kind.
#define SHIRABE_HEAD(table) \
  "(SELECT revision FROM " table " WHERE revision > $1 ORDER BY revision LIMIT $2)"
#define SHIRABE_RANGE(column) \
  " WHERE " column " > $1::int8 AND " column " <= (SELECT newest FROM bound)"
constexpr char kChanges[] =
    "WITH bound AS (SELECT max(revision) AS newest FROM (SELECT revision FROM"
    " ((SELECT revision FROM experiment WHERE revision > $1::int8"
    " ORDER BY revision LIMIT $2::int8)"
    " UNION ALL " SHIRABE_HEAD("trial") " UNION ALL " SHIRABE_HEAD("attempt")
    " UNION ALL " SHIRABE_HEAD("intent")
    " UNION ALL (SELECT deleted FROM name WHERE deleted > $1 AND deleted > 0"
    " ORDER BY deleted LIMIT $2)) heads ORDER BY revision LIMIT $2) wanted)"
    " SELECT revision, kind, namespace, name, trial FROM"
    " (SELECT revision, 0 AS kind, id AS experiment, 0::int8 AS trial, 0::int8 AS item"
    " FROM experiment" SHIRABE_RANGE("revision")
    " UNION ALL SELECT revision, 1, experiment, number, 0 FROM trial" SHIRABE_RANGE("revision")
    " UNION ALL SELECT revision, 2, experiment, trial, number"
    " FROM attempt" SHIRABE_RANGE("revision")
    " UNION ALL SELECT revision, 3, experiment, 0, id FROM intent" SHIRABE_RANGE("revision")
    " UNION ALL SELECT deleted, 4, id, 0, 0 FROM name" SHIRABE_RANGE("deleted")
    " AND deleted > 0 OFFSET 0) rows,"
    " LATERAL (SELECT namespace, name FROM name WHERE id = rows.experiment OFFSET 0) names"
    " ORDER BY revision, kind, trial, item";

template <class Record>
Status ReadRow(const PostgresResult& result, int row, Versioned<Record>* out) {
  out->revision = result.Int(row, 0);
  return result.Parse(row, 1, &out->record);
}

template <class Record>
Status ReadRow(const PostgresResult& result, int row, Record* out) {
  return result.Parse(row, 0, out);
}

template <class Row>
StatusOr<std::vector<Row>> ReadAll(const StatusOr<PostgresResult>& result) {
  RETURN_IF_ERROR(result.status());
  std::vector<Row> rows(result->rows());
  for (int i = 0; i < result->rows(); ++i) RETURN_IF_ERROR(ReadRow(*result, i, &rows[i]));
  return rows;
}

template <class Row>
StatusOr<Row> ReadOne(const StatusOr<PostgresResult>& result, const Status& missing) {
  RETURN_IF_ERROR(result.status());
  if (result->rows() == 0) return missing;
  Row row;
  RETURN_IF_ERROR(ReadRow(*result, 0, &row));
  return row;
}

PostgresParams Params(const ExperimentKey& key) {
  PostgresParams params;
  return params.Text(key.ns).Text(key.name);
}

}  // namespace

v1::Lease LeaseOfRow(const ExperimentKey& key, int64_t epoch, const std::string& holder,
                     int64_t expiry) {
  v1::Lease lease = NoLease(key);
  lease.set_epoch(epoch);
  lease.set_holder(holder);
  if (!holder.empty()) *lease.mutable_expiry() = ToProto(absl::FromUnixNanos(expiry));
  return lease;
}

StatusOr<Versioned<v1::Experiment>> GetExperiment(const ExperimentKey& key,
                                                  PostgresConnection* db) {
  return ReadOne<Versioned<v1::Experiment>>(db->Query(kExperiment, Params(key)), NoExperiment(key));
}

StatusOr<std::vector<Versioned<v1::Experiment>>> ListExperiments(const std::string& ns,
                                                                 PostgresConnection* db) {
  PostgresParams params;
  if (ns.empty()) return ReadAll<Versioned<v1::Experiment>>(db->Query(kExperiments));
  return ReadAll<Versioned<v1::Experiment>>(db->Query(kExperimentsOfNamespace, params.Text(ns)));
}

StatusOr<Versioned<v1::Trial>> GetTrial(const TrialKey& key, PostgresConnection* db) {
  return ReadOne<Versioned<v1::Trial>>(db->Query(kTrial, Params(key.experiment).Int(key.number)),
                                       NoTrial(key));
}

StatusOr<std::vector<Versioned<v1::Trial>>> ListTrials(const TrialQuery& query,
                                                       PostgresConnection* db) {
  PostgresParams params = Params(query.experiment);
  params.Int(query.after_number).Limit(query.limit);
  const bool all = !query.live_only && query.changed_after == 0;
  if (all) return ReadAll<Versioned<v1::Trial>>(db->Query(kTrials, params));
  params.Int(query.changed_after);
  return ReadAll<Versioned<v1::Trial>>(
      db->Query(query.live_only ? kLiveTrials : kChangedTrials, params));
}

StatusOr<std::vector<Versioned<v1::Attempt>>> ListAttempts(const AttemptQuery& query,
                                                           PostgresConnection* db) {
  PostgresParams params = Params(query.experiment);
  params.Int(query.after_trial).Int(query.after_number);
  params.Int(query.changed_after).Limit(query.limit);
  if (query.trial == 0) {
    const char* sql = query.open_only           ? kOpenAttempts
                      : query.changed_after > 0 ? kChangedAttempts
                                                : kAttempts;
    return ReadAll<Versioned<v1::Attempt>>(db->Query(sql, params));
  }
  params.Int(query.trial).Bool(query.open_only);
  return ReadAll<Versioned<v1::Attempt>>(db->Query(kTrialsAttempts, params));
}

StatusOr<std::vector<Versioned<v1::Checkpoint>>> ListCheckpoints(const TrialKey& key,
                                                                 PostgresConnection* db) {
  return ReadAll<Versioned<v1::Checkpoint>>(
      db->Query(kCheckpoints, Params(key.experiment).Int(key.number)));
}

StatusOr<std::vector<StoredObservation>> ListObservations(const ObservationQuery& query,
                                                          PostgresConnection* db) {
  const bool any = query.metric.empty();
  PostgresParams params = Params(query.trial.experiment);
  params.Int(query.trial.number).Bool(query.include_superseded);
  if (!any) params.Text(query.metric);
  ASSIGN_OR_RETURN(const PostgresResult result,
                   db->Query(any ? kObservations : kObservationsOfMetric, params));
  std::vector<StoredObservation> rows(result.rows());
  for (int i = 0; i < result.rows(); ++i) {
    rows[i] = {.trial = query.trial.number,
               .attempt = static_cast<int32_t>(result.Int(i, 0)),
               .metric = any ? result.Bytes(i, 2) : query.metric,
               .step = result.Int(i, 1),
               .value = result.Double(i, 3),
               .time = absl::FromUnixNanos(result.Int(i, 4)),
               .implicit_step = result.Int(i, 5) != 0,
               .superseded = result.Int(i, 6) != 0};
  }
  return rows;
}

StatusOr<std::vector<v1::Event>> ListEvents(const EventQuery& query, PostgresConnection* db) {
  return ReadAll<v1::Event>(
      db->Query(kEvents, Params(query.experiment).Int(query.after_id).Limit(query.limit)));
}

StatusOr<std::vector<v1::Intent>> ListIntents(const ExperimentKey& key, PostgresConnection* db) {
  return ReadAll<v1::Intent>(db->Query(kIntents, Params(key)));
}

StatusOr<v1::Lease> GetLease(const ExperimentKey& key, PostgresConnection* db) {
  ASSIGN_OR_RETURN(const PostgresResult result, db->Query(kLease, Params(key)));
  if (result.rows() == 0 || result.IsNull(0, 3)) return NoExperiment(key);
  return LeaseOfRow(key, result.Int(0, 0), result.Bytes(0, 1), result.Int(0, 2));
}

StatusOr<std::vector<LeaseClaim>> ListLeases(const std::string& holder, PostgresConnection* db) {
  ASSIGN_OR_RETURN(const PostgresResult result, db->Query(kLeases, PostgresParams().Text(holder)));
  std::vector<LeaseClaim> leases;
  for (int i = 0; i < result.rows(); ++i) {
    leases.push_back({{result.Bytes(i, 0), result.Bytes(i, 1)}, result.Int(i, 2)});
  }
  return leases;
}

StatusOr<bool> HasRows(const ExperimentKey& key, PostgresConnection* db) {
  ASSIGN_OR_RETURN(const PostgresResult result, db->Query(kHasRows, Params(key)));
  return result.Int(0, 0) != 0;
}

StatusOr<int64_t> CountExperiments(const std::string& ns, PostgresConnection* db) {
  ASSIGN_OR_RETURN(const PostgresResult result,
                   db->Query(kCountExperiments, PostgresParams().Text(ns)));
  return result.Int(0, 0);
}

StatusOr<int64_t> Revision(PostgresConnection* db) {
  ASSIGN_OR_RETURN(const PostgresResult result, db->Query(kRevision));
  if (result.rows() == 1) return result.Int(0, 0);
  return absl::DataLossError("the database is damaged: the row of shirabe.store is gone");
}

StatusOr<std::vector<Change>> ListChanges(int64_t after, int64_t limit, PostgresConnection* db) {
  PostgresParams params;
  ASSIGN_OR_RETURN(const PostgresResult result,
                   db->Query(kChanges, params.Int(after).Limit(limit)));
  std::vector<Change> changes;
  for (int i = 0; i < result.rows(); ++i) {
    const Change change{.kind = static_cast<Change::Kind>(result.Int(i, 1)),
                        .experiment = {result.Bytes(i, 2), result.Bytes(i, 3)},
                        .trial = result.Int(i, 4),
                        .revision = result.Int(i, 0)};
    if (!AddChange(change, limit, &changes)) break;
  }
  return changes;
}

std::vector<PostgresStatement> PostgresReadStatements() {
  return {{"experiment", kExperiment, "name_namespace_name_key"},
          {"experiments", kExperiments, "experiment_pkey"},
          {"experiments of a namespace", kExperimentsOfNamespace, "name_namespace_name_key"},
          {"trial", kTrial, "trial_pkey"},
          {"trials", kTrials, "trial_pkey"},
          {"live trials", kLiveTrials, "trial_live"},
          {"changed trials", kChangedTrials, "trial_by_revision"},
          {"attempts", kAttempts, "attempt_pkey"},
          {"open attempts", kOpenAttempts, "attempt_open"},
          {"attempts of a trial", kTrialsAttempts, "attempt_pkey"},
          {"checkpoints", kCheckpoints, "checkpoint_pkey"},
          {"observations", kObservations, "observation_pkey"},
          {"observations of a metric", kObservationsOfMetric, "observation_pkey"},
          {"events", kEvents, "event_pkey"},
          {"intents", kIntents, "intent_pkey"},
          {"lease", kLease, "name_namespace_name_key"},
          {"changes", kChanges, "trial_by_revision"}};
}

}  // namespace shirabe::db
