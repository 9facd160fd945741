// Drives one experiment towards its specification, one pass a call: read what happened (executor,
// collectors, intents of other processes) → MakePlan → commit what was seen together with what is
// about to be done → do it. Level-based: a call needs only the experiment's name, may come at any
// time and as often as one likes, and after a crash the next call goes on from the store.
//
// Calls for different experiments may run at the same time; for one experiment, one at a time.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/names.h"
#include "base/status.h"
#include "db/store.h"
#include "experiment/namespace_quota.h"
#include "experiment/reconciler_options.h"
#include "experiment/report_queue.h"
#include "experiment/spec/spec_limits.h"
#include "experiment/state/algorithm_workers.h"
#include "experiment/state/experiment_state.h"
#include "trial/executor.h"

namespace shirabe::experiment {

class Reconciler {
 public:
  explicit Reconciler(ReconcilerOptions options);

  // From now on this process owns the experiment, under the lease of this epoch.
  void Own(const ExperimentKey& key, int64_t epoch);
  // It does not any more. Nothing is stopped. No call for it may be under way.
  void ReleaseOwnership(const ExperimentKey& key);
  // Stop what runs and start nothing, until it is owned again. With `now`, without grace.
  void Suspend(const ExperimentKey& key, bool now);

  // The next pass looks for intents, however recently the last one did.
  void NotifyIntent(const ExperimentKey& key);
  // The next pass asks again for room that there was not, however recently the last one did.
  void Recheck(const ExperimentKey& key);
  // Where reports for it are put, to be taken by the next pass; null if it is not owned.
  ReportQueuePtr ReportQueueOf(const ExperimentKey& key);

  // One pass. db::IsLeaseLost: it went to another process, disown it. Other errors: nothing was
  // done that a later call would not do again; call again after a while.
  StatusOr<ReconcileResult> Reconcile(const ExperimentKey& key);

 private:
  struct Owned {
    int64_t epoch = 0;
    bool adopted = false;
    std::atomic<bool> suspended = false;  // set by Suspend while a call may be under way
    std::atomic<bool> stop_now = false;
    std::atomic<bool> check_intents = false;
    std::atomic<bool> recheck = false;
    ReportQueuePtr reports = std::make_shared<ReportQueue>();
    std::vector<std::string> askers;  // callers who wait for a trial; a state that is lost had them
    std::unique_ptr<ExperimentState> state;  // null: to be loaded
  };
  Status Load(const ExperimentKey& key, Owned& owned);
  StatusOr<ReconcileResult> RunPass(Owned& owned,
                                    const std::vector<PendingReportPtr>& pending_reports,
                                    bool loaded);
  const ReconcilerOptions& OptionsFor(const v1::Experiment& experiment) const;

  const ReconcilerOptions options_;
  trial::AskAndTellExecutor asked_;
  ReconcilerOptions ask_and_tell_options_;  // the same, for trials that callers run
  Mutex mutex_;
  // The content of an entry is its one caller's.
  std::map<ExperimentKey, Owned> owned_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shirabe::experiment
