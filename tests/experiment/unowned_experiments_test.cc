// What is left on this side of experiments that went to another owner.
#include "experiment/unowned_experiments.h"

#include <gmock/gmock.h>

#include "tests/experiment/reconciler_fixture.h"

namespace shirabe::experiment {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class UnownedTest : public ReconcilerTest {
 protected:
  // Both trials run here, and the second has ended in the store; so has a follow-up of number 2.
  void Lose() {
    Create("  parallelTrialCount: 2\n");
    Pass();
    for (const AttemptKey& key : {First(), Second(), FollowUp()}) {
      ASSERT_TRUE(runs_.Start({.key = key}).ok());
    }
    auto open = *store_->ListAttempts({.experiment = kKey, .open_only = true});
    ASSERT_EQ(open.size(), 2u);
    open[1].record.set_state(v1::ATTEMPT_CLOSED);
    db::Batch batch{.experiment = kKey, .epoch = epoch_};
    batch.attempts.push_back({open[1].record, open[1].revision});
    auto experiment = *store_->GetExperiment(kKey);
    v1::Attempt follow_up;
    follow_up.set_number(1);
    experiment.record.mutable_status()->mutable_shirabe()->mutable_on_success()->set_attempt(
        follow_up.SerializeAsString());
    batch.put = {experiment.record, experiment.revision};
    ASSERT_TRUE(store_->Commit(batch).ok());
    unowned_.AddLost(kKey);
  }
  static AttemptKey First() { return {{kKey, 1}, 1}; }
  static AttemptKey Second() { return {{kKey, 2}, 1}; }
  static AttemptKey FollowUp() { return {{kKey, kFollowUpNumber}, 1}; }

  std::vector<AttemptKey> Running() {
    std::vector<AttemptKey> running;
    for (const trial::AttemptStatus& status : runs_.Observe(kKey)) {
      if (status.state == trial::AttemptStatus::State::kRunning) running.push_back(status.key);
    }
    return running;
  }

  trial::AskAndTellExecutor runs_{&clock_};
  UnownedExperiments unowned_{store_.get()};
};

// Another process of this machine has taken them up, for all that is known.
TEST_F(UnownedTest, WhatIsOpenInTheStoreRunsOn) {
  Lose();
  EXPECT_THAT(unowned_.ClearUp(runs_), IsEmpty());
  EXPECT_THAT(Running(), testing::UnorderedElementsAre(First(), FollowUp()));
  EXPECT_EQ(runs_.Observe(kKey).size(), 3u);
  unowned_.ClearUp(runs_);
  EXPECT_EQ(runs_.Observe(kKey).size(), 2u) << "what has ended is forgotten";
}

TEST_F(UnownedTest, OfWhatWasDeletedNothingRunsOn) {
  Lose();
  ASSERT_TRUE(
      store_->Commit({.experiment = kKey, .epoch = epoch_, .delete_experiment = true}).ok());
  unowned_.ClearUp(runs_);
  EXPECT_THAT(Running(), IsEmpty());
}

TEST_F(UnownedTest, WhatIsOwnedAgainIsItsPasses) {
  Lose();
  unowned_.Remove(kKey);
  unowned_.ClearUp(runs_);
  EXPECT_EQ(Running().size(), 3u);
}

TEST_F(UnownedTest, WhatHasEndedIsReturnedOnce) {
  Lose();
  unowned_.AddReported(kKey);
  EXPECT_THAT(unowned_.ClearUp(runs_), IsEmpty()) << "it goes on";
  auto experiment = *store_->GetExperiment(kKey);
  v1::Condition* ended = experiment.record.mutable_status()->add_conditions();
  ended->set_type("Succeeded");
  ended->set_status("True");
  ASSERT_TRUE(
      store_
          ->Commit({.experiment = kKey,
                    .epoch = epoch_,
                    .put = db::Write<v1::Experiment>{experiment.record, experiment.revision}})
          .ok());
  unowned_.AddReported(kKey);
  EXPECT_THAT(unowned_.ClearUp(runs_), ElementsAre(kKey));
  EXPECT_THAT(unowned_.ClearUp(runs_), IsEmpty());
}

}  // namespace
}  // namespace shirabe::experiment
