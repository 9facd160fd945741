#include "experiment/state/experiment_state.h"

#include <iterator>

#include "base/text/number.h"
#include "experiment/state/algorithm_workers.h"
#include "experiment/state/notification.h"

namespace shirabe::experiment {
namespace {

// Rows, checkpoints and ends come only with a change of their attempt. One that is new in this
// batch has no predecessor who could have lost it.
void AddFences(db::Batch& batch) {
  for (const db::Write<v1::Attempt>& write : batch.attempts) {
    if (write.expected == 0) continue;
    batch.fences.push_back({.trial = write.record.trial(),
                            .attempt = write.record.number(),
                            .token = write.record.token()});
  }
}

void AddChanges(const ActiveTrial& active, db::Batch& batch) {
  if (active.trial_changed) batch.trials.push_back({active.trial.record, active.trial.revision});
  if (active.open_changed) batch.attempts.push_back({active.open->record, active.open->revision});
  for (const size_t i : active.checkpoints_changed) {
    batch.checkpoints.push_back({active.checkpoints[i].record, active.checkpoints[i].revision});
  }
}

void SetCommitted(int64_t revision, ActiveTrial& active) {
  if (active.trial_changed) active.trial.revision = revision;
  if (active.open_changed) active.open->revision = revision;
  for (const size_t i : active.checkpoints_changed) active.checkpoints[i].revision = revision;
  active.checkpoints_changed.clear();
  active.trial_changed = active.open_changed = false;
}

}  // namespace

uint64_t SeedOf(const v1::Experiment& experiment) {
  for (const v1::Setting& setting : experiment.spec().algorithm().algorithm_settings()) {
    if (setting.name() != "random_state") continue;
    if (const auto seed = ParseNumber(setting.value())) return static_cast<uint64_t>(*seed);
  }
  if (experiment.spec().shirabe().has_seed()) {
    return static_cast<uint64_t>(experiment.spec().shirabe().seed());
  }
  const v1::ObjectMeta& metadata = experiment.metadata();
  return Fingerprint(ToString(ExperimentKey{metadata.namespace_(), metadata.name()}));
}

void Recount(v1::ExperimentStatus& s, v1::TrialPhase phase, int64_t by) {
  const auto next = [by](int64_t count) { return by == 0 ? 0 : count + by; };
  switch (phase) {
    case v1::TRIAL_RUNNING: return s.set_trials_running(next(s.trials_running()));
    case v1::TRIAL_SUCCEEDED: return s.set_trials_succeeded(next(s.trials_succeeded()));
    case v1::TRIAL_KILLED: return s.set_trials_killed(next(s.trials_killed()));
    case v1::TRIAL_FAILED: return s.set_trials_failed(next(s.trials_failed()));
    case v1::TRIAL_EARLY_STOPPED: return s.set_trials_early_stopped(next(s.trials_early_stopped()));
    case v1::TRIAL_METRICS_UNAVAILABLE:
      return s.set_trial_metrics_unavailable(next(s.trial_metrics_unavailable()));
    default: return s.set_trials_pending(next(s.trials_pending()));
  }
}

AlgorithmCalls::~AlgorithmCalls() {
  if (proposal != nullptr) proposal->Cancel();
  CancelDeliveries();
}

void AlgorithmCalls::CancelDeliveries() {
  for (auto& [endpoint, delivery] : deliveries) {
    if (delivery.ticket != nullptr) delivery.ticket->Cancel();
  }
  deliveries.clear();
}

void AlgorithmCalls::Drop() {
  if (proposal != nullptr) proposal->Cancel();
  CancelDeliveries();
  proposal = nullptr;
  stop = nullptr;
  recommendation = nullptr;
  regret = nullptr;
}

void AlgorithmCalls::ReleaseAnswered() {
  if (proposal != nullptr && proposal->Wait(absl::ZeroDuration())) proposal->history = nullptr;
  if (recommendation != nullptr && recommendation->Wait(absl::ZeroDuration())) {
    recommendation->history = nullptr;
  }
  if (regret != nullptr && regret->Wait(absl::ZeroDuration())) regret->history = nullptr;
  if (stop != nullptr && stop->Wait(absl::ZeroDuration())) {
    stop->history = nullptr;
    stop->curves = nullptr;
  }
}

bool ExperimentState::Changed() const {
  const db::Batch& batch = data_.batch;
  if (data_.experiment_changed || !batch.attempts.empty() || !batch.observations.empty() ||
      !batch.trials.empty() || !batch.events.empty() || !batch.intents_done.empty()) {
    return true;
  }
  for (const auto& [number, active] : data_.active) {
    if (active.trial_changed || active.open_changed || !active.checkpoints_changed.empty()) {
      return true;
    }
  }
  return false;
}

Status ExperimentState::Commit(db::Store& store) {
  db::Batch& batch = data_.batch;
  batch.epoch = data_.epoch;
  for (const auto& [number, active] : data_.active) AddChanges(active, batch);
  AddFences(batch);
  if (data_.experiment_changed) batch.put = {data_.experiment.record, data_.experiment.revision};
  ASSIGN_OR_RETURN(const int64_t revision, store.Commit(batch));
  if (data_.experiment_changed) data_.experiment.revision = revision;
  data_.experiment_changed = false;
  for (auto it = data_.active.begin(); it != data_.active.end();) {
    SetCommitted(revision, it->second);
    const bool over = IsTerminal(it->second.trial.record.phase());
    it = over ? data_.active.erase(it) : std::next(it);
  }
  DropBatch();
  return absl::OkStatus();
}

void ExperimentState::DropBatch() {
  data_.batch = db::Batch{};
  data_.batch.experiment = data_.key;
}

Status ExperimentState::CommitDelete(db::Store& store) {
  DropBatch();
  data_.batch.epoch = data_.epoch;
  data_.batch.delete_experiment = true;
  return store.Commit(data_.batch).status();
}

}  // namespace shirabe::experiment
