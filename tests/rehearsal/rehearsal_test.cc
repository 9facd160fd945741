// Verdicts of a rehearsal, over two runs made by hand: ten steps in ten seconds, a checkpoint at
// every second one, and one machine taken away in the middle.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rehearsal/rehearsal.h"
#include "rehearsal/rehearsal_report.h"
#include "tests/support/records.h"

namespace shirabe::rehearsal {
namespace {

using ::testing::HasSubstr;

constexpr int kSteps = 10;

v1::Attempt MakeAttempt(int number, int start, int end) {
  v1::Attempt attempt = MakeClosedAttempt(1, number);
  attempt.set_cause(v1::COMPLETED);
  attempt.clear_signal();
  attempt.set_exit_code(0);
  attempt.set_resumed_from_step(0);
  attempt.set_resumed_from_attempt(0);
  *attempt.mutable_start_time() = ToProto(At(start));
  *attempt.mutable_end_time() = ToProto(At(end));
  attempt.mutable_placements(0)->set_pool("rehearsal-steady");
  return attempt;
}

struct Steps {
  int attempt = 1;
  int first = 1;
  int last = kSteps;
  int64_t begin = 0;  // seconds
};

void AddSteps(const Steps& steps, RehearsalRun& run) {
  const auto& [attempt, first, last, begin] = steps;
  for (int step = first; step <= last; ++step) {
    run.rows.push_back({.trial = 1,
                        .attempt = attempt,
                        .metric = "loss",
                        .step = step,
                        .value = 1.0 / step,
                        .time = At(begin + step - first + 1)});
    if (step % 2 != 0) continue;
    v1::Checkpoint checkpoint = MakeCheckpoint(1, attempt, step);
    *checkpoint.mutable_time() = ToProto(At(begin + step - first + 1));
    run.checkpoints.push_back(checkpoint);
  }
}

// Taken away at 5.5 s of step 6 with 3 s of notice; it saved step 6 and ended a second later.
Rehearsal Good() {
  Rehearsal rehearsal;
  rehearsal.preemptions = {{.pool = "rehearsal-spot-1", .at = 5, .notice = 3}};
  RehearsalRun& whole = rehearsal.baseline;
  whole.trial = MakeTrial(1, v1::TRIAL_SUCCEEDED, 0.1);
  whole.trial.set_last_step(kSteps);
  whole.attempts = {MakeAttempt(1, 0, kSteps)};
  whole.attempts[0].set_last_step(kSteps);
  AddSteps({}, whole);
  whole.save_seconds = {0.5, 0.5, 0.7};
  RehearsalRun& parts = rehearsal.preempted;
  parts.trial = whole.trial;
  parts.attempts = {MakeAttempt(1, 0, 6), MakeAttempt(2, 7, 11)};
  parts.attempts[0].set_cause(v1::PREEMPTED_SPOT);
  parts.attempts[0].set_exit_code(75);
  parts.attempts[0].mutable_placements(0)->set_pool("rehearsal-spot-1");
  parts.attempts[0].set_last_step(6);
  parts.attempts[1].set_resumed_from_step(6);
  AddSteps({.last = 6}, parts);
  AddSteps({.attempt = 2, .first = 7, .begin = 7}, parts);
  return rehearsal;
}

RehearsalCheck CheckOf(const RehearsalReport& report, const std::string& name) {
  for (const RehearsalCheck& check : report.checks) {
    if (check.name == name) return check;
  }
  ADD_FAILURE() << "no check " << name;
  return {};
}

TEST(RehearsalTest, AProgramThatSavesAndResumesIsSafe) {
  const RehearsalReport report = Judge(Good(), {});
  EXPECT_TRUE(report.safe) << ReportText(report);
  for (const RehearsalCheck& check : report.checks) {
    EXPECT_EQ(check.verdict, Verdict::kOk) << check.name << ": " << check.message;
    EXPECT_EQ(check.fix, "");
  }
  ASSERT_EQ(report.lost.size(), 1u);
  EXPECT_EQ(report.lost[0].exit, "exit 75");
  EXPECT_DOUBLE_EQ(report.lost[0].stopped_after, 1);
  EXPECT_DOUBLE_EQ(report.lost[0].lost_seconds, 0) << "it saved with its last breath";
  EXPECT_DOUBLE_EQ(report.lost[0].again_seconds, 2);
  EXPECT_EQ(report.lost[0].newest_step, 6);
  EXPECT_EQ(report.lost[0].first_step, 7);
  EXPECT_EQ(report.checkpoints, 5);
  EXPECT_EQ(report.checkpoint_bytes, 1536);
  EXPECT_DOUBLE_EQ(*report.checkpoint_seconds, 0.5);
  EXPECT_DOUBLE_EQ(*report.interval_seconds, 2);
  EXPECT_THAT(ReportText(report), HasSubstr("\nsafe: it may run"));
}

TEST(RehearsalTest, OneThatIgnoresSigtermAndNeverSavesFailsWithBothReasons) {
  Rehearsal rehearsal = Good();
  for (RehearsalRun* run : {&rehearsal.baseline, &rehearsal.preempted}) {
    run->checkpoints.clear();
    run->save_seconds.clear();
  }
  v1::Attempt& lost = rehearsal.preempted.attempts[0];
  lost.clear_exit_code();
  lost.set_signal(9);
  rehearsal.preempted.attempts[1].set_resumed_from_step(0);
  const RehearsalReport report = Judge(rehearsal, {});
  EXPECT_FALSE(report.safe);
  EXPECT_THAT(CheckOf(report, "saves").message, HasSubstr("it never saves"));
  EXPECT_THAT(CheckOf(report, "saves").fix, HasSubstr("SHIRABE_CHECKPOINT_DIR"));
  EXPECT_THAT(CheckOf(report, "stops").message, HasSubstr("it ignores SIGTERM"));
  EXPECT_THAT(CheckOf(report, "stops").fix, HasSubstr("exit with 75"));
  EXPECT_THAT(ReportText(report), HasSubstr("\nnot safe: 3 of 6 checks failed"));
}

TEST(RehearsalTest, RunningOnToItsEndWithinALongNoticeIsIgnoringIt) {
  Rehearsal rehearsal = Good();
  v1::Attempt& lost = rehearsal.preempted.attempts[0];
  lost.set_exit_code(0);
  EXPECT_TRUE(Judge(rehearsal, {}).safe) << "0 after saving is as good as 75";
  lost.set_last_step(kSteps);
  EXPECT_EQ(CheckOf(Judge(rehearsal, {}), "stops").verdict, Verdict::kFailed);
}

TEST(RehearsalTest, WithoutNoticeNobodyCanStopInTime) {
  Rehearsal rehearsal = Good();
  rehearsal.preemptions[0].notice = 0;
  rehearsal.preempted.attempts[0].clear_exit_code();
  rehearsal.preempted.attempts[0].set_signal(9);
  const RehearsalReport report = Judge(rehearsal, {});
  EXPECT_TRUE(report.safe);
  EXPECT_EQ(CheckOf(report, "stops").verdict, Verdict::kWarning) << "it was not tried";
}

TEST(RehearsalTest, OneThatBeginsAgainInSpiteOfItsCheckpointIsToldWhereItLies) {
  Rehearsal rehearsal = Good();
  for (db::StoredObservation& row : rehearsal.preempted.rows) {
    if (row.attempt == 2) row.step -= 6;
  }
  const RehearsalCheck check = CheckOf(Judge(rehearsal, {}), "resumes");
  EXPECT_EQ(check.verdict, Verdict::kFailed);
  EXPECT_THAT(check.message, HasSubstr("began again at step 1"));
  EXPECT_THAT(check.fix, HasSubstr("SHIRABE_RESUME_FROM"));
}

TEST(RehearsalTest, TheNewestCheckpointIsTheRightOne) {
  Rehearsal rehearsal = Good();
  rehearsal.preempted.attempts[1].set_resumed_from_step(4);
  const RehearsalCheck check = CheckOf(Judge(rehearsal, {}), "resumes");
  EXPECT_EQ(check.verdict, Verdict::kFailed);
  EXPECT_THAT(check.message, HasSubstr("started from step 4, and step 6 was saved"));
}

TEST(RehearsalTest, NumbersThatDifferAfterTheLossPointToStateThatWasNotSaved) {
  Rehearsal rehearsal = Good();
  rehearsal.preempted.rows.back().value *= 1.01;
  const RehearsalCheck check = CheckOf(Judge(rehearsal, {}), "continuous");
  EXPECT_EQ(check.verdict, Verdict::kFailed);
  EXPECT_THAT(check.message, HasSubstr("most loss at step 10: 0.101 instead of 0.1"));
  EXPECT_THAT(check.fix, HasSubstr("optimiser"));
  EXPECT_EQ(CheckOf(Judge(rehearsal, {.tolerance = 0.02}), "continuous").verdict, Verdict::kOk);
}

TEST(RehearsalTest, NumbersThatAlwaysDifferPointToTheSeed) {
  Rehearsal rehearsal = Good();
  for (db::StoredObservation& row : rehearsal.preempted.rows) row.value *= 1.01;
  const RehearsalReport report = Judge(rehearsal, {});
  const RehearsalCheck check = CheckOf(report, "continuous");
  EXPECT_EQ(check.verdict, Verdict::kWarning);
  EXPECT_THAT(check.fix, HasSubstr("SHIRABE_SEED"));
  EXPECT_TRUE(report.safe);
}

TEST(RehearsalTest, ValuesThatAreMissingFail) {
  Rehearsal rehearsal = Good();
  rehearsal.preempted.rows.pop_back();
  const RehearsalCheck check = CheckOf(Judge(rehearsal, {}), "continuous");
  EXPECT_EQ(check.verdict, Verdict::kFailed);
  EXPECT_THAT(check.message, HasSubstr("1 are missing"));
}

TEST(RehearsalTest, SupersededValuesDoNotCount) {
  Rehearsal rehearsal = Good();
  db::StoredObservation row = rehearsal.preempted.rows[6];
  row.attempt = 1;
  row.value = 99;
  row.superseded = true;
  rehearsal.preempted.rows.push_back(row);
  EXPECT_EQ(Judge(rehearsal, {}).continuity.different, 0);
}

TEST(RehearsalTest, ARehearsalWithoutAnyLossSaysNothing) {
  Rehearsal rehearsal = Good();
  rehearsal.preempted.attempts[0].set_cause(v1::COMPLETED);
  const RehearsalReport report = Judge(rehearsal, {});
  EXPECT_FALSE(report.safe);
  EXPECT_EQ(CheckOf(report, "finishes").verdict, Verdict::kFailed);
}

TEST(RehearsalTest, ATrialThatIsLostFails) {
  Rehearsal rehearsal = Good();
  rehearsal.preempted.trial.set_phase(v1::TRIAL_FAILED);
  rehearsal.preempted.trial.set_reason("TrialFailed");
  EXPECT_EQ(CheckOf(Judge(rehearsal, {}), "finishes").verdict, Verdict::kFailed);
}

TEST(RehearsalTest, SavingMuchTooSeldomIsAWarning) {
  Rehearsal rehearsal = Good();
  rehearsal.baseline.save_seconds = {0.0001};
  const RehearsalCheck check = CheckOf(Judge(rehearsal, {.reclaims_per_hour = 360}), "interval");
  EXPECT_EQ(check.verdict, Verdict::kWarning);
  EXPECT_THAT(check.message, HasSubstr("now it is every 2 s"));
}

TEST(RehearsalTest, TheReportIsOneObjectForScripts) {
  const view::Json tree = ReportJson(Judge(Good(), {}));
  EXPECT_EQ(tree["kind"], "Rehearsal");
  EXPECT_EQ(tree["safe"], true);
  EXPECT_EQ(tree["lostAttempts"][0]["resumedFromStep"], 6);
  EXPECT_EQ(tree["checks"].size(), 6u);
  EXPECT_EQ(tree["checks"][0]["verdict"], "ok");
  EXPECT_FALSE(tree["checks"][0].contains("fix"));
}

TEST(RehearsalTest, MachinesAreTakenAwayWhileThereIsWork) {
  RehearsalOptions options{.reclaims = 3, .notice = 2};
  const auto preemptions = PlanPreemptions(options, {.startup = 1, .restart = 0.5, .whole = 11});
  ASSERT_EQ(preemptions.size(), 3u);
  EXPECT_EQ(preemptions[0].notice, 0);
  EXPECT_EQ(preemptions[1].notice, 2);
  for (size_t i = 0; i < preemptions.size(); ++i) {
    const double work = preemptions[i].at - 1 - 0.5 * static_cast<double>(i);
    EXPECT_GE(work, 2 + 2 * static_cast<double>(i)) << i;
    EXPECT_LE(work, 4 + 2 * static_cast<double>(i)) << i;
  }
  options.seed = 1;
  EXPECT_NE(PlanPreemptions(options, {.startup = 1, .whole = 11})[0].at, preemptions[0].at);
}

TEST(CheckpointIntervalTest, YoungAndDaly) {
  EXPECT_DOUBLE_EQ(YoungInterval(2, 3600), 120);
  // Daly's correction is small where a checkpoint is cheap beside the time between failures.
  EXPECT_NEAR(DalyInterval(2, 3600), 120 * (1 + 1.0 / 180 + 1.0 / 32400) - 2, 1e-9);
  EXPECT_DOUBLE_EQ(DalyInterval(100, 40), 40) << "saving costs more than it can save";
  EXPECT_EQ(DalyInterval(0, 3600), 0);
  // It is where both kinds of waste weigh the same.
  EXPECT_NEAR(ExpectedOverhead(120, 2, 3600), 2 * 2.0 / 120, 1e-12);
}

}  // namespace
}  // namespace shirabe::rehearsal
