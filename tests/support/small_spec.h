// The experiment of most tests: one parameter, `lr`, from 0 to 1, and a loss that becomes less; as
// YAML, as JSON and as a message. Each test says what is its own.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/names.h"
#include "base/text/json_fields.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe {

struct SmallSpec {
  std::string name = "small";
  std::string ns = "default";
  std::string algorithm = "random";
  int parallel = 0;  // 0 = not said
  int trials = 0;    // 0 = not said
  // Lines of YAML, at their own indentation: of the container, its command for example, without
  // which there is no program; of its pod; of its Job; and of `spec`.
  std::string container = "";
  std::string pod = "";
  std::string job = "";
  std::string more = "";
};

inline std::string Indented(int by, const std::string& lines) {
  std::string out;
  for (const auto line : absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    absl::StrAppend(&out, std::string(static_cast<size_t>(by), ' '), line, "\n");
  }
  return out;
}

// The command of a container: a shell that runs the script, with lr as its $1.
inline std::string ShellCommand(const std::string& script) {
  return absl::StrCat("command: [/bin/sh, -c, \"", script, "\", sh, \"${trialParameters.lr}\"]");
}
// The same for a script in a file.
inline std::string ScriptCommand(const std::string& path) {
  return absl::StrCat("command: [/bin/sh, ", path, ", \"${trialParameters.lr}\"]");
}

inline std::string Yaml(const SmallSpec& wanted) {
  std::string text = absl::StrReplaceAll(
      R"(apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: NAME, namespace: NAMESPACE}
spec:
  objective: {type: minimize, objectiveMetricName: loss}
  algorithm: {algorithmName: ALGORITHM}
  parameters:
    - {name: lr, parameterType: double, feasibleSpace: {min: "0", max: "1"}}
)",
      {{"NAMESPACE", wanted.ns}, {"NAME", wanted.name}, {"ALGORITHM", wanted.algorithm}});
  if (wanted.parallel != 0) absl::StrAppend(&text, "  parallelTrialCount: ", wanted.parallel, "\n");
  if (wanted.trials != 0) absl::StrAppend(&text, "  maxTrialCount: ", wanted.trials, "\n");
  text += Indented(2, wanted.more);
  if (wanted.container.empty()) return text;
  return absl::StrCat(
      text, R"(  trialTemplate:
    primaryContainerName: main
    trialParameters: [{name: lr, reference: lr}]
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec:
)",
      Indented(8, wanted.job), "        template:\n          spec:\n", Indented(12, wanted.pod),
      "            containers:\n              - name: main\n", Indented(16, wanted.container));
}

// As a cluster has it, with these fields of its container and of its pod.
inline Json SmallObject(const ExperimentKey& key, int trials, Json container, Json pod = {}) {
  container["name"] = "main";
  pod["containers"] = Json::array({container});
  const Json job = {
      {"apiVersion", "batch/v1"}, {"kind", "Job"}, {"spec", {{"template", {{"spec", pod}}}}}};
  const Json space = {{"min", "0"}, {"max", "1"}};
  const Json lr = {{"name", "lr"}, {"parameterType", "double"}, {"feasibleSpace", space}};
  const Json reference = {{"name", "lr"}, {"reference", "lr"}};
  return {{"apiVersion", "kubeflow.org/v1beta1"},
          {"kind", "Experiment"},
          {"metadata", {{"name", key.name}, {"namespace", key.ns}}},
          {"spec",
           {{"objective", {{"type", "minimize"}, {"objectiveMetricName", "loss"}}},
            {"algorithm", {{"algorithmName", "random"}}},
            {"parallelTrialCount", trials},
            {"maxTrialCount", trials},
            {"parameters", Json::array({lr})},
            {"trialTemplate",
             {{"primaryContainerName", "main"},
              {"trialParameters", Json::array({reference})},
              {"trialSpec", job}}}}}};
}

// Without a program, defaults or an algorithm.
inline v1::Experiment SmallExperiment(const ExperimentKey& key) {
  v1::Experiment experiment;
  experiment.set_api_version("kubeflow.org/v1beta1");
  experiment.set_kind("Experiment");
  experiment.mutable_metadata()->set_name(key.name);
  experiment.mutable_metadata()->set_namespace_(key.ns);
  v1::ExperimentSpec& spec = *experiment.mutable_spec();
  spec.mutable_objective()->set_type(v1::MINIMIZE);
  spec.mutable_objective()->set_objective_metric_name("loss");
  v1::ParameterSpec& lr = *spec.add_parameters();
  lr.set_name("lr");
  lr.set_parameter_type(v1::DOUBLE);
  lr.mutable_feasible_space()->set_min(0);
  lr.mutable_feasible_space()->set_max(1);
  return experiment;
}

}  // namespace shirabe
