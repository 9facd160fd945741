// The trials of one experiment that are shown in the cluster: those that have not ended, the newest
// that have, and the best (TrialWindow); and the objects that are there (TrialObjectIndex). Trials
// are read piece by piece, as they change, so that a look costs what has changed and memory does
// not grow with the number of trials. A TrialWindow is used by one thread at a time.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/names.h"
#include "client/client.h"
#include "crd/object_status.h"
#include "kube/api_client.h"

namespace shirabe::crd {

class TrialWindow {
 public:
  explicit TrialWindow(size_t finished) : finished_most_(finished) {}

  // Reads what has changed since the last call.
  Status Update(client::Client& store, const v1::Experiment& experiment);

  // By number.
  const std::map<int64_t, v1::Trial>& trials() const { return trials_; }
  NamesByPhase Names() const;

 private:
  Status Load(client::Client& store, const v1::Experiment& experiment);
  Status KeepBest(client::Client& store, const v1::Experiment& experiment);
  void Insert(const v1::Trial& trial);
  void Prune();

  size_t finished_most_;
  int64_t revision_ = -1;  // up to which all has been read; -1 = nothing has
  int64_t best_ = 0;
  std::map<int64_t, v1::Trial> trials_;
  std::map<v1::TrialPhase, std::set<int64_t>> ended_;  // the newest numbers, for the names
  ExperimentKey key_;
};

bool HasEnded(const v1::Trial& trial);

// Which Trial objects are there, by experiment, and which were touched since one last looked: what
// the watch tells, kept until a pass takes it. Thread-safe.
struct TrialObjectNames {
  std::set<std::string> names;    // that are there
  std::set<std::string> touched;  // that were changed or deleted, by anyone, since the last look
};

class TrialObjectIndex {
 public:
  // The experiment that the Trial object is of.
  ExperimentKey Touch(const kube::Json& trial, bool deleted);
  TrialObjectNames Drain(const ExperimentKey& key);
  // A pass failed: what it took is looked at again.
  void Restore(const ExperimentKey& key, const std::set<std::string>& touched);

 private:
  Mutex mutex_;
  std::map<ExperimentKey, TrialObjectNames> index_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shirabe::crd
