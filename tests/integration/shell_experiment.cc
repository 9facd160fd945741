#include "tests/integration/shell_experiment.h"

#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "experiment/spec.h"

namespace shirabe::experiment {
namespace {

constexpr char kSpec[] = R"(apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: NAME}
spec:
  parallelTrialCount: PARALLEL
  maxTrialCount: TRIALS
  objective: {type: minimize, objectiveMetricName: loss}
  algorithm: {algorithmName: ALGORITHM}
  parameters:
    - {name: lr, parameterType: double, feasibleSpace: {min: "0.1", max: "0.9"}}
MORE
  trialTemplate:
    primaryContainerName: main
    trialParameters: [{name: lr, reference: lr}]
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec:
        template:
          spec:
            containers:
              - name: main
                image: none
                env: [ENVIRONMENT]
                command: [/bin/sh, SCRIPT, "${trialParameters.lr}"]
)";

}  // namespace

v1::Experiment Read(const ShellExperiment& wanted) {
  const std::string environment =
      wanted.marks.empty() ? "" : "{name: MARKS, value: " + wanted.marks + "}";
  const auto parsed =
      ParseExperiments(absl::StrReplaceAll(kSpec, {{"NAME", wanted.name},
                                                   {"PARALLEL", std::to_string(wanted.parallel)},
                                                   {"TRIALS", std::to_string(wanted.trials)},
                                                   {"ALGORITHM", wanted.algorithm},
                                                   {"MORE", wanted.more},
                                                   {"ENVIRONMENT", environment},
                                                   {"SCRIPT", wanted.script}}));
  for (const Finding& finding : parsed[0].findings) {
    EXPECT_TRUE(finding.warning) << FormatFinding(finding, "spec");
  }
  return parsed[0].experiment;
}

}  // namespace shirabe::experiment
