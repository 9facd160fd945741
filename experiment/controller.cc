#include "experiment/controller.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/process_id.h"
#include "db/lease_lost.h"
#include "experiment/reconciler.h"
#include "experiment/submit.h"

namespace shirabe::experiment {
namespace {

constexpr absl::Duration kLeaseTtl = absl::Seconds(15);
constexpr absl::Duration kLeaseRenewal = absl::Seconds(5);
constexpr absl::Duration kFirstRetry = absl::Milliseconds(50);
constexpr absl::Duration kLastRetry = absl::Seconds(5);

// The state of one owned experiment in the queue.
struct Entry {
  int64_t epoch = 0;
  absl::Duration due;    // monotonic
  bool running = false;  // a worker has it
  bool again = false;    // something happened meanwhile
  bool suspended = false;
  bool ended = false;
  bool idle = false;
  int failures = 0;  // errors in a row
  Status lost;       // not OK: the lease is gone, with the reason
  std::string trouble;
};

class QueueController : public Controller {
 public:
  explicit QueueController(ControllerOptions options) : options_(std::move(options)) {}

  Status Init() {
    const auto* info = Registry<trial::ExecutorInfo>::Get().Find(options_.executor);
    if (info == nullptr) {
      return absl::NotFoundError("there is no executor \"" + options_.executor + "\"");
    }
    // Two: early stops need not wait for an algorithm that takes its time.
    proposer_ = std::make_unique<Proposer>(2);
    options_.executor_options.on_change = [this](const ExperimentKey& key) {
      if (!Enqueue(key)) NoteUnowned(key);
    };
    ASSIGN_OR_RETURN(executor_, info->create(options_.executor_options));
    reconciler_ = std::make_unique<Reconciler>(
        ReconcilerOptions{.store = options_.store,
                          .executor = executor_.get(),
                          .clock = options_.clock,
                          .proposer = proposer_.get(),
                          .working_dir = options_.working_dir,
                          .enqueue = [this](const ExperimentKey& key) { (void)Enqueue(key); },
                          .at_step = options_.at_step});
    for (int i = 0; i < std::max(1, options_.workers); ++i) {
      threads_.emplace_back([this](std::stop_token stop) { Work(stop); });
    }
    threads_.emplace_back([this](std::stop_token stop) { RenewLeases(stop); });
    return absl::OkStatus();
  }

  ~QueueController() override {
    for (std::jthread& thread : threads_) thread.request_stop();
    changed_.notify_all();
    threads_.clear();
    // Their threads call Enqueue: they go while it still works.
    proposer_ = nullptr;
    reconciler_ = nullptr;
    executor_ = nullptr;
    for (const auto& [key, entry] : entries_) {
      if (entry.lost.ok()) options_.store->ReleaseLease({key, entry.epoch}).IgnoreError();
    }
  }

  Status Own(const ExperimentKey& key) override {
    if (IsOwned(key)) return absl::OkStatus();
    RETURN_IF_ERROR(options_.store->GetExperiment(key).status());
    ASSIGN_OR_RETURN(const v1::Lease lease, Acquire(key));
    std::unique_lock lock(mutex_);
    const auto found = entries_.find(key);
    if (found != entries_.end()) {
      Entry& entry = found->second;
      if (entry.lost.ok() && entry.epoch == lease.epoch()) {
        EnqueueLocked(entry);
        return absl::OkStatus();
      }
      // It went to another process and came back; its last pass may not have noticed yet.
      entry.lost = absl::AbortedError("owned anew");
      changed_.wait(lock, [&] { return !IsRunningLocked(key); });
    }
    reconciler_->Own(key, lease.epoch());
    entries_[key] = Entry{.epoch = lease.epoch(), .due = options_.clock->Monotonic()};
    ++revision_;
    changed_.notify_all();
    return absl::OkStatus();
  }

  Status Await(const ExperimentKey& key, absl::Duration timeout) override {
    std::unique_lock lock(mutex_);
    const auto over = [&] {
      const auto found = entries_.find(key);
      if (found == entries_.end()) return true;
      const Entry& entry = found->second;
      return entry.ended || !entry.lost.ok() || (entry.suspended && entry.idle);
    };
    if (!changed_.wait_for(lock, absl::ToChronoMilliseconds(timeout), over)) {
      return absl::DeadlineExceededError("experiment " + ToString(key) + " is still running");
    }
    const auto found = entries_.find(key);
    return found == entries_.end() ? absl::OkStatus() : found->second.lost;
  }

  void Suspend(const ExperimentKey& key, bool now) override {
    reconciler_->Suspend(key, now);
    std::lock_guard lock(mutex_);
    const auto found = entries_.find(key);
    if (found == entries_.end()) return;
    found->second.suspended = true;
    found->second.idle = false;  // until a pass that knows says otherwise
    EnqueueLocked(found->second);
  }

  void Poke(const ExperimentKey& key) override {
    reconciler_->Heed(key);
    Enqueue(key);
  }

  StatusOr<Reported> Tell(const Report& report, absl::Duration timeout) override {
    const ExperimentKey& key = report.trial.experiment;
    const auto inbox = reconciler_->InboxOf(key);
    if (inbox == nullptr) {
      return absl::FailedPreconditionError("experiment " + ToString(key) + " is not run here");
    }
    const auto letter = std::make_shared<Letter>(Letter{.report = report});  // shared: see inbox.h
    RETURN_IF_ERROR(inbox->Put(letter));
    Enqueue(key);
    return inbox->Await(letter, timeout);
  }

  StatusOr<v1::SyncReply> Sync(const v1::SyncRequest& request,
                               const std::string& bearer) override {
    return executor_->Sync(request, bearer);
  }

  void Disown(const ExperimentKey& key) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !IsRunningLocked(key); });
    const auto found = entries_.find(key);
    if (found == entries_.end()) return;
    const Entry entry = found->second;
    entries_.erase(found);
    lock.unlock();
    reconciler_->Disown(key);
    if (entry.lost.ok()) options_.store->ReleaseLease({key, entry.epoch}).IgnoreError();
  }

  std::string Trouble(const ExperimentKey& key) override {
    std::lock_guard lock(mutex_);
    const auto found = entries_.find(key);
    return found == entries_.end() ? "" : found->second.trouble;
  }

  std::set<ExperimentKey> Owned() override {
    std::lock_guard lock(mutex_);
    std::set<ExperimentKey> keys;
    for (const auto& [key, entry] : entries_) keys.insert(key);
    return keys;
  }

 private:
  // And going on: its lease is being renewed, which need not be done here, with a durable write.
  bool IsOwned(const ExperimentKey& key) {
    std::lock_guard lock(mutex_);
    const auto found = entries_.find(key);
    return found != entries_.end() && found->second.lost.ok() && !found->second.ended;
  }

  // A worker has it. Looked up each time: whoever waits for the end may find it given back.
  bool IsRunningLocked(const ExperimentKey& key) const {
    const auto found = entries_.find(key);
    return found != entries_.end() && found->second.running;
  }

  using Item = std::map<ExperimentKey, Entry>::iterator;

  // False if it is not owned.
  bool Enqueue(const ExperimentKey& key) {
    std::lock_guard lock(mutex_);
    const auto found = entries_.find(key);
    if (found == entries_.end()) return false;
    EnqueueLocked(found->second);
    return true;
  }

  void NoteUnowned(const ExperimentKey& key) {
    std::lock_guard lock(mutex_);
    unowned_.insert(key);
  }

  // Something of these is left where attempts run: a process died after it had written that they
  // ended, or were deleted, and before it had cleared up. Others have an owner, or will.
  void ClearUp(const ExperimentKey& key) {
    const auto experiment = options_.store->GetExperiment(key);
    if (absl::IsNotFound(experiment.status())) {
      executor_->RemoveFiles(key, 0).IgnoreError();  // what is left is told of again
    } else if (experiment.ok() && IsEnded(experiment->record)) {
      Own(key).IgnoreError();  // whoever asks what is owned gives it back
    }
  }

  void EnqueueLocked(Entry& entry) {
    entry.due = options_.clock->Monotonic();
    entry.ended = false;  // a pass will say so again, if nothing has changed that
    entry.again = entry.running;
    ++revision_;
    changed_.notify_all();
  }

  // Also from a holder that is dead but did not give its lease up: a process of this machine.
  StatusOr<v1::Lease> Acquire(const ExperimentKey& key) {
    db::LeaseRequest request{.experiment = key,
                             .holder = ToString(ThisProcess()),
                             .now = options_.clock->Now(),
                             .ttl = kLeaseTtl};
    auto lease = options_.store->AcquireLease(request);
    if (!absl::IsAlreadyExists(lease.status())) return lease;
    ASSIGN_OR_RETURN(const v1::Lease held, options_.store->GetLease(key));
    const auto holder = ParseProcessId(held.holder());
    if (!holder || MayBeAlive(*holder)) return lease;
    request.dead_epoch = held.epoch();
    return options_.store->AcquireLease(request);
  }

  // The entry that is due first and that nobody works on; end() if there is none.
  Item NextLocked() {
    Item next = entries_.end();
    for (Item it = entries_.begin(); it != entries_.end(); ++it) {
      const Entry& entry = it->second;
      if (entry.running || entry.ended || !entry.lost.ok()) continue;
      if (next == entries_.end() || entry.due < next->second.due) next = it;
    }
    return next;
  }

  void Work(std::stop_token stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      const Item next = NextLocked();
      const absl::Duration wait = next == entries_.end()
                                      ? absl::Seconds(1)
                                      : next->second.due - options_.clock->Monotonic();
      if (wait > absl::ZeroDuration()) {
        changed_.wait_for(lock, stop, absl::ToChronoMicroseconds(std::min(wait, absl::Seconds(1))),
                          [&, revision = revision_] { return revision != revision_; });
        continue;
      }
      const ExperimentKey key = next->first;
      next->second.running = true;
      next->second.again = false;
      lock.unlock();
      const auto result = reconciler_->Reconcile(key);
      const Fate fate = FateOf(key, result.status());
      lock.lock();
      Settle(key, result, fate);
    }
  }

  // What a pass means for an experiment that is owned here. A status alone does not say: a file may
  // be missing or refused as well as a record.
  enum class Fate { kOurs, kLost, kDeleted, kTrouble };

  Fate FateOf(const ExperimentKey& key, const Status& status) {
    if (status.ok()) return Fate::kOurs;
    if (db::IsLeaseLost(status)) return Fate::kLost;
    const bool deleted =
        absl::IsNotFound(status) && absl::IsNotFound(options_.store->GetExperiment(key).status());
    // Its last pass did not come to its end: the rest of it is removed.
    return deleted && executor_->RemoveFiles(key, 0).ok() ? Fate::kDeleted : Fate::kTrouble;
  }

  // All retry policy of the controller.
  void Settle(const ExperimentKey& key, const StatusOr<ReconcileResult>& result, Fate fate) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return;
    Entry& entry = found->second;
    entry.running = false;
    const absl::Duration now = options_.clock->Monotonic();
    switch (fate) {
      case Fate::kOurs:
        entry.failures = 0;
        entry.trouble.clear();
        // What came meanwhile it may not have seen: then the next pass says whether it is over.
        entry.ended = result->ended && !entry.again;
        entry.idle = result->idle && !entry.again;
        entry.due = now + (entry.again ? absl::ZeroDuration() : result->requeue_after);
        break;
      case Fate::kLost:
        entry.lost = absl::AbortedError(Message(result.status()));
        reconciler_->Disown(key);
        break;
      case Fate::kDeleted: entry.ended = true; break;
      case Fate::kTrouble:
        entry.trouble = Message(result.status());
        entry.due = now + std::min(kFirstRetry * (1 << std::min(entry.failures, 10)), kLastRetry);
        if (++entry.failures == 1) {
          Log(LogLevel::kWarning, "reconciling failed; trying again",
              {{"experiment", ToString(key)}, {"error", entry.trouble}});
        }
    }
    ++revision_;
    changed_.notify_all();
  }

  void RenewLeases(std::stop_token stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      changed_.wait_for(lock, stop, absl::ToChronoMilliseconds(kLeaseRenewal),
                        [] { return false; });
      if (stop.stop_requested()) return;
      const std::set<ExperimentKey> unowned = std::exchange(unowned_, {});
      std::vector<db::LeaseClaim> claims;
      for (const auto& [key, entry] : entries_) {
        if (entry.lost.ok() && !entry.ended) claims.push_back({key, entry.epoch});
      }
      lock.unlock();
      for (const db::LeaseClaim& claim : claims) Renew(claim);
      for (const ExperimentKey& key : unowned) ClearUp(key);
      lock.lock();
    }
  }

  // One that slept while another process had the lease, and gave it up, gets a new one here: what
  // it knows is old, so it begins again from the store.
  void Renew(const db::LeaseClaim& claim) {
    const auto lease = options_.store->AcquireLease({.experiment = claim.experiment,
                                                     .holder = ToString(ThisProcess()),
                                                     .now = options_.clock->Now(),
                                                     .ttl = kLeaseTtl});
    if (absl::IsNotFound(lease.status())) return;  // just deleted: its files go still
    if (!lease.ok()) {
      return Log(LogLevel::kWarning, "the lease could not be renewed",
                 {{"experiment", ToString(claim.experiment)}, {"error", Message(lease.status())}});
    }
    if (lease->epoch() == claim.epoch) return;
    options_.store->ReleaseLease({claim.experiment, lease->epoch()}).IgnoreError();
    std::lock_guard lock(mutex_);
    const auto found = entries_.find(claim.experiment);
    if (found == entries_.end() || found->second.epoch != claim.epoch) return;
    found->second.lost = absl::AbortedError("the lease went to another process meanwhile");
    ++revision_;
    changed_.notify_all();
  }

  ControllerOptions options_;
  std::unique_ptr<Proposer> proposer_;
  std::unique_ptr<trial::Executor> executor_;
  std::unique_ptr<Reconciler> reconciler_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<ExperimentKey, Entry> entries_;  // guarded by mutex_
  std::set<ExperimentKey> unowned_;         // guarded by mutex_; of which something was told
  int64_t revision_ = 0;                    // guarded by mutex_; grows with every change
  std::vector<std::jthread> threads_;       // last: joined before the rest goes
};

}  // namespace

StatusOr<std::unique_ptr<Controller>> Controller::Create(ControllerOptions options) {
  auto controller = std::make_unique<QueueController>(std::move(options));
  RETURN_IF_ERROR(controller->Init());
  return controller;
}

}  // namespace shirabe::experiment
