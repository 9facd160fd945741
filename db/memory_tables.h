// The tables of the store in memory, with the records of each experiment (Rows), what a batch
// changes in them, and a load. A value: a load is made on a copy, so that nothing has to be undone.
// Used by db/memory_store.cc, under its mutex.
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "db/bulk_leases.h"
#include "db/commit_rules.h"
#include "db/maintenance.h"
#include "db/schedules.h"
#include "db/store.h"

namespace shirabe::db {

// The records of one experiment, and the checks of a batch against them.

using AttemptId = std::tuple<int64_t, int32_t>;                    // trial, attempt
using CheckpointId = std::tuple<int64_t, int32_t, int64_t>;        // trial, attempt, step
using RowId = std::tuple<int64_t, int32_t, int64_t, std::string>;  // trial, attempt, step, metric
// Revision, kind, experiment, trial, and the attempt or intent: the order of the feed.
using ChangeId = std::tuple<int64_t, Change::Kind, ExperimentKey, int64_t, int64_t>;

inline AttemptId IdOf(const v1::Attempt& attempt) { return {attempt.trial(), attempt.number()}; }
inline CheckpointId IdOf(const v1::Checkpoint& checkpoint) {
  return {checkpoint.trial(), checkpoint.attempt(), checkpoint.step()};
}
inline int64_t IdOf(const v1::Trial& trial) { return trial.number(); }

struct Rows {
  Versioned<v1::Experiment> experiment;
  std::map<int64_t, Versioned<v1::Trial>> trials;
  std::map<AttemptId, Versioned<v1::Attempt>> attempts;
  std::map<CheckpointId, Versioned<v1::Checkpoint>> checkpoints;
  std::map<RowId, StoredObservation> observations;
  std::map<int64_t, v1::Event> events;
  std::map<int64_t, Versioned<v1::Intent>> intents;
};

template <class Map, class Id>
int64_t RevisionOf(const Map& map, const Id& id) {
  const auto found = map.find(id);
  return found == map.end() ? 0 : found->second.revision;
}

template <class Map, class Record>
Status CheckRevisions(const Map& map, const std::vector<Write<Record>>& writes) {
  for (const Write<Record>& write : writes) {
    const int64_t current = RevisionOf(map, IdOf(write.record));
    if (current != write.expected) {
      return Conflict(Describe(write.record), write.expected, current);
    }
  }
  return absl::OkStatus();
}

// What must exist for the batch's attempts, checkpoints and observations to belong to.
inline Status CheckParents(const Batch& batch, const Rows& rows) {
  std::set<int64_t> fresh;
  for (const auto& write : batch.trials) fresh.insert(write.record.number());
  const auto check = [&](int64_t trial) {
    const bool known = fresh.contains(trial) || rows.trials.contains(trial);
    return known ? absl::OkStatus() : NoTrial({batch.experiment, trial});
  };
  for (const auto& write : batch.attempts) RETURN_IF_ERROR(check(write.record.trial()));
  for (const auto& write : batch.checkpoints) RETURN_IF_ERROR(check(write.record.trial()));
  for (const auto& row : batch.observations) RETURN_IF_ERROR(check(row.trial));
  return absl::OkStatus();
}

// The leases of the store in memory. Used by db/memory_store.cc, under its mutex.
class MemoryLeases {
 public:
  v1::Lease Get(const ExperimentKey& key) const {
    const auto found = leases_.find(key);
    if (found == leases_.end()) return NoLease(key);
    const auto renewed = renewed_.find(found->second.holder());
    return renewed == renewed_.end() ? found->second : LeaseUntil(found->second, renewed->second);
  }
  void Set(const ExperimentKey& key, const v1::Lease& lease) { leases_[key] = lease; }
  // Of every name that was ever used: those that were held, and those of these experiments.
  std::vector<v1::Lease> All(const std::map<ExperimentKey, Rows>& experiments) const {
    std::set<ExperimentKey> names;
    for (const auto& [key, lease] : leases_) names.insert(key);
    for (const auto& [key, rows] : experiments) names.insert(key);
    std::vector<v1::Lease> all;
    for (const ExperimentKey& key : names) all.push_back(Get(key));
    return all;
  }
  void Release(const LeaseClaim& claim) {
    const auto found = leases_.find(claim.experiment);
    if (found == leases_.end() || found->second.epoch() != claim.epoch) return;
    found->second.clear_holder();
    found->second.clear_expiry();
  }
  std::vector<LeaseClaim> Renew(const LeaseRenewal& renewal) {
    std::erase_if(renewed_, [&](const auto& entry) { return entry.second <= renewal.now; });
    renewed_[renewal.holder] = renewal.now + renewal.ttl;
    std::vector<LeaseClaim> held;
    for (const auto& [key, lease] : leases_) {
      if (lease.holder() == renewal.holder) held.push_back({key, lease.epoch()});
    }
    return held;
  }

 private:
  std::map<ExperimentKey, v1::Lease> leases_;  // stays when an experiment is deleted
  std::map<std::string, absl::Time> renewed_;  // by holder: until then
};

class MemoryTables {
 public:
  int64_t revision() const { return revision_; }
  const std::map<ExperimentKey, Rows>& experiments() const { return experiments_; }
  const std::set<ChangeId>& feed() const { return feed_; }
  MemoryLeases& leases() { return leases_; }
  const Rows* Find(const ExperimentKey& key) const;
  using ScheduleRows = std::map<ExperimentKey, Versioned<v1::ScheduledExperiment>>;
  const ScheduleRows& schedules() const { return schedules_; }

  // A batch that has passed ValidateBatch: checked whole, then written. Its revision.
  StatusOr<int64_t> Commit(const Batch& batch);
  // One that has passed ValidateScheduleWrite.
  Status WriteSchedule(const ScheduleWrite& write);
  // As of Maintenance. After an error the tables are to be thrown away.
  Status Load(const LoadOptions& options, const LoadSource& source);
  Status RemoveObservations(const Maintenance::Removal& removal);

 private:
  Status Check(const Batch& batch) const;
  void Apply(const Batch& batch);
  void Append(const Batch& batch, Rows* rows);
  void Delete(const ExperimentKey& key);
  Status LoadOne(LoadPart part);
  // Moves a row's entry in the feed from revision `old` (0 = it has none) to the present one.
  void RecordChange(int64_t old, ChangeId id);
  template <class Record>
  void Put(const Record& record, const ChangeId& id, Versioned<Record>* row);

  int64_t revision_ = 0;
  int64_t last_id_ = 0;  // of events and intents, and revision of schedules
  std::map<ExperimentKey, Rows> experiments_;
  ScheduleRows schedules_;
  MemoryLeases leases_;
  std::set<ChangeId> feed_;
};

}  // namespace shirabe::db
