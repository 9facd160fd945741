// OptimizationJobs of Kubeflow's Trainer as Experiments (the whole of one stands in
// tests/testdata/convert/optimization-job.yaml), and Experiments as OptimizationJobs.
#include "convert/optimization_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/file_io.h"
#include "convert/report.h"
#include "experiment/spec/message_tree.h"
#include "experiment/spec/parse_spec.h"
#include "tests/support/paths.h"

namespace shirabe::convert {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Replacements = std::vector<std::pair<std::string, std::string>>;

constexpr char kJob[] = R"(apiVersion: trainer.kubeflow.org/v1alpha1
kind: OptimizationJob
metadata:
  name: tune
  annotations: {shirabe.dev/managed-by: shirabe}
spec:
  objectives: [{metric: loss}]
  parameters:
    - {name: lr, searchSpace: {uniform: {min: "0.1", max: "0.9"}}}
  numTrials: 5
  trainJobTemplate:
    spec: {runtimeRef: {name: plain}}
)";

constexpr char kExperiment[] = R"(apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: tune, namespace: team, labels: {team: vision}}
spec:
  objective: {type: maximize, objectiveMetricName: accuracy, goal: 0.99}
  algorithm: {algorithmName: random, algorithmSettings: [{name: random_state, value: "7"}]}
  parallelTrialCount: 3
  maxTrialCount: 12
  parameters:
    - name: lr
      parameterType: double
      feasibleSpace: {min: "0.01", max: "1", distribution: logUniform}
    - {name: layers, parameterType: int, feasibleSpace: {min: "2", max: "8"}}
    - {name: opt, parameterType: categorical, feasibleSpace: {list: [adam, sgd]}}
  trialTemplate:
    trialParameters:
      - {name: rate, reference: lr}
      - {name: layers, reference: layers}
    trialSpec:
      apiVersion: trainer.kubeflow.org/v1alpha1
      kind: TrainJob
      spec:
        runtimeRef: {name: torch}
        trainer:
          image: local
          command: [python3, train.py]
          args: ["--lr=${trialParameters.rate}", "--layers=${trialParameters.layers}"]
)";

std::string Replaced(const char* text, const Replacements& replacements) {
  std::string replaced = text;
  for (const auto& [from, to] : replacements) {
    EXPECT_THAT(replaced, HasSubstr(from));
    replaced = absl::StrReplaceAll(replaced, {{from, to}});
  }
  return replaced;
}

std::string FindingsOf(const Conversion& conversion) {
  std::string text;
  for (const experiment::Finding& finding : conversion.findings) {
    if (!finding.warning) absl::StrAppend(&text, experiment::FormatFinding(finding, "file"), "\n");
  }
  return text;
}

std::string Refused(const Replacements& replacements) {
  return FindingsOf(Convert(Replaced(kJob, replacements), {.name = "it"}));
}

Conversion Written(const Replacements& replacements = {}) {
  return WriteOptimizationJob(Replaced(kExperiment, replacements));
}

std::string LinesOf(const Conversion& conversion) { return ReportLines(conversion, "file"); }

TEST(OptimizationJobTest, DefaultsAreThoseOfItsSchema) {
  const Conversion conversion = Convert(Replaced(kJob, {{"  numTrials: 5\n", ""}}), {.name = "it"});
  ASSERT_EQ(FindingsOf(conversion), "");
  const v1::ExperimentSpec& spec = conversion.experiment.spec();
  EXPECT_EQ(conversion.format, kJobFormat);
  EXPECT_EQ(spec.objective().type(), v1::MINIMIZE);
  EXPECT_EQ(spec.objective().metric_strategies(0).value(), v1::LATEST);
  EXPECT_EQ(spec.algorithm().algorithm_name(), "random");
  EXPECT_EQ(spec.max_trial_count(), 1);
  EXPECT_EQ(spec.parallel_trial_count(), 1);
  EXPECT_EQ(spec.parameters(0).parameter_type(), v1::DOUBLE);
}

TEST(OptimizationJobTest, ParametersComeInTheEnvironmentAndInAnAnnotation) {
  const Conversion conversion = Convert(kJob, {.name = "it"});
  ASSERT_EQ(FindingsOf(conversion), "");
  const std::string yaml = experiment::ToYaml(conversion.experiment);
  EXPECT_THAT(yaml,
              AllOf(HasSubstr("- name: KUBEFLOW_TRAINER_OPT_lr\n"),
                    HasSubstr("- name: KUBEFLOW_TRAINER_OPT_LR\n"),
                    HasSubstr("value: ${trialParameters.lr}"),
                    HasSubstr(R"(shirabe.dev/parameters: "{\"lr\":\"${trialParameters.lr}\"}")")));
}

TEST(OptimizationJobTest, ATextThatWouldBreakTheAnnotationLeavesItOut) {
  const Conversion conversion = Convert(Replaced(kJob, {{"{uniform: {min: \"0.1\", max: \"0.9\"}}",
                                                         "{categorical: {choices: ['a\"b', c]}}"}}),
                                        {.name = "it"});
  ASSERT_EQ(FindingsOf(conversion), "");
  EXPECT_THAT(experiment::ToYaml(conversion.experiment), Not(HasSubstr(kTrialAssignment)));
}

TEST(OptimizationJobTest, ASeedBelowZeroIsAnother) {
  const Conversion conversion = Convert(
      Replaced(kJob, {{"numTrials: 5", "searchAlgorithm: {random: {seed: -9223372036854775808}}"}}),
      {.name = "it"});
  ASSERT_EQ(FindingsOf(conversion), "");
  EXPECT_EQ(conversion.experiment.spec().algorithm().algorithm_settings(0).value(),
            "9223372036854775807");
  EXPECT_THAT(LinesOf(conversion), HasSubstr("changed: spec.searchAlgorithm.random.seed"));
}

TEST(OptimizationJobTest, NamesThatDifferByCaseKeepTheirOwnVariablesAlone) {
  v1::ExperimentSpec spec;
  for (const char* name : {"lr", "Lr", "LR", "x"}) spec.add_parameters()->set_name(name);
  std::string names;
  for (const auto& [variable, parameter] : JobVariables(spec.parameters())) {
    absl::StrAppend(&names, variable.substr(21), "=", parameter, " ");
  }
  EXPECT_EQ(names, "lr=lr Lr=Lr LR=LR x=x X=x ");
}

TEST(OptimizationJobTest, AVariableOfTheTemplateGivesWayAndIsSaid) {
  const Conversion conversion = Convert(
      Replaced(kJob,
               {{"{runtimeRef: {name: plain}}",
                 "{trainer: {env: [{name: KUBEFLOW_TRAINER_OPT_LR, value: mine}, {name: A}]}}"}}),
      {.name = "it"});
  ASSERT_EQ(FindingsOf(conversion), "");
  EXPECT_THAT(experiment::ToYaml(conversion.experiment),
              AllOf(Not(HasSubstr("value: mine")), HasSubstr("- name: A\n")));
  EXPECT_THAT(LinesOf(conversion), HasSubstr("its trainer.env has KUBEFLOW_TRAINER_OPT_LR"));
}

TEST(OptimizationJobTest, WhatItsSchemaForbidsIsRefusedWithItsPlace) {
  const std::string uniform = "{uniform: {min: \"0.1\", max: \"0.9\"}}";
  EXPECT_THAT(Refused({{"[{metric: loss}]", "[{metric: a}, {metric: b}]"}}),
              HasSubstr("spec.objectives: has 2 entries: give exactly one"));
  EXPECT_THAT(Refused({{"numTrials: 5", "numTrials: 101"}}),
              HasSubstr("101 is more than 100: the annotation shirabe.dev/num-trials takes more"));
  EXPECT_THAT(Refused({{"numTrials: 5", "parallelTrials: 2"}}),
              HasSubstr("spec.parallelTrials: 2 is more than numTrials 1: lower it"));
  EXPECT_THAT(Refused({{uniform, "{}"}}),
              HasSubstr("has 0 of uniform, logUniform and categorical"));
  EXPECT_THAT(Refused({{uniform, "{logUniform: {min: \"0\", max: \"1\"}}"}}),
              HasSubstr("0 is not greater than 0"));
  EXPECT_THAT(Refused({{"\"0.1\", max: \"0.9\"", "\"0.9\", max: \"0.1\""}}),
              HasSubstr("min: 0.9 is not less than max 0.1: lower it"));
  EXPECT_THAT(Refused({{"\"0.9\"", "\"1e999\""}}), HasSubstr("max: must be a finite number"));
  EXPECT_THAT(Refused({{"numTrials: 5", "searchAlgorithm: {random: {}, grid: {}}"}}),
              HasSubstr("has random and grid: give one"));
  EXPECT_THAT(Refused({{"numTrials: 5", "searchAlgorithm: {random: {seed: often}}"}}),
              HasSubstr("seed: must be a whole number"));
  EXPECT_THAT(Refused({{"spec: {runtimeRef", "metadata: {name: mine}\n    spec: {runtimeRef"}}),
              HasSubstr("metadata.name: cannot be set in a template"));
  EXPECT_THAT(Refused({{"name: lr", "name: 'l=r'"}}), HasSubstr("environment variable"));
  EXPECT_THAT(Refused({{"v1alpha1", "v1"}}), HasSubstr("write trainer.kubeflow.org/v1alpha1"));
  EXPECT_THAT(Refused({{"numTrials: 5", "numTrails: 5"}}),
              HasSubstr("did you mean \"numTrials\"?"));
}

TEST(OptimizationJobTest, AWrongAnnotationIsNamedWithItsValueAndTheFix) {
  const auto with = [](const std::string& annotation) {
    return Refused({{"shirabe.dev/managed-by: shirabe", annotation}});
  };
  EXPECT_THAT(with("shirabe.dev/num-trials: many"),
              AllOf(HasSubstr(R"(metadata.annotations["shirabe.dev/num-trials"]: must be a)"),
                    HasSubstr("many")));
  EXPECT_THAT(
      with("shirabe.dev/algorithm: tpee"),
      AllOf(HasSubstr("tpe"), HasSubstr(R"((from metadata.annotations["shirabe.dev/algo)")));
  EXPECT_THAT(with("shirabe.dev/algorithm-settings: fast"),
              HasSubstr("\"fast\" is no setting: write NAME=VALUE"));
  EXPECT_THAT(with("shirabe.dev/early-stopping: medain"),
              AllOf(HasSubstr("medain"), HasSubstr("(from metadata.annotations")));
  EXPECT_THAT(with("shirabe.dev/early-stopping-settings: a=1"),
              HasSubstr("add shirabe.dev/early-stopping"));
  EXPECT_THAT(with("shirabe.dev/num-trails: '3'"),
              HasSubstr("did you mean shirabe.dev/num-trials?"));
}

TEST(OptimizationJobTest, AnExperimentCrossesAndComesBackAsTheSame) {
  const Conversion written = Written();
  ASSERT_THAT(written.findings, IsEmpty());
  const std::string yaml = experiment::YamlOf(written.object);
  EXPECT_THAT(yaml, AllOf(HasSubstr("seed: 7"), HasSubstr("numTrials: 12"),
                          HasSubstr("direction: Maximize"), HasSubstr("logUniform"),
                          HasSubstr("--lr=$(KUBEFLOW_TRAINER_OPT_lr)"),
                          Not(HasSubstr("managed-by")), Not(HasSubstr("trialParameters"))));
  EXPECT_THAT(LinesOf(written),
              AllOf(HasSubstr("left out: spec.objective.goal"),
                    HasSubstr("changed: spec.objective.objectiveMetricName"),
                    HasSubstr("changed: spec.trialTemplate.trialSpec.spec.trainer.args")));
  const Conversion back = Convert(yaml, {.name = "it"});
  ASSERT_EQ(FindingsOf(back), "");
  const v1::ExperimentSpec& spec = back.experiment.spec();
  EXPECT_EQ(spec.parameters_size(), 3);
  EXPECT_EQ(spec.parameters(1).parameter_type(), v1::INT);
  EXPECT_EQ(spec.max_trial_count(), 12);
  EXPECT_EQ(spec.algorithm().algorithm_settings(0).value(), "7");
  // And once more: what Shirabe has added for the trials is not taken for the user's.
  const Conversion again = WriteOptimizationJob(experiment::ToYaml(back.experiment));
  ASSERT_THAT(again.findings, IsEmpty());
  EXPECT_EQ(again.object["spec"]["trainJobTemplate"]["spec"]["trainer"]["args"],
            written.object["spec"]["trainJobTemplate"]["spec"]["trainer"]["args"]);
  EXPECT_EQ(again.object["spec"]["parameters"], written.object["spec"]["parameters"]);
}

TEST(OptimizationJobTest, WhatOnlyShirabeCanDoStandsInAnnotations) {
  const Conversion written =
      Written({{"algorithmName: random, algorithmSettings: [{name: random_state, value: \"7\"}]",
                "algorithmName: tpe"},
               {"maxTrialCount: 12",
                "maxTrialCount: 400\n  maxFailedTrialCount: 2\n"
                "  earlyStopping: {algorithmName: medianstop}"}});
  ASSERT_EQ(FindingsOf(written), "");
  const auto& annotations = written.object["metadata"]["annotations"];
  EXPECT_EQ(annotations[kJobManagedBy], "shirabe");
  EXPECT_EQ(annotations[kJobAlgorithm], "tpe");
  EXPECT_EQ(annotations[kJobTrials], "400");
  EXPECT_EQ(annotations[kJobFailures], "2");
  EXPECT_EQ(annotations[kJobStopping], "medianstop");
  EXPECT_EQ(written.object["spec"]["numTrials"], 100);
  EXPECT_THAT(LinesOf(written), HasSubstr("upstream's controller does not"));
  EXPECT_EQ(FindingsOf(Convert(experiment::YamlOf(written.object), {.name = "it"})), "");
}

TEST(OptimizationJobTest, StepsAndListsOfNumbersBecomeChoicesOrAreSaid) {
  const std::string layers = "feasibleSpace: {min: \"2\", max: \"8\"}";
  const Conversion stepped =
      Written({{layers, "feasibleSpace: {min: \"2\", max: \"8\", step: \"2\"}"}});
  ASSERT_EQ(FindingsOf(stepped), "");
  EXPECT_EQ(stepped.object["spec"]["parameters"][1]["searchSpace"]["categorical"]["choices"],
            nlohmann::ordered_json::array({"2", "4", "6", "8"}));
  const Conversion many =
      Written({{layers, "feasibleSpace: {min: \"2\", max: \"8000\", step: \"2\"}"}});
  EXPECT_THAT(LinesOf(many), HasSubstr("left out: spec.parameters[1].feasibleSpace.step"));
  const Conversion discrete =
      Written({{"int, " + layers, "discrete, feasibleSpace: {list: [1, 4]}"}});
  EXPECT_THAT(LinesOf(discrete), HasSubstr("changed: spec.parameters[1].feasibleSpace.list"));
}

TEST(OptimizationJobTest, WhatCannotCrossIsAnErrorThatSaysSo) {
  EXPECT_THAT(
      FindingsOf(Written({{"apiVersion: trainer.kubeflow.org", "apiVersion: example.com"}})),
      HasSubstr("cannot cross: the template is a example.com/v1alpha1 TrainJob"));
  EXPECT_THAT(FindingsOf(Written({{"image: local", "image: 'i:${trialParameters.rate}'"}})),
              HasSubstr("spec.trialTemplate.trialSpec.spec.trainer.image: cannot cross: "
                        "${trialParameters.rate} stands where no environment is expanded"));
  EXPECT_THAT(
      LinesOf(Written({{"image: local", "env: [{name: LR, value: '${trialParameters.rate}'}]"}})),
      HasSubstr("LR is ${trialParameters.rate}: the program must read"));
  EXPECT_THAT(FindingsOf(WriteOptimizationJob("kind: Experiment\n")), HasSubstr("is required"));
}

}  // namespace
}  // namespace shirabe::convert
