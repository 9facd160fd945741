#include "experiment/state/checkpoint_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/experiment/reconciler_fixture.h"

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

v1::Checkpoint Copied(int64_t step, v1::CopyState state) {
  v1::Checkpoint checkpoint = At(step);
  checkpoint.set_copy(state);
  return checkpoint;
}

TEST(SelectPrunable, NeitherTheNewestCopyNorTheNextUnderWay) {
  const auto made = v1::COPY_MADE, under_way = v1::COPY_UNDER_WAY;
  const std::vector<v1::Checkpoint> all = {Copied(10, made),      Copied(20, made),
                                           Copied(30, under_way), Copied(40, under_way),
                                           Copied(50, under_way), Copied(60, under_way)};
  EXPECT_THAT(Steps(SelectPrunable(all, Keep(0, 1), {})), ElementsAre(50, 40, 10))
      << "the copy at 20 is all that a lost machine leaves, and 30 is copied next";
}

TEST(SelectPrunable, TheFirstCopyIsAwaitedHoweverFastTheProgramSaves) {
  const std::vector<v1::Checkpoint> all = {Copied(10, v1::COPY_UNDER_WAY),
                                           Copied(20, v1::COPY_UNDER_WAY),
                                           Copied(30, v1::COPY_UNDER_WAY)};
  EXPECT_THAT(Steps(SelectPrunable(all, Keep(0, 1), {})), ElementsAre(20));
}

TEST(SelectPrunable, WhatCouldNotBeCopiedIsNotAwaited) {
  const std::vector<v1::Checkpoint> all = {Copied(10, v1::COPY_FAILED), Copied(20, v1::COPY_FAILED),
                                           Copied(30, v1::COPY_UNDER_WAY)};
  EXPECT_THAT(Steps(SelectPrunable(all, Keep(0, 1), {})), ElementsAre(20, 10));
}

TEST(SelectPrunable, NeverTheLastOne) {
  EXPECT_THAT(SelectPrunable({At(10)}, Keep(0, 0), {}), IsEmpty());
  EXPECT_THAT(SelectPrunable({}, Keep(1, 1), {}), IsEmpty());
}

class CopiedCheckpointsTest : public ReconcilerTest {
 protected:
  CopiedCheckpointsTest() {
    Create("  parallelTrialCount: 1\n  shirabe: {checkpoint: {keep: {best: 0, latest: 1}}}\n");
    Pass();  // makes the trial
  }

  // What is seen of the attempt: its checkpoints, by step.
  void Observe(const std::map<int64_t, v1::CopyState>& copies) {
    trial::AttemptStatus running;
    *running.placement.mutable_start_time() = ToProto(clock_.Now());
    for (const auto& [step, copy] : copies) {
      v1::Checkpoint& save = running.checkpoints.emplace_back(At(step));
      save.set_namespace_(kKey.ns);
      save.set_experiment(kKey.name);
      save.set_trial(1);
      save.set_copy(copy);
    }
    executor_.observed = running;
    clock_.Advance(absl::Seconds(1));
    Pass();
  }
  std::vector<int64_t> Kept() const {
    std::vector<v1::Checkpoint> all;
    const auto rows = store_->ListCheckpoints({kKey, 1});
    for (const auto& row : *rows) all.push_back(row.record);
    return Steps(Candidates(all, 0));
  }
};

TEST_F(CopiedCheckpointsTest, TheCopyStaysUntilThereIsANewerOne) {
  Observe({{1, v1::COPY_MADE}});
  Observe({{1, v1::COPY_MADE}, {2, v1::COPY_UNDER_WAY}});
  Observe({{1, v1::COPY_MADE}, {2, v1::COPY_UNDER_WAY}, {3, v1::COPY_UNDER_WAY}});
  EXPECT_THAT(Kept(), ElementsAre(3, 2, 1));
  Observe({{1, v1::COPY_MADE}, {2, v1::COPY_MADE}, {3, v1::COPY_UNDER_WAY}});
  EXPECT_THAT(Kept(), ElementsAre(3, 2)) << "no new one was saved, and 1 is not needed any more";
}

TEST_F(CopiedCheckpointsTest, WhatWasCopiedStaysSoAfterARestartOfWhatCopies) {
  Observe({{1, v1::COPY_MADE}, {2, v1::COPY_UNDER_WAY}});
  Observe({{1, v1::COPY_NONE}, {2, v1::COPY_NONE}});
  Observe({{1, v1::COPY_UNDER_WAY}, {2, v1::COPY_UNDER_WAY}, {3, v1::COPY_UNDER_WAY}});
  EXPECT_THAT(Kept(), ElementsAre(3, 2, 1));
}

}  // namespace
}  // namespace shirabe::experiment
