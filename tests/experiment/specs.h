// Specifications for the tests of this folder.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "experiment/spec/parse_spec.h"

namespace shirabe::experiment {

// The text of tests/testdata/specs/<name>.
std::string ReadTestFile(const std::string& name);
// The files of katib/, as names for ReadTestFile.
std::vector<std::string> KatibFiles();

// `text` with the first `from` replaced; a test that looks for what is not there must fail.
inline std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

inline std::vector<std::string> Lines(const std::vector<Finding>& findings) {
  std::vector<std::string> lines;
  for (const Finding& finding : findings) lines.push_back(FormatFinding(finding, ""));
  return lines;
}

// The findings of a text of one document, each as "line:column: error: path: message".
inline std::vector<std::string> FindingsOf(const std::string& text) {
  const auto parsed = ParseExperiments(text);
  EXPECT_EQ(parsed.size(), 1u);
  return Lines(parsed[0].findings);
}

inline v1::Experiment ParseOnly(const std::string& text) {
  auto parsed = ParseExperiments(text);
  EXPECT_EQ(parsed.size(), 1u);
  for (const Finding& finding : parsed[0].findings) {
    if (!finding.warning) ADD_FAILURE() << FormatFinding(finding, "text");
  }
  return parsed[0].experiment;
}

// One parameter of each type; everything else as short as it may be.
inline const char* const kGood = R"(apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata:
  name: good
spec:
  objective:
    type: minimize
    objectiveMetricName: loss
    additionalMetricNames: [accuracy]
  maxTrialCount: 10
  parameters:
    - name: lr
      parameterType: double
      feasibleSpace: {min: "0.001", max: "0.1"}
    - name: units
      parameterType: int
      feasibleSpace: {min: "8", max: "64", step: "8"}
    - name: batch
      parameterType: discrete
      feasibleSpace: {list: ["16", "32"]}
    - name: optimizer
      parameterType: categorical
      feasibleSpace: {list: [sgd, adam]}
  trialTemplate:
    trialParameters:
      - {name: lr, reference: lr}
      - {name: units, reference: units}
      - {name: batch, reference: batch}
      - {name: optimizer, reference: optimizer}
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec:
        template:
          spec:
            containers:
              - name: training-container
                image: python:3.11
                command: [fit, "${trialParameters.lr}", "${trialParameters.units}"]
                args: ["${trialParameters.batch}", "${trialParameters.optimizer}"]
)";

}  // namespace shirabe::experiment
