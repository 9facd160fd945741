#include "experiment/state/pass_delta.h"

#include <algorithm>
#include <iterator>

#include "absl/algorithm/container.h"
#include "base/status.h"
#include "base/timestamp.h"

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

}  // namespace shirabe::experiment
