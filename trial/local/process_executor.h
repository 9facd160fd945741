// Attempts as processes of this machine. Each has a supervisor (trial/supervisor) that outlives us;
// what is true of it stands in the records it leaves, and an Entry is only what we remember of
// them. So a start, the end of a process and a restart of ours all come down to the same two steps:
// something is found (trial/local/supervisor_records.h), and Apply writes it down.
//
// With a nodes file it also plays the platform: attempts get slots of pools, at a price, and a
// timer takes machines away. What a restart must know of that stands in files before it happens.
//
// Locking: mutex_ guards everything that changes. Files are read and processes started without it;
// an entry that is `starting` holds the attempt's place meanwhile. on_change is called without it.
//
// process_executor.cc holds how attempts begin, trial/executors/process.cc how they end.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "trial/checkpoint/checkpoint_committer.h"
#include "trial/executor.h"
#include "trial/local/exit_watcher.h"
#include "trial/local/gpu_pool.h"
#include "trial/local/launcher.h"
#include "trial/local/simulated_preemption.h"
#include "trial/local/supervisor_records.h"
#include "trial/node_slots.h"
#include "trial/wakeup_timer.h"

namespace shirabe::trial {

using Devices = std::vector<std::string>;

struct Entry {
  uint64_t watch = 0;  // names this entry to the watcher; never used twice
  std::string id;
  AttemptStatus observed;
  Devices devices;                              // taken from their pool, until Forget
  std::string node;                             // the same; "" = none is needed
  std::optional<absl::Duration> since;          // it runs, as far as we know; monotonic
  Fd pidfd;                                     // while it runs; not valid if descriptors ran out
  bool starting = false;                        // Start is at work on it without the lock
  bool startable = false;                       // lost, but only because it never began
  std::optional<absl::Duration> kill_at;        // when the last stop ends in SIGKILL; monotonic
  std::optional<absl::Duration> deferred_stop;  // the grace of a stop that came while starting
};

using Entries = std::map<AttemptKey, Entry>;

// Asks the supervisor to end its attempt; it tells the program, and once only.
Status SendStop(const Fd& pidfd, absl::Duration grace);

class ProcessExecutor : public Executor {
 public:
  explicit ProcessExecutor(const ExecutorOptions& options);
  static StatusOr<std::unique_ptr<Executor>> Create(const ExecutorOptions& options);

  Status Start(const AttemptRequest& request) override;
  Status Stop(const AttemptKey& key, v1::Cause why, absl::Duration grace) override;
  void Adopt(const std::vector<v1::Attempt>& open) override;
  std::vector<AttemptStatus> Observe(const ExperimentKey& experiment) override;
  void Forget(const AttemptKey& key) override;
  Status RemoveFiles(const ExperimentKey& experiment, int64_t trial) override;
  AttemptPaths Paths(const AttemptKey& key) const override { return layout_.Paths(key); }
  PlacementQuote QuotePlacement(const ExperimentKey& experiment,
                                const google::protobuf::Struct& trial_spec,
                                const PlacementRequest& placement_request) override;
  void Prune(const v1::Checkpoint& checkpoint) override;

 private:
  StatusOr<bool> Reserve(const AttemptKey& key, const std::string& id);
  StatusOr<AttemptProcess> Begin(const AttemptRequest& request, const std::string& id);
  Status AllocateResources(const AttemptRequest& request, LaunchPlan& plan);
  Status OpenTrace(const ExperimentKey& experiment, bool create);
  void FinishStart(const AttemptKey& key, AttemptProcess found);
  void AdoptOne(const v1::Attempt& attempt);
  void ResumeStop(const AttemptKey& key, const AttemptProcess& found);
  void ResumeReclaims(const std::set<ExperimentKey>& experiments);

  // With mutex_ held.
  Entry& Add(const AttemptKey& key, const std::string& id);
  void Apply(Entry& entry, AttemptProcess found);
  void Watch(Entry& entry);
  void Hold(const AttemptProcess& found, Entry& entry);
  std::vector<Reclaims::RunningAttempt> RunningAttempts() const;
  std::set<ExperimentKey> Drop(const AttemptKey& key);
  Entries::iterator FirstOf(const ExperimentKey& experiment);

  void OnExits(const std::vector<uint64_t>& watches);
  std::optional<ExperimentKey> CheckSupervisor(uint64_t watch);
  void WriteStopRequest(const AttemptKey& key, v1::Cause why, absl::Duration grace);
  Status Signal(const AttemptKey& key, absl::Duration grace);
  std::optional<absl::Duration> PlayReclaims();
  void Reclaim(const Reclaims::Preemption& preemption);
  void Announce(const std::set<ExperimentKey>& experiments);

  const ExecutorOptions options_;
  const std::string host_;
  Launcher launcher_;
  const Layout& layout_;
  CheckpointCommitter committer_;  // has a lock of its own, and calls nothing of ours under it

  std::mutex mutex_;
  // These are guarded by mutex_.
  Entries entries_;
  std::map<uint64_t, AttemptKey> watched_;
  GpuPool gpus_;
  Nodes nodes_;
  Reclaims reclaims_;
  std::set<ExperimentKey> refused_;  // no device or slot was free for them; told when one is
  std::optional<absl::Duration> next_return_;  // of a slot, as the timer knows
  uint64_t next_watch_ = 1;

  // Last, because their threads use all of the above.
  std::unique_ptr<ExitWatcher> watcher_;
  std::unique_ptr<WakeupTimer> timer_;  // only where there are pools
};

}  // namespace shirabe::trial
