// Files of other systems as Experiments. What each becomes stands in tests/testdata/convert/, in a
// file of the same name that ends in .golden; SHIRABE_WRITE_GOLDEN=1 writes them again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/file_io.h"
#include "convert/conversion.h"
#include "convert/report.h"
#include "convert/trial_program.h"
#include "experiment/spec/parse_spec.h"
#include "google/protobuf/util/message_differencer.h"
#include "tests/support/paths.h"

namespace shirabe::convert {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string Findings(const Conversion& conversion) {
  std::string text;
  for (const experiment::Finding& finding : conversion.findings) {
    absl::StrAppend(&text, experiment::FormatFinding(finding, "file"), "\n");
  }
  return text;
}

std::string Lines(const Conversion& conversion) { return ReportLines(conversion, "file"); }

// A search of AI Platform with these lines in hyperparameters, and these parameters.
std::string Search(const std::string& lines, const std::string& params) {
  return absl::StrCat("trainingInput:\n  pythonModule: a.b\n  hyperparameters:\n    maxTrials: 5\n",
                      lines, "    params:\n", params);
}

constexpr char kParam[] = "      - {parameterName: x, type: DOUBLE, minValue: 1, maxValue: 2}\n";

Conversion Converted(const std::string& text) { return Convert(text, {.name = "it"}); }

class GoldenTest : public testing::TestWithParam<const char*> {};

TEST_P(GoldenTest, BecomesWhatStandsInItsFileAndReadsBackAsItself) {
  const std::string path = SourceDir() + "/tests/testdata/convert/" + GetParam();
  const auto text = ReadFile(path);
  ASSERT_TRUE(text.ok()) << text.status();
  const auto conversion = ConvertIfForeign(*text, {.name = "file"});
  ASSERT_TRUE(conversion.has_value());
  ASSERT_FALSE(experiment::HasErrors(conversion->findings)) << Findings(*conversion);
  const std::string yaml = experiment::ToYaml(conversion->experiment);
  const std::string now = absl::StrCat(Lines(*conversion), Summary(*conversion), "\n---\n", yaml);
  if (std::getenv("SHIRABE_WRITE_GOLDEN") != nullptr) {
    ASSERT_TRUE(WriteFileAtomic(path + ".golden", now).ok());
  }
  EXPECT_EQ(ReadFile(path + ".golden").value_or(""), now);
  const auto parsed = experiment::ParseExperiments(yaml);
  ASSERT_EQ(parsed.size(), 1u);
  EXPECT_FALSE(experiment::HasErrors(parsed[0].findings));
  v1::Experiment whole = conversion->experiment;
  experiment::SetDefaults(whole);
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(whole, parsed[0].experiment));
}

INSTANTIATE_TEST_SUITE_P(Files, GoldenTest,
                         testing::Values("ai-platform.yaml", "single-job.yaml", "vertex.yaml",
                                         "optuna.json", "wandb.yaml", "optimization-job.yaml"),
                         [](const auto& test) {
                           return absl::StrReplaceAll(test.param, {{".", "_"}, {"-", "_"}});
                         });

TEST(ConvertTest, AnExperimentIsNoForeignFile) {
  EXPECT_FALSE(ConvertIfForeign("apiVersion: kubeflow.org/v1beta1\nkind: Experiment\n", {}));
  EXPECT_FALSE(ConvertIfForeign("kind: Experiment\ntrainingInput: {}\n", {}));
  EXPECT_FALSE(ConvertIfForeign("", {}));
  EXPECT_FALSE(ConvertIfForeign("[1, 2]", {}));
  EXPECT_FALSE(ConvertIfForeign("a: {name: b}\n", {}));
}

TEST(ConvertTest, MixedShapesAreAnErrorWithBothPlaces) {
  const auto mixed = ConvertIfForeign("trainingInput: {}\nstudySpec: {}\n", {});
  ASSERT_TRUE(mixed.has_value());
  EXPECT_THAT(Findings(*mixed),
              HasSubstr("file:2:1: error: has fields of AI Platform (\"trainingInput\" in line 1) "
                        "and of Vertex AI (\"studySpec\" in line 2)"));
}

TEST(ConvertTest, ASecondDocumentIsAnError) {
  const auto two = ConvertIfForeign("trainingInput: {}\n---\na: 1\n", {});
  ASSERT_TRUE(two.has_value());
  EXPECT_THAT(Findings(*two), HasSubstr("a second document"));
}

TEST(ConvertTest, AFileThatIsNotWhatFromSaysIsAnError) {
  EXPECT_THAT(Findings(Convert("trainingInput: {}\n", {.from = "wandb"})),
              HasSubstr("is a file of AI Platform (\"trainingInput\" in line 1), not of Weights"));
  EXPECT_THAT(Findings(Convert("a: 1\n", {})),
              HasSubstr("none of the fields by which a file is known"));
}

TEST(ConvertTest, AMisspelledFieldIsAnErrorAndAnUnknownOneIsSaid) {
  const std::string typed = Search("    maxParalelTrials: 2\n", kParam);
  EXPECT_THAT(Findings(Converted(typed)),
              HasSubstr("file:5:23: error: trainingInput.hyperparameters.maxParalelTrials: unknown "
                        "field of AI Platform; did you mean \"maxParallelTrials\"?"));
  const Conversion unknown = Converted(Search("    warpDrive: 2\n", kParam));
  EXPECT_EQ(Findings(unknown), "");
  EXPECT_THAT(Lines(unknown), HasSubstr("left out: trainingInput.hyperparameters.warpDrive"));
}

TEST(ConvertTest, EveryScalarOfAFileIsAccountedFor) {
  const auto text = ReadFile(SourceDir() + "/tests/testdata/convert/ai-platform.yaml");
  const Conversion conversion = Converted(*text);
  const std::string lines = Lines(conversion);
  for (const char* field : {"jobId",
                            "labels.team",
                            "scaleTier",
                            "masterType",
                            "masterConfig.imageUri",
                            "acceleratorConfig.count",
                            "acceleratorConfig.type",
                            "workerType",
                            "workerCount",
                            "region",
                            "packageUris",
                            "pythonModule",
                            "args",
                            "jobDir",
                            "runtimeVersion",
                            "pythonVersion",
                            "maxRunningTime",
                            "maxWaitTime",
                            "network",
                            "goal",
                            "hyperparameterMetricTag",
                            "algorithm",
                            "maxTrials",
                            "maxParallelTrials",
                            "maxFailedTrials",
                            "enableTrialEarlyStopping",
                            "resumePreviousJobId",
                            "params[1].scaleType",
                            "params[4].discreteValues"}) {
    EXPECT_TRUE(absl::StrContains(lines, absl::StrCat(field, " -> ")) ||
                absl::StrContains(lines, absl::StrCat(field, ": ")))
        << field;
  }
}

TEST(ConvertTest, PackagesAreKeptForWhatSubmitsTheJob) {
  const std::string uris = "gs://bucket/a-1.tar.gz,gs://bucket/job/b-2.tar.gz";
  const auto annotation = [](const Conversion& conversion) {
    const auto& all = conversion.experiment.metadata().annotations();
    const auto found = all.find("shirabe.dev/package-uris");
    return found == all.end() ? "" : found->second;
  };
  const std::string packages = "packageUris: [gs://bucket/a-1.tar.gz, gs://bucket/job/b-2.tar.gz]";
  const Conversion job =
      Converted("trainingInput: {pythonModule: trainer.task, " + packages + "}\n");
  EXPECT_EQ(Findings(job), "");
  EXPECT_EQ(annotation(job), uris);
  EXPECT_THAT(Lines(job), HasSubstr("changed: trainingInput.packageUris -> metadata.annotations"));
  const Conversion vertex = Converted(
      "workerPoolSpecs: [{machineSpec: {machineType: n1-standard-4}, pythonPackageSpec: "
      "{executorImageUri: executor, pythonModule: trainer.task, " +
      packages + "}}]\n");
  EXPECT_EQ(Findings(vertex), "");
  EXPECT_EQ(annotation(vertex), uris);
  // An image has its program in it, there as here.
  const Conversion image =
      Converted("trainingInput: {masterConfig: {imageUri: i}, " + packages + "}\n");
  EXPECT_EQ(annotation(image), "");
  EXPECT_THAT(Lines(image), HasSubstr("left out: trainingInput.packageUris"));
}

TEST(ConvertTest, WhatTheRulesFindIsSaidOfTheFieldOfTheFile) {
  const std::string swapped =
      Search("", "      - {parameterName: x, type: DOUBLE, minValue: 3, maxValue: 2}\n");
  EXPECT_THAT(Findings(Converted(swapped)),
              AllOf(HasSubstr("file:6:52: error: spec.parameters[0].feasibleSpace.min"),
                    HasSubstr("(from trainingInput.hyperparameters.params[0].minValue)")));
}

TEST(ConvertTest, WordsOfTheSlidesAreTakenForGooglesAndSaid) {
  const Conversion bayes = Converted(Search("    algorithm: BAYESIAN_OPTIMIZATION\n", kParam));
  EXPECT_EQ(bayes.experiment.spec().algorithm().algorithm_name(), "bayesianoptimization");
  EXPECT_THAT(Lines(bayes), HasSubstr("no word of Google's"));
  EXPECT_EQ(Converted(Search("    algorithm: RANDOM\n", kParam))
                .experiment.spec()
                .algorithm()
                .algorithm_name(),
            "random");
  EXPECT_THAT(Findings(Converted(Search("    algorithm: RANDOM_SERCH\n", kParam))),
              HasSubstr("did you mean RANDOM_SEARCH?"));
}

TEST(ConvertTest, DefaultsAreThoseOfAiPlatform) {
  const Conversion conversion = Converted(
      "trainingInput: {pythonModule: a, hyperparameters: {params: [{parameterName: x, type: "
      "INTEGER, minValue: 1, maxValue: 9}]}}\n");
  ASSERT_EQ(Findings(conversion), "");
  const v1::ExperimentSpec& spec = conversion.experiment.spec();
  EXPECT_EQ(spec.objective().type(), v1::MAXIMIZE);
  EXPECT_EQ(spec.objective().objective_metric_name(), "training/hptuning/metric");
  EXPECT_EQ(spec.max_trial_count(), 1);
  EXPECT_EQ(spec.parallel_trial_count(), 1);
  EXPECT_EQ(spec.algorithm().algorithm_name(), "auto");
}

TEST(ConvertTest, WhatIsMissingIsNamed) {
  EXPECT_THAT(Findings(Converted("trainingInput: {region: a}\n")), HasSubstr("--module-name"));
  EXPECT_THAT(Findings(Converted("predictionInput: {}\n")), HasSubstr("trains nothing"));
  EXPECT_THAT(Findings(Converted(Search("", "      - {parameterName: x, type: DOUBLE}\n"))),
              AllOf(HasSubstr("params[0].minValue: is required"),
                    HasSubstr("params[0].maxValue: is required")));
  EXPECT_THAT(Findings(Converted("method: bayes\nparameters: {a: {value: 1}}\n")),
              AllOf(HasSubstr("metric: is required"), HasSubstr("at least one parameter")));
}

TEST(ConvertTest, FlagsOfAJobWinOverItsFile) {
  const Conversion conversion =
      ConvertTrainingJob({.name = "Job_1",
                          .config = Search("", kParam),
                          .fields = {{"pythonModule", "c.d"}, {"masterConfig.imageUri", "image:1"}},
                          .labels = {{"team", "a"}},
                          .args = {"--one", "$(HOME)"},
                          .package_parent = "/home/me/$(x)"});
  ASSERT_EQ(Findings(conversion), "");
  const std::string yaml = experiment::ToYaml(conversion.experiment);
  EXPECT_THAT(yaml, AllOf(HasSubstr("name: job-1"), HasSubstr("- c.d"), HasSubstr("image: image:1"),
                          HasSubstr("team: a"), HasSubstr("- $$(HOME)"),
                          HasSubstr("/home/me/$$(x)"), Not(HasSubstr("a.b"))));
}

TEST(ConvertTest, AJobWithoutAFileIsOneTrial) {
  const Conversion conversion =
      ConvertTrainingJob({.name = "once", .fields = {{"pythonModule", "a"}}});
  ASSERT_EQ(Findings(conversion), "");
  EXPECT_EQ(conversion.experiment.spec().max_trial_count(), 1);
  EXPECT_EQ(conversion.experiment.metadata().annotations().at(kConvertedFrom), kSingleJob);
  EXPECT_THAT(Findings(ConvertTrainingJob({.name = "once", .config = "studySpec: {}\n"})),
              HasSubstr("is a file of Vertex AI"));
}

TEST(ConvertTest, AnOptunaStudyIsAskAndTell) {
  const Conversion conversion = Converted(
      R"({"x": {"name": "FloatDistribution", "attributes": {"low": 0, "high": 1, "log": false}}})");
  ASSERT_FALSE(experiment::HasErrors(conversion.findings)) << Findings(conversion);
  EXPECT_EQ(conversion.format, "optuna");
  EXPECT_TRUE(conversion.experiment.spec().shirabe().ask_and_tell());
  EXPECT_EQ(conversion.experiment.spec().objective().objective_metric_name(), "value");
}

TEST(ConvertTest, ACommandOfASweepHasItsForms) {
  const std::string sweep =
      "method: random\nprogram: t.py\nrun_cap: 3\nmetric: {name: loss}\n"
      "parameters: {a: {values: [x, y]}, b: {min: 0.5, max: 1.5}, amp: {value: true}}\n";
  const auto command = [&](const std::string& words) {
    return experiment::ToYaml(Converted(sweep + "command: " + words + "\n").experiment);
  };
  EXPECT_THAT(command("[run, '${args_no_hyphens}']"),
              HasSubstr("- amp=True\n              - a=${trialParameters.a}"));
  EXPECT_THAT(command("[run, '${args_json}']"),
              HasSubstr("\\\"a\\\": \\\"${trialParameters.a}\\\""));
  EXPECT_THAT(command("[run, '${envvar:HOME}']"), HasSubstr("- $(HOME)"));
  EXPECT_THAT(Findings(Converted(sweep + "command: ['${what}']\n")), HasSubstr("${args_json}"));
}

// PyYAML, which reads sweeps, takes y and n for texts.
TEST(ConvertTest, ValuesOfASweepKeepTheirTypes) {
  const std::string sweep =
      "method: grid\nprogram: t.py\nmetric: {name: loss}\nparameters:\n"
      "  axis: {values: [x, y, n]}\n  fp16: {values: [true, false]}\n"
      "  k: {values: [1, auto]}\n  sched: {values: [cos, null]}\n"
      "  epochs: {value: 5}\n  drop: {value: 1.0}\n  amp: {value: true}\n  tag: {value: 'true'}\n";
  const auto converted = [&](const std::string& words) {
    return Converted(sweep + "command: " + words + "\n");
  };
  const Conversion json = converted("[run, '${args_json}']");
  EXPECT_THAT(json.experiment.spec().parameters(0).feasible_space().list(),
              ElementsAre("x", "y", "n"));
  EXPECT_THAT(experiment::ToYaml(json.experiment),
              HasSubstr(R"(\"epochs\": 5, \"drop\": 1.0, \"amp\": true, \"tag\": \"true\")"));
  EXPECT_THAT(Findings(json), HasSubstr("the program gets fp16, k, sched as a text in JSON"));
  EXPECT_THAT(Findings(converted("[run, '${args_no_boolean_flags}']")),
              HasSubstr("the program gets fp16 as --NAME=True or --NAME=False"));
  EXPECT_THAT(Findings(converted("[run, '${args}']")), Not(HasSubstr("the program gets")));
  const Conversion variables = converted("[run, '--d=${envvar:DATA}/a', '${args}']");
  EXPECT_THAT(experiment::ToYaml(variables.experiment), HasSubstr("- --d=$(DATA)/a"));
  EXPECT_THAT(Findings(variables), HasSubstr("add DATA to it"));
  for (const char* wrong : {"${program}${envvar:X}", "a${envvar:Y", "${envvar:}"}) {
    EXPECT_THAT(Findings(converted(absl::StrCat("[run, '", wrong, "']"))),
                HasSubstr("cannot be taken over"));
  }
}

TEST(ConvertTest, AnExperimentNeedsNoConversion) {
  EXPECT_THAT(Findings(Converted("apiVersion: kubeflow.org/v1beta1\nkind: Experiment\n")),
              HasSubstr("2:7: error: is an Experiment: there is nothing to convert"));
}

TEST(MachineTypesTest, KnowsFamiliesAndNames) {
  EXPECT_EQ(FindMachineType("n1-standard-16")->memory_gb, 60);
  EXPECT_EQ(FindMachineType("complex_model_m_gpu")->gpus, 4);
  EXPECT_EQ(CpuRequest(*FindMachineType("n1-standard-2")), "1500m");
  EXPECT_EQ(CpuRequest(*FindMachineType("n1-standard-16")), "12");
  for (const char* none :
       {"", "n1-standard-", "n1-standard-0", "n1-standard--4", "x", "n1-standard-99999999999"}) {
    EXPECT_FALSE(FindMachineType(none)) << none;
  }
}

TEST(ReportJsonTest, HasTheCountsAndEveryField) {
  const auto json = ReportJson(Converted(Search("    goal: MINIMIZE\n", kParam)), "f.yaml");
  EXPECT_EQ(json["format"], "ai-platform");
  EXPECT_EQ(json["fields"].size(), json["taken"].get<size_t>() + json["changed"].get<size_t>() +
                                       json["leftOut"].get<size_t>());
  EXPECT_THAT(json.dump(), HasSubstr("\"became\":\"spec.objective.type\",\"value\":\"minimize\""));
}

}  // namespace
}  // namespace shirabe::convert
