// Attempts as processes of this machine. Each has a supervisor (trial/supervisor) that outlives us;
// what is true of it stands in the records it leaves, and the table (process_table.h) is only what
// we remember of them. So a start, the end of a process and a restart of ours all come down to the
// same two steps: something is found (supervisor_records.h), and the table writes it down.
//
// With a nodes file it also plays the platform: attempts get slots of pools, at a price, and
// machines are taken away (preemption_player.h). Files are read and processes started under no
// lock, and on_change is called so too.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "trial/checkpoint/checkpoint_committer.h"
#include "trial/executor.h"
#include "trial/local/attempt_endpoints.h"
#include "trial/local/code_packages.h"
#include "trial/local/launcher.h"
#include "trial/local/pidfd.h"
#include "trial/local/preemption_player.h"
#include "trial/local/process_table.h"
#include "trial/local/supervisor_records.h"

namespace shirabe::trial {

class ProcessExecutor : public Executor {
 public:
  explicit ProcessExecutor(const ExecutorOptions& options);
  static StatusOr<std::unique_ptr<Executor>> Create(const ExecutorOptions& options);

  Status Start(const AttemptRequest& request) override;
  Status Stop(const AttemptKey& key, v1::Cause why, absl::Duration grace) override;
  void Adopt(const std::vector<v1::Attempt>& open) override;
  void StopStrays(const FindEnded& ended) override;
  std::vector<AttemptStatus> Observe(const ExperimentKey& experiment) override;
  void Forget(const AttemptKey& key) override;
  Status RemoveFiles(const ExperimentKey& experiment, int64_t trial) override;
  AttemptPaths Paths(const AttemptKey& key) const override { return layout_.Paths(key); }
  PlacementQuote QuotePlacement(const ExperimentKey& experiment,
                                const google::protobuf::Struct& trial_spec,
                                const PlacementRequest& placement_request) override;
  void Prune(const v1::Checkpoint& checkpoint) override;
  // Of the store that its checkpoints are copied to, and its code comes from; there is no other
  // volume here.
  void UseVolume(const ExperimentKey& experiment, const v1::ExperimentSpec& spec) override;
  void CleanVolume(const ExperimentKey& experiment, const v1::ExperimentSpec& spec) override;

 private:
  StatusOr<AttemptProcess> Begin(const AttemptRequest& request, const std::string& id);
  void FinishStart(const AttemptKey& key, AttemptProcess found);
  void EndCheckpoints(const AttemptKey& key, const AttemptProcess& found);
  void AdoptOne(const v1::Attempt& attempt);
  void ResumeStop(const AttemptKey& key, const AttemptProcess& found);
  void OnExits(const std::vector<uint64_t>& watches);
  std::optional<ExperimentKey> CheckSupervisor(uint64_t watch);
  void Announce(const std::set<ExperimentKey>& experiments);

  const ExecutorOptions options_;
  Launcher launcher_;
  const FileLayout& layout_;
  AttemptEndpoints endpoints_;
  CodePackages code_;
  CheckpointCommitter committer_;
  ProcessTable attempts_;
  PreemptionPlayer preemptions_;
  std::unique_ptr<ExitWatcher> watcher_;  // last: its thread uses all of the above
};

}  // namespace shirabe::trial
