#include "experiment/reconciler.h"

#include "base/log.h"
#include "db/commit_rules.h"
#include "experiment/checkpoint_policy.h"
#include "experiment/reconcile_pass.h"

namespace shirabe::experiment {

Reconciler::Reconciler(ReconcilerOptions options)
    : options_(std::move(options)), asked_(options_.clock), ask_and_tell_options_(options_) {
  ask_and_tell_options_.executor = &asked_;
}

const ReconcilerOptions& Reconciler::OptionsFor(const v1::Experiment& experiment) const {
  return experiment.spec().shirabe().ask_and_tell() ? ask_and_tell_options_ : options_;
}

void Reconciler::Own(const ExperimentKey& key, int64_t epoch) {
  std::lock_guard lock(mutex_);
  owned_.erase(key);
  owned_[key].epoch = epoch;
}

void Reconciler::ReleaseOwnership(const ExperimentKey& key) {
  std::lock_guard lock(mutex_);
  const auto found = owned_.find(key);
  if (found == owned_.end()) return;
  ReportQueue& inbox = *found->second.inbox;
  inbox.Answer(inbox.Drain(), absl::UnavailableError("the experiment was given back"));
  owned_.erase(found);
  if (options_.room != nullptr) options_.room->Leave(key);
}

void Reconciler::NotifyIntent(const ExperimentKey& key) {
  std::lock_guard lock(mutex_);
  const auto found = owned_.find(key);
  if (found != owned_.end()) found->second.check_intents = true;
}

void Reconciler::Recheck(const ExperimentKey& key) {
  std::lock_guard lock(mutex_);
  const auto found = owned_.find(key);
  if (found != owned_.end()) found->second.recheck = true;
}

ReportQueuePtr Reconciler::ReportQueueOf(const ExperimentKey& key) {
  std::lock_guard lock(mutex_);
  const auto found = owned_.find(key);
  return found == owned_.end() ? nullptr : found->second.inbox;
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
      return db::LeaseLostError("experiment " + ToString(key) + " is not owned here");
    }
    owned = &found->second;  // stays where it is until Disown, which waits for this call
  }
  if (owned->state == nullptr) RETURN_IF_ERROR(Load(key, *owned));
  const std::vector<PendingReportPtr> pending_reports = owned->inbox->Drain();
  auto result = RunPass(*owned, pending_reports);
  owned->inbox->Answer(pending_reports, result.status());
  if (result.ok() && !owned->inbox->empty()) result->requeue_after = absl::ZeroDuration();
  // What was about to be written is not known to be there: begin again from the store.
  if (!result.ok() || (result->ended && owned->state->batch().delete_experiment)) {
    owned->state = nullptr;
  }
  return result;
}

StatusOr<ReconcileResult> Reconciler::RunPass(
    Owned& owned, const std::vector<PendingReportPtr>& pending_reports) {
  Pass pass(OptionsFor(owned.state->experiment()), *owned.state,
            {.suspended = owned.suspended,
             .stop_now = owned.stop_now,
             .check_intents = owned.check_intents.exchange(false),
             .recheck = owned.recheck.exchange(false),
             .pending_reports = pending_reports});
  return pass.Run();
}

Status Reconciler::Load(const ExperimentKey& key, Owned& owned) {
  ASSIGN_OR_RETURN(owned.state, State::Load(*options_.store, key, owned.epoch));
  if (owned.adopted) return absl::OkStatus();
  trial::Executor* const executor = OptionsFor(owned.state->experiment()).executor;
  executor->UseVolume(key, owned.state->experiment().spec());
  std::vector<v1::Attempt> open;
  for (const auto& [number, live] : owned.state->live()) {
    if (live.open) open.push_back(live.open->record);
  }
  if (!open.empty()) executor->Adopt(open);
  // A crash may have come between the record and the deed.
  for (const auto& [number, live] : owned.state->live()) {
    for (const auto& [checkpoint, revision] : live.checkpoints) {
      if (checkpoint.gone() == kPruned) executor->Prune(checkpoint);
    }
  }
  owned.adopted = true;
  return absl::OkStatus();
}

}  // namespace shirabe::experiment
