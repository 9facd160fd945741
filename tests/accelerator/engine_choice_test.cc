// Which engine a search uses, from the algorithm down to the library: the whole way of a suggestion
// through the copy of the algorithms that this processor runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "suggestion/accelerator/program_gpu.h"
#include "suggestion/algorithm.h"
#include "suggestion/gp/engine_choice.h"
#include "suggestion/gp/scored_results.h"
#include "tests/accelerator/fake_gpu.h"
#include "tests/suggestion/spaces.h"

namespace shirabe::suggestion {
namespace {

using accelerator::FakeGpu;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr AcceleratorThresholds kSmall = {.points = 30, .alone = 60};

// What is remembered of fits is found by the results: other results for each test.
History Results(int count, double phase) {
  History history(Make({Double("x", {0, 1}), Double("y", {0, 1})}));
  for (int i = 0; i < count; ++i) {
    const double x = std::fmod(0.618 * i + phase, 1.0), y = std::fmod(0.414 * i + 2 * phase, 1.0);
    const double loss = std::pow(x - 0.3, 2) + 3 * std::pow(y - 0.7, 2) + 0.1 * std::sin(9 * x);
    history.Add({x, y}, {.state = TrialState::kCompleted, .loss = loss});
  }
  return history;
}

Proposal Propose(const History& history, int objectives = 1) {
  auto algorithm = CreateAlgorithm(
      "bayesianoptimization",
      {.space = history.space(), .objectives = objectives, .constraints = objectives - 1});
  EXPECT_TRUE(algorithm.ok()) << algorithm.status();
  auto proposal = (*algorithm)->Propose(history, 1, Rng(5));
  EXPECT_TRUE(proposal.ok()) << proposal.status();
  EXPECT_EQ(proposal->suggestions.size(), 1);
  return *std::move(proposal);
}

std::shared_ptr<accelerator::SharedGpu> Opened(const FakeGpu& fake) {  // shared: by what is on it
  auto gpu = fake.Open();
  EXPECT_TRUE(gpu.ok()) << gpu.status();
  return *std::move(gpu);
}

constexpr char kHere[] = "gp memo1", kThere[] = "gp memo2";

// Also where the machine has one: it is not even looked for.
TEST(EngineChoice, ASmallHistoryAsksForNone) {
  const Proposal proposal = Propose(Results(60, 0.01));
  EXPECT_THAT(proposal.memo, StartsWith(kHere));
  EXPECT_EQ(accelerator::ReportGpu().state, accelerator::GpuReport::State::kNotAsked);
}

TEST(EngineChoice, FromAThresholdOnItIsTheAccelerators) {
  const FakeGpu fake;
  const auto gpu = Opened(fake);
  const AcceleratorOverride use(gpu, kSmall);
  EXPECT_THAT(Propose(Results(29, 0.02)).memo, StartsWith(kHere));
  EXPECT_EQ(gpu->counts().uploads, 0);
  History history = Results(40, 0.02);
  const Proposal first = Propose(history);
  EXPECT_THAT(first.memo, StartsWith(kThere));
  EXPECT_THAT(first.suggestions[0].explanation, HasSubstr("by the GPU"));
  EXPECT_GT(gpu->counts().evaluations, 0);
  EXPECT_GT(gpu->counts().scorings, 0);
  // I10: the same history, the same suggestion, from the memo too.
  EXPECT_EQ(Propose(history).suggestions[0].point, first.suggestions[0].point);
  history.set_memo(first.memo);
  EXPECT_EQ(Propose(history).suggestions[0].point, first.suggestions[0].point);
  EXPECT_THAT(Propose(history).memo, StartsWith(kThere));
}

TEST(EngineChoice, IsNearTheProcessors) {
  const History history = Results(40, 0.03);
  const Point here = Propose(history).suggestions[0].point;
  const FakeGpu fake;
  const AcceleratorOverride use(Opened(fake), kSmall);
  const Point there = Propose(history).suggestions[0].point;
  for (size_t i = 0; i < here.size(); ++i) EXPECT_NEAR(here[i], there[i], 1e-3);
}

TEST(EngineChoice, ASearchThatBeganOnTheProcessorStaysThere) {
  History history = Results(40, 0.04);
  history.set_memo(Propose(history).memo);  // as an earlier version left it, too
  EXPECT_THAT(history.memo(), StartsWith(kHere));
  const FakeGpu fake;
  const auto gpu = Opened(fake);
  const AcceleratorOverride use(gpu, kSmall);
  history.Add({0.31, 0.69}, {.state = TrialState::kCompleted, .loss = -0.5});
  EXPECT_THAT(Propose(history).memo, StartsWith(kHere));
  EXPECT_EQ(gpu->counts().uploads, 0);
}

// At any call: no suggestion is lost, and from then on it is the processor's for good.
TEST(EngineChoice, ADeviceThatIsLostCostsNoSuggestion) {
  double phase = 0.05;
  for (const char* fault : {"upload=1:4", "evaluate=1:4", "evaluate=5:4", "condition=1:4",
                            "condition=3:6", "upload=1:3", "evaluate=3:3", "condition=2:5"}) {
    phase += 0.01;
    History history = Results(40, phase);
    const Point without = Propose(history).suggestions[0].point;
    Proposal proposal;
    {
      const FakeGpu fake(fault);
      const AcceleratorOverride use(Opened(fake), kSmall);
      history.set_memo("");
      proposal = Propose(history);
    }
    EXPECT_THAT(proposal.memo, StartsWith(kHere)) << fault;
    ASSERT_EQ(proposal.suggestions.size(), 1) << fault;
    EXPECT_THAT(proposal.suggestions[0].explanation, Not(HasSubstr("by the GPU"))) << fault;
    for (size_t i = 0; i < without.size(); ++i) {
      EXPECT_NEAR(proposal.suggestions[0].point[i], without[i], 1e-2) << fault;
    }
    const FakeGpu fake;
    const auto gpu = Opened(fake);
    const AcceleratorOverride use(gpu, kSmall);
    history.set_memo(proposal.memo);
    EXPECT_THAT(Propose(history).memo, StartsWith(kHere)) << fault;
    EXPECT_EQ(gpu->counts().uploads, 0) << fault;
  }
}

// Also with running trials and failures each process that a point is judged by is scored there, all
// points of the pool in one call.
TEST(EngineChoice, RunningTrialsAndFailuresAreScoredThere) {
  History history = Results(40, 0.31);
  for (int i = 0; i < 12; ++i) {  // so many beside each other that it was not bad luck
    history.Add({0.9 + 0.004 * i, 0.06 - 0.004 * i}, {.state = TrialState::kInfeasible});
  }
  for (int i = 0; i < 3; ++i) {
    history.Add({0.31 + 0.01 * i, 0.7}, {.state = TrialState::kActive});
  }
  const Point here = Propose(history).suggestions[0].point;
  const FakeGpu fake;
  const auto gpu = Opened(fake);
  const AcceleratorOverride use(gpu, kSmall);
  Propose(Results(40, 0.31));  // what is fitted is remembered
  const int64_t fitted = gpu->counts().conditionings, scored = gpu->counts().scorings;
  const Proposal proposal = Propose(history);
  EXPECT_THAT(proposal.memo, StartsWith(kThere));
  EXPECT_THAT(proposal.suggestions[0].explanation, HasSubstr("likely to give a result"));
  for (size_t i = 0; i < here.size(); ++i) {
    EXPECT_NEAR(here[i], proposal.suggestions[0].point[i], 1e-3);
  }
  // What is known of failures, and the objective with those, then with what runs.
  EXPECT_EQ(gpu->counts().conditionings, fitted + 3);
  EXPECT_GT(gpu->counts().scorings, scored + 4);
  EXPECT_EQ(Propose(history).suggestions[0].point, proposal.suggestions[0].point);
}

// With two objectives and a constraint. `more`: of a loss, so that it is another history.
History FrontOf(int count, double more) {
  History history = Results(0, 0);
  const History one = Results(count, 0.33);
  for (int i = 0; i < count; ++i) {
    const Point& point = one.point(i);
    history.Add(point, {.state = TrialState::kCompleted,
                        .loss = one.trial(i).loss + more,
                        .further_losses = {std::pow(point[0] - 0.8, 2) + 0.1 * point[1] + more},
                        .margins = {point[0] + point[1] - 0.4}});
  }
  history.Add({0.4, 0.4}, {.state = TrialState::kActive});
  return history;
}

TEST(EngineChoice, ObjectivesAndConstraintsAreScoredThere) {
  const History history = FrontOf(70, 0);
  const Point here = Propose(FrontOf(70, 1e-13), 2).suggestions[0].point;
  const FakeGpu fake;
  const auto gpu = Opened(fake);
  const AcceleratorOverride use(gpu, kSmall);
  const Point there = Propose(history, 2).suggestions[0].point;
  for (size_t i = 0; i < here.size(); ++i) EXPECT_NEAR(here[i], there[i], 1e-3);
  // Three warps of two objectives, and a constraint; all three again with what runs.
  EXPECT_EQ(gpu->counts().conditionings, 10);
  EXPECT_GE(gpu->counts().scorings, 6);
  EXPECT_EQ(Propose(history, 2).suggestions[0].point, there);
}

// What an accelerator does in good time: a process of twice as many results.
TEST(EngineChoice, AnAcceleratorHasMoreResults) {
  EXPECT_EQ(gp::MostResults({}, 5000, 2), gp::Results::kMaxPoints);
  const FakeGpu fake;
  const AcceleratorOverride use(Opened(fake), kSmall);
  EXPECT_EQ(gp::MostResults({}, 1000, 2), gp::Results::kMaxPoints);
  EXPECT_EQ(gp::MostResults({}, 1001, 2), gp::Results::kMaxAccelerated);
  EXPECT_EQ(gp::MostResults({gp::EngineKind::kAccelerator, 2000}, 5000, 2), 2000);
  // A search that began on the processor stays there.
  EXPECT_EQ(gp::MostResults({gp::EngineKind::kProcessor, 60}, 5000, 2), 1000);
  EXPECT_EQ(gp::MostResults({}, 5000, 100'000), 1000) << "more coordinates than it takes";
}

TEST(EngineChoice, ScoringGoesOnWhereTheDeviceIsLost) {
  const History history = Results(40, 0.21);
  const FakeGpu fake("score=2:4");
  const auto gpu = Opened(fake);
  const AcceleratorOverride use(gpu, kSmall);
  EXPECT_EQ(Propose(history).suggestions.size(), 1);
  EXPECT_TRUE(gpu->lost());
}

// Lost while what runs is imagined, or when a point's chance is scored.
TEST(EngineChoice, AProposalWithRunningTrialsGoesOnWhereTheDeviceIsLost) {
  double phase = 0.41;
  for (const char* fault : {"condition=4:4", "condition=5:4", "condition=6:3", "condition=6:4",
                            "upload=2:4", "upload=4:4", "score=1:4", "score=2:4", "score=3:3"}) {
    phase += 0.01;
    History history = Results(40, phase);
    history.Add({0.9, 0.05}, {.state = TrialState::kInfeasible});
    history.Add({0.9, 0.1}, {.state = TrialState::kInfeasible});
    history.Add({0.31, 0.7}, {.state = TrialState::kActive});
    const Point without = Propose(history).suggestions[0].point;
    const FakeGpu fake(fault);
    const AcceleratorOverride use(Opened(fake), kSmall);
    const Proposal proposal = Propose(history);
    ASSERT_EQ(proposal.suggestions.size(), 1) << fault;
    for (size_t i = 0; i < without.size(); ++i) {
      EXPECT_NEAR(proposal.suggestions[0].point[i], without[i], 1e-2) << fault;
    }
  }
}

// Without SHIRABE_GPU: a server looks for one, what runs trials here for one user does not.
TEST(ProgramGpuDeathTest, OnlyAServerLooksForOneOfItsOwnAccord) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const FakeGpu fake;
  const auto found = [&fake](const char* gpu, bool server) {
    if (gpu == nullptr) unsetenv("SHIRABE_GPU");
    if (gpu != nullptr) setenv("SHIRABE_GPU", gpu, 1);
    setenv("SHIRABE_GPU_LIBRARY_DIR", fake.folder().c_str(), 1);
    if (server) accelerator::UseGpuOfServer();
    const bool is = FindAccelerator(600, 2) != nullptr;
    const accelerator::GpuReport report = accelerator::ReportGpu();
    std::fprintf(stderr, "%s %s\n", is ? "found" : "none", report.reason.c_str());
    std::_Exit(report.state == (is ? accelerator::GpuReport::State::kReady
                                   : accelerator::GpuReport::State::kOff)
                   ? 0
                   : 1);
  };
  EXPECT_EXIT(found(nullptr, false), testing::ExitedWithCode(0), "none.*SHIRABE_GPU=auto");
  EXPECT_EXIT(found("auto", false), testing::ExitedWithCode(0), "found");
  EXPECT_EXIT(found("0", false), testing::ExitedWithCode(0), "found");
  EXPECT_EXIT(found(nullptr, true), testing::ExitedWithCode(0), "found");
  EXPECT_EXIT(found("off", true), testing::ExitedWithCode(0), "none SHIRABE_GPU=off");
}

TEST(EngineChoice, ASearchWhoseGpuIsGoneIsFittedAgainAndSaysSo) {
  History history = Results(40, 0.22);
  {
    const FakeGpu fake;
    const AcceleratorOverride use(Opened(fake), kSmall);
    history.set_memo(Propose(history).memo);
  }
  EXPECT_THAT(history.memo(), StartsWith(kThere));
  history.Add({0.32, 0.68}, {.state = TrialState::kCompleted, .loss = -0.4});
  const AcceleratorOverride none(nullptr, kSmall);
  const Proposal proposal = Propose(history);
  EXPECT_THAT(proposal.memo, StartsWith(kHere));
  EXPECT_THAT(proposal.suggestions[0].explanation, HasSubstr("fitted again without the GPU"));
  EXPECT_THAT(proposal.notice, HasSubstr("the processor has fitted it again"));
  history.set_memo(proposal.memo);
  EXPECT_EQ(Propose(history).notice, "") << "said once";
}

}  // namespace
}  // namespace shirabe::suggestion
