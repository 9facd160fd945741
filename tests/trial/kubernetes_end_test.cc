// How attempts in a cluster end: by themselves, stopped, preempted, lost.
#include <csignal>

#include "base/open_beneath.h"
#include "tests/support/parse_struct.h"
#include "tests/trial/kubernetes_fixture.h"
#include "trial/pod/final_sync_log.h"

namespace shirabe::trial {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;
using SeenState = AttemptStatus::State;

v1::SyncRequest Complete(v1::SyncRequest request, int code) {
  request.mutable_state()->mutable_exit()->set_code(code);
  request.mutable_state()->mutable_exit()->mutable_ran()->set_seconds(30);
  request.mutable_state()->set_complete(true);
  return request;
}

// ---- by themselves ------------------------------------------------------------------------------

// Its program has ended, as its sidecar says, and a collector of the user's has not.
class CollectorTest : public KubernetesTest {
 protected:
  void RunToTheEnd(const PodTimeouts& times = Impatient(), int code = 0) {
    Reopen(times);
    AttemptRequest request = PodRequestFor(Nth(1));
    auto* collector = request.cluster.collector.mutable_collector();
    collector->set_kind(v1::CUSTOM);
    *collector->mutable_custom_collector() = ParseStruct(R"({"name": "csv", "image": "csv:1"})");
    ASSERT_TRUE(executor().Start(request).ok());
    MakePod(Nth(1));
    RunPod(Nth(1));
    ASSERT_TRUE(Await([&] { return See(Nth(1)).placement.has_start_time(); }));
    Say({{"running", Json::object()}});
    ASSERT_TRUE(executor().Sync(Complete(Request(Nth(1)), code)).ok());
  }
  // What the kubelet says of the collector.
  void Say(const Json& state) {
    Edit(Nth(1), [&](Json& pod) {
      Json& statuses = pod["status"]["containerStatuses"];
      if (statuses.size() == 2) statuses.erase(1);
      statuses.push_back(State("csv", state));
    });
  }
};

TEST_F(CollectorTest, AnAttemptRunsUntilItHasReported) {
  RunToTheEnd();
  EXPECT_EQ(See(Nth(1)).state, SeenState::kRunning);
  Say({{"terminated", {{"exitCode", 0}}}});
  const AttemptStatus end = AwaitEnd(Nth(1));
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_EQ(end.message, "");
}

TEST_F(CollectorTest, HowItFailedIsSaid) {
  RunToTheEnd();
  Say({{"terminated", {{"exitCode", 3}}}});
  const AttemptStatus end = AwaitEnd(Nth(1));
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_EQ(end.message, "its collector csv ended with exit code 3");
}

TEST_F(CollectorTest, ItIsNotWaitedForForEver) {
  PodTimeouts times = Impatient();
  times.collector = absl::Milliseconds(300);
  RunToTheEnd(times);
  EXPECT_EQ(AwaitEnd(Nth(1)).message, "its collector csv had not ended 300ms after the program");
}

TEST_F(CollectorTest, NorWhenItsPodIsGone) {
  RunToTheEnd();
  const Json done = {{"terminated", {{"exitCode", 0}, {"reason", "Completed"}}}};
  Edit(Nth(1), [&](Json& pod) {
    pod["status"]["phase"] = "Failed";
    pod["status"]["containerStatuses"] = Json::array({State("training-container", done)});
  });
  EXPECT_EQ(AwaitEnd(Nth(1)).message,
            "its collector csv was lost with the pod before it had ended");
}

TEST_F(CollectorTest, AStoppedAttemptNeedsNoReport) {
  RunToTheEnd();
  ASSERT_TRUE(executor().Stop(Nth(1), v1::USER, absl::Seconds(1)).ok());
  EXPECT_EQ(AwaitEnd(Nth(1)).exit_code, 0);
}

// The recipe stands with the object.
TEST_F(CollectorTest, ARestartedControllerWaitsAsWell) {
  RunToTheEnd();
  Reopen();
  executor().Adopt({RecordOf(Nth(1))});
  ASSERT_TRUE(Await([&] { return See(Nth(1)).placement.has_start_time(); }));
  EXPECT_EQ(See(Nth(1)).state, SeenState::kRunning);
  Say({{"terminated", {{"exitCode", 0}}}});
  EXPECT_EQ(AwaitEnd(Nth(1)).exit_code, 0);
}

TEST_F(CollectorTest, OfAProgramThatFailedNothingIsCollected) {
  RunToTheEnd(Impatient(), 1);
  const Json failed = {{"terminated", {{"exitCode", 1}, {"reason", "Error"}}}};
  Edit(Nth(1), [&](Json& pod) {
    pod["status"]["containerStatuses"][0] = State("training-container", failed);
  });
  EXPECT_EQ(AwaitEnd(Nth(1)).exit_code, 1);
}

TEST_F(KubernetesTest, AGoodEndIsSeenAsSoonAsItsSidecarTellsIt) {
  Run(Nth(1));
  ASSERT_TRUE(executor().Sync(Complete(WithLog(Request(Nth(1)), 0, "loss=1\n"), 0)).ok());
  const AttemptStatus end = See(Nth(1));
  EXPECT_EQ(end.state, SeenState::kExited);
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_EQ(end.platform, v1::CAUSE_NONE);
  EXPECT_EQ(end.ran, absl::Seconds(30));
  EXPECT_EQ(LogOf(Nth(1)), "loss=1\n");
}

TEST_F(KubernetesTest, ABadEndIsTheKubeletsToExplain) {
  Run(Nth(1));
  ASSERT_TRUE(executor().Sync(Complete(Request(Nth(1)), 1)).ok());
  EXPECT_EQ(See(Nth(1)).state, SeenState::kRunning);
  Edit(Nth(1), [](Json& pod) {
    pod["status"]["phase"] = "Failed";
    const Json killed = {{"terminated", {{"exitCode", 137}, {"reason", "OOMKilled"}}}};
    pod["status"]["containerStatuses"] = Json::array({State("training-container", killed)});
  });
  EXPECT_TRUE(AwaitEnd(Nth(1)).out_of_memory);
}

TEST_F(KubernetesTest, TheProgramsOwnExitGoesBeforeItsContainers) {
  Run(Nth(1));
  v1::SyncRequest last = Complete(Request(Nth(1)), 139);
  last.mutable_state()->mutable_exit()->set_signal(SIGSEGV);
  ASSERT_TRUE(executor().Sync(last).ok());
  EndPod(Nth(1), 139);
  const AttemptStatus end = AwaitEnd(Nth(1));
  EXPECT_EQ(end.signal, SIGSEGV);
  EXPECT_EQ(end.exit_code, std::nullopt);
}

TEST_F(KubernetesTest, TheEndIsShownOnceEverythingHasArrived) {
  Run(Nth(1));
  EndPod(Nth(1), 0, /*sidecar_goes_on=*/true);
  EXPECT_EQ(See(Nth(1)).state, SeenState::kRunning);
  ASSERT_TRUE(executor().Sync(Complete(WithLog(Request(Nth(1)), 0, "last\n"), 0)).ok());
  EXPECT_EQ(AwaitEnd(Nth(1)).exit_code, 0);
  EXPECT_EQ(LogOf(Nth(1)), "last\n");
}

TEST_F(KubernetesTest, WhatTheSidecarCouldNotSendItHasPrinted) {
  Run(Nth(1));
  ASSERT_TRUE(executor().Sync(WithLog(Request(Nth(1)), 0, "one\n")).ok());
  v1::SyncRequest words = Complete(WithLog(Request(Nth(1)), 4, "two\n"), 75);
  *words.mutable_state()->add_checkpoints() = Saved(Nth(1), 9);
  cluster_.SetLog(PodRef(Nth(1)).name, "shirabe-sidecar",
                  "cannot reach the server\n" + FinalSyncLine(words));
  EndPod(Nth(1), 75);
  const AttemptStatus end = AwaitEnd(Nth(1));
  EXPECT_EQ(end.exit_code, 75);
  EXPECT_THAT(end.checkpoints, SizeIs(1));
  EXPECT_EQ(LogOf(Nth(1)), "one\ntwo\n");
}

TEST_F(KubernetesTest, ASidecarThatDiedLeavesTheContainersLog) {
  Run(Nth(1));
  ASSERT_TRUE(executor().Sync(WithLog(Request(Nth(1)), 0, "one\n")).ok());
  cluster_.SetLog(PodRef(Nth(1)).name, "training-container", "one\ntwo\n");
  EndPod(Nth(1), 1);
  EXPECT_EQ(AwaitEnd(Nth(1)).exit_code, 1);
  EXPECT_EQ(LogOf(Nth(1)), "one\ntwo\n");
}

// F7: what a busy server says of a log, each twice: of the sidecar's, and of the program's.
TEST_F(KubernetesTest, ALogThatCannotBeReadNowIsReadAgain) {
  const std::vector<Status> errors = {absl::DeadlineExceededError("504"),
                                      absl::ResourceExhaustedError("429"),
                                      absl::UnavailableError("cut")};
  size_t calls = 0;
  cluster_.before = [&](const std::string& verb, const kube::Ref&) {
    if (verb != "log" || calls >= 2 * errors.size()) return absl::OkStatus();
    return errors[calls++ / 2];
  };
  Run(Nth(1));
  cluster_.SetLog(PodRef(Nth(1)).name, "training-container", "one\n");
  EndPod(Nth(1), 1);
  EXPECT_EQ(AwaitEnd(Nth(1)).exit_code, 1);
  EXPECT_EQ(LogOf(Nth(1)), "one\n");
  executor_.reset();  // it calls the above
  EXPECT_EQ(calls, 2 * errors.size());
}

// The program's log can be read, and says nothing of what the sidecar had to say.
TEST_F(KubernetesTest, LastWordsThatCannotBeReadNowAreReadAgain) {
  bool refused = false;
  cluster_.before = [&](const std::string& verb, const kube::Ref&) {
    if (verb != "log" || refused) return absl::OkStatus();
    refused = true;
    return absl::UnavailableError("cut");
  };
  Run(Nth(1));
  ASSERT_TRUE(executor().Sync(WithLog(Request(Nth(1)), 0, "one\n")).ok());
  v1::SyncRequest words = Complete(Request(Nth(1)), 75);
  *words.mutable_state()->add_checkpoints() = Saved(Nth(1), 9);
  cluster_.SetLog(PodRef(Nth(1)).name, "shirabe-sidecar", FinalSyncLine(words));
  cluster_.SetLog(PodRef(Nth(1)).name, "training-container", "one\n");
  EndPod(Nth(1), 75);
  EXPECT_THAT(AwaitEnd(Nth(1)).checkpoints, SizeIs(1));
  executor_.reset();  // it calls the above
  EXPECT_TRUE(refused);
}

TEST_F(KubernetesTest, WhatAKubeletSaysOfALogThatIsGoneIsNoLog) {
  int64_t trial = 0;
  for (const char* words :
       {"unable to retrieve container logs for containerd://bcfb5179b737",
        "failed to try resolving symlinks in path \"/var/log/pods/a/main/0.log\": lstat: no such "
        "file or directory"}) {
    const AttemptKey key = Nth(++trial);
    Run(key);
    cluster_.SetLog(PodRef(key).name, "training-container", words);
    EndPod(key, 1);
    EXPECT_EQ(AwaitEnd(key).exit_code, 1);
    EXPECT_EQ(LogOf(key), "");
  }
}

// Whose own entrypoint runs: nothing of ours stands before it.
AttemptRequest WithoutCommand(const AttemptKey& key) {
  AttemptRequest request = PodRequestFor(key);
  auto& spec = *(*(*(*(*request.trial_spec.mutable_fields())["spec"]
                          .mutable_struct_value()
                          ->mutable_fields())["template"]
                        .mutable_struct_value()
                        ->mutable_fields())["spec"]
                      .mutable_struct_value()
                      ->mutable_fields())["containers"]
                    .mutable_list_value()
                    ->mutable_values(0)
                    ->mutable_struct_value();
  spec.mutable_fields()->erase("command");
  return request;
}

TEST_F(KubernetesTest, WithoutACommandTheLogIsReadFromThePod) {
  cluster_.SetLog(PodRef(Nth(1)).name, "training-container", "loss=3\n");
  ASSERT_TRUE(executor().Start(WithoutCommand(Nth(1))).ok());
  MakePod(Nth(1));
  RunPod(Nth(1));
  EXPECT_TRUE(Await([&] { return LogOf(Nth(1)) == "loss=3\n"; }));
  cluster_.SetLog(PodRef(Nth(1)).name, "training-container", "loss=3\nloss=2\n");
  EndPod(Nth(1), 0);
  EXPECT_EQ(AwaitEnd(Nth(1)).exit_code, 0);
  EXPECT_EQ(LogOf(Nth(1)), "loss=3\nloss=2\n");
}

// A kubelet shows only the file that it writes now.
TEST_F(KubernetesTest, ALogThatWasRotatedIsReadOn) {
  const std::string pod = PodRef(Nth(1)).name;
  std::string log;
  for (int i = 0; i < 1000; ++i) absl::StrAppend(&log, "epoch ", i, "\n");
  cluster_.SetLog(pod, "training-container", log);
  ASSERT_TRUE(executor().Start(WithoutCommand(Nth(1))).ok());
  MakePod(Nth(1));
  RunPod(Nth(1));
  ASSERT_TRUE(Await([&] { return LogOf(Nth(1)) == log; }));
  // What was shown before is still there in part, and then not at all.
  cluster_.SetLog(pod, "training-container", log.substr(log.size() / 2) + "loss=2\n");
  ASSERT_TRUE(Await([&] { return LogOf(Nth(1)) == log + "loss=2\n"; }));
  cluster_.SetLog(pod, "training-container", "new\n");
  ASSERT_TRUE(Await([&] { return LogOf(Nth(1)).ends_with("\nnew\n"); }));
  cluster_.SetLog(pod, "training-container", "new\nloss=1\n");
  EndPod(Nth(1), 0);
  EXPECT_EQ(AwaitEnd(Nth(1)).exit_code, 0);
  EXPECT_THAT(LogOf(Nth(1)), StartsWith(log + "loss=2\n\nshirabe: output may be missing here"));
  EXPECT_THAT(LogOf(Nth(1)), EndsWith("log\nnew\nloss=1\n"));
}

// ---- stopped ------------------------------------------------------------------------------------

TEST_F(KubernetesTest, AStopIsToldToTheProgramBeforeItsPodGoes) {
  Run(Nth(1));
  ASSERT_TRUE(executor().Sync(Request(Nth(1))).ok());
  ASSERT_TRUE(executor().Stop(Nth(1), v1::EARLY_STOPPED, absl::Seconds(15)).ok());
  EXPECT_THAT(cluster_.graces(), IsEmpty());
  v1::SyncRequest next = Request(Nth(1));
  const auto reply = executor().Sync(next);
  ASSERT_TRUE(reply.ok());
  EXPECT_EQ(reply->request().reason(), "early-stop");
  EXPECT_GT(reply->request().id(), 0);
  next.mutable_state()->set_heeded(reply->request().id());
  EXPECT_FALSE(executor().Sync(next)->has_request());
  ASSERT_TRUE(Await([&] { return !cluster_.graces().empty(); }));
  EXPECT_THAT(cluster_.graces(), ElementsAre(15));
  EXPECT_TRUE(HasJob(Nth(1)));
  EndPod(Nth(1), 143);
  EXPECT_EQ(AwaitEnd(Nth(1)).signal, SIGTERM);
}

TEST_F(KubernetesTest, ASidecarThatDoesNotListenIsNotWaitedFor) {
  Run(Nth(1));
  ASSERT_TRUE(executor().Sync(Request(Nth(1))).ok());
  ASSERT_TRUE(executor().Stop(Nth(1), v1::USER, absl::Seconds(15)).ok());
  EXPECT_TRUE(Await([&] { return !cluster_.graces().empty(); }));
}

TEST_F(KubernetesTest, WithoutGraceThePodGoesAtOnceAndAGraceOnlyGetsShorter) {
  Run(Nth(1));
  ASSERT_TRUE(executor().Stop(Nth(1), v1::USER, absl::Seconds(30)).ok());
  ASSERT_TRUE(Await([&] { return cluster_.graces().size() == 1; }));
  ASSERT_TRUE(executor().Stop(Nth(1), v1::USER, absl::Seconds(60)).ok());
  ASSERT_TRUE(executor().Stop(Nth(1), v1::USER, absl::ZeroDuration()).ok());
  ASSERT_TRUE(Await([&] { return cluster_.graces().size() == 2; }));
  EXPECT_THAT(cluster_.graces(), ElementsAre(30, 1));
}

TEST_F(KubernetesTest, WhatHasNotStartedIsStoppedWithItsObject) {
  ASSERT_TRUE(executor().Start(PodRequestFor(Nth(1))).ok());
  ASSERT_TRUE(executor().Stop(Nth(1), v1::USER, absl::Seconds(15)).ok());
  const AttemptStatus end = AwaitEnd(Nth(1));
  EXPECT_FALSE(end.placement.has_start_time());
  EXPECT_FALSE(HasJob(Nth(1)));
}

TEST_F(KubernetesTest, AStopIsTriedAgainUntilTheServerHasDoneIt) {
  Run(Nth(1));
  int failures = 3;
  cluster_.before = [&](const std::string& verb, const kube::Ref&) {
    if (verb == "delete" && failures-- > 0) return Status(absl::UnavailableError("away"));
    return absl::OkStatus();
  };
  ASSERT_TRUE(executor().Stop(Nth(1), v1::USER, absl::ZeroDuration()).ok());
  EXPECT_TRUE(Await([&] { return IsDeleting(PodOf(Nth(1))); }));
}

TEST_F(KubernetesTest, StopOfWhatIsEndedOrUnknownIsFine) {
  Run(Nth(1));
  EndPod(Nth(1), 0);
  AwaitEnd(Nth(1));
  EXPECT_TRUE(executor().Stop(Nth(1), v1::USER, absl::Seconds(1)).ok());
  EXPECT_TRUE(executor().Stop(Nth(99), v1::USER, absl::Seconds(1)).ok());
}

// ---- taken away ---------------------------------------------------------------------------------

TEST_F(KubernetesTest, AnEvictionIsThePlatformsDoing) {
  Run(Nth(1));
  Edit(Nth(1), [](Json& pod) {
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:01:00Z";
    pod["status"]["conditions"] = {
        {{"type", "DisruptionTarget"}, {"status", "True"}, {"reason", "EvictionByEvictionAPI"}}};
  });
  EXPECT_EQ(See(Nth(1)).state, SeenState::kRunning);
  EndPod(Nth(1), 143);
  EXPECT_EQ(AwaitEnd(Nth(1)).platform, v1::PREEMPTED_EVICTION);
}

TEST_F(KubernetesTest, AProgramThatHadEndedByItselfWasNotPreempted) {
  Run(Nth(1));
  ASSERT_TRUE(executor().Sync(Complete(Request(Nth(1)), 2)).ok());
  Edit(Nth(1), [](Json& pod) {
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:01:00Z";
    pod["status"]["conditions"] = {
        {{"type", "DisruptionTarget"}, {"status", "True"}, {"reason", "DeletionByTaintManager"}}};
  });
  EndPod(Nth(1), 2);
  const AttemptStatus end = AwaitEnd(Nth(1));
  EXPECT_EQ(end.platform, v1::CAUSE_NONE);
  EXPECT_EQ(end.exit_code, 2);
}

// F10: nothing ever says what happened.
TEST_F(KubernetesTest, ANodeThatIsDeletedTakesItsAttemptsAlong) {
  Run(Nth(1));
  cluster_.Remove({Nodes(), "", "node-0"});
  const AttemptStatus end = AwaitEnd(Nth(1));
  EXPECT_EQ(end.state, SeenState::kExited);
  EXPECT_EQ(end.platform, v1::PREEMPTED_NODE) << end.message;
  EXPECT_TRUE(end.placement.has_end_time());
}

TEST_F(KubernetesTest, ASpotNodeThatIsDeletedWasReclaimed) {
  PutNode("spot-0", "True", Json::array(), {{"cloud.google.com/gke-spot", "true"}});
  Run(Nth(1), "spot-0");
  ASSERT_TRUE(Await([&] { return See(Nth(1)).placement.capacity() == "spot"; }));
  cluster_.Remove({Nodes(), "", "spot-0"});
  EXPECT_EQ(AwaitEnd(Nth(1)).platform, v1::PREEMPTED_SPOT);
}

// F11: the pod may still run there; what it sends is refused from now on.
TEST_F(KubernetesTest, ASilentNodeIsNotWaitedForAndItsZombieIsSentAway) {
  Run(Nth(1));
  ASSERT_TRUE(executor().Sync(Request(Nth(1))).ok());
  PutNode("node-0", "Unknown");
  EXPECT_EQ(AwaitEnd(Nth(1)).platform, v1::PREEMPTED_NODE);
  EXPECT_TRUE(absl::IsPermissionDenied(executor().Sync(Request(Nth(1))).status()));
  executor().Forget(Nth(1));
  EXPECT_TRUE(absl::IsPermissionDenied(executor().Sync(Request(Nth(1))).status()));
  EXPECT_TRUE(Await([&] { return !HasJob(Nth(1)); }));
  EXPECT_TRUE(Await([&] { return FinalizerAt(PodOf(Nth(1)), kLogFinalizer) < 0; }));
}

TEST_F(KubernetesTest, WhereOnlyTheKubeletIsSilentTheAttemptGoesOn) {
  Run(Nth(1));
  PutNode("node-0", "Unknown");
  const absl::Duration end = RealClock()->Monotonic() + absl::Milliseconds(900);
  while (RealClock()->Monotonic() < end) {
    ASSERT_TRUE(executor().Sync(Request(Nth(1))).ok());
    ASSERT_EQ(See(Nth(1)).state, SeenState::kRunning);
    Pause(absl::Milliseconds(20));
  }
  PutNode("node-0");
  EXPECT_EQ(See(Nth(1)).state, SeenState::kRunning);
}

TEST_F(KubernetesTest, AJobThatSomebodyDeletesIsReplacedNotFailed) {
  Run(Nth(1));
  cluster_.Remove(JobRef(Nth(1)));
  EndPod(Nth(1), 143);
  const AttemptStatus end = AwaitEnd(Nth(1));
  EXPECT_NE(end.platform, v1::APP_ERROR);
  EXPECT_NE(end.platform, v1::USER);
}

TEST_F(KubernetesTest, APodThatVanishesIsLostToThePlatform) {
  Run(Nth(1));
  cluster_.Remove(PodRef(Nth(1)), /*force=*/true);
  const AttemptStatus end = AwaitEnd(Nth(1));
  EXPECT_EQ(end.state, SeenState::kExited);
  EXPECT_NE(end.platform, v1::CAUSE_NONE) << end.message;
}

// F6: nobody tells it; the next list does.
TEST_F(KubernetesTest, AnEndThatNoWatchHasToldIsFound) {
  Run(Nth(1));
  cluster_.BreakWatches(/*expire=*/true);
  EndPod(Nth(1), 7);
  EXPECT_EQ(AwaitEnd(Nth(1)).exit_code, 7);
}

}  // namespace
}  // namespace shirabe::trial
