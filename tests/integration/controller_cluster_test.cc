// What becomes of experiments on a real cluster when the controller dies, is stopped for a while,
// or hardly reaches its API server. After each: every trial has ended once and well, each attempt
// of the ledger was one Job with one pod, and nothing is left. The program lies in BinaryDir(), the
// definitions of its objects in SourceDir().
#include <string>
#include <vector>

#include "tests/integration/controller_cluster.h"
#include "tests/support/eventually.h"
#include "tests/support/paths.h"

namespace shirabe::cmd {
namespace {

using When = kube::FaultProxy::When;

uint64_t SeedOfThisRun() {
  const char* text = std::getenv("SHIRABE_SEED");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

TEST_F(ControllerCluster, ExperimentsComeThroughAStorm) {
  const uint64_t seed = SeedOfThisRun();
  SCOPED_TRACE(absl::StrCat("play it again with SHIRABE_SEED=", seed));
  StartController();
  proxy_->Storm({.seed = seed, .share = 0.25});
  Apply("plain", 4, 1);
  const bool image = std::getenv("SHIRABE_TEST_IMAGE") != nullptr;
  if (image) Apply("instrumented", 2, 1, /*instrumented=*/true);
  ExpectGoodEnd("plain", 4);
  if (image) ExpectGoodEnd("instrumented", 2);
  proxy_->Calm();
  EXPECT_TRUE(census_->AwaitEmpty()) << census_->Left();
}

// F1: a kill -9 at each step of an attempt's life, before the API server hears of it, and once it
// has done it and the controller does not know. The home is the same, as on a volume.
TEST_F(ControllerCluster, KilledAtEachStepItLosesNothingAndDoesNothingTwice) {
  struct Step {
    const char* what;
    When when;
    int nth;
  };
  const std::vector<Step> steps = {
      {"PATCH experiments/status", When::kBefore, 1},  // accepted, and recorded
      {"PATCH experiments/status", When::kAfter, 1},   // a slow machine writes it once only
      {"POST trials", When::kAfter, 1},
      {"POST jobs", When::kBefore, 1},  // recorded, and never made
      {"POST jobs", When::kAfter, 1},   // made, and not known to be
      {"POST jobs", When::kAfter, 2},
      {"GET pods/log", When::kBefore, 1},  // ended, and its rest not read
      {"PATCH trials/status", When::kAfter, 2},
      {"PATCH pods", When::kBefore, 1},  // in the store, and its pod still held
      {"PATCH pods", When::kAfter, 2},   // of the last one: the experiment has ended
      {"DELETE jobs", When::kBefore, 1},
      {"DELETE jobs", When::kAfter, 2},
  };
  StartController();
  int number = 0;
  for (const Step& step : steps) {
    const std::string name = absl::StrCat("k", ++number);
    SCOPED_TRACE(
        absl::StrCat(name, ": ", step.what, step.when == When::kBefore ? " before" : " after"));
    proxy_->Hold(step.what, step.when, step.nth);
    Apply(name, 2, 0);
    ASSERT_TRUE(proxy_->AwaitHeld());
    KillController();
    proxy_->Release();
    StartController();
    ExpectGoodEnd(name, 2);
    if (HasFailure()) return;
  }
  EXPECT_TRUE(census_->AwaitEmpty(absl::Seconds(90))) << census_->Left();
}

// The object of an experiment is deleted, its records as well, and nobody is left to remember what
// is to go from the cluster.
TEST_F(ControllerCluster, KilledWhileItDeletesItLeavesNothing) {
  StartController();
  Apply("gone", 2, 60);
  ASSERT_TRUE(Eventually([&] { return RunningPods() == 2; }));
  proxy_->Inject(kube::Fault::kUnavailable, "PATCH pods", 1000);  // none is let go
  ASSERT_EQ(client_->Delete({kExperiments, ns_, "gone"}, {}), absl::OkStatus());
  ASSERT_TRUE(Eventually([&] {
    return cli_.Run({"get", "experiment", "gone", "-n", ns_}).code == 3;
  }));
  KillController();
  proxy_->Calm();
  StartController();
  EXPECT_TRUE(census_->AwaitEmpty(absl::Seconds(90))) << census_->Left();
}

// F4: the leader stands still for longer than its lease, just after the API server has made a Job
// for it. Another one leads when it wakes up, and nothing that it writes then arrives.
TEST_F(ControllerCluster, ALeaderThatSleptWritesNothing) {
  const std::vector<std::string> lease = {"--lease-namespace=" + ns_};
  auto first = Launch(*proxy_, lease);
  const std::string leads = ReadyFile();
  ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(leads); })) << first->Err();
  kube::FaultProxy other(config_);
  const auto second = Launch(other, lease);
  proxy_->Hold("POST jobs", When::kAfter, 2);
  Apply("slept", 3, 2);
  ASSERT_TRUE(proxy_->AwaitHeld());
  first->Signal(SIGSTOP);
  ExpectGoodEnd("slept", 3);
  EXPECT_TRUE(census_->AwaitEmpty()) << census_->Left();
  const int before = proxy_->writes();
  proxy_->Release();
  first->Signal(SIGCONT);
  EXPECT_TRUE(Eventually([&] {
    return first->Err().find("leadership was lost: waiting to lead again") != std::string::npos;
  })) << first->Err();
  EXPECT_EQ(proxy_->writes(), before) << proxy_->Story();
  EXPECT_EQ(census_->Doubles(), "");
  ExpectGoodEnd("slept", 3);
  if (HasFailure()) std::cerr << other.Story() << second->Err();
}

}  // namespace
}  // namespace shirabe::cmd
