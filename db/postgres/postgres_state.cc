#include "db/postgres/postgres_state.h"

#include <algorithm>
#include <set>
#include <utility>

#include "db/commit_rules.h"
#include "db/postgres/postgres_reader.h"

namespace shirabe::db {
namespace {

// Each looks a list of keys up, and answers with their places in that list, counted from 1. An
// experiment is given by its place in the lists of names, $1 and $2.
//
// OFFSET 0 keeps the planner from joining in another order: it may plan while the tables are empty,
// and think then that all trials of an experiment are as good as one.
constexpr char kStateOfNames[] =
    "SELECT q.place, n.id, epoch, holder, greatest(expiry, (SELECT h.expiry FROM name h"
    " WHERE h.namespace = '' AND h.name = 'holder:' || n.holder)),"
    " coalesce((SELECT revision FROM experiment e WHERE e.id = n.id), 0)"
    " FROM unnest($1::text[], $2::text[]) WITH ORDINALITY q(namespace, name, place),"
    " LATERAL (SELECT * FROM name WHERE name.namespace = q.namespace AND name.name = q.name"
    " OFFSET 0) n";
#define SHIRABE_EXPERIMENT_OF_Q       \
  "experiment = (SELECT id FROM name" \
  " WHERE namespace = ($1::text[])[q.which] AND name = ($2::text[])[q.which])"
constexpr char kStateOfTrials[] =
    "SELECT q.place, t.revision"
    " FROM unnest($3::int4[], $4::int8[]) WITH ORDINALITY q(which, trial, place),"
    " LATERAL (SELECT revision FROM trial WHERE " SHIRABE_EXPERIMENT_OF_Q
    " AND number = q.trial OFFSET 0) t";
constexpr char kStateOfAttempts[] =
    "SELECT q.place, a.revision, CASE WHEN q.fenced THEN a.body END"
    " FROM unnest($3::int4[], $4::int8[], $5::int4[], $6::bool[])"
    " WITH ORDINALITY q(which, trial, attempt, fenced, place),"
    " LATERAL (SELECT revision, body FROM attempt WHERE " SHIRABE_EXPERIMENT_OF_Q
    " AND attempt.trial = q.trial AND number = q.attempt OFFSET 0) a";
constexpr char kStateOfCheckpoints[] =
    "SELECT q.place, c.revision FROM unnest($3::int4[], $4::int8[], $5::int4[], $6::int8[])"
    " WITH ORDINALITY q(which, trial, attempt, step, place),"
    " LATERAL (SELECT revision FROM checkpoint k WHERE " SHIRABE_EXPERIMENT_OF_Q
    " AND k.trial = q.trial AND k.attempt = q.attempt AND k.step = q.step OFFSET 0) c";
constexpr char kGenerations[] =
    "SELECT q.which, e.body FROM unnest($3::int4[]) q(which),"
    " LATERAL (SELECT body FROM experiment WHERE id = (SELECT id FROM name"
    " WHERE namespace = ($1::text[])[q.which] AND name = ($2::text[])[q.which]) OFFSET 0) e";
constexpr char kWaiting[] =
    "SELECT q.which, i.body FROM unnest($3::int4[]) q(which),"
    " LATERAL (SELECT body FROM intent WHERE " SHIRABE_EXPERIMENT_OF_Q " OFFSET 0) i";
constexpr char kStateOfMetrics[] =
    "SELECT q.place, m.id FROM unnest($1::bytea[]) WITH ORDINALITY q(name, place),"
    " LATERAL (SELECT id FROM metric WHERE sha256(metric.name) = sha256(q.name) OFFSET 0) m";

using Type = PostgresArray::Type;

// A trial number that no stored trial can have is no question for the database.
bool Fits(int64_t trial) { return trial >= 1; }

// The entry of a map that a result's row speaks of, by its place.
template <class Map>
std::vector<typename Map::iterator> Places(Map* map) {
  std::vector<typename Map::iterator> places;
  for (auto it = map->begin(); it != map->end(); ++it) places.push_back(it);
  return places;
}

template <class Map>
int64_t RevisionOf(const Map& map, const typename Map::key_type& key) {
  const auto found = map.find(key);
  return found == map.end() ? 0 : found->second;
}

template <class Record>
Status CheckRevision(const Write<Record>& write, int64_t current) {
  if (current == write.expected) return absl::OkStatus();
  return Conflict(Describe(write.record), write.expected, current);
}

// Each metric that the batch needs an id of, once.
std::set<std::string> MetricsOf(const Batch& batch) {
  std::set<std::string> names;
  for (const StoredObservation& row : batch.observations) names.insert(row.metric);
  for (const Batch::Supersede& supersede : batch.supersede) {
    for (const auto& [name, count] : supersede.counts) names.insert(name);
  }
  return names;
}

}  // namespace

int PostgresState::IndexOf(const ExperimentKey& key) {
  const auto [it, fresh] = indexes_.try_emplace(key, static_cast<int>(names_.size()));
  if (fresh) names_.push_back({.key = key, .lease = NoLease(key)});
  return it->second;
}

NameState& PostgresState::Name(const ExperimentKey& key) { return names_[IndexOf(key)]; }

void PostgresState::Want(const Batch& batch) {
  const int which = IndexOf(batch.experiment);
  if (HasConditions(batch)) names_[which].conditional = true;
  const auto want_trial = [&](int64_t trial) {
    if (Fits(trial)) trials_[{which, trial}] = 0;
  };
  for (const auto& write : batch.trials) want_trial(write.record.number());
  for (const auto& row : batch.observations) want_trial(row.trial);
  for (const auto& [attempt, expected] : batch.attempts) {
    want_trial(attempt.trial());
    attempts_[{which, attempt.trial(), attempt.number()}];
  }
  for (const auto& [checkpoint, expected] : batch.checkpoints) {
    want_trial(checkpoint.trial());
    checkpoints_[{which, checkpoint.trial(), checkpoint.attempt(), checkpoint.step()}] = 0;
  }
  for (const Batch::Fence& fence : batch.fences) {
    attempts_[{which, fence.trial, fence.attempt}].fenced = true;
  }
  for (const std::string& name : MetricsOf(batch)) {
    if (!metrics_->contains(name)) unknown_metrics_.push_back(name);
  }
}

void PostgresState::Send(PostgresConnection* db) const {
  PostgresArray namespaces(Type::kText), names(Type::kText);
  for (const NameState& name : names_) {
    namespaces.AddBytes(name.key.ns);
    names.AddBytes(name.key.name);
  }
  PostgresParams keys;
  db->Send(kStateOfNames, keys.Array(namespaces).Array(names));
  if (const std::vector<int> conditional = Conditional(); !conditional.empty()) {
    PostgresArray which(Type::kInt4);
    for (const int index : conditional) which.Add(index + 1);
    db->Send(kGenerations, PostgresParams(keys).Array(which));
    db->Send(kWaiting, PostgresParams(keys).Array(which));
  }
  if (!trials_.empty()) {
    PostgresArray which(Type::kInt4), trial(Type::kInt8);
    for (const auto& [id, revision] : trials_) {
      which.Add(std::get<0>(id) + 1);
      trial.Add(std::get<1>(id));
    }
    db->Send(kStateOfTrials, PostgresParams(keys).Array(which).Array(trial));
  }
  if (!attempts_.empty()) {
    PostgresArray which(Type::kInt4), trial(Type::kInt8), attempt(Type::kInt4), fenced(Type::kBool);
    for (const auto& [id, state] : attempts_) {
      which.Add(std::get<0>(id) + 1);
      trial.Add(std::get<1>(id));
      attempt.Add(std::get<2>(id));
      fenced.Add(state.fenced ? 1 : 0);
    }
    db->Send(kStateOfAttempts,
             PostgresParams(keys).Array(which).Array(trial).Array(attempt).Array(fenced));
  }
  if (!checkpoints_.empty()) {
    PostgresArray which(Type::kInt4), trial(Type::kInt8), attempt(Type::kInt4), step(Type::kInt8);
    for (const auto& [id, revision] : checkpoints_) {
      which.Add(std::get<0>(id) + 1);
      trial.Add(std::get<1>(id));
      attempt.Add(std::get<2>(id));
      step.Add(std::get<3>(id));
    }
    db->Send(kStateOfCheckpoints,
             PostgresParams(keys).Array(which).Array(trial).Array(attempt).Array(step));
  }
  if (!unknown_metrics_.empty()) {
    PostgresArray metrics(Type::kBytes);
    for (const std::string& name : unknown_metrics_) metrics.AddBytes(name);
    db->Send(kStateOfMetrics, PostgresParams().Array(metrics));
  }
}

Status PostgresState::ParseResults(const std::vector<PostgresResult>& results, size_t* next) {
  ParseNames(results[(*next)++]);
  if (!Conditional().empty()) {
    RETURN_IF_ERROR(ParseGenerations(results[(*next)++]));
    RETURN_IF_ERROR(ParseIntents(results[(*next)++]));
  }
  if (!trials_.empty()) {
    const auto places = Places(&trials_);
    const PostgresResult& rows = results[(*next)++];
    for (int i = 0; i < rows.rows(); ++i) places[rows.Int(i, 0) - 1]->second = rows.Int(i, 1);
  }
  if (!attempts_.empty()) RETURN_IF_ERROR(ParseAttempts(results[(*next)++]));
  if (!checkpoints_.empty()) {
    const auto places = Places(&checkpoints_);
    const PostgresResult& rows = results[(*next)++];
    for (int i = 0; i < rows.rows(); ++i) places[rows.Int(i, 0) - 1]->second = rows.Int(i, 1);
  }
  if (!unknown_metrics_.empty()) {
    const PostgresResult& rows = results[(*next)++];
    for (int i = 0; i < rows.rows(); ++i) {
      (*metrics_)[unknown_metrics_[rows.Int(i, 0) - 1]] = rows.Int(i, 1);
    }
  }
  return absl::OkStatus();
}

void PostgresState::ParseNames(const PostgresResult& result) {
  for (int i = 0; i < result.rows(); ++i) {
    NameState& name = names_[result.Int(i, 0) - 1];
    name.id = result.Int(i, 1);
    name.lease = LeaseOfRow(name.key, result.Int(i, 2), result.Bytes(i, 3), result.Int(i, 4));
    name.revision = result.Int(i, 5);
  }
}

std::vector<int> PostgresState::Conditional() const {
  std::vector<int> indexes;
  for (size_t i = 0; i < names_.size(); ++i) {
    if (names_[i].conditional) indexes.push_back(static_cast<int>(i));
  }
  return indexes;
}

Status PostgresState::ParseGenerations(const PostgresResult& result) {
  for (int i = 0; i < result.rows(); ++i) {
    v1::Experiment experiment;
    RETURN_IF_ERROR(result.Parse(i, 1, &experiment));
    names_[result.Int(i, 0) - 1].generation = experiment.metadata().generation();
  }
  return absl::OkStatus();
}

Status PostgresState::ParseIntents(const PostgresResult& result) {
  for (int i = 0; i < result.rows(); ++i) {
    RETURN_IF_ERROR(result.Parse(i, 1, &names_[result.Int(i, 0) - 1].waiting.emplace_back()));
  }
  return absl::OkStatus();
}

Status PostgresState::ParseAttempts(const PostgresResult& result) {
  const auto places = Places(&attempts_);
  for (int i = 0; i < result.rows(); ++i) {
    AttemptState& state = places[result.Int(i, 0) - 1]->second;
    state.revision = result.Int(i, 1);
    if (state.fenced) RETURN_IF_ERROR(result.Parse(i, 2, &state.record.emplace()));
  }
  return absl::OkStatus();
}

Status PostgresState::Check(const Batch& batch) {
  const int which = IndexOf(batch.experiment);
  RETURN_IF_ERROR(CheckExperiment(batch, names_[which]));
  RETURN_IF_ERROR(CheckFences(batch, which));
  if (HasConditions(batch)) {
    RETURN_IF_ERROR(CheckConditions(batch, names_[which].generation, names_[which].waiting));
  }
  RETURN_IF_ERROR(CheckRevisions(batch, which));
  return CheckParents(batch, which);
}

Status PostgresState::CheckExperiment(const Batch& batch, const NameState& name) const {
  if (Creates(batch)) {
    if (name.revision == 0) return absl::OkStatus();
    return Conflict(Describe(batch.put->record), 0, name.revision);
  }
  if (name.revision == 0) return NoExperiment(batch.experiment);
  return CheckEpoch(batch, name.lease);
}

Status PostgresState::CheckFences(const Batch& batch, int which) const {
  for (const Batch::Fence& fence : batch.fences) {
    const AttemptState& state = attempts_.at({which, fence.trial, fence.attempt});
    RETURN_IF_ERROR(CheckFence(batch, fence, state.record ? &*state.record : nullptr));
  }
  return absl::OkStatus();
}

Status PostgresState::CheckRevisions(const Batch& batch, int which) const {
  if (batch.put) RETURN_IF_ERROR(CheckRevision(*batch.put, names_[which].revision));
  for (const auto& write : batch.trials) {
    RETURN_IF_ERROR(
        CheckRevision(write, RevisionOf(trials_, TrialId{which, write.record.number()})));
  }
  for (const auto& write : batch.attempts) {
    const AttemptId id{which, write.record.trial(), write.record.number()};
    RETURN_IF_ERROR(CheckRevision(write, attempts_.at(id).revision));
  }
  for (const auto& write : batch.checkpoints) {
    const v1::Checkpoint& checkpoint = write.record;
    const CheckpointId id{which, checkpoint.trial(), checkpoint.attempt(), checkpoint.step()};
    RETURN_IF_ERROR(CheckRevision(write, RevisionOf(checkpoints_, id)));
  }
  return absl::OkStatus();
}

Status PostgresState::CheckParents(const Batch& batch, int which) const {
  std::set<int64_t> known;
  for (const auto& write : batch.trials) known.insert(write.record.number());
  const auto check = [&](int64_t trial) {
    if (known.contains(trial)) return absl::OkStatus();
    if (RevisionOf(trials_, TrialId{which, trial}) == 0) return NoTrial({batch.experiment, trial});
    known.insert(trial);
    return absl::OkStatus();
  };
  for (const auto& write : batch.attempts) RETURN_IF_ERROR(check(write.record.trial()));
  for (const auto& write : batch.checkpoints) RETURN_IF_ERROR(check(write.record.trial()));
  for (const auto& row : batch.observations) RETURN_IF_ERROR(check(row.trial));
  return absl::OkStatus();
}

void PostgresState::Apply(const Batch& batch, int64_t revision) {
  const int which = IndexOf(batch.experiment);
  if (batch.delete_experiment) return Forget(which);
  if (batch.put) names_[which].revision = revision;
  if (names_[which].conditional) ApplyIntents(batch, &names_[which]);
  for (const auto& write : batch.trials) trials_[{which, write.record.number()}] = revision;
  for (const auto& [attempt, expected] : batch.attempts) {
    AttemptState& state = attempts_[{which, attempt.trial(), attempt.number()}];
    state.revision = revision;
    if (state.fenced) state.record = attempt;
  }
  for (const auto& [checkpoint, expected] : batch.checkpoints) {
    checkpoints_[{which, checkpoint.trial(), checkpoint.attempt(), checkpoint.step()}] = revision;
  }
}

void PostgresState::ApplyIntents(const Batch& batch, NameState* name) {
  if (batch.put) name->generation = batch.put->record.metadata().generation();
  std::erase_if(name->waiting, [&](const v1::Intent& intent) {
    const std::vector<int64_t>& done = batch.intents_done;
    return std::find(done.begin(), done.end(), intent.id()) != done.end();
  });
  name->waiting.insert(name->waiting.end(), batch.intents.begin(), batch.intents.end());
}

void PostgresState::Forget(int which) {
  names_[which].revision = 0;
  names_[which].generation = 0;
  names_[which].waiting.clear();
  names_[which].lease = LeaseAfterDeletion(names_[which].lease);
  for (auto& [id, revision] : trials_) {
    if (std::get<0>(id) == which) revision = 0;
  }
  for (auto& [id, state] : attempts_) {
    if (std::get<0>(id) == which) state = {.fenced = state.fenced};
  }
  for (auto& [id, revision] : checkpoints_) {
    if (std::get<0>(id) == which) revision = 0;
  }
}

std::vector<std::string> PostgresState::new_metrics(const Batch& batch) const {
  std::vector<std::string> names;
  for (const StoredObservation& row : batch.observations) {
    if (!metrics_->contains(row.metric)) names.push_back(row.metric);
  }
  return names;
}

int64_t PostgresState::MetricId(const std::string& name) const {
  const auto found = metrics_->find(name);
  return found == metrics_->end() ? 0 : found->second;
}

std::vector<PostgresStatement> PostgresState::Statements() {
  return {{"names", kStateOfNames, "name_namespace_name_key"},
          {"trials wanted", kStateOfTrials, "trial_pkey"},
          {"attempts wanted", kStateOfAttempts, "attempt_pkey"},
          {"checkpoints wanted", kStateOfCheckpoints, "checkpoint_pkey"},
          {"generations wanted", kGenerations, "experiment_pkey"},
          {"intents waiting", kWaiting, "intent_pkey"},
          {"metrics wanted", kStateOfMetrics, "metric_by_name"}};
}

}  // namespace shirabe::db
