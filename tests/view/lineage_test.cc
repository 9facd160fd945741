#include "view/lineage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/stored.h"

namespace shirabe::view {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::Attempt MakeFirstAttempt(int64_t trial) {
  v1::Attempt attempt = MakeClosedAttempt(trial, 1);
  attempt.clear_resumed_from_step();
  attempt.clear_resumed_from_trial();
  attempt.clear_resumed_from_attempt();
  attempt.set_last_step(5210);
  return attempt;
}

// Trial 1 was preempted once, and goes on; trial 2 has started from a checkpoint of trial 1.
class LineageTest : public ::testing::Test {
 protected:
  LineageTest() {
    stored_.Put(MakeTrial(1, v1::TRIAL_RUNNING));
    v1::Trial child = MakeTrial(2, v1::TRIAL_SUCCEEDED, 0.5);
    child.mutable_parent()->set_trial(1);
    child.mutable_parent()->set_step(5200);
    stored_.Put(child);
    v1::Attempt second = MakeClosedAttempt(1, 2);
    second.set_state(v1::ATTEMPT_RUNNING);
    second.set_cause(v1::CAUSE_NONE);
    v1::Attempt of_child = MakeClosedAttempt(2, 1);
    of_child.set_resumed_from_trial(1);
    of_child.set_resumed_from_attempt(1);
    of_child.set_cause(v1::COMPLETED);
    of_child.set_last_step(5250);
    db::Batch batch;
    batch.experiment = stored_.key();
    for (const v1::Attempt& attempt : {MakeFirstAttempt(1), second, of_child}) {
      batch.attempts.push_back({attempt, 0});
    }
    stored_.Commit(batch);
  }

  std::vector<std::string> Lines(bool csv) {
    std::vector<std::string> lines;
    const Status status = EachLineageLine(stored_.client(), stored_.key(), csv,
                                          [&](const std::string& line) { lines.push_back(line); });
    EXPECT_TRUE(status.ok()) << status;
    return lines;
  }

  Stored stored_;
};

TEST_F(LineageTest, EachAttemptSaysWhatItBeganWith) {
  const auto text = DescribeLineage(stored_.client(), stored_.key());
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text,
            "ATTEMPT       PARENT                RESUMED-FROM             LAST-STEP   GAINED   "
            "REDONE   CAUSE\n"
            "digits-1-a1   -                     the beginning            5210        30       "
            "20       preempted-spot\n"
            "digits-1-a2   -                     digits-1-a1, step 5200   0           30       "
            "20       running\n"
            "digits-2-a1   digits-1, step 5200   digits-1-a1, step 5200   5250        30       "
            "20       completed\n");
}

TEST_F(LineageTest, TheSameForOtherPrograms) {
  EXPECT_THAT(Lines(/*csv=*/true),
              ElementsAre("trial,attempt,parent,parent_step,resumed_from,resumed_from_step,"
                          "last_step,steps_gained,steps_redone,cause,seconds,cost,code\n",
                          "digits-1,1,,,,,5210,30,20,preempted-spot,39.5,0.0395,\n",
                          "digits-1,2,,,digits-1-a1,5200,,30,20,running,39.5,0.0395,\n",
                          "digits-2,1,digits-1,5200,digits-1-a1,5200,5250,30,20,completed,39.5,"
                          "0.0395,\n"));
  EXPECT_THAT(Lines(/*csv=*/false)[2],
              HasSubstr(R"("parent":"digits-1","parent_step":5200,"resumed_from":"digits-1-a1")"));
}

TEST_F(LineageTest, AWarmStartIsSaidFirst) {
  v1::ShirabeSpec& spec = *stored_.experiment.mutable_spec()->mutable_shirabe();
  spec.mutable_warm_start()->add_experiments("earlier");
  stored_.experiment.mutable_status()->mutable_shirabe()->set_prior_trials(38);
  stored_.PutExperiment();
  const auto text = DescribeLineage(stored_.client(), stored_.key());
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, testing::StartsWith("The search began with 38 trials of earlier\n"));
}

TEST_F(LineageTest, TheCodePackageIsNamed) {
  v1::CodePackage& code = *stored_.experiment.mutable_spec()->mutable_shirabe()->mutable_code();
  code.set_store("team");
  code.set_package("sha256:0123");
  stored_.PutExperiment();
  const auto text = DescribeLineage(stored_.client(), stored_.key());
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text,
              testing::StartsWith("All attempts run code package sha256:0123 of store team\n"));
  EXPECT_THAT(Lines(/*csv=*/true)[1], testing::EndsWith(",sha256:0123\n"));
  EXPECT_THAT(Lines(/*csv=*/false)[0], HasSubstr(R"("code":"sha256:0123")"));
}

TEST_F(LineageTest, AnExperimentThatIsNotThereHasNone) {
  const ExperimentKey key{.ns = "default", .name = "other"};
  EXPECT_EQ(DescribeLineage(stored_.client(), key).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace shirabe::view
