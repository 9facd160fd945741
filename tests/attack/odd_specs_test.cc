// Specifications that are odd, but not hostile: on a laptop each of their fields is done or named.
#include "tests/integration/cli.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/support/small_spec.h"

namespace shirabe::cmd {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class OddSpecsTest : public testing::Test {
 protected:
  // Lines of the Job and of the pod, and the script of the program.
  std::string Spec(const std::string& job, const std::string& pod, const std::string& script) {
    return cli_.Write("odd.yaml", Yaml({.name = "odd",
                                        .parallel = 1,
                                        .trials = 1,
                                        .container = ShellCommand(script),
                                        .pod = pod,
                                        .job = job}));
  }
  nlohmann::json Trial() { return cli_.Json({"get", "trials", "odd", "-o", "json"})["items"][0]; }
  std::string Condition() {
    const auto conditions = Trial()["status"]["conditions"];
    const auto& last = conditions[conditions.size() - 1];
    return absl::StrCat(last["type"].get<std::string>(), "/", last["reason"].get<std::string>());
  }

  Cli cli_;
};

// attacks: CRD spec.trialTemplate.trialSpec
TEST_F(OddSpecsTest, ATrialThatOutrunsItsJobsDeadlineHasFailed) {
  const std::string spec = Spec("activeDeadlineSeconds: 2\nbackoffLimit: 3", "",
                                "echo loss=$1; sleep 30; echo never >> $DIR/after");
  const absl::Duration began = RealClock()->Monotonic();
  const Outcome run = cli_.Run({"run", "-f", spec});
  EXPECT_EQ(run.code, 8) << run.err;
  EXPECT_LT(RealClock()->Monotonic() - began, absl::Seconds(15));
  EXPECT_FALSE(cli_.Exists("after"));
  EXPECT_EQ(Condition(), "Failed/DeadlineExceeded");
  const auto attempts = cli_.Json({"get", "attempts", "odd", "-o", "json"})["items"];
  EXPECT_EQ(attempts.size(), 1u) << "a Job that is too slow is not tried again";
  EXPECT_THAT(cli_.Run({"describe", "trial", "odd/1"}).out,
              HasSubstr("longer than the 2 s that activeDeadlineSeconds of its Job allows"));
}

// A program that ends well when it is asked to has not succeeded either. As many attempts as its
// Job would make.
// attacks: CRD spec.trialTemplate.trialSpec
TEST_F(OddSpecsTest, ATrialThatOutrunsItsPodsDeadlineIsTriedAgainAsItsJobSays) {
  const std::string spec =
      Spec("backoffLimit: 1", "activeDeadlineSeconds: 1",
           "echo run >> $DIR/runs; trap 'exit 0' TERM; echo loss=$1; while :; do sleep 0.1; done");
  EXPECT_EQ(cli_.Run({"run", "-f", spec}).code, 8);
  EXPECT_EQ(ReadFile(cli_.Path("runs")).value_or(""), "run\nrun\n");
  EXPECT_EQ(Condition(), "Failed/DeadlineExceeded");
}

TEST_F(OddSpecsTest, ATrialInTimeSucceeds) {
  const std::string spec =
      Spec("activeDeadlineSeconds: 60", "activeDeadlineSeconds: 60", "echo loss=$1");
  EXPECT_EQ(cli_.Run({"run", "-f", spec}).code, 0);
}

// attacks: CRD spec.trialTemplate.trialSpec
TEST_F(OddSpecsTest, InitContainersRunOneAfterAnotherBeforeTheProgram) {
  const std::string spec = Spec(
      "",
      absl::StrCat("initContainers:\n",
                   "  - {name: fetch, command: [/bin/sh, -c, 'sleep 0.3; echo fetch $A $(A) ",
                   "$SHIRABE_TRIAL >> $DIR/order'], env: [{name: A, value: \"1\"}]}\n",
                   "  - {name: unpack, command: [/bin/sh], args: [-c, 'echo unpack ${A:-none} ",
                   "in $(pwd) >> $DIR/order'], workingDir: /tmp}"),
      "echo main >> $DIR/order; echo loss=$1");
  const Outcome run = cli_.Run({"run", "-f", spec});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(ReadFile(cli_.Path("order")).value_or(""),
            "fetch 1 1 odd-1\nunpack none in /tmp\nmain\n");
}

// attacks: CRD spec.trialTemplate.trialSpec
TEST_F(OddSpecsTest, AnInitContainerThatFailsFailsTheAttemptWithItsNameAndLog) {
  for (const char* code : {"3", "75"}) {
    const std::string spec =
        Spec("",
             absl::StrCat(
                 "initContainers:\n  - {name: fetch, command: [/bin/sh, -c, 'echo no such data; "
                 "exit ",
                 code,
                 "']}\n  - {name: never, command: [/bin/sh, -c, 'echo >> "
                 "$DIR/after']}"),
             "echo >> $DIR/after; echo loss=$1");
    EXPECT_EQ(cli_.Run({"run", "-f", spec}).code, 8);
    EXPECT_FALSE(cli_.Exists("after"));
    EXPECT_THAT(Condition(), HasSubstr("Failed/"));
    EXPECT_THAT(
        cli_.Run({"describe", "trial", "odd/1"}).out,
        AllOf(HasSubstr(absl::StrCat("init container \"fetch\" ended with exit code ", code)),
              HasSubstr("no such data")));
    EXPECT_EQ(cli_.Run({"delete", "odd"}).code, 0);
  }
}

// The limit is of all that an attempt does.
// attacks: CRD spec.trialTemplate.trialSpec
TEST_F(OddSpecsTest, ADeadlineCountsInitContainersToo) {
  const std::string spec =
      Spec("activeDeadlineSeconds: 1",
           "initContainers:\n  - {name: slow, command: [sleep, \"30\"]}", "echo loss=$1");
  EXPECT_EQ(cli_.Run({"run", "-f", spec}).code, 8);
  EXPECT_EQ(Condition(), "Failed/DeadlineExceeded");
}

// attacks: CRD spec.trialTemplate.trialSpec
TEST_F(OddSpecsTest, WhatNeedsAClusterIsRefusedByName) {
  const struct {
    const char* job;
    const char* pod;
    const char* says;
  } cases[] = {
      {"completions: 2", "", "trialSpec.spec.completions: is not 1"},
      {"parallelism: 2", "", "trialSpec.spec.parallelism: is not 1"},
      {"activeDeadlineSeconds: 2.5", "", "spec.activeDeadlineSeconds: must be a whole number"},
      {"", "initContainers:\n  - {name: proxy, command: [a], restartPolicy: Always}",
       "initContainers[0].restartPolicy: Always makes it a sidecar"},
  };
  for (const auto& one : cases) {
    const std::string spec = Spec(one.job, one.pod, "echo loss=$1");
    const Outcome run = cli_.Run({"run", "-f", spec});
    EXPECT_NE(run.code, 0);
    EXPECT_THAT(run.err, HasSubstr(one.says));
    const Outcome checked = cli_.Run({"validate", "-f", spec});
    EXPECT_EQ(checked.code, 0) << "a cluster runs it: " << checked.err;
    EXPECT_THAT(checked.err, AllOf(HasSubstr("could not run here"), HasSubstr(one.says)));
  }
}

// attacks: CRD spec.trialTemplate.trialSpec
TEST_F(OddSpecsTest, WhatDoesNothingHereIsNamed) {
  const std::string spec =
      Spec("suspend: false\nttlSecondsAfterFinished: 5",
           "securityContext: {runAsUser: 1}\nvolumes: [{name: v, emptyDir: {}}]", "echo loss=$1");
  for (const char* verb : {"validate", "run"}) {
    const Outcome said = cli_.Run({verb, "-f", spec});
    EXPECT_EQ(said.code, 0) << said.err;
    EXPECT_THAT(said.err, AllOf(HasSubstr("suspend and ttlSecondsAfterFinished do nothing"),
                                HasSubstr("securityContext and volumes do nothing")))
        << verb;
  }
}

// attacks: CRD spec.trialTemplate.trialSpec
TEST_F(OddSpecsTest, HalfAGpuIsRefusedBeforeItRuns) {
  std::string text = ReadFile(Spec("", "", "echo loss=$1")).value_or("");
  absl::StrAppend(&text, "                resources: {limits: {nvidia.com/gpu: 0.5}}\n");
  const std::string spec = cli_.Write("gpu.yaml", text);
  const Outcome checked = cli_.Run({"validate", "-f", spec});
  EXPECT_EQ(checked.code, 5);
  EXPECT_THAT(checked.err,
              HasSubstr("containers[0].resources.limits[\"nvidia.com/gpu\"]: must be a "
                        "whole number of devices, such as 1, not 0.5"));
}

// All values come at once; the last one is as it should be.
// attacks: CRD spec.earlyStopping.algorithmName
TEST_F(OddSpecsTest, AThresholdLooksAtEachValueOfABatch) {
  std::string text =
      ReadFile(Spec("", "", "echo loss=1; echo loss=99; echo loss=$1; sleep 20")).value_or("");
  text = absl::StrReplaceAll(
      text,
      {{"  parallelTrialCount",
        "  earlyStopping: {algorithmName: threshold, algorithmSettings: [{name: upper, value: "
        "\"10\"}]}\n  parallelTrialCount"}});
  const std::string spec = cli_.Write("early.yaml", text);
  const Outcome run = cli_.Run({"run", "-f", spec});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(Condition(), HasSubstr("EarlyStopped"));
}

TEST_F(OddSpecsTest, ARepeatedOptionAndAFilterThatCannotHoldAreNamed) {
  const Outcome twice = cli_.Run({"get", "exp", "-o", "json", "-o", "table"});
  EXPECT_EQ(twice.code, 2);
  EXPECT_THAT(twice.err, HasSubstr("option -o, --output is given 2 times (json, table): give it"));
  const Outcome filter = cli_.Run({"get", "exp", "--filter", "trials=abc"});
  EXPECT_EQ(filter.code, 2);
  EXPECT_THAT(filter.err, AllOf(HasSubstr("field trials is a number"), HasSubstr("\"abc\""),
                                Not(HasSubstr("terminate"))));
}

// Names of metrics and parameters become names of files in MLflow's store, and texts in those of
// TensorBoard: none leads out of the folder, and none is another's.
// attacks: CRD spec.objective.objectiveMetricName
// attacks: CRD spec.objective.additionalMetricNames
TEST_F(OddSpecsTest, NamesStayInTheFolderOfAnExport) {
  const std::vector<std::string> names = {"../../../escaped",
                                          "/escaped",
                                          "..",
                                          ".hidden",
                                          "a/../../../b",
                                          "a",
                                          "a/b",
                                          "a//b",
                                          "😀",
                                          "x y",
                                          "-rf",
                                          "~/escaped",
                                          "meta.yaml",
                                          "$(id)",
                                          "a\\b",
                                          "%2e%2e%2fc"};
  std::string metrics, listed;
  for (const std::string& name : names) {
    metrics += nlohmann::json({{"step", 1}, {"metrics", {{name, 0.5}}}}).dump() + "\n";
    if (name != names[0]) listed += (listed.empty() ? "" : ", ") + nlohmann::json(name).dump();
  }
  const std::string spec = absl::StrReplaceAll(
      ReadFile(Spec("", "", "cat " + cli_.Write("metrics", metrics) + " >> $SHIRABE_METRICS_FILE"))
          .value(),
      {{"objectiveMetricName: loss", "objectiveMetricName: " + nlohmann::json(names[0]).dump() +
                                         ", additionalMetricNames: [" + listed + "]"}});
  const Outcome run = cli_.Run({"run", "-f", cli_.Write("odd.yaml", spec)});
  ASSERT_EQ(run.code, 0) << run.err;
  // What commands print goes to files called run….
  const auto files = [&] {
    std::set<std::string> all;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(cli_.Path(""))) {
      const std::string path = entry.path().string();
      if (!absl::StartsWith(path, cli_.Path("run")) && !absl::StartsWith(path, cli_.state())) {
        all.insert(path);
      }
    }
    return all;
  };
  const std::set<std::string> before = files();
  const std::string runs = cli_.Path("out/runs"), store = cli_.Path("out/store");
  EXPECT_EQ(cli_.Run({"export", "odd", "-o", "tensorboard", "--to", runs}).code, 0);
  EXPECT_EQ(cli_.Run({"export", "odd", "-o", "mlflow", "--to", store}).code, 0);
  size_t values = 0;
  for (const std::string& path : files()) {
    if (before.contains(path) || path == cli_.Path("out")) continue;
    EXPECT_TRUE(absl::StartsWith(path, cli_.Path("out/"))) << path;
    const bool is_file = std::filesystem::is_regular_file(path);
    values += is_file && absl::StrContains(path, "/metrics/") ? 1 : 0;
  }
  EXPECT_EQ(values, names.size()) << "each metric has a file of its own";
  EXPECT_FALSE(std::filesystem::exists("/escaped"));
}

}  // namespace
}  // namespace shirabe::cmd
