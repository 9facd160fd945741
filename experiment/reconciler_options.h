// What a reconciler is made with, how one of its passes is to be made, and what comes of it. Data.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/names.h"
#include "db/store.h"
#include "experiment/namespace_quota.h"
#include "experiment/report_queue.h"
#include "experiment/spec/spec_limits.h"
#include "experiment/state/algorithm_workers.h"
#include "notify/webhook.h"
#include "trial/executor.h"

namespace shirabe::experiment {

// A fast algorithm or rule answers within the pass, so that one commit holds what was seen and what
// comes next; a slow one is left to its worker. Where one caller is all that there is, a proposal
// may take longer: see IsForSoleCaller.
inline constexpr absl::Duration kInlineTimeout = absl::Milliseconds(5);

struct ReconcilerOptions {
  db::Store* store = nullptr;  // these four outlive the reconciler
  trial::Executor* executor = nullptr;
  Clock* clock = nullptr;
  AlgorithmWorkers* algorithm_workers = nullptr;
  std::string working_dir;  // of trials whose template names none
  Limits limits = {};
  NamespaceQuota* namespace_quota = nullptr;  // null = none
  // Of notifications, outlives the workers; null = they wait for a process that has one.
  notify::Sender* sender = nullptr;
  std::function<void(const ExperimentKey&)> enqueue;  // reconcile it soon; any thread
  absl::Duration patience = kInlineTimeout;           // for an answer within the pass
  std::function<void()> at_step;  // for tests: called between any two effects of a pass
};

struct ReconcileResult {
  absl::Duration requeue_after = absl::InfiniteDuration();
  bool ended = false;  // Succeeded, Failed or deleted, and nothing of it runs
  bool idle = false;   // nothing of it runs
  bool deleted = false;
};

// Of one pass (reconcile_pass.h).
struct ReconcileMode {
  bool suspended = false;      // stop what runs, keep it for later
  bool stop_now = false;       // without grace
  bool check_intents = false;  // an intent was written just now
  bool recheck = false;        // there may be room now for what had to wait for it
  std::vector<PendingReportPtr> pending_reports = {};  // reports to take; the caller answers them
  std::vector<std::string> askers = {};  // callers whom an earlier pass has given no trial
};

}  // namespace shirabe::experiment
