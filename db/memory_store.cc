// The store in memory: everything of db/store.h but durability. For simulations, tests and trying
// things out. One mutex; a Commit is checked whole before its first row is written, so that there
// is nothing to undo.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "db/bulk_leases.h"
#include "db/commit_rules.h"
#include "db/maintenance.h"
#include "db/memory_tables.h"
#include "db/schedules.h"
#include "db/store.h"

namespace shirabe::db {
namespace {

// The store in memory as it was at one moment: a copy.
class MemorySnapshot : public Snapshot {
 public:
  MemorySnapshot(int64_t revision, std::map<ExperimentKey, Rows> experiments,
                 std::vector<v1::Lease> names, MemoryTables::ScheduleRows schedules)
      : revision_(revision),
        experiments_(std::move(experiments)),
        names_(std::move(names)),
        schedules_(std::move(schedules)) {}

  std::string source() const override { return "memory:"; }
  int64_t revision() const override { return revision_; }
  StatusOr<std::vector<v1::Lease>> Names() override { return names_; }
  StatusOr<v1::Experiment> GetExperiment(const ExperimentKey& key) override {
    const auto found = experiments_.find(key);
    if (found == experiments_.end()) return NoExperiment(key);
    return found->second.experiment.record;
  }
  // All of them are one page.
  StatusOr<std::vector<v1::Trial>> Trials(const ExperimentKey& key,
                                          SnapshotCursor* cursor) override {
    return Once<v1::Trial>(experiments_[key].trials, cursor);
  }
  StatusOr<std::vector<v1::Attempt>> Attempts(const ExperimentKey& key,
                                              SnapshotCursor* cursor) override {
    return Once<v1::Attempt>(experiments_[key].attempts, cursor);
  }
  StatusOr<std::vector<v1::Checkpoint>> Checkpoints(const ExperimentKey& key,
                                                    SnapshotCursor* cursor) override {
    return Once<v1::Checkpoint>(experiments_[key].checkpoints, cursor);
  }
  StatusOr<std::vector<StoredObservation>> Observations(const ExperimentKey& key,
                                                        SnapshotCursor* cursor) override {
    return Once<StoredObservation>(experiments_[key].observations, cursor);
  }
  StatusOr<std::vector<v1::Event>> Events(const ExperimentKey& key,
                                          SnapshotCursor* cursor) override {
    return Once<v1::Event>(experiments_[key].events, cursor);
  }
  StatusOr<std::vector<v1::Intent>> Intents(const ExperimentKey& key,
                                            SnapshotCursor* cursor) override {
    return Once<v1::Intent>(experiments_[key].intents, cursor);
  }
  StatusOr<std::vector<v1::ScheduledExperiment>> Schedules() override {
    SnapshotCursor cursor{};
    return Once<v1::ScheduledExperiment>(schedules_, &cursor);
  }

 private:
  template <class Record>
  static const Record& RecordOf(const Versioned<Record>& row) {
    return row.record;
  }
  template <class Record>
  static const Record& RecordOf(const Record& row) {
    return row;
  }
  template <class Record, class Map>
  static std::vector<Record> Once(const Map& rows, SnapshotCursor* cursor) {
    std::vector<Record> page;
    if ((*cursor)[0]++ > 0) return page;
    for (const auto& [id, row] : rows) page.push_back(RecordOf(row));
    return page;
  }

  const int64_t revision_;
  std::map<ExperimentKey, Rows> experiments_;
  const std::vector<v1::Lease> names_;
  const MemoryTables::ScheduleRows schedules_;
};

bool Full(size_t size, int64_t limit) { return limit >= 0 && static_cast<int64_t>(size) >= limit; }

class MemoryStore : public Store, public Bulk, public Maintenance, public Schedules {
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
  void EndWaits() override { signal_.EndWaits(); }
  StatusOr<int64_t> Commit(const Batch& batch) override;
  StatusOr<v1::Lease> AcquireLease(const LeaseRequest& request) override;
  StatusOr<v1::Lease> GetLease(const ExperimentKey& key) override;
  StatusOr<std::vector<LeaseClaim>> RenewLeases(const LeaseRenewal& renewal) override;
  // No caller waits for a disk.
  StatusOr<bool> RemoveRows(const LeaseClaim&, int64_t) override { return false; }
  Status ReleaseLeases(const std::vector<LeaseClaim>& claims) override;
  Status ReleaseLease(const LeaseClaim& claim) override { return ReleaseLeases({claim}); }
  StatusOr<std::unique_ptr<Snapshot>> TakeSnapshot() override;
  StatusOr<int64_t> Load(const LoadOptions& options, const LoadSource& source) override;
  Status RemoveObservations(const Removal& removal) override;
  StatusOr<bool> ReleaseSpace() override { return false; }
  StatusOr<Versioned<v1::ScheduledExperiment>> GetSchedule(const ExperimentKey& key) override;
  StatusOr<std::vector<Versioned<v1::ScheduledExperiment>>> ListSchedules(
      const std::string& ns) override;
  Status WriteSchedule(const ScheduleWrite& write) override;

 private:
  const bool read_only_;
  ChangeSignal signal_;
  Mutex mutex_;
  MemoryTables tables_ ABSL_GUARDED_BY(mutex_);
};

StatusOr<Versioned<v1::Experiment>> MemoryStore::GetExperiment(const ExperimentKey& key) {
  const MutexLock lock(mutex_);
  const Rows* rows = tables_.Find(key);
  if (rows == nullptr) return NoExperiment(key);
  return rows->experiment;
}

StatusOr<std::vector<Versioned<v1::Experiment>>> MemoryStore::ListExperiments(
    const std::string& ns) {
  const MutexLock lock(mutex_);
  std::vector<Versioned<v1::Experiment>> list;
  for (const auto& [key, rows] : tables_.experiments()) {
    if (ns.empty() || key.ns == ns) list.push_back(rows.experiment);
  }
  return list;
}

StatusOr<int64_t> MemoryStore::CountExperiments(const std::string& ns) {
  const MutexLock lock(mutex_);
  if (ns.empty()) return static_cast<int64_t>(tables_.experiments().size());
  return std::count_if(tables_.experiments().begin(), tables_.experiments().end(),
                       [&](const auto& entry) { return entry.first.ns == ns; });
}

StatusOr<Versioned<v1::Trial>> MemoryStore::GetTrial(const TrialKey& key) {
  const MutexLock lock(mutex_);
  const Rows* rows = tables_.Find(key.experiment);
  if (rows == nullptr || !rows->trials.contains(key.number)) return NoTrial(key);
  return rows->trials.at(key.number);
}

StatusOr<std::vector<Versioned<v1::Trial>>> MemoryStore::ListTrials(const TrialQuery& query) {
  const MutexLock lock(mutex_);
  std::vector<Versioned<v1::Trial>> list;
  const Rows* rows = tables_.Find(query.experiment);
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
  const MutexLock lock(mutex_);
  std::vector<Versioned<v1::Attempt>> list;
  const Rows* rows = tables_.Find(query.experiment);
  if (rows == nullptr) return list;
  const AttemptId after{query.after_trial, query.after_number};
  const AttemptId trial{query.trial, 0};
  for (auto it = rows->attempts.upper_bound(std::max(after, trial)); it != rows->attempts.end();
       ++it) {
    const Versioned<v1::Attempt>& row = it->second;
    if (query.trial != 0 && row.record.trial() != query.trial) break;
    if (static_cast<int64_t>(list.size()) == query.limit) break;
    if (row.revision <= query.changed_after) continue;
    if (!query.open_only || IsOpen(row.record)) list.push_back(row);
  }
  return list;
}

StatusOr<std::vector<Versioned<v1::Checkpoint>>> MemoryStore::ListCheckpoints(const TrialKey& key) {
  const MutexLock lock(mutex_);
  std::vector<Versioned<v1::Checkpoint>> list;
  const Rows* rows = tables_.Find(key.experiment);
  if (rows == nullptr) return list;
  for (const auto& [id, row] : rows->checkpoints) {
    if (row.record.trial() == key.number) list.push_back(row);
  }
  return list;
}

StatusOr<std::vector<StoredObservation>> MemoryStore::ListObservations(
    const ObservationQuery& query) {
  const MutexLock lock(mutex_);
  std::vector<StoredObservation> list;
  const Rows* rows = tables_.Find(query.trial.experiment);
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
  const MutexLock lock(mutex_);
  std::vector<v1::Event> list;
  const Rows* rows = tables_.Find(query.experiment);
  if (rows == nullptr) return list;
  const auto first = rows->events.upper_bound(query.after_id);
  for (auto it = first; it != rows->events.end() && !Full(list.size(), query.limit); ++it) {
    list.push_back(it->second);
  }
  return list;
}

StatusOr<std::vector<v1::Intent>> MemoryStore::ListIntents(const ExperimentKey& key) {
  const MutexLock lock(mutex_);
  std::vector<v1::Intent> list;
  const Rows* rows = tables_.Find(key);
  if (rows == nullptr) return list;
  for (const auto& [id, row] : rows->intents) list.push_back(row.record);
  return list;
}

StatusOr<int64_t> MemoryStore::Revision() {
  const MutexLock lock(mutex_);
  return tables_.revision();
}

StatusOr<std::vector<Change>> MemoryStore::Changes(int64_t after, int64_t limit) {
  const MutexLock lock(mutex_);
  std::vector<Change> list;
  const ChangeId first{after + 1, Change::Kind::kExperiment, {}, 0, 0};
  for (auto it = tables_.feed().lower_bound(first); it != tables_.feed().end(); ++it) {
    const auto& [revision, kind, key, trial, item] = *it;
    const Change change{.kind = kind, .experiment = key, .trial = trial, .revision = revision};
    if (!AddChange(change, limit, &list)) break;
  }
  return list;
}

StatusOr<v1::Lease> MemoryStore::AcquireLease(const LeaseRequest& request) {
  if (read_only_) return ReadOnly("memory:");
  const MutexLock lock(mutex_);
  if (tables_.Find(request.experiment) == nullptr) return NoExperiment(request.experiment);
  ASSIGN_OR_RETURN(v1::Lease lease, GrantLease(request, tables_.leases().Get(request.experiment)));
  tables_.leases().Set(request.experiment, lease);
  return lease;
}

StatusOr<v1::Lease> MemoryStore::GetLease(const ExperimentKey& key) {
  const MutexLock lock(mutex_);
  if (tables_.Find(key) == nullptr) return NoExperiment(key);
  return tables_.leases().Get(key);
}

StatusOr<std::vector<LeaseClaim>> MemoryStore::RenewLeases(const LeaseRenewal& renewal) {
  if (read_only_) return ReadOnly("memory:");
  const MutexLock lock(mutex_);
  return tables_.leases().Renew(renewal);
}

Status MemoryStore::ReleaseLeases(const std::vector<LeaseClaim>& claims) {
  if (read_only_) return ReadOnly("memory:");
  const MutexLock lock(mutex_);
  for (const LeaseClaim& claim : claims) tables_.leases().Release(claim);
  return absl::OkStatus();
}

StatusOr<int64_t> MemoryStore::Commit(const Batch& batch) {
  if (read_only_) return ReadOnly("memory:");
  RETURN_IF_ERROR(ValidateBatch(batch));
  const MutexLock lock(mutex_);
  auto revision = tables_.Commit(batch);
  if (revision.ok()) signal_.Notify(*revision);
  return revision;
}

StatusOr<std::unique_ptr<Snapshot>> MemoryStore::TakeSnapshot() {
  const MutexLock lock(mutex_);
  return std::make_unique<MemorySnapshot>(tables_.revision(), tables_.experiments(),
                                          tables_.leases().All(tables_.experiments()),
                                          tables_.schedules());
}

StatusOr<Versioned<v1::ScheduledExperiment>> MemoryStore::GetSchedule(const ExperimentKey& key) {
  const MutexLock lock(mutex_);
  const auto found = tables_.schedules().find(key);
  if (found == tables_.schedules().end()) return NoSchedule(key);
  return found->second;
}

StatusOr<std::vector<Versioned<v1::ScheduledExperiment>>> MemoryStore::ListSchedules(
    const std::string& ns) {
  const MutexLock lock(mutex_);
  std::vector<Versioned<v1::ScheduledExperiment>> list;
  for (const auto& [key, row] : tables_.schedules()) {
    if (ns.empty() || key.ns == ns) list.push_back(row);
  }
  return list;
}

Status MemoryStore::WriteSchedule(const ScheduleWrite& write) {
  if (read_only_) return ReadOnly("memory:");
  RETURN_IF_ERROR(ValidateScheduleWrite(write));
  const MutexLock lock(mutex_);
  RETURN_IF_ERROR(tables_.WriteSchedule(write));
  signal_.Notify(tables_.revision());
  return absl::OkStatus();
}

StatusOr<int64_t> MemoryStore::Load(const LoadOptions& options, const LoadSource& source) {
  if (read_only_) return ReadOnly("memory:");
  const MutexLock lock(mutex_);
  MemoryTables loaded = tables_;
  RETURN_IF_ERROR(loaded.Load(options, source));
  tables_ = std::move(loaded);
  signal_.Notify(tables_.revision());
  return tables_.revision();
}

Status MemoryStore::RemoveObservations(const Removal& removal) {
  if (read_only_) return ReadOnly("memory:");
  const MutexLock lock(mutex_);
  return tables_.RemoveObservations(removal);
}

StatusOr<std::unique_ptr<Store>> OpenMemory(const std::string& address, bool read_only) {
  if (address.empty()) return std::make_unique<MemoryStore>(read_only);
  return absl::InvalidArgumentError("database memory: takes no path, not \"" + address +
                                    "\": to keep records in a file write sqlite:" + address);
}

std::optional<std::string> NoScratch(const std::string&) { return ""; }

}  // namespace

SHIRABE_REGISTER(StoreInfo, {.name = "memory",
                             .help = "in this process only, gone when it ends",
                             .open = OpenMemory,
                             .scratch = NoScratch});

}  // namespace shirabe::db
