// Every attempt that the executor `kubernetes` knows: those whose object is being made, those that
// are watched, and those of which it is not known whether they were made. It owns them and their
// lock; what is done with one attempt is a function that Visit calls. Beside them it keeps when
// each is to be looked at again. It asks no cluster and reads no file. Thread-safe.
//
// Locks of the executor are taken in this order only: a part's own, the table's, the view's.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/names.h"
#include "base/status.h"
#include "trial/kubernetes/pod_attempt.h"

namespace shirabe::trial {

class AttemptTable {
 public:
  struct Options {
    Clock* clock = nullptr;      // outlives it
    absl::Duration start;        // of a caller's patience, for an object to be made
    absl::Duration settle;       // how long attempts may still be adopted
    std::function<void()> wake;  // the first of all looks is due earlier now; called under the lock
  };
  explicit AttemptTable(Options options);

  // ---- while objects are made ----

  // Takes the place of an attempt that is new to us: how long the caller is to wait for its object.
  // nullopt: there is nothing to do. An error: another token's, the API server was away just now,
  // or the start before this one has failed and its caller was not told.
  StatusOr<std::optional<absl::Duration>> Reserve(const AttemptKey& key, const std::string& id);
  // Gives the place back: its object was not asked for.
  void Release(const AttemptKey& key);
  // What came of it; OK if that is still open once patience has run out.
  Status AwaitStart(const AttemptKey& key, absl::Duration patience);
  // A stop for one whose object is being made: Started tells of it. Else nothing.
  void DeferStop(const AttemptKey& key, v1::Cause why, absl::Duration grace);
  struct StartOutcome {
    bool unheard = false;  // it has failed, and its caller has stopped waiting
    struct RequestedStop {
      v1::Cause why = v1::CAUSE_NONE;
      absl::Duration grace;
    };
    std::optional<RequestedStop> stop;  // what was asked for meanwhile
  };
  // The object is made and the attempt is watched from now on, or why it is not.
  StartOutcome FinishStart(const AttemptKey& key, StatusOr<PodAttempt> started);

  // ---- the attempts ----

  // One that an earlier process has started; false if it is here.
  bool Adopt(PodAttempt attempt);
  // Calls `use` with the attempt, under the lock; false if there is none.
  bool Visit(const AttemptKey& key, const std::function<void(PodAttempt&)>& use);
  // The same for what a sidecar with this attempt id says. kPermissionDenied if the attempt is not
  // current, or the id not its own; kUnavailable if it may still be adopted or started.
  Status Admit(const AttemptKey& key, const std::string& id,
               const std::function<void(PodAttempt&)>& use);
  // Forgets it; nullopt if it is not watched.
  std::optional<PodAttempt> Take(const AttemptKey& key);

  // All of an experiment, which is owned from now on: what runs of it was adopted before.
  std::vector<AttemptStatus> Observe(const ExperimentKey& experiment);
  bool Owns(const ExperimentKey& experiment) const;
  bool Knows(const AttemptKey& key) const;  // watched, being started, or perhaps started
  // That nothing of an experiment, or of one trial, runs or is being started; its failed starts are
  // forgotten then.
  Status CheckStopped(const ExperimentKey& experiment, int64_t trial);
  std::vector<AttemptKey> RunningOn(const std::string& node) const;
  std::vector<AttemptKey> WatchedOf(const TrialKey& trial) const;
  size_t size() const;

  // ---- when they are looked at ----

  // Those whose time has come; each is told once.
  std::vector<AttemptKey> TakeDue(absl::Duration now);
  std::optional<absl::Duration> NextDue() const;

 private:
  struct PendingStart {
    bool left = false;             // its caller has stopped waiting
    std::optional<Status> answer;  // once it is made, or not
    std::optional<StartOutcome::RequestedStop> stop;
  };
  using Attempts = std::map<AttemptKey, PodAttempt>;

  Status CheckPlace(const AttemptKey& key, const std::string& id, bool& taken)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Use(PodAttempt& attempt, const std::function<void(PodAttempt&)>& use)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Drop(Attempts::iterator attempt) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const absl::Duration began_;
  mutable Mutex mutex_;
  CondVar started_;  // something in starts_ has an answer
  Attempts attempts_ ABSL_GUARDED_BY(mutex_);
  std::map<AttemptKey, PendingStart> starts_ ABSL_GUARDED_BY(mutex_);
  // Could not be made; OK = and the caller knows.
  std::map<AttemptKey, Status> refused_ ABSL_GUARDED_BY(mutex_);
  // Were to be started; not known whether they were.
  std::set<AttemptKey> unconfirmed_ ABSL_GUARDED_BY(mutex_);
  std::set<ExperimentKey> owned_ ABSL_GUARDED_BY(mutex_);
  // PodAttempt::due of all. Too many entries do no harm: what is looked at says itself what there
  // is to do.
  std::set<std::pair<absl::Duration, AttemptKey>> agenda_ ABSL_GUARDED_BY(mutex_);
  absl::Duration away_until_ ABSL_GUARDED_BY(mutex_);  // the API server did not answer
  std::string away_ ABSL_GUARDED_BY(mutex_);           // what it did instead
};

// What is answered to a sidecar whose attempt is not current.
Status NotCurrent();

}  // namespace shirabe::trial
