#include "client/records/enum_words.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/number.h"
#include "experiment/conditions.h"
#include "experiment/spec/field_rules.h"
#include "experiment/spec/objective_value.h"
#include "experiment/submission.h"
#include "trial/trial_template.h"

namespace shirabe::client {
std::string PhaseWord(v1::TrialPhase phase) {
  return experiment::WordOf(*v1::TrialPhase_descriptor(), phase);
}

bool IsTerminal(v1::TrialPhase phase) {
  return phase != v1::TRIAL_PENDING && phase != v1::TRIAL_RUNNING;
}

std::string CauseWord(v1::Cause cause) {
  return experiment::WordOf(*v1::Cause_descriptor(), cause);
}

std::string AttemptStateWord(v1::AttemptState state) {
  return experiment::WordOf(*v1::AttemptState_descriptor(), state);
}

std::string StateWord(const v1::Experiment& experiment) {
  std::string type = experiment::CurrentCondition(experiment).type();
  if (experiment::IsEnded(experiment)) return type;
  if (experiment.status().shirabe().stopping()) return "Stopping";
  if (experiment.status().shirabe().paused()) return "Paused";
  return type;
}

std::string FollowUpWord(v1::FollowUpPhase phase) {
  return experiment::WordOf(*v1::FollowUpPhase_descriptor(), phase);
}

std::string ParameterTypeWord(v1::ParameterType type) {
  return experiment::WordOf(*v1::ParameterType_descriptor(), type);
}

std::string ObjectiveWord(v1::ObjectiveType type) {
  return experiment::WordOf(*v1::ObjectiveType_descriptor(), type);
}

std::string ShortNumber(double value) {
  if (!std::isfinite(value)) return FormatNumber(value);
  char text[32];  // as printf's %.6g, several times faster
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::general, 6);
  return std::string(text, end.ptr);
}

std::string ShortAssignments(const google::protobuf::RepeatedPtrField<v1::Assignment>& values) {
  return absl::StrJoin(values, " ", [](std::string* out, const v1::Assignment& value) {
    absl::StrAppend(
        out, value.name(), "=",
        value.has_number() ? ShortNumber(value.number()) : trial::FormatAssignment(value));
  });
}

std::string ActorWords(const v1::Actor& actor) {
  return actor.name().empty() ? "" : absl::StrCat(actor.name(), " (", actor.door(), ")");
}

std::string HolderWords(const std::string& holder) {
  const auto process = ParseProcessId(holder);
  return process ? absl::StrCat("process ", process->pid, " on ", process->host) : holder;
}

std::vector<std::string> MetricNames(const v1::Experiment& experiment) {
  const v1::ObjectiveSpec& objective = experiment.spec().objective();
  std::vector<std::string> names = {objective.objective_metric_name()};
  for (const std::string& name : objective.additional_metric_names()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

std::optional<ShownValue> ShownObjective(const v1::Experiment& experiment, const v1::Trial& trial) {
  if (trial.has_objective()) return ShownValue{trial.objective(), trial.objective_step()};
  const auto value = experiment::ObjectiveOf(experiment.spec().objective(), trial.observation());
  if (!value) return std::nullopt;
  return ShownValue{value->value, value->step};
}

std::optional<ShownValue> ShownMetric(const v1::Experiment& experiment, const v1::Trial& trial,
                                      const std::string& name) {
  const v1::Metric* metric = experiment::FindMetric(trial.observation(), name);
  if (metric == nullptr) return std::nullopt;
  switch (experiment::StrategyOf(experiment.spec().objective(), name)) {
    case v1::MIN:
      if (metric->has_min()) return ShownValue{metric->min(), metric->min_step()};
      break;
    case v1::MAX:
      if (metric->has_max()) return ShownValue{metric->max(), metric->max_step()};
      break;
    default: break;
  }
  if (!metric->has_latest()) return std::nullopt;
  return ShownValue{metric->latest(), metric->latest_step()};
}

}  // namespace shirabe::client
