#include "experiment/state/result_front.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/names.h"
#include "experiment/spec/objective_value.h"
#include "experiment/spec/trial_result.h"
#include "suggestion/pareto/hypervolume.h"

namespace shirabe::experiment {
namespace {

using suggestion::History;
using suggestion::Losses;
using suggestion::TrialState;
using suggestion::TrialSummary;

constexpr size_t kMostShown = 100;

Losses LossesOf(const TrialSummary& trial) {
  Losses losses = {trial.loss};
  losses.insert(losses.end(), trial.further_losses.begin(), trial.further_losses.end());
  return losses;
}

bool AsGood(const Losses& a, const Losses& b) {
  return std::equal(a.begin(), a.end(), b.begin(), [](double x, double y) { return x <= y; });
}

bool KeepsConstraints(const TrialSummary& trial) {
  return std::all_of(trial.margins.begin(), trial.margins.end(), [](double m) { return m >= 0; });
}

size_t MostMeasured(size_t objectives) {
  if (objectives <= 2) return 2000;
  if (objectives == 3) return 150;
  return objectives == 4 ? 50 : 20;
}

// Of objectives whose reference the specification gives, in place of the worst loss.
void SetReferences(const v1::ExperimentSpec& spec, Losses& reference) {
  if (spec.shirabe().has_objective_reference()) {
    reference[0] = LossOf(spec.objective(), spec.shirabe().objective_reference());
  }
  for (int i = 0; i < spec.shirabe().additional_objectives_size(); ++i) {
    const v1::AdditionalObjective& objective = spec.shirabe().additional_objectives(i);
    if (!objective.has_reference()) continue;
    reference[i + 1] = LossOfType(objective.type(), objective.reference());
  }
}

}  // namespace

// Of two objectives the front falls in the second as the first rises: the one before the new one
// has the least second loss of all that are as good in the first.
bool ResultFront::IsBeaten(const Losses& losses) const {
  if (losses.size() == 2) {
    const auto next = members_.upper_bound(losses);
    return next != members_.begin() && AsGood(std::prev(next)->first, losses);
  }
  return std::any_of(members_.begin(), members_.end(),
                     [&](const auto& member) { return AsGood(member.first, losses); });
}

void ResultFront::EraseBeatenBy(const Losses& losses) {
  if (losses.size() == 2) {
    auto next = members_.upper_bound(losses);
    while (next != members_.end() && AsGood(losses, next->first)) next = members_.erase(next);
    return;
  }
  std::erase_if(members_, [&](const auto& member) { return AsGood(losses, member.first); });
}

bool ResultFront::Add(const History& history, int64_t index) {
  const TrialSummary& trial = history.trial(index);
  if (trial.state != TrialState::kCompleted) return false;
  const Losses losses = LossesOf(trial);
  if (worst_.empty()) worst_ = losses;
  for (size_t k = 0; k < losses.size(); ++k) worst_[k] = std::max(worst_[k], losses[k]);
  if (!KeepsConstraints(trial)) return false;
  if (const auto equal = members_.find(losses); equal != members_.end()) {
    equal->second = std::min(equal->second, index);
    return false;
  }
  if (IsBeaten(losses)) return false;
  EraseBeatenBy(losses);
  if (losses.size() > 2 && members_.size() >= kMostMembers) {
    ++uncounted_;
  } else {
    members_.emplace(losses, index);
  }
  return true;
}

v1::ResultFront ResultFront::ToStatus(const v1::Experiment& experiment, const History& history,
                                      const OutsideTrials& outside) const {
  const v1::ExperimentSpec& spec = experiment.spec();
  const ExperimentKey key{experiment.metadata().namespace_(), experiment.metadata().name()};
  v1::ResultFront status;
  if (worst_.empty()) return status;
  using Member = std::pair<const Losses, int64_t>;
  std::vector<const Member*> ordered;
  for (const Member& member : members_) ordered.push_back(&member);
  std::stable_partition(ordered.begin(), ordered.end(),
                        [&](const Member* member) { return ReachesGoals(spec, member->first); });
  status.set_size(static_cast<int64_t>(members_.size()) + uncounted_);
  size_t bytes = 0;
  for (const Member* member : ordered) {
    if (static_cast<size_t>(status.trials_size()) == kMostShown) break;
    v1::FrontTrial& trial = *status.add_trials();
    trial.set_number(member->second + 1);
    trial.set_trial_name(TrialName({key, member->second + 1}));
    for (const double value : ValuesOf(spec, member->first)) trial.add_values(value);
    if (bytes > kMostParameterBytes) continue;
    auto& assignments = *trial.mutable_parameter_assignments();
    const auto own = outside.find(member->second);
    std::vector<v1::Assignment> values =
        own != outside.end() ? own->second : history.space().Decode(history.point(member->second));
    for (v1::Assignment& assignment : values) {
      bytes += assignment.ByteSizeLong();
      *assignments.Add() = std::move(assignment);
    }
    if (bytes > kMostParameterBytes) assignments.Clear();
  }
  Losses reference = worst_;
  SetReferences(spec, reference);
  for (const double value : ValuesOf(spec, reference)) status.add_reference(value);
  if (ordered.size() > MostMeasured(reference.size()) || uncounted_ > 0) return status;
  std::vector<Losses> losses;
  for (const Member* member : ordered) losses.push_back(member->first);
  const double volume = suggestion::Hypervolume(std::move(losses), reference);
  if (std::isfinite(volume)) status.set_hypervolume(volume);
  return status;
}

}  // namespace shirabe::experiment
