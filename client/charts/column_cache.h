// Column tables of experiments, kept up with the store: only what has changed since the last
// request is read again, so that many who watch one experiment of any size cost little. All tables
// together take a bounded amount of memory; those that were not asked for longest go, and are read
// again when they are. Made by the client over a store; thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "base/names.h"
#include "base/status.h"
#include "client/charts/column_table.h"
#include "client/records/namespace_guard.h"
#include "db/store.h"
#include "google/protobuf/timestamp.pb.h"

namespace shirabe::client {

// One experiment's rows of one kind, as they are while a user of the cache looks at them.
struct ColumnSnapshot {
  const ColumnTable& table;
  const v1::Experiment& experiment;  // metadata, objective, parameters
  int64_t revision = 0;              // of the store, up to which the table is known to be whole
  std::string version;               // changes with the table
};

class ColumnCache {
 public:
  enum class Rows { kTrials, kAttempts };
  using Use = std::function<Status(const ColumnSnapshot&)>;

  // Both outlive it. At most so many bytes are kept.
  ColumnCache(db::Store* store, NamespaceGuard* namespaces, int64_t max_bytes = 256 << 20);
  ~ColumnCache();

  // Brings the table up to date and calls `use`, whose result it returns. Users of one table take
  // turns. kNotFound if there is no such experiment.
  Status Read(const ExperimentKey& key, Rows rows, const Use& use);

  int64_t bytes() const;  // of all tables that are kept

 private:
  class Entry;
  using EntryPtr = std::shared_ptr<Entry>;  // shared: one that is in use may be dropped meanwhile
  struct Slot {
    EntryPtr entry;
    int64_t bytes = 0;
  };

  EntryPtr FindOrAdd(const ExperimentKey& key, Rows rows);
  // What it takes now; 0 drops it.
  void SetBytes(const EntryPtr& entry, int64_t bytes);

  db::Store* const store_;
  NamespaceGuard* const namespaces_;
  const int64_t max_bytes_;
  mutable Mutex mutex_;
  std::list<Slot> slots_ ABSL_GUARDED_BY(mutex_);  // the last used first
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace shirabe::client
