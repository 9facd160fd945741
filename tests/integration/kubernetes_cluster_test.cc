// What the platform does to a pod of a real cluster, and what becomes of its attempt.
#include <stdlib.h>

#include <string>
#include <vector>

#include "tests/integration/kubernetes_cluster.h"
#include "tests/support/paths.h"

namespace shirabe::trial {
namespace {

TEST_F(KubernetesCluster, AnAttemptRunsEndsAndLeavesNothing) {
  const Status started = Start(Nth(1), "echo loss=0.25; exit 3");
  ASSERT_TRUE(started.ok()) << started;
  EXPECT_TRUE(Start(Nth(1), "echo again").ok());
  const AttemptStatus end = AwaitEnd(Nth(1));
  EXPECT_EQ(end.exit_code, 3) << end.message;
  EXPECT_EQ(end.platform, v1::CAUSE_NONE);
  EXPECT_NE(end.placement.node(), "");
  EXPECT_GE(FromProto(end.placement.end_time()), FromProto(end.placement.start_time()));
  EXPECT_EQ(LogOf(Nth(1)), "loss=0.25\n");
  executor_->Forget(Nth(1));
  EXPECT_TRUE(Await([&] { return Pods().empty(); }));
  EXPECT_TRUE(
      absl::IsNotFound(client_->Get({Jobs(), experiment_.ns, AttemptName(Nth(1))}).status()));
}

TEST_F(KubernetesCluster, AStopEndsItWithinItsGrace) {
  ASSERT_TRUE(Start(Nth(1), "trap 'echo told; exit 0' TERM; while :; do sleep 0.1; done").ok());
  AwaitRunning(Nth(1));
  ASSERT_TRUE(executor_->Stop(Nth(1), v1::EARLY_STOPPED, absl::Seconds(10)).ok());
  EXPECT_EQ(AwaitEnd(Nth(1)).exit_code, 0);
  EXPECT_EQ(LogOf(Nth(1)), "told\n");
}

TEST_F(KubernetesCluster, ARestartFindsWhatRunsAndWhatHasEnded) {
  ASSERT_TRUE(Start(Nth(1), "sleep 1000").ok());
  ASSERT_TRUE(Start(Nth(2), "exit 7").ok());
  AwaitRunning(Nth(1));
  AwaitEnd(Nth(2));
  Reopen();
  std::vector<v1::Attempt> open(3);
  for (int i = 0; i < 3; ++i) {
    open[i].set_namespace_(experiment_.ns);
    open[i].set_experiment(experiment_.name);
    open[i].set_trial(i + 1);
    open[i].set_number(1);
    open[i].set_token("secret");
  }
  executor_->Adopt(open);
  AwaitRunning(Nth(1));
  EXPECT_EQ(AwaitEnd(Nth(2)).exit_code, 7);
  EXPECT_EQ(AwaitEnd(Nth(3)).state, AttemptStatus::State::kLost);
}

TEST_F(KubernetesCluster, AnEvictionIsThePlatformsDoing) {
  ASSERT_TRUE(Start(Nth(1), "sleep 1000").ok());
  AwaitRunning(Nth(1));
  const std::string pod = NameOf(Pods().at(0));
  const kube::Resource evictions{"", "v1", "pods/" + pod + "/eviction", "Eviction"};
  const auto evicted =
      client_->Create(evictions, {{"apiVersion", "policy/v1"},
                                  {"kind", "Eviction"},
                                  {"metadata", {{"name", pod}, {"namespace", experiment_.ns}}},
                                  {"deleteOptions", {{"gracePeriodSeconds", 1}}}});
  ASSERT_TRUE(evicted.ok()) << evicted.status();
  const AttemptStatus end = AwaitEnd(Nth(1));
  EXPECT_EQ(end.platform, v1::PREEMPTED_EVICTION) << end.message;
}

TEST_F(KubernetesCluster, ATaintThatEvictsIsTheNodesDoing) {
  ASSERT_TRUE(Start(Nth(1), "sleep 1000", {{"pod", {{"terminationGracePeriodSeconds", 1}}}}).ok());
  AwaitRunning(Nth(1));
  const kube::Ref node{Nodes(), "", See(Nth(1)).placement.node()};
  const auto taint = [&](const Json& taints) {
    return client_->Patch(node, kube::PatchType::kMerge, {{"spec", {{"taints", taints}}}}, "")
        .status();
  };
  ASSERT_TRUE(taint({{{"key", "going"}, {"effect", "NoExecute"}}}).ok());
  const AttemptStatus end = AwaitEnd(Nth(1));
  EXPECT_TRUE(taint(nullptr).ok());
  EXPECT_EQ(end.platform, v1::PREEMPTED_NODE) << end.message;
}

TEST_F(KubernetesCluster, APodDeletedByHandIsNoFailureOfItsProgram) {
  ASSERT_TRUE(Start(Nth(1), "sleep 1000").ok());
  AwaitRunning(Nth(1));
  kube::DeleteOptions options;
  options.grace = absl::Seconds(1);
  const kube::Ref pod{trial::Pods(), experiment_.ns, NameOf(Pods().at(0))};
  ASSERT_TRUE(client_->Delete(pod, options).ok());
  const AttemptStatus end = AwaitEnd(Nth(1));
  EXPECT_EQ(end.platform, v1::UNKNOWN_CAUSE) << end.message;
}

TEST_F(KubernetesCluster, AJobDeletedByHandIsNoFailureEither) {
  ASSERT_TRUE(Start(Nth(1), "sleep 1000", {{"pod", {{"terminationGracePeriodSeconds", 1}}}}).ok());
  AwaitRunning(Nth(1));
  kube::DeleteOptions options;
  ASSERT_TRUE(client_->Delete({Jobs(), experiment_.ns, AttemptName(Nth(1))}, options).ok());
  const AttemptStatus end = AwaitEnd(Nth(1));
  EXPECT_EQ(end.platform, v1::UNKNOWN_CAUSE) << end.message;
}

// With power off nobody tells anything; the node is not ready after some 45 seconds.
TEST_F(KubernetesCluster, APoweredOffNodeLosesItsAttemptAndNotItsTrial) {
  const char* cluster = getenv("SHIRABE_TEST_CLUSTER");
  kube::Query nodes;
  nodes.resource = Nodes();
  nodes.label_selector = "!type";  // those that kwok plays have one
  const auto real = client_->List(nodes);
  ASSERT_TRUE(real.ok());
  if (cluster == nullptr || (*real)["items"].size() < 2) GTEST_SKIP() << "no node to spare";
  ASSERT_TRUE(Start(Nth(1), "sleep 1000").ok());
  AwaitRunning(Nth(1));
  const std::string node = See(Nth(1)).placement.node();
  const auto power = [&](const std::string& verb) {
    const std::string script = SourceDir() + "/tests/cluster/cluster.sh";
    return system((script + " " + verb + " " + cluster + " " + node + " >&2").c_str());
  };
  ASSERT_EQ(power("kill-node"), 0);
  const absl::Duration off = RealClock()->Monotonic();
  const AttemptStatus end = AwaitEnd(Nth(1));
  EXPECT_EQ(end.platform, v1::PREEMPTED_NODE) << end.message;
  RecordProperty("seconds", static_cast<int>(absl::ToInt64Seconds(RealClock()->Monotonic() - off)));
  executor_->Forget(Nth(1));
  EXPECT_TRUE(Await([&] {
    return absl::IsNotFound(client_->Get({Jobs(), experiment_.ns, AttemptName(Nth(1))}).status());
  }));
  EXPECT_EQ(power("start-node"), 0);
}

TEST_F(KubernetesCluster, OutOfMemoryIsToldAsSuch) {
  ASSERT_TRUE(
      Start(Nth(1), "exec tail /dev/zero", {{"resources", {{"limits", {{"memory", "24Mi"}}}}}})
          .ok());
  EXPECT_TRUE(AwaitEnd(Nth(1)).out_of_memory);
}

TEST_F(KubernetesCluster, ItSaysWhyItDoesNotStartAndCanBeStopped) {
  ASSERT_TRUE(Start(Nth(1), "true", {{"image", "localhost/none:1"}}).ok());
  ASSERT_TRUE(Start(Nth(2), "true", {{"resources", {{"requests", {{"cpu", "1000"}}}}}}).ok());
  AwaitWaiting(Nth(1), "localhost/none:1");
  AwaitWaiting(Nth(2), "Insufficient cpu");
  for (int64_t trial : {1, 2}) {
    ASSERT_TRUE(executor_->Stop(Nth(trial), v1::USER, absl::ZeroDuration()).ok());
    EXPECT_FALSE(AwaitEnd(Nth(trial)).placement.has_start_time());
  }
}

TEST_F(KubernetesCluster, AQuotaIsWaitedForAndSaid) {
  const Json quota = {{"apiVersion", "v1"},
                      {"kind", "ResourceQuota"},
                      {"metadata", {{"name", "none"}, {"namespace", experiment_.ns}}},
                      {"spec", {{"hard", {{"pods", "0"}}}}}};
  ASSERT_TRUE(client_->Create(kQuotas, quota).ok());
  ASSERT_TRUE(Await([&] {
    const auto seen = client_->Get({kQuotas, experiment_.ns, "none"});
    return seen.ok() && seen->contains("status") && (*seen)["status"].contains("hard");
  }));
  ASSERT_TRUE(Start(Nth(1), "exit 0").ok());
  AwaitWaiting(Nth(1), "quota");
}

}  // namespace
}  // namespace shirabe::trial
