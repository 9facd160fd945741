// The store in memory as it was at one moment: a copy. Used by db/memory_store.cc.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "db/commit_rules.h"
#include "db/maintenance.h"
#include "db/memory_experiment.h"

namespace shirabe::db {

class MemorySnapshot : public Snapshot {
 public:
  MemorySnapshot(int64_t revision, std::map<ExperimentKey, Rows> experiments,
                 std::vector<v1::Lease> names)
      : revision_(revision), experiments_(std::move(experiments)), names_(std::move(names)) {}

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
};

}  // namespace shirabe::db
