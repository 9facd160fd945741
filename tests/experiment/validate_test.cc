// The rules, one by one: each case is a good file with one thing made wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "experiment/spec/local_support.h"
#include "experiment/spec/parse_spec.h"
#include "tests/experiment/specs.h"

namespace shirabe::experiment {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Case {
  const char* from;
  const char* to;
  const char* finding;  // a part of the only finding
};

void Expect(const Case& c) {
  SCOPED_TRACE(c.to);
  EXPECT_THAT(FindingsOf(Replaced(kGood, c.from, c.to)), ElementsAre(HasSubstr(c.finding)));
}

constexpr const char* kLr = R"({min: "0.001", max: "0.1"})";
constexpr const char* kUnits = R"({min: "8", max: "64", step: "8"})";
constexpr const char* kBatch = R"({list: ["16", "32"]})";
constexpr const char* kOptimizer = "{list: [sgd, adam]}";

TEST(Rules, OfRanges) {
  const Case kCases[] = {
      {kLr, "{min: 1}",
       "14:7: error: spec.parameters[0].feasibleSpace.max: is required for parameterType double"},
      {kLr, "{max: 1}", "feasibleSpace.min: is required for parameterType double"},
      {kLr, "{min: 2, max: 1}", "feasibleSpace.min: 2 is greater than max 1: swap them"},
      {kLr, "{min: 0, max: 1, step: 0}", "step: must be greater than 0, not 0"},
      {kLr, "{min: 0, max: 1, step: 2}", "step: 2 is more than max - min = 1"},
      {kLr, "{min: 0, max: 1, list: [1]}", "list: does not go with parameterType double"},
      {kLr, "{min: 0, max: 1, distribution: logUniform}",
       "min: must be greater than 0 for logUniform, not 0"},
      {kLr, "{min: -1, max: 1, distribution: logNormal}",
       "min: must be greater than 0 for logNormal, not -1"},
      {kLr, "{min: -1.7e308, max: 1.7e308}", "too wide"},
      {kUnits, "{min: 0.5, max: 4}", "min: 0.5 is not an integer, but parameterType is int"},
      {kUnits, "{min: 1, max: 4, step: 0.5}", "step: 0.5 is not an integer"},
  };
  for (const Case& c : kCases) Expect(c);
  for (const char* good :
       {"{min: 1, max: 1}", "{min: 1, max: 1, step: 1}", "{min: -5, max: 5}",
        "{min: 0.1, max: 0.3, step: 0.2}", "{min: 0.5, max: 1, distribution: normal}"}) {
    EXPECT_THAT(FindingsOf(Replaced(kGood, kLr, good)), IsEmpty()) << good;
  }
}

TEST(Rules, OfLists) {
  const Case kCases[] = {
      {kBatch, "{list: []}", "list: is required for parameterType discrete"},
      {kBatch, "{list: [16, x]}", "list[1]: \"x\" is not a finite number"},
      {kBatch, "{list: [16, \"inf\"]}", "list[1]: \"inf\" is not a finite number"},
      {kBatch, "{list: [1, 1.0]}", "list[1]: \"1.0\" and \"1\" are the same number"},
      {kBatch, "{list: [1, 2], min: 1}",
       "min: does not go with parameterType discrete: give a list"},
      {kOptimizer, "{list: [sgd, sgd]}", "list[1]: \"sgd\" is listed twice"},
      {kOptimizer, "{list: [sgd], step: 1}", "step: does not go with parameterType categorical"},
      {kOptimizer, "{list: [a, b], distribution: uniform}", "distribution: does not go with"},
  };
  for (const Case& c : kCases) Expect(c);
}

TEST(Rules, OfParameters) {
  EXPECT_THAT(FindingsOf(Replaced(kGood, "- name: units\n", "- name: lr\n")),
              Contains(HasSubstr("spec.parameters[1].name: \"lr\" is the name of another")));
  Expect({"parameterType: double", "parameterType: unknown", "is required: one of double, int"});
  EXPECT_THAT(
      FindingsOf(Replaced(Replaced(kGood, "- name: units\n", "- name: LR\n"), "reference: units",
                          "reference: LR")),
      ElementsAre(HasSubstr("warning: spec.parameters[1].name: \"LR\" and \"lr\" have the same "
                            "environment variable SHIRABE_PARAM_LR")));
}

TEST(Rules, OfObjectives) {
  Expect({"[accuracy]", "[loss]", "additionalMetricNames[0]: \"loss\" is the objectiveMetricName"});
  Expect({"[accuracy]", "[a, a]", "additionalMetricNames[1]: \"a\" is given twice"});
  Expect({"[accuracy]", "[\"\"]", "additionalMetricNames[0]: must not be empty"});
  Expect({"objectiveMetricName: loss", "objectiveMetricName: \"\"",
          "objectiveMetricName: is required"});
  Expect({"[accuracy]", "[a]\n    metricStrategies: [{name: b, value: min}]",
          "metricStrategies[0].name: \"b\" is neither the objective nor an additional metric"});
  Expect({"[accuracy]", "[a]\n    metricStrategies: [{name: a, value: min}, {name: a, value: max}]",
          "metricStrategies[1].name: \"a\" has a strategy already"});
  Expect({"[accuracy]", "[a]\n    goal: .inf", "goal: must be a finite number"});
}

TEST(Rules, OfCounts) {
  Expect({"  maxTrialCount: 10\n", "  maxTrialCount: 2\n  parallelTrialCount: 4\n",
          "11:23: error: spec.parallelTrialCount: 4 is more than maxTrialCount 2: lower it"});
  Expect({"  maxTrialCount: 10\n", "  maxTrialCount: 2\n  maxFailedTrialCount: 3\n",
          "warning: spec.maxFailedTrialCount: 3 is more than maxTrialCount 2"});
  Expect({"  maxTrialCount: 10\n", "",
          "warning: spec.maxTrialCount: neither maxTrialCount nor objective.goal"});
  Expect({"maxTrialCount: 10", "maxTrialCount: 0", "must be at least 1, not 0"});
  Expect({"  maxTrialCount: 10\n", "  maxTrialCount: 10\n  maxFailedTrialCount: -1\n",
          "must be at least 0, not -1"});
  EXPECT_THAT(FindingsOf(Replaced(Replaced(kGood, "  maxTrialCount: 10\n", ""), "[accuracy]",
                                  "[a]\n    goal: 0.1")),
              IsEmpty());
}

TEST(Rules, OfTemplates) {
  Expect({"{name: units, reference: units}", "{name: units, reference: unit}",
          "trialParameters[1].reference: \"unit\" is not a parameter of the search space; did you "
          "mean \"units\"?"});
  Expect({"{name: units, reference: units}", "{name: units, reference: \"${trialSpec.Nmae}\"}",
          "is unknown metadata"});
  Expect({"{name: units, reference: units}",
          "{name: units, reference: \"${trialSpec.Labels[team]}\"}",
          "trialParameters[1].reference: there is no "
          "spec.trialTemplate.trialSpec.metadata.labels[\"team\"]; add it as text"});
  Expect({"\"${trialParameters.units}\"", "x", "trialParameters[1].name: \"units\" is not used"});
  Expect({"\"${trialParameters.units}\"", "\"${trialParameters.units}${trialParameters.unit}\"",
          "39:57: error: spec.trialTemplate.trialSpec.spec.template.spec.containers[0].command[2]: "
          "${trialParameters.unit} is bound by no trialParameter; did you mean \"units\"?"});
  Expect({"{name: batch, reference: batch}", "{name: batch, reference: lr}",
          "\"lr\" has the trialParameter \"lr\" already"});
  Expect({"      apiVersion: batch/v1\n", "", "trialSpec.apiVersion: is required"});
  Expect({"      kind: Job\n", "      kind: Job\n      metadata: {name: x}\n",
          "trialSpec.metadata.name: remove it"});
  Expect({"name: training-container", "name: main",
          "has no container \"training-container\"; it has main"});
  Expect({"    trialSpec:\n",
          "    configMap: {configMapName: a, templatePath: b}\n    trialSpec:\n",
          "configMap: does not go with trialSpec"});
  Expect({"image: python:3.11", "image: \"${trialSpec.Name}\"",
          "warning: spec.trialTemplate.trialSpec.spec"});
}

TEST(Rules, AnUnboundNameOfAParameterSaysHowToBindIt) {
  const auto findings =
      FindingsOf(Replaced(kGood, "      - {name: units, reference: units}\n", ""));
  EXPECT_THAT(findings, Contains(HasSubstr("add {name: units, reference: units}")));
}

TEST(Rules, AParameterThatNothingTakesIsAWarning) {
  EXPECT_THAT(
      FindingsOf(Replaced(Replaced(kGood, "      - {name: units, reference: units}\n", ""),
                          "\"${trialParameters.units}\"", "x")),
      ElementsAre(HasSubstr("warning: spec.parameters[1].name: \"units\" is referenced by no "
                            "trialParameter: a trial can only read it as SHIRABE_PARAM_UNITS")));
}

TEST(Rules, DevicesOfSeveralTypesInOneContainerAreAWarning) {
  const auto with = [](const std::string& limits) {
    return FindingsOf(Replaced(kGood, "image: python:3.11",
                               "image: python:3.11\n                resources: {limits: {" +
                                   limits + "}, requests: {cpu: 1, nvidia.com/gpu: 1}}"));
  };
  EXPECT_THAT(with("nvidia.com/gpu: 1, rdma/hca: 1, memory: 1Gi"), IsEmpty());
  EXPECT_THAT(
      with("nvidia.com/gpu: 1, nvidia.com/mig-1g.10gb: 1"),
      ElementsAre(AllOf(HasSubstr("warning: spec.trialTemplate.trialSpec.spec.template.spec."
                                  "containers[0].resources: asks for devices of several "
                                  "types (nvidia.com/gpu, nvidia.com/mig-1g.10gb)"),
                        HasSubstr("ask for one type"))));
}

TEST(Rules, ADeviceIsGivenWholeOrNotAtAll) {
  const auto with = [](const std::string& count) {
    return FindingsOf(
        Replaced(kGood, "image: python:3.11",
                 "image: python:3.11\n                resources: {limits: {" + count + "}}"));
  };
  for (const char* bad : {"0.5", "\"0.5\"", "-1", "one", "1e9", "\"\"", "[1]"}) {
    EXPECT_THAT(with(std::string("nvidia.com/gpu: ") + bad),
                ElementsAre(AllOf(HasSubstr("containers[0].resources.limits[\"nvidia.com/gpu\"]: "
                                            "must be a whole number of devices, such as 1"),
                                  Not(HasSubstr("warning")))))
        << bad;
  }
  for (const char* good : {"0", "1", "\"2\"", "8.0"}) {
    EXPECT_THAT(with(std::string("nvidia.com/gpu: ") + good), IsEmpty()) << good;
  }
  EXPECT_THAT(with("amd.com/gpu: 0.5"), Not(IsEmpty()));
  EXPECT_THAT(with("cpu: 0.5, rdma/hca: 1"), IsEmpty()) << "a share of a CPU is one";
}

TEST(Rules, OtherKindsNeedConditions) {
  const auto findings = FindingsOf(Replaced(kGood, "kind: Job", "kind: Workflow"));
  EXPECT_THAT(findings, ElementsAre(HasSubstr("successCondition: is required for kind Workflow"),
                                    HasSubstr("failureCondition: is required for kind Workflow")));
}

TEST(Rules, OfCollectors) {
  const auto with = [](const std::string& spec) {
    return FindingsOf(std::string(kGood) + "  metricsCollectorSpec: " + spec + "\n");
  };
  EXPECT_THAT(with("{collector: {kind: File}, source: {fileSystemPath: {path: /a, format: JSON}, "
                   "filter: {metricsFormat: [\"(a)(b)\"]}}}"),
              Contains(HasSubstr("filter: does not go with the format JSON")));
  EXPECT_THAT(with("{collector: {kind: File}, source: {fileSystemPath: {kind: Directory}}}"),
              ElementsAre(HasSubstr("fileSystemPath.kind: must be File")));
  EXPECT_THAT(
      with("{collector: {kind: TensorFlowEvent}, source: {fileSystemPath: {format: TEXT}}}"),
      ElementsAre(HasSubstr("format: does not go with TensorFlowEvent")));
  EXPECT_THAT(
      with("{collector: {kind: PrometheusMetric}, source: {httpGet: {port: 0, path: m}}}"),
      ElementsAre(HasSubstr("from 1 to 65535"), HasSubstr("path: \"m\" must begin with '/'")));
  EXPECT_THAT(with("{collector: {kind: Custom}, source: {fileSystemPath: {path: a}}}"),
              ElementsAre(HasSubstr("customCollector: is required"), HasSubstr("kind: is required"),
                          HasSubstr("must be absolute")));
  EXPECT_THAT(with("{collector: {kind: PrometheusMetric}, source: {httpGet: {scheme: HTTPS}}}"),
              Contains(HasSubstr("\"HTTPS\" is not supported: serve the metrics over HTTP")));
  EXPECT_THAT(with("{collector: {kind: Stdout}}"),
              ElementsAre(HasSubstr("did you mean \"StdOut\"?")));
  EXPECT_THAT(with("{source: {fileSystemPath: {path: /a}}}"),
              ElementsAre(HasSubstr(
                  "warning: spec.metricsCollectorSpec.source.fileSystemPath: has no effect")));
}

// What is right in itself, and does not do on one machine what it does in a cluster.
TEST(Rules, OfCollectorsOnOneMachine) {
  const auto with = [](int parallel, const std::string& spec) {
    return FindingsOf(absl::StrCat(kGood, "  parallelTrialCount: ", parallel,
                                   "\n  metricsCollectorSpec: ", spec, "\n"));
  };
  const std::string served = "{collector: {kind: PrometheusMetric}, source: {httpGet: {port: 9}}}";
  EXPECT_THAT(with(1, served), IsEmpty());
  EXPECT_THAT(with(3, served),
              ElementsAre(HasSubstr("warning: spec.metricsCollectorSpec.source.httpGet.port: as "
                                    "processes of one machine the 3 trials at a time would all "
                                    "serve port 9, and only one of them is asked")));
  EXPECT_THAT(with(1, "{collector: {kind: Custom, customCollector: {name: csv}}}"), IsEmpty())
      << "a cluster has such containers";
  EXPECT_THAT(with(3, "{collector: {kind: TensorFlowEvent}}"), IsEmpty());
  EXPECT_THAT(with(3, "{collector: {kind: Push}}"), IsEmpty());
}

// Pods have a file each, processes of this machine have not.
TEST(Rules, OneFileForTrialsAtTheSameTimeIsSaid) {
  v1::Experiment experiment = ParseOnly(ReadTestFile("katib/collector-json.yaml"));
  v1::ExperimentSpec& spec = *experiment.mutable_spec();
  spec.set_parallel_trial_count(3);
  const auto paths = [&] {
    std::vector<std::string> found;
    for (const Finding& finding : FindIneffectiveLocally(experiment)) found.push_back(finding.path);
    return found;
  };
  constexpr char kPath[] = "spec.metricsCollectorSpec.source.fileSystemPath.path";
  EXPECT_THAT(paths(), testing::Contains(kPath));
  spec.set_parallel_trial_count(1);
  EXPECT_THAT(paths(), testing::Not(testing::Contains(kPath)));
  spec.set_parallel_trial_count(3);
  spec.mutable_metrics_collector_spec()->mutable_source()->mutable_file_system_path()->set_path(
      "$(SHIRABE_OUTPUT_DIR)/log");
  EXPECT_THAT(paths(), testing::Not(testing::Contains(kPath)));
}

TEST(Rules, WhatCollectsByAContainerDoesNotRunHere) {
  const v1::Experiment custom = ParseOnly(ReadTestFile("katib/collector-custom.yaml"));
  ASSERT_FALSE(FindIneffectiveLocally(custom).empty());
  EXPECT_EQ(FindIneffectiveLocally(custom)[0].path, "spec.metricsCollectorSpec.collector.kind");
  const Status status = CheckRunnable(custom);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(status), HasSubstr("a container beside the trial"));
  for (const char* name : {"tfevent", "prometheus", "push", "none", "json"}) {
    const auto file = absl::StrCat("katib/collector-", name, ".yaml");
    EXPECT_TRUE(CheckRunnable(ParseOnly(ReadTestFile(file))).ok()) << name;
  }
}

TEST(Rules, OfFilters) {
  const auto with = [](const std::string& format) {
    return FindingsOf(std::string(kGood) +
                      "  metricsCollectorSpec: {source: {filter: {metricsFormat: ['" + format +
                      "']}}}\n");
  };
  EXPECT_THAT(with(R"(([\w|-]+)\s*=\s*([+-]?\d*(\.\d+)?([Ee][+-]?\d+)?))"), IsEmpty());
  EXPECT_THAT(with(R"((?:x )?(?P<name>\w+): (.*))"), IsEmpty());
  EXPECT_THAT(with("(unclosed"),
              ElementsAre(HasSubstr("metricsFormat[0]: is not a regular expression")));
  EXPECT_THAT(with("loss=(.*)"), ElementsAre(HasSubstr("needs two groups")));
  EXPECT_THAT(
      with("(loss)=(.*)"),
      ElementsAre(HasSubstr("warning: spec.metricsCollectorSpec.source.filter.metricsFormat: "
                            "cannot find the metric \"accuracy\"")));
}

TEST(Rules, OfAlgorithms) {
  const auto with = [](const std::string& spec) {
    return FindingsOf(std::string(kGood) + "  algorithm: " + spec + "\n");
  };
  EXPECT_THAT(with("{algorithmName: sobol}"), IsEmpty());
  EXPECT_THAT(with("{algorithmName: soboll}"), ElementsAre(HasSubstr("did you mean \"sobol\"?")));
  EXPECT_THAT(with("{algorithmName: enas}"),
              ElementsAre(HasSubstr("warning: spec.algorithm.algorithmName: "
                                    "\"enas\" searches architectures")));
  EXPECT_THAT(with("{algorithmName: random, algorithmSettings: [{name: random_state, value: x}]}"),
              ElementsAre(HasSubstr("error: spec.algorithm.algorithmSettings[0]")));
  EXPECT_THAT(
      with(
          "{algorithmName: random, algorithmSettings: [{name: a, value: 1}, {name: a, value: 2}]}"),
      Contains(HasSubstr("algorithmSettings[1].name: \"a\" is given twice")));
  const auto katibs = [&](const std::string& name, const std::string& value) {
    return with("{algorithmName: bayesianoptimization, algorithmSettings: [{name: " + name +
                ", value: " + value + "}]}");
  };
  EXPECT_THAT(katibs("base_estimator", "GP"), IsEmpty());
  EXPECT_THAT(katibs("base_estimator", "RF"),
              ElementsAre(AllOf(HasSubstr("warning: spec.algorithm.algorithmSettings[0].value: "
                                          "base_estimator \"RF\" is answered by another: "),
                                HasSubstr("Gaussian process"))));
  EXPECT_THAT(katibs("acq_func", "EIps"), ElementsAre(HasSubstr("warning: ")));
  EXPECT_THAT(with("{algorithmName: grid}"),
              ElementsAre(HasSubstr("error: spec.algorithm.algorithmName")));
  EXPECT_THAT(FindingsOf(std::string(kGood) + "  earlyStopping: {algorithmName: medianstopp}\n"),
              ElementsAre(HasSubstr("did you mean \"medianstop\"?")));
}

TEST(Rules, ArchitectureSearchNeedsAnotherAlgorithm) {
  std::string text = ReadTestFile("katib/nas-enas.yaml");
  EXPECT_THAT(FindingsOf(Replaced(text, "algorithmName: enas", "algorithmName: random")),
              ElementsAre(HasSubstr(
                  "spec.nasConfig: the algorithm \"random\" does not search architectures")));
  EXPECT_THAT(FindingsOf(std::string(kGood) + "  nasConfig: {graphConfig: {numLayers: 1}}\n"),
              Contains(HasSubstr("spec.nasConfig: does not go with parameters")));
}

TEST(Rules, OfStartPoints) {
  const auto with = [](const std::string& point) {
    return FindingsOf(std::string(kGood) + "  shirabe: {start: [{" + point + "}]}\n");
  };
  EXPECT_THAT(with("lr: 0.01, units: 8, batch: \"16\", optimizer: adam"), IsEmpty());
  EXPECT_THAT(with("lr: 0.01, units: 8, batch: 16"),
              ElementsAre(HasSubstr("start[0]: parameter \"optimizer\" is missing")));
  EXPECT_THAT(with("lr: 0.01, units: 8.5, batch: 16, optimizer: sgd"),
              ElementsAre(HasSubstr("must be an integer, not 8.5")));
  EXPECT_THAT(with("lr: 0.01, units: 8, batch: 16, optimizer: lion"),
              ElementsAre(HasSubstr("has no value \"lion\"")));
  EXPECT_THAT(with("lr: 5, units: 8, batch: 16, optimizer: sgd"), ElementsAre(HasSubstr("lr")));
  EXPECT_THAT(with("lr: 0.01, units: 8, batch: 16, optimizer: sgd, extra: 1"),
              ElementsAre(HasSubstr("\"extra\" does not exist")));
}

TEST(Rules, OfLimitsAndStopWhen) {
  const std::string from = "  parameters:";
  const auto with = [&](const std::string& shirabe) {
    return Replaced(kGood, from, "  shirabe: {" + shirabe + "}\n" + from);
  };
  const std::pair<const char*, const char*> kWrong[] = {
      {"limits: {experimentSeconds: 0}",
       "spec.shirabe.limits.experimentSeconds: must be greater than 0"},
      {"limits: {trialSeconds: -1}",
       "spec.shirabe.limits.trialSeconds: must be at least 0, not -1"},
      {"limits: {hours: 3}", "hours"},
      {"stopWhen: {noImprovementTrials: 0}", "noImprovementTrials: must be at least 1, not 0"},
      {"stopWhen: {regretBelow: 0}", "regretBelow: must be greater than 0"},
      {"stopWhen: {expectedGain: {below: 0.1}}",
       "spec.shirabe.stopWhen.expectedGain: this version does not stop by cost yet"},
      {"stopWhen: {minTrials: 5}", "warning: spec.shirabe.stopWhen.minTrials: has no effect"},
      {"stopWhen: {minImprovement: 5}",
       "minImprovement: has no effect without noImprovementTrials"},
      {"stopWhen: {noImprovementTrials: 10}", "10 is not less than maxTrialCount 10"},
  };
  for (const auto& [shirabe, finding] : kWrong) {
    EXPECT_THAT(FindingsOf(with(shirabe)), ElementsAre(HasSubstr(finding))) << shirabe;
  }
  EXPECT_THAT(FindingsOf(with("limits: {experimentSeconds: 86400, trialSeconds: 0.5}, stopWhen: "
                              "{noImprovementTrials: 3, minImprovement: 0.1, minTrials: 5, "
                              "regretBelow: 0.01}")),
              IsEmpty());
}

TEST(Rules, TheRegretIsBoundedByAModelOnly) {
  const auto with = [](const std::string& spec) {
    return Replaced(
        kGood, "  parameters:", spec + "  shirabe: {stopWhen: {regretBelow: 0.1}}\n  parameters:");
  };
  EXPECT_THAT(FindingsOf(with("  algorithm: {algorithmName: tpe}\n")),
              ElementsAre(HasSubstr("regretBelow: the algorithm \"tpe\" has no model here that "
                                    "says what is left to gain: use spec.algorithm.algorithmName "
                                    "bayesianoptimization, or stopWhen.noImprovementTrials")));
  EXPECT_THAT(FindingsOf(with("  parallelTrialCount: 10\n")),
              ElementsAre(HasSubstr("\"auto\" has no model here")))
      << "where all trials run at once it uses none";
  EXPECT_THAT(FindingsOf(with("")), IsEmpty());
}

TEST(Rules, CheckpointsLieInOnePlace) {
  const auto with = [](const std::string& volume) {
    return FindingsOf(std::string(kGood) + "  shirabe: {checkpoint: {volume: {" + volume + "}}}\n");
  };
  EXPECT_THAT(with("claim: c"), IsEmpty());
  EXPECT_THAT(with("hostPath: /var/lib/checkpoints"), IsEmpty());
  EXPECT_THAT(with("size: 10Gi, storageClassName: fast"), IsEmpty());
  EXPECT_THAT(with("claim: c, size: 10Gi"), ElementsAre(HasSubstr("volume: give one of claim")));
  EXPECT_THAT(with("hostPath: checkpoints"), ElementsAre(HasSubstr("not an absolute path")));
  EXPECT_THAT(with("claim: c, storageClassName: fast"), ElementsAre(HasSubstr("give size")));
}

TEST(Rules, WarmStartsNameEachExperimentOnce) {
  const auto with = [](const std::string& names) {
    return FindingsOf(std::string(kGood) + "  shirabe: {warmStart: {experiments: " + names +
                      "}}\n");
  };
  EXPECT_THAT(with("[a, b]"), IsEmpty());
  EXPECT_THAT(with("[a, b, a]"),
              ElementsAre(HasSubstr("experiments[2]: \"a\" is given twice: remove one")));
}

TEST(Rules, EarlyStoppingSettingsAreThoseOfTheRule) {
  const auto with = [](const std::string& rule) {
    return FindingsOf(std::string(kGood) + "  earlyStopping: " + rule + "\n");
  };
  EXPECT_THAT(
      with("{algorithmName: medianstop, algorithmSettings: [{name: start_step, value: 5}]}"),
      IsEmpty());
  EXPECT_THAT(
      with("{algorithmName: medianstop, algorithmSettings: [{name: start_steps, value: 5},"
           " {name: min_trials_required, value: 0}]}"),
      ElementsAre(HasSubstr("did you mean \"start_step\"?"), HasSubstr("it must be at least 1")));
  EXPECT_THAT(
      with("{algorithmName: medianstop, algorithmSettings: [{name: random_state, value: 5}]}"),
      ElementsAre(HasSubstr("setting \"random_state\" is not known")));
  EXPECT_THAT(with("{algorithmName: threshold, algorithmSettings: [{name: lower, value: 2},"
                   " {name: upper, value: 1}]}"),
              ElementsAre(HasSubstr("\"lower\" is 2 and must not be greater than \"upper\"")));
}

TEST(Rules, HoldForMessagesToo) {
  v1::Experiment experiment = ParseOnly(kGood);
  EXPECT_THAT(Lines(Validate(experiment)), IsEmpty());
  experiment.mutable_spec()->mutable_parameters(0)->mutable_feasible_space()->set_max(NAN);
  experiment.mutable_spec()->mutable_objective()->set_goal(INFINITY);
  experiment.mutable_metadata()->set_name("");
  experiment.set_kind("Trial");
  const auto lines = Lines(Validate(experiment));
  EXPECT_THAT(
      lines,
      Contains("error: spec.parameters[0].feasibleSpace.max: must be a finite number, not NaN"));
  EXPECT_THAT(lines, Contains("error: spec.objective.goal: must be a finite number, not Infinity"));
  EXPECT_THAT(lines, Contains(HasSubstr("error: metadata.name: is required")));
  EXPECT_THAT(lines, Contains("error: kind: must be Experiment"));
  EXPECT_THAT(Lines(Validate(v1::Experiment())), Contains(HasSubstr("error: spec: is required")));
}

TEST(SameExperiment, CountsGoalAndRangesMayChange) {
  const v1::Experiment existing = ParseOnly(kGood);
  v1::Experiment wanted = existing;
  wanted.mutable_spec()->set_max_trial_count(50);
  wanted.mutable_spec()->set_parallel_trial_count(1);
  wanted.mutable_spec()->set_max_failed_trial_count(5);
  wanted.mutable_spec()->mutable_objective()->set_goal(0.5);
  wanted.mutable_spec()->mutable_parameters(0)->mutable_feasible_space()->set_max(0.5);
  wanted.mutable_spec()->mutable_parameters(3)->mutable_feasible_space()->add_list("lion");
  (*wanted.mutable_metadata()->mutable_labels())["a"] = "b";
  EXPECT_TRUE(CheckSameExperiment(existing, wanted).ok());
}

// Katib writes it into what it stores.
TEST(SameExperiment, UniformIsTheDefault) {
  const v1::Experiment existing = ParseOnly(kGood);
  v1::Experiment wanted = existing;
  v1::FeasibleSpace& range =
      *wanted.mutable_spec()->mutable_parameters(0)->mutable_feasible_space();
  range.set_distribution(v1::UNIFORM);
  EXPECT_TRUE(CheckSameExperiment(existing, wanted).ok());
  range.set_distribution(v1::LOG_UNIFORM);
  EXPECT_FALSE(CheckSameExperiment(existing, wanted).ok());
}

TEST(SameExperiment, TheFirstDifferenceIsNamed) {
  const v1::Experiment existing = ParseOnly(kGood);
  const auto difference = [&](const char* from, const char* to) {
    const Status status = CheckSameExperiment(existing, ParseOnly(Replaced(kGood, from, to)));
    EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
    return Message(status);
  };
  EXPECT_THAT(difference("step: \"8\"", "step: \"4\""),
              HasSubstr("experiment default/good exists and is another search: "
                        "spec.parameters[1].feasibleSpace.step is \"8\" there and \"4\" here"));
  EXPECT_THAT(difference("max: \"0.1\"", "max: \"0.1\", distribution: logUniform"),
              HasSubstr("spec.parameters[0].feasibleSpace.distribution"));
  EXPECT_THAT(difference("command: [fit", "command: [fit2"), HasSubstr("containers[0].command[0]"));
}

TEST(SameExperiment, AParameterThatOnlyOneOfThemHasIsShownWithItsValues) {
  const v1::Experiment without = ParseOnly(kGood);
  v1::Experiment with = without;
  v1::ParameterSpec& parameter = *with.mutable_spec()->add_parameters();
  parameter.set_name("bs");
  parameter.set_parameter_type(v1::DISCRETE);
  for (const char* value : {"16", "32", "64"}) parameter.mutable_feasible_space()->add_list(value);
  const std::string shown =
      R"({"name":"bs","parameterType":"discrete","feasibleSpace":{"list":["16","32","64"]}})";
  EXPECT_THAT(Message(CheckSameExperiment(with, without)),
              HasSubstr(" is " + shown + " there and nothing here"));
  EXPECT_THAT(Message(CheckSameExperiment(without, with)),
              HasSubstr(" is nothing there and " + shown + " here"));
}

}  // namespace
}  // namespace shirabe::experiment
