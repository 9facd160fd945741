#include "experiment/state/checkpoint_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shirabe::experiment {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

v1::Checkpoint At(int64_t step, int32_t attempt = 1, std::optional<double> objective = {}) {
  v1::Checkpoint checkpoint;
  checkpoint.set_step(step);
  checkpoint.set_attempt(attempt);
  if (objective) checkpoint.set_objective(*objective);
  return checkpoint;
}

std::vector<int64_t> Steps(const std::vector<v1::Checkpoint>& checkpoints) {
  std::vector<int64_t> steps;
  for (const v1::Checkpoint& checkpoint : checkpoints) steps.push_back(checkpoint.step());
  return steps;
}

v1::ExperimentSpec Keep(int best, int latest, v1::ObjectiveType type = v1::MINIMIZE) {
  v1::ExperimentSpec spec;
  spec.mutable_objective()->set_type(type);
  v1::CheckpointKeep& keep = *spec.mutable_shirabe()->mutable_checkpoint()->mutable_keep();
  keep.set_best(best);
  keep.set_latest(latest);
  return spec;
}

TEST(Candidates, TheNewestFirstAndOnlyWhatIsThere) {
  v1::Checkpoint damaged = At(40);
  damaged.set_gone("model.bin has 0 bytes instead of 20");
  const std::vector<v1::Checkpoint> all = {At(10), At(30), damaged, At(20, 2), At(30, 2)};
  const auto candidates = Candidates(all, 0);
  EXPECT_THAT(Steps(candidates), ElementsAre(30, 30, 20, 10));
  EXPECT_EQ(candidates[0].attempt(), 2) << "of one step, the later attempt's";
  EXPECT_THAT(Steps(Candidates(all, 20)), ElementsAre(20, 10)) << "a rung's, not a later one";
}

TEST(SelectPrunable, AllButTheLatestAndTheBest) {
  const std::vector<v1::Checkpoint> all = {At(10, 1, 0.5), At(20, 1, 0.1), At(30, 1, 0.4),
                                           At(40, 1, 0.3)};
  EXPECT_THAT(Steps(SelectPrunable(all, Keep(1, 1), {})), ElementsAre(30, 10));
  EXPECT_THAT(Steps(SelectPrunable(all, Keep(0, 2), {})), ElementsAre(20, 10));
  EXPECT_THAT(Steps(SelectPrunable(all, Keep(1, 1, v1::MAXIMIZE), {})), ElementsAre(30, 20));
  EXPECT_THAT(Steps(SelectPrunable(all, v1::ExperimentSpec(), {})), ElementsAre(30, 10))
      << "best 1 and latest 1 by default";
}

TEST(SelectPrunable, NeverWhatAnotherTrialStartsFrom) {
  const std::vector<v1::Checkpoint> all = {At(10), At(20), At(30)};
  EXPECT_THAT(Steps(SelectPrunable(all, Keep(1, 1), {10})), ElementsAre(20));
}

TEST(SelectPrunable, NeverTheLastOne) {
  EXPECT_THAT(SelectPrunable({At(10)}, Keep(0, 0), {}), IsEmpty());
  EXPECT_THAT(SelectPrunable({}, Keep(1, 1), {}), IsEmpty());
}

}  // namespace
}  // namespace shirabe::experiment
