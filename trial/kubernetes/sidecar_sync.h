// What the executor `kubernetes` and the sidecars of its attempts say to each other: files and the
// state of a pod come in, requests to its program go out. Thread-safe; calls block.
#pragma once

#include <string>

#include "base/names.h"
#include "base/status.h"
#include "proto/shirabe/v1/pod.pb.h"
#include "trial/kubernetes/attempt_table.h"
#include "trial/kubernetes/attempt_watcher.h"
#include "trial/kubernetes/checkpoint_pruner.h"
#include "trial/kubernetes/cluster_context.h"
#include "trial/kubernetes/pod_token_reviewer.h"
#include "trial/pod/file_mirror.h"
#include "trial/pod/store_grants.h"

namespace shirabe::trial {

class SidecarSync {
 public:
  // All of them outlive it.
  struct Parts {
    AttemptTable* attempts = nullptr;
    AttemptWatcher* watcher = nullptr;
    CheckpointPruner* pruner = nullptr;
    FileMirror* mirror = nullptr;
    const StoreGrants* grants = nullptr;
  };
  SidecarSync(const ClusterContext* context, const Parts& parts)
      : context_(*context),
        parts_(parts),
        token_reviewer_(context->client, context->clock, context->pods->only_namespace) {}

  // See Executor::Sync.
  StatusOr<v1::SyncReply> Sync(const v1::SyncRequest& request, const std::string& bearer);
  // See Executor::Grant. It is no sign of a sidecar's life: init containers ask as well.
  StatusOr<v1::GrantReply> Grant(const v1::GrantRequest& request, const std::string& bearer);

 private:
  StatusOr<std::string> Identify(const AttemptKey& key, const std::string& token,
                                 const std::string& bearer);
  bool IsItsPod(const PodAttempt& attempt, const std::string& uid) const;
  bool IsSecondary(const PodAttempt& attempt, const std::string& uid) const;
  StatusOr<FileMirror::ApplyResult> TakeFiles(const AttemptKey& key,
                                              const v1::SyncRequest& request);
  void TellKueue(const AttemptKey& key, const kube::Ref& saved);
  Status Save(const AttemptKey& key, const v1::PodState& state);

  const ClusterContext& context_;
  const Parts parts_;
  PodTokenReviewer token_reviewer_;
};

}  // namespace shirabe::trial
