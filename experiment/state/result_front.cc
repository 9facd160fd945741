#include "experiment/state/result_front.h"

#include <algorithm>
#include <cmath>
#include <tuple>
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
    reference[i + 1] =
        objective.type() == v1::MAXIMIZE ? -objective.reference() : objective.reference();
  }
}

}  // namespace

bool ResultFront::Add(const History& history, int64_t index) {
  const TrialSummary& trial = history.trial(index);
  if (trial.state != TrialState::kCompleted) return false;
  const Losses losses = LossesOf(trial);
  if (worst_.empty()) worst_ = losses;
  for (size_t k = 0; k < losses.size(); ++k) worst_[k] = std::max(worst_[k], losses[k]);
  if (!KeepsConstraints(trial)) return false;
  const auto losses_of = [&](int64_t member) { return LossesOf(history.trial(member)); };
  const auto as_good = [&](int64_t member) { return AsGood(losses_of(member), losses); };
  if (std::any_of(members_.begin(), members_.end(), as_good)) return false;
  std::erase_if(members_, [&](int64_t member) { return AsGood(losses, losses_of(member)); });
  members_.insert(std::upper_bound(members_.begin(), members_.end(), index), index);
  return true;
}

v1::ResultFront ResultFront::ToStatus(const v1::Experiment& experiment,
                                      const History& history) const {
  const v1::ExperimentSpec& spec = experiment.spec();
  const ExperimentKey key{experiment.metadata().namespace_(), experiment.metadata().name()};
  v1::ResultFront status;
  if (worst_.empty()) return status;
  std::vector<Losses> losses;
  std::vector<std::tuple<bool, Losses, int64_t>> ordered;
  for (const int64_t member : members_) {
    losses.push_back(LossesOf(history.trial(member)));
    ordered.emplace_back(!ReachesGoals(spec, losses.back()), losses.back(), member);
  }
  std::sort(ordered.begin(), ordered.end());
  status.set_size(static_cast<int64_t>(members_.size()));
  for (const auto& [later, of_trial, member] : ordered) {
    if (static_cast<size_t>(status.trials_size()) == kMostShown) break;
    v1::FrontTrial& trial = *status.add_trials();
    trial.set_number(member + 1);
    trial.set_trial_name(TrialName({key, member + 1}));
    for (v1::Assignment& assignment : history.space().Decode(history.point(member))) {
      *trial.add_parameter_assignments() = std::move(assignment);
    }
    for (const double value : ValuesOf(spec, of_trial)) trial.add_values(value);
  }
  Losses reference = worst_;
  SetReferences(spec, reference);
  for (const double value : ValuesOf(spec, reference)) status.add_reference(value);
  if (losses.size() <= MostMeasured(reference.size())) {
    const double volume = suggestion::Hypervolume(std::move(losses), reference);
    if (std::isfinite(volume)) status.set_hypervolume(volume);
  }
  return status;
}

}  // namespace shirabe::experiment
