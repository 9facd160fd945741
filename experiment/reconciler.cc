#include "experiment/reconciler.h"

#include "base/log.h"
#include "experiment/checkpoints.h"
#include "experiment/pass.h"

namespace shirabe::experiment {

void Reconciler::Own(const ExperimentKey& key, int64_t epoch) {
  std::lock_guard lock(mutex_);
  owned_.erase(key);
  owned_[key].epoch = epoch;
}

void Reconciler::Disown(const ExperimentKey& key) {
  std::lock_guard lock(mutex_);
  owned_.erase(key);
}

void Reconciler::Suspend(const ExperimentKey& key, bool now) {
  std::lock_guard lock(mutex_);
  const auto found = owned_.find(key);
  if (found == owned_.end()) return;
  found->second.stop_now = now;
  found->second.suspended = true;
}

StatusOr<ReconcileResult> Reconciler::Reconcile(const ExperimentKey& key) {
  Owned* owned = nullptr;
  {
    std::lock_guard lock(mutex_);
    const auto found = owned_.find(key);
    if (found == owned_.end()) {
      return absl::FailedPreconditionError("experiment " + ToString(key) + " is not owned here");
    }
    owned = &found->second;  // stays where it is until Disown, which waits for this call
  }
  if (owned->state == nullptr) RETURN_IF_ERROR(Load(key, *owned));
  Pass pass(options_, *owned->state, {.suspended = owned->suspended, .stop_now = owned->stop_now});
  auto result = pass.Run();
  // What was about to be written is not known to be there: begin again from the store.
  if (!result.ok() || (result->ended && owned->state->batch().delete_experiment)) {
    owned->state = nullptr;
  }
  return result;
}

Status Reconciler::Load(const ExperimentKey& key, Owned& owned) {
  ASSIGN_OR_RETURN(owned.state, State::Load(*options_.store, key, owned.epoch));
  if (owned.adopted) return absl::OkStatus();
  std::vector<v1::Attempt> open;
  for (const auto& [number, live] : owned.state->live()) {
    if (live.open) open.push_back(live.open->record);
  }
  if (!open.empty()) options_.executor->Adopt(open);
  // A crash may have come between the record and the deed.
  for (const auto& [number, live] : owned.state->live()) {
    for (const auto& [checkpoint, revision] : live.checkpoints) {
      if (checkpoint.gone() == kPruned) options_.executor->Prune(checkpoint);
    }
  }
  owned.adopted = true;
  return absl::OkStatus();
}

}  // namespace shirabe::experiment
