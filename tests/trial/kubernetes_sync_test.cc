// What sidecars tell the executor of their attempts, and what they are told.
#include "tests/trial/kubernetes_fixture.h"

namespace shirabe::trial {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(KubernetesTest, OnlyTheAttemptsOwnTokenIsLetIn) {
  Run(Nth(1));
  EXPECT_TRUE(executor().Sync(Request(Nth(1))).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(executor().Sync(Request(Nth(1), "guess")).status()));
  EXPECT_TRUE(absl::IsPermissionDenied(executor().Sync(Request(Nth(2))).status()));
  v1::SyncRequest climbing = Request(Nth(1));
  climbing.set_experiment("../tuning");
  EXPECT_TRUE(absl::IsPermissionDenied(executor().Sync(climbing).status()));
}

// After a restart a sidecar may be faster than whoever adopts its attempt.
TEST_F(KubernetesTest, WhoMayYetBeAdoptedIsToldToWait) {
  EXPECT_TRUE(absl::IsUnavailable(executor().Sync(Request(Nth(1))).status()));
  executor().Observe(kTuning);
  EXPECT_TRUE(absl::IsPermissionDenied(executor().Sync(Request(Nth(1))).status()));
}

TEST_F(KubernetesTest, FilesGrowAndTheAnswerSaysHowMuchThereIs) {
  Run(Nth(1));
  const auto reply = executor().Sync(WithLog(Request(Nth(1)), 0, "loss=1\n"));
  ASSERT_TRUE(reply.ok());
  ASSERT_THAT(reply->files(), SizeIs(1));
  EXPECT_EQ(reply->files(0).size(), 7);
  EXPECT_EQ(executor().Sync(WithLog(Request(Nth(1)), 99, "gap"))->files(0).size(), 7);
  EXPECT_EQ(LogOf(Nth(1)), "loss=1\n");
}

TEST_F(KubernetesTest, ItsStateIsWhatObserveShows) {
  Run(Nth(1, 2));
  v1::SyncRequest request = Request(Nth(1, 2));
  *request.mutable_state()->mutable_resumed() = Saved(Nth(1), 10);
  *request.mutable_state()->add_damaged() = Saved(Nth(1), 20);
  // A tenant that speaks of other trials speaks of its own all the same.
  v1::Checkpoint foreign = Saved({{{"other", "one"}, 9}, 9}, 30);
  *request.mutable_state()->add_checkpoints() = foreign;
  request.mutable_state()->add_refused("a link");
  const int before = changes_;
  ASSERT_TRUE(executor().Sync(request).ok());
  EXPECT_GT(changes_, before);
  const Sighting seen = See(Nth(1, 2));
  EXPECT_EQ(seen.resumed->step(), 10);
  EXPECT_EQ(seen.damaged.at(0).step(), 20);
  ASSERT_THAT(seen.checkpoints, SizeIs(1));
  EXPECT_EQ(seen.checkpoints[0].namespace_(), "lab");
  EXPECT_EQ(seen.checkpoints[0].trial(), 1);
  EXPECT_EQ(seen.checkpoints[0].attempt(), 2);
  EXPECT_THAT(seen.refused, SizeIs(1));
}

TEST_F(KubernetesTest, ANodeThatIsAboutToGoMeansACheckpointNow) {
  Run(Nth(1));
  EXPECT_FALSE(executor().Sync(Request(Nth(1)))->has_request());
  PutNode("node-0", "True",
          {{{"key", "aws-node-termination-handler/spot-itn"}, {"effect", "NoSchedule"}}});
  v1::SyncReply reply;
  ASSERT_TRUE(Await([&] {
    reply = executor().Sync(Request(Nth(1))).value_or(v1::SyncReply());
    return reply.has_request();
  }));
  EXPECT_EQ(reply.request().reason(), "checkpoint");
  EXPECT_LT(reply.next().seconds(), 1);
  v1::SyncRequest heeded = Request(Nth(1));
  heeded.mutable_state()->set_heeded(reply.request().id());
  EXPECT_FALSE(executor().Sync(heeded)->has_request());
  EXPECT_EQ(See(Nth(1)).state, Sighting::State::kRunning);
}

// A sidecar remembers what it heeded, and we may not.
TEST_F(KubernetesTest, RequestsGoOnCountingAfterARestart) {
  Run(Nth(1));
  Reopen();
  executor().Adopt({RecordOf(Nth(1))});
  ASSERT_TRUE(Await([&] { return See(Nth(1)).placement.has_start_time(); }));
  v1::SyncRequest request = Request(Nth(1));
  request.mutable_state()->set_heeded(5);
  ASSERT_TRUE(executor().Sync(request).ok());
  ASSERT_TRUE(executor().Stop(Nth(1), v1::EARLY_STOPPED, absl::Seconds(15)).ok());
  EXPECT_EQ(executor().Sync(request)->request().id(), 6);
}

TEST_F(KubernetesTest, WhatIsPrunedIsHandedOutUntilItIsDone) {
  Run(Nth(1));
  Run(Nth(2));
  executor().Prune(Saved(Nth(1), 10));
  executor().Prune(Saved(Nth(1), 10));
  // The claim is shared: any sidecar of the experiment can reach it.
  for (const AttemptKey& key : {Nth(1), Nth(2)}) {
    EXPECT_THAT(executor().Sync(Request(key))->prune(), SizeIs(1)) << AttemptName(key);
  }
  v1::SyncRequest done = Request(Nth(2));
  *done.mutable_state()->add_pruned() = Saved(Nth(1), 10);
  EXPECT_THAT(executor().Sync(done)->prune(), IsEmpty());
  EXPECT_THAT(executor().Sync(Request(Nth(1)))->prune(), IsEmpty());
}

TEST_F(KubernetesTest, WhereEachTrialHasItsOwnVolumeOnlyItsSidecarPrunes) {
  for (const AttemptKey& key : {Nth(1), Nth(2)}) {
    AttemptRequest request = PodRequestFor(key);
    request.cluster.volume.Clear();
    request.cluster.volume.set_size("1Gi");
    const Status started = executor().Start(request);
    ASSERT_TRUE(started.ok()) << started;
  }
  EXPECT_THAT(cluster_.All(Claims()), SizeIs(2));
  executor().Prune(Saved(Nth(1), 10));
  EXPECT_THAT(executor().Sync(Request(Nth(1)))->prune(), SizeIs(1));
  EXPECT_THAT(executor().Sync(Request(Nth(2)))->prune(), IsEmpty());
}

}  // namespace
}  // namespace shirabe::trial
