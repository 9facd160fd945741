#include "view/result_front.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/names.h"
#include "base/printable.h"
#include "base/text/number.h"
#include "client/records/enum_words.h"
#include "experiment/spec/trial_result.h"
#include "suggestion/pareto/dominance.h"
#include "trial/trial_template.h"
#include "view/text_table.h"

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
    if (!weight || !std::isfinite(*weight) || *weight <= 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--weights: ", Quoted(text), " is not METRIC=WEIGHT with a finite weight above 0"));
    }
    ASSIGN_OR_RETURN(const size_t place, PlaceOf("--weights", text.substr(0, equals), names));
    weights[place] = *weight;
  }
  return weights;
}

// Each loss as a part of its range over the front. Halves: the range of large numbers may be none.
void Normalize(std::vector<FrontCandidate>& front) {
  for (size_t k = 0; k < front[0].losses.size(); ++k) {
    double least = front[0].losses[k] / 2, most = least;
    for (const FrontCandidate& one : front) {
      least = std::min(least, one.losses[k] / 2);
      most = std::max(most, one.losses[k] / 2);
    }
    for (FrontCandidate& one : front) {
      one.losses[k] = most > least ? (one.losses[k] / 2 - least) / (most - least) : 0;
    }
  }
}

int64_t LeastWeighted(std::vector<FrontCandidate> front, const Losses& weights) {
  Normalize(front);
  const double greatest = *std::max_element(weights.begin(), weights.end());
  const auto total = [&](const FrontCandidate& one) {
    double sum = 0;
    for (size_t k = 0; k < weights.size(); ++k) sum += weights[k] / greatest * one.losses[k];
    return sum;
  };
  return std::min_element(front.begin(), front.end(),
                          [&](const auto& a, const auto& b) { return total(a) < total(b); })
      ->number;
}

// The places of the metrics in the order of importance.
StatusOr<std::vector<size_t>> ReadOrder(const std::vector<std::string>& order,
                                        const std::vector<std::string>& names) {
  std::vector<size_t> places;
  for (const std::string& metric : order) {
    ASSIGN_OR_RETURN(const size_t place, PlaceOf("--order", metric, names));
    places.push_back(place);
  }
  return places;
}

int64_t FirstInOrder(const std::vector<FrontCandidate>& front, const std::vector<size_t>& places) {
  return std::min_element(front.begin(), front.end(),
                          [&](const FrontCandidate& a, const FrontCandidate& b) {
                            for (const size_t place : places) {
                              if (a.losses[place] != b.losses[place]) {
                                return a.losses[place] < b.losses[place];
                              }
                            }
                            return false;
                          })
      ->number;
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
  std::vector<std::string> header = {"TRIAL"};
  for (std::string& name : ObjectiveNames(experiment.spec())) header.push_back(std::move(name));
  for (const auto& parameter : experiment.spec().parameters()) header.push_back(parameter.name());
  const size_t columns = header.size();
  Table table(std::move(header));
  const int shown = std::min(most, front.trials_size());
  for (int i = 0; i < shown; ++i) {
    const v1::FrontTrial& trial = front.trials(i);
    std::vector<std::string> cells = {trial.trial_name()};
    for (const double value : trial.values()) cells.push_back(client::ShortNumber(value));
    for (const v1::Assignment& assignment : trial.parameter_assignments()) {
      cells.push_back(trial::FormatAssignment(assignment));
    }
    cells.resize(columns);  // of long parameters the status has the first trials' only
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
  const std::vector<std::string> names = ObjectiveNames(experiment.spec());
  std::vector<std::string> reference;
  for (int i = 0; i < front.reference_size(); ++i) {
    reference.push_back(names[i] + " " + client::ShortNumber(front.reference(i)));
  }
  std::string text = absl::StrCat(front.size(), front.size() == 1 ? " trial" : " trials");
  if (!front.has_hypervolume()) {
    return text + "; its hypervolume is not measured: so many trials would take too long, or a " +
           "value is too large (reference, objectiveReference)";
  }
  return absl::StrCat(text, ", hypervolume ", client::ShortNumber(front.hypervolume()),
                      " measured from ", absl::StrJoin(reference, ", "));
}

Status CheckChoice(const v1::ExperimentSpec& spec, const FrontChoice& choice) {
  if (!choice.given()) return absl::OkStatus();
  const char* flag = choice.weights.empty() ? "--order" : "--weights";
  if (!choice.weights.empty() && !choice.order.empty()) {
    return absl::InvalidArgumentError("--weights and --order choose differently: give one of them");
  }
  if (!experiment::HasSeveralObjectives(spec)) {
    return absl::InvalidArgumentError(absl::StrCat(flag, ": the experiment has one objective, ",
                                                   spec.objective().objective_metric_name(),
                                                   ": leave it out"));
  }
  const std::vector<std::string> names = ObjectiveNames(spec);
  RETURN_IF_ERROR(ReadWeights(choice.weights, names).status());
  return ReadOrder(choice.order, names).status();
}

std::optional<FrontCandidate> CandidateOf(const v1::ExperimentSpec& spec, const v1::Trial& trial) {
  const bool usable =
      trial.phase() == v1::TRIAL_SUCCEEDED || trial.phase() == v1::TRIAL_EARLY_STOPPED;
  auto result = usable ? experiment::ResultOf(spec, trial) : std::nullopt;
  if (!result || !result->feasible()) return std::nullopt;
  return FrontCandidate{trial.number(), std::move(result->losses)};
}

std::optional<int64_t> ChooseTrial(const v1::ExperimentSpec& spec, const FrontChoice& choice,
                                   std::vector<FrontCandidate> candidates) {
  std::vector<suggestion::Individual> all;
  for (FrontCandidate& one : candidates) all.push_back({one.number, std::move(one.losses)});
  std::vector<FrontCandidate> front;
  for (suggestion::Individual& one : suggestion::FirstFront(all)) {
    front.push_back({one.trial, std::move(one.losses)});
  }
  if (front.empty()) return std::nullopt;
  const std::vector<std::string> names = ObjectiveNames(spec);
  if (const auto weights = ReadWeights(choice.weights, names);
      weights.ok() && !choice.weights.empty()) {
    return LeastWeighted(std::move(front), *weights);
  }
  const auto places = ReadOrder(choice.order, names);
  return FirstInOrder(front, places.ok() ? *places : std::vector<size_t>());
}

v1::Experiment WithBest(v1::Experiment experiment, const v1::Trial& trial) {
  experiment.mutable_status()->mutable_shirabe()->clear_front();
  v1::OptimalTrial& best = *experiment.mutable_status()->mutable_current_optimal_trial();
  best.Clear();
  best.set_best_trial_name(TrialName({ExperimentKeyOf(trial), trial.number()}));
  best.set_number(trial.number());
  best.set_objective(trial.objective());
  best.set_step(trial.objective_step());
  *best.mutable_parameter_assignments() = trial.assignments();
  *best.mutable_observation() = trial.observation();
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
