#include "experiment/spec/validate_rules.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "absl/strings/str_join.h"
#include "base/names.h"
#include "base/text/number.h"
#include "experiment/spec/field_rules.h"
#include "experiment/spec/spec_limits.h"

namespace shirabe::experiment {
namespace {

using google::protobuf::FieldDescriptor;
using Proto = google::protobuf::Message;

bool IsEmpty(const Proto& message, const FieldDescriptor& field) {
  const auto& reflection = *message.GetReflection();
  if (field.is_repeated()) return reflection.FieldSize(message, &field) == 0;
  return !reflection.HasField(message, &field);  // for plain scalars: it is not zero or ""
}

std::string Required(const FieldDescriptor& field) {
  if (field.cpp_type() != FieldDescriptor::CPPTYPE_ENUM) {
    return "is required: " + RuleOf(field).help();
  }
  return "is required: one of " + absl::StrJoin(WordsOf(*field.enum_type()), ", ");
}

double NumberIn(const Proto& message, const FieldDescriptor& field) {
  const auto& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE: return reflection.GetDouble(message, &field);
    case FieldDescriptor::CPPTYPE_INT32: return reflection.GetInt32(message, &field);
    case FieldDescriptor::CPPTYPE_INT64:
      return static_cast<double>(reflection.GetInt64(message, &field));
    default: return 0;
  }
}

void CheckNumber(const Proto& message, const FieldDescriptor& field, const std::string& path,
                 Findings& findings) {
  if (field.is_repeated()) return;
  const double value = NumberIn(message, field);
  const v1::FieldRule& rule = RuleOf(field);
  if (!std::isfinite(value)) {
    findings.Error(path, "must be a finite number, not " + FormatNumber(value));
  } else if (rule.has_min() && value < rule.min()) {
    findings.Error(path,
                   "must be at least " + FormatNumber(rule.min()) + ", not " + FormatNumber(value));
  }
}

}  // namespace

void CheckTable(const Proto& message, const std::string& path, Findings& findings) {
  const auto& reflection = *message.GetReflection();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    const v1::FieldRule& rule = RuleOf(field);
    if (rule.internal() || rule.ignored()) continue;
    const std::string child = ChildPath(path, field.json_name());
    if (IsEmpty(message, field)) {
      if (rule.required()) findings.Error(child, Required(field));
    } else if (!IsNested(field)) {
      CheckNumber(message, field, child, findings);
    } else if (!field.is_repeated()) {
      CheckTable(reflection.GetMessage(message, &field), child, findings);
    } else {
      for (int k = 0; k < reflection.FieldSize(message, &field); ++k) {
        const auto& item = reflection.GetRepeatedMessage(message, &field, k);
        CheckTable(item, ItemPath(child, k), findings);
      }
    }
  }
}

namespace {

void CheckMetadata(const v1::ObjectMeta& metadata, Findings& findings) {
  if (!metadata.name().empty()) {
    const Status name = ValidateExperimentName(metadata.name());
    if (!name.ok()) findings.Error("metadata.name", shirabe::Message(name));
  }
  const Status ns = ValidateNamespace(metadata.namespace_());
  if (!metadata.namespace_().empty() && !ns.ok()) {
    findings.Error("metadata.namespace", shirabe::Message(ns));
  }
}

void CheckStrategies(const v1::ObjectiveSpec& objective, const std::set<std::string>& metrics,
                     Findings& findings) {
  std::set<std::string> seen;
  for (int i = 0; i < objective.metric_strategies_size(); ++i) {
    const std::string& name = objective.metric_strategies(i).name();
    const std::string path = ItemPath("spec.objective.metricStrategies", i) + ".name";
    if (name.empty()) continue;
    if (!seen.insert(name).second) {
      findings.Error(path, "\"" + name + "\" has a strategy already: remove one");
    } else if (metrics.count(name) == 0 &&
               !findings.IsUnreadable("spec.objective.objectiveMetricName") &&
               !findings.IsUnreadable("spec.objective.additionalMetricNames")) {
      findings.Error(path, "\"" + name + "\" is neither the objective nor an additional metric" +
                               DidYouMean(name, {metrics.begin(), metrics.end()}));
    }
  }
}

void CheckObjective(const v1::ObjectiveSpec& objective, Findings& findings) {
  std::set<std::string> metrics = {objective.objective_metric_name()};
  for (int i = 0; i < objective.additional_metric_names_size(); ++i) {
    const std::string& name = objective.additional_metric_names(i);
    const std::string path = ItemPath("spec.objective.additionalMetricNames", i);
    if (name.empty()) {
      findings.Error(path, "must not be empty");
    } else if (name == objective.objective_metric_name()) {
      findings.Error(path, "\"" + name + "\" is the objectiveMetricName: remove it here");
    } else if (!metrics.insert(name).second) {
      findings.Error(path, "\"" + name + "\" is given twice: remove one");
    }
  }
  CheckStrategies(objective, metrics, findings);
}

bool HasGoal(const v1::ExperimentSpec& spec) {
  const auto& further = spec.shirabe().additional_objectives();
  return spec.objective().has_goal() || std::any_of(further.begin(), further.end(),
                                                    [](const auto& one) { return one.has_goal(); });
}

void CheckCounts(const v1::ExperimentSpec& spec, Findings& findings) {
  if (const Status parallel = CheckParallel(spec.parallel_trial_count()); !parallel.ok()) {
    findings.Error("spec.parallelTrialCount", Message(parallel));
  }
  if (!spec.has_max_trial_count()) {
    const v1::ShirabeSpec& ours = spec.shirabe();
    const bool ends = HasGoal(spec) || ours.limits().has_experiment_seconds() ||
                      ours.stop_when().has_no_improvement_trials();
    if (ends || findings.IsUnreadable("spec.objective.goal")) return;
    findings.Warn("spec.maxTrialCount",
                  "neither maxTrialCount nor objective.goal is given: the experiment goes on until "
                  "its space is exhausted or it is stopped");
    return;
  }
  if (spec.max_trial_count() < 1) return;  // the table has said so
  const std::string max = "maxTrialCount " + std::to_string(spec.max_trial_count());
  if (spec.parallel_trial_count() > spec.max_trial_count()) {
    findings.Error("spec.parallelTrialCount", std::to_string(spec.parallel_trial_count()) +
                                                  " is more than " + max + ": lower it");
  }
  if (spec.max_failed_trial_count() > spec.max_trial_count()) {
    findings.Warn("spec.maxFailedTrialCount", std::to_string(spec.max_failed_trial_count()) +
                                                  " is more than " + max +
                                                  ": failures will never end the experiment");
  }
}

}  // namespace

void CheckRules(const v1::Experiment& experiment, Findings& findings) {
  if (!CheckSpecLimits(experiment, findings)) return;
  CheckTable(experiment, "", findings);
  CheckMetadata(experiment.metadata(), findings);
  const v1::ExperimentSpec& spec = experiment.spec();
  const auto space = CheckParameters(spec, findings);
  CheckObjective(spec.objective(), findings);
  CheckResults(spec, findings);
  CheckCounts(spec, findings);
  CheckTemplate(spec, findings);
  CheckOnSuccess(spec, findings);
  CheckCollector(spec, findings);
  CheckSearch(spec, space, findings);
  CheckNotifications(experiment, findings);
  CheckPods(spec, findings);
}

}  // namespace shirabe::experiment
