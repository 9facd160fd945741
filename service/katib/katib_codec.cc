#include "service/katib/katib_codec.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/printable.h"
#include "experiment/spec/algorithm_setup.h"
#include "experiment/spec/spec_limits.h"
#include "experiment/spec/validate_rules.h"

namespace shirabe::service {
namespace {

// Its errors, one a line.
Status AsStatus(experiment::Findings& findings) {
  if (findings.errors() == 0) return absl::OkStatus();
  std::vector<std::string> lines;
  for (const experiment::Finding& finding : findings.Sorted()) {
    if (!finding.warning) lines.push_back(experiment::InWords(finding));
  }
  return absl::InvalidArgumentError(absl::StrJoin(lines, "\n"));
}

// The rules that hold for the search; a request has neither a template nor a collector.
Status CheckSearchRules(const v1::Experiment& ours) {
  const v1::ExperimentSpec& spec = ours.spec();
  experiment::Findings findings;
  if (!experiment::CheckSpecLimits(ours, findings)) return AsStatus(findings);
  if (spec.objective().objective_metric_name().empty()) {
    findings.Error("spec.objective.objectiveMetricName", "is required: the metric to optimise");
  }
  const auto space = experiment::CheckParameters(spec, findings);
  experiment::CheckSearch(spec, space, findings);
  return AsStatus(findings);
}

// A name that is not known is an error of the request too.
Status AsInvalid(const Status& status) {
  return absl::IsNotFound(status)
             ? absl::InvalidArgumentError("spec.algorithm.algorithmName: " + Message(status))
             : status;
}

}  // namespace

StatusOr<KatibSearch> ReadSearch(const katib::Experiment& experiment) {
  ASSIGN_OR_RETURN(v1::Experiment ours, suggestion::FromKatib(experiment));
  RETURN_IF_ERROR(CheckSearchRules(ours));
  const std::string& name = ours.spec().algorithm().algorithm_name();
  ASSIGN_OR_RETURN(suggestion::Problem problem, experiment::ProblemOf(ours.spec()));
  auto space = suggestion::SearchSpace(name, problem);
  if (!space.ok()) return AsInvalid(space.status());
  auto algorithm = suggestion::CreateAlgorithm(name, problem);
  if (!algorithm.ok()) return AsInvalid(algorithm.status());
  return KatibSearch{std::move(ours), std::move(problem), *std::move(space), *std::move(algorithm)};
}

Status CheckAsKatib(const KatibSearch& search) {
  const auto* info = Registry<suggestion::AlgorithmInfo>::Get().Find(
      search.experiment.spec().algorithm().algorithm_name());
  const suggestion::Cardinality points = search.space.cardinality();
  const auto wanted = static_cast<uint64_t>(std::max<int64_t>(0, search.problem.max_trials));
  if (info == nullptr || info->name != "grid" || !points.finite || wanted <= points.count) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("spec.maxTrialCount: ", wanted,
                                                 " is more than the ", points.count,
                                                 " points of the grid; lower it, or add values"));
}

StatusOr<suggestion::KatibHistory> ReadHistory(const KatibSearch& search,
                                               const katib::GetSuggestionsRequest& request) {
  const int64_t wanted = request.current_request_number();
  if (wanted < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("current_request_number is ", wanted, "; ask for 1 or more"));
  }
  if (wanted > kMaxKatibSuggestions) {
    return absl::InvalidArgumentError(
        absl::StrCat("current_request_number: ", wanted, " suggestions are more than ",
                     kMaxKatibSuggestions, ": ask for fewer at a time"));
  }
  if (request.trials_size() > kMaxKatibTrials) {
    return absl::ResourceExhaustedError(absl::StrCat("the request has ", request.trials_size(),
                                                     " trials; at most ", kMaxKatibTrials,
                                                     " are taken"));
  }
  suggestion::KatibHistory known =
      suggestion::ReadTrials(search.space, search.experiment.spec().objective(), request.trials());
  const int64_t asked_before = request.total_request_number() - wanted;
  known.history.SetNextOrdinal(std::max<int64_t>(request.trials_size(), asked_before));
  return known;
}

}  // namespace shirabe::service
