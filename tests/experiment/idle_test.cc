// What waits costs nothing but its lease: no revision, no commit, no read, no pass, whatever it
// waits for. And leases are renewed all at once.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/timestamp.h"
#include "experiment/experiment_controller.h"
#include "experiment/submission.h"
#include "suggestion/remote/remote_algorithm_table.h"
#include "tests/experiment/counting_store.h"
#include "tests/experiment/specs.h"
#include "tests/support/eventually.h"
#include "tests/support/small_spec.h"

namespace shirabe::experiment {
namespace {

// Of a SmallSpec: the trials are run by those who ask, or by a program.
const SmallSpec kAsked{.more = "shirabe: {askAndTell: true}"};
const SmallSpec kProgram{.container = ShellCommand("sleep 60; echo loss=$1")};

class IdleTest : public testing::Test {
 protected:
  void SetUp() override {
    char home[] = "/tmp/shirabe-idle-XXXXXX";
    ASSERT_NE(mkdtemp(home), nullptr);
    home_ = home;
  }
  void TearDown() override {
    if (controller_ != nullptr) {
      for (const ExperimentKey& key : owned_) controller_->Suspend(key, /*now=*/true);
      for (const ExperimentKey& key : owned_) {
        controller_->Await(key, absl::Seconds(10)).IgnoreError();
      }
    }
    controller_ = nullptr;
    std::filesystem::remove_all(home_);
  }

  void Start(v1::NodePools pools = {}) {
    ControllerOptions options{.store = &store_, .clock = RealClock()};
    options.executor_options = {.home = home_, .clock = RealClock(), .pools = std::move(pools)};
    options.workers = 2;
    options.at_step = [this] { ++steps_; };
    auto made = Controller::Create(std::move(options));
    ASSERT_TRUE(made.ok()) << made.status();
    controller_ = *std::move(made);
  }
  ExperimentKey Submit(const std::string& name, SmallSpec spec) {
    spec.name = name;
    spec.parallel = 1;
    spec.trials = 9;
    const auto submitted = experiment::Submit(store_, *RealClock(), ParseOnly(Yaml(spec)));
    EXPECT_TRUE(submitted.ok()) << submitted.status();
    return {"default", name};
  }
  void Own(const ExperimentKey& key) {
    const Status owned = controller_->Own(key);
    ASSERT_TRUE(owned.ok()) << owned;
    owned_.push_back(key);
  }
  void Send(const ExperimentKey& key, v1::Intent::Verb verb, const std::string& caller = "") {
    v1::Intent intent;
    intent.set_verb(verb);
    intent.set_caller(caller);
    const Status sent = experiment::Send(store_, *RealClock(), key, intent);
    ASSERT_TRUE(sent.ok()) << sent;
  }
  v1::Experiment Get(const ExperimentKey& key) { return store_.GetExperiment(key)->record; }

  // Nothing is written for a while that is longer than any interval of the past was, and no more
  // looks than `passes` are taken.
  void ExpectIdle(int passes, absl::Duration time = absl::Seconds(2)) {
    Pause(absl::Seconds(1));  // what was asked for just now
    const int64_t revision = *store_.Revision();
    store_.Reset();
    steps_ = 0;
    Pause(time);
    EXPECT_EQ(*store_.Revision(), revision);
    EXPECT_EQ(store_.commits, 0);
    EXPECT_EQ(store_.acquired, 0);
    EXPECT_LE(store_.renewed, 1);
    EXPECT_LE(store_.reads, passes);
    EXPECT_LE(steps_, 8 * passes) << "a pass has a few steps";
  }

  std::unique_ptr<db::Store> memory_ = *db::Open("memory:");
  CountingStore store_{memory_.get()};
  std::atomic<int> steps_ = 0;
  std::string home_;
  std::vector<ExperimentKey> owned_;
  std::unique_ptr<Controller> controller_;
};

TEST_F(IdleTest, WaitingForAnAskCostsNothing) {
  Start();
  for (int i = 0; i < 20; ++i) Own(Submit(absl::StrCat("e", i), kAsked));
  ExpectIdle(0);
}

TEST_F(IdleTest, AnAskThatCannotBeAnsweredCostsNothing) {
  Start();
  const ExperimentKey key = Submit("e", kAsked);
  Own(key);
  Send(key, v1::Intent::PAUSE);
  ASSERT_TRUE(Eventually([&] { return Get(key).status().shirabe().paused(); }))
      << "an intent is heard of without being looked for";
  Send(key, v1::Intent::ASK, "somebody");
  ExpectIdle(0);
  Send(key, v1::Intent::RESUME);
  EXPECT_TRUE(Eventually([&] { return Get(key).status().trials() == 1; })) << "and is answered";
}

TEST_F(IdleTest, ATrialOfSomebodyElseCostsNothing) {
  Start();
  const ExperimentKey key = Submit("e", kAsked);
  Own(key);
  Send(key, v1::Intent::ASK, "somebody");
  ASSERT_TRUE(Eventually([&] { return Get(key).status().trials_running() == 1; }));
  ExpectIdle(0);
}

TEST_F(IdleTest, PausedCostsNothing) {
  Start();
  const ExperimentKey key = Submit("e", kProgram);
  Send(key, v1::Intent::PAUSE);
  Own(key);
  ASSERT_TRUE(Eventually([&] { return Get(key).status().shirabe().paused(); }));
  ExpectIdle(0);
}

TEST_F(IdleTest, BackoffCostsNothing) {
  Start();
  const ExperimentKey key = Submit("e", kProgram);
  const auto stored = *store_.GetExperiment(key);
  db::Batch batch{.experiment = key};
  v1::Trial trial;
  trial.set_namespace_(key.ns);
  trial.set_experiment(key.name);
  trial.set_number(1);
  trial.mutable_point()->add_x(0.5);
  trial.set_phase(v1::TRIAL_PENDING);
  *trial.mutable_not_before() = ToProto(RealClock()->Now() + absl::Seconds(50));
  batch.trials = {{trial, 0}};
  ASSERT_TRUE(store_.Commit(batch).ok());
  Own(key);
  ASSERT_TRUE(Eventually([&] {
    return absl::StrContains(Get(key).status().shirabe().waiting(), "backoff until");
  })) << Get(key).status().shirabe().waiting();
  ExpectIdle(0);
}

TEST_F(IdleTest, RunningWithoutOutputWritesNothing) {
  Start();
  const ExperimentKey key = Submit("e", kProgram);
  Own(key);
  ASSERT_TRUE(Eventually([&] { return Get(key).status().trials_running() == 1; }));
  Pause(absl::Seconds(2));  // looks become rarer
  ExpectIdle(5);
}

TEST_F(IdleTest, WaitingForAMachineWritesNothing) {
  v1::NodePools pools;
  pools.add_pools()->set_name("one");
  pools.mutable_pools(0)->set_slots(1);
  pools.mutable_pools(0)->set_capacity(v1::ON_DEMAND);
  Start(pools);
  const ExperimentKey first = Submit("first", kProgram);
  Own(first);
  ASSERT_TRUE(Eventually([&] { return Get(first).status().trials_running() == 1; }));
  for (int i = 0; i < 3; ++i) Own(Submit(absl::StrCat("e", i), kProgram));
  ASSERT_TRUE(Eventually([&] {
    return absl::StrContains(Get({"default", "e2"}).status().shirabe().waiting(), "no free slot");
  }));
  ExpectIdle(4 * 5);
}

TEST_F(IdleTest, WaitingForTheBudgetWritesNothing) {
  v1::NodePools pools;
  pools.add_pools()->set_name("dear");
  pools.mutable_pools(0)->set_slots(4);
  pools.mutable_pools(0)->set_price_per_hour(3600);
  pools.mutable_pools(0)->set_capacity(v1::ON_DEMAND);
  Start(pools);
  SmallSpec two = kProgram;
  two.more = "shirabe: {budget: {maxCost: 25}}";
  const ExperimentKey key = Submit("e", two);
  auto intent = v1::Intent();
  intent.set_verb(v1::Intent::SCALE);
  intent.set_parallel_trial_count(4);
  ASSERT_TRUE(experiment::Send(store_, *RealClock(), key, intent).ok());
  Own(key);
  ASSERT_TRUE(Eventually([&] {
    return absl::StrContains(Get(key).status().shirabe().waiting(), "spec.shirabe.budget");
  })) << Get(key).status().ShortDebugString();
  ExpectIdle(20);
}

TEST_F(IdleTest, EndedCostsNothing) {
  Start();
  const ExperimentKey key = Submit("e", kProgram);
  Own(key);
  Send(key, v1::Intent::CANCEL);
  ASSERT_TRUE(controller_->Await(key, absl::Seconds(20)).ok());
  EXPECT_EQ(controller_->Finished().size(), 1u);
  ExpectIdle(0);
}

TEST_F(IdleTest, AnAlgorithmThatDoesNotAnswerIsAskedLessAndLess) {
  ASSERT_TRUE(
      suggestion::SetRemoteAlgorithmTable({.allowed = {"127.0.0.1:9"}, .allow_loopback = true})
          .ok());
  Start();
  const ExperimentKey key =
      Submit("e", {.more = "shirabe: {askAndTell: true, algorithm: {endpoint: \"127.0.0.1:9\"}}"});
  Send(key, v1::Intent::ASK, "somebody");
  Own(key);
  ASSERT_TRUE(Eventually([&] { return !Get(key).status().shirabe().waiting().empty(); }));
  store_.Reset();
  Pause(absl::Seconds(6));
  EXPECT_LE(store_.commits, 4) << "after 1, 2 and 4 seconds";
}

TEST_F(IdleTest, AllLeasesAreRenewedInOneCall) {
  Start();
  for (int i = 0; i < 50; ++i) Own(Submit(absl::StrCat("e", i), kAsked));
  Pause(absl::Seconds(1));
  store_.Reset();
  Pause(absl::Seconds(6));
  EXPECT_GE(store_.renewed, 1);
  EXPECT_LE(store_.renewed, 2);
  EXPECT_EQ(store_.acquired, 0);
  EXPECT_EQ(store_.reads, 0);
  const auto lease = store_.GetLease({"default", "e7"});
  EXPECT_GT(FromProto(lease->expiry()), RealClock()->Now() + absl::Seconds(8));
}

// Whoever does nothing still learns that it is not theirs any more.
TEST_F(IdleTest, ALostLeaseOfWhatIsIdleIsNoticed) {
  Start();
  const ExperimentKey key = Submit("e", kAsked);
  Own(key);
  Pause(absl::Milliseconds(300));
  const auto theirs = store_.AcquireLease({.experiment = key,
                                           .holder = "another",
                                           .now = RealClock()->Now() + absl::Hours(1),
                                           .ttl = absl::Minutes(1)});
  ASSERT_TRUE(theirs.ok()) << theirs.status();
  const Status lost = controller_->Await(key, absl::Seconds(20));
  EXPECT_TRUE(absl::IsAborted(lost)) << lost;
  EXPECT_EQ(controller_->Finished().size(), 1u);
}

}  // namespace
}  // namespace shirabe::experiment
