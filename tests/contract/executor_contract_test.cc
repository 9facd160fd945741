// What trial/executor.h promises, asked of every registered executor that can run here.
#include "tests/trial/executor_harness.h"
#include "tests/trial/pools.h"

namespace shirabe::trial {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using State = AttemptStatus::State;

// An executor that needs more than this machine is tested where there is more.
std::vector<std::string> ExecutorsOfThisMachine() {
  std::vector<std::string> names;
  for (const std::string& name : Registry<ExecutorInfo>::Get().Names()) {
    if (!RunsInCluster(name)) names.push_back(name);
  }
  return names;
}

class ExecutorContract : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { Reopen(); }
  void Reopen() { ASSERT_NE(harness_.Open(GetParam(), {"0", "1"}), nullptr); }

  Executor& executor() { return harness_.executor(); }
  Status StartSleeper(const AttemptKey& key, int gpus = 0) {
    return harness_.Start(key, {.argv = {"sleep", "1000"}, .gpus = gpus});
  }
  void StopAndForget(const AttemptKey& key) {
    EXPECT_TRUE(executor().Stop(key, v1::USER, absl::ZeroDuration()).ok());
    harness_.AwaitEnd(key);
    executor().Forget(key);
  }

  ExecutorHarness harness_;
};

TEST_P(ExecutorContract, AnAttemptRunsAndEnds) {
  const Status started = harness_.Start(Attempt(1), {.argv = Shell("echo hello; exit 3")});
  ASSERT_TRUE(started.ok()) << started;
  const AttemptStatus end = harness_.AwaitEnd(Attempt(1));
  EXPECT_EQ(end.state, State::kExited);
  EXPECT_EQ(end.exit_code, 3);
  EXPECT_EQ(end.signal, 0);
  EXPECT_FALSE(end.out_of_memory);
  EXPECT_EQ(end.platform, v1::CAUSE_NONE);
  ASSERT_TRUE(end.ran.has_value());
  EXPECT_GE(*end.ran, absl::ZeroDuration());
  EXPECT_LT(*end.ran, kPatience);
  EXPECT_TRUE(end.placement.has_start_time());
  EXPECT_GE(FromProto(end.placement.end_time()), FromProto(end.placement.start_time()));
  EXPECT_EQ(harness_.Log(Attempt(1)), "hello\n");
  EXPECT_GE(harness_.Changes(kExperiment), 1);
}

TEST_P(ExecutorContract, ThePathsExistOnceStarted) {
  ASSERT_TRUE(StartSleeper(Attempt(1)).ok());
  const AttemptPaths paths = executor().Paths(Attempt(1));
  for (const std::string& path :
       {paths.dir, paths.log, paths.params_file, paths.checkpoint_dir, paths.output_dir}) {
    EXPECT_TRUE(std::filesystem::exists(path)) << path;
  }
  EXPECT_EQ(*ReadFile(paths.params_file), R"({"lr": 0.5})");
  EXPECT_EQ(paths.output_dir, executor().Paths(Attempt(1, 2)).output_dir);
  StopAndForget(Attempt(1));
}

TEST_P(ExecutorContract, StartIsIdempotentWhileItRunsAndAfterItsEnd) {
  const Ask ask = {.argv = Shell("echo once")};
  ASSERT_TRUE(harness_.Start(Attempt(1), ask).ok());
  EXPECT_TRUE(harness_.Start(Attempt(1), ask).ok());
  harness_.AwaitEnd(Attempt(1));
  EXPECT_TRUE(harness_.Start(Attempt(1), ask).ok());
  EXPECT_EQ(harness_.AwaitEnd(Attempt(1)).exit_code, 0);
  EXPECT_EQ(harness_.Log(Attempt(1)), "once\n");
  EXPECT_THAT(executor().Observe(kExperiment), SizeIs(1));
}

TEST_P(ExecutorContract, StartAfterARestartAdopts) {
  const Ask quick = {.argv = Shell("echo once")};
  ASSERT_TRUE(harness_.Start(Attempt(1), quick).ok());
  ASSERT_TRUE(StartSleeper(Attempt(2)).ok());
  harness_.AwaitEnd(Attempt(1));
  const auto before = harness_.See(Attempt(2));
  Reopen();
  EXPECT_THAT(executor().Observe(kExperiment), IsEmpty());
  EXPECT_TRUE(harness_.Start(Attempt(1), quick).ok());
  EXPECT_TRUE(StartSleeper(Attempt(2)).ok());
  EXPECT_EQ(harness_.See(Attempt(1))->exit_code, 0);
  EXPECT_EQ(harness_.Log(Attempt(1)), "once\n");
  EXPECT_EQ(harness_.See(Attempt(2))->state, State::kRunning);
  EXPECT_EQ(harness_.See(Attempt(2))->placement.pid(), before->placement.pid());
  StopAndForget(Attempt(2));
}

TEST_P(ExecutorContract, AnotherTokenIsRefused) {
  ASSERT_TRUE(StartSleeper(Attempt(1)).ok());
  const Ask other = {.argv = {"true"}, .token = "other"};
  EXPECT_EQ(harness_.Start(Attempt(1), other).code(), absl::StatusCode::kAlreadyExists);
  Reopen();
  EXPECT_EQ(harness_.Start(Attempt(1), other).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(executor().Observe(kExperiment), IsEmpty());
  executor().Adopt({Record(Attempt(1))});
  EXPECT_EQ(harness_.See(Attempt(1))->state, State::kRunning);
  StopAndForget(Attempt(1));
}

TEST_P(ExecutorContract, AdoptTellsRunningEndedAndLost) {
  ASSERT_TRUE(StartSleeper(Attempt(1)).ok());
  ASSERT_TRUE(harness_.Start(Attempt(2), {.argv = Shell("exit 42")}).ok());
  harness_.AwaitEnd(Attempt(2));
  Reopen();
  executor().Adopt(
      {Record(Attempt(1)), Record(Attempt(2)), Record(Attempt(3)), Record(Attempt(2, 2), "never")});
  EXPECT_EQ(harness_.See(Attempt(1))->state, State::kRunning);
  EXPECT_EQ(harness_.See(Attempt(2))->state, State::kExited);
  EXPECT_EQ(harness_.See(Attempt(2))->exit_code, 42);
  EXPECT_EQ(harness_.See(Attempt(3))->state, State::kLost);
  EXPECT_THAT(harness_.See(Attempt(3))->message, HasSubstr("never started"));
  EXPECT_THAT(executor().Observe(kExperiment), SizeIs(4));
  StopAndForget(Attempt(1));
}

TEST_P(ExecutorContract, WhatAdoptFoundNeverStartedCanBeStarted) {
  executor().Adopt({Record(Attempt(1))});
  EXPECT_EQ(harness_.See(Attempt(1))->state, State::kLost);
  ASSERT_TRUE(harness_.Start(Attempt(1), {.argv = Shell("exit 5")}).ok());
  EXPECT_EQ(harness_.AwaitEnd(Attempt(1)).exit_code, 5);
}

TEST_P(ExecutorContract, AnAdoptedAttemptIsSeenEnding) {
  const std::string go = harness_.home() + "/go";
  ASSERT_TRUE(harness_
                  .Start(Attempt(1),
                         {.argv = Shell("while ! test -e " + go + "; do sleep 0.01; done; exit 9")})
                  .ok());
  Reopen();
  executor().Adopt({Record(Attempt(1))});
  EXPECT_EQ(harness_.See(Attempt(1))->state, State::kRunning);
  ASSERT_TRUE(WriteFileAtomic(go, "").ok());
  EXPECT_EQ(harness_.AwaitEnd(Attempt(1)).exit_code, 9);
}

TEST_P(ExecutorContract, StopEndsWhatRuns) {
  ASSERT_TRUE(StartSleeper(Attempt(1)).ok());
  EXPECT_TRUE(executor().Stop(Attempt(1), v1::EARLY_STOPPED, absl::Seconds(30)).ok());
  const AttemptStatus end = harness_.AwaitEnd(Attempt(1));
  EXPECT_EQ(end.state, State::kExited);
  EXPECT_TRUE(end.signal == 15 || end.exit_code == 143) << end.signal;
}

TEST_P(ExecutorContract, StopOfWhatIsEndedOrUnknownIsFine) {
  ASSERT_TRUE(harness_.Start(Attempt(1), {.argv = {"true"}}).ok());
  harness_.AwaitEnd(Attempt(1));
  EXPECT_TRUE(executor().Stop(Attempt(1), v1::USER, absl::Seconds(1)).ok());
  EXPECT_TRUE(executor().Stop(Attempt(99), v1::USER, absl::Seconds(1)).ok());
  EXPECT_EQ(harness_.See(Attempt(1))->exit_code, 0);
}

TEST_P(ExecutorContract, ObserveKeepsExperimentsApart) {
  const ExperimentKey neighbours[] = {{"default", "exp-1"}, {"default", "ex"}, {"other", "exp"}};
  for (const ExperimentKey& neighbour : neighbours) {
    ASSERT_TRUE(harness_.Start({{neighbour, 1}, 1}, {.argv = {"true"}}).ok());
  }
  ASSERT_TRUE(harness_.Start(Attempt(1), {.argv = {"true"}}).ok());
  EXPECT_THAT(executor().Observe(kExperiment), SizeIs(1));
  for (const ExperimentKey& neighbour : neighbours) {
    EXPECT_THAT(executor().Observe(neighbour), SizeIs(1));
    harness_.AwaitEnd({{neighbour, 1}, 1});
  }
  harness_.AwaitEnd(Attempt(1));
}

TEST_P(ExecutorContract, ForgetDropsAndKeepsFiles) {
  ASSERT_TRUE(harness_.Start(Attempt(1), {.argv = Shell("echo kept")}).ok());
  harness_.AwaitEnd(Attempt(1));
  executor().Forget(Attempt(1));
  executor().Forget(Attempt(1));
  EXPECT_THAT(executor().Observe(kExperiment), IsEmpty());
  EXPECT_EQ(harness_.Log(Attempt(1)), "kept\n");
}

TEST_P(ExecutorContract, RemoveFilesTakesATrialOrAll) {
  for (int trial : {1, 2}) {
    ASSERT_TRUE(harness_.Start(Attempt(trial), {.argv = {"true"}}).ok());
    harness_.AwaitEnd(Attempt(trial));
  }
  EXPECT_TRUE(executor().RemoveFiles(kExperiment, 1).ok());
  EXPECT_FALSE(std::filesystem::exists(executor().Paths(Attempt(1)).dir));
  EXPECT_TRUE(std::filesystem::exists(executor().Paths(Attempt(2)).dir));
  EXPECT_TRUE(executor().RemoveFiles(kExperiment, 0).ok());
  EXPECT_FALSE(std::filesystem::exists(executor().Paths(Attempt(2)).dir));
  EXPECT_TRUE(executor().RemoveFiles(kExperiment, 0).ok());
}

TEST_P(ExecutorContract, RemoveFilesRefusesWhatRunsAndWhatIsNoName) {
  ASSERT_TRUE(StartSleeper(Attempt(1)).ok());
  EXPECT_EQ(executor().RemoveFiles(kExperiment, 0).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(executor().RemoveFiles(kExperiment, 1).code(), absl::StatusCode::kFailedPrecondition);
  for (const ExperimentKey& bad : std::vector<ExperimentKey>{
           {"default", ".."}, {"default", ""}, {"..", "exp"}, {"", "exp"}, {"default", "a/b"}}) {
    EXPECT_EQ(executor().RemoveFiles(bad, 0).code(), absl::StatusCode::kInvalidArgument);
  }
  StopAndForget(Attempt(1));
}

TEST_P(ExecutorContract, DevicesAreGivenOutOnceAndFreedByForget) {
  ASSERT_TRUE(StartSleeper(Attempt(1), 1).ok());
  ASSERT_TRUE(StartSleeper(Attempt(2), 1).ok());
  EXPECT_EQ(harness_.See(Attempt(1))->placement.devices(), "0");
  EXPECT_EQ(harness_.See(Attempt(2))->placement.devices(), "1");
  const AttemptRequest third = MakeRequest(Attempt(3), {.argv = {"sleep", "1000"}, .gpus = 1});
  EXPECT_EQ(executor().Start(third).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(executor().QuotePlacement(kExperiment, third.trial_spec, {}).waiting,
              HasSubstr("1 GPU"));
  EXPECT_EQ(harness_.See(Attempt(3)), std::nullopt);

  EXPECT_TRUE(executor().Stop(Attempt(1), v1::USER, absl::ZeroDuration()).ok());
  harness_.AwaitEnd(Attempt(1));
  EXPECT_EQ(executor().Start(third).code(), absl::StatusCode::kResourceExhausted);
  const int changes = harness_.Changes(kExperiment);
  executor().Forget(Attempt(1));
  EXPECT_GT(harness_.Changes(kExperiment), changes);  // whoever was refused may try again
  EXPECT_EQ(executor().QuotePlacement(kExperiment, third.trial_spec, {}).waiting, "");
  EXPECT_TRUE(executor().Start(third).ok());
  EXPECT_EQ(harness_.See(Attempt(3))->placement.devices(), "0");
  StopAndForget(Attempt(2));
  StopAndForget(Attempt(3));
}

TEST_P(ExecutorContract, DevicesOfAnAdoptedAttemptStayTaken) {
  ASSERT_TRUE(StartSleeper(Attempt(1), 1).ok());
  Reopen();
  executor().Adopt({Record(Attempt(1))});
  EXPECT_EQ(harness_.See(Attempt(1))->placement.devices(), "0");
  EXPECT_EQ(StartSleeper(Attempt(2), 2).code(), absl::StatusCode::kResourceExhausted);
  ASSERT_TRUE(StartSleeper(Attempt(3), 1).ok());
  EXPECT_EQ(harness_.See(Attempt(3))->placement.devices(), "1");
  StopAndForget(Attempt(1));
  StopAndForget(Attempt(3));
}

TEST_P(ExecutorContract, MoreDevicesThanThereAreIsAnErrorOfTheTemplate) {
  const Status status = StartSleeper(Attempt(1), 3);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(status), HasSubstr("--gpus"));
  EXPECT_THAT(executor().Observe(kExperiment), IsEmpty());
}

TEST_P(ExecutorContract, SlotsOfPoolsAreGivenOutAtAPriceAndFreedByForget) {
  ASSERT_NE(harness_.Open(GetParam(), {}, SpotPool(1)), nullptr);
  EXPECT_EQ(executor().QuotePlacement(kExperiment, {}, {}).waiting, "");
  EXPECT_EQ(executor().QuotePlacement(kExperiment, {}, {}).price_per_hour, 0.9);
  ASSERT_TRUE(StartSleeper(Attempt(1)).ok());
  const v1::Placement placement = harness_.See(Attempt(1))->placement;
  EXPECT_EQ(placement.pool(), "spot");
  EXPECT_EQ(placement.capacity(), "spot");
  EXPECT_EQ(placement.price_per_hour(), 0.9);
  EXPECT_EQ(StartSleeper(Attempt(2)).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(executor().QuotePlacement(kExperiment, {}, {}).waiting, HasSubstr("no free slot"));
  EXPECT_EQ(harness_.See(Attempt(2)), std::nullopt);
  const int changes = harness_.Changes(kExperiment);
  const ExperimentKey asker{"default", "asker"};
  EXPECT_THAT(executor().QuotePlacement(asker, {}, {}).waiting, HasSubstr("no free slot"));
  StopAndForget(Attempt(1));
  EXPECT_GT(harness_.Changes(kExperiment), changes);
  EXPECT_EQ(harness_.Changes(asker), 1);  // who only asked is told as well
  ASSERT_TRUE(StartSleeper(Attempt(2)).ok());
  StopAndForget(Attempt(2));
}

TEST_P(ExecutorContract, APolicyThatNoPoolServesIsAnErrorOfTheExperiment) {
  ASSERT_NE(harness_.Open(GetParam(), {}, SpotPool(1)), nullptr);
  AttemptRequest request = MakeRequest(Attempt(1), {.argv = {"true"}});
  request.placement_request.policy.add_pools("other");
  const Status status = executor().Start(request);
  // Those of a cluster change while it runs.
  const bool waits = GetParam() == "kubernetes";
  EXPECT_EQ(status.code(),
            waits ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(status), HasSubstr("cannot progress"));
  EXPECT_THAT(executor().Observe(kExperiment), IsEmpty());
}

TEST_P(ExecutorContract, ATemplateThatCannotRunHereIsRefused) {
  AttemptRequest request = MakeRequest(Attempt(1), {.argv = {"true"}});
  request.primary_container = "other";
  EXPECT_EQ(executor().Start(request).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(executor().Observe(kExperiment), IsEmpty());
}

// ---- checkpoints --------------------------------------------------------------------------------

// Saves a step as the contract asks, with its number as the contents.
std::string Saving(int64_t step) {
  const std::string path = "$SHIRABE_CHECKPOINT_DIR/" + std::to_string(step);
  return "mkdir " + path + ".tmp && echo " + std::to_string(step) + " > " + path +
         ".tmp/model && mv " + path + ".tmp " + path + ";";
}

TEST_P(ExecutorContract, WhatWasSavedIsListedOnceItEnded) {
  ASSERT_TRUE(harness_.Start(Attempt(1), {.argv = Shell(Saving(2) + Saving(10) + "exit 1")}).ok());
  const AttemptStatus end = harness_.AwaitEnd(Attempt(1));
  ASSERT_THAT(end.checkpoints, SizeIs(2));
  EXPECT_EQ(end.checkpoints[0].step(), 2);
  EXPECT_EQ(end.checkpoints[1].step(), 10);
  EXPECT_EQ(end.checkpoints[1].digest().size(), 64u);
  EXPECT_THAT(end.refused, IsEmpty());
}

TEST_P(ExecutorContract, AnAttemptGoesOnFromTheNewestIntactCheckpoint) {
  ASSERT_TRUE(harness_.Start(Attempt(1), {.argv = Shell(Saving(10) + Saving(20))}).ok());
  const auto saved = harness_.AwaitEnd(Attempt(1)).checkpoints;
  ASSERT_THAT(saved, SizeIs(2));
  v1::Checkpoint damaged = saved[1];
  damaged.set_digest(std::string(64, '0'));
  const Ask ask = {.argv = Shell("cat $SHIRABE_RESUME_FROM/model")};
  AttemptRequest request = MakeRequest(Attempt(1, 2), ask);
  request.resume = {damaged, saved[0]};
  Status started;
  ASSERT_TRUE(harness_.Await([&] {
    started = executor().Start(request);
    return !absl::IsUnavailable(started);
  }));
  ASSERT_TRUE(started.ok()) << started;
  const AttemptStatus end = harness_.AwaitEnd(Attempt(1, 2));
  EXPECT_EQ(harness_.Log(Attempt(1, 2)), "10\n");
  EXPECT_EQ(end.resumed->step(), 10);
  ASSERT_THAT(end.damaged, SizeIs(1));
  EXPECT_EQ(end.damaged[0].step(), 20);
  EXPECT_NE(end.damaged[0].gone(), "");
  EXPECT_THAT(end.checkpoints, IsEmpty());
}

TEST_P(ExecutorContract, WhatIsPrunedCannotBeGoneOnFrom) {
  ASSERT_TRUE(harness_.Start(Attempt(1), {.argv = Shell(Saving(10))}).ok());
  const auto saved = harness_.AwaitEnd(Attempt(1)).checkpoints;
  ASSERT_THAT(saved, SizeIs(1));
  executor().Prune(saved[0]);
  executor().Prune(saved[0]);
  const std::string path = executor().Paths(Attempt(1)).checkpoint_dir + "/10";
  ASSERT_TRUE(harness_.Await([&] { return !std::filesystem::exists(path); }));
  AttemptRequest request = MakeRequest(Attempt(1, 2), {.argv = {"true"}});
  request.resume = saved;
  ASSERT_TRUE(executor().Start(request).ok());
  EXPECT_EQ(harness_.AwaitEnd(Attempt(1, 2)).resumed, std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(All, ExecutorContract, testing::ValuesIn(ExecutorsOfThisMachine()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace shirabe::trial
