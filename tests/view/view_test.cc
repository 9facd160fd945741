#include "view/record_json.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/records.h"

namespace shirabe::view {
namespace {

constexpr char kTrialYaml[] = R"(apiVersion: kubeflow.org/v1beta1
kind: Trial
metadata:
  name: digits-7
  namespace: default
  labels:
    katib.kubeflow.org/experiment: digits
    rung: "1"
  creationTimestamp: "2023-11-14T22:13:30Z"
spec:
  objective:
    type: minimize
    objectiveMetricName: loss
    additionalMetricNames:
    - acc
    metricStrategies:
    - name: loss
      value: min
    - name: acc
      value: latest
  parameterAssignments:
  - name: lr
    value: "0.0031"
  - name: bs
    value: "32"
  - name: opt
    value: sgd
status:
  startTime: "2023-11-14T22:13:40Z"
  completionTime: "2023-11-14T22:14:40Z"
  conditions:
  - type: Created
    status: "True"
    reason: TrialCreated
    message: Trial is created
    lastUpdateTime: "2023-11-14T22:13:30Z"
    lastTransitionTime: "2023-11-14T22:13:30Z"
  - type: Running
    status: "False"
    reason: TrialRunning
    message: Trial is running
    lastUpdateTime: "2023-11-14T22:14:40Z"
    lastTransitionTime: "2023-11-14T22:14:40Z"
  - type: Succeeded
    status: "True"
    reason: TrialSucceeded
    message: "Trial has ended: Succeeded"
    lastUpdateTime: "2023-11-14T22:14:40Z"
    lastTransitionTime: "2023-11-14T22:14:40Z"
  observation:
    metrics:
    - name: loss
      min: "0.25"
      max: "1.25"
      latest: "0.25"
    - name: acc
      min: "0.5"
      max: "0.75"
      latest: "0.75"
  shirabe:
    number: 7
    phase: Succeeded
    objective: 0.25
    step: 2
    lastStep: 2
    attempts: 1
    explanation: drawn at random
)";

Json ViewOf(const v1::Trial& trial) {
  static const v1::Experiment experiment = MakeExperiment();
  return TrialRenderer(experiment)(trial);
}

TEST(ViewTest, ATrialHasTheShapeOfKatibs) {
  v1::Trial trial = MakeTrial(7, v1::TRIAL_SUCCEEDED, 0.25);
  trial.set_explanation("drawn at random");
  (*trial.mutable_labels())["rung"] = "1";
  EXPECT_EQ(PrintYaml(ViewOf(trial)), kTrialYaml);
}

TEST(ViewTest, APendingTrialHasOnlyBeenCreated) {
  v1::Trial trial = MakeTrial(1, v1::TRIAL_PENDING);
  trial.set_waiting("no GPU is free");
  const Json tree = ViewOf(trial);
  ASSERT_EQ(tree["status"]["conditions"].size(), 1u);
  EXPECT_EQ(tree["status"]["conditions"][0]["type"], "Created");
  EXPECT_FALSE(tree["status"].contains("startTime"));
  EXPECT_FALSE(tree["status"].contains("observation"));
  EXPECT_EQ(tree["status"]["shirabe"]["waiting"], "no GPU is free");
}

TEST(ViewTest, ARunningTrialShowsWhatItHasReached) {
  const Json tree = ViewOf(MakeTrial(1, v1::TRIAL_RUNNING, 0.5));
  EXPECT_EQ(tree["status"]["conditions"][1]["type"], "Running");
  EXPECT_EQ(tree["status"]["conditions"][1]["status"], "True");
  EXPECT_EQ(tree["status"]["shirabe"]["objective"], 0.5);
  EXPECT_FALSE(tree["status"].contains("completionTime"));
}

TEST(ViewTest, EachTerminalPhaseIsAConditionWithItsReason) {
  for (const auto& [phase, word] :
       {std::pair(v1::TRIAL_KILLED, "Killed"), std::pair(v1::TRIAL_FAILED, "Failed"),
        std::pair(v1::TRIAL_METRICS_UNAVAILABLE, "MetricsUnavailable"),
        std::pair(v1::TRIAL_EARLY_STOPPED, "EarlyStopped")}) {
    v1::Trial trial = MakeTrial(1, phase);
    trial.set_reason("BecauseOfIt");
    trial.set_message("exit code 1");
    const Json conditions = ViewOf(trial)["status"]["conditions"];
    EXPECT_EQ(conditions.back()["type"], word);
    EXPECT_EQ(conditions.back()["reason"], "BecauseOfIt");
    EXPECT_EQ(conditions.back()["message"], "exit code 1");
  }
}

TEST(ViewTest, MetricsThatWereNeverFiniteAreSaidAsKatibSaysThem) {
  v1::Trial trial = MakeTrial(1, v1::TRIAL_SUCCEEDED);
  v1::Metric& loss = *trial.mutable_observation()->add_metrics();
  loss.set_name("loss");
  loss.set_latest(std::numeric_limits<double>::quiet_NaN());
  const Json metric = ViewOf(trial)["status"]["observation"]["metrics"][0];
  EXPECT_EQ(metric["latest"], "NaN");
  EXPECT_EQ(metric["min"], "unavailable");
}

TEST(ViewTest, TheObjectiveIsTheFirstMetricWhateverWasReportedFirst) {
  v1::Trial trial = MakeTrial(1, v1::TRIAL_SUCCEEDED);
  for (const char* name : {"accuracy", "loss", "epoch"}) {
    trial.mutable_observation()->add_metrics()->set_name(name);
  }
  std::vector<std::string> names;
  const Json metrics = ViewOf(trial)["status"]["observation"]["metrics"];
  for (const Json& metric : metrics) names.push_back(metric["name"]);
  EXPECT_EQ(names, (std::vector<std::string>{"loss", "accuracy", "epoch"}));
}

TEST(ViewTest, AnExperimentReadsAsKatibs) {
  v1::Experiment experiment = MakeExperiment();
  SetCondition("Running", experiment);
  SetBest(MakeTrial(3, v1::TRIAL_SUCCEEDED, 0.25), experiment);
  const Json tree = ExperimentJson(experiment);
  EXPECT_EQ(tree["apiVersion"], "kubeflow.org/v1beta1");
  EXPECT_EQ(tree["kind"], "Experiment");
  EXPECT_EQ(tree["spec"]["parameters"][0]["feasibleSpace"]["min"], "1e-05");
  EXPECT_EQ(tree["status"]["conditions"][0]["type"], "Running");
  const Json& best = tree["status"]["currentOptimalTrial"];
  EXPECT_EQ(best["bestTrialName"], "digits-3");
  EXPECT_EQ(best["parameterAssignments"][1]["value"], "32");
  EXPECT_EQ(best["observation"]["metrics"][0]["latest"], "0.25");
}

TEST(ViewTest, AnAttemptTellsEverythingButItsToken) {
  v1::Attempt attempt;
  attempt.set_namespace_("default");
  attempt.set_experiment("digits");
  attempt.set_trial(7);
  attempt.set_number(2);
  attempt.set_token("secret");
  attempt.set_state(v1::ATTEMPT_CLOSED);
  attempt.set_cause(v1::PREEMPTED_NODE);
  attempt.set_signal(9);
  attempt.set_resumed_from_step(5200);
  attempt.add_placements()->set_node("spot-7");
  const std::string text = PrintJson(AttemptJson(attempt, {.log = "/logs/x", .now = At(0)}));
  EXPECT_EQ(text.find("secret"), std::string::npos);
  const Json tree = Json::parse(text);
  EXPECT_EQ(tree["metadata"]["name"], "digits-7-a2");
  EXPECT_EQ(tree["status"]["cause"], "preempted-node");
  EXPECT_EQ(tree["status"]["signal"], 9);
  EXPECT_EQ(tree["status"]["resumedFromStep"], 5200);
  EXPECT_EQ(tree["status"]["placements"][0]["node"], "spot-7");
  EXPECT_EQ(tree["status"]["log"], "/logs/x");
}

TEST(ViewTest, TheLedgerIsFlatForScripts) {
  const Json tree = AttemptJson(MakeClosedAttempt(7, 2), {.now = At(500)});
  EXPECT_EQ(tree["trial"], "digits-7");
  EXPECT_EQ(tree["number"], 2);
  EXPECT_EQ(tree["node"], "spot-1");
  EXPECT_EQ(tree["capacity"], "spot");
  EXPECT_EQ(tree["start"], "2023-11-14T22:13:40Z");
  EXPECT_EQ(tree["end"], "2023-11-14T22:14:20Z");
  EXPECT_EQ(tree["exitCode"], 137) << "as a shell shows SIGKILL";
  EXPECT_EQ(tree["cause"], "preempted-spot");
  EXPECT_EQ(tree["resumedFromStep"], 5200);
  EXPECT_EQ(tree["stepsGained"], 30);
  EXPECT_EQ(tree["stepsRedone"], 20);
  EXPECT_EQ(tree["seconds"], 39.5);
  EXPECT_EQ(tree["cost"], 0.0395);
  EXPECT_EQ(tree["status"]["resumedFrom"], "digits-7-a1");
}

TEST(ViewTest, WhatIsNotKnownYetIsNull) {
  v1::Attempt attempt = MakeClosedAttempt(7, 2);
  attempt.set_state(v1::ATTEMPT_RUNNING);
  attempt.set_cause(v1::CAUSE_NONE);
  attempt.clear_signal();
  attempt.clear_end_time();
  attempt.mutable_placements(0)->clear_end_time();
  const Json tree = AttemptJson(attempt, {.now = At(120)});
  for (const char* key : {"end", "exitCode", "cause"}) {
    ASSERT_TRUE(tree.contains(key)) << key;
    EXPECT_TRUE(tree[key].is_null()) << key;
  }
  EXPECT_EQ(tree["seconds"], 100) << "from its start until now";
  EXPECT_NEAR(tree["cost"].get<double>(), 0.1, 1e-12);
}

TEST(ViewTest, ACheckpointSaysWhereItIsAndWhyItIsNot) {
  Json tree = CheckpointJson(MakeCheckpoint(7, 2, 5200));
  EXPECT_EQ(tree["trial"], "digits-7");
  EXPECT_EQ(tree["attempt"], 2);
  EXPECT_EQ(tree["step"], 5200);
  EXPECT_EQ(tree["bytes"], 1536);
  EXPECT_FALSE(tree.contains("gone"));
  v1::Checkpoint pruned = MakeCheckpoint(7, 2, 5200);
  pruned.set_gone("pruned");
  EXPECT_EQ(CheckpointJson(pruned)["gone"], "pruned");
}

// The list as one tree, as the pieces must print it.
Json ListOf(const std::vector<Json>& items) {
  return {{"apiVersion", "v1"}, {"kind", "List"}, {"items", items}};
}

TEST(ViewTest, AListPrintedInPiecesIsKubernetesList) {
  const Json item = {{"a", {1, 2}}, {"text", "x\n\ny\n"}, {"none", Json::array()}};
  for (const std::vector<Json>& items :
       {std::vector<Json>{}, std::vector<Json>{item}, std::vector<Json>{item, item}}) {
    for (const bool yaml : {false, true}) {
      ListWriter writer(yaml);
      std::string text = writer.Begin();
      for (const Json& one : items) text += writer.Item(one);
      text += writer.End();
      EXPECT_EQ(text, yaml ? PrintYaml(ListOf(items)) : PrintJson(ListOf(items)));
    }
  }
}

TEST(ViewTest, BytesThatAreNoUtf8AreReplaced) {
  EXPECT_EQ(PrintJsonLine({{"a", "x\xff"}}), "{\"a\":\"x\xEF\xBF\xBD\"}");
}

}  // namespace
}  // namespace shirabe::view
