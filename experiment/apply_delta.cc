#include "experiment/apply_delta.h"

#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "base/status.h"
#include "experiment/conditions.h"
#include "experiment/spec/trial_result.h"
#include "experiment/state/cost_ledger.h"
#include "experiment/state/stop_rules.h"

namespace shirabe::experiment {

class DeltaApplier {
 public:
  explicit DeltaApplier(ExperimentState& state) : data_(state.data_) {}

  // Records first: counts, costs and the history are made from them.
  Effects Apply(Delta delta) {
    if (delta.experiment_) {
      data_.experiment.record = *std::move(delta.experiment_);
      data_.experiment_changed = true;
    }
    if (delta.memory_) data_.memory = *std::move(delta.memory_);
    for (auto& [number, trial] : delta.trials_) ApplyTrial(trial, data_.active.at(number));
    for (ActiveTrial& added : delta.added_) AddTrial(std::move(added));
    for (auto& write : delta.ended_) PutEndedTrial(std::move(write));
    if (delta.memo_) SetMemo(*delta.memo_);
    absl::c_move(delta.events_, std::back_inserter(data_.batch.events));
    absl::c_move(delta.intents_done_, std::back_inserter(data_.batch.intents_done));
    return std::move(delta.effects_);
  }

 private:
  v1::ExperimentStatus& MutableStatus() {
    data_.experiment_changed = true;
    return *data_.experiment.record.mutable_status();
  }

  void ApplyTrial(TrialDelta& delta, ActiveTrial& active) {
    active.memory = std::move(delta.memory_);
    ApplyRecords(delta, active);
    ApplyRows(delta, active.trial.record.number());
    if (delta.closed_) Close(active);
    if (delta.phase_) SetPhase(*delta.phase_, active);
  }

  static void ApplyRecords(TrialDelta& delta, ActiveTrial& active) {
    if (delta.trial_) {
      active.trial.record = *std::move(delta.trial_);
      active.trial_changed = true;
    }
    if (delta.opened_) {
      CHECK(!active.open.has_value());  // I2: one attempt of a trial at a time
      active.open.emplace();
      active.reported_points.reset();
    }
    if (delta.attempt_) active.open->record = *std::move(delta.attempt_);
    active.open_changed = active.open_changed || delta.attempt_changed_;
    if (delta.loaded_reported_) active.reported_points = *std::move(delta.loaded_reported_);
    if (!delta.reported_.empty()) active.reported_points->merge(delta.reported_);
    for (v1::Checkpoint& checkpoint : delta.checkpoints_) {
      active.PutCheckpoint(std::move(checkpoint));
    }
  }

  void ApplyRows(TrialDelta& delta, int64_t number) {
    absl::c_move(delta.observations_, std::back_inserter(data_.batch.observations));
    if (delta.supersede_) data_.batch.supersede.push_back(*std::move(delta.supersede_));
    for (size_t k = 0; delta.curves_ && k < delta.curves_->size(); ++k) {
      data_.history->MutableCurve(number, k) = std::move((*delta.curves_)[k]);
    }
    for (const TrialDelta::CurvePoint& point : delta.curve_points_) {
      data_.history->MutableCurve(number, point.objective).Append(point.step, point.loss);
    }
  }

  // The open attempt is over: its record goes into the batch as it is now, its cost is charged.
  void Close(ActiveTrial& active) {
    CHECK(active.open.has_value());
    active.memory.Enter(AttemptPhase::kNone);
    active.open->record.set_state(v1::ATTEMPT_CLOSED);
    Charge(active.open->record, active.trial.record, *MutableStatus().mutable_shirabe());
    active.trial_changed = true;
    data_.batch.attempts.push_back({std::move(active.open->record), active.open->revision});
    active.open.reset();
    active.open_changed = false;
  }

  void SetPhase(v1::TrialPhase phase, ActiveTrial& active) {
    v1::Trial& trial = active.trial.record;
    CHECK(!IsTerminal(trial.phase()));  // I1: a terminal phase is reached once
    if (trial.phase() == phase) return;
    Recount(MutableStatus(), trial.phase(), -1);
    Recount(MutableStatus(), phase, 1);
    trial.set_phase(phase);
    active.trial_changed = true;
    const bool on_front = data_.history->Update(trial);
    if (!IsTerminal(phase)) return;
    data_.memory.wait_for_change = false;
    const bool usable = phase == v1::TRIAL_SUCCEEDED || phase == v1::TRIAL_EARLY_STOPPED;
    const auto result = ResultOf(data_.experiment.record.spec(), trial);
    if (!usable || !result) return;
    OfferBest(trial, data_.experiment.record);
    if (!HasSeveralObjectives(data_.experiment.record.spec())) {
      return CountResult(trial.objective(), result->feasible(), data_.experiment.record);
    }
    CountFrontResult(on_front, data_.experiment.record);
    *MutableStatus().mutable_shirabe()->mutable_front() = data_.history->front().ToStatus(
        data_.experiment.record, data_.history->history(), data_.history->outside());
  }

  void AddTrial(ActiveTrial added) {
    const v1::Trial& trial = added.trial.record;
    data_.history->Add(trial);
    MutableStatus().set_trials(trial.number());
    Recount(MutableStatus(), trial.phase(), 1);
    added.trial_changed = true;
    data_.active.emplace(trial.number(), std::move(added));
  }

  void PutEndedTrial(db::Write<v1::Trial> write) {
    std::erase_if(data_.batch.trials, [&](const auto& other) {
      return other.record.number() == write.record.number();
    });
    data_.batch.trials.push_back(std::move(write));
  }

  void SetMemo(const std::string& memo) {
    if (memo == data_.history->history().memo()) return;
    data_.history->SetMemo(memo);
    MutableStatus().mutable_shirabe()->set_memo(memo);
  }

  ExperimentData& data_;
};

Effects Apply(Delta delta, ExperimentState& state) {
  return DeltaApplier(state).Apply(std::move(delta));
}

}  // namespace shirabe::experiment
