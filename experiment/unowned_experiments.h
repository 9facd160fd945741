// What is left on this side of experiments that this process does not own. Either an earlier one
// died before it had cleared up, or an experiment went to an owner on another machine, who cannot
// reach programs here: it records their attempts as lost and starts the trials again. What such
// programs report is refused (fencing), and they are stopped here. Those of experiments that are
// owned are looked after by their passes (ObserveStray). Used by the controller. Thread-safe;
// ClearUp is for one thread.
#pragma once

#include <set>
#include <vector>

#include "base/mutex.h"
#include "base/names.h"
#include "db/store.h"
#include "trial/executor.h"

namespace shirabe::experiment {

class UnownedExperiments {
 public:
  // The store must outlive it.
  explicit UnownedExperiments(db::Store* store) : store_(store) {}

  // The executor says that something of it has changed.
  void AddReported(const ExperimentKey& key);
  // It went to another owner, and its programs, if there are any, run on this machine.
  void AddLost(const ExperimentKey& key);
  // It is owned here again.
  void Remove(const ExperimentKey& key);

  // To be called every few seconds. Stops programs whose attempts have ended in the store: those of
  // experiments that were lost, and now and then those that an earlier process has left; of a
  // follow-up only the former, since nothing is stored of its earlier attempts. Removes the files
  // of what was deleted. Returns experiments that have ended, whose next owner clears up.
  std::vector<ExperimentKey> ClearUp(trial::Executor& executor);

 private:
  void StopLost(trial::Executor& executor);

  db::Store* const store_;
  int calls_ = 0;  // of ClearUp
  Mutex mutex_;
  std::set<ExperimentKey> reported_ ABSL_GUARDED_BY(mutex_);
  std::set<ExperimentKey> lost_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shirabe::experiment
