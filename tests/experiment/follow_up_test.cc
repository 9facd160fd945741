// spec.shirabe.onSuccess: what a specification may say of it, and passes over an experiment that
// has succeeded: what the follow-up is given, how often it is run again, and what ends it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "experiment/conditions.h"
#include "experiment/spec/local_support.h"
#include "tests/experiment/reconciler_fixture.h"
#include "trial/trial_template.h"

namespace shirabe::experiment {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr char kDeploy[] = R"(  shirabe:
    attempts: {maxPreemptions: 3}
    onSuccess:
      job:
        apiVersion: batch/v1
        kind: Job
        spec:
          backoffLimit: 1
          template:
            spec:
              containers:
                - {name: deploy, command: [deploy, "--lr=${trialParameters.lr}"]}
)";

std::string WithFollowUp(const std::string& from = "", const std::string& to = "") {
  const std::string follow_up = from.empty() ? kDeploy : Replaced(kDeploy, from, to);
  return Replaced(kGood, "  parameters:", follow_up + "  parameters:");
}

// ---- the specification -------------------------------------------------------------------------

TEST(OnSuccessSpec, IsAJobWithTheParametersOfATrial) {
  EXPECT_THAT(FindingsOf(WithFollowUp()), IsEmpty());
  const v1::Experiment experiment = ParseOnly(WithFollowUp());
  const v1::TrialTemplate job = OnSuccessTemplate(experiment.spec());
  EXPECT_EQ(job.primary_container_name(), "deploy");
  EXPECT_EQ(job.trial_parameters_size(), 1) << "the others are not used";
  EXPECT_FALSE(job.success_condition().empty());
  EXPECT_EQ(OnSuccessBackoffLimit(experiment.spec()), 1);
  EXPECT_EQ(OnSuccessBackoffLimit(ParseOnly(kGood).spec()), 6);
}

TEST(OnSuccessSpec, IsRefusedWithFieldValueAndFix) {
  const std::string path = "spec.shirabe.onSuccess";
  const auto refused = [](const std::string& from, const std::string& to) {
    const std::vector<std::string> lines = FindingsOf(WithFollowUp(from, to));
    EXPECT_THAT(lines, SizeIs(1)) << from << " -> " << to;
    return lines.empty() ? std::string() : lines[0];
  };
  EXPECT_THAT(refused("kind: Job", "kind: PyTorchJob"),
              HasSubstr(path + ".job.kind: must be Job, not \"PyTorchJob\""));
  EXPECT_THAT(refused("batch/v1", "batch/v2"),
              HasSubstr(path + ".job.apiVersion: must be batch/v1"));
  EXPECT_THAT(refused("trialParameters.lr", "trialParameters.rate"),
              HasSubstr(path + ".job.spec.template.spec.containers[0].command[1]"));
  EXPECT_THAT(refused("backoffLimit: 1", "backoffLimit: -1"),
              HasSubstr(path + ".job.spec.backoffLimit: must be a whole number from 0"));
  EXPECT_THAT(refused("backoffLimit: 1", "backoffLimit: some"), HasSubstr("not \"some\""));
  EXPECT_THAT(
      refused("                - {", "                - {name: other}\n                - {"),
      HasSubstr(path + ".primaryContainerName: is required"));
  EXPECT_THAT(refused("      job:", "      primaryContainerName: none\n      job:"),
              HasSubstr(path + ".primaryContainerName: the Job has no container \"none\""));
  EXPECT_THAT(refused("        kind: Job", "        kind: Job\n        metadata: {name: mine}"),
              HasSubstr(path + ".job.metadata.name: remove it"));
}

TEST(OnSuccessSpec, IsNotForTrialsThatCallersRun) {
  const std::string text =
      Replaced(WithFollowUp(), "    onSuccess:", "    askAndTell: true\n    onSuccess:");
  const std::string asked = text.substr(0, text.find("  trialTemplate:"));
  EXPECT_THAT(FindingsOf(asked), Contains(HasSubstr("spec.shirabe.onSuccess: does not go with "
                                                    "spec.shirabe.askAndTell")));
}

TEST(OnSuccessSpec, NeedsACommandOnThisMachine) {
  EXPECT_TRUE(CheckRunnable(ParseOnly(WithFollowUp())).ok());
  const Status refused = CheckRunnable(ParseOnly(
      WithFollowUp("command: [deploy, \"--lr=${trialParameters.lr}\"]", "image: deploy")));
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(Message(refused), HasSubstr("spec.shirabe.onSuccess.job.spec.template"));
  const auto idle = Lines(FindIneffectiveLocally(
      ParseOnly(WithFollowUp("name: deploy,", "name: deploy, securityContext: {runAsUser: 1},"))));
  EXPECT_THAT(idle, Contains(HasSubstr("spec.shirabe.onSuccess.job")));
}

// ---- passes ------------------------------------------------------------------------------------

// Shows attempts of trials as ended with a value, and the follow-up as a test says.
class FollowedExecutor : public ShownExecutor {
 public:
  std::optional<trial::AttemptRequest> follow_up;  // the last that was started
  std::vector<int32_t> follow_ups;                 // numbers of all that were
  Status answer;                                   // of starting it
  std::string value = "loss=0.5";

  Status Start(const trial::AttemptRequest& request) override {
    if (request.key.trial.number != kFollowUpNumber) {
      const trial::AttemptPaths paths = Paths(request.key);
      EXPECT_TRUE(MakeDirs(paths.dir).ok());
      EXPECT_TRUE(WriteFileAtomic(paths.log, value + "\n").ok());
      observed = Ended(0);
      return ShownExecutor::Start(request);
    }
    if (!answer.ok()) return answer;
    follow_up = request;
    // What is not to be seen yet is started again, which changes nothing.
    if (follow_ups.empty() || follow_ups.back() != request.key.number) {
      follow_ups.push_back(request.key.number);
    }
    observed.reset();
    return ShownExecutor::Start(request);
  }
  trial::AttemptPaths Paths(const AttemptKey& key) const override {
    trial::AttemptPaths paths = ShownExecutor::Paths(key);
    const std::string dir =
        absl::StrCat(testing::TempDir(), "/followed-", getpid(), "/e/t/", AttemptName(key));
    paths.dir = dir;
    paths.log = dir + "/log";
    return paths;
  }
  static trial::AttemptStatus Ended(int exit_code) {
    trial::AttemptStatus ended = Running();
    ended.state = trial::AttemptStatus::State::kExited;
    ended.exit_code = exit_code;
    *ended.placement.mutable_end_time() = ended.placement.start_time();
    return ended;
  }
  static trial::AttemptStatus Running() {
    trial::AttemptStatus running;
    running.placement.set_node("here");
    *running.placement.mutable_start_time() = ToProto(absl::FromUnixSeconds(1));
    return running;
  }
};

class FollowUpTest : public ReconcilerTest {
 protected:
  // One trial, which ends at once; with that the experiment has succeeded, unless it may not fail.
  void Succeed(const std::string& more = "") {
    v1::Experiment experiment = ParseOnly(WithFollowUp());
    experiment.mutable_spec()->set_max_trial_count(1);
    experiment.mutable_spec()->set_parallel_trial_count(1);
    experiment.mutable_spec()->mutable_objective()->clear_additional_metric_names();
    CreateFrom(experiment);
    reconciler_.ReleaseOwnership(kKey);
    followed_ = std::make_unique<Reconciler>(Options());
    followed_->Own(kKey, epoch_);
    if (more.empty()) Look();
  }
  ReconcilerOptions Options() {
    return {.store = store_.get(),
            .executor = &follower_,
            .clock = &clock_,
            .algorithm_workers = &workers_,
            .working_dir = "/tmp",
            .enqueue = {},
            .at_step = {}};
  }
  // As another process would go on.
  void TakenOver() {
    followed_ = std::make_unique<Reconciler>(Options());
    followed_->Own(kKey, epoch_);
    Look();
  }
  ReconcileResult Look(int passes = 8) {
    ReconcileResult last;
    for (int i = 0; i < passes; ++i) {
      clock_.Advance(absl::Seconds(1));
      followed_->NotifyIntent(kKey);
      const auto result = followed_->Reconcile(kKey);
      EXPECT_TRUE(result.ok()) << result.status();
      if (result.ok()) last = *result;
      if (last.deleted) break;
    }
    return last;
  }
  ReconcileResult Show(const trial::AttemptStatus& observed) {
    follower_.observed = observed;
    return Look(2);
  }
  v1::OnSuccessStatus Now() {
    return store_->GetExperiment(kKey)->record.status().shirabe().on_success();
  }
  std::vector<std::string> Reasons() {
    std::vector<std::string> reasons;
    const auto events = store_->ListEvents({.experiment = kKey});
    for (const v1::Event& event : *events) {
      if (event.reason().rfind("OnSuccess", 0) == 0) reasons.push_back(event.reason());
    }
    return reasons;
  }

  FollowedExecutor follower_;
  std::unique_ptr<Reconciler> followed_;
};

TEST_F(FollowUpTest, HasWhatTheBestTrialHad) {
  Succeed();
  ASSERT_TRUE(follower_.follow_up.has_value());
  const trial::AttemptRequest& request = *follower_.follow_up;
  const v1::Trial best = store_->GetTrial({kKey, 1})->record;
  EXPECT_EQ(AttemptName(request.key), "good-on-success-a1");
  EXPECT_THAT(request.environment, Contains(Pair("SHIRABE_TRIAL", "good-on-success")));
  EXPECT_THAT(request.environment, Contains(Pair("SHIRABE_EXPERIMENT", "good")));
  EXPECT_THAT(request.environment, Contains(Pair("SHIRABE_BEST_TRIAL", "good-1")));
  EXPECT_THAT(request.environment, Contains(Pair("SHIRABE_BEST_OBJECTIVE", "0.5")));
  const std::string lr = trial::FormatAssignment(best.assignments(0));
  EXPECT_THAT(request.environment, Contains(Pair("SHIRABE_PARAM_LR", lr)));
  EXPECT_THAT(request.trial_spec.DebugString(), HasSubstr("--lr=" + lr));
  EXPECT_THAT(request.parameters_json, HasSubstr("\"optimizer\""));
  EXPECT_EQ(request.primary_container, "deploy");
  EXPECT_THAT(request.cluster.metrics, IsEmpty());
  EXPECT_FALSE(request.token.empty());
}

TEST_F(FollowUpTest, SucceedsOnceAndStaysSo) {
  Succeed();
  EXPECT_EQ(Now().phase(), v1::FOLLOW_UP_PENDING);
  EXPECT_FALSE(Show(FollowedExecutor::Running()).ended) << "the experiment is not over yet";
  EXPECT_EQ(Now().phase(), v1::FOLLOW_UP_RUNNING);
  EXPECT_TRUE(Show(FollowedExecutor::Ended(0)).ended);
  EXPECT_EQ(Now().phase(), v1::FOLLOW_UP_SUCCEEDED);
  EXPECT_EQ(Now().name(), "good-on-success");
  EXPECT_TRUE(Now().attempt().empty());
  TakenOver();
  EXPECT_THAT(follower_.follow_ups, ElementsAre(1));
  EXPECT_THAT(Reasons(), ElementsAre("OnSuccessQueued", "OnSuccessStarted", "OnSuccessSucceeded"));
}

// A pod's program may run before its sidecar is heard of.
TEST_F(FollowUpTest, WhatItWasGivenIsSaidOnceItIsTold) {
  Succeed();
  trial::AttemptStatus running = FollowedExecutor::Running();
  running.begin_known = false;
  Show(running);
  EXPECT_EQ(Now().phase(), v1::FOLLOW_UP_RUNNING);
  EXPECT_THAT(Reasons(), ElementsAre("OnSuccessQueued"));
  running.begin_known = true;
  running.resumed.emplace().set_step(7);
  Show(running);
  Show(running);
  EXPECT_EQ(Now().resumed_from_step(), 7);
  EXPECT_THAT(Reasons(), ElementsAre("OnSuccessQueued", "OnSuccessStarted"));
}

TEST_F(FollowUpTest, IsTriedAgainWithinItsBackoffLimit) {
  Succeed();
  Show(FollowedExecutor::Ended(1));
  Look();
  EXPECT_THAT(follower_.follow_ups, ElementsAre(1, 2));
  EXPECT_EQ(Now().phase(), v1::FOLLOW_UP_PENDING);
  Show(FollowedExecutor::Ended(3));
  EXPECT_EQ(Now().phase(), v1::FOLLOW_UP_FAILED);
  EXPECT_EQ(Now().reason(), "BackoffLimitExceeded");
  EXPECT_THAT(Now().message(), HasSubstr("exit code 3 (app-error); its log: shirabe logs good/"));
  EXPECT_EQ(Now().failures(), 2);
  Look();
  EXPECT_THAT(follower_.follow_ups, ElementsAre(1, 2));
}

TEST_F(FollowUpTest, APreemptionIsNoFailure) {
  Succeed();
  for (int i = 0; i < 3; ++i) {
    trial::AttemptStatus lost = FollowedExecutor::Ended(0);
    lost.platform = v1::PREEMPTED_SPOT;
    Show(lost);
    clock_.Advance(absl::Minutes(1));
    Look();
  }
  EXPECT_EQ(Now().preemptions(), 3);
  EXPECT_EQ(Now().failures(), 0);
  Show(FollowedExecutor::Ended(0));
  EXPECT_EQ(Now().phase(), v1::FOLLOW_UP_SUCCEEDED);
  EXPECT_THAT(follower_.follow_ups, ElementsAre(1, 2, 3, 4));
}

TEST_F(FollowUpTest, WhatItCostIsInTheSumsOfItsExperiment) {
  Succeed();
  const v1::ShirabeStatus before = store_->GetExperiment(kKey)->record.status().shirabe();
  for (const int exit_code : {1, 0}) {
    trial::AttemptStatus ended = FollowedExecutor::Ended(exit_code);
    ended.placement.set_price_per_hour(36);
    ended.ran = absl::Seconds(100);
    Show(ended);
    Look();
  }
  EXPECT_EQ(Now().phase(), v1::FOLLOW_UP_SUCCEEDED);
  EXPECT_DOUBLE_EQ(Now().cost(), 2);
  const v1::ShirabeStatus after = store_->GetExperiment(kKey)->record.status().shirabe();
  EXPECT_DOUBLE_EQ(after.cost() - before.cost(), 2);
  EXPECT_DOUBLE_EQ(after.seconds() - before.seconds(), 200);
  EXPECT_EQ(after.preemptions(), before.preemptions());
}

TEST_F(FollowUpTest, AnotherProcessGoesOnWithTheSameAttempt) {
  Succeed();
  const std::string token = follower_.follow_up->token;
  TakenOver();
  Show(FollowedExecutor::Running());
  TakenOver();
  Show(FollowedExecutor::Ended(0));
  EXPECT_EQ(Now().phase(), v1::FOLLOW_UP_SUCCEEDED);
  EXPECT_EQ(follower_.follow_up->token, token);
  EXPECT_EQ(Now().attempts(), 1);
}

TEST_F(FollowUpTest, WhatCannotRunHereFailsAndSaysWhy) {
  follower_.answer = absl::InvalidArgumentError("no pool may be used");
  Succeed();
  EXPECT_EQ(Now().phase(), v1::FOLLOW_UP_FAILED);
  EXPECT_EQ(Now().reason(), "TemplateInvalid");
  EXPECT_THAT(Now().message(), HasSubstr("no pool may be used"));
  EXPECT_TRUE(Look().ended);
}

TEST_F(FollowUpTest, WaitsForRoomAndSaysFor) {
  follower_.answer = absl::ResourceExhaustedError("no free slot");
  Succeed();
  EXPECT_EQ(Now().phase(), v1::FOLLOW_UP_PENDING);
  EXPECT_EQ(Now().waiting(), "no free slot");
  follower_.answer = absl::OkStatus();
  Look(20);
  EXPECT_THAT(follower_.follow_ups, ElementsAre(1));
  EXPECT_EQ(Now().attempts(), 1);
}

TEST_F(FollowUpTest, WithoutABestTrialNothingIsRun) {
  follower_.value = "nothing";
  Succeed();
  EXPECT_EQ(Now().phase(), v1::FOLLOW_UP_SKIPPED);
  EXPECT_THAT(Now().message(), HasSubstr("no trial has a value"));
  EXPECT_THAT(follower_.follow_ups, IsEmpty());
  EXPECT_TRUE(Look().ended);
}

TEST_F(FollowUpTest, OneThatAUserStoppedIsNotFollowed) {
  Succeed("not yet");
  Send(v1::Intent::STOP);
  Look();
  EXPECT_TRUE(IsEnded(store_->GetExperiment(kKey)->record));
  EXPECT_THAT(follower_.follow_ups, IsEmpty());
  EXPECT_NE(Now().phase(), v1::FOLLOW_UP_PENDING);
}

TEST_F(FollowUpTest, CancelEndsIt) {
  Succeed();
  Show(FollowedExecutor::Running());
  Send(v1::Intent::CANCEL);
  Look(2);
  EXPECT_THAT(follower_.graces, Contains(absl::ZeroDuration()));
  trial::AttemptStatus killed = FollowedExecutor::Ended(0);
  killed.exit_code.reset();
  killed.signal = 9;
  EXPECT_TRUE(Show(killed).ended);
  EXPECT_EQ(Now().phase(), v1::FOLLOW_UP_FAILED);
  EXPECT_EQ(Now().reason(), "StoppedByUser");
}

TEST_F(FollowUpTest, ItsExperimentIsDeletedOnlyWithoutIt) {
  Succeed();
  Show(FollowedExecutor::Running());
  Send(v1::Intent::DELETE);
  EXPECT_FALSE(Look(3).deleted) << "it still runs";
  EXPECT_THAT(follower_.graces, Not(IsEmpty()));
  EXPECT_TRUE(Show(FollowedExecutor::Ended(0)).deleted);
  EXPECT_TRUE(absl::IsNotFound(store_->GetExperiment(kKey).status()));
}

TEST_F(FollowUpTest, AnInterruptedRunLeavesItToTheNext) {
  Succeed();
  Show(FollowedExecutor::Running());
  followed_->Suspend(kKey, /*now=*/false);
  Look(2);
  EXPECT_FALSE(follower_.graces.empty());
  const ReconcileResult result = Show(FollowedExecutor::Ended(143));
  EXPECT_TRUE(result.idle);
  EXPECT_FALSE(result.ended);
  EXPECT_EQ(Now().phase(), v1::FOLLOW_UP_PENDING);
  EXPECT_EQ(Now().failures(), 0);
  EXPECT_TRUE(NeedsOwner(store_->GetExperiment(kKey)->record));
  TakenOver();
  EXPECT_THAT(follower_.follow_ups, ElementsAre(1, 2));
}

}  // namespace
}  // namespace shirabe::experiment
