// How attempts in a cluster begin, are found again after a restart, and what stands in their way.
#include <algorithm>
#include <atomic>

#include "absl/strings/match.h"
#include "kube/impersonation.h"
#include "tests/trial/kubernetes_fixture.h"
#include "tests/trial/pools.h"
#include "trial/pod/pod_references.h"
#include "trial/start_error.h"

namespace shirabe::trial {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using SeenState = AttemptStatus::State;

TEST_F(KubernetesTest, AnAttemptIsOneJobAndOnItsWayUntilItsProgramRuns) {
  ASSERT_TRUE(executor().Start(PodRequestFor(Nth(1))).ok());
  EXPECT_TRUE(HasJob(Nth(1)));
  EXPECT_EQ(See(Nth(1)).state, SeenState::kRunning);
  EXPECT_FALSE(See(Nth(1)).placement.has_start_time());
  MakePod(Nth(1));
  EXPECT_FALSE(See(Nth(1)).placement.has_start_time());
  RunPod(Nth(1));
  ASSERT_TRUE(Await([&] { return See(Nth(1)).placement.has_start_time(); }));
  // The pod may be seen before its node.
  EXPECT_TRUE(Await([&] { return See(Nth(1)).placement.node() == "node-0"; }));
  EXPECT_TRUE(Await([&] { return Changes() >= 1; }));
}

// Pods and nodes are followed apart: where it runs, and at what price, is told when it is known.
TEST_F(KubernetesTest, ANodeThatIsSeenAfterItsPodSaysWhereThatRuns) {
  pools_ = SpotPool(1);
  PodTimeouts times = Impatient();
  times.unseen = absl::Minutes(10);
  Reopen(times);
  Run(Nth(1), "spot-0");
  EXPECT_EQ(See(Nth(1)).placement.capacity(), "");
  const int before = Changes();
  PutNode("spot-0", "True", Json::array(), {{"cloud.google.com/gke-spot", "true"}});
  ASSERT_TRUE(Await([&] { return See(Nth(1)).placement.node() == "spot-0"; }));
  EXPECT_EQ(See(Nth(1)).placement.capacity(), "spot");
  EXPECT_EQ(See(Nth(1)).placement.pool(), "spot");
  EXPECT_TRUE(See(Nth(1)).placement.has_start_time());
  EXPECT_TRUE(Await([&] { return Changes() > before; })) << "nobody was told";
}

TEST_F(KubernetesTest, ThePathsExistOnceStartedAndAreCopies) {
  ASSERT_TRUE(executor().Start(PodRequestFor(Nth(1))).ok());
  const AttemptPaths paths = executor().Paths(Nth(1));
  EXPECT_EQ(*ReadFile(paths.params_file), R"({"lr": 0.5})");
  EXPECT_EQ(paths.root, paths.dir + "/files");
  EXPECT_TRUE(std::filesystem::exists(paths.output_dir));
}

TEST_F(KubernetesTest, StartingAgainChangesNothing) {
  ASSERT_TRUE(executor().Start(PodRequestFor(Nth(1))).ok());
  EXPECT_TRUE(executor().Start(PodRequestFor(Nth(1))).ok());
  Reopen();
  EXPECT_THAT(executor().Observe(kTuning), IsEmpty());
  EXPECT_TRUE(executor().Start(PodRequestFor(Nth(1))).ok());
  EXPECT_THAT(executor().Observe(kTuning), SizeIs(1));
  EXPECT_THAT(cluster_.All(Jobs()), SizeIs(1));
}

TEST_F(KubernetesTest, AnotherTokenIsRefused) {
  ASSERT_TRUE(executor().Start(PodRequestFor(Nth(1))).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(executor().Start(PodRequestFor(Nth(1), "other"))));
  Reopen();
  const Status status = executor().Start(PodRequestFor(Nth(1), "other"));
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("another owner"));
}

// F7: the object is made, and the answer says that it is not.
TEST_F(KubernetesTest, ALostAnswerIsNoSecondJobAndSendsNoSidecarAway) {
  executor().Observe(kTuning);
  cluster_.after = [](const std::string& verb, const kube::Ref&) {
    return verb == "create" ? absl::InternalError("etcd is away") : absl::OkStatus();
  };
  EXPECT_TRUE(absl::IsUnavailable(executor().Start(PodRequestFor(Nth(1)))));
  cluster_.after = nullptr;
  EXPECT_THAT(executor().Observe(kTuning), IsEmpty());
  EXPECT_TRUE(absl::IsUnavailable(executor().Sync(Request(Nth(1))).status()));
  ASSERT_TRUE(Await([&] { return executor().Start(PodRequestFor(Nth(1))).ok(); }));
  EXPECT_THAT(cluster_.All(Jobs()), SizeIs(1));
  EXPECT_TRUE(executor().Sync(Request(Nth(1))).ok());
}

TEST_F(KubernetesTest, WhatTheServerRefusesIsToldAsWhatItIs) {
  struct StartCase {
    Status answer;
    absl::StatusCode told;
  };
  const StartCase cases[] = {
      {absl::PermissionDeniedError("exceeded quota: gpus"), absl::StatusCode::kResourceExhausted},
      {absl::NotFoundError("namespaces \"lab\" not found"), absl::StatusCode::kResourceExhausted},
      {absl::InvalidArgumentError("admission webhook \"x\" denied the request"),
       absl::StatusCode::kResourceExhausted},
      {absl::InvalidArgumentError("spec.template: bad"), absl::StatusCode::kInvalidArgument},
      {absl::DeadlineExceededError("too slow"), absl::StatusCode::kUnavailable}};
  for (const StartCase& c : cases) {
    cluster_.before = [&](const std::string& verb, const kube::Ref&) {
      return verb == "create" ? c.answer : absl::OkStatus();
    };
    const Status status = executor().Start(PodRequestFor(Nth(1)));
    EXPECT_EQ(status.code(), c.told) << status;
    EXPECT_THAT(Message(status), HasSubstr(Message(c.answer)));
    EXPECT_THAT(executor().Observe(kTuning), IsEmpty());
  }
}

TEST_F(KubernetesTest, WhileTheServerIsAwayNobodyWaitsForItAgainAndAgain) {
  cluster_.before = [](const std::string& verb, const kube::Ref&) {
    return verb == "create" ? absl::UnavailableError("connection refused") : absl::OkStatus();
  };
  for (int64_t trial = 1; trial <= 20; ++trial) {
    EXPECT_TRUE(absl::IsUnavailable(executor().Start(PodRequestFor(Nth(trial)))));
  }
  cluster_.before = nullptr;
  EXPECT_EQ(cluster_.Calls("create"), 0);
  EXPECT_TRUE(Await([&] { return executor().Start(PodRequestFor(Nth(1))).ok(); }));
}

TEST_F(KubernetesTest, AKindThatTheClusterDoesNotKnowIsWaitedFor) {
  AttemptRequest request = PodRequestFor(Nth(1));
  (*request.trial_spec.mutable_fields())["apiVersion"].set_string_value("kubeflow.org/v1");
  (*request.trial_spec.mutable_fields())["kind"].set_string_value("PyTorchJob");
  const Status status = executor().Start(request);
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(Message(status), AllOf(HasSubstr("a PyTorchJob of kubeflow.org/v1"),
                                     HasSubstr("install Kubeflow's training operator")));
  cluster_.AddKind({"kubeflow.org", "v1", "pytorchjobs", "PyTorchJob"});
  EXPECT_TRUE(executor().Start(request).ok());
}

// What is of no namespace no user may make, now or later.
TEST_F(KubernetesTest, AKindOfNoNamespaceIsAnErrorOfTheTemplate) {
  cluster_.AddKind({"example.org", "v1", "machines", "Machine", /*namespaced=*/false});
  AttemptRequest request = PodRequestFor(Nth(1));
  (*request.trial_spec.mutable_fields())["apiVersion"].set_string_value("example.org/v1");
  (*request.trial_spec.mutable_fields())["kind"].set_string_value("Machine");
  EXPECT_TRUE(absl::IsInvalidArgument(executor().Start(request)));
}

// ---- what its pods name -------------------------------------------------------------------------

const kube::Resource kSecrets{"", "v1", "secrets", "Secret"};
const kube::Resource kMaps{"", "v1", "configmaps", "ConfigMap"};

AttemptRequest RequestNaming(const std::string& pod) {
  AttemptRequest request = PodRequestFor(Nth(1));
  const auto parsed = google::protobuf::util::JsonStringToMessage(
      R"({"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {"spec": )" + pod + "}}}",
      &request.trial_spec);
  CHECK(parsed.ok());
  return request;
}

constexpr char kNaming[] = R"({"restartPolicy": "Never", "containers": [{
  "name": "training-container", "image": "trainer:1", "command": ["true"],
  "env": [{"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}},
          {"name": "MAYBE", "valueFrom": {"secretKeyRef":
            {"name": "absent", "key": "k", "optional": true}}}],
  "envFrom": [{"configMapRef": {"name": "settings"}}]}]})";

TEST_F(KubernetesTest, WhatItsPodsNameMustBeThereBeforeAnythingIsMade) {
  const AttemptRequest request = RequestNaming(kNaming);
  const Status missing = executor().Start(request);
  EXPECT_TRUE(absl::IsResourceExhausted(missing)) << missing;
  EXPECT_EQ(EventReasonOf(missing), kReferenceMissing);
  EXPECT_THAT(Message(missing),
              AllOf(HasSubstr("Secret hf is missing in namespace lab (env HF_TOKEN of container "
                              "training-container)"),
                    HasSubstr("ConfigMap settings is missing in namespace lab (envFrom of "),
                    HasSubstr("Create it"), testing::Not(HasSubstr("absent"))));
  EXPECT_THAT(cluster_.All(Jobs()), IsEmpty());
  EXPECT_THAT(executor().Observe(kTuning), IsEmpty());
  PutNamed(kMaps, "settings");
  EXPECT_THAT(Message(executor().Start(request)), testing::Not(HasSubstr("settings")));
  PutNamed(kSecrets, "hf");
  EXPECT_TRUE(executor().Start(request).ok());
  EXPECT_TRUE(HasJob(Nth(1)));
}

TEST_F(KubernetesTest, AClaimThatIsMissingOrGoingIsSaid) {
  AttemptRequest request = PodRequestFor(Nth(1));
  request.cluster.volume.set_claim("data");
  EXPECT_THAT(Message(executor().Start(request)),
              HasSubstr("PersistentVolumeClaim data is missing in namespace lab"));
  PutNamed(Claims(), "data", {{"deletionTimestamp", "2026-01-01T00:00:00Z"}});
  EXPECT_THAT(Message(executor().Start(request)),
              HasSubstr("PersistentVolumeClaim data in namespace lab is being deleted"));
  EXPECT_THAT(cluster_.All(Jobs()), IsEmpty());
  PutNamed(Claims(), "data");
  EXPECT_TRUE(executor().Start(request).ok());
}

// The kubelet says then what it does not find; nothing is held back.
TEST_F(KubernetesTest, WhatMayNotBeAskedForIsLeftToThePod) {
  PutNamed(kMaps, "settings");
  cluster_.before = [](const std::string& verb, const kube::Ref& ref) {
    return verb == "metadata" && ref.resource.kind == "Secret"
               ? absl::PermissionDeniedError("secrets is forbidden")
               : absl::OkStatus();
  };
  EXPECT_TRUE(executor().Start(RequestNaming(kNaming)).ok());
  EXPECT_TRUE(HasJob(Nth(1)));
}

// It may be gone by the time another process takes the attempt up.
TEST_F(KubernetesTest, WhatWasMadeIsAdoptedWhateverIsMissingByNow) {
  PutNamed(kMaps, "settings");
  PutNamed(kSecrets, "hf");
  ASSERT_TRUE(executor().Start(RequestNaming(kNaming)).ok());
  cluster_.Remove({kSecrets, kTuning.ns, "hf"}, /*force=*/true);
  Reopen();
  const Status again = executor().Start(RequestNaming(kNaming));
  EXPECT_TRUE(again.ok()) << again;
  EXPECT_THAT(cluster_.All(Jobs()), SizeIs(1));
}

TEST_F(KubernetesTest, ManyThatNameTheSameAskOnce) {
  for (int64_t trial = 1; trial <= 10; ++trial) {
    ASSERT_TRUE(executor().Start(PodRequestFor(Nth(trial))).ok());
  }
  EXPECT_EQ(cluster_.Calls("metadata"), 1);
}

std::vector<std::string> Named(const char* object) {
  std::vector<std::string> named;
  for (const PodReference& one : ReferencesOf(Json::parse(object))) {
    named.push_back(one.kind + " " + one.name + ", " + one.place);
  }
  return named;
}

TEST(PodReferences, AreFoundWhereverPodsCanNameThem) {
  EXPECT_THAT(Named(R"({"kind": "Pod", "spec": {
        "imagePullSecrets": [{"name": "registry"}],
        "initContainers": [{"name": "fetch", "envFrom": [{"secretRef": {"name": "bucket"}},
          {"configMapRef": {"name": "extra", "optional": true}}]}],
        "containers": [{"name": "main"}],
        "volumes": [
          {"name": "a", "secret": {"secretName": "certificate"}},
          {"name": "b", "secret": {"secretName": "later", "optional": true}},
          {"name": "c", "projected": {"sources": [{"secret": {"name": "inner"}},
             {"configMap": {"name": "words"}}, {"serviceAccountToken": {"path": "t"}}]}},
          {"name": "d", "persistentVolumeClaim": {"claimName": "data"}},
          {"name": "e", "csi": {"driver": "x", "nodePublishSecretRef": {"name": "mount"}}},
          {"name": "f", "emptyDir": {}}, "odd", {"name": 5}]}})"),
              testing::ElementsAre(
                  "Secret bucket, envFrom of container fetch", "Secret certificate, volume a",
                  "Secret inner, volume c", "ConfigMap words, volume c",
                  "PersistentVolumeClaim data, volume d", "Secret mount, volume e"));
}

TEST(PodReferences, OfATrainJobAndOfEveryRole) {
  EXPECT_THAT(Named(R"({"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
                        "spec": {"trainer": {"env": [{"name": "K", "valueFrom":
                          {"secretKeyRef": {"name": "s", "key": "k"}}}]}}})"),
              testing::ElementsAre("Secret s, env K of spec.trainer"));
  EXPECT_THAT(Named(R"({"kind": "PyTorchJob", "spec": {"pytorchReplicaSpecs": {
                "Master": {"template": {"spec": {"containers": [{"name": "pytorch",
                  "envFrom": [{"secretRef": {"name": "one"}}]}]}}},
                "Worker": {"template": {"spec": {"containers": [{"name": "pytorch",
                  "envFrom": [{"secretRef": {"name": "one"}},
                              {"secretRef": {"name": "two"}}]}]}}}}}})"),
              testing::ElementsAre("Secret one, envFrom of container pytorch",
                                   "Secret two, envFrom of container pytorch"));
}

// A template may name more than is asked for.
TEST(PodReferences, AreBounded) {
  Json sources = Json::array();
  for (int i = 0; i < 5000; ++i) {
    sources.push_back({{"secretRef", {{"name", "s" + std::to_string(i)}}}});
  }
  const Json object = {
      {"spec", {{"containers", Json::array({{{"name", "main"}, {"envFrom", sources}}})}}}};
  EXPECT_THAT(ReferencesOf(object), SizeIs(64));
}

// An API server that makes nothing until it is told to, and then answers as it is told to.
class SlowServerTest : public KubernetesTest {
 protected:
  SlowServerTest() {
    executor_.reset();
    cluster_.before = [this](const std::string& verb, const kube::Ref&) {
      if (verb != "create") return absl::OkStatus();
      while (slow_) Pause(absl::Milliseconds(1));
      return refuse_ ? absl::PermissionDeniedError("exceeded quota: gpus") : absl::OkStatus();
    };
    PodTimeouts times = Impatient();
    times.start = absl::Milliseconds(5);
    Reopen(times);
  }
  ~SlowServerTest() override {
    slow_ = false;
    executor_.reset();
  }
  std::atomic<bool> slow_ = true;
  std::atomic<bool> refuse_ = false;
};

TEST_F(SlowServerTest, NobodyWaitsForManyObjectsOneByOne) {
  for (int i = 1; i <= 20; ++i) ASSERT_TRUE(executor().Start(PodRequestFor(Nth(i))).ok());
  EXPECT_TRUE(executor().Start(PodRequestFor(Nth(1))).ok());
  EXPECT_THAT(executor().Observe(kTuning), SizeIs(20));
  EXPECT_EQ(See(Nth(1)).state, SeenState::kRunning);
  EXPECT_FALSE(See(Nth(1)).placement.has_start_time());
  EXPECT_EQ(LogOf(Nth(1)), "");
  EXPECT_FALSE(executor().RemoveFiles(kTuning, 1).ok());
  slow_ = false;
  EXPECT_TRUE(Await([&] { return cluster_.All(Jobs()).size() == 20; }));
  EXPECT_THAT(executor().Observe(kTuning), SizeIs(20));
  EXPECT_EQ(cluster_.Calls("create"), 20);
}

TEST_F(SlowServerTest, WhatIsRefusedLaterIsToldAtTheNextStart) {
  refuse_ = true;
  ASSERT_TRUE(executor().Start(PodRequestFor(Nth(1))).ok());
  slow_ = false;
  ASSERT_TRUE(Await([&] { return executor().Observe(kTuning).empty(); }));
  for (int i = 0; i < 3; ++i) {
    const Status told = executor().Start(PodRequestFor(Nth(1)));
    EXPECT_TRUE(absl::IsResourceExhausted(told)) << told;
    EXPECT_THAT(Message(told), HasSubstr("exceeded quota"));
  }
  refuse_ = false;
  EXPECT_TRUE(executor().Start(PodRequestFor(Nth(1))).ok());
  EXPECT_TRUE(HasJob(Nth(1)));
}

TEST_F(SlowServerTest, AStopIsHeededOnceThereIsSomethingToStop) {
  ASSERT_TRUE(executor().Start(PodRequestFor(Nth(1))).ok());
  ASSERT_TRUE(executor().Stop(Nth(1), v1::USER, absl::ZeroDuration()).ok());
  slow_ = false;
  EXPECT_TRUE(Await([&] { return cluster_.Calls("create") == 1 && !HasJob(Nth(1)); }));
}

// ---- after a restart ----------------------------------------------------------------------------

TEST_F(KubernetesTest, AdoptTellsRunningEndedAndNeverStarted) {
  Run(Nth(1));
  Run(Nth(2));
  Reopen();
  EndPod(Nth(2), 42);
  executor().Adopt({RecordOf(Nth(1)), RecordOf(Nth(2)), RecordOf(Nth(3))});
  EXPECT_TRUE(Await([&] { return See(Nth(1)).placement.has_start_time(); }));
  EXPECT_EQ(AwaitEnd(Nth(2)).exit_code, 42);
  EXPECT_EQ(AwaitEnd(Nth(3)).state, SeenState::kLost);
  EXPECT_THAT(See(Nth(3)).message, HasSubstr("never started"));
  EXPECT_FALSE(See(Nth(3)).placement.has_start_time());
  executor().Forget(Nth(3));
  EXPECT_TRUE(executor().Start(PodRequestFor(Nth(3))).ok());
  EXPECT_TRUE(HasJob(Nth(3)));
}

// Whoever may make pods in that namespace can give one our labels.
TEST_F(KubernetesTest, APodThatNobodyOwnsIsNotTheAttempts) {
  Run(Nth(1));
  Edit(Nth(1), [](Json& pod) {
    pod["metadata"].erase("ownerReferences");
    pod["metadata"].erase("annotations");
  });
  cluster_.Remove(JobRef(Nth(1)));
  Reopen();
  executor().Adopt({RecordOf(Nth(1))});
  EXPECT_EQ(AwaitEnd(Nth(1)).state, SeenState::kLost);
  EXPECT_THAT(See(Nth(1)).message, HasSubstr("never started"));
}

TEST_F(KubernetesTest, AnObjectThatIsBeingDeletedIsWaitedFor) {
  cluster_.Put(Jobs(), {{"metadata",
                         {{"name", JobRef(Nth(1)).name},
                          {"namespace", kTuning.ns},
                          {"finalizers", Json::array({"example.com/slow"})},
                          {"deletionTimestamp", "2026-01-01T00:00:00Z"}}}});
  const Status status = executor().Start(PodRequestFor(Nth(1)));
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("being deleted"));
}

TEST_F(KubernetesTest, AnAttemptOfAnotherTokenIsNotAdopted) {
  Run(Nth(1));
  Reopen();
  executor().Adopt({RecordOf(Nth(1), "other")});
  EXPECT_EQ(AwaitEnd(Nth(1)).state, SeenState::kLost);
}

TEST_F(KubernetesTest, WhatTheSidecarToldIsKnownAfterARestart) {
  Run(Nth(1));
  v1::SyncRequest last = WithLog(Request(Nth(1)), 0, "loss=1\n");
  *last.mutable_state()->add_checkpoints() = Saved(Nth(1), 7);
  last.mutable_state()->mutable_exit()->set_code(3);
  last.mutable_state()->set_complete(true);
  ASSERT_TRUE(executor().Sync(last).ok());
  Reopen();
  EndPod(Nth(1), 3);
  executor().Adopt({RecordOf(Nth(1))});
  const AttemptStatus end = AwaitEnd(Nth(1));
  EXPECT_EQ(end.exit_code, 3);
  ASSERT_THAT(end.checkpoints, SizeIs(1));
  EXPECT_EQ(end.checkpoints[0].step(), 7);
  EXPECT_EQ(LogOf(Nth(1)), "loss=1\n");
}

// F6: the cluster is not to be seen yet. Nothing is said to be lost.
TEST_F(KubernetesTest, WhileTheClusterIsNotKnownNothingIsLostAndNoSidecarSentAway) {
  Run(Nth(1));
  cluster_.before = [](const std::string& verb, const kube::Ref&) {
    return verb == "list" || verb == "get" ? absl::UnavailableError("away") : absl::OkStatus();
  };
  Reopen();
  EXPECT_TRUE(absl::IsUnavailable(executor().Sync(Request(Nth(1))).status()));
  executor().Adopt({RecordOf(Nth(1))});
  EXPECT_EQ(See(Nth(1)).state, SeenState::kRunning);
  EXPECT_TRUE(executor().Sync(Request(Nth(1))).ok());
  cluster_.before = nullptr;
  EXPECT_TRUE(Await([&] { return See(Nth(1)).placement.has_start_time(); }));
}

TEST_F(KubernetesTest, TheObjectMayBeGoneBeforeItsPod) {
  Run(Nth(1));
  executor_.reset();
  cluster_.Remove(JobRef(Nth(1)));
  EndPod(Nth(1), 5);  // one that is seen to run is lost: its Job was deleted
  Reopen();
  executor().Adopt({RecordOf(Nth(1))});
  const AttemptStatus ended = AwaitEnd(Nth(1));
  EXPECT_EQ(ended.exit_code, 5) << ended.message;
}

// ---- why it waits -------------------------------------------------------------------------------

TEST_F(KubernetesTest, ItSaysWhyItWaits) {
  ASSERT_TRUE(executor().Start(PodRequestFor(Nth(1))).ok());
  MakePod(Nth(1));
  Edit(Nth(1), [](Json& pod) {
    pod["status"]["conditions"] = {{{"type", "PodScheduled"},
                                    {"status", "False"},
                                    {"reason", "Unschedulable"},
                                    {"message", "0/1 nodes are available: 1 Insufficient cpu."}}};
  });
  EXPECT_TRUE(Await([&] {
    return See(Nth(1)).waiting.find("Insufficient cpu") != std::string::npos;
  })) << See(Nth(1)).waiting;
  RunPod(Nth(1));
  EXPECT_TRUE(Await([&] { return See(Nth(1)).waiting.empty(); }));
}

TEST_F(KubernetesTest, EventsSayWhatNothingElseDoes) {
  cluster_.Put(Events(), {{"metadata", {{"name", "e1"}, {"namespace", "lab"}}},
                          {"type", "Warning"},
                          {"reason", "FailedCreate"},
                          {"message", "pods \"x\" is forbidden: exceeded quota: small"},
                          {"involvedObject", {{"kind", "Job"}, {"name", AttemptName(Nth(1))}}}});
  ASSERT_TRUE(executor().Start(PodRequestFor(Nth(1))).ok());
  EXPECT_TRUE(Await([&] { return See(Nth(1)).waiting.find("quota") != std::string::npos; }))
      << See(Nth(1)).waiting;
}

// An API server reads all events of a namespace to find those of one object.
TEST_F(KubernetesTest, EventsOfAllThatWaitAreLookedUpTogether) {
  constexpr int kMany = 40;
  std::atomic<int> lookups = 0;
  executor_.reset();
  cluster_.before = [&](const std::string& verb, const kube::Ref& ref) {
    if (verb == "list" && ref.resource.kind == Events().kind) ++lookups;
    return absl::OkStatus();
  };
  for (int i = 1; i <= kMany; ++i) {
    cluster_.Put(Events(), {{"metadata", {{"name", AttemptName(Nth(i))}, {"namespace", "lab"}}},
                            {"type", "Warning"},
                            {"reason", "FailedCreate"},
                            {"message", "exceeded quota"},
                            {"involvedObject", {{"kind", "Job"}, {"name", AttemptName(Nth(i))}}}});
  }
  Reopen();
  const absl::Duration began = RealClock()->Monotonic();
  for (int i = 1; i <= kMany; ++i) ASSERT_TRUE(executor().Start(PodRequestFor(Nth(i))).ok());
  for (int i = 1; i <= kMany; ++i) {
    EXPECT_TRUE(Await([&] { return See(Nth(i)).waiting.find("quota") != std::string::npos; }));
  }
  const absl::Duration took = RealClock()->Monotonic() - began;
  EXPECT_LE(lookups, 2 + took / Impatient().ask_events);
  executor_.reset();
}

// ---- as the account of its namespace ------------------------------------------------------------

// As kube::Client tells it where ClientOptions::act_as is set.
Status RefusedAccount(const std::string& verb) {
  const Status refused = absl::PermissionDeniedError(
      "jobs.batch is forbidden: User \"system:serviceaccount:lab:shirabe-trials\" cannot " + verb +
      " resource \"jobs\"");
  return kube::ExplainRefusal(refused, {verb, Jobs()}, {"lab", "shirabe-trials"});
}

TEST_F(KubernetesTest, AnAccountWithoutTheRightIsTriedAgainAndHasItsEvent) {
  cluster_.before = [](const std::string& verb, const kube::Ref& ref) {
    return verb == "create" && ref.resource.kind == "Job" ? RefusedAccount(verb) : absl::OkStatus();
  };
  const Status status = executor().Start(PodRequestFor(Nth(1)));
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(EventReasonOf(status), kAccountRefused);
  EXPECT_THAT(Message(status), HasSubstr("ServiceAccount lab/shirabe-trials may not create "
                                         "jobs.batch in namespace lab"));
  cluster_.before = nullptr;
  EXPECT_TRUE(executor().Start(PodRequestFor(Nth(1))).ok());
}

TEST_F(KubernetesTest, WhatMayNotBeEndedSaysSoUntilItMay) {
  Run(Nth(1));
  cluster_.before = [](const std::string& verb, const kube::Ref&) {
    return verb == "delete" ? RefusedAccount(verb) : absl::OkStatus();
  };
  ASSERT_TRUE(executor().Stop(Nth(1), v1::USER, absl::ZeroDuration()).ok());
  EXPECT_TRUE(Await([&] {
    return absl::StrContains(See(Nth(1)).waiting, "it cannot be ended: ServiceAccount lab/");
  })) << See(Nth(1)).waiting;
  cluster_.before = nullptr;
  EXPECT_TRUE(Await([&] { return See(Nth(1)).waiting.empty(); }));
}

}  // namespace
}  // namespace shirabe::trial
