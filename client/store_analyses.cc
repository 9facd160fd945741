#include "client/store_analyses.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/cancellation.h"
#include "base/text/did_you_mean.h"
#include "experiment/spec/algorithm_setup.h"
#include "experiment/state/shared_history.h"
#include "suggestion/analysis/importance.h"
#include "suggestion/processor_level.h"
#include "trial/trial_template.h"

namespace shirabe::client {
namespace {

namespace analysis = suggestion::analysis;
using suggestion::History;
using suggestion::Point;
using suggestion::Space;

constexpr int64_t kAnalysedAtOnce = 1000;  // trials in memory while they are read

v1::ModelBasis ToMessage(const suggestion::Basis& basis, bool model) {
  v1::ModelBasis message;
  message.set_results(basis.results);
  message.set_left_out(basis.left_out);
  message.set_failed(basis.failed);
  message.set_active(basis.active);
  if (model) message.set_explained(basis.explained);
  message.set_too_few(basis.too_few);
  return message;
}

v1::Estimate ToMessage(const suggestion::Estimate& estimate) {
  v1::Estimate message;
  message.set_value(estimate.value);
  message.set_low(estimate.low);
  message.set_high(estimate.high);
  return message;
}

// Of losses, in the objective's own sign.
suggestion::Estimate AsObjective(const suggestion::Estimate& loss, bool maximize) {
  if (!maximize) return loss;
  return {-loss.value, -loss.high, -loss.low};
}

v1::ImportanceVerdict ToMessage(suggestion::Verdict verdict) {
  switch (verdict) {
    case suggestion::Verdict::kMatters: return v1::MATTERS;
    case suggestion::Verdict::kDoesNotMatter: return v1::DOES_NOT_MATTER;
    case suggestion::Verdict::kTooFewTrials: break;
  }
  return v1::TOO_FEW_TRIALS;
}

// The most important first; in the order of the space where they are equal.
void SortParameters(v1::Importance& reply) {
  const auto size = [](const v1::ParameterImportance& one) {
    return one.has_share() ? one.share() : one.total().value();
  };
  std::stable_sort(reply.mutable_parameters()->begin(), reply.mutable_parameters()->end(),
                   [&](const auto& a, const auto& b) { return size(a) > size(b); });
}

std::string TextAt(const Space& space, int axis, double coordinate) {
  return trial::FormatAssignment(space.axis(axis).Decode(coordinate));
}

// An answer that was cut short is none.
Status CheckWhole() {
  return IsCancelled() ? absl::CancelledError("the caller has gone") : absl::OkStatus();
}

void AddByModel(const History& history, v1::Importance& reply) {
  const auto found = suggestion::AnalysesForThisProcessor().importances(history);
  *reply.mutable_basis() = ToMessage(found.basis, found.has_model());
  const std::vector<suggestion::ParameterImportance>& importances = found.answer;
  for (size_t i = 0; i < importances.size(); ++i) {
    v1::ParameterImportance& one = *reply.add_parameters();
    one.set_parameter(history.space().axis(static_cast<int>(i)).name());
    *one.mutable_total() = ToMessage(importances[i].index.total);
    *one.mutable_first_order() = ToMessage(importances[i].index.first);
    one.set_verdict(ToMessage(importances[i].verdict));
  }
}

void AddByDensity(const History& history, v1::Importance& reply) {
  const suggestion::Basis basis = suggestion::BasisOf(history);
  *reply.mutable_basis() = ToMessage(basis, false);
  if (!basis.too_few.empty()) return;
  const analysis::PedAnova found = analysis::PedAnovaOf(history);
  reply.set_best_trials(found.best);
  double sum = 0;
  for (const double importance : found.importances) sum += importance;
  for (size_t i = 0; i < found.importances.size(); ++i) {
    v1::ParameterImportance& one = *reply.add_parameters();
    one.set_parameter(history.space().axis(static_cast<int>(i)).name());
    one.set_share(sum > 0 ? found.importances[i] / sum : 0);
  }
}

// Indices into the history; nullopt where none is named and there are not two results.
StatusOr<std::optional<analysis::AblationEnds>> EndsOf(const History& history,
                                                       const v1::AblationRequest& request) {
  auto ends = analysis::DefaultEnds(history);
  if (!ends) return ends;
  const auto put = [&](const char* field, int64_t number, int64_t& index) -> Status {
    if (number == 0) return absl::OkStatus();
    if (number < 1 || number > history.size()) {
      return absl::InvalidArgumentError(absl::StrCat(field, ": there is no trial ", number,
                                                     ": give one from 1 to ", history.size()));
    }
    index = number - 1;
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(put("from", request.from(), ends->from));
  RETURN_IF_ERROR(put("to", request.to(), ends->to));
  return ends;
}

StatusOr<int> AxisOf(const Space& space, const std::string& name) {
  std::vector<std::string> names;
  for (int j = 0; j < space.size(); ++j) {
    names.push_back(space.axis(j).name());
    if (names.back() == name) return j;
  }
  const auto near = Nearest(name, names);
  return absl::InvalidArgumentError(
      absl::StrCat("parameters: \"", name, "\" is not a parameter of the experiment; ",
                   near ? "did you mean \"" + *near + "\"?" : "see its specification"));
}

StatusOr<std::vector<int>> AxesOf(const Space& space, const v1::PartialDependenceRequest& request) {
  if (request.parameters_size() < 1 || request.parameters_size() > 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("parameters: ", request.parameters_size(), " are named: name one, or two"));
  }
  std::vector<int> axes;
  for (const std::string& name : request.parameters()) {
    ASSIGN_OR_RETURN(const int axis, AxisOf(space, name));
    if (!axes.empty() && axes[0] == axis) {
      return absl::InvalidArgumentError(
          absl::StrCat("parameters: \"", name, "\" is named twice: name another one"));
    }
    axes.push_back(axis);
  }
  return axes;
}

}  // namespace

// The trials of an experiment as an algorithm sees them.
struct StoreAnalyses::Subject {
  experiment::SharedHistory trials;
  bool maximize = false;

  const History& history() const { return trials.history(); }
};

void StoreAnalyses::AddTo(MethodTable& table) {
  table.Add("GetImportance", this, &StoreAnalyses::GetImportance);
  table.Add("GetAblation", this, &StoreAnalyses::GetAblation);
  table.Add("GetPartialDependence", this, &StoreAnalyses::GetPartialDependence);
}

StatusOr<StoreAnalyses::Subject> StoreAnalyses::Read(const ExperimentKey& key) {
  RETURN_IF_ERROR(ValidateKey(key));
  RETURN_IF_ERROR(namespaces_->CheckReadable(key));
  ASSIGN_OR_RETURN(const auto stored, store_->GetExperiment(key));
  const v1::ExperimentSpec& spec = stored.record.spec();
  ASSIGN_OR_RETURN(const Space space, experiment::SearchSpaceOf(spec));
  v1::ExperimentSpec one;  // spec.objective is what is analysed, whatever else is optimised
  *one.mutable_objective() = spec.objective();
  const v1::ShirabeStatus& status = stored.record.status().shirabe();
  Subject subject{{space, one, status.space_changes()}, spec.objective().type() == v1::MAXIMIZE};
  subject.trials.SetMemo(status.memo());
  db::TrialQuery query{.experiment = key, .limit = kAnalysedAtOnce};
  for (bool more = true; more;) {
    ASSIGN_OR_RETURN(const auto page, store_->ListTrials(query));
    for (const auto& [trial, revision] : page) {
      if (trial.number() != subject.history().size() + 1 ||
          trial.point().x_size() != space.size()) {
        return absl::DataLossError(absl::StrCat("trial ", trial.number(), " of ", ToString(key),
                                                " is not a point of its space"));
      }
      query.after_number = trial.number();
      subject.trials.Add(trial);
    }
    more = static_cast<int64_t>(page.size()) == kAnalysedAtOnce;
  }
  return subject;
}

StatusOr<v1::Importance> StoreAnalyses::GetImportance(const v1::ImportanceRequest& request) {
  if (!v1::ImportanceMethod_IsValid(request.method())) {
    return absl::InvalidArgumentError(absl::StrCat("method: ", static_cast<int>(request.method()),
                                                   " is not known: use gp or ped"));
  }
  ASSIGN_OR_RETURN(const Subject subject, Read({request.namespace_(), request.experiment()}));
  v1::Importance reply;
  const bool ped = request.method() == v1::IMPORTANCE_PED;
  reply.set_method(ped ? v1::IMPORTANCE_PED : v1::IMPORTANCE_GP);
  (ped ? AddByDensity : AddByModel)(subject.history(), reply);
  RETURN_IF_ERROR(CheckWhole());
  SortParameters(reply);
  return reply;
}

StatusOr<v1::Ablation> StoreAnalyses::GetAblation(const v1::AblationRequest& request) {
  ASSIGN_OR_RETURN(const Subject subject, Read({request.namespace_(), request.experiment()}));
  const History& history = subject.history();
  ASSIGN_OR_RETURN(const auto ends, EndsOf(history, request));
  v1::Ablation reply;
  if (!ends) {
    *reply.mutable_basis() = ToMessage(suggestion::BasisOf(history), false);
    return reply;
  }
  const Point from = history.point(ends->from), to = history.point(ends->to);
  const auto found = suggestion::AnalysesForThisProcessor().ablation(history, from, to);
  *reply.mutable_basis() = ToMessage(found.basis, found.has_model());
  if (!found.has_model()) return reply;
  const suggestion::AblationPath& path = found.answer;
  RETURN_IF_ERROR(CheckWhole());
  reply.set_from_trial(ends->from + 1);
  reply.set_to_trial(ends->to + 1);
  *reply.mutable_from() = ToMessage(AsObjective(path.from, subject.maximize));
  *reply.mutable_to() = ToMessage(AsObjective(path.to, subject.maximize));
  for (const suggestion::AblationStep& step : path.steps) {
    v1::AblationStep& one = *reply.add_steps();
    one.set_parameter(history.space().axis(step.axis).name());
    one.set_from_value(TextAt(history.space(), step.axis, from[step.axis]));
    one.set_to_value(TextAt(history.space(), step.axis, to[step.axis]));
    *one.mutable_objective() = ToMessage(AsObjective(step.loss, subject.maximize));
    *one.mutable_gain() = ToMessage(step.gain);
  }
  return reply;
}

StatusOr<v1::PartialDependence> StoreAnalyses::GetPartialDependence(
    const v1::PartialDependenceRequest& request) {
  ASSIGN_OR_RETURN(const Subject subject, Read({request.namespace_(), request.experiment()}));
  const Space& space = subject.history().space();
  ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(space, request));
  const auto modelled =
      suggestion::AnalysesForThisProcessor().partial_dependence(subject.history(), axes);
  v1::PartialDependence reply;
  *reply.mutable_basis() = ToMessage(modelled.basis, modelled.has_model());
  if (!modelled.has_model()) return reply;
  const suggestion::PartialDependence& found = modelled.answer;
  RETURN_IF_ERROR(CheckWhole());
  for (const suggestion::GridAxis& grid : found.axes) {
    v1::GridAxis& axis = *reply.add_axes();
    axis.set_parameter(space.axis(grid.axis).name());
    for (const double x : grid.coordinates) {
      axis.add_values(TextAt(space, grid.axis, x));
      axis.add_coordinates(x);
    }
    axis.set_left_out(static_cast<int64_t>(grid.left_out));
  }
  for (const suggestion::Estimate& loss : found.losses) {
    const suggestion::Estimate objective = AsObjective(loss, subject.maximize);
    reply.add_mean(objective.value);
    reply.add_low(objective.low);
    reply.add_high(objective.high);
  }
  return reply;
}

}  // namespace shirabe::client
