// Single steps of a pass: what they give, and that nothing changes until it is applied.
#include "experiment/pass_steps.h"

#include "base/timestamp.h"
#include "experiment/state/pass_delta.h"
#include "tests/experiment/reconciler_fixture.h"

namespace shirabe::experiment {
namespace {

class PassStepsTest : public ReconcilerTest {
 protected:
  // The state of a new owner of an experiment with one trial, whose attempt runs.
  void Open() {
    Create("  parallelTrialCount: 1\n");
    Pass();  // makes the trial and starts it
    executor_.observed = Running();
    Pass();
    state_ = ExperimentState::Load(*store_, kKey, epoch_).value();
  }

  trial::AttemptStatus Running() {
    trial::AttemptStatus status;
    status.state = trial::AttemptStatus::State::kRunning;
    *status.placement.mutable_start_time() = ToProto(clock_.Now());
    return status;
  }

  PassInput Input() { return {*state_, options_, mode_, clock_.Now(), clock_.Monotonic()}; }
  const ActiveTrial& Active() const { return state_->active().at(1); }

  ReconcilerOptions options_{
      .store = store_.get(), .executor = &executor_, .clock = &clock_, .working_dir = "/tmp"};
  ReconcileMode mode_;
  std::unique_ptr<ExperimentState> state_;
};

TEST_F(PassStepsTest, NothingChangesUntilADeltaIsApplied) {
  Open();
  const auto observed = Running();
  auto delta = ObserveAttempt(Input(), Active(), &observed);
  ASSERT_TRUE(delta.ok()) << delta.status();
  EXPECT_EQ(Active().memory.phase, AttemptPhase::kRecorded);
  Apply(*std::move(delta), *state_);
  EXPECT_EQ(Active().memory.phase, AttemptPhase::kRunning);
  EXPECT_FALSE(state_->Changed()) << "its record said so already";
}

TEST_F(PassStepsTest, LooksForARunningAttemptThatItsExecutorDoesNotKnow) {
  Open();
  auto delta = ObserveAttempt(Input(), Active(), nullptr);
  ASSERT_TRUE(delta.ok()) << delta.status();
  const Effects effects = Apply(*std::move(delta), *state_);
  ASSERT_EQ(effects.adopt.size(), 1u);
  EXPECT_EQ(effects.adopt[0].number(), 1);
  EXPECT_EQ(effects.requeue_after, absl::ZeroDuration());
}

TEST_F(PassStepsTest, ASecondStopMayOnlyShortenTheFirst) {
  Open();
  Delta asked(*state_, clock_.Now());
  RequestStop({Input(), asked, asked.Edit(Active())}, v1::USER);
  Apply(std::move(asked), *state_);
  EXPECT_EQ(NextAction(Input(), Active()).kind, AttemptAction::Kind::kStop);
  Apply(RecordStop(Input(), Active(), /*at_once=*/false), *state_);
  EXPECT_EQ(NextAction(Input(), Active()).kind, AttemptAction::Kind::kNone);
  mode_.stop_now = true;
  EXPECT_TRUE(NextAction(Input(), Active()).at_once);
  Apply(RecordStop(Input(), Active(), /*at_once=*/true), *state_);
  EXPECT_EQ(NextAction(Input(), Active()).kind, AttemptAction::Kind::kNone);
}

TEST_F(PassStepsTest, AStrayIsCountedOnceAndStoppedEachTime) {
  Open();
  trial::AttemptStatus stray = Running();
  stray.key = {{kKey, 7}, 1};
  for (int i = 0; i < 2; ++i) {
    const Effects effects = Apply(ObserveStray(Input(), stray), *state_);
    EXPECT_EQ(effects.stop_strays.size(), 1u);
  }
  EXPECT_EQ(state_->experiment().status().shirabe().refused_writes(), 1);
}

TEST_F(PassStepsTest, WhatAnAlgorithmSaysOfItselfIsAnEventOnceItsProposalIsTaken) {
  Open();
  ProposalTicket answered;
  answered.count = 1;
  suggestion::Proposal proposal =
      state_->setup().algorithm->Propose(state_->history(), 1, Rng(1)).value();
  proposal.notice = "another engine";
  answered.result = proposal;
  Apply(ApplyProposal(Input(), {.suggest = 0}, answered), *state_);
  EXPECT_TRUE(state_->batch().events.empty())
      << "nothing was taken: it is asked, and says so, again";
  Apply(ApplyProposal(Input(), {.suggest = 1}, answered), *state_);
  ASSERT_EQ(state_->batch().events.size(), 1u);
  EXPECT_EQ(state_->batch().events[0].reason(), "AlgorithmChanged");
  EXPECT_EQ(state_->batch().events[0].message(), "another engine");
  EXPECT_TRUE(state_->batch().events[0].warning());
}

}  // namespace
}  // namespace shirabe::experiment
