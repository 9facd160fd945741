#include "view/result_front.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/printable.h"
#include "base/text/number.h"
#include "client/records/enum_words.h"
#include "experiment/spec/trial_result.h"
#include "trial/trial_template.h"

namespace shirabe::view {
namespace {

using Losses = std::vector<double>;

StatusOr<size_t> PlaceOf(const std::string& flag, const std::string& metric,
                         const std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), metric);
  if (found != names.end()) return found - names.begin();
  return absl::InvalidArgumentError(absl::StrCat(flag, ": ", Quoted(metric),
                                                 " is no objective of this experiment; it has ",
                                                 absl::StrJoin(names, ", ")));
}

StatusOr<Losses> ReadWeights(const std::vector<std::string>& texts,
                             const std::vector<std::string>& names) {
  Losses weights(names.size(), 0);
  for (const std::string& text : texts) {
    const size_t equals = text.rfind('=');
    const auto weight =
        equals == std::string::npos ? std::nullopt : ParseNumber(text.substr(equals + 1));
    if (!weight || *weight <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--weights: ", Quoted(text), " is not METRIC=WEIGHT with a weight above 0"));
    }
    ASSIGN_OR_RETURN(const size_t place, PlaceOf("--weights", text.substr(0, equals), names));
    weights[place] = *weight;
  }
  return weights;
}

// Each loss as a part of its range over the front.
std::vector<Losses> Normalized(std::vector<Losses> losses) {
  for (size_t k = 0; k < losses[0].size(); ++k) {
    double least = losses[0][k], most = losses[0][k];
    for (const Losses& one : losses) {
      least = std::min(least, one[k]);
      most = std::max(most, one[k]);
    }
    for (Losses& one : losses) one[k] = most > least ? (one[k] - least) / (most - least) : 0;
  }
  return losses;
}

size_t LeastWeighted(std::vector<Losses> losses, const Losses& weights) {
  losses = Normalized(std::move(losses));
  const auto total = [&](const Losses& one) {
    double sum = 0;
    for (size_t k = 0; k < one.size(); ++k) sum += weights[k] * one[k];
    return sum;
  };
  const auto best =
      std::min_element(losses.begin(), losses.end(),
                       [&](const Losses& a, const Losses& b) { return total(a) < total(b); });
  return best - losses.begin();
}

StatusOr<size_t> FirstInOrder(const std::vector<Losses>& losses,
                              const std::vector<std::string>& order,
                              const std::vector<std::string>& names) {
  std::vector<size_t> places;
  for (const std::string& metric : order) {
    ASSIGN_OR_RETURN(const size_t place, PlaceOf("--order", metric, names));
    places.push_back(place);
  }
  const auto best =
      std::min_element(losses.begin(), losses.end(), [&](const Losses& a, const Losses& b) {
        for (const size_t place : places) {
          if (a[place] != b[place]) return a[place] < b[place];
        }
        return false;
      });
  return best - losses.begin();
}

std::optional<double> CountedOf(const v1::ExperimentSpec& spec, const v1::Trial& trial,
                                const std::string& metric) {
  return experiment::CountedValue(spec, trial.observation(), metric);
}

}  // namespace

bool HasFront(const v1::Experiment& experiment) {
  return experiment::HasSeveralObjectives(experiment.spec());
}

std::vector<std::string> ObjectiveNames(const v1::ExperimentSpec& spec) {
  std::vector<std::string> names = {spec.objective().objective_metric_name()};
  for (const v1::AdditionalObjective& objective : spec.shirabe().additional_objectives()) {
    names.push_back(objective.metric_name());
  }
  return names;
}

std::string FrontTable(const v1::Experiment& experiment, bool with_header, int most) {
  const v1::ResultFront& front = experiment.status().shirabe().front();
  Cells header = {"TRIAL"};
  for (std::string& name : ObjectiveNames(experiment.spec())) header.push_back(std::move(name));
  for (const auto& parameter : experiment.spec().parameters()) header.push_back(parameter.name());
  Table table(std::move(header));
  const int shown = std::min(most, front.trials_size());
  for (int i = 0; i < shown; ++i) {
    const v1::FrontTrial& trial = front.trials(i);
    Cells cells = {trial.trial_name()};
    for (const double value : trial.values()) cells.push_back(client::ShortNumber(value));
    for (const v1::Assignment& assignment : trial.parameter_assignments()) {
      cells.push_back(trial::FormatAssignment(assignment));
    }
    table.Add(std::move(cells));
  }
  std::string text = table.Render(with_header);
  if (front.size() > shown) {
    absl::StrAppend(&text, "… and ", front.size() - shown, " more on the front\n");
  }
  return text;
}

std::string FrontLine(const v1::Experiment& experiment) {
  const v1::ResultFront& front = experiment.status().shirabe().front();
  if (front.size() == 0) return "";
  std::string text = absl::StrCat(front.size(), front.size() == 1 ? " trial" : " trials");
  if (!front.has_hypervolume()) return text;
  const std::vector<std::string> names = ObjectiveNames(experiment.spec());
  std::vector<std::string> reference;
  for (int i = 0; i < front.reference_size(); ++i) {
    reference.push_back(names[i] + " " + client::ShortNumber(front.reference(i)));
  }
  return absl::StrCat(text, ", hypervolume ", client::ShortNumber(front.hypervolume()),
                      " measured from ", absl::StrJoin(reference, ", "));
}

StatusOr<v1::Experiment> WithChosen(v1::Experiment experiment, const FrontChoice& choice) {
  if (!choice.given()) return experiment;
  const char* flag = choice.weights.empty() ? "--order" : "--weights";
  if (!HasFront(experiment)) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": the experiment has one objective, ",
                     experiment.spec().objective().objective_metric_name(), ": leave it out"));
  }
  v1::ResultFront& front = *experiment.mutable_status()->mutable_shirabe()->mutable_front();
  const std::vector<std::string> names = ObjectiveNames(experiment.spec());
  std::vector<Losses> losses;
  for (const v1::FrontTrial& trial : front.trials()) {
    losses.push_back(experiment::LossesOf(experiment.spec(), trial.values()));
  }
  size_t best = 0;
  if (!choice.weights.empty()) {
    ASSIGN_OR_RETURN(const Losses weights, ReadWeights(choice.weights, names));
    if (!losses.empty()) best = LeastWeighted(std::move(losses), weights);
  } else {
    ASSIGN_OR_RETURN(best, FirstInOrder(losses, choice.order, names));
  }
  if (front.trials_size() == 0) return experiment;  // it has no best trial yet
  const v1::FrontTrial chosen = front.trials(static_cast<int>(best));
  v1::OptimalTrial& optimal = *experiment.mutable_status()->mutable_current_optimal_trial();
  optimal.Clear();
  optimal.set_best_trial_name(chosen.trial_name());
  optimal.set_number(chosen.number());
  optimal.set_objective(chosen.values(0));
  *optimal.mutable_parameter_assignments() = chosen.parameter_assignments();
  *front.mutable_trials(0) = chosen;
  front.mutable_trials()->DeleteSubrange(1, front.trials_size() - 1);
  front.set_size(1);
  front.clear_hypervolume();
  return experiment;
}

std::string ConstraintWords(const v1::ResultConstraint& constraint) {
  const std::string min = client::ShortNumber(constraint.min());
  const std::string max = client::ShortNumber(constraint.max());
  if (constraint.has_min() && constraint.has_max()) {
    return absl::StrCat(constraint.metric_name(), " ", min, " .. ", max);
  }
  return absl::StrCat(constraint.metric_name(), constraint.has_min() ? " ≥ " + min : " ≤ " + max);
}

std::string BrokenWords(const v1::ExperimentSpec& spec, const v1::Trial& trial) {
  std::vector<std::string> broken;
  for (const v1::ResultConstraint& constraint : spec.shirabe().constraints()) {
    const auto value = CountedOf(spec, trial, constraint.metric_name());
    const double by = value ? experiment::BrokenBy(constraint, *value) : 0;
    if (by > 0) broken.push_back(constraint.metric_name() + " by " + client::ShortNumber(by));
  }
  return absl::StrJoin(broken, ", ");
}

std::string ConstraintsTable(const v1::ExperimentSpec& spec, const v1::Trial& trial) {
  if (spec.shirabe().constraints_size() == 0) return "";
  Table table({"CONSTRAINT", "VALUE", "KEPT"});
  for (const v1::ResultConstraint& constraint : spec.shirabe().constraints()) {
    const auto value = CountedOf(spec, trial, constraint.metric_name());
    const double by = value ? experiment::BrokenBy(constraint, *value) : 0;
    table.Add({ConstraintWords(constraint), value ? client::ShortNumber(*value) : "",
               !value    ? ""
               : by == 0 ? "yes"
                         : "no, broken by " + client::ShortNumber(by)});
  }
  return table.Render();
}

}  // namespace shirabe::view
