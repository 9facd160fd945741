#include "crd/cluster_sync.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/delaying_queue.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/names.h"
#include "crd/experiment_sync.h"
#include "crd/resource_kinds.h"
#include "experiment/conditions.h"
#include "experiment/submission.h"

namespace shirabe::crd {
namespace {

// Which experiments are to be looked at, and when: each at most once in an interval, by one worker
// at a time, however often it is asked for. Thread-safe.
class WorkQueue {
 public:
  WorkQueue(Clock* clock, absl::Duration interval) : clock_(clock), interval_(interval) {}

  // It is due after `delay`, or earlier if it already is.
  void Add(const ExperimentKey& key, absl::Duration delay = absl::ZeroDuration());
  // Waits for one that is due and takes it; nullopt once `stop` is asked for. Done must follow.
  std::optional<ExperimentKey> Pop(std::stop_token stop);
  // What was added meanwhile comes an interval later.
  void Done(const ExperimentKey& key);

 private:
  Clock* const clock_;
  const absl::Duration interval_;
  Mutex mutex_;
  CondVar changed_;
  DelayingQueue<ExperimentKey> due_ ABSL_GUARDED_BY(mutex_);  // those that no worker has
  std::map<ExperimentKey, absl::Duration> earliest_ ABSL_GUARDED_BY(mutex_);  // by the interval
  // Those that a worker has, and when they are due again; infinite if they are not.
  std::map<ExperimentKey, absl::Duration> busy_ ABSL_GUARDED_BY(mutex_);
};

// A clock that is set by hand wakes no thread, so that none sleeps for long.
constexpr absl::Duration kClockPollInterval = absl::Milliseconds(200);

void WorkQueue::Add(const ExperimentKey& key, absl::Duration delay) {
  {
    const MutexLock lock(mutex_);
    absl::Duration at = clock_->Monotonic() + delay;
    const auto earliest = earliest_.find(key);
    if (earliest != earliest_.end()) at = std::max(at, earliest->second);
    const auto busy = busy_.find(key);
    if (busy == busy_.end()) {
      due_.SetEarlier(key, at);
    } else {
      busy->second = std::min(busy->second, at);
    }
  }
  changed_.NotifyOne();
}

std::optional<ExperimentKey> WorkQueue::Pop(std::stop_token stop) {
  MutexLock lock(mutex_);
  while (!stop.stop_requested()) {
    const absl::Duration wait = due_.NextDue() - clock_->Monotonic();
    if (wait <= absl::ZeroDuration()) {
      const ExperimentKey key = due_.Pop();
      busy_[key] = absl::InfiniteDuration();
      return key;
    }
    changed_.SleepFor(lock, stop, std::min(kClockPollInterval, wait));
  }
  return std::nullopt;
}

void WorkQueue::Done(const ExperimentKey& key) {
  {
    const MutexLock lock(mutex_);
    const absl::Duration earliest = clock_->Monotonic() + interval_;
    // Those that are free anyway need no entry.
    std::erase_if(earliest_,
                  [&](const auto& entry) { return entry.second < earliest - interval_; });
    earliest_[key] = earliest;
    const absl::Duration again = busy_.at(key);
    busy_.erase(key);
    if (again < absl::InfiniteDuration()) due_.Set(key, std::max(again, earliest));
  }
  changed_.NotifyOne();
}

using kube::Json;

constexpr absl::Duration kStorePollInterval = absl::Milliseconds(500);
constexpr absl::Duration kSynced = absl::Seconds(1);
constexpr Backoff kBackoff{absl::Milliseconds(500), absl::Seconds(30)};
constexpr absl::Duration kResync = absl::Minutes(10);
constexpr absl::Duration kNamespaces = absl::Seconds(10);
// Trial objects that are written at the same time: an API server that is busy answers after half a
// second, and an experiment may have hundreds of trials that change.
constexpr size_t kWriters = 8;
// Of all experiments together. Where trials come and go faster, the end of a short one is written
// before that it runs would be; what is old is written all the same.
constexpr RateLimits kProgressWrites{.requests_per_second = 0.5, .burst = 20};

class CachingSync : public ClusterSync {
 public:
  explicit CachingSync(SyncOptions options)
      : options_(std::move(options)),
        queue_(options_.clock, options_.interval),
        progress_writes_(kProgressWrites, options_.clock) {
    main_ = std::jthread([this](std::stop_token stop) { Run(stop); });
  }

  ~CachingSync() override {
    main_.request_stop();
    main_.join();
    workers_.clear();  // before what they use
  }

  std::string LastError() const override {
    const MutexLock lock(mutex_);
    return last_error_;
  }

 private:
  void SetLastError(const std::string& error);
  bool AwaitOwnership(const std::stop_token& stop);
  void StartCaches();
  bool AwaitCaches(const std::stop_token& stop);
  void Run(const std::stop_token& stop);
  Status Refresh();
  void AddAll();
  void CheckNamespaces();
  void Work(const std::stop_token& stop);
  void WorkOn(const ExperimentKey& key);

  const SyncOptions options_;
  bool labelled_only_ = false;
  WorkQueue queue_;
  mutable Mutex mutex_;
  std::string last_error_ ABSL_GUARDED_BY(mutex_);
  std::map<ExperimentKey, int> failures_ ABSL_GUARDED_BY(mutex_);  // in a row
  int64_t revision_ = 0;
  std::map<std::string, std::string> namespaces_;  // of experiments: their uid as last seen
  TrialObjectIndex index_;
  std::unique_ptr<kube::WatchCache> experiments_;
  std::unique_ptr<kube::WatchCache> trials_;
  TaskPool writers_{kWriters};
  RateLimiter progress_writes_;
  std::unique_ptr<ExperimentSync> sync_;
  std::vector<std::jthread> workers_;
  std::jthread main_;
};

void CachingSync::SetLastError(const std::string& error) {
  const MutexLock lock(mutex_);
  if (error == last_error_) return;
  last_error_ = error;
  if (error.empty()) {
    Log(LogLevel::kInfo, "watching custom resources");
  } else {
    Log(LogLevel::kWarning, "failed to watch custom resources", {{"error", error}});
  }
}

// Until it is known whose definitions the cluster has. False if it is to end.
bool CachingSync::AwaitOwnership(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const auto owner = OwnerOfDefinitions(*options_.kube);
    if (owner.ok() && *owner != Ownership::kAbsent) {
      labelled_only_ = *owner == Ownership::kForeign && !options_.adopt_all;
      if (labelled_only_) {
        Log(LogLevel::kInfo,
            "the definitions of experiments are another project's: only those labelled "
            "shirabe.dev/managed=true are taken up (--adopt-all takes all)");
      }
      return true;
    }
    if (absl::IsPermissionDenied(owner.status())) {
      labelled_only_ = !options_.adopt_all;
      return true;
    }
    SetLastError(owner.ok() ? "the cluster has no definition of experiments: shirabe crds | "
                              "kubectl apply --server-side -f -"
                            : Message(owner.status()));
    for (int i = 0; i < 10 && !stop.stop_requested(); ++i) Pause(absl::Milliseconds(200));
  }
  return false;
}

void CachingSync::StartCaches() {
  experiments_ = kube::WatchCache::Start(
      {.client = options_.kube,
       .clock = options_.clock,
       .query = {Experiments(), options_.namespace_name, "", ""},
       .on_change = [this](const Json& object, bool) { queue_.Add(KeyOfObject(object)); }});
  trials_ = kube::WatchCache::Start({.client = options_.kube,
                                     .clock = options_.clock,
                                     .query = {Trials(), options_.namespace_name,
                                               absl::StrCat(kManagedByLabel, "=", kManagedBy), ""},
                                     .on_change = [this](const Json& object, bool deleted) {
                                       queue_.Add(index_.Touch(object, deleted));
                                     }});
}

// Before the first list is in, an object that is not there means nothing.
bool CachingSync::AwaitCaches(const std::stop_token& stop) {
  for (kube::WatchCache* cache : {experiments_.get(), trials_.get()}) {
    for (;;) {
      if (stop.stop_requested()) return false;
      const Status synced = cache->AwaitSynced(kSynced);
      if (synced.ok()) break;
      SetLastError(Message(synced));
    }
  }
  return true;
}

void CachingSync::Run(const std::stop_token& stop) {
  if (!AwaitOwnership(stop)) return;
  StartCaches();
  if (!AwaitCaches(stop)) return;
  sync_ =
      std::make_unique<ExperimentSync>(SyncContext{.kube = options_.kube,
                                                   .store = options_.store,
                                                   .clock = options_.clock,
                                                   .experiments = experiments_.get(),
                                                   .trials = trials_.get(),
                                                   .presence = &index_,
                                                   .writers = &writers_,
                                                   .progress_writes = &progress_writes_,
                                                   .namespace_name = options_.namespace_name,
                                                   .labelled_only = labelled_only_,
                                                   .instance = options_.instance,
                                                   .finished_trials = options_.finished_trials});
  for (int i = 0; i < options_.workers; ++i) {
    workers_.emplace_back([this](std::stop_token ending) { Work(ending); });
  }
  // All is looked at once anyway: what came before is no news.
  revision_ = options_.store->Revision().value_or(0);
  absl::Duration resync = -absl::InfiniteDuration();
  absl::Duration namespaces = -absl::InfiniteDuration();
  while (!stop.stop_requested()) {
    const absl::Duration now = options_.clock->Monotonic();
    if (now >= resync) {
      AddAll();
      resync = now + kResync;
    }
    if (now >= namespaces) {
      CheckNamespaces();
      namespaces = now + kNamespaces;
    }
    const Status looked = Refresh();
    const std::string error =
        experiments_->LastError().empty() ? trials_->LastError() : experiments_->LastError();
    SetLastError(error);
    if (!looked.ok()) Pause(kStorePollInterval);
  }
}

// Whatever has changed in the store, its experiment is looked at.
Status CachingSync::Refresh() {
  RETURN_IF_ERROR(options_.store->AwaitChange(revision_, kStorePollInterval).status());
  ASSIGN_OR_RETURN(const auto changes, options_.store->Changes(revision_));
  std::set<ExperimentKey> changed;
  for (const db::Change& change : changes) changed.insert(change.experiment);
  for (const ExperimentKey& key : changed) {
    namespaces_.try_emplace(key.ns);
    queue_.Add(key);
  }
  if (!changes.empty()) revision_ = changes.back().revision;
  return absl::OkStatus();
}

// Also experiments whose objects went while no controller watched.
void CachingSync::AddAll() {
  for (const Json& object : experiments_->All()) queue_.Add(KeyOfObject(object));
  const auto stored = options_.store->ListExperiments(options_.namespace_name);
  if (!stored.ok()) return;  // Look says so
  for (const v1::Experiment& experiment : *stored) {
    namespaces_.try_emplace(experiment.metadata().namespace_());
    queue_.Add(experiment::KeyOf(experiment));
  }
}

// What a namespace that is gone has left is removed once it is seen: so it is looked at.
void CachingSync::CheckNamespaces() {
  if (options_.namespaces == nullptr) return;
  for (auto& [name, seen] : namespaces_) {
    const auto uid = options_.namespaces->Uid(name);
    const bool gone = absl::IsNotFound(uid.status());
    const bool another = uid.ok() && *uid != seen;
    if (uid.ok()) seen = *uid;
    // Those of one that is gone are not listed; that they were looked at is enough.
    if (gone || another) (void)options_.store->ListExperiments(name);
  }
}

void CachingSync::Work(const std::stop_token& stop) {
  while (const auto key = queue_.Pop(stop)) {
    WorkOn(*key);
    queue_.Done(*key);
  }
}

void CachingSync::WorkOn(const ExperimentKey& key) {
  const auto again = sync_->Reconcile(key);
  if (again.ok()) {
    const MutexLock lock(mutex_);
    failures_.erase(key);
  }
  if (again.ok() && *again < absl::InfiniteDuration()) queue_.Add(key, *again);
  if (again.ok()) return;
  int failures = 0;
  {
    const MutexLock lock(mutex_);
    failures = ++failures_[key];
  }
  // A conflict is news that have not come yet; the rest is worth a line, once.
  if (failures == 1 && !absl::IsAborted(again.status())) {
    Log(LogLevel::kWarning, "failed to sync an experiment with its object; trying again",
        {{"experiment", ToString(key)}, {"error", Message(again.status())}});
  }
  queue_.Add(key, kBackoff.Delay(failures));
}

}  // namespace

std::unique_ptr<ClusterSync> ClusterSync::Start(SyncOptions options) {
  return std::make_unique<CachingSync>(std::move(options));
}

}  // namespace shirabe::crd
