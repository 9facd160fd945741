// Each early-stopping rule on curves whose right answer can be worked out by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/suggestion/stopper_trials.h"

namespace shirabe::suggestion {
namespace {

using ::testing::HasSubstr;

constexpr double kStoppersNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kStoppersInfinity = std::numeric_limits<double>::infinity();

// ---- medianstop --------------------------------------------------------------------------------

TEST(MedianStop, ComparesTheBestWithTheMedianOfRunningAverages) {
  Trials trials;
  trials.Ended({9, 9, 9, 4, 3, 2, 1, 0});  // running average from report 4 to step 7: 2.5
  trials.Ended({9, 9, 9, 8, 8, 8, 8});     // 8
  trials.Ended({9, 9, 9, 2, 2, 2, 2});     // 2
  trials.Active({9, 9, 9, 9, 9, 2.6, 9});
  EXPECT_EQ(trials.Ask("medianstop"), "at step 7 best 2.6 > median 2.5 of 3 trials");
  EXPECT_EQ(trials.Ask("medianstop", {{"start_step", "1"}}), "") << "9 counts in every average";
  trials.curves.back() = CurveOf({{4, 9}, {5, 9}, {6, 2.5}, {7, 9}});
  EXPECT_EQ(trials.Ask("medianstop"), "") << "as good as the median is good enough";
}

TEST(MedianStop, AveragesAllReportsOfACurveWithFewerThanStartStep) {
  Trials trials;
  for (int i = 0; i < 3; ++i) {
    trials.Ended({});
    trials.curves.back() = CurveOf({{1, 3}, {10, 1}});
  }
  trials.Active(Losses(10, 2.1));
  EXPECT_EQ(trials.Ask("medianstop"), "at step 10 best 2.1 > median 2 of 3 trials");
}

// One that is like the others once its first reports are over must not fall behind by rounding.
TEST(MedianStop, AnAverageIsNeverBelowTheBest) {
  for (const double loss : {0.1, 1.0 / 3, 0.7, 1e-300, 1e300}) {
    Losses curve(1000, loss);
    std::fill(curve.begin(), curve.begin() + 3, 3 * loss);
    Trials trials;
    for (int i = 0; i < 4; ++i) trials.Ended(curve);
    trials.Active(curve);
    EXPECT_EQ(trials.Ask("medianstop"), "") << loss;
  }
}

// Katib's program takes the mean of the averages: one very bad trial makes it let everything pass.
TEST(MedianStop, IsAMedianAndNoMean) {
  Trials trials;
  for (const double loss : {1.0, 2.0, 1000.0}) trials.Ended(Losses(4, loss));
  trials.Active(Losses(4, 3));
  EXPECT_THAT(trials.Ask("medianstop"), HasSubstr("median 2 of 3"));
}

TEST(MedianStop, OfAnEvenNumberIsTheMiddleOfTwo) {
  Trials trials;
  for (const double loss : {1.0, 2.0, 4.0, 9.0}) trials.Ended(Losses(4, loss));
  trials.Active(Losses(4, 3.1));
  EXPECT_THAT(trials.Ask("medianstop"), HasSubstr("best 3.1 > median 3 of 4"));
}

TEST(MedianStop, ComparesAtEqualStepsOnly) {
  Trials trials;
  const Settings all = {{"start_step", "1"}};
  for (int i = 0; i < 3; ++i) trials.Ended({9, 1, 1, 1, 1});
  trials.Ended({0, 0});  // ended before step 4: says nothing about it
  trials.Active({9, 9, 9, 2});
  EXPECT_EQ(trials.Ask("medianstop", all), "") << "the others had 3 on average at step 4, not 2.6";
  trials.curves.back() = CurveOf({{1, 9}, {2, 9}, {3, 9}, {4, 3.1}});
  EXPECT_EQ(trials.Ask("medianstop", all), "at step 4 best 3.1 > median 3 of 3 trials");
}

TEST(MedianStop, WaitsForReportsAndForTrials) {
  Trials trials;
  trials.Ended(Losses(9, 1));
  trials.Ended(Losses(9, 1));
  trials.Active(Losses(9, 5));
  EXPECT_EQ(trials.Ask("medianstop"), "") << "two trials are fewer than three";
  EXPECT_NE(trials.Ask("medianstop", {{"min_trials_required", "2"}}), "");
  EXPECT_EQ(trials.Ask("medianstop", {{"min_trials_required", "2"}, {"start_step", "10"}}), "");
  EXPECT_NE(trials.Ask("medianstop", {{"min_trials_required", "2"}, {"start_step", "9"}}), "");
}

TEST(MedianStop, CountsStoppedTrialsAsFarAsTheyGotAndFailedOnesNever) {
  Trials trials;
  trials.Ended(Losses(9, 1));
  trials.Ended(Losses(4, 1), /*early=*/true);
  trials.Infeasible(Losses(9, 1));
  trials.Active(Losses(4, 5));
  const Settings two = {{"min_trials_required", "2"}};
  EXPECT_THAT(trials.Ask("medianstop", two), HasSubstr("of 2 trials"));
  trials.curves.back().Append(5, 5);
  EXPECT_EQ(trials.Ask("medianstop", two), "");
}

TEST(MedianStop, ComparesWithThoseThatRunOnceEnoughHaveEnded) {
  Trials trials;
  trials.Ended(Losses(4, 9));
  trials.Add(Losses(4, 1), {});
  trials.Add(Losses(4, 1), {});
  trials.Add(Losses(3, 0), {});  // has not come so far
  trials.Active(Losses(4, 5));
  EXPECT_EQ(trials.Ask("medianstop"), "") << "one has ended, and three are required";
  EXPECT_EQ(trials.Ask("medianstop", {{"min_trials_required", "1"}}),
            "at step 4 best 5 > median 1 of 3 trials");
}

TEST(MedianStop, SpeaksInTheMetricsOwnValues) {
  Trials trials;  // accuracies, as losses
  for (int i = 0; i < 3; ++i) trials.Ended(Losses(4, -0.9));
  trials.Active(Losses(4, -0.61));
  EXPECT_EQ(trials.Ask("medianstop", {}, /*maximize=*/true),
            "at step 4 best 0.61 < median 0.9 of 3 trials");
}

TEST(MedianStop, NotANumberIsTheWorst) {
  Trials trials;
  for (int i = 0; i < 3; ++i) trials.Ended(Losses(4, 1));
  trials.Active(Losses(4, kStoppersNan));
  EXPECT_EQ(trials.Ask("medianstop"), "at step 4 best no finite value > median 1 of 3 trials");
  Trials diverged;
  for (int i = 0; i < 3; ++i) diverged.Ended({1, 1, kStoppersNan, kStoppersInfinity});
  diverged.Active(Losses(4, 5));
  EXPECT_EQ(diverged.Ask("medianstop"), "") << "a median that is not a number stops nobody";
}

// Rounding must not make one of two equal trials the worse one.
TEST(MedianStop, NeverStopsATrialThatIsLikeTheOthers) {
  for (const double loss : {0.1, 1.0 / 3, 0.7, 1e-300, 1e300}) {
    Trials trials;
    for (int i = 0; i < 4; ++i) trials.Ended(Losses(1000, loss));
    trials.Active(Losses(1000, loss));
    EXPECT_EQ(trials.Ask("medianstop"), "") << loss;
    EXPECT_EQ(trials.Ask("percentile"), "") << loss;
  }
}

TEST(MedianStop, TakesHugeLosses) {
  Trials trials;
  for (int i = 0; i < 4; ++i) trials.Ended(Losses(4, i < 2 ? 1e308 : 1.5e308));
  trials.Active(Losses(4, 1.7e308));
  EXPECT_THAT(trials.Ask("medianstop"), HasSubstr("median 1.25e+308"));
}

// ---- percentile --------------------------------------------------------------------------------

TEST(Percentile, KeepsThatManyPercent) {
  Trials trials;
  for (const double loss : {1.0, 2.0, 3.0, 4.0, 5.0}) trials.Ended({9, 9, 9, loss});
  trials.Active({9, 9, 9, 4});
  EXPECT_EQ(trials.Ask("percentile"), "") << "4 is the 75 % quantile of 1 … 5";
  EXPECT_EQ(trials.Ask("percentile", {{"percentile", "50"}}),
            "at step 4 best 4 > 3, the limit of the best 50 % of 5 trials");
  EXPECT_THAT(trials.Ask("percentile", {{"percentile", "60"}}), HasSubstr("> 3.4,"));
  EXPECT_EQ(trials.Ask("percentile", {{"percentile", "100"}}), "");
  EXPECT_THAT(trials.Ask("percentile", {{"percentile", "0"}}), HasSubstr("> 1,"));
}

TEST(Percentile, OfTrialsThatDivergedLetsTheRestPass) {
  Trials trials;
  for (int i = 0; i < 3; ++i) trials.Ended(Losses(4, 1));
  for (int i = 0; i < 3; ++i) trials.Ended(Losses(4, kStoppersInfinity));
  trials.Active(Losses(4, 1e300));
  EXPECT_EQ(trials.Ask("percentile"), "");
  EXPECT_THAT(trials.Ask("percentile", {{"percentile", "40"}}), HasSubstr("> 1,"));
}

// ---- asha-stop ---------------------------------------------------------------------------------

TEST(AshaStop, LetsTheBestThirdPassEachRung) {
  Trials trials;
  trials.Active({5});
  EXPECT_EQ(trials.Ask("asha-stop"), "") << "nobody else has been there";
  trials.Active({6});
  EXPECT_EQ(trials.Ask("asha-stop"), "") << "two cannot say which the best third is";
  trials.Active({7});
  EXPECT_EQ(trials.Ask("asha-stop"), "at step 1 best 7 up to step 1 is number 3 of 3, and 1 go on");
  trials.Active({4});
  EXPECT_EQ(trials.Ask("asha-stop"), "");
}

TEST(AshaStop, TheFirstOfTheRestIsStopped) {
  Trials trials;
  for (const double loss : {1.0, 9.0, 8.0, 2.0, 7.0}) trials.Active({loss});
  trials.Active({2.5});  // number 3 of 6, of whom 2 go on
  EXPECT_THAT(trials.Ask("asha-stop"), HasSubstr("is number 3 of 6, and 2 go on"));
  trials.curves.back() = CurveOf({{1, 2}});
  EXPECT_EQ(trials.Ask("asha-stop"), "") << "as good as the last that goes on";
}

TEST(AshaStop, JudgesAtTheHighestRungReached) {
  Trials trials;
  trials.Ended(Losses(9, 1));
  trials.Ended({2, 2, 5});
  trials.Active({3, 3, 3, 0});  // at step 3 its best is number 3: the 0 came after the rung
  EXPECT_THAT(trials.Ask("asha-stop"), HasSubstr("at step 4 best 3 up to step 3 is number 3 of 3"));
  trials.curves.back() = CurveOf({{1, 3}, {2, 0.5}, {3, 3}, {4, 9}});
  EXPECT_EQ(trials.Ask("asha-stop"), "");
}

TEST(AshaStop, RungsAreIntegersAndSettingsMoveThem) {
  Trials trials;
  for (int i = 0; i < 4; ++i) trials.Ended(Losses(100, 1));
  trials.Active(Losses(99, 2));
  EXPECT_THAT(trials.Ask("asha-stop"), HasSubstr("up to step 81 "));
  EXPECT_THAT(trials.Ask("asha-stop", {{"eta", "4"}}), HasSubstr("up to step 64 "));
  EXPECT_THAT(trials.Ask("asha-stop", {{"min_resource", "33"}}), HasSubstr("up to step 99 "));
  EXPECT_EQ(trials.Ask("asha-stop", {{"min_resource", "100"}}), "");
  EXPECT_EQ(trials.Ask("asha-stop", {{"min_resource", "9000000000000000000"}}), "");
}

TEST(AshaStop, EqualTrialsGoOnTogether) {
  Trials trials;
  for (int i = 0; i < 9; ++i) trials.Active({1});
  EXPECT_EQ(trials.Ask("asha-stop"), "");
}

// Rungs below the step that it went on from are not its own.
TEST(AshaStop, LeavesATrialAloneThatStartedPastTheRung) {
  Trials trials;
  for (int i = 0; i < 5; ++i) trials.Ended(Losses(30, 1));
  trials.Add({2, 2}, {.parent = 1}, /*first=*/28);
  EXPECT_EQ(trials.Ask("asha-stop"), "");
}

// ---- threshold ---------------------------------------------------------------------------------

TEST(Threshold, StopsOutsideOfItsBounds) {
  Trials trials;
  trials.Active({3, 11});
  EXPECT_EQ(trials.Ask("threshold"), "");
  EXPECT_EQ(trials.Ask("threshold", {{"upper", "10"}}), "at step 2 11 > upper bound 10");
  EXPECT_EQ(trials.Ask("threshold", {{"upper", "10"}, {"start_step", "3"}}), "");
  EXPECT_EQ(trials.Ask("threshold", {{"lower", "12"}}), "at step 1 3 < lower bound 12");
}

TEST(Threshold, BoundsAreOfTheMetric) {
  Trials trials;
  trials.Active({-0.2});
  EXPECT_EQ(trials.Ask("threshold", {{"lower", "0.3"}}, /*maximize=*/true),
            "at step 1 0.2 < lower bound 0.3");
}

StoppedValue ValueOfStopped(const std::string& rule, const StopProblem& problem, double value) {
  const auto* info = Registry<StopperInfo>::Get().Find(rule);
  return info->value_of_stopped == nullptr ? StoppedValue::kResult
                                           : info->value_of_stopped(problem, value);
}

TEST(Threshold, AValueThatIsTooGoodIsNone) {
  const StopProblem accuracy{.settings = {{"lower", "0"}, {"upper", "1"}}, .maximize = true};
  EXPECT_EQ(ValueOfStopped("threshold", accuracy, 7), StoppedValue::kNone);
  EXPECT_EQ(ValueOfStopped("threshold", accuracy, 1), StoppedValue::kResult);
  EXPECT_EQ(ValueOfStopped("threshold", accuracy, -7), StoppedValue::kResult) << "bad, no more";
  const StopProblem loss{.settings = {{"lower", "0"}, {"upper", "1"}}};
  EXPECT_EQ(ValueOfStopped("threshold", loss, -50), StoppedValue::kNone);
  EXPECT_EQ(ValueOfStopped("threshold", loss, 50), StoppedValue::kResult);
  EXPECT_EQ(ValueOfStopped("threshold", {}, -50), StoppedValue::kResult) << "without bounds";
}

TEST(Wilcoxon, AStoppedTrialHasAPartOfAValueAndOthersAWholeOne) {
  for (const std::string& rule : Registry<StopperInfo>::Get().Names()) {
    EXPECT_EQ(ValueOfStopped(rule, {}, 0.5),
              rule == "wilcoxon" ? StoppedValue::kPartial : StoppedValue::kResult)
        << rule;
  }
}

TEST(Threshold, StopsWhatIsNoNumber) {
  Trials trials;
  trials.Active({1, kStoppersNan});
  EXPECT_EQ(trials.Ask("threshold"), "at step 2 the last 1 report was not finite");
  EXPECT_EQ(trials.Ask("threshold", {{"nan_reports", "0"}}), "");
  EXPECT_EQ(trials.Ask("threshold", {{"nan_reports", "2"}}), "");
  trials.curves.back().Append(3, -kStoppersInfinity);
  EXPECT_EQ(trials.Ask("threshold", {{"nan_reports", "2"}}),
            "at step 3 the last 2 reports were not finite");
  EXPECT_EQ(trials.Ask("threshold", {{"nan_reports", "3"}}), "");
}

// A fast program reports many values between two questions.
TEST(Threshold, LooksAtEachValueThatCame) {
  Trials trials;
  trials.Active({3, 11, 3, kStoppersNan, kStoppersNan, 3});
  EXPECT_EQ(trials.Ask("threshold", {{"upper", "10"}}), "at step 2 11 > upper bound 10");
  EXPECT_EQ(trials.Ask("threshold", {{"upper", "10"}, {"start_step", "3"}, {"nan_reports", "0"}}),
            "")
      << "what came before start_step is not judged";
  EXPECT_EQ(trials.Ask("threshold", {{"nan_reports", "2"}}),
            "at step 5 the last 2 reports were not finite");
  EXPECT_EQ(trials.Ask("threshold", {{"nan_reports", "3"}}), "");
  EXPECT_THAT(trials.Ask("threshold", {{"divergence", "2"}, {"nan_reports", "0"}}),
              HasSubstr("at step 2 diverging"));
}

TEST(Threshold, DivergenceIsMeasuredByTheGain) {
  Trials trials;
  trials.Active({10, 2, 60});  // it had gained 8
  EXPECT_EQ(trials.Ask("threshold"), "");
  EXPECT_THAT(trials.Ask("threshold", {{"divergence", "5"}}),
              HasSubstr("at step 3 diverging: 60 after best 2"));
  EXPECT_EQ(trials.Ask("threshold", {{"divergence", "8"}}), "");
  Trials flat;
  flat.Active({100, 99.9, 101});  // a gain of 0.1 is noise where losses are about 100
  EXPECT_EQ(flat.Ask("threshold", {{"divergence", "1"}}), "");
}

TEST(Threshold, BoundsInTheWrongOrderAreRefused) {
  const auto stopper = CreateStopper("threshold", {.settings = {{"lower", "2"}, {"upper", "1"}}});
  ASSERT_TRUE(absl::IsInvalidArgument(stopper.status()));
  EXPECT_THAT(Message(stopper.status()), HasSubstr("\"lower\" is 2"));
}

// ---- patience ----------------------------------------------------------------------------------

TEST(Patience, StopsAfterSoManyReportsWithoutAGain) {
  Trials trials;
  trials.Active({5, 4, 4, 4});
  EXPECT_EQ(trials.Ask("patience", {{"patience", "3"}}), "");
  EXPECT_EQ(trials.Ask("patience", {{"patience", "2"}}),
            "at step 4 no report of the last 2 was better than 4 of step 2");
  EXPECT_EQ(trials.Ask("patience", {{"patience", "2"}, {"start_step", "5"}}), "");
}

TEST(Patience, SmallGainsAddUp) {
  Trials trials;
  trials.Active({5, 4.6, 4.2, 3.8, 3.4});
  const Settings settings = {{"patience", "2"}, {"min_delta", "0.5"}};
  EXPECT_EQ(trials.Ask("patience", settings), "");
  Trials slow;
  slow.Active({5, 4.9, 4.8});
  EXPECT_THAT(slow.Ask("patience", settings),
              HasSubstr("the last 2 was better by more than 0.5 than 5 of step 1"));
}

TEST(Patience, NotANumberIsNoGain) {
  Trials trials;
  trials.Active({kStoppersNan, -kStoppersInfinity, kStoppersNan});
  EXPECT_EQ(trials.Ask("patience", {{"patience", "3"}}),
            "at step 3 none of its 3 reports was a finite number");
  Trials once;
  once.Active({kStoppersNan, 0.5, kStoppersNan, kStoppersNan});
  EXPECT_EQ(once.Ask("patience", {{"patience", "2"}}),
            "at step 4 no report of the last 2 was better than 0.5 of step 2");
}

// ---- all of them -------------------------------------------------------------------------------

TEST(Stoppers, SettingsAreRefusedByName) {
  const auto unknown = CreateStopper("medianstop", {.settings = {{"start_steps", "3"}}});
  EXPECT_EQ(Message(unknown.status()),
            "early-stopping rule medianstop: setting \"start_steps\" is not known; did you mean "
            "\"start_step\"? known: min_trials_required, start_step");
  EXPECT_FALSE(CreateStopper("medianstop", {.settings = {{"random_state", "3"}}}).ok());
  EXPECT_FALSE(CreateStopper("medianstop", {.settings = {{"start_step", "0"}}}).ok());
  EXPECT_FALSE(CreateStopper("medianstop", {.settings = {{"min_trials_required", "0"}}}).ok());
  EXPECT_FALSE(CreateStopper("percentile", {.settings = {{"percentile", "101"}}}).ok());
  const auto missing = CreateStopper("medianstopp", {});
  EXPECT_TRUE(absl::IsNotFound(missing.status()));
  EXPECT_THAT(Message(missing.status()), HasSubstr("did you mean \"medianstop\"?"));
}

TEST(Curve, KeepsWhatIsExactWhereItIsThinned) {
  Curve curve;
  for (int64_t step = 1; step <= 100'000; ++step) {
    curve.Append(step, static_cast<double>(100'000 - step));
  }
  EXPECT_LE(static_cast<int64_t>(curve.points().size()), Curve::kMaxCurvePoints);
  EXPECT_EQ(curve.last().reports, 100'000);
  EXPECT_NEAR(curve.last().mean, 49'999.5, 1e-6);
  for (const Curve::Point& point : curve.points()) {
    EXPECT_EQ(point.reports, point.step);
    EXPECT_EQ(point.best, 100'000 - static_cast<double>(point.step));
  }
  const int64_t step = 54'321;
  EXPECT_LE(curve.At(step)->step, step);
  EXPECT_GT(curve.At(step)->step, step - 200);
  EXPECT_EQ(curve.At(0), nullptr);
}

}  // namespace
}  // namespace shirabe::suggestion
