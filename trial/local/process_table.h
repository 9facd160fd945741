// Every attempt of the executor `process`: what is remembered of it, which devices and slot of this
// machine it has, and which experiments wait for one. It starts no process and reads no file; it
// signals the supervisors of those that run. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/names.h"
#include "base/status.h"
#include "trial/attempt_status.h"
#include "trial/local/gpu_pool.h"
#include "trial/local/pidfd.h"
#include "trial/local/simulated_preemption.h"
#include "trial/local/supervisor_records.h"
#include "trial/node_slots.h"

namespace shirabe::trial {

class ProcessTable {
 public:
  struct Options {
    Clock* clock = nullptr;            // outlives it
    std::string host;                  // this machine, where there are no pools
    std::vector<std::string> devices;  // GPUs that may be given out
    v1::NodePools pools;
    // Reports once that the process of this descriptor has ended; called under the lock.
    std::function<Status(const Fd& pidfd, uint64_t watch)> watch;
  };
  explicit ProcessTable(const Options& options);

  // ---- how they begin and go ----

  // True if the attempt is new to us and its place is taken now; false if there is nothing to do.
  StatusOr<bool> Reserve(const AttemptKey& key, const std::string& id);
  // Devices and a slot for one that has its place: both, or neither.
  struct Grant {
    std::vector<std::string> devices;
    std::string place;  // EncodePlacement; "" where there are no pools
  };
  StatusOr<Grant> Allocate(const AttemptKey& key, int gpus, const PlacementRequest& request);
  // What was found of one that has its place; false if it was forgotten meanwhile. A stop that came
  // before is sent now.
  bool FinishStart(const AttemptKey& key, AttemptProcess found);
  // Forgets it and frees what it has: the experiments that may try again because of that.
  std::set<ExperimentKey> Drop(const AttemptKey& key);

  // ---- how they end ----

  // False if it has ended, or ends as soon without this.
  bool BeginStop(const AttemptKey& key, absl::Duration grace);
  // Asks its supervisor. kUnavailable if that cannot be reached now; nothing running is fine.
  Status Signal(const AttemptKey& key, absl::Duration grace);
  struct Watched {
    AttemptKey key;
    pid_t pid = 0;  // of its supervisor
    std::string id;
  };
  // The running attempt that this watch is of.
  std::optional<Watched> FindRunning(uint64_t watch) const;
  // What was found of it then; false if that is of no interest any more.
  bool RecordFound(uint64_t watch, AttemptProcess found);

  // ---- what is known ----

  bool Knows(const AttemptKey& key) const;
  struct Snapshot {
    std::vector<AttemptStatus> statuses;
    std::vector<uint64_t> unwatched;  // of those that run and nothing watches
  };
  Snapshot Observe(const ExperimentKey& experiment) const;
  // That nothing of an experiment, or of one trial, runs.
  Status CheckStopped(const ExperimentKey& experiment, int64_t trial) const;
  // What an attempt would get now. An experiment that would have to wait is remembered.
  PlacementQuote QuotePlacement(const ExperimentKey& experiment, int gpus,
                                const PlacementRequest& request);

  // ---- machines that are taken away ----

  // Those whose machine can be: what runs in a slot and is not being preempted yet.
  std::vector<Reclaims::RunningAttempt> RunningInSlots() const;
  // Its id, if it still runs; its slot is away either way.
  std::optional<std::string> Preempt(const Reclaims::Preemption& preemption);
  // The experiments that may try again because a slot has come back.
  std::set<ExperimentKey> TakeReturned();
  // When the next slot comes back.
  std::optional<absl::Duration> NextReturn();

 private:
  struct ProcessAttempt {
    uint64_t watch = 0;  // names this entry to the watcher; never used twice
    std::string id;
    AttemptStatus observed;
    std::vector<std::string> devices;             // taken from their pool, until Drop
    std::string node;                             // the same; "" = none is needed
    std::optional<absl::Duration> since;          // it runs, as far as we know; monotonic
    Fd pidfd;                                     // while it runs; not valid if descriptors ran out
    bool starting = false;                        // its caller is at work on it without the lock
    bool startable = false;                       // lost, but only because it never began
    std::optional<absl::Duration> kill_at;        // when the last stop ends in SIGKILL; monotonic
    std::optional<absl::Duration> deferred_stop;  // the grace of a stop that came while starting

    bool running() const { return observed.state == AttemptStatus::State::kRunning; }
  };
  using Attempts = std::map<AttemptKey, ProcessAttempt>;

  std::set<ExperimentKey> Erase(const AttemptKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Apply(AttemptProcess found, ProcessAttempt& attempt) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Hold(const AttemptProcess& found, ProcessAttempt& attempt)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  mutable Mutex mutex_;
  Attempts attempts_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, AttemptKey> watched_ ABSL_GUARDED_BY(mutex_);
  GpuPool gpus_ ABSL_GUARDED_BY(mutex_);
  NodeSlots nodes_ ABSL_GUARDED_BY(mutex_);
  // No device or slot was free for them; told when one is.
  std::set<ExperimentKey> refused_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Duration> next_return_ ABSL_GUARDED_BY(mutex_);  // as NextReturn said
  uint64_t next_watch_ ABSL_GUARDED_BY(mutex_) = 1;
};

}  // namespace shirabe::trial
