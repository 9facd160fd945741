#include "service/katib/katib_codec.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/printable.h"
#include "experiment/spec/algorithm_setup.h"
#include "experiment/spec/spec_limits.h"
#include "experiment/spec/validate_rules.h"
#include "suggestion/known_settings.h"

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
  const auto space = experiment::CheckParameters(spec, findings);
  experiment::CheckSearch(spec, space, findings);
  return AsStatus(findings);
}

// Those of the settings alone.
Status CheckSettingRules(const v1::Experiment& ours) {
  experiment::Findings findings;
  if (experiment::CheckSpecLimits(ours, findings)) {
    experiment::CheckSearch(ours.spec(), std::nullopt, findings);
  }
  return AsStatus(findings);
}

// A name that is not known is an error of the request too.
Status AsInvalid(const Status& status) {
  return absl::IsNotFound(status)
             ? absl::InvalidArgumentError("spec.algorithm.algorithmName: " + Message(status))
             : status;
}

const suggestion::AlgorithmInfo* InfoOf(const v1::Experiment& ours) {
  return Registry<suggestion::AlgorithmInfo>::Get().Find(ours.spec().algorithm().algorithm_name());
}

// Katib's services skip the settings that they do not have, and one of them keeps its own state in
// settings that come back with every request. Says which; "" if there are none.
std::string LeaveOutSettings(v1::Experiment& ours) {
  const suggestion::AlgorithmInfo* info = InfoOf(ours);
  if (info == nullptr) return "";
  std::set<std::string> known;
  for (const auto& setting : suggestion::KnownSettings(*info)) known.insert(setting.name);
  std::vector<std::string> unknown;
  auto& settings = *ours.mutable_spec()->mutable_algorithm()->mutable_algorithm_settings();
  for (int i = settings.size() - 1; i >= 0; --i) {
    if (known.count(settings[i].name()) > 0) continue;
    unknown.push_back(Printable(settings[i].name()));
    settings.DeleteSubrange(i, 1);
  }
  if (unknown.empty()) return "";
  std::reverse(unknown.begin(), unknown.end());
  return absl::StrCat("settings that ", info->name,
                      " does not have were left out: ", absl::StrJoin(unknown, ", "));
}

// Whether it was missing, and is the last parameter now. The rungs are its values.
bool AddResource(v1::Experiment& ours) {
  const suggestion::AlgorithmInfo* info = InfoOf(ours);
  v1::ExperimentSpec& spec = *ours.mutable_spec();
  const suggestion::Settings settings =
      experiment::SettingsOf(spec.algorithm().algorithm_settings());
  const std::string* name = suggestion::FindSetting(settings, "resource_name");
  if (info == nullptr || info->reshape == nullptr || name == nullptr || name->empty()) return false;
  for (const v1::ParameterSpec& parameter : spec.parameters()) {
    if (parameter.name() == *name) return false;
  }
  v1::ParameterSpec& resource = *spec.add_parameters();
  resource.set_name(*name);
  resource.set_parameter_type(v1::INT);
  resource.mutable_feasible_space()->set_min(1);
  resource.mutable_feasible_space()->set_max(1);
  return true;
}

// Of a search whose rules have been checked.
StatusOr<KatibSearch> MakeSearch(v1::Experiment ours) {
  const std::string& name = ours.spec().algorithm().algorithm_name();
  ASSIGN_OR_RETURN(suggestion::Problem problem, experiment::ProblemOf(ours.spec()));
  auto space = suggestion::SearchSpace(name, problem);
  if (!space.ok()) return AsInvalid(space.status());
  auto algorithm = suggestion::CreateAlgorithm(name, problem);
  if (!algorithm.ok()) return AsInvalid(algorithm.status());
  return KatibSearch{.experiment = std::move(ours),
                     .problem = std::move(problem),
                     .space = *std::move(space),
                     .algorithm = *std::move(algorithm),
                     .left_out = "",
                     .adds_resource = false};
}

Status CheckGrid(const KatibSearch& search) {
  const suggestion::Cardinality points = search.space.cardinality();
  const auto wanted = static_cast<uint64_t>(std::max<int64_t>(0, search.problem.max_trials));
  if (InfoOf(search.experiment)->name != "grid" || !points.finite || wanted <= points.count) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("spec.maxTrialCount: ", wanted,
                                                 " is more than the ", points.count,
                                                 " points of the grid; lower it, or add values"));
}

// The label under which a trial keeps a resource that is no parameter of the request.
constexpr char kResourceLabel[] = "shirabe.io/resource";

// As if the resource had been a parameter. A trial without the label is left as it is, and so left
// out of the history, which says why.
suggestion::KatibTrials WithResource(const KatibSearch& search,
                                     const suggestion::KatibTrials& trials) {
  suggestion::KatibTrials complete = trials;
  for (katib::Trial& trial : complete) {
    const auto label = trial.spec().labels().find(kResourceLabel);
    if (label == trial.spec().labels().end()) continue;
    katib::ParameterAssignment& resource =
        *trial.mutable_spec()->mutable_parameter_assignments()->add_assignments();
    resource.set_name(search.space.axis(search.space.size() - 1).name());
    resource.set_value(label->second);
  }
  return complete;
}

}  // namespace

StatusOr<KatibSearch> ReadSearch(const katib::Experiment& experiment) {
  ASSIGN_OR_RETURN(v1::Experiment ours, suggestion::FromKatib(experiment));
  experiment::Findings too_large;  // what is left out counts
  if (!experiment::CheckSpecLimits(ours, too_large)) return AsStatus(too_large);
  const std::string left_out = LeaveOutSettings(ours);
  const bool adds_resource = ours.spec().parameters_size() > 0 && AddResource(ours);
  RETURN_IF_ERROR(CheckSearchRules(ours));
  ASSIGN_OR_RETURN(KatibSearch search, MakeSearch(std::move(ours)));
  search.left_out = left_out;
  search.adds_resource = adds_resource;
  return search;
}

Status CheckAsKatib(const katib::Experiment& experiment) {
  ASSIGN_OR_RETURN(v1::Experiment ours, suggestion::FromKatib(experiment));
  const bool bare = ours.spec().parameters_size() == 0 && !ours.spec().has_nas_config();
  RETURN_IF_ERROR(bare ? CheckSettingRules(ours) : CheckSearchRules(ours));
  ASSIGN_OR_RETURN(const KatibSearch search, MakeSearch(std::move(ours)));
  return CheckGrid(search);
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
  const v1::ObjectiveSpec& objective = search.experiment.spec().objective();
  suggestion::KatibHistory known =
      search.adds_resource
          ? suggestion::ReadTrials(search.space, objective, WithResource(search, request.trials()))
          : suggestion::ReadTrials(search.space, objective, request.trials());
  const int64_t asked_before = request.total_request_number() - wanted;
  known.history.SetNextOrdinal(std::max<int64_t>(request.trials_size(), asked_before));
  return known;
}

katib::GetSuggestionsReply::ParameterAssignments FormatAnswer(
    const KatibSearch& search, const suggestion::KatibHistory& known,
    const suggestion::Suggestion& suggestion) {
  auto answer = suggestion::FormatSuggestion(search.experiment.spec(), known, suggestion);
  if (!search.adds_resource) return answer;
  const katib::ParameterAssignment& resource = *answer.assignments().rbegin();
  (*answer.mutable_labels())[kResourceLabel] = resource.value();
  answer.mutable_assignments()->RemoveLast();
  return answer;
}

}  // namespace shirabe::service
