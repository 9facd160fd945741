// Attempts as Jobs of a cluster, or as whatever kind of object the trial's template is. The API
// server keeps what is true of them; a PodAttempt is only what we remember. The attempts stand in
// one table, and around it each concern has a class of its own: they begin (attempt_starter.h), are
// watched until they have ended (attempt_watcher.h, by the pure attempt_step.h), talk to us through
// their sidecars (sidecar_sync.h), and leave things that go: objects (teardowns.h, orphan_finder.h,
// experiment_removals.h), files on volumes (volume_cleaner.h) and single checkpoints
// (checkpoint_pruner.h). This class puts them together, and owns their threads.
//
// What takes long (calls of the API server, logs) is done by a few threads in the background. No
// lock is held meanwhile, nor while on_change is called.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/task_pool.h"
#include "trial/checkpoint/checkpoint_copier.h"
#include "trial/executor.h"
#include "trial/file_layout.h"
#include "trial/kubernetes/attempt_starter.h"
#include "trial/kubernetes/attempt_table.h"
#include "trial/kubernetes/attempt_watcher.h"
#include "trial/kubernetes/checkpoint_pruner.h"
#include "trial/kubernetes/cluster_context.h"
#include "trial/kubernetes/cluster_view.h"
#include "trial/kubernetes/experiment_removals.h"
#include "trial/kubernetes/price_quote.h"
#include "trial/kubernetes/sidecar_sync.h"
#include "trial/kubernetes/teardowns.h"
#include "trial/kubernetes/volume_cleaner.h"
#include "trial/pod/file_mirror.h"
#include "trial/pod/store_grants.h"
#include "trial/wakeup_timer.h"

namespace shirabe::trial {

class KubernetesExecutor : public Executor {
 public:
  explicit KubernetesExecutor(const ExecutorOptions& options, const PodTimeouts& timeouts = {});
  ~KubernetesExecutor() override;
  static StatusOr<std::unique_ptr<Executor>> Create(const ExecutorOptions& options);

  Status Start(const AttemptRequest& request) override;
  Status Stop(const AttemptKey& key, v1::Cause why, absl::Duration grace) override;
  void Adopt(const std::vector<v1::Attempt>& open) override;
  std::vector<AttemptStatus> Observe(const ExperimentKey& experiment) override;
  void Forget(const AttemptKey& key) override;
  Status RemoveFiles(const ExperimentKey& experiment, int64_t trial) override;
  void CleanVolume(const ExperimentKey& experiment, const v1::ExperimentSpec& spec) override;
  AttemptPaths Paths(const AttemptKey& key) const override;
  PlacementQuote QuotePlacement(const ExperimentKey& experiment,
                                const google::protobuf::Struct& trial_spec,
                                const PlacementRequest& placement_request) override;
  void Prune(const v1::Checkpoint& checkpoint) override;
  void UseVolume(const ExperimentKey& experiment, const v1::ExperimentSpec& spec) override;
  StatusOr<v1::SyncReply> Sync(const v1::SyncRequest& request,
                               const std::string& bearer = {}) override {
    return sidecars_.Sync(request, bearer);
  }
  StatusOr<v1::GrantReply> Grant(const v1::GrantRequest& request,
                                 const std::string& bearer) override {
    return sidecars_.Grant(request, bearer);
  }

  // Whether all there is in the cluster is known by now.
  bool Synced() const { return view_.Synced(); }

 private:
  ClusterContext MakeContext(const PodTimeouts& timeouts);
  ClusterView::Options ViewOptions();
  void OnMadePod(const std::string& ns, const std::string& owner, const Json* gone);
  std::optional<absl::Duration> OnTimer();

  const ExecutorOptions options_;
  const FileLayout layout_;
  const absl::Duration began_;
  const ClusterContext context_;
  // Of what pods copy to stores: what is not kept any more goes from here.
  CheckpointCopier copies_;
  StoreGrants grants_;
  ClusterView view_;
  FileMirror mirror_;
  AttemptTable attempts_;
  AttemptWatcher watcher_;
  Teardowns teardowns_;
  ExperimentRemovals removals_;
  VolumeCleaner cleaner_;
  CheckpointPruner pruner_;
  PriceQuotes quotes_;
  OrphanFinder orphans_;
  SidecarSync sidecars_;
  AttemptStarter starter_;
  // Their threads use all of the above, and so do those of view_ and starter_; see the destructor.
  TaskPool background_;
  WakeupTimer timer_;
};

}  // namespace shirabe::trial
