// Owns experiments: holds their leases, and calls the reconciler for each whenever something about
// it changed or its time has come. One worker per experiment at a time, several experiments at
// once. The store and the executor must outlive it. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/names.h"
#include "base/status.h"
#include "db/store.h"
#include "experiment/report_queue.h"
#include "experiment/spec/spec_limits.h"
#include "trial/executor.h"

namespace shirabe::experiment {

struct ControllerOptions {
  db::Store* store = nullptr;
  Clock* clock = nullptr;
  std::string executor = "process";         // a registered name
  trial::ExecutorOptions executor_options;  // its on_change is set by the controller
  int workers = 1;
  std::string working_dir = {};  // for trials whose template names none
  Limits limits = {};
  std::function<void()> at_step = {};  // for tests: see ReconcilerOptions
};

class Controller {
 public:
  static StatusOr<std::unique_ptr<Controller>> Create(ControllerOptions options);
  // Stops reconciling and gives the leases up; running attempts go on, to be adopted later.
  virtual ~Controller() = default;

  // Takes the experiment's lease (also from a holder on this machine that is dead), adopts what
  // still runs of it, and begins to reconcile it; does nothing if it is owned already.
  // kAlreadyExists, naming the holder, if another process owns it. kNotFound if the store has no
  // such experiment.
  virtual Status Own(const ExperimentKey& key) = 0;

  // Until the experiment has ended and nothing of it runs, the lease is lost (kAborted), or
  // `timeout` has passed (kDeadlineExceeded).
  virtual Status Await(const ExperimentKey& key, absl::Duration timeout) = 0;

  // Stops what runs, gracefully, or at once with `now`; each attempt is closed as suspended, its
  // trial waits, and the experiment goes on when it has an owner again. Await then returns OK.
  virtual void Suspend(const ExperimentKey& key, bool now) = 0;

  // Reconcile it soon: an intent was written.
  virtual void NotifyIntent(const ExperimentKey& key) = 0;

  // Waits, at most `timeout`, until the report is stored. kFailedPrecondition if the experiment is
  // not owned here; kPermissionDenied if it comes from an attempt that is not current; kUnavailable
  // or kResourceExhausted: tell it again. One that only asks is not stored: whatever is answered,
  // its caller waits for a trial until there is one.
  virtual StatusOr<ReportReply> Tell(const Report& report, absl::Duration timeout) = 0;

  // Of its trials: what their pods ask for goes there (trial::Executor::Sync and Grant).
  virtual trial::Executor& executor() = 0;

  // Gives one back whose Await would return: its lease, and what is kept of it here.
  virtual void ReleaseOwnership(const ExperimentKey& key) = 0;
  // Whether it was owned and has not been given back, even if it has ended.
  virtual bool Owns(const ExperimentKey& key) = 0;
  // Of those, the ones whose Await would return at once.
  virtual std::vector<ExperimentKey> Finished() = 0;

  // What keeps it from going on (a full disk, a locked database), for people; "" if nothing does.
  virtual std::string LastError(const ExperimentKey& key) = 0;
  // The same of all that is owned: why the last renewal of its leases, seconds ago at most, could
  // not be written.
  virtual std::string StoreError() = 0;
};

}  // namespace shirabe::experiment
