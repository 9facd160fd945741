#include "experiment/state/retry_policy.h"

#include <gtest/gtest.h>

#include <set>

namespace shirabe::experiment {
namespace {

struct ExitCase {
  const char* name;
  EndFacts facts;
  v1::Cause without_stop;
  v1::Cause with_suspension;  // we had asked it to stop, to go on later
};

// The matrix of exit codes: what each means alone, and after our own request to stop.
TEST(Classify, ExitCodeMatrix) {
  const ExitCase cases[] = {
      {"0", {.exit_code = 0}, v1::COMPLETED, v1::SUSPENDED},
      {"1", {.exit_code = 1}, v1::APP_ERROR, v1::SUSPENDED},
      {"2", {.exit_code = 2}, v1::APP_ERROR, v1::SUSPENDED},
      {"42", {.exit_code = 42}, v1::APP_ERROR, v1::SUSPENDED},
      {"75", {.exit_code = 75}, v1::YIELDED, v1::SUSPENDED},
      {"126", {.exit_code = 126}, v1::APP_ERROR, v1::SUSPENDED},
      {"127", {.exit_code = 127}, v1::APP_ERROR, v1::SUSPENDED},
      {"134", {.exit_code = 134}, v1::APP_ERROR, v1::SUSPENDED},
      {"137", {.exit_code = 137}, v1::UNKNOWN_CAUSE, v1::SUSPENDED},
      {"139", {.exit_code = 139}, v1::APP_ERROR, v1::SUSPENDED},
      {"143", {.exit_code = 143}, v1::UNKNOWN_CAUSE, v1::SUSPENDED},
      {"255", {.exit_code = 255}, v1::APP_ERROR, v1::SUSPENDED},
      {"SIGSEGV", {.signal = 11}, v1::APP_ERROR, v1::SUSPENDED},
      {"SIGABRT", {.signal = 6}, v1::APP_ERROR, v1::SUSPENDED},
      {"SIGKILL", {.signal = 9}, v1::UNKNOWN_CAUSE, v1::SUSPENDED},
      {"SIGKILL of the kernel", {.signal = 9, .out_of_memory = true}, v1::OOM, v1::SUSPENDED},
      {"SIGTERM", {.signal = 15}, v1::UNKNOWN_CAUSE, v1::SUSPENDED},
      {"lost", {.lost = true}, v1::UNKNOWN_CAUSE, v1::SUSPENDED},
      {"nothing known", {}, v1::UNKNOWN_CAUSE, v1::SUSPENDED},
  };
  v1::Attempt plain, suspended;
  suspended.mutable_stop()->set_cause(v1::SUSPENDED);
  for (const ExitCase& c : cases) {
    EXPECT_EQ(Classify(plain, c.facts), c.without_stop) << c.name;
    EXPECT_EQ(Classify(suspended, c.facts), c.with_suspension) << c.name;
  }
}

// As in Kubernetes: a Job that is too slow has failed for good, a pod like any other failure.
TEST(NextAfterDeadline, OnlyAPodIsTriedAgain) {
  v1::AttemptPolicy policy;
  policy.set_max_failures(1);
  v1::Trial trial;
  const NextStep job = NextAfterDeadline(Deadline::kJob, trial, policy);
  EXPECT_EQ(job.kind, NextStep::Kind::kFinish);
  EXPECT_EQ(job.phase, v1::TRIAL_FAILED);
  EXPECT_EQ(job.reason, "DeadlineExceeded");
  EXPECT_EQ(job.charge, NextStep::Charge::kFailure);
  EXPECT_EQ(NextAfterDeadline(Deadline::kPod, trial, policy).kind, NextStep::Kind::kRetry);
  trial.set_failures(1);
  const NextStep last = NextAfterDeadline(Deadline::kPod, trial, policy);
  EXPECT_EQ(last.kind, NextStep::Kind::kFinish);
  EXPECT_EQ(last.reason, "DeadlineExceeded");
}

// F19: what a program does with a notice does not change what happened to it, unless it has
// finished.
TEST(Classify, AReclaimIsALossWhateverTheExitCode) {
  const std::optional<int> codes[] = {0, 1, 75, 137, 143, std::nullopt};
  for (const auto& code : codes) {
    EndFacts facts{.platform = v1::PREEMPTED_SPOT, .exit_code = code, .signal = code ? 0 : 9};
    EXPECT_EQ(Classify(v1::Attempt(), facts), v1::PREEMPTED_SPOT) << code.value_or(-9);
    facts.done = true;
    EXPECT_EQ(Classify(v1::Attempt(), facts), v1::COMPLETED) << code.value_or(-9);
  }
}

TEST(Classify, OurIntentComesBeforeThePlatforms) {
  v1::Attempt attempt;
  attempt.mutable_stop()->set_cause(v1::EARLY_STOPPED);
  EXPECT_EQ(Classify(attempt, {.platform = v1::PREEMPTED_NODE, .signal = 9}), v1::EARLY_STOPPED);
  EXPECT_EQ(Classify(attempt, {.done = true, .exit_code = 0}), v1::EARLY_STOPPED);
  attempt.mutable_stop()->set_cause(v1::SUSPENDED);
  EXPECT_EQ(Classify(attempt, {.done = true, .exit_code = 0}), v1::COMPLETED);
}

TEST(Classify, ADoneProgramThatFailsHasFailed) {
  EXPECT_EQ(Classify(v1::Attempt(), {.done = true, .exit_code = 1}), v1::APP_ERROR);
  EXPECT_EQ(Classify(v1::Attempt(), {.done = true, .lost = true}), v1::COMPLETED);
  EXPECT_EQ(Classify(v1::Attempt(), {.done = true, .exit_code = kExitYielded}), v1::COMPLETED);
}

using Kind = NextStep::Kind;
using Charge = NextStep::Charge;

TEST(Next, OnlyErrorsOfTheProgramUseTheFailureBudget) {
  v1::AttemptPolicy policy;
  policy.set_max_failures(1);
  policy.set_max_preemptions(2);
  const std::set<v1::Cause> failures = {v1::OOM, v1::APP_ERROR};
  const std::set<v1::Cause> losses = {v1::PREEMPTED_SCHEDULER, v1::PREEMPTED_EVICTION,
                                      v1::PREEMPTED_NODE,      v1::PREEMPTED_SPOT,
                                      v1::INFRASTRUCTURE,      v1::UNKNOWN_CAUSE};
  for (int c = v1::COMPLETED; c <= v1::Cause_MAX; ++c) {
    const auto cause = static_cast<v1::Cause>(c);
    const Charge charge = Next(cause, v1::Trial(), policy).charge;
    EXPECT_EQ(charge == Charge::kFailure, failures.contains(cause)) << CauseWord(cause);
    EXPECT_EQ(charge == Charge::kPreemption, losses.contains(cause)) << CauseWord(cause);
  }
}

TEST(Next, BudgetsAreUsedUpExactly) {
  v1::AttemptPolicy policy;
  policy.set_max_failures(1);
  policy.set_max_preemptions(2);
  v1::Trial trial;
  EXPECT_EQ(Next(v1::APP_ERROR, trial, policy).kind, Kind::kRetry);
  trial.set_failures(1);
  const NextStep failed = Next(v1::APP_ERROR, trial, policy);
  EXPECT_EQ(failed.kind, Kind::kFinish);
  EXPECT_EQ(failed.phase, v1::TRIAL_FAILED);
  trial.set_preemptions(1);
  EXPECT_EQ(Next(v1::PREEMPTED_SPOT, trial, policy).kind, Kind::kRetry);
  trial.set_preemptions(2);
  const NextStep killed = Next(v1::PREEMPTED_SPOT, trial, policy);
  EXPECT_EQ(killed.kind, Kind::kFinish);
  EXPECT_EQ(killed.phase, v1::TRIAL_KILLED) << "a loss to the platform is not a failure";
}

TEST(Next, ByDefaultAnErrorIsFinalAndALossIsNot) {
  EXPECT_EQ(Next(v1::APP_ERROR, v1::Trial(), v1::AttemptPolicy()).kind, Kind::kFinish);
  v1::Trial trial;
  trial.set_preemptions(99);
  EXPECT_EQ(Next(v1::PREEMPTED_NODE, trial, v1::AttemptPolicy()).kind, Kind::kRetry);
  trial.set_preemptions(100);
  EXPECT_EQ(Next(v1::PREEMPTED_NODE, trial, v1::AttemptPolicy()).kind, Kind::kFinish);
}

TEST(Next, PreemptionsRetryAtOnceAndInfrastructureBacksOff) {
  v1::Trial trial;
  trial.set_number(3);
  EXPECT_EQ(Next(v1::PREEMPTED_SPOT, trial, v1::AttemptPolicy()).delay, absl::ZeroDuration());
  absl::Duration last = absl::ZeroDuration();
  for (int losses = 0; losses < 6; ++losses) {
    trial.set_preemptions(losses);
    const absl::Duration delay = Next(v1::INFRASTRUCTURE, trial, v1::AttemptPolicy()).delay;
    EXPECT_GT(delay, last);
    last = delay;
  }
  trial.set_preemptions(90);
  EXPECT_LE(Next(v1::INFRASTRUCTURE, trial, v1::AttemptPolicy()).delay, absl::Minutes(1));
}

// F21: a storm is answered less and less eagerly, and never with a wait of more than a minute.
TEST(Next, FruitlessPreemptionsBackOff) {
  v1::Trial trial;
  absl::Duration last = absl::ZeroDuration();
  for (int fruitless = 1; fruitless <= 8; ++fruitless) {
    trial.set_fruitless(fruitless);
    const absl::Duration delay = Next(v1::PREEMPTED_SPOT, trial, v1::AttemptPolicy()).delay;
    EXPECT_GT(delay, last);
    last = delay;
  }
  trial.set_fruitless(99);
  EXPECT_LE(Next(v1::PREEMPTED_SPOT, trial, v1::AttemptPolicy()).delay, absl::Minutes(1));
}

TEST(Next, EachFruitlessPreemptionDoublesTheWaitAndTheFirstCostsAQuarterSecond) {
  v1::Trial trial;
  trial.set_number(1000);  // whose spread is the least: half
  absl::Duration delay = absl::Milliseconds(125);
  for (int fruitless = 1; fruitless <= 7; ++fruitless, delay *= 2) {
    trial.set_fruitless(fruitless);
    EXPECT_EQ(Next(v1::PREEMPTED_SPOT, trial, v1::AttemptPolicy()).delay, delay) << fruitless;
  }
}

// F21: trials that were lost together do not come back together.
TEST(Next, TrialsOfOneStormAreSpread) {
  std::set<absl::Duration> loss, fruitless;
  v1::Trial trial;
  trial.set_fruitless(3);
  for (int number = 1; number <= 100; ++number) {
    trial.set_number(number);
    loss.insert(Next(v1::INFRASTRUCTURE, trial, v1::AttemptPolicy()).delay);
    fruitless.insert(Next(v1::PREEMPTED_SPOT, trial, v1::AttemptPolicy()).delay);
  }
  for (const auto& delays : {loss, fruitless}) {
    EXPECT_GT(delays.size(), 90u);
    EXPECT_GE(*delays.rbegin(), 1.9 * *delays.begin()) << "from half of the wait to all of it";
  }
}

TEST(WantsOnDemand, AfterSoManyLossesOrWhenStarved) {
  v1::ShirabeSpec spec;
  v1::Trial trial;
  trial.set_preemptions(2);
  EXPECT_FALSE(WantsOnDemand(trial, spec));
  spec.mutable_attempts()->set_on_demand_after(2);
  EXPECT_TRUE(WantsOnDemand(trial, spec));
  spec.Clear();
  trial.set_fruitless(kNoProgressAfter);
  EXPECT_TRUE(WantsOnDemand(trial, spec));
  spec.mutable_capacity()->set_spot(v1::REQUIRED);
  EXPECT_FALSE(WantsOnDemand(trial, spec));
}

TEST(Next, ThreeYieldsInARowAreAnError) {
  v1::Trial trial;
  EXPECT_EQ(Next(v1::YIELDED, trial, v1::AttemptPolicy()).kind, Kind::kRetry);
  trial.set_yields(2);
  const NextStep step = Next(v1::YIELDED, trial, v1::AttemptPolicy());
  EXPECT_EQ(step.phase, v1::TRIAL_FAILED);
  EXPECT_EQ(step.reason, "YieldedWithoutProgress");
}

TEST(CauseWord, IsTheWordOfTheDocumentation) {
  EXPECT_EQ(CauseWord(v1::PREEMPTED_SPOT), "preempted-spot");
  EXPECT_EQ(CauseWord(v1::APP_ERROR), "app-error");
  EXPECT_EQ(CauseWord(v1::UNKNOWN_CAUSE), "unknown");
  EXPECT_EQ(CauseWord(v1::CAUSE_NONE), "");
}

}  // namespace
}  // namespace shirabe::experiment
