#include "experiment/spec/parse_spec.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/text/number.h"
#include "base/text/yaml_tree.h"
#include "experiment/spec/findings.h"
#include "experiment/spec/spec_limits.h"
#include "experiment/spec/validate_rules.h"
#include "experiment/spec/yaml_to_message.h"
#include "proto/shirabe/v1/collector_traits.h"

namespace shirabe::experiment {
namespace {

constexpr const char* kApiVersion = "kubeflow.org/v1beta1";
constexpr const char* kKind = "Experiment";

// Whether the document says that it is something else: then nothing in it is looked at.
bool IsAnotherKind(const YamlNode& root, Findings& findings) {
  const YamlNode* kind = root.Find("kind");
  const YamlNode* version = root.Find("apiVersion");
  if (kind != nullptr && kind->kind == YamlNode::Kind::kString && kind->text != kKind) {
    findings.MarkUnreadable(
        "kind", kind->mark,
        Describe(*kind) + " is not an " + kKind + ": keep other objects in files of their own");
    return true;
  }
  if (version != nullptr && version->kind == YamlNode::Kind::kString &&
      version->text != kApiVersion) {
    findings.MarkUnreadable("apiVersion", version->mark,
                            Describe(*version) + " is not supported; write " + kApiVersion);
    // An older version of Katib has other fields: their errors would only confuse.
    return true;
  }
  return false;
}

}  // namespace

ParsedExperiment ParseDocument(const YamlDocument& document) {
  ParsedExperiment parsed;
  Findings findings;
  for (const YamlProblem& problem : document.problems) {
    findings.Problem(problem.mark, problem.message);
  }
  // After a problem of the text itself the tree is not what was meant, and the rules would guess.
  if (!document.broken && !IsAnotherKind(document.root, findings)) {
    Walk(document.root, parsed.experiment, findings);
    SetDefaults(parsed.experiment);
    CheckRules(parsed.experiment, findings);
  }
  parsed.findings = findings.Sorted();
  return parsed;
}

std::vector<ParsedExperiment> ParseExperiments(std::string_view text) {
  std::vector<ParsedExperiment> parsed;
  for (const YamlDocument& document : ParseYaml(text)) parsed.push_back(ParseDocument(document));
  if (parsed.empty()) {
    parsed.emplace_back().findings.push_back(
        {false, "", "the text holds no document: write an Experiment", 1, 1});
  }
  return parsed;
}

std::vector<Finding> Validate(const v1::Experiment& experiment) {
  Findings findings;
  if (experiment.api_version() != kApiVersion && !experiment.api_version().empty()) {
    findings.Error("apiVersion", "must be " + std::string(kApiVersion));
  }
  if (experiment.kind() != kKind && !experiment.kind().empty()) {
    findings.Error("kind", "must be " + std::string(kKind));
  }
  CheckRules(experiment, findings);
  return findings.Sorted();
}

// What Katib's defaulter fills in, and a little more where a Katib user would otherwise get an
// error for something that has only one sensible value. Applied once, before the rules.

namespace {

constexpr int kParallelTrials = 3;

// How the kinds of objects that Katib knows say that they are done.
struct KindDefaults {
  const char* kind;
  const char* success;
  const char* failure;
  const char* label;  // the pod whose metrics are read
  const char* label_value;
};

constexpr const char* kComplete = R"(status.conditions.#(type=="Complete")#|#(status=="True")#)";
constexpr const char* kSucceeded = R"(status.conditions.#(type=="Succeeded")#|#(status=="True")#)";
constexpr const char* kFailed = R"(status.conditions.#(type=="Failed")#|#(status=="True")#)";
constexpr const char* kRole = "training.kubeflow.org/job-role";

constexpr KindDefaults kKinds[] = {
    {"Job", kComplete, kFailed, nullptr, nullptr},
    {"TFJob", kSucceeded, kFailed, kRole, "master"},
    {"PyTorchJob", kSucceeded, kFailed, kRole, "master"},
    {"XGBoostJob", kSucceeded, kFailed, kRole, "master"},
    {"MPIJob", kSucceeded, kFailed, kRole, "master"},
    {"MXJob", kSucceeded, kFailed, kRole, "master"},
    {"PaddleJob", kSucceeded, kFailed, kRole, "master"},
    {"TrainJob", kComplete, kFailed, "jobset.sigs.k8s.io/replicatedjob-name", "node"},
    {"Pod", R"(status.[@this].#(phase=="Succeeded")#)", R"(status.[@this].#(phase=="Failed")#)",
     nullptr, nullptr},
};

const google::protobuf::Value* Find(const google::protobuf::Struct& object,
                                    const std::string& key) {
  const auto found = object.fields().find(key);
  return found == object.fields().end() ? nullptr : &found->second;
}

v1::MetricStrategyType StrategyFor(v1::ObjectiveType type) {
  return type == v1::MINIMIZE ? v1::MIN : v1::MAX;
}

void AddStrategy(const std::string& metric, std::set<std::string>& known,
                 v1::ObjectiveSpec& objective) {
  if (!known.insert(metric).second) return;
  auto& strategy = *objective.add_metric_strategies();
  strategy.set_name(metric);
  strategy.set_value(StrategyFor(objective.type()));
}

void DefaultObjective(v1::ObjectiveSpec& objective) {
  if (objective.type() == v1::OBJECTIVE_TYPE_UNKNOWN) return;
  if (objective.objective_metric_name().empty()) return;
  std::set<std::string> known;
  for (const auto& strategy : objective.metric_strategies()) known.insert(strategy.name());
  AddStrategy(objective.objective_metric_name(), known, objective);
  for (const std::string& metric : objective.additional_metric_names()) {
    if (!metric.empty()) AddStrategy(metric, known, objective);
  }
}

// What further objectives and constraints go by is collected like an additional metric; of its
// values the latest counts, unless a strategy says another.
void AddFurtherMetric(const std::string& metric, v1::ObjectiveSpec& objective) {
  if (metric.empty() || metric == objective.objective_metric_name()) return;
  auto& names = *objective.mutable_additional_metric_names();
  if (std::find(names.begin(), names.end(), metric) == names.end()) *names.Add() = metric;
  for (const auto& strategy : objective.metric_strategies()) {
    if (strategy.name() == metric) return;
  }
  auto& strategy = *objective.add_metric_strategies();
  strategy.set_name(metric);
  strategy.set_value(v1::LATEST);
}

void DefaultFurtherMetrics(v1::ExperimentSpec& spec) {
  if (spec.shirabe().additional_objectives_size() > kMaxAdditionalObjectives ||
      spec.shirabe().constraints_size() > kMaxConstraints ||
      spec.objective().additional_metric_names_size() > kMaxMetrics ||
      spec.objective().metric_strategies_size() > kMaxMetrics) {
    return;  // which is refused
  }
  for (const auto& further : spec.shirabe().additional_objectives()) {
    AddFurtherMetric(further.metric_name(), *spec.mutable_objective());
  }
  for (const auto& constraint : spec.shirabe().constraints()) {
    AddFurtherMetric(constraint.metric_name(), *spec.mutable_objective());
  }
}

// The list of a discrete parameter as numbers, or nothing where one of them is none.
void DefaultNumbers(v1::ParameterSpec& parameter) {
  if (!parameter.has_feasible_space()) return;
  auto& space = *parameter.mutable_feasible_space();
  space.clear_numbers();
  if (parameter.parameter_type() != v1::DISCRETE) return;
  for (const std::string& text : space.list()) {
    const auto number = ParseNumber(text);
    if (!number) return space.clear_numbers();
    space.add_numbers(*number);
  }
}

}  // namespace

void SetTemplateDefaults(v1::TrialTemplate& trial) {
  if (trial.primary_container_name().empty())
    trial.set_primary_container_name("training-container");
  if (!trial.has_trial_spec()) return;
  const auto* kind = Find(trial.trial_spec(), "kind");
  for (const KindDefaults& known : kKinds) {
    if (kind == nullptr || kind->string_value() != known.kind) continue;
    if (trial.success_condition().empty()) trial.set_success_condition(known.success);
    if (trial.failure_condition().empty()) trial.set_failure_condition(known.failure);
    if (known.label != nullptr && trial.primary_pod_labels().empty()) {
      (*trial.mutable_primary_pod_labels())[known.label] = known.label_value;
    }
  }
}

namespace {

void DefaultFile(const std::string& path, v1::FileSystemKind kind, v1::SourceSpec& source) {
  auto& file = *source.mutable_file_system_path();
  if (file.path().empty()) file.set_path(path);
  if (file.kind() == v1::FILE_SYSTEM_KIND_UNSPECIFIED) file.set_kind(kind);
}

void DefaultCollector(v1::MetricsCollectorSpec& spec) {
  auto& collector = *spec.mutable_collector();
  if (collector.kind() == v1::COLLECTOR_KIND_UNSPECIFIED) {
    // A container given without a kind can only mean this one.
    collector.set_kind(collector.has_custom_collector() ? v1::CUSTOM : v1::STD_OUT);
  }
  const v1::CollectorTraits& traits = v1::TraitsOf(collector.kind());
  if (!traits.file().empty()) {
    DefaultFile(traits.file(), v1::FILE, *spec.mutable_source());
    auto& file = *spec.mutable_source()->mutable_file_system_path();
    if (file.format() == v1::FILE_FORMAT_UNSPECIFIED) file.set_format(v1::TEXT);
  }
  if (!traits.directory().empty()) {
    DefaultFile(traits.directory(), v1::DIRECTORY, *spec.mutable_source());
  }
  if (traits.http()) {
    auto& http = *spec.mutable_source()->mutable_http_get();
    if (http.path().empty()) http.set_path("/metrics");
    if (!http.has_port()) http.mutable_port()->set_number_value(8080);
  }
}

// Kubernetes would retry the pods of a Job itself; here each retry is an attempt of its own.
void DefaultRetries(v1::ExperimentSpec& spec) {
  if (spec.shirabe().attempts().has_max_failures()) return;
  const auto* object = Find(spec.trial_template().trial_spec(), "spec");
  if (object == nullptr || !object->has_struct_value()) return;
  const auto* limit = Find(object->struct_value(), "backoffLimit");
  if (limit == nullptr || !limit->has_number_value()) return;
  const double retries = std::clamp(limit->number_value(), 0.0, 1e6);
  spec.mutable_shirabe()->mutable_attempts()->set_max_failures(static_cast<int>(retries));
}

}  // namespace

void SetDefaults(v1::Experiment& experiment) {
  if (experiment.metadata().namespace_().empty()) {
    experiment.mutable_metadata()->set_namespace_("default");
  }
  auto& spec = *experiment.mutable_spec();
  if (!spec.has_parallel_trial_count()) {
    // More than there are trials would be refused, and was not asked for.
    const int most = spec.max_trial_count() > 0 ? spec.max_trial_count() : kParallelTrials;
    spec.set_parallel_trial_count(std::min(kParallelTrials, most));
  }
  if (spec.resume_policy() == v1::RESUME_POLICY_UNSPECIFIED) spec.set_resume_policy(v1::NEVER);
  if (spec.algorithm().algorithm_name().empty()) {
    spec.mutable_algorithm()->set_algorithm_name("auto");
  }
  if (spec.has_objective()) {
    DefaultFurtherMetrics(spec);
    DefaultObjective(*spec.mutable_objective());
  }
  for (auto& parameter : *spec.mutable_parameters()) DefaultNumbers(parameter);
  if (spec.has_trial_template()) {
    SetTemplateDefaults(*spec.mutable_trial_template());
    DefaultRetries(spec);
  }
  auto& collector = *spec.mutable_metrics_collector_spec()->mutable_collector();
  if (spec.shirabe().ask_and_tell() && collector.kind() == v1::COLLECTOR_KIND_UNSPECIFIED) {
    collector.set_kind(v1::NONE);
  }
  DefaultCollector(*spec.mutable_metrics_collector_spec());
}

}  // namespace shirabe::experiment
