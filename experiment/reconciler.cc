#include "experiment/reconciler.h"

#include <algorithm>

#include "base/log.h"
#include "db/commit_rules.h"
#include "experiment/pass_follow_up.h"
#include "experiment/reconcile_pass.h"
#include "experiment/state/checkpoint_policy.h"

namespace shirabe::experiment {

Reconciler::Reconciler(ReconcilerOptions options)
    : options_(std::move(options)), asked_(options_.clock), ask_and_tell_options_(options_) {
  ask_and_tell_options_.executor = &asked_;
}

const ReconcilerOptions& Reconciler::OptionsFor(const v1::Experiment& experiment) const {
  return experiment.spec().shirabe().ask_and_tell() ? ask_and_tell_options_ : options_;
}

void Reconciler::Own(const ExperimentKey& key, int64_t epoch) {
  const MutexLock lock(mutex_);
  owned_.erase(key);
  owned_[key].epoch = epoch;
}

void Reconciler::ReleaseOwnership(const ExperimentKey& key) {
  const MutexLock lock(mutex_);
  const auto found = owned_.find(key);
  if (found == owned_.end()) return;
  ReportQueue& reports = *found->second.reports;
  reports.Answer(reports.Drain(), absl::UnavailableError("the experiment was given back"));
  owned_.erase(found);
  if (options_.namespace_quota != nullptr) options_.namespace_quota->Leave(key);
}

void Reconciler::NotifyIntent(const ExperimentKey& key) {
  const MutexLock lock(mutex_);
  const auto found = owned_.find(key);
  if (found != owned_.end()) found->second.check_intents = true;
}

void Reconciler::Recheck(const ExperimentKey& key) {
  const MutexLock lock(mutex_);
  const auto found = owned_.find(key);
  if (found != owned_.end()) found->second.recheck = true;
}

ReportQueuePtr Reconciler::ReportQueueOf(const ExperimentKey& key) {
  const MutexLock lock(mutex_);
  const auto found = owned_.find(key);
  return found == owned_.end() ? nullptr : found->second.reports;
}

void Reconciler::Suspend(const ExperimentKey& key, bool now) {
  const MutexLock lock(mutex_);
  const auto found = owned_.find(key);
  if (found == owned_.end()) return;
  found->second.stop_now = now;
  found->second.suspended = true;
}

namespace {

// Of those who have asked this process, who has no trial yet.
std::vector<std::string> WaitingCallers(const ExperimentState& state) {
  std::vector<std::string> callers;
  for (const v1::Intent& ask : state.memory().asks) {
    if (ask.id() == 0) callers.push_back(ask.caller());
  }
  return callers;
}

// Those who only ask are told that they wait, also by a pass that has failed.
void AddAskers(const std::vector<PendingReportPtr>& pending_reports,
               std::vector<std::string>& askers) {
  for (const PendingReportPtr& pending_report : pending_reports) {
    const Report& report = pending_report->report;
    if (report.trial.number == 0 && std::ranges::count(askers, report.next_for) == 0) {
      askers.push_back(report.next_for);
    }
  }
}

}  // namespace

StatusOr<ReconcileResult> Reconciler::Reconcile(const ExperimentKey& key) {
  Owned* owned = nullptr;
  {
    const MutexLock lock(mutex_);
    const auto found = owned_.find(key);
    if (found == owned_.end()) {
      return db::LeaseLostError("experiment " + ToString(key) + " is not owned here");
    }
    owned = &found->second;  // stays where it is until Disown, which waits for this call
  }
  // A state that is thrown away takes with it who has asked, of which nothing is stored.
  const bool loads = owned->state == nullptr;
  if (loads) RETURN_IF_ERROR(Load(key, *owned));
  const std::vector<PendingReportPtr> pending_reports = owned->reports->Drain();
  auto result = RunPass(*owned, pending_reports, loads);
  if (result.ok()) {
    owned->askers = WaitingCallers(*owned->state);
  } else {
    AddAskers(pending_reports, owned->askers);
  }
  owned->reports->Answer(pending_reports, result.status());
  if (result.ok() && !owned->reports->empty()) result->requeue_after = absl::ZeroDuration();
  // What was about to be written is not known to be there: begin again from the store.
  if (!result.ok() || result->deleted) owned->state = nullptr;
  return result;
}

StatusOr<ReconcileResult> Reconciler::RunPass(Owned& owned,
                                              const std::vector<PendingReportPtr>& pending_reports,
                                              bool loaded) {
  Pass pass(OptionsFor(owned.state->experiment()), *owned.state,
            {.suspended = owned.suspended,
             .stop_now = owned.stop_now,
             .check_intents = owned.check_intents.exchange(false),
             .recheck = owned.recheck.exchange(false),
             .pending_reports = pending_reports,
             .askers = loaded ? owned.askers : std::vector<std::string>()});
  return pass.Run();
}

Status Reconciler::Load(const ExperimentKey& key, Owned& owned) {
  ASSIGN_OR_RETURN(owned.state, ExperimentState::Load(*options_.store, key, owned.epoch));
  if (owned.adopted) return absl::OkStatus();
  trial::Executor* const executor = OptionsFor(owned.state->experiment()).executor;
  executor->UseVolume(key, owned.state->experiment().spec());
  std::vector<v1::Attempt> open;
  for (const auto& [number, active] : owned.state->active()) {
    if (active.open) open.push_back(active.open->record);
  }
  if (const auto follow_up = OpenFollowUp(*owned.state)) open.push_back(follow_up->open->record);
  if (!open.empty()) executor->Adopt(open);
  // A crash may have come between the record and what it says.
  for (const auto& [number, active] : owned.state->active()) {
    for (const auto& [checkpoint, revision] : active.checkpoints) {
      if (checkpoint.gone() == kPruned) executor->Prune(checkpoint);
    }
  }
  owned.adopted = true;
  return absl::OkStatus();
}

}  // namespace shirabe::experiment
