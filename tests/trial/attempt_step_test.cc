#include "trial/kubernetes/attempt_step.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/trial/pod_samples.h"

namespace shirabe::trial {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using State = AttemptStatus::State;

constexpr absl::Duration kNow = absl::Seconds(1000);

// A Job of one pod on one node, seen at 1000 s; what a test does not say has gone well.
class AttemptStepTest : public testing::Test {
 protected:
  AttemptStepTest() {
    attempt_.key = attempt_.observed.key = {{{"default", "exp"}, 1}, 1};
    attempt_.id = "id";
    attempt_.ref = {Jobs(), "default", "exp-1-a1"};
    attempt_.uid = "job-uid";
    attempt_.recipe = {.primary_container = "main", .instrumented = true};
    facts_.now = kNow;
    facts_.time = absl::FromUnixSeconds(1'800'000'000);
    facts_.synced = facts_.nodes_known = true;
    facts_.sync_interval = timeouts_.sync;
    facts_.object = Json{{"metadata", {{"name", "exp-1-a1"}, {"uid", "job-uid"}}}};
    SetNode("True");
  }

  void SetNode(const std::string& ready, const Json& taints = Json::array()) {
    facts_.nodes["node-0"] = {
        {"metadata", {{"name", "node-0"}}},
        {"spec", {{"taints", taints}}},
        {"status", {{"conditions", {{{"type", "Ready"}, {"status", ready}}}}}}};
  }

  void SetPod(const Json& pod) { facts_.pods = {pod}; }

  AttemptStep Step() { return NextStep(facts_, attempt_, {timeouts_, pools_}); }
  // Also writes it down, as the watcher does.
  AttemptStep StepOn(absl::Duration later = absl::ZeroDuration()) {
    facts_.now += later;
    const AttemptStep step = Step();
    Apply(step, facts_, attempt_);
    return step;
  }

  PodTimeouts timeouts_;
  v1::NodePools pools_;
  AttemptFacts facts_;
  PodAttempt attempt_;
};

// ---- which object -------------------------------------------------------------------------------

TEST_F(AttemptStepTest, WaitsForTheClusterBeforeItMissesAnObject) {
  attempt_.uid.clear();
  facts_.object.reset();
  facts_.synced = false;
  const AttemptStep early = Step();
  EXPECT_FALSE(early.confirm_gone);
  EXPECT_GT(early.check_at, kNow);
  facts_.synced = true;
  EXPECT_TRUE(StepOn().confirm_gone);
  EXPECT_FALSE(Step().confirm_gone) << "it is being asked already";
}

TEST_F(AttemptStepTest, BindsAnAdoptedAttemptToItsOwnObjectOnly) {
  attempt_.uid.clear();
  (*facts_.object)["metadata"]["annotations"] = {{kAttemptIdAnnotation, "id"}};
  EXPECT_TRUE(StepOn().bind);
  EXPECT_EQ(attempt_.uid, "job-uid");

  attempt_.uid.clear();
  (*facts_.object)["metadata"]["annotations"] = {{kAttemptIdAnnotation, "another"}};
  const AttemptStep step = Step();
  EXPECT_FALSE(step.bind);
  EXPECT_TRUE(step.never_began);
  EXPECT_EQ(step.observed.state, State::kLost);
}

TEST_F(AttemptStepTest, AnObjectOfAnotherUidIsNotItsOwn) {
  (*facts_.object)["metadata"]["uid"] = "another";
  EXPECT_TRUE(Step().confirm_gone);
}

// ---- conditions that do not hold ----------------------------------------------------------------

// A pod that is the attempt's object is held by our finalizer until the attempt has ended.
TEST_F(AttemptStepTest, ADeletedPodEndsThoughItsConditionWillNeverHold) {
  attempt_.ref = {Pods(), "default", "exp-1-a1"};
  attempt_.recipe.success_condition = R"(status.phase=="Succeeded")";  // in no language of ours
  attempt_.recipe.instrumented = false;
  attempt_.remainder_read = true;
  for (const int code : {0, 143}) {
    attempt_.observed = {.key = attempt_.key};
    attempt_.progress = {};
    Json pod = PodSample().Ended(code, "Completed").pod;
    pod["metadata"]["uid"] = "job-uid";
    SetPod(pod);
    facts_.object = pod;
    EXPECT_EQ(Step().observed.state, State::kRunning) << "it may hold yet";
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:10:00Z";
    SetPod(pod);
    facts_.object = pod;
    const AttemptStep step = Step();
    EXPECT_EQ(step.observed.state, State::kExited);
    EXPECT_NE(step.observed.exit_code, 0) << "it is no success";
  }
}

// ---- pods of which none is the primary one ------------------------------------------------------

TEST_F(AttemptStepTest, PodsWithoutThePrimaryLabelsAreSaidOnceTheyHaveBeenThereForAWhile) {
  attempt_.recipe.primary_labels = {{"role", "chief"}};
  SetPod(PodSample().Running().pod);
  const std::string name = kube::NameOf(facts_.pods[0]);
  EXPECT_EQ(StepOn().observed.waiting, "") << "that pod may come last";
  const std::string waiting = StepOn(timeouts_.ask_events).observed.waiting;
  EXPECT_THAT(waiting, testing::HasSubstr("none of its pods (" + name + ")"));
  EXPECT_THAT(waiting, testing::HasSubstr("role=chief (primaryPodLabels)"));
  facts_.pods[0]["metadata"]["labels"]["role"] = "chief";
  EXPECT_EQ(StepOn().observed.waiting, "");
}

// ---- nodes --------------------------------------------------------------------------------------

TEST_F(AttemptStepTest, ASilentNodeIsDeadOnlyOnceItsSidecarIsSilentToo) {
  SetPod(PodSample().Running().pod);
  SetNode("Unknown");
  attempt_.heard = kNow;
  const AttemptStep step = StepOn();
  EXPECT_EQ(step.observed.state, State::kRunning);
  EXPECT_EQ(step.check_at, kNow + timeouts_.silence);
  attempt_.heard = kNow + absl::Seconds(30);
  EXPECT_EQ(StepOn(timeouts_.silence).observed.state, State::kRunning);
  EXPECT_EQ(StepOn(timeouts_.silence).observed.platform, v1::PREEMPTED_NODE);
}

TEST_F(AttemptStepTest, ANodeThatWasSeenAndHasVanishedIsDeadAtOnce) {
  SetPod(PodSample().Running().pod);
  StepOn();
  facts_.nodes.clear();
  const AttemptStep step = StepOn();
  EXPECT_EQ(step.observed.state, State::kExited);
  EXPECT_EQ(step.observed.platform, v1::PREEMPTED_NODE);
}

TEST_F(AttemptStepTest, ANodeThatWasNeverSeenMayStillCome) {
  SetPod(PodSample().Running().pod);
  facts_.nodes.clear();
  EXPECT_EQ(StepOn().check_at, kNow + timeouts_.unseen);
  EXPECT_EQ(StepOn(timeouts_.unseen).observed.platform, v1::PREEMPTED_NODE);
}

TEST_F(AttemptStepTest, OfANodeThatMayNotBeLookedAtTheNameIsToldAndThePriceStays) {
  facts_.nodes.clear();
  facts_.nodes_known = false;
  facts_.nodes_refused = true;
  attempt_.observed.placement.set_price_per_hour(2);
  SetPod(PodSample().Running().pod);
  const AttemptStep step = StepOn();
  EXPECT_EQ(step.observed.placement.node(), "node-0");
  EXPECT_EQ(step.observed.placement.price_per_hour(), 2);
  EXPECT_EQ(StepOn(absl::Hours(1)).observed.state, State::kRunning);
}

TEST_F(AttemptStepTest, ANodeThatIsAboutToGoAsksForOneCheckpoint) {
  SetPod(PodSample().Running().pod);
  SetNode("True", Json::array({Json{{"key", "karpenter.sh/disrupted"}}}));
  ASSERT_TRUE(StepOn().warning.has_value());
  ASSERT_TRUE(attempt_.pending_request.has_value());
  EXPECT_EQ(attempt_.pending_request->reason, "checkpoint");
  EXPECT_FALSE(StepOn().warning.has_value());
}

// ---- waiting ------------------------------------------------------------------------------------

TEST_F(AttemptStepTest, EventsAreLookedUpOnceItHasWaitedForAWhile) {
  SetPod(PodSample().pod);
  const AttemptStep early = StepOn();
  EXPECT_FALSE(early.look_up_events);
  EXPECT_EQ(early.check_at, kNow + timeouts_.ask_events);
  EXPECT_TRUE(StepOn(timeouts_.ask_events).look_up_events);
  EXPECT_FALSE(StepOn().look_up_events) << "it is on the list";
  SetPod(PodSample().Running().pod);
  EXPECT_FALSE(StepOn().progress.needs_events);
}

TEST_F(AttemptStepTest, AnImageThatCannotBePulledIsGivenUpAfterItsPatience) {
  PodSample sample;
  sample.Scheduled();
  sample.pod["status"]["containerStatuses"] =
      Json::array({{{"name", "main"}, {"state", {{"waiting", {{"reason", "ImagePullBackOff"}}}}}}});
  SetPod(sample.pod);
  const AttemptStep waiting = StepOn();
  EXPECT_THAT(waiting.observed.waiting, HasSubstr("cannot be pulled"));
  ASSERT_TRUE(waiting.check_at.has_value());
  const AttemptStep over = StepOn(*waiting.check_at - kNow);
  EXPECT_EQ(over.observed.state, State::kExited);
  EXPECT_EQ(over.observed.platform, v1::NEVER_RAN);
  EXPECT_THAT(over.observed.waiting, IsEmpty());
}

// ---- its end ------------------------------------------------------------------------------------

TEST_F(AttemptStepTest, ASuccessThatItsSidecarReportsInFullIsNotWaitedFor) {
  SetPod(PodSample().Running().pod);
  attempt_.state.set_complete(true);
  attempt_.state.mutable_exit()->set_code(0);
  const AttemptStep step = StepOn();
  EXPECT_EQ(step.observed.state, State::kExited);
  EXPECT_EQ(step.observed.exit_code, 0);
}

TEST_F(AttemptStepTest, AFailureThatItsSidecarReportsIsTheKubeletsToTellForAWhile) {
  SetPod(PodSample().Running().pod);
  attempt_.state.set_complete(true);
  attempt_.state.mutable_exit()->set_code(3);
  const AttemptStep step = StepOn();
  EXPECT_EQ(step.observed.state, State::kRunning);
  EXPECT_EQ(step.check_at, kNow + timeouts_.final_sync);
  EXPECT_EQ(StepOn(timeouts_.final_sync).observed.exit_code, 3);
}

TEST_F(AttemptStepTest, TheRemainderIsReadOnceAndThenItHasEnded) {
  SetPod(PodSample().Ended(0, "Completed").pod);
  const AttemptStep ended = StepOn();
  EXPECT_TRUE(ended.read_remainder);
  EXPECT_EQ(ended.observed.state, State::kRunning);
  EXPECT_FALSE(StepOn().read_remainder) << "it is being read";
  attempt_.reading_log = false;
  attempt_.remainder_read = true;
  EXPECT_EQ(StepOn().observed.state, State::kExited);
}

// A model takes longer to be copied than a log to be sent; a sidecar that is silent is not.
TEST_F(AttemptStepTest, CopiesAreWaitedForWhileTheirSidecarIsHeardOf) {
  Json pod = PodSample().Ended(0, "Completed").pod;
  const Json running = {{"running", {{"startedAt", "2026-01-01T00:00:10Z"}}}};
  pod["status"]["phase"] = "Running";
  pod["status"]["initContainerStatuses"] =
      Json::array({{{"name", "shirabe-sidecar"}, {"state", running}}});
  SetPod(pod);
  attempt_.state.set_copying(true);
  for (int i = 0; i < 20; ++i) {
    attempt_.heard = facts_.now;
    EXPECT_FALSE(StepOn(timeouts_.final_sync / 2).read_remainder) << i;
  }
  EXPECT_TRUE(StepOn(timeouts_.final_sync).read_remainder);
}

TEST_F(AttemptStepTest, WithoutASidecarItsLogIsFollowed) {
  attempt_.recipe.instrumented = false;
  SetPod(PodSample().Running().pod);
  EXPECT_TRUE(StepOn().follow_log);
  attempt_.reading_log = false;
  attempt_.log_at = kNow + absl::Seconds(3);
  const AttemptStep early = Step();
  EXPECT_FALSE(early.follow_log);
  EXPECT_EQ(early.check_at, attempt_.log_at);
}

// Of 3,600 attempts each is heard of every 20 s, and is missed no later than of a few.
TEST_F(AttemptStepTest, ADeadNodeIsMissedAsSoonWhereThereAreMany) {
  EXPECT_EQ(SyncInterval(timeouts_, 100), timeouts_.sync);
  EXPECT_EQ(SyncInterval(timeouts_, 900), absl::Seconds(5));
  EXPECT_EQ(SyncInterval(timeouts_, 100'000), absl::Seconds(20)) << "a stop is not to wait longer";
  facts_.sync_interval = SyncInterval(timeouts_, 3600);
  EXPECT_EQ(facts_.sync_interval, absl::Seconds(20));
  SetPod(PodSample().Running().pod);
  SetNode("Unknown");
  attempt_.heard = kNow;
  EXPECT_EQ(StepOn().check_at, kNow + timeouts_.silence);
}

// ---- stopping -----------------------------------------------------------------------------------

TEST_F(AttemptStepTest, AStopWaitsForTheSidecarAndThenEndsThePods) {
  SetPod(PodSample().Running().pod);
  attempt_.stop = {kNow + absl::Seconds(15), kNow + absl::Seconds(1), false};
  RequestOfProgram("cancel", absl::InfiniteFuture(), attempt_);
  const AttemptStep waiting = StepOn();
  EXPECT_FALSE(waiting.end_pods.has_value());
  EXPECT_EQ(waiting.check_at, kNow + absl::Seconds(1));
  const AttemptStep step = StepOn(absl::Seconds(1));
  ASSERT_TRUE(step.end_pods.has_value());
  EXPECT_EQ(step.end_pods->grace, absl::Seconds(14));
  EXPECT_FALSE(step.end_pods->object_too) << "a Job starts no other pod";
  EXPECT_FALSE(StepOn().end_pods.has_value()) << "it is under way";
}

TEST_F(AttemptStepTest, AStopThatIsRefusedIsSaidAndTriedAgain) {
  SetPod(PodSample().Running().pod);
  attempt_.heard = kNow;
  attempt_.stop = {kNow, kNow + absl::Seconds(1), false};
  attempt_.stop->refused = "it cannot be ended: no right";
  EXPECT_EQ(Step().observed.waiting, attempt_.stop->refused);
  EXPECT_TRUE(StepOn(absl::Seconds(2)).end_pods.has_value());
}

TEST_F(AttemptStepTest, WhereNothingRunsAStopDeletesTheObject) {
  attempt_.stop = {kNow, kNow, false};
  ASSERT_TRUE(Step().end_pods.has_value());
  EXPECT_TRUE(Step().end_pods->object_too);
}

// ---- all of it ----------------------------------------------------------------------------------

TEST_F(AttemptStepTest, ASidecarThatIsNotHeardOfIsAskedOnce) {
  SetPod(PodSample().Running().pod);
  EXPECT_EQ(StepOn().check_at, kNow + timeouts_.unheard);
  EXPECT_FALSE(StepOn(timeouts_.unheard / 2).ask_sidecar);
  EXPECT_TRUE(StepOn(timeouts_.unheard / 2).ask_sidecar);
  EXPECT_FALSE(StepOn(absl::Seconds(1)).ask_sidecar) << "it is being asked already";
  attempt_.reading_sidecar = false;
  attempt_.unheard_why = "no name";
  EXPECT_FALSE(Step().ask_sidecar);
  EXPECT_EQ(Step().observed.waiting, "no name");
  attempt_.heard = facts_.now;
  EXPECT_EQ(Step().observed.waiting, "");
}

TEST_F(AttemptStepTest, TheSameFactsGiveTheSameStepAndChangeNothing) {
  SetPod(PodSample().Running().pod);
  attempt_.heard = kNow;
  const AttemptStep first = StepOn();
  EXPECT_TRUE(first.observed.placement.has_start_time());
  EXPECT_EQ(first.observed.placement.node(), "node-0");
  const AttemptStep second = StepOn();
  EXPECT_EQ(second.observed.placement.SerializeAsString(),
            first.observed.placement.SerializeAsString());
  EXPECT_FALSE(second.check_at || second.confirm_gone || second.end_pods || second.follow_log);
}

}  // namespace
}  // namespace shirabe::trial
