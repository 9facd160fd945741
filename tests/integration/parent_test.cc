// A trial that starts from another trial's checkpoint, as a rung promotion or a population does:
// with real programs, and an algorithm of the test's own that proposes it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/file_io.h"
#include "base/registry.h"
#include "suggestion/algorithm.h"
#include "tests/integration/small_experiment.h"
#include "tests/support/eventually.h"

namespace shirabe::suggestion {
namespace {

// One trial, then others that each go on from the first.
class Relay : public Algorithm {
 public:
  StatusOr<Proposal> Propose(const History& history, int, const Rng&) override {
    Proposal proposal;
    if (history.size() == 0) {
      proposal.suggestions.push_back({.point = {0.5}});
    } else if (history.trial(0).state == TrialState::kActive) {
      proposal.outcome = Proposal::Outcome::kWait;
      proposal.reason = "the first trial is not done";
    } else {
      v1::Parent parent;
      parent.set_trial(1);
      parent.set_step(2);
      const double x = 1.0 / static_cast<double>(2 + history.size());
      proposal.suggestions.push_back({.point = {x}, .parent = parent});
    }
    return proposal;
  }
};

StatusOr<std::unique_ptr<Algorithm>> Create(const Problem&) { return std::make_unique<Relay>(); }

SHIRABE_REGISTER(AlgorithmInfo, {.name = "test-relay",
                                 .help = "Goes on from the first trial's checkpoint",
                                 .create = Create});

}  // namespace
}  // namespace shirabe::suggestion

namespace shirabe::experiment {
namespace {

using testing::HasSubstr;

TEST(Parent, AChildGoesOnFromItsParentsCheckpoint) {
  // The first trial makes two steps, the others go on to four.
  const std::string home = MakeHome({.trials = 3,
                                     .parallel = 1,
                                     .first_line = "[ $SHIRABE_TRIAL = small-1 ] && LAST=2",
                                     .algorithm = "test-relay"});
  const Status status = RunSmall(home, {});
  ASSERT_TRUE(status.ok()) << status;
  const auto starts = ReadFile(home + "/marks/starts");
  EXPECT_EQ(*starts, "small-1-a1 from 0\nsmall-2-a1 from 2\nsmall-3-a1 from 2\n");
  const auto store = OpenHome(home);
  for (const int64_t child : {2, 3}) {
    const auto attempts = store->ListAttempts({.experiment = kSmall, .trial = child});
    ASSERT_EQ(attempts->size(), 1u);
    const v1::Attempt& attempt = (*attempts)[0].record;
    EXPECT_EQ(attempt.cause(), v1::COMPLETED);
    EXPECT_EQ(attempt.resumed_from_trial(), 1);
    EXPECT_EQ(attempt.resumed_from_step(), 2);
    EXPECT_EQ(attempt.steps_gained(), 2) << "what the parent did is not the child's";
    const auto rows = store->ListObservations({.trial = {kSmall, child}});
    ASSERT_EQ(rows->size(), 2u);
    EXPECT_EQ((*rows)[0].step, 3);
  }
  // What a child may start from was kept, and its own saves are none of the parent's.
  bool kept = false;
  const auto checkpoints = store->ListCheckpoints({kSmall, 1});
  for (const auto& [checkpoint, revision] : *checkpoints) {
    if (checkpoint.step() == 2) kept = checkpoint.gone().empty();
    EXPECT_LE(checkpoint.step(), 2);
  }
  EXPECT_TRUE(kept);
  EXPECT_TRUE(RemoveFolder(home));
}

TEST(Parent, AChildWhoseParentLeftNothingBeginsAnewAndSaysSo) {
  const std::string home = MakeHome({.trials = 2,
                                     .parallel = 1,
                                     .first_line = "[ $SHIRABE_TRIAL = small-1 ] && LAST=1",
                                     .algorithm = "test-relay"});
  // Only step 1 stands; once it is committed, one byte of it changes.
  const std::string saved = home + "/trials/default/small/small-1/small-1-a1/checkpoints/1/";
  const Status status = RunSmall(home, {.at_step = [&] {
                                   const bool committed =
                                       std::filesystem::exists(saved + ".shirabe-manifest.json");
                                   if (!committed) return;
                                   EXPECT_TRUE(WriteFileAtomic(saved + "step", "9\n").ok());
                                 }});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(*ReadFile(home + "/marks/starts"), HasSubstr("small-2-a1 from 0\n"));
  std::string events;
  const auto store = OpenHome(home);
  const auto list = store->ListEvents({.experiment = kSmall});
  for (const v1::Event& event : *list) events += event.reason() + ": " + event.message() + "\n";
  EXPECT_THAT(events, HasSubstr("TrialRestarted"));
  EXPECT_TRUE(RemoveFolder(home));
}

}  // namespace
}  // namespace shirabe::experiment
