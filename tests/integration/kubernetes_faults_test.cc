// Attempts of a real cluster, with a wire to its API server that plays bad days: what is started is
// started once, what ends is seen as what it was, and nothing is left. `SHIRABE_SEED=n` plays a
// storm again.
#include <cstdlib>
#include <vector>

#include "tests/integration/kubernetes_census.h"
#include "tests/integration/kubernetes_cluster.h"
#include "tests/kube/fault_proxy.h"

namespace shirabe::trial {
namespace {

uint64_t FaultSeed() {
  const char* text = std::getenv("SHIRABE_SEED");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

class KubernetesClusterFaults : public KubernetesCluster {
 protected:
  void SetUp() override {
    KubernetesCluster::SetUp();
    if (IsSkipped()) return;
    const auto config = kube::FindConfig(getenv("SHIRABE_TEST_KUBECONFIG"), "");
    ASSERT_TRUE(config.ok());
    proxy_ = std::make_unique<kube::FaultProxy>(*config);
    through_ = *kube::Client::Create(proxy_->config(), RealClock());
    census_ = std::make_unique<Census>(client_.get(), experiment_.ns);
    for_executor_ = through_.get();
    times_.stall = absl::Seconds(3);
    Reopen();
  }
  void TearDown() override {
    if (proxy_ != nullptr) proxy_->Calm();
    if (HasFailure() && proxy_ != nullptr) std::cerr << proxy_->Story() << '\n';
    census_.reset();
    KubernetesCluster::TearDown();
  }

  // As the reconciler does it: again, until it is known to be there.
  void StartAgainAndAgain(const AttemptKey& key, const std::string& script) {
    Status last;
    EXPECT_TRUE(Await([&] {
      last = Start(key, script);
      return last.ok();
    })) << last;
  }
  v1::Attempt Open(const AttemptKey& key) {
    v1::Attempt open;
    open.set_namespace_(experiment_.ns);
    open.set_experiment(experiment_.name);
    open.set_trial(key.trial.number);
    open.set_number(key.number);
    open.set_token("secret");
    return open;
  }

  std::unique_ptr<kube::FaultProxy> proxy_;
  std::unique_ptr<kube::Client> through_;
  std::unique_ptr<Census> census_;
};

TEST_F(KubernetesClusterFaults, AttemptsComeThroughAStormAndEachRunsOnce) {
  const uint64_t seed = FaultSeed();
  SCOPED_TRACE("play it again with SHIRABE_SEED=" + std::to_string(seed));
  proxy_->Storm({.seed = seed, .share = 0.35, .stalls = true});
  StartAgainAndAgain(Nth(1), "echo loss=1");
  StartAgainAndAgain(Nth(2), "echo loss=2; exit 3");
  StartAgainAndAgain(Nth(3), "trap 'echo told; exit 0' TERM; while :; do sleep 0.1; done");
  StartAgainAndAgain(Nth(4), "sleep 5; echo loss=4");
  AwaitRunning(Nth(3));
  AwaitRunning(Nth(4));
  Reopen();
  executor_->Adopt({Open(Nth(1)), Open(Nth(2)), Open(Nth(3)), Open(Nth(4))});
  ASSERT_TRUE(executor_->Stop(Nth(3), v1::EARLY_STOPPED, absl::Seconds(10)).ok());
  const std::vector<int> codes = {0, 3, 0, 0};
  for (int i = 1; i <= 4; ++i) {
    SCOPED_TRACE(i);
    const AttemptStatus end = AwaitEnd(Nth(i));
    EXPECT_EQ(end.exit_code, codes[i - 1]) << end.message;
    // Of the one that was stopped, whoever stopped it knows.
    EXPECT_EQ(end.platform, i == 3 ? v1::UNKNOWN_CAUSE : v1::CAUSE_NONE) << end.message;
    executor_->Forget(Nth(i));
  }
  EXPECT_EQ(LogOf(Nth(2)), "loss=2\n");
  // Its pod was deleted, and its kubelet does not wait with the log until somebody can read it.
  EXPECT_THAT(LogOf(Nth(3)), testing::AnyOf("told\n", ""));
  EXPECT_EQ(LogOf(Nth(4)), "loss=4\n");
  proxy_->Calm();
  EXPECT_TRUE(census_->AwaitEmpty()) << census_->Left();
  EXPECT_EQ(census_->made().size(), 4u);
  EXPECT_EQ(census_->begun().size(), 4u);
  EXPECT_EQ(census_->Doubles(), "");
}

// Each call that changes something, each in every way that it can go wrong.
TEST_F(KubernetesClusterFaults, EveryWriteMayFailInEveryWay) {
  using kube::Fault;
  const std::vector<Fault> faults = {Fault::kBusy,       Fault::kBroken,      Fault::kCut,
                                     Fault::kDoneBroken, Fault::kDoneTimeout, Fault::kDoneCut};
  int64_t trial = 0;
  for (const Fault fault : faults) {
    for (const char* what : {"POST jobs", "PATCH pods", "DELETE jobs"}) {
      proxy_->Inject(fault, what, 2);
    }
    const AttemptKey key = Nth(++trial);
    SCOPED_TRACE(AttemptName(key));
    StartAgainAndAgain(key, "echo loss=1");
    EXPECT_EQ(AwaitEnd(key).exit_code, 0);
    executor_->Forget(key);
  }
  EXPECT_TRUE(census_->AwaitEmpty()) << census_->Left();
  EXPECT_EQ(census_->made().size(), faults.size());
  EXPECT_EQ(census_->Doubles(), "");
}

// A Job that an earlier life of ours has asked for, and that comes once its attempt is closed.
TEST_F(KubernetesClusterFaults, AJobThatComesTooLateIsTakenAway) {
  ASSERT_TRUE(Start(Nth(1), "echo loss=1").ok());
  // It is made behind the caller of Start.
  StatusOr<Json> job = absl::NotFoundError("not asked for");
  ASSERT_TRUE(Await([&] {
    job = client_->Get({Jobs(), experiment_.ns, AttemptName(Nth(1))});
    return job.ok();
  })) << job.status();
  AwaitEnd(Nth(1));
  executor_->Forget(Nth(1));
  ASSERT_TRUE(census_->AwaitEmpty());
  times_.orphan = absl::Seconds(1);
  Reopen();
  (void)executor_->Observe(experiment_);
  Json late = *job;
  late["metadata"] = {{"name", NameOf(*job)}, {"namespace", experiment_.ns}};
  for (const char* kept : {"labels", "annotations"}) {
    late["metadata"][kept] = (*job)["metadata"][kept];
    for (const char* word : {"controller-uid", "batch.kubernetes.io/controller-uid"}) {
      late["metadata"][kept].erase(word);
      late["spec"]["template"]["metadata"]["labels"].erase(word);
    }
  }
  late["spec"].erase("selector");
  late.erase("status");
  const auto made = client_->Create(Jobs(), late);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE(census_->AwaitEmpty()) << census_->Left();
}

}  // namespace
}  // namespace shirabe::trial
