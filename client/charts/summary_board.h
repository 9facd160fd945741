// Summaries of experiments, each kept until the store says that something of its experiment has
// changed. Made by the client over a store; thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/names.h"
#include "base/status.h"
#include "client/records/namespace_guard.h"
#include "db/store.h"
#include "proto/shirabe/v1/charts.pb.h"

namespace shirabe::client {

// Of an experiment and its attempts that are open, as of `now`; without a version. Pure.
v1::Summary SummaryOf(const v1::Experiment& experiment, const std::vector<v1::Attempt>& open,
                      absl::Time now);

// The revision of the store at which this summary was made: one that is older has not changed
// since.
int64_t RevisionOf(const v1::Summary& summary);

class SummaryBoard {
 public:
  // All of them outlive it.
  SummaryBoard(db::Store* store, Clock* clock, NamespaceGuard* namespaces)
      : store_(store), clock_(clock), namespaces_(namespaces) {}

  StatusOr<v1::Summary> Get(const ExperimentKey& key);
  // Of one namespace, or of all (""), by namespace and name.
  StatusOr<std::vector<v1::Summary>> List(const std::string& ns);

 private:
  struct Entry {
    v1::Summary summary;
    v1::Experiment owner;  // metadata and the namespace's uid, for NamespaceGuard
  };
  // Forgets what has changed.
  Status Refresh() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StatusOr<const Entry*> Find(const ExperimentKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status FindAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StatusOr<const Entry*> Add(const v1::Experiment& experiment)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  db::Store* const store_;
  Clock* const clock_;
  NamespaceGuard* const namespaces_;
  Mutex mutex_;
  std::map<ExperimentKey, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  bool whole_ ABSL_GUARDED_BY(mutex_) = false;  // entries_ has all experiments but stale_
  std::set<ExperimentKey> stale_ ABSL_GUARDED_BY(mutex_);
  int64_t revision_ ABSL_GUARDED_BY(mutex_) = -1;
};

}  // namespace shirabe::client
