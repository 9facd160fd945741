// The tables of the store in memory, what a batch changes in them, and a load. A value: a load is
// made on a copy, so that nothing has to be undone. Used by db/memory_store.cc, under its mutex.
#pragma once

#include <map>
#include <set>
#include <string>

#include "db/maintenance.h"
#include "db/memory_experiment.h"
#include "db/store.h"

namespace shirabe::db {

class MemoryTables {
 public:
  int64_t revision() const { return revision_; }
  const std::map<ExperimentKey, Rows>& experiments() const { return experiments_; }
  const std::set<ChangeId>& feed() const { return feed_; }
  MemoryLeases& leases() { return leases_; }
  const Rows* Find(const ExperimentKey& key) const;

  // A batch that has passed ValidateBatch: checked whole, then written. Its revision.
  StatusOr<int64_t> Commit(const Batch& batch);
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
  int64_t last_id_ = 0;  // of events and intents
  std::map<ExperimentKey, Rows> experiments_;
  MemoryLeases leases_;
  std::set<ChangeId> feed_;
};

}  // namespace shirabe::db
