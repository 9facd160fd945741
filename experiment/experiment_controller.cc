#include "experiment/experiment_controller.h"

#include <algorithm>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "base/backoff.h"
#include "base/delaying_queue.h"
#include "base/log.h"
#include "base/mutex.h"
#include "db/commit_rules.h"
#include "experiment/conditions.h"
#include "experiment/experiment_leases.h"
#include "experiment/namespace_quota.h"
#include "experiment/owned_experiment.h"
#include "experiment/reconciler.h"
#include "experiment/unowned_experiments.h"

namespace shirabe::experiment {
namespace {

constexpr Backoff kRetryBackoff{absl::Milliseconds(50), absl::Seconds(5)};

class QueueController : public Controller {
 public:
  explicit QueueController(ControllerOptions options) : options_(std::move(options)) {}

  Status Init() {
    const auto* info = Registry<trial::ExecutorInfo>::Get().Find(options_.executor);
    if (info == nullptr) {
      return absl::NotFoundError("there is no executor \"" + options_.executor + "\"");
    }
    // Two: early stops need not wait for an algorithm that takes its time.
    algorithm_workers_ = std::make_unique<AlgorithmWorkers>(2);
    const auto enqueue = [this](const ExperimentKey& key) { (void)Enqueue(key); };
    options_.executor_options.on_output = enqueue;
    options_.executor_options.on_change = [this](const ExperimentKey& key) {
      if (!Enqueue(key, /*recheck=*/true)) unowned_.AddReported(key);
    };
    ASSIGN_OR_RETURN(executor_, info->create(options_.executor_options));
    reconciler_ = std::make_unique<Reconciler>(
        ReconcilerOptions{.store = options_.store,
                          .executor = executor_.get(),
                          .clock = options_.clock,
                          .algorithm_workers = algorithm_workers_.get(),
                          .working_dir = options_.working_dir,
                          .limits = options_.limits,
                          .namespace_quota = &namespace_quota_,
                          .sender = sender_.get(),
                          .enqueue = enqueue,
                          .at_step = options_.at_step});
    for (int i = 0; i < std::max(1, options_.workers); ++i)
      threads_.emplace_back([this](std::stop_token stop) { Work(stop); });
    threads_.emplace_back([this](std::stop_token stop) { KeepLeases(stop); });
    // What was asked for before is found by the first pass over each experiment.
    follower_ = std::make_unique<IntentFollower>(
        options_.store, [this](const ExperimentKey& key) { NotifyIntent(key); });
    return absl::OkStatus();
  }

  ~QueueController() override {
    follower_ = nullptr;
    for (std::jthread& thread : threads_) thread.request_stop();
    changed_.NotifyAll();
    due_changed_.NotifyAll();
    threads_.clear();
    // Their threads call Enqueue: they go while it still works.
    algorithm_workers_ = nullptr;
    reconciler_ = nullptr;
    executor_ = nullptr;
    std::vector<db::LeaseClaim> claims;
    for (const auto& [key, entry] : entries_) {
      if (entry.lost.ok()) claims.push_back({key, entry.epoch});
    }
    if (!claims.empty()) db::BulkOf(*options_.store).ReleaseLeases(claims).IgnoreError();
  }

  Status Own(const ExperimentKey& key) override {
    if (GoesOn(key)) return absl::OkStatus();
    RETURN_IF_ERROR(options_.store->GetExperiment(key).status());
    ASSIGN_OR_RETURN(const v1::Lease lease, AcquireLease(*options_.store, *options_.clock, key));
    MutexLock lock(mutex_);
    const auto found = entries_.find(key);
    if (found != entries_.end()) {
      OwnedExperiment& entry = found->second;
      if (entry.lost.ok() && entry.epoch == lease.epoch()) {
        EnqueueLocked(key, entry);
        return absl::OkStatus();
      }
      // It went to another process and came back; its last pass may not have noticed yet.
      entry.lost = absl::AbortedError("owned again");
      changed_.Wait(lock,
                    [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !IsRunningLocked(key); });
    }
    unowned_.Remove(key);
    reconciler_->Own(key, lease.epoch());
    OwnedExperiment& entry = entries_[key] =
        OwnedExperiment{.epoch = lease.epoch(), .since = renewals_};
    EnqueueLocked(key, entry);
    return absl::OkStatus();
  }

  Status Await(const ExperimentKey& key, absl::Duration timeout) override {
    MutexLock lock(mutex_);
    const auto over = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      const auto found = entries_.find(key);
      return found == entries_.end() || CanReturn(found->second);
    };
    if (!changed_.WaitFor(lock, timeout, over)) {
      return absl::DeadlineExceededError("experiment " + ToString(key) + " is still running");
    }
    const auto found = entries_.find(key);
    return found == entries_.end() ? absl::OkStatus() : found->second.lost;
  }

  void Suspend(const ExperimentKey& key, bool now) override {
    reconciler_->Suspend(key, now);
    const MutexLock lock(mutex_);
    const auto found = entries_.find(key);
    if (found == entries_.end()) return;
    found->second.suspended = true;
    found->second.idle = false;  // until a pass that knows says otherwise
    EnqueueLocked(key, found->second);
  }

  void NotifyIntent(const ExperimentKey& key) override {
    reconciler_->NotifyIntent(key);
    Enqueue(key);
  }

  StatusOr<ReportReply> Tell(const Report& report, absl::Duration timeout) override {
    const ExperimentKey& key = report.trial.experiment;
    const auto queue = reconciler_->ReportQueueOf(key);
    if (queue == nullptr) {
      return absl::FailedPreconditionError("experiment " + ToString(key) + " is not run here");
    }
    const auto pending_report =
        std::make_shared<PendingReport>(PendingReport{.report = report});  // shared: with the queue
    RETURN_IF_ERROR(queue->Put(pending_report));
    Enqueue(key);
    return queue->Await(pending_report, timeout);
  }

  trial::Executor& executor() override { return *executor_; }

  void ReleaseOwnership(const ExperimentKey& key) override {
    MutexLock lock(mutex_);
    changed_.Wait(lock,
                  [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !IsRunningLocked(key); });
    const auto found = entries_.find(key);
    if (found == entries_.end()) return;
    const OwnedExperiment entry = found->second;
    entries_.erase(found);
    due_.Remove(key);
    finished_.erase(key);
    lock.unlock();
    reconciler_->ReleaseOwnership(key);
    WakeUnblocked();
    if (entry.lost.ok()) options_.store->ReleaseLease({key, entry.epoch}).IgnoreError();
  }

  std::string LastError(const ExperimentKey& key) override {
    const MutexLock lock(mutex_);
    const auto found = entries_.find(key);
    return found == entries_.end() ? "" : found->second.last_error;
  }

  std::string StoreError() override {
    const MutexLock lock(mutex_);
    return store_error_;
  }

  bool Owns(const ExperimentKey& key) override {
    const MutexLock lock(mutex_);
    return entries_.contains(key);
  }

  std::vector<ExperimentKey> Finished() override {
    const MutexLock lock(mutex_);
    return {finished_.begin(), finished_.end()};
  }

 private:
  // And going on: its lease is being renewed, which need not be done here, with a durable write.
  bool GoesOn(const ExperimentKey& key) {
    const MutexLock lock(mutex_);
    const auto found = entries_.find(key);
    return found != entries_.end() && found->second.lost.ok() && !found->second.ended;
  }

  // A worker has it. Looked up each time: a thread that waits for the end may find it given back.
  bool IsRunningLocked(const ExperimentKey& key) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto found = entries_.find(key);
    return found != entries_.end() && found->second.running;
  }

  // False if it is not owned.
  bool Enqueue(const ExperimentKey& key, bool recheck = false) {
    const MutexLock lock(mutex_);
    const auto found = entries_.find(key);
    if (found == entries_.end()) return false;
    found->second.recheck = found->second.recheck || recheck;
    EnqueueLocked(key, found->second);
    return true;
  }

  // Others have fewer attempts now.
  void WakeUnblocked() {
    for (const ExperimentKey& key : namespace_quota_.Unblocked()) Enqueue(key);
  }

  void EnqueueLocked(const ExperimentKey& key, OwnedExperiment& entry)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (entry.deleted) return;
    entry.ended = false;  // a pass will say so again, if nothing has changed that
    entry.again = entry.running;
    PlaceLocked(key, entry, options_.clock->Monotonic());
  }

  // Its next pass is due then, unless it is over; threads that wait for a change look again.
  void PlaceLocked(const ExperimentKey& key, const OwnedExperiment& entry, absl::Duration due)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    CanReturn(entry) ? (void)finished_.insert(key) : (void)finished_.erase(key);
    const bool waits = !entry.running && !entry.ended && entry.lost.ok();
    const absl::Duration before = due_.NextDue();
    waits ? due_.Set(key, due) : due_.Remove(key);
    if (due_.NextDue() < before) NotifyDue();
    changed_.NotifyAll();
  }

  void NotifyDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ++due_revision_;
    due_changed_.NotifyOne();
  }

  void Work(std::stop_token stop) {
    MutexLock lock(mutex_);
    while (!stop.stop_requested()) {
      const absl::Duration wait = due_.NextDue() - options_.clock->Monotonic();
      if (wait > absl::ZeroDuration()) {
        due_changed_.WaitFor(lock, stop, std::min(wait, absl::Seconds(1)),
                             [&, seen = due_revision_]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                               return seen != due_revision_;
                             });
        continue;
      }
      const ExperimentKey key = due_.Pop();
      OwnedExperiment& entry = entries_.at(key);
      entry.running = true;
      entry.again = false;
      const bool recheck = std::exchange(entry.recheck, false);
      if (due_.NextDue() < absl::InfiniteDuration()) NotifyDue();  // it is another worker's
      lock.unlock();
      if (recheck) reconciler_->Recheck(key);
      const auto result = reconciler_->Reconcile(key);
      const PassOutcome outcome = PassOutcomeOf(key, result.status());
      WakeUnblocked();
      lock.lock();
      SettleLocked(key, result, outcome);
    }
  }

  // What a pass means for an experiment that is owned here. A status alone does not say: a file may
  // be missing or refused as well as a record.
  enum class PassOutcome { kOurs, kLost, kDeleted, kFailed };

  PassOutcome PassOutcomeOf(const ExperimentKey& key, const Status& status) {
    if (status.ok()) return PassOutcome::kOurs;
    if (db::IsLeaseLost(status)) return PassOutcome::kLost;
    const bool deleted =
        absl::IsNotFound(status) && absl::IsNotFound(options_.store->GetExperiment(key).status());
    // Its last pass did not come to its end: the rest of it is removed.
    return deleted && executor_->RemoveFiles(key, 0).ok() ? PassOutcome::kDeleted
                                                          : PassOutcome::kFailed;
  }

  // All retry policy of the controller.
  void SettleLocked(const ExperimentKey& key, const StatusOr<ReconcileResult>& result,
                    PassOutcome outcome) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return;
    OwnedExperiment& entry = found->second;
    entry.running = false;
    absl::Duration due = options_.clock->Monotonic();
    switch (outcome) {
      case PassOutcome::kOurs:
        entry.failures = 0;
        entry.last_error.clear();
        // What came meanwhile it may not have seen: then the next pass says whether it is over.
        entry.deleted = result->deleted;
        entry.ended = result->deleted || (result->ended && !entry.again);
        entry.idle = result->idle && !entry.again;
        if (!entry.again) due += result->requeue_after;
        break;
      case PassOutcome::kLost:
        entry.lost = absl::AbortedError(Message(result.status()));
        reconciler_->ReleaseOwnership(key);
        break;
      case PassOutcome::kDeleted: entry.ended = entry.deleted = true; break;
      case PassOutcome::kFailed:
        entry.last_error = Message(result.status());
        due += kRetryBackoff.Delay(entry.failures);
        if (++entry.failures == 1) {
          Log(LogLevel::kWarning, "reconciling failed; trying again",
              {{"experiment", ToString(key)}, {"error", entry.last_error}});
        }
    }
    if (!entry.lost.ok()) NoteLost(key);  // the pass may have begun something meanwhile
    PlaceLocked(key, entry, due);
  }

  void KeepLeases(std::stop_token stop) {
    MutexLock lock(mutex_);
    while (!stop.stop_requested()) {
      never_.SleepFor(lock, stop, kLeaseRenewal);
      if (stop.stop_requested()) return;
      const int64_t renewal = entries_.empty() ? 0 : ++renewals_;
      lock.unlock();
      const std::string error = renewal > 0 ? Message(RenewAll(renewal)) : "";
      if (!error.empty()) Log(LogLevel::kWarning, "failed to renew the leases", {{"error", error}});
      // They are then returned by Finished().
      for (const ExperimentKey& key : unowned_.ClearUp(*executor_)) Own(key).IgnoreError();
      lock.lock();
      store_error_ = error;
    }
  }

  // Those that were owned before it are among the leases renewed, or must be looked at.
  Status RenewAll(int64_t renewal) {
    ASSIGN_OR_RETURN(const auto held, RenewLeases(*options_.store, *options_.clock));
    std::vector<db::LeaseClaim> missing;
    {
      const MutexLock lock(mutex_);
      for (const auto& [key, entry] : entries_) {
        if (entry.since >= renewal || !entry.lost.ok() || entry.ended) continue;
        const auto found = held.find(key);
        const bool kept = found != held.end() && found->second == entry.epoch;
        if (!kept) missing.push_back({key, entry.epoch});
      }
    }
    for (const db::LeaseClaim& claim : missing) {
      const Status kept = CheckLease(*options_.store, *options_.clock, claim);
      if (absl::IsAborted(kept)) Lose(claim, kept);
    }
    return absl::OkStatus();
  }

  void Lose(const db::LeaseClaim& claim, const Status& why) {
    const MutexLock lock(mutex_);
    const auto found = entries_.find(claim.experiment);
    if (found == entries_.end() || found->second.epoch != claim.epoch) return;
    found->second.lost = why;
    NoteLost(claim.experiment);
    PlaceLocked(claim.experiment, found->second, absl::InfiniteDuration());
  }

  void NoteLost(const ExperimentKey& key) {
    if (!trial::RunsInCluster(options_.executor)) unowned_.AddLost(key);
  }

  ControllerOptions options_;
  UnownedExperiments unowned_{options_.store};
  NamespaceQuota namespace_quota_{options_.limits.namespace_parallel_trials};
  std::unique_ptr<notify::Sender> sender_ = notify::MakeWebhookSender(options_.clock);
  std::unique_ptr<AlgorithmWorkers> algorithm_workers_;
  std::unique_ptr<trial::Executor> executor_;
  std::unique_ptr<Reconciler> reconciler_;
  Mutex mutex_;
  CondVar changed_;      // of an entry
  CondVar due_changed_;  // the first of due_ is another, or earlier
  CondVar never_;        // for a wait that only the end cuts short
  std::map<ExperimentKey, OwnedExperiment> entries_ ABSL_GUARDED_BY(mutex_);
  // Those that no worker has and that are not over.
  DelayingQueue<ExperimentKey> due_ ABSL_GUARDED_BY(mutex_);
  int64_t due_revision_ ABSL_GUARDED_BY(mutex_) = 0;  // grows with each notice of due_changed_
  std::set<ExperimentKey> finished_ ABSL_GUARDED_BY(mutex_);  // whose Await would return
  int64_t renewals_ ABSL_GUARDED_BY(mutex_) = 0;              // of all leases, begun
  std::string store_error_ ABSL_GUARDED_BY(mutex_);           // "" = none
  std::vector<std::jthread> threads_;                         // joined before the rest goes
  std::unique_ptr<IntentFollower> follower_;                  // last: it calls this
};

}  // namespace

StatusOr<std::unique_ptr<Controller>> Controller::Create(ControllerOptions options) {
  auto controller = std::make_unique<QueueController>(std::move(options));
  RETURN_IF_ERROR(controller->Init());
  return controller;
}

}  // namespace shirabe::experiment
