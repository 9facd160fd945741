// What sidecars tell the executor of their attempts, and what they are told.
#include <filesystem>

#include "absl/strings/escaping.h"
#include "tests/kube/signed_tokens.h"
#include "tests/support/paths.h"
#include "tests/trial/kubernetes_fixture.h"
#include "trial/kubernetes/cluster_actions.h"

namespace shirabe::trial {
namespace {

using ::testing::HasSubstr;
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

// The DNS of the cluster is down, say: its program runs, and nothing comes of it.
TEST_F(KubernetesTest, ASidecarThatIsNeverHeardOfIsSaid) {
  PodTimeouts times = Impatient();
  times.unheard = absl::Milliseconds(200);
  Reopen(times);
  cluster_.SetLog(PodRef(Nth(1)).name, "shirabe-sidecar",
                  "not a line of its own\n"
                  R"({"level":"warning","message":"the server does not answer; trying again",)"
                  R"("server":"shirabe.lab:7450","error":"DNS resolution failed for x"})"
                  "\n");
  Run(Nth(1));
  EXPECT_EQ(See(Nth(1)).waiting, "") << "it may take a moment";
  ASSERT_TRUE(Await([&] { return !See(Nth(1)).waiting.empty(); }));
  EXPECT_THAT(
      See(Nth(1)).waiting,
      testing::HasSubstr("the controller at shirabe.lab:7450: DNS resolution failed for x"));
  EXPECT_EQ(See(Nth(1)).state, AttemptStatus::State::kRunning);
  ASSERT_TRUE(executor().Sync(Request(Nth(1))).ok());
  EXPECT_TRUE(Await([&] { return See(Nth(1)).waiting.empty(); }));
}

TEST_F(KubernetesTest, NorMustItsLogBeThere) {
  PodTimeouts times = Impatient();
  times.unheard = absl::ZeroDuration();
  Reopen(times);
  Run(Nth(1));
  ASSERT_TRUE(Await([&] { return !See(Nth(1)).waiting.empty(); }));
  EXPECT_THAT(See(Nth(1)).waiting, testing::HasSubstr("its log cannot be read"));
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

// So that nothing else has to look at them.
TEST_F(KubernetesTest, EachChangeOfItsFilesIsAnotherVersion) {
  Run(Nth(1));
  Run(Nth(2));
  const auto version = [&](int64_t trial) { return See(Nth(trial)).files_version.value_or(0); };
  const int64_t first = version(1);
  EXPECT_GT(first, 0);
  EXPECT_NE(first, version(2));
  ASSERT_TRUE(executor().Sync(Request(Nth(1))).ok());
  EXPECT_EQ(version(1), first) << "that it lives is no change";
  EXPECT_EQ(outputs_, 0);
  const int before = Changes();
  ASSERT_TRUE(executor().Sync(WithLog(Request(Nth(1)), 0, "loss=1\n")).ok());
  const int64_t second = version(1);
  EXPECT_GT(second, first);
  EXPECT_EQ(outputs_, 1);
  EXPECT_EQ(Changes(), before) << "there is no more room than before";
  Reopen();
  executor().Adopt({RecordOf(Nth(1))});
  ASSERT_TRUE(Await([&] { return version(1) > 0; }));
  EXPECT_NE(version(1), first);
  EXPECT_NE(version(1), second);
}

// Some of it may have been taken.
TEST_F(KubernetesTest, FilesThatTheDiskRefusesAreAnotherVersionAsWell) {
  Run(Nth(1));
  const auto first = See(Nth(1)).files_version;
  const std::string dir = executor().Paths(Nth(1)).dir;
  v1::SyncRequest request = WithLog(Request(Nth(1)), 0, "loss=1\n");
  v1::FilePiece& piece = *request.add_files();
  piece.set_name("metrics.jsonl");
  piece.set_data("{}\n");
  std::filesystem::create_directories(dir + "/metrics.jsonl");
  ASSERT_FALSE(executor().Sync(request).ok());
  EXPECT_EQ(LogOf(Nth(1)), "loss=1\n");
  EXPECT_NE(See(Nth(1)).files_version, first);
  EXPECT_EQ(outputs_, 1);
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
  const int before = Changes();
  ASSERT_TRUE(executor().Sync(request).ok());
  EXPECT_GT(Changes(), before);
  const AttemptStatus seen = See(Nth(1, 2));
  EXPECT_EQ(seen.resumed->step(), 10);
  EXPECT_EQ(seen.damaged.at(0).step(), 20);
  ASSERT_THAT(seen.checkpoints, SizeIs(1));
  EXPECT_EQ(seen.checkpoints[0].namespace_(), "lab");
  EXPECT_EQ(seen.checkpoints[0].trial(), 1);
  EXPECT_EQ(seen.checkpoints[0].attempt(), 2);
  EXPECT_THAT(seen.refused, SizeIs(1));
}

// Its program may run for a while before its sidecar is heard of.
TEST_F(KubernetesTest, WhatItBeganWithIsKnownOnceItsPodHasToldIt) {
  Run(Nth(1, 2));
  ASSERT_TRUE(See(Nth(1, 2)).placement.has_start_time());
  EXPECT_FALSE(See(Nth(1, 2)).begin_known);
  const int before = Changes();
  v1::SyncRequest request = Request(Nth(1, 2));
  request.mutable_state();
  ASSERT_TRUE(executor().Sync(request).ok());
  EXPECT_GT(Changes(), before) << "one that begins from scratch tells it, too";
  EXPECT_TRUE(See(Nth(1, 2)).begin_known);
}

const kube::Resource kWorkloads{"kueue.x-k8s.io", "v1beta2", "workloads", "Workload"};

void PutWorkload(kube::FakeCluster& cluster, const std::string& name, const std::string& uid) {
  cluster.Put(
      kWorkloads,
      {{"metadata",
        {{"name", name}, {"namespace", "lab"}, {"labels", {{"kueue.x-k8s.io/job-uid", uid}}}}}});
}

std::string BoostOf(kube::FakeCluster& cluster, const std::string& name) {
  const Json workload = cluster.Get({kWorkloads, "lab", name}).value_or(Json());
  return AnnotationOf(workload, "kueue.x-k8s.io/priority-boost");
}

TEST_F(KubernetesTest, KueueIsToldOfEachAttemptThatHasSaved) {
  cluster_.AddKind(kWorkloads);
  int64_t step = 0;
  const auto save = [&](const AttemptKey& key) {
    v1::SyncRequest request = Request(key);
    *request.mutable_state()->add_checkpoints() = Saved(key, ++step);
    EXPECT_TRUE(executor().Sync(request).ok());
  };
  for (const AttemptKey& key : {Nth(1), Nth(2, 3), Nth(3)}) {
    Run(key);
    Json job = *cluster_.Get(JobRef(key));
    if (key != Nth(3)) job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "night";
    cluster_.Put(Jobs(), job);
    PutWorkload(cluster_, AttemptName(key), UidOf(job));
  }
  PutWorkload(cluster_, "others", "another");
  save(Nth(3));  // in no queue
  const auto told = [&](const AttemptKey& key, const std::string& boost) {
    return Await([&] {
      save(key);
      return BoostOf(cluster_, AttemptName(key)) == boost;
    });
  };
  EXPECT_TRUE(told(Nth(1), "-1"));
  EXPECT_TRUE(told(Nth(2, 3), "1"));
  EXPECT_EQ(BoostOf(cluster_, AttemptName(Nth(3))), "");
  EXPECT_EQ(BoostOf(cluster_, "others"), "");
}

TEST(PriorityBoostTest, IsWrittenWhereItChanges) {
  EXPECT_EQ(PriorityBoost(1), -1);
  EXPECT_EQ(PriorityBoost(4), 2);
  EXPECT_EQ(PriorityBoost(100), 4);
  kube::FakeCluster cluster;
  const Json job = {{"metadata", {{"name", "a"}, {"namespace", "lab"}, {"uid", "u"}}}};
  EXPECT_TRUE(PublishBoost(cluster, job, 2).ok()) << "there is no Kueue";
  cluster.AddKind(kWorkloads);
  EXPECT_TRUE(PublishBoost(cluster, job, 2).ok()) << "it has no Workload";
  PutWorkload(cluster, "a", "u");
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(PublishBoost(cluster, job, 2).ok());
  EXPECT_EQ(BoostOf(cluster, "a"), "2");
  EXPECT_EQ(cluster.Calls("patch"), 1);
  EXPECT_TRUE(PublishBoost(cluster, job, -1).ok());
  EXPECT_EQ(BoostOf(cluster, "a"), "-1");
  cluster.before = [](const std::string& verb, const kube::Ref&) {
    return verb == "list" ? absl::PermissionDeniedError("no right") : absl::OkStatus();
  };
  EXPECT_TRUE(absl::IsPermissionDenied(PublishBoost(cluster, job, 3)));
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
  EXPECT_EQ(See(Nth(1)).state, AttemptStatus::State::kRunning);
}

// That takes minutes, and what the copies came to is told by itself.
TEST_F(KubernetesTest, ASidecarThatMakesCopiesIsNotAskedForNewsAllTheTime) {
  const auto next_of = [this](const v1::SyncRequest& request) {
    return FromProto(executor().Sync(request).value_or(v1::SyncReply()).next());
  };
  Run(Nth(1));
  v1::SyncRequest request = Request(Nth(1));
  const absl::Duration calm = next_of(request);
  ASSERT_TRUE(executor().Stop(Nth(1), v1::EARLY_STOPPED, absl::Seconds(15)).ok());
  EXPECT_EQ(next_of(request), absl::Milliseconds(250)) << "it is to hear of it";
  request.mutable_state()->set_heeded(1);
  EXPECT_EQ(next_of(request), absl::Milliseconds(250)) << "it is ending";
  request.mutable_state()->set_copying(true);
  EXPECT_EQ(next_of(request), std::min(calm, absl::Seconds(5)));
  request.mutable_state()->set_copying(false);
  request.mutable_state()->set_complete(true);
  EXPECT_EQ(next_of(request), calm) << "nothing more is awaited of it";
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
  // Each mounts the folder of its own attempt.
  EXPECT_THAT(executor().Sync(Request(Nth(1)))->prune(), SizeIs(1));
  EXPECT_THAT(executor().Sync(Request(Nth(2)))->prune(), IsEmpty());
  v1::SyncRequest done = Request(Nth(1));
  *done.mutable_state()->add_pruned() = Saved(Nth(1), 10);
  EXPECT_THAT(executor().Sync(done)->prune(), IsEmpty());
  EXPECT_THAT(executor().Sync(Request(Nth(1)))->prune(), IsEmpty());
}

// ---- who calls ----------------------------------------------------------------------------------

class PodTokenTest : public KubernetesTest {
 protected:
  // As the API server makes them; the fake cluster looks at nothing but the whole text.
  static std::string Token(const std::string& pod_uid, const std::string& seal = "signed") {
    const std::string claims = R"({"kubernetes.io": {"pod": {"uid": ")" + pod_uid + R"("}}})";
    return "e30." + absl::WebSafeBase64Escape(claims) + "." + seal;
  }
  std::string TokenOf(const AttemptKey& key) {
    const std::string uid = UidOf(PodOf(key));
    cluster_.SetToken(Token(uid), kTuning.ns, uid);
    return Token(uid);
  }
  Status Sync(const AttemptKey& key, const std::string& bearer) {
    return executor().Sync(Request(key, ""), bearer).status();
  }
};

TEST_F(PodTokenTest, APodIsKnownByItsOwnToken) {
  Run(Nth(1));
  Run(Nth(2));
  const std::string token = TokenOf(Nth(1));
  EXPECT_EQ(Sync(Nth(1), token), absl::OkStatus());
  EXPECT_EQ(Sync(Nth(1), token), absl::OkStatus());
  EXPECT_EQ(cluster_.Calls("review"), 1) << "it is believed for a while";
  EXPECT_FALSE(Sync(Nth(2), token).ok()) << "of another attempt";
  EXPECT_TRUE(absl::IsPermissionDenied(Sync(Nth(1), ""))) << "none";
  EXPECT_TRUE(absl::IsPermissionDenied(Sync(Nth(1), "guess")));
  EXPECT_TRUE(absl::IsUnauthenticated(Sync(Nth(1), Token(UidOf(PodOf(Nth(1))), "forged"))));
}

class SignedPodTokenTest : public PodTokenTest {
 protected:
  SignedPodTokenTest() {
    cluster_.Publish("/.well-known/openid-configuration", {{"issuer", "https://cluster"}});
    cluster_.Publish("/openid/v1/jwks", {{"keys", Json::array({key_.Published("P-256")})}});
  }
  static Json Claims(const std::string& pod_uid) {
    return {{"iss", "https://cluster"},
            {"aud", Json::array({"shirabe-pods"})},
            {"exp", 4'000'000'000},
            {"sub", "system:serviceaccount:" + kTuning.ns + ":default"},
            {"kubernetes.io", {{"namespace", kTuning.ns}, {"pod", {{"uid", pod_uid}}}}}};
  }
  std::string Signed(const Json& claims) const { return key_.Token(claims, "ES256"); }

  const kube::SigningKey key_{"one", "P-256"};
};

TEST_F(SignedPodTokenTest, WhatTheClusterHasSignedIsNotAskedAbout) {
  Run(Nth(1));
  Run(Nth(2));
  const std::string token = Signed(Claims(UidOf(PodOf(Nth(1)))));
  EXPECT_EQ(Sync(Nth(1), token), absl::OkStatus());
  EXPECT_EQ(Sync(Nth(1), token), absl::OkStatus());
  EXPECT_FALSE(Sync(Nth(2), token).ok()) << "of another attempt";
  EXPECT_EQ(cluster_.Calls("review"), 0);
}

// What is not signed, or says something else, the API server is asked about as before; and here it
// knows none of them.
TEST_F(SignedPodTokenTest, NothingElseIsBelieved) {
  Run(Nth(1));
  const std::string uid = UidOf(PodOf(Nth(1)));
  const std::pair<const char*, Json> lies[] = {{"/iss", "https://elsewhere"},
                                               {"/aud", Json::array({"shirabe"})},
                                               {"/exp", 1'000'000'000},
                                               {"/kubernetes.io/namespace", "other"}};
  int asked = 0;
  for (const auto& [pointer, value] : lies) {
    Json claims = Claims(uid);
    claims[Json::json_pointer(pointer)] = value;
    EXPECT_TRUE(absl::IsUnauthenticated(Sync(Nth(1), Signed(claims)))) << pointer;
    EXPECT_EQ(cluster_.Calls("review"), ++asked) << pointer;
  }
  const kube::SigningKey other("one", "P-256");
  EXPECT_TRUE(absl::IsUnauthenticated(Sync(Nth(1), other.Token(Claims(uid), "ES256"))));
  const std::string token = Signed(Claims(uid));
  EXPECT_TRUE(
      absl::IsUnauthenticated(Sync(Nth(1), token.substr(0, token.size() - 8) + "AAAAAAAA")));
}

// Whoever may make pods in the namespace can copy all labels, and gets a token that is good.
TEST_F(PodTokenTest, APodThatClaimsTheNameOfAnotherAttemptIsNotBelieved) {
  Run(Nth(1));
  Json copy = PodOf(Nth(1));
  copy["metadata"]["name"] = "copy";
  copy["metadata"].erase("uid");
  copy["metadata"].erase("ownerReferences");
  cluster_.Put(Pods(), copy);
  const std::string uid = UidOf(*cluster_.Get({Pods(), kTuning.ns, "copy"}));
  ASSERT_NE(uid, "");
  cluster_.SetToken(Token(uid), kTuning.ns, uid);
  const int before = cluster_.Calls("review");
  EXPECT_TRUE(absl::IsUnavailable(Sync(Nth(1), Token(uid))));
  EXPECT_EQ(cluster_.Calls("review"), before) << "nothing is asked for it";
  EXPECT_EQ(Sync(Nth(1), TokenOf(Nth(1))), absl::OkStatus());
}

// Also one that was believed a moment ago.
TEST_F(PodTokenTest, APodThatIsNoneOfItsAnyMoreIsNotBelieved) {
  Run(Nth(1));
  const std::string token = TokenOf(Nth(1));
  EXPECT_EQ(Sync(Nth(1), token), absl::OkStatus());
  Edit(Nth(1), [](Json& pod) { pod["metadata"].erase("ownerReferences"); });
  EXPECT_TRUE(Await([&] { return absl::IsUnavailable(Sync(Nth(1), token)); }));
}

// A pod of another namespace with a uid of ours cannot be; a token that says so is not believed.
TEST_F(PodTokenTest, ATokenOfAnotherNamespaceIsRefused) {
  Run(Nth(1));
  const std::string uid = UidOf(PodOf(Nth(1)));
  cluster_.SetToken(Token(uid), "other", uid);
  EXPECT_TRUE(absl::IsPermissionDenied(Sync(Nth(1), Token(uid))));
}

// A pod that is what it says asks for what is another's.
TEST_F(PodTokenTest, APodGetsUrlsForItsOwnCopiesOnly) {
  v1::ExperimentSpec spec;
  spec.mutable_shirabe()->mutable_artifacts()->set_store("team");
  spec.mutable_shirabe()->mutable_artifacts()->set_checkpoints(true);
  OpenStore("team");
  executor().UseVolume(kTuning, spec);
  Run(Nth(1));
  Run(Nth(2));
  const auto ask = [&](const AttemptKey& as, int64_t trial) {
    v1::GrantRequest request;
    request.set_namespace_(as.trial.experiment.ns);
    request.set_experiment(as.trial.experiment.name);
    request.set_trial(as.trial.number);
    request.set_attempt(as.number);
    request.set_action(v1::READ_OBJECT);
    request.mutable_copy()->set_trial(trial);
    request.mutable_copy()->set_attempt(1);
    request.mutable_copy()->set_step(5);
    return executor().Grant(request, TokenOf(Nth(1)));
  };
  const auto own = ask(Nth(1), 1);
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_THAT(own->url(), HasSubstr("/bucket/lab/_/tuning/1/1/5/manifest.json?"));
  EXPECT_TRUE(absl::IsInvalidArgument(ask(Nth(1), 2).status()));
  EXPECT_FALSE(ask(Nth(2), 2).ok()) << "with the token of another pod";
  EXPECT_FALSE(ask({{{"blue", "tuning"}, 1}, 1}, 1).ok());
}

TEST_F(PodTokenTest, MadeUpTokensAskTheApiServerFewQuestions) {
  Run(Nth(1));
  const std::string uid = UidOf(PodOf(Nth(1)));
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(Sync(Nth(1), Token(uid, "forged" + std::to_string(i))).ok());
    EXPECT_FALSE(Sync(Nth(1), Token("uid-" + std::to_string(i))).ok());
  }
  EXPECT_LE(cluster_.Calls("review"), 30);
}

// Started by version 0.1, with the attempt's token in its specification.
TEST_F(PodTokenTest, PodsOfTheVersionBeforeAreStillLetIn) {
  Run(Nth(1));
  EXPECT_TRUE(executor().Sync(Request(Nth(1)), "").ok());
  EXPECT_FALSE(executor().Sync(Request(Nth(1), "guess"), TokenOf(Nth(1))).ok());
}

// A rolling upgrade: a new controller takes up a Job of 0.1, whose sidecar goes on as it always
// did.
TEST_F(KubernetesTest, AnAttemptOfTheVersionBeforeGoesOnToItsEnd) {
  const std::string folder = SourceDir() + "/tests/testdata/releases/0.1/";
  const Json job = Json::parse(*ReadFile(folder + "job.json"));
  const Json requests = Json::parse(*ReadFile(folder + "sync.json"));
  const AttemptKey key{{{"team", "spot"}, 3}, 2};
  cluster_.Put(Jobs(), job);
  Json pod = job["spec"]["template"];
  pod["metadata"].update({{"name", "spot-3-a2-x"},
                          {"namespace", "team"},
                          {"creationTimestamp", "2026-01-01T00:00:00Z"}});
  const Json made = *cluster_.Get({Jobs(), "team", "spot-3-a2"});
  pod["metadata"]["ownerReferences"] = {
      {{"kind", "Job"}, {"name", "spot-3-a2"}, {"uid", UidOf(made)}, {"controller", true}}};
  pod["spec"]["nodeName"] = "node-0";
  const Json running = {{"running", {{"startedAt", "2026-01-01T00:00:10Z"}}}};
  pod["status"] = {{"phase", "Running"},
                   {"containerStatuses", Json::array({State("main", running)})},
                   {"initContainerStatuses", Json::array({State("shirabe-sidecar", running)})}};
  cluster_.Put(Pods(), pod);
  executor().Adopt({RecordOf(key, "0123456789abcdef")});
  ASSERT_TRUE(Await([&] { return See(key).placement.has_start_time(); }));

  int64_t known = 0;
  for (const Json& text : requests) {
    v1::SyncRequest request;
    std::string bytes;
    ASSERT_TRUE(absl::Base64Unescape(text.get<std::string>(), &bytes));
    ASSERT_TRUE(request.ParseFromString(bytes));
    const auto reply = executor().Sync(request);
    ASSERT_TRUE(reply.ok()) << reply.status();
    known = reply->files_size();
  }
  EXPECT_EQ(known, 2) << "its log and its metrics";
  EXPECT_EQ(LogOf(key), "begins\nstep 2\n");
  EXPECT_THAT(*ReadFile(executor().Paths(key).metrics_file), HasSubstr("\"accuracy\":0.75"));
  const AttemptStatus ended = AwaitEnd(key);
  EXPECT_EQ(ended.exit_code, 0);
  ASSERT_THAT(ended.checkpoints, SizeIs(1));
  EXPECT_EQ(ended.checkpoints[0].step(), 2);
  executor().Forget(key);
  EXPECT_TRUE(Await([&] { return !cluster_.Get({Jobs(), "team", "spot-3-a2"}).ok(); }));
}

TEST_F(PodTokenTest, WhereTheApiServerIsAwayItIsAskedAgain) {
  Run(Nth(1));
  const std::string token = TokenOf(Nth(1));
  cluster_.before = [](const std::string& verb, const kube::Ref& ref) {
    return verb == "create" && ref.resource.kind == "TokenReview" ? absl::UnavailableError("away")
                                                                  : absl::OkStatus();
  };
  EXPECT_TRUE(absl::IsUnavailable(Sync(Nth(1), token)));
  cluster_.before = kube::FakeCluster::Fault();
  EXPECT_EQ(Sync(Nth(1), token), absl::OkStatus());
}

TEST_F(KubernetesTest, WhereEachTrialHasItsOwnVolumeOnlyItsSidecarPrunes) {
  for (const AttemptKey& key : {Nth(1), Nth(2)}) {
    AttemptRequest request = PodRequestFor(key);
    request.cluster.volume.Clear();
    request.cluster.volume.set_size("1Gi");
    const Status started = executor().Start(request);
    ASSERT_TRUE(started.ok()) << started;
  }
  EXPECT_THAT(cluster_.All(Claims()), SizeIs(3)) << "one each beside the fixture's";
  executor().Prune(Saved(Nth(1), 10));
  EXPECT_THAT(executor().Sync(Request(Nth(1)))->prune(), SizeIs(1));
  EXPECT_THAT(executor().Sync(Request(Nth(2)))->prune(), IsEmpty());
}

}  // namespace
}  // namespace shirabe::trial
