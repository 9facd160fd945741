// How attempts of the executor `kubernetes` begin: their object is built, and made by a few
// threads, or found where an earlier process has made it. Thread-safe; calls block.
#pragma once

#include <string>

#include "base/status.h"
#include "base/task_pool.h"
#include "trial/attempt_status.h"
#include "trial/kubernetes/attempt_table.h"
#include "trial/kubernetes/attempt_watcher.h"
#include "trial/kubernetes/checkpoint_pruner.h"
#include "trial/kubernetes/cluster_context.h"
#include "trial/kubernetes/price_quote.h"
#include "trial/kubernetes/teardowns.h"
#include "trial/kubernetes/volume_cleaner.h"
#include "trial/pod/file_mirror.h"
#include "trial/pod/pod_build.h"
#include "trial/pod/pod_references.h"
#include "trial/pod/store_grants.h"

namespace shirabe::trial {

class AttemptStarter {
 public:
  // All of them outlive it.
  struct Parts {
    AttemptTable* attempts = nullptr;
    AttemptWatcher* watcher = nullptr;
    Teardowns* teardowns = nullptr;
    VolumeCleaner* cleaner = nullptr;
    CheckpointPruner* pruner = nullptr;
    PriceQuotes* quotes = nullptr;
    FileMirror* mirror = nullptr;
    const StoreGrants* grants = nullptr;
  };
  AttemptStarter(const ClusterContext* context, const Parts& parts);

  // See Executor::Start.
  Status Start(const AttemptRequest& request);
  // Takes up one that the store knows as open; its object is looked for.
  void Adopt(const v1::Attempt& record);

  // Drops what has not begun and waits for what has.
  void End() { threads_.End(); }

 private:
  StatusOr<AttemptObject> Prepare(const AttemptRequest& request, PodAttempt& attempt);
  Status SaveInputs(const AttemptRequest& request, const kube::Ref& ref);
  Status CheckReferences(const AttemptObject& built, const PodAttempt& attempt);
  StatusOr<PodAttempt> Make(const AttemptObject& built, PodAttempt attempt);
  void LoadState(PodAttempt& attempt) const;
  kube::Ref FindObject(const AttemptKey& key, const std::string& id) const;

  const ClusterContext& context_;
  const Parts parts_;
  ReferenceCheck references_;
  TaskPool threads_;
};

}  // namespace shirabe::trial
