// From text to message: names, types, words, places, defaults.
#include "experiment/spec/parse_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/experiment/specs.h"

namespace shirabe::experiment {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// The only finding of kGood with one replacement.
std::string Finding1(const std::string& from, const std::string& to) {
  const auto findings = FindingsOf(Replaced(kGood, from, to));
  EXPECT_EQ(findings.size(), 1u) << ::testing::PrintToString(findings);
  return findings.empty() ? "" : findings[0];
}

TEST(Spec, AGoodFileHasNoFindings) { EXPECT_THAT(FindingsOf(kGood), IsEmpty()); }

TEST(Spec, ReadsEveryType) {
  const v1::Experiment experiment = ParseOnly(kGood);
  EXPECT_EQ(experiment.metadata().name(), "good");
  const auto& spec = experiment.spec();
  EXPECT_EQ(spec.objective().type(), v1::MINIMIZE);
  EXPECT_EQ(spec.max_trial_count(), 10);
  EXPECT_EQ(spec.parameters(0).feasible_space().min(), 0.001);
  EXPECT_EQ(spec.parameters(1).feasible_space().step(), 8);
  EXPECT_THAT(spec.parameters(2).feasible_space().numbers(), ElementsAre(16, 32));
  EXPECT_THAT(spec.parameters(3).feasible_space().list(), ElementsAre("sgd", "adam"));
  EXPECT_EQ(spec.trial_template().trial_spec().fields().at("kind").string_value(), "Job");
}

TEST(Spec, TenMistakesAreFoundInOneGo) {
  std::string found;
  const auto parsed = ParseExperiments(ReadTestFile("bad/ten.yaml"));
  for (const Finding& finding : parsed[0].findings) {
    found += FormatFinding(finding, "ten.yaml") + "\n";
  }
  EXPECT_EQ(found, ReadTestFile("bad/ten.txt"));
}

// Every file under katib/ is one that Katib takes; none may need an edit.
TEST(Spec, KatibsShapesValidateWithoutEdits) {
  const std::vector<std::string> names = KatibFiles();
  EXPECT_GE(names.size(), 35u);
  for (const std::string& name : names) {
    for (const ParsedExperiment& parsed : ParseExperiments(ReadTestFile(name))) {
      for (const Finding& finding : parsed.findings) {
        EXPECT_TRUE(finding.warning) << FormatFinding(finding, name);
      }
      EXPECT_THAT(Validate(parsed.experiment), ::testing::SizeIs(parsed.findings.size()));
    }
  }
}

TEST(Spec, NumbersMayBeBareOrQuoted) {
  const auto bare =
      ParseOnly(Replaced(kGood, R"({min: "0.001", max: "0.1"})", "{min: 1e-3, max: .1}"));
  EXPECT_EQ(bare.spec().parameters(0).feasible_space().min(), 0.001);
  EXPECT_EQ(bare.spec().parameters(0).feasible_space().max(), 0.1);
  const auto list = ParseOnly(Replaced(kGood, R"(["16", "32"])", "[16, 0.50]"));
  EXPECT_THAT(list.spec().parameters(2).feasible_space().list(), ElementsAre("16", "0.50"));
  EXPECT_THAT(list.spec().parameters(2).feasible_space().numbers(), ElementsAre(16, 0.5));
  EXPECT_EQ(ParseOnly(Replaced(kGood, "Count: 10", "Count: \"10\"")).spec().max_trial_count(), 10);
  EXPECT_EQ(ParseOnly(Replaced(kGood, "Count: 10", "Count: 10.0")).spec().max_trial_count(), 10);
}

TEST(Spec, NumbersThatYamlReadsOtherwiseAreNotGuessed) {
  EXPECT_THAT(Finding1(R"(["16", "32"])", "[016, 32]"),
              HasSubstr("016 is 14 in YAML; write 14 or \"016\""));
  EXPECT_THAT(Finding1(R"(["16", "32"])", "[1_6, 32]"), HasSubstr("1_6 is 16 in YAML"));
}

TEST(Spec, TextThatYamlReadsOtherwiseMustBeQuoted) {
  EXPECT_EQ(Finding1("[sgd, adam]", "[on, \"off\"]"),
            "23:30: error: spec.parameters[3].feasibleSpace.list[0]: on is a boolean in YAML; "
            "write \"on\"");
  EXPECT_THAT(Finding1("name: good", "name: 7"),
              HasSubstr("4:9: error: metadata.name: 7 is a number in YAML; write \"7\""));
  EXPECT_THAT(Finding1("[accuracy]", "[~]"), HasSubstr("must be text, not null"));
}

TEST(Spec, WrongTypesNameWhatTheyFound) {
  EXPECT_THAT(Finding1("Count: 10", "Count: ten"), HasSubstr("must be an integer, not \"ten\""));
  EXPECT_THAT(Finding1("Count: 10", "Count: 1.5"),
              HasSubstr("must be an integer, not the number 1.5"));
  EXPECT_THAT(Finding1("Count: 10", "Count: 3000000000"),
              HasSubstr("is too large; the greatest is 2147483647"));
  EXPECT_THAT(Finding1("[accuracy]", "accuracy"), HasSubstr("must be a list, not \"accuracy\""));
  EXPECT_THAT(Finding1("\"0.001\"", "small"), HasSubstr("must be a number, not \"small\""));
  EXPECT_THAT(FindingsOf(Replaced(kGood, "step: \"8\"", "step: \"\"")), IsEmpty())
      << "as one that is not there, in Katib";
  EXPECT_THAT(Finding1("\"0.001\"", "\"\""), HasSubstr("is required for parameterType double"));
  EXPECT_THAT(Finding1("\"0.001\"", ".nan"), HasSubstr("must be a finite number"));
  EXPECT_THAT(Finding1("\"0.001\"", "1e999"), HasSubstr("must be a finite number"));
  EXPECT_THAT(Finding1("{min: \"0.001\", max: \"0.1\"}", "[1, 2]"),
              HasSubstr("must be a mapping, not a list"));
  EXPECT_THAT(Finding1("  trialTemplate:\n", "  trialTemplate:\n    retain: maybe\n"),
              HasSubstr("must be true or false, not \"maybe\""));
}

TEST(Spec, UnknownFieldsAndWordsAreMended) {
  EXPECT_EQ(
      Finding1("objectiveMetricName", "objective_metric_name"),
      "8:5: error: spec.objective.objective_metric_name: unknown field in spec.objective; did "
      "you mean \"objectiveMetricName\"?");
  EXPECT_THAT(Finding1("maxTrialCount", "maxTrials"),
              AllOf(StartsWith("10:3:"), HasSubstr("maxTrialCount")));
  EXPECT_THAT(Finding1("minimize", "Minimize"), HasSubstr("did you mean \"minimize\"?"));
  EXPECT_THAT(Finding1("categorical", "choice"), HasSubstr("known: double, int, discrete"));
  EXPECT_THAT(Finding1("feasibleSpace: {min", "numbers: [1]\n      feasibleSpace: {min"),
              HasSubstr("unknown field in spec.parameters[0]"));
}

TEST(Spec, OneMistakeIsOneError) {
  // The name is unreadable: neither is it missing, nor are its references wrong.
  EXPECT_THAT(Finding1("name: lr\n", "name: [lr]\n"), HasSubstr("spec.parameters[0].name"));
  EXPECT_THAT(Finding1("    - name: lr\n", "    - nmae: lr\n"), HasSubstr("unknown field"));
  EXPECT_THAT(Finding1("trialSpec:", "trialSpce:"), HasSubstr("did you mean \"trialSpec\"?"));
  EXPECT_THAT(Finding1("parameterType: int", "parameterType: integer"),
              HasSubstr("did you mean \"int\"?"));
}

TEST(Spec, SeveralDocuments) {
  const auto parsed =
      ParseExperiments(std::string(kGood) + "---\nkind: ConfigMap\ndata: {a: b}\n---\n" +
                       Replaced(kGood, "good", "second"));
  ASSERT_EQ(parsed.size(), 3u);
  EXPECT_THAT(parsed[0].findings, IsEmpty());
  EXPECT_THAT(Lines(parsed[1].findings),
              ElementsAre(HasSubstr("\"ConfigMap\" is not an Experiment")));
  EXPECT_EQ(parsed[2].experiment.metadata().name(), "second");
}

TEST(Spec, OtherVersionsAreRefused) {
  EXPECT_THAT(Finding1("kubeflow.org/v1beta1", "kubeflow.org/v1alpha3"),
              HasSubstr("is not supported; write kubeflow.org/v1beta1"));
}

TEST(Spec, TextThatIsNoExperiment) {
  EXPECT_THAT(FindingsOf(""), ElementsAre(HasSubstr("holds no document")));
  EXPECT_THAT(FindingsOf("hello"), ElementsAre(HasSubstr("an Experiment begins with")));
  EXPECT_THAT(FindingsOf("[1]"), ElementsAre(HasSubstr("not with a list")));
  EXPECT_THAT(FindingsOf("a: [1"), ElementsAre(HasSubstr("close the bracket")));
  EXPECT_THAT(FindingsOf("kind: Experiment\napiVersion: kubeflow.org/v1beta1\n"),
              AllOf(Contains(HasSubstr("metadata.name: is required")),
                    Contains(HasSubstr("spec.objective: is required")),
                    Contains(HasSubstr("spec.trialTemplate: is required"))));
}

TEST(Spec, WhatTheServerWritesIsAccepted) {
  const std::string text = Replaced(kGood, "  name: good\n", R"(  name: good
  creationTimestamp: "2026-11-21T08:30:00Z"
  generation: 3
  resourceVersion: "812"
  uid: 5d7
  managedFields: [{manager: kubectl}]
  labels: {"app.kubernetes.io/part-of": demo}
)") + "status:\n  anything: [1, 2]\n";
  const v1::Experiment experiment = ParseOnly(text);
  EXPECT_EQ(experiment.metadata().creation_timestamp().seconds(), 1795249800);
  EXPECT_FALSE(experiment.metadata().has_managed_fields());
  EXPECT_FALSE(experiment.has_status());
}

TEST(Spec, LabelsMustBeText) {
  EXPECT_THAT(
      Finding1("  name: good\n", "  name: good\n  labels: {\"a.b/c\": 1}\n"),
      HasSubstr("5:21: error: metadata.labels[\"a.b/c\"]: 1 is a number in YAML; write \"1\""));
}

TEST(Spec, FreeFormObjectsStayExact) {
  const v1::Experiment experiment = ParseOnly(
      Replaced(kGood, "      kind: Job\n",
               "      kind: Job\n      x: [9007199254740992, -5, 0.1, yes, ~, \"no\", {}]\n"));
  const auto& list = experiment.spec().trial_template().trial_spec().fields().at("x").list_value();
  EXPECT_EQ(list.values(0).number_value(), 9007199254740992.0);
  EXPECT_EQ(list.values(1).number_value(), -5);
  EXPECT_EQ(list.values(2).number_value(), 0.1);
  EXPECT_TRUE(list.values(3).bool_value());
  EXPECT_TRUE(list.values(4).has_null_value());
  EXPECT_EQ(list.values(5).string_value(), "no");
  EXPECT_TRUE(list.values(6).has_struct_value());
  for (const char* number :
       {"9007199254740993", "99999999999999999999", "-9007199254740993", ".inf"}) {
    EXPECT_THAT(
        Finding1("      kind: Job\n", "      kind: Job\n      x: " + std::string(number) + "\n"),
        HasSubstr("write \"" + std::string(number) + "\""));
  }
}

TEST(Spec, IntegersThatADoubleWouldChangeAreRefused) {
  EXPECT_THAT(Finding1("max: \"64\"", "max: 9007199254740993"),
              HasSubstr("cannot be kept exactly"));
  EXPECT_THAT(Finding1("max: \"64\"", "max: \"18014398509481984\""), HasSubstr("beyond 2^53"));
}

TEST(Defaults, AreThoseOfKatib) {
  const auto spec = ParseOnly(kGood).spec();
  EXPECT_EQ(ParseOnly(kGood).metadata().namespace_(), "default");
  EXPECT_EQ(spec.parallel_trial_count(), 3);
  EXPECT_EQ(spec.resume_policy(), v1::NEVER);
  EXPECT_EQ(spec.algorithm().algorithm_name(), "auto");
  ASSERT_EQ(spec.objective().metric_strategies_size(), 2);
  EXPECT_EQ(spec.objective().metric_strategies(0).name(), "loss");
  EXPECT_EQ(spec.objective().metric_strategies(1).value(), v1::MIN);
  EXPECT_EQ(spec.metrics_collector_spec().collector().kind(), v1::STD_OUT);
  EXPECT_EQ(spec.trial_template().primary_container_name(), "training-container");
  EXPECT_EQ(spec.trial_template().success_condition(),
            R"(status.conditions.#(type=="Complete")#|#(status=="True")#)");
}

TEST(Defaults, NobodyIsRefusedForAParallelismHeDidNotAskFor) {
  EXPECT_EQ(ParseOnly(Replaced(kGood, "Count: 10", "Count: 2")).spec().parallel_trial_count(), 2);
}

TEST(Defaults, OfCollectors) {
  const auto file = ParseOnly(ReadTestFile("katib/collector-file-defaults.yaml"));
  const auto& path = file.spec().metrics_collector_spec().source().file_system_path();
  EXPECT_EQ(path.path(), "/var/log/katib/metrics.log");
  EXPECT_EQ(path.kind(), v1::FILE);
  EXPECT_EQ(path.format(), v1::TEXT);
  const auto events = ParseOnly(ReadTestFile("katib/tfjob.yaml"));
  EXPECT_EQ(events.spec().metrics_collector_spec().source().file_system_path().path(),
            "/var/log/katib/tfevent/");
  const auto pytorch = ParseOnly(ReadTestFile("katib/pytorchjob.yaml")).spec().trial_template();
  EXPECT_EQ(pytorch.primary_pod_labels().at("training.kubeflow.org/job-role"), "master");
}

TEST(Defaults, ABackoffLimitIsARetryPolicy) {
  const std::string text =
      Replaced(kGood, "      spec:\n", "      spec:\n        backoffLimit: 4\n");
  EXPECT_EQ(ParseOnly(text).spec().shirabe().attempts().max_failures(), 4);
  const std::string both = text + "  shirabe: {attempts: {maxFailures: 1}}\n";
  EXPECT_EQ(ParseOnly(both).spec().shirabe().attempts().max_failures(), 1);
}

TEST(StartPoint, IsTypedByTheParameters) {
  const auto spec =
      ParseOnly(std::string(kGood) +
                "  shirabe: {start: [{lr: \"0.01\", units: 16, batch: 32, optimizer: sgd}]}\n")
          .spec();
  const auto point = StartPoint(spec, 0);
  ASSERT_TRUE(point.ok()) << point.status();
  EXPECT_EQ((*point)[0].number(), 0.01);
  EXPECT_EQ((*point)[1].integer(), 16);
  EXPECT_EQ((*point)[2].number(), 32);
  EXPECT_EQ((*point)[3].category(), "sgd");
}

}  // namespace
}  // namespace shirabe::experiment
