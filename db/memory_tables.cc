#include "db/memory_tables.h"

#include <cmath>
#include <iterator>
#include <tuple>
#include <utility>

#include "db/commit_rules.h"
#include "db/load_rules.h"

namespace shirabe::db {
namespace {

// NaN equals NaN here: the question is whether a row says anything new.
bool SameValue(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

const Rows* MemoryTables::Find(const ExperimentKey& key) const {
  const auto found = experiments_.find(key);
  return found == experiments_.end() ? nullptr : &found->second;
}

StatusOr<int64_t> MemoryTables::Commit(const Batch& batch) {
  RETURN_IF_ERROR(Check(batch));
  ++revision_;
  batch.delete_experiment ? Delete(batch.experiment) : Apply(batch);
  return revision_;
}

Status MemoryTables::Check(const Batch& batch) const {
  static const Rows kNone;
  const Rows* rows = Find(batch.experiment);
  const int64_t revision = rows == nullptr ? 0 : rows->experiment.revision;
  if (Creates(batch)) {
    if (rows != nullptr) return Conflict(Describe(batch.put->record), 0, revision);
    rows = &kNone;
  } else {
    if (rows == nullptr) return NoExperiment(batch.experiment);
    RETURN_IF_ERROR(CheckEpoch(batch, leases_.Get(batch.experiment)));
    if (batch.put && batch.put->expected != revision) {
      return Conflict(Describe(batch.put->record), batch.put->expected, revision);
    }
  }
  for (const Batch::Fence& fence : batch.fences) {
    const auto attempt = rows->attempts.find({fence.trial, fence.attempt});
    RETURN_IF_ERROR(CheckFence(
        batch, fence, attempt == rows->attempts.end() ? nullptr : &attempt->second.record));
  }
  if (HasConditions(batch)) {
    std::vector<v1::Intent> waiting;
    for (const auto& [id, row] : rows->intents) waiting.push_back(row.record);
    RETURN_IF_ERROR(
        CheckConditions(batch, rows->experiment.record.metadata().generation(), waiting));
  }
  RETURN_IF_ERROR(CheckRevisions(rows->trials, batch.trials));
  RETURN_IF_ERROR(CheckRevisions(rows->attempts, batch.attempts));
  RETURN_IF_ERROR(CheckRevisions(rows->checkpoints, batch.checkpoints));
  return CheckParents(batch, *rows);
}

void MemoryTables::RecordChange(int64_t old, ChangeId id) {
  std::get<0>(id) = old;
  feed_.erase(id);
  std::get<0>(id) = revision_;
  feed_.insert(std::move(id));
}

template <class Record>
void MemoryTables::Put(const Record& record, const ChangeId& id, Versioned<Record>* row) {
  RecordChange(row->revision, id);
  *row = {record, revision_};
}

void MemoryTables::Apply(const Batch& batch) {
  const ExperimentKey& key = batch.experiment;
  Rows* rows = &experiments_[key];
  if (batch.put) {
    Put(batch.put->record, {0, Change::Kind::kExperiment, key, 0, 0}, &rows->experiment);
  }
  for (const auto& [trial, expected] : batch.trials) {
    Put(trial, {0, Change::Kind::kTrial, key, trial.number(), 0}, &rows->trials[IdOf(trial)]);
  }
  for (const auto& [attempt, expected] : batch.attempts) {
    Put(attempt, {0, Change::Kind::kAttempt, key, attempt.trial(), attempt.number()},
        &rows->attempts[IdOf(attempt)]);
  }
  for (const auto& [checkpoint, expected] : batch.checkpoints) {
    rows->checkpoints[IdOf(checkpoint)] = {checkpoint, revision_};
  }
  for (const v1::Intent& intent : batch.intents) {
    v1::Intent numbered = intent;
    numbered.set_id(++last_id_);
    Put(numbered, {0, Change::Kind::kIntent, key, 0, last_id_}, &rows->intents[last_id_]);
  }
  Append(batch, rows);
  for (const int64_t id : batch.intents_done) {
    feed_.erase({RevisionOf(rows->intents, id), Change::Kind::kIntent, key, 0, id});
    rows->intents.erase(id);
  }
}

void MemoryTables::Append(const Batch& batch, Rows* rows) {
  for (const StoredObservation& row : batch.observations) {
    const auto [it, fresh] =
        rows->observations.try_emplace({row.trial, row.attempt, row.step, row.metric}, row);
    StoredObservation& old = it->second;
    if (fresh || (SameValue(old.value, row.value) && old.superseded >= row.superseded)) continue;
    const bool superseded = old.superseded || row.superseded;
    old = row;
    old.superseded = superseded;
  }
  for (const Batch::Supersede& supersede : batch.supersede) {
    for (auto& [id, row] : rows->observations) {
      if (row.trial == supersede.trial && Supersedes(supersede, row)) row.superseded = true;
    }
  }
  for (const v1::Event& event : batch.events) {
    v1::Event& numbered = rows->events[++last_id_];
    numbered = event;
    numbered.set_id(last_id_);
  }
}

void MemoryTables::Delete(const ExperimentKey& key) {
  std::erase_if(feed_, [&](const ChangeId& id) { return std::get<ExperimentKey>(id) == key; });
  RecordChange(0, {0, Change::Kind::kDeleted, key, 0, 0});
  leases_.Set(key, LeaseAfterDeletion(leases_.Get(key)));
  experiments_.erase(key);
}

Status MemoryTables::WriteSchedule(const ScheduleWrite& write) {
  const auto found = schedules_.find(write.key);
  RETURN_IF_ERROR(
      CheckScheduleRevision(write, found == schedules_.end() ? 0 : found->second.revision));
  if (write.start) RETURN_IF_ERROR(Commit(*write.start).status());
  if (write.put) {
    schedules_[write.key] = {*write.put, ++last_id_};
  } else if (found != schedules_.end()) {
    schedules_.erase(found);
  }
  return absl::OkStatus();
}

Status MemoryTables::Load(const LoadOptions& options, const LoadSource& source) {
  RETURN_IF_ERROR(CheckLoad(options, leases_.All(experiments_),
                            std::ssize(experiments_) + std::ssize(schedules_)));
  if (options.mode == LoadOptions::Mode::kReplace) schedules_.clear();
  while (options.mode == LoadOptions::Mode::kReplace && !experiments_.empty()) {
    ++revision_;
    Delete(ExperimentKey(experiments_.begin()->first));
  }
  for (;;) {
    LoadPart part;
    ASSIGN_OR_RETURN(const bool more, source(&part));
    if (!more) return absl::OkStatus();
    RETURN_IF_ERROR(LoadOne(std::move(part)));
  }
}

Status MemoryTables::LoadOne(LoadPart part) {
  if (part.schedule) {
    const ScheduleWrite write = LoadedSchedule(*part.schedule);
    RETURN_IF_ERROR(ValidateScheduleWrite(write));
    return WriteSchedule(write);
  }
  const v1::Lease lease = leases_.Get(part.experiment);
  if (part.batch) {
    part.batch->epoch = lease.epoch();
    RETURN_IF_ERROR(ValidateBatch(*part.batch));
    RETURN_IF_ERROR(Commit(*part.batch).status());
  }
  if (part.epoch && (part.batch || Find(part.experiment) == nullptr)) {
    leases_.Set(part.experiment, LeaseAfterLoad(lease, *part.epoch));
  }
  return absl::OkStatus();
}

Status MemoryTables::RemoveObservations(const Maintenance::Removal& removal) {
  const TrialKey& key = removal.trial;
  const Rows* found = Find(key.experiment);
  if (found == nullptr || !found->trials.contains(key.number)) return NoTrial(key);
  RETURN_IF_ERROR(CheckRemovable(removal, found->trials.at(key.number)));
  auto& observations = experiments_[key.experiment].observations;
  for (const auto& [attempt, step, metric] : removal.rows) {
    observations.erase({key.number, attempt, step, metric});
  }
  return absl::OkStatus();
}

}  // namespace shirabe::db
