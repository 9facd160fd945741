#include "db/postgres/postgres_statements.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "absl/time/time.h"
#include "base/timestamp.h"
#include "db/commit_rules.h"

namespace shirabe::db {
namespace {

using Type = PostgresArray::Type;

// So that no parameter comes near the server's limit of 1 GB, and none takes long.
constexpr size_t kMaxRows = 20'000;

constexpr char kWriteNames[] =
    "INSERT INTO name(id, namespace, name) SELECT * FROM unnest($1::int8[], $2::text[], "
    "$3::text[])";
constexpr char kWriteMetrics[] =
    "INSERT INTO metric(id, name) SELECT * FROM unnest($1::int8[], $2::bytea[])";
constexpr char kWriteLeases[] =
    "UPDATE name SET epoch = q.epoch, holder = q.holder, expiry = q.expiry"
    " FROM unnest($1::int8[], $2::int8[], $3::text[], $4::int8[]) q(id, epoch, holder, expiry)"
    " WHERE name.id = q.id";
constexpr char kWriteExperiments[] =
    "INSERT INTO experiment(id, revision, body)"
    " SELECT * FROM unnest($1::int8[], $2::int8[], $3::bytea[])"
    " ON CONFLICT (id) DO UPDATE SET revision = excluded.revision, body = excluded.body";
constexpr char kWriteTrials[] =
    "INSERT INTO trial(experiment, number, live, revision, body)"
    " SELECT * FROM unnest($1::int8[], $2::int8[], $3::bool[], $4::int8[], $5::bytea[])"
    " ON CONFLICT (experiment, number) DO UPDATE"
    " SET live = excluded.live, revision = excluded.revision, body = excluded.body";
constexpr char kWriteAttempts[] =
    "INSERT INTO attempt(experiment, trial, number, open, revision, body)"
    " SELECT * FROM unnest($1::int8[], $2::int8[], $3::int4[], $4::bool[], $5::int8[], $6::bytea[])"
    " ON CONFLICT (experiment, trial, number) DO UPDATE"
    " SET open = excluded.open, revision = excluded.revision, body = excluded.body";
constexpr char kWriteCheckpoints[] =
    "INSERT INTO checkpoint(experiment, trial, attempt, step, revision, body)"
    " SELECT * FROM unnest($1::int8[], $2::int8[], $3::int4[], $4::int8[], $5::int8[], $6::bytea[])"
    " ON CONFLICT (experiment, trial, attempt, step) DO UPDATE"
    " SET revision = excluded.revision, body = excluded.body";
constexpr char kWriteEvents[] =
    "INSERT INTO event(experiment, id, body)"
    " SELECT * FROM unnest($1::int8[], $2::int8[], $3::bytea[])";
constexpr char kWriteIntents[] =
    "INSERT INTO intent(experiment, id, revision, body)"
    " SELECT * FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::bytea[])";
constexpr char kRemovals[] =
    "DELETE FROM intent USING unnest($1::int8[], $2::int8[]) q(experiment, id)"
    " WHERE intent.experiment = q.experiment AND intent.id = q.id";
// A repeated value changes nothing, NaN included: to PostgreSQL it equals itself.
constexpr char kWriteObservations[] =
    "INSERT INTO observation AS o"
    " (experiment, trial, attempt, step, metric, value, time, implicit, superseded)"
    " SELECT * FROM unnest($1::int8[], $2::int8[], $3::int4[], $4::int8[], $5::int8[],"
    " $6::float8[], $7::int8[], $8::bool[], $9::bool[])"
    " ON CONFLICT (experiment, trial, attempt, step, metric) DO UPDATE"
    " SET value = excluded.value, time = excluded.time, implicit = excluded.implicit,"
    " superseded = o.superseded OR excluded.superseded"
    " WHERE o.value IS DISTINCT FROM excluded.value OR o.superseded < excluded.superseded";
// What Covers (db/commit_rules.h) says, of both kinds of steps.
constexpr char kSupersede[] =
    "UPDATE observation o SET superseded = true"
    " WHERE experiment = $1::int8 AND trial = $2::int8 AND attempt <= $3::int4 AND NOT superseded"
    " AND step > CASE WHEN implicit THEN coalesce((SELECT q.count"
    " FROM unnest($5::int8[], $6::int8[]) q(metric, count) WHERE q.metric = o.metric), 0)"
    " ELSE $4::int8 END";
constexpr char kDeleteName[] = "UPDATE name SET deleted = $2::int8 WHERE id = $1::int8";

constexpr const char* kDeletions[] = {
    "DELETE FROM trial WHERE experiment = $1::int8",
    "DELETE FROM attempt WHERE experiment = $1::int8",
    "DELETE FROM checkpoint WHERE experiment = $1::int8",
    "DELETE FROM observation WHERE experiment = $1::int8",
    "DELETE FROM event WHERE experiment = $1::int8",
    "DELETE FROM intent WHERE experiment = $1::int8",
    "DELETE FROM experiment WHERE id = $1::int8",
};

#define SHIRABE_REMOVE(table, order)                                      \
  "DELETE FROM " table " WHERE ctid = ANY (ARRAY(SELECT ctid FROM " table \
  " WHERE experiment = $1::int8" order " LIMIT $2::int8))"
constexpr const char* kSomeRows[] = {
    SHIRABE_REMOVE("observation", ""),
    SHIRABE_REMOVE("event", ""),
    SHIRABE_REMOVE("checkpoint", ""),
    SHIRABE_REMOVE("attempt", " ORDER BY trial DESC"),
    SHIRABE_REMOVE("trial", " ORDER BY number DESC"),
};

auto KeyOf(const PostgresObservation& row) {
  return std::tie(row.experiment, row.trial, row.attempt, row.step, row.metric);
}

// NaN equals NaN here: the question is whether a row says anything new.
bool SameValue(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// As if the rows were written one after the other; a statement may touch each row only once.
void Merge(std::vector<PostgresObservation>* rows) {
  std::stable_sort(rows->begin(), rows->end(),
                   [](const auto& a, const auto& b) { return KeyOf(a) < KeyOf(b); });
  size_t kept = 0;
  for (size_t i = 1; i < rows->size(); ++i) {
    PostgresObservation& old = (*rows)[kept];
    const PostgresObservation& row = (*rows)[i];
    if (KeyOf(old) != KeyOf(row)) {
      (*rows)[++kept] = row;
    } else if (!SameValue(old.value, row.value) || old.superseded < row.superseded) {
      const bool superseded = old.superseded || row.superseded;
      old = row;
      old.superseded = superseded;
    }
  }
  if (!rows->empty()) rows->resize(kept + 1);
}

}  // namespace

PostgresWrites::Columns PostgresWrites::MakeColumns(const std::string& types) {
  Columns columns;
  for (const char type : types) {
    columns.emplace_back(type == 'o'   ? Type::kBool
                         : type == 'i' ? Type::kInt4
                         : type == 'l' ? Type::kInt8
                         : type == 'd' ? Type::kDouble
                         : type == 't' ? Type::kText
                                       : Type::kBytes);
  }
  return columns;
}

void PostgresWrites::Once(const RowKey& key) {
  if (put_.insert(key).second) return;
  Flush();
  put_.insert(key);
}

void PostgresWrites::AddName(int64_t id, const ExperimentKey& key) {
  names_[0].Add(id);
  names_[1].AddBytes(key.ns);
  names_[2].AddBytes(key.name);
}

void PostgresWrites::AddMetric(int64_t id, const std::string& name) {
  metrics_[0].Add(id);
  metrics_[1].AddBytes(name);
}

void PostgresWrites::SaveLease(int64_t id, const v1::Lease& lease) {
  Once({0, id});
  leases_[0].Add(id);
  leases_[1].Add(lease.epoch());
  leases_[2].AddBytes(lease.holder());
  leases_[3].Add(absl::ToUnixNanos(FromProto(lease.expiry())));
}

void PostgresWrites::Put(const RowPlace& place, const v1::Experiment& experiment) {
  Once({1, place.experiment});
  experiments_[0].Add(place.experiment);
  experiments_[1].Add(place.revision);
  experiments_[2].AddBytes(experiment.SerializeAsString());
}

void PostgresWrites::Put(const RowPlace& place, const v1::Trial& trial) {
  Once({2, place.experiment, trial.number()});
  trials_[0].Add(place.experiment);
  trials_[1].Add(trial.number());
  trials_[2].Add(IsLive(trial) ? 1 : 0);
  trials_[3].Add(place.revision);
  trials_[4].AddBytes(trial.SerializeAsString());
}

void PostgresWrites::Put(const RowPlace& place, const v1::Attempt& attempt) {
  Once({3, place.experiment, attempt.trial(), attempt.number()});
  attempts_[0].Add(place.experiment);
  attempts_[1].Add(attempt.trial());
  attempts_[2].Add(attempt.number());
  attempts_[3].Add(IsOpen(attempt) ? 1 : 0);
  attempts_[4].Add(place.revision);
  attempts_[5].AddBytes(attempt.SerializeAsString());
}

void PostgresWrites::Put(const RowPlace& place, const v1::Checkpoint& checkpoint) {
  Once({4, place.experiment, checkpoint.trial(), checkpoint.attempt(), checkpoint.step()});
  checkpoints_[0].Add(place.experiment);
  checkpoints_[1].Add(checkpoint.trial());
  checkpoints_[2].Add(checkpoint.attempt());
  checkpoints_[3].Add(checkpoint.step());
  checkpoints_[4].Add(place.revision);
  checkpoints_[5].AddBytes(checkpoint.SerializeAsString());
}

void PostgresWrites::Add(const RowPlace& place, const v1::Event& event) {
  events_[0].Add(place.experiment);
  events_[1].Add(event.id());
  events_[2].AddBytes(event.SerializeAsString());
}

void PostgresWrites::Add(const RowPlace& place, const v1::Intent& intent) {
  intents_[0].Add(place.experiment);
  intents_[1].Add(intent.id());
  intents_[2].Add(place.revision);
  intents_[3].AddBytes(intent.SerializeAsString());
}

void PostgresWrites::Remove(int64_t experiment, int64_t intent) {
  removals_[0].Add(experiment);
  removals_[1].Add(intent);
}

void PostgresWrites::Supersede(int64_t experiment, const Batch::Supersede& supersede,
                               const std::map<int64_t, int64_t>& counts) {
  Flush();
  PostgresArray metrics(Type::kInt8), steps(Type::kInt8);
  for (const auto& [metric, step] : counts) {
    metrics.Add(metric);
    steps.Add(step);
  }
  PostgresParams params;
  params.Int(experiment).Int(supersede.trial).Int4(supersede.attempt).Int(supersede.past_step);
  db_->Send(kSupersede, params.Array(metrics).Array(steps));
}

void PostgresWrites::Delete(const RowPlace& place) {
  Flush();
  for (const char* sql : kDeletions) db_->Send(sql, PostgresParams().Int(place.experiment));
  db_->Send(kDeleteName, PostgresParams().Int(place.experiment).Int(place.revision));
}

void PostgresWrites::RemoveRows(int64_t experiment, int64_t most) {
  Flush();
  for (const char* sql : kSomeRows) db_->Send(sql, PostgresParams().Int(experiment).Int(most));
}

void PostgresWrites::Write(const char* sql, Columns* columns) {
  if (columns->front().size() == 0) return;
  PostgresParams params;
  for (PostgresArray& column : *columns) {
    params.Array(column);
    column.Clear();
  }
  db_->Send(sql, params);
}

void PostgresWrites::Flush() {
  put_.clear();
  Write(kWriteNames, &names_);
  Write(kWriteMetrics, &metrics_);
  Write(kWriteExperiments, &experiments_);
  Write(kWriteTrials, &trials_);
  Write(kWriteAttempts, &attempts_);
  Write(kWriteCheckpoints, &checkpoints_);
  FlushObservations();
  Write(kWriteEvents, &events_);
  Write(kWriteIntents, &intents_);
  Write(kRemovals, &removals_);
  Write(kWriteLeases, &leases_);
}

void PostgresWrites::FlushObservations() {
  Merge(&observations_);
  for (size_t begin = 0; begin < observations_.size(); begin += kMaxRows) {
    const size_t end = std::min(observations_.size(), begin + kMaxRows);
    Columns columns = MakeColumns("llilldloo");
    for (size_t i = begin; i < end; ++i) {
      const PostgresObservation& row = observations_[i];
      columns[0].Add(row.experiment);
      columns[1].Add(row.trial);
      columns[2].Add(row.attempt);
      columns[3].Add(row.step);
      columns[4].Add(row.metric);
      columns[5].AddDouble(row.value);
      columns[6].Add(row.time);
      columns[7].Add(row.implicit ? 1 : 0);
      columns[8].Add(row.superseded ? 1 : 0);
    }
    Write(kWriteObservations, &columns);
  }
  observations_.clear();
}

}  // namespace shirabe::db
