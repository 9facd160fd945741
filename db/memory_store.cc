// The store in memory: everything of db/store.h but durability. For simulations, tests and trying
// things out. One mutex; a Commit is checked whole before its first row is written, so that there
// is nothing to undo.
#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>

#include "base/clock.h"
#include "db/bulk_leases.h"
#include "db/commit_rules.h"
#include "db/memory_experiment.h"
#include "db/store.h"

namespace shirabe::db {
namespace {

// NaN equals NaN here: the question is whether a row says anything new.
bool SameValue(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

bool Full(size_t size, int64_t limit) { return limit >= 0 && static_cast<int64_t>(size) >= limit; }

class MemoryStore : public Store, public Bulk {
 public:
  explicit MemoryStore(bool read_only) : read_only_(read_only) {}

  StatusOr<Versioned<v1::Experiment>> GetExperiment(const ExperimentKey& key) override;
  StatusOr<std::vector<Versioned<v1::Experiment>>> ListExperiments(const std::string& ns) override;
  StatusOr<int64_t> CountExperiments(const std::string& ns) override;
  StatusOr<Versioned<v1::Trial>> GetTrial(const TrialKey& key) override;
  StatusOr<std::vector<Versioned<v1::Trial>>> ListTrials(const TrialQuery& query) override;
  StatusOr<std::vector<Versioned<v1::Attempt>>> ListAttempts(const AttemptQuery& query) override;
  StatusOr<std::vector<Versioned<v1::Checkpoint>>> ListCheckpoints(const TrialKey& key) override;
  StatusOr<std::vector<StoredObservation>> ListObservations(const ObservationQuery& query) override;
  StatusOr<std::vector<v1::Event>> ListEvents(const EventQuery& query) override;
  StatusOr<std::vector<v1::Intent>> ListIntents(const ExperimentKey& key) override;
  StatusOr<int64_t> Revision() override;
  StatusOr<std::vector<Change>> Changes(int64_t after, int64_t limit) override;
  StatusOr<int64_t> AwaitChange(int64_t after, absl::Duration timeout) override {
    return signal_.Await(after, timeout);
  }
  StatusOr<int64_t> Commit(const Batch& batch) override;
  StatusOr<v1::Lease> AcquireLease(const LeaseRequest& request) override;
  StatusOr<v1::Lease> GetLease(const ExperimentKey& key) override;
  StatusOr<std::vector<LeaseClaim>> RenewLeases(const LeaseRenewal& renewal) override;
  // No caller waits for a disk.
  StatusOr<bool> RemoveRows(const LeaseClaim&, int64_t) override { return false; }
  Status ReleaseLeases(const std::vector<LeaseClaim>& claims) override;
  Status ReleaseLease(const LeaseClaim& claim) override { return ReleaseLeases({claim}); }

 private:
  // All of these need the mutex.
  const Rows* Find(const ExperimentKey& key) const;
  Status Check(const Batch& batch) const;
  void Apply(const Batch& batch);
  void Append(const Batch& batch, Rows* rows);
  void Delete(const ExperimentKey& key);
  // Moves a row's entry in the feed from revision `old` (0 = it has none) to the present one.
  void RecordChange(int64_t old, ChangeId id);
  template <class Record>
  void Put(const Record& record, const ChangeId& id, Versioned<Record>* row);

  const bool read_only_;
  ChangeSignal signal_;
  std::mutex mutex_;
  int64_t revision_ = 0;
  int64_t last_id_ = 0;  // of events and intents
  std::map<ExperimentKey, Rows> experiments_;
  MemoryLeases leases_;
  std::set<ChangeId> feed_;
};

const Rows* MemoryStore::Find(const ExperimentKey& key) const {
  const auto found = experiments_.find(key);
  return found == experiments_.end() ? nullptr : &found->second;
}

StatusOr<Versioned<v1::Experiment>> MemoryStore::GetExperiment(const ExperimentKey& key) {
  std::lock_guard lock(mutex_);
  const Rows* rows = Find(key);
  if (rows == nullptr) return NoExperiment(key);
  return rows->experiment;
}

StatusOr<std::vector<Versioned<v1::Experiment>>> MemoryStore::ListExperiments(
    const std::string& ns) {
  std::lock_guard lock(mutex_);
  std::vector<Versioned<v1::Experiment>> list;
  for (const auto& [key, rows] : experiments_) {
    if (ns.empty() || key.ns == ns) list.push_back(rows.experiment);
  }
  return list;
}

StatusOr<int64_t> MemoryStore::CountExperiments(const std::string& ns) {
  std::lock_guard lock(mutex_);
  if (ns.empty()) return static_cast<int64_t>(experiments_.size());
  return std::count_if(experiments_.begin(), experiments_.end(),
                       [&](const auto& entry) { return entry.first.ns == ns; });
}

StatusOr<Versioned<v1::Trial>> MemoryStore::GetTrial(const TrialKey& key) {
  std::lock_guard lock(mutex_);
  const Rows* rows = Find(key.experiment);
  if (rows == nullptr || !rows->trials.contains(key.number)) return NoTrial(key);
  return rows->trials.at(key.number);
}

StatusOr<std::vector<Versioned<v1::Trial>>> MemoryStore::ListTrials(const TrialQuery& query) {
  std::lock_guard lock(mutex_);
  std::vector<Versioned<v1::Trial>> list;
  const Rows* rows = Find(query.experiment);
  if (rows == nullptr) return list;
  const auto first = rows->trials.upper_bound(query.after_number);
  for (auto it = first; it != rows->trials.end() && !Full(list.size(), query.limit); ++it) {
    const Versioned<v1::Trial>& row = it->second;
    if (query.live_only && !IsLive(row.record)) continue;
    if (row.revision > query.changed_after) list.push_back(row);
  }
  return list;
}

StatusOr<std::vector<Versioned<v1::Attempt>>> MemoryStore::ListAttempts(const AttemptQuery& query) {
  std::lock_guard lock(mutex_);
  std::vector<Versioned<v1::Attempt>> list;
  const Rows* rows = Find(query.experiment);
  if (rows == nullptr) return list;
  for (auto it = rows->attempts.lower_bound({query.trial, 0}); it != rows->attempts.end(); ++it) {
    const Versioned<v1::Attempt>& row = it->second;
    if (query.trial != 0 && row.record.trial() != query.trial) break;
    if (!query.open_only || IsOpen(row.record)) list.push_back(row);
  }
  return list;
}

StatusOr<std::vector<Versioned<v1::Checkpoint>>> MemoryStore::ListCheckpoints(const TrialKey& key) {
  std::lock_guard lock(mutex_);
  std::vector<Versioned<v1::Checkpoint>> list;
  const Rows* rows = Find(key.experiment);
  if (rows == nullptr) return list;
  for (const auto& [id, row] : rows->checkpoints) {
    if (row.record.trial() == key.number) list.push_back(row);
  }
  return list;
}

StatusOr<std::vector<StoredObservation>> MemoryStore::ListObservations(
    const ObservationQuery& query) {
  std::lock_guard lock(mutex_);
  std::vector<StoredObservation> list;
  const Rows* rows = Find(query.trial.experiment);
  if (rows == nullptr) return list;
  const RowId first{query.trial.number, INT32_MIN, INT64_MIN, ""};
  for (auto it = rows->observations.lower_bound(first); it != rows->observations.end(); ++it) {
    const StoredObservation& row = it->second;
    if (row.trial != query.trial.number) break;
    if (!query.metric.empty() && row.metric != query.metric) continue;
    if (query.include_superseded || !row.superseded) list.push_back(row);
  }
  return list;
}

StatusOr<std::vector<v1::Event>> MemoryStore::ListEvents(const EventQuery& query) {
  std::lock_guard lock(mutex_);
  std::vector<v1::Event> list;
  const Rows* rows = Find(query.experiment);
  if (rows == nullptr) return list;
  const auto first = rows->events.upper_bound(query.after_id);
  for (auto it = first; it != rows->events.end() && !Full(list.size(), query.limit); ++it) {
    list.push_back(it->second);
  }
  return list;
}

StatusOr<std::vector<v1::Intent>> MemoryStore::ListIntents(const ExperimentKey& key) {
  std::lock_guard lock(mutex_);
  std::vector<v1::Intent> list;
  const Rows* rows = Find(key);
  if (rows == nullptr) return list;
  for (const auto& [id, row] : rows->intents) list.push_back(row.record);
  return list;
}

StatusOr<int64_t> MemoryStore::Revision() {
  std::lock_guard lock(mutex_);
  return revision_;
}

StatusOr<std::vector<Change>> MemoryStore::Changes(int64_t after, int64_t limit) {
  std::lock_guard lock(mutex_);
  std::vector<Change> list;
  const ChangeId first{after + 1, Change::Kind::kExperiment, {}, 0, 0};
  for (auto it = feed_.lower_bound(first); it != feed_.end(); ++it) {
    const auto& [revision, kind, key, trial, item] = *it;
    const Change change{.kind = kind, .experiment = key, .trial = trial, .revision = revision};
    if (!AddChange(change, limit, &list)) break;
  }
  return list;
}

StatusOr<int64_t> MemoryStore::Commit(const Batch& batch) {
  if (read_only_) return ReadOnly("memory:");
  RETURN_IF_ERROR(ValidateBatch(batch));
  std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(Check(batch));
  ++revision_;
  batch.delete_experiment ? Delete(batch.experiment) : Apply(batch);
  signal_.Notify(revision_);
  return revision_;
}

Status MemoryStore::Check(const Batch& batch) const {
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

void MemoryStore::RecordChange(int64_t old, ChangeId id) {
  std::get<0>(id) = old;
  feed_.erase(id);
  std::get<0>(id) = revision_;
  feed_.insert(std::move(id));
}

template <class Record>
void MemoryStore::Put(const Record& record, const ChangeId& id, Versioned<Record>* row) {
  RecordChange(row->revision, id);
  *row = {record, revision_};
}

void MemoryStore::Apply(const Batch& batch) {
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

void MemoryStore::Append(const Batch& batch, Rows* rows) {
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

void MemoryStore::Delete(const ExperimentKey& key) {
  std::erase_if(feed_, [&](const ChangeId& id) { return std::get<ExperimentKey>(id) == key; });
  RecordChange(0, {0, Change::Kind::kDeleted, key, 0, 0});
  leases_.Set(key, LeaseAfterDeletion(leases_.Get(key)));
  experiments_.erase(key);
}

StatusOr<v1::Lease> MemoryStore::AcquireLease(const LeaseRequest& request) {
  if (read_only_) return ReadOnly("memory:");
  std::lock_guard lock(mutex_);
  if (Find(request.experiment) == nullptr) return NoExperiment(request.experiment);
  ASSIGN_OR_RETURN(v1::Lease lease, GrantLease(request, leases_.Get(request.experiment)));
  leases_.Set(request.experiment, lease);
  return lease;
}

StatusOr<v1::Lease> MemoryStore::GetLease(const ExperimentKey& key) {
  std::lock_guard lock(mutex_);
  if (Find(key) == nullptr) return NoExperiment(key);
  return leases_.Get(key);
}

StatusOr<std::vector<LeaseClaim>> MemoryStore::RenewLeases(const LeaseRenewal& renewal) {
  if (read_only_) return ReadOnly("memory:");
  std::lock_guard lock(mutex_);
  return leases_.Renew(renewal);
}

Status MemoryStore::ReleaseLeases(const std::vector<LeaseClaim>& claims) {
  if (read_only_) return ReadOnly("memory:");
  std::lock_guard lock(mutex_);
  for (const LeaseClaim& claim : claims) leases_.Release(claim);
  return absl::OkStatus();
}

StatusOr<std::unique_ptr<Store>> OpenMemory(const std::string& address, bool read_only) {
  if (address.empty()) return std::make_unique<MemoryStore>(read_only);
  return absl::InvalidArgumentError("database memory: takes no path, not \"" + address +
                                    "\": to keep records in a file write sqlite:" + address);
}

std::optional<std::string> Scratch(const std::string&) { return ""; }

}  // namespace

SHIRABE_REGISTER(StoreInfo, {.name = "memory",
                             .help = "in this process only, gone when it ends",
                             .open = OpenMemory,
                             .scratch = Scratch});

}  // namespace shirabe::db
