#include "experiment/state/pass_delta.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "base/status.h"
#include "base/timestamp.h"
#include "experiment/spec/trial_result.h"
#include "experiment/state/budget.h"
#include "experiment/state/stop_rules.h"

namespace shirabe::experiment {
namespace {

bool IsSameCheckpoint(const v1::Checkpoint& a, const v1::Checkpoint& b) {
  return a.trial() == b.trial() && a.attempt() == b.attempt() && a.step() == b.step();
}

}  // namespace

void Effects::Append(Effects later) {
  absl::c_move(later.adopt, std::back_inserter(adopt));
  absl::c_move(later.forget_lost, std::back_inserter(forget_lost));
  absl::c_move(later.stop_strays, std::back_inserter(stop_strays));
  absl::c_move(later.trims, std::back_inserter(trims));
  absl::c_move(later.forget, std::back_inserter(forget));
  absl::c_move(later.prune, std::back_inserter(prune));
  Requeue(later.requeue_after);
}

v1::Trial& TrialDelta::mutable_trial() {
  if (!trial_) trial_ = base_.trial.record;
  return *trial_;
}

v1::Attempt& TrialDelta::mutable_attempt() {
  CHECK(is_open());
  if (!attempt_) attempt_ = base_.open->record;
  attempt_changed_ = true;
  return *attempt_;
}

void TrialDelta::KeepCursor(v1::CollectorCursor cursor) {
  const bool changed = attempt_changed_;
  *mutable_attempt().mutable_cursor() = std::move(cursor);
  attempt_changed_ = changed;
}

void TrialDelta::Open(v1::Attempt attempt) {
  CHECK(!is_open());  // I2: one attempt of a trial at a time
  attempt_ = std::move(attempt);
  opened_ = attempt_changed_ = true;
  memory_ = AttemptMemory{};
  memory_.Enter(AttemptPhase::kRecorded);
}

std::vector<v1::Checkpoint> TrialDelta::Checkpoints() const {
  std::vector<v1::Checkpoint> all = RecordsOf(base_.checkpoints);
  for (const v1::Checkpoint& changed : checkpoints_) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const v1::Checkpoint& old) {
      return IsSameCheckpoint(old, changed);
    });
    if (found == all.end()) {
      all.push_back(changed);
    } else {
      *found = changed;
    }
  }
  return all;
}

const v1::Checkpoint* TrialDelta::FindCheckpoint(const v1::Checkpoint& like) const {
  for (auto it = checkpoints_.rbegin(); it != checkpoints_.rend(); ++it) {
    if (IsSameCheckpoint(*it, like)) return &*it;
  }
  for (const auto& [checkpoint, revision] : base_.checkpoints) {
    if (IsSameCheckpoint(checkpoint, like)) return &checkpoint;
  }
  return nullptr;
}

const ReportedPoints& TrialDelta::LoadReportedPoints(ReportedPoints points) {
  return loaded_reported_.emplace(std::move(points));
}

void TrialDelta::RedrawCurves(std::vector<suggestion::Curve> curves) {
  curves_ = std::move(curves);
  curve_points_.clear();
}

v1::Experiment& Delta::mutable_experiment() {
  if (!experiment_) experiment_ = base_.experiment();
  return *experiment_;
}

ExperimentMemory& Delta::mutable_memory() {
  if (!memory_) memory_ = base_.memory();
  return *memory_;
}

TrialDelta& Delta::Edit(const ActiveTrial& trial) {
  return trials_.try_emplace(trial.trial.record.number(), trial).first->second;
}

int64_t Delta::NextNumber() const {
  return base_.history().size() + 1 + static_cast<int64_t>(added_.size());
}

void Delta::FinishIntent(int64_t id) {
  if (id != 0) intents_done_.push_back(id);
}

void Delta::AddEvent(bool warning, const std::string& reason, const std::string& message) {
  v1::Event event;
  event.set_warning(warning);
  event.set_reason(reason);
  event.set_message(message);
  AddEvent(std::move(event));
}

void Delta::AddEvent(const v1::Trial& about, bool warning, const std::string& reason,
                     const std::string& message) {
  v1::Event event;
  event.set_trial(about.number());
  event.set_attempt(about.attempts());
  event.set_warning(warning);
  event.set_reason(reason);
  event.set_message(message);
  AddEvent(std::move(event));
}

void Delta::AddEvent(v1::Event event) {
  event.set_namespace_(base_.key().ns);
  event.set_experiment(base_.key().name);
  *event.mutable_time() = ToProto(now_);
  events_.push_back(std::move(event));
}

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
