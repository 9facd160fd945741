// The rule for folds, on losses whose probabilities can be counted by hand.
#include <gmock/gmock.h>

#include <limits>

#include "tests/suggestion/stopper_trials.h"

namespace shirabe::suggestion {
namespace {

using ::testing::HasSubstr;

constexpr double kWilcoxonNan = std::numeric_limits<double>::quiet_NaN();

TEST(Wilcoxon, StopsOnceFoldsAgree) {
  Trials trials;
  trials.Ended({1, 5, 2, 7, 3});  // the folds differ more than the trials do
  trials.Active({1.1, 5.2, 2.3});
  EXPECT_EQ(trials.Ask("wilcoxon"), "") << "p = 1/8 with three folds lost";
  trials.curves.back().Append(4, 7.4);
  EXPECT_EQ(trials.Ask("wilcoxon"), "at step 4 worse than trial 1 on 4 folds, p = 0.062 < 0.1");
  EXPECT_EQ(trials.Ask("wilcoxon", {{"p_threshold", "0.05"}}), "");
  EXPECT_EQ(trials.Ask("wilcoxon", {{"start_step", "5"}}), "");
}

TEST(Wilcoxon, KeepsATrialWhoseMeanIsBetter) {
  Trials trials;
  trials.Ended({1, 1, 1, 1, 1, 9});
  trials.Active({1.1, 1.2, 1.3, 1.4, 1.5, 0});
  EXPECT_EQ(trials.Ask("wilcoxon", {{"p_threshold", "1"}}), "");
}

// By scipy.stats.wilcoxon(d, alternative="greater", zero_method="zsplit"), exact by enumeration.
TEST(Wilcoxon, ProbabilitiesAreExact) {
  Trials trials;
  trials.Ended({0, 0, 0, 0, 0, 0});
  trials.Active({1, 2, 3, 4, 5, -6});
  // 64 sign patterns; W = 1 + 2 + 3 + 4 + 5 = 15 or more in 14 of them.
  EXPECT_EQ(trials.Ask("wilcoxon", {{"p_threshold", "0.21"}}), "");
  EXPECT_THAT(trials.Ask("wilcoxon", {{"p_threshold", "0.25"}}), HasSubstr("p = 0.22 <"));
}

TEST(Wilcoxon, SplitsZerosAndSharesRanks) {
  Trials trials;
  trials.Ended({0, 0, 0, 0, 0});
  trials.Active({0, 2, 2, 2, 2});  // four equal gains: p = 1/16 whatever the zero
  EXPECT_THAT(trials.Ask("wilcoxon"), HasSubstr("p = 0.062"));
  trials.curves.back() = CurveOf({{1, 0}, {2, 0}, {3, 0}});
  EXPECT_EQ(trials.Ask("wilcoxon", {{"p_threshold", "1"}}), "") << "no fold differs";
}

TEST(Wilcoxon, ManyFoldsAreNormal) {
  Trials trials;
  trials.Ended(Losses(200, 0));
  Losses losses;
  for (int i = 0; i < 200; ++i) losses.push_back(i % 3 == 0 ? -1.0 - i : 1.0 + i);
  trials.Active(losses);
  EXPECT_THAT(trials.Ask("wilcoxon"), HasSubstr("on 200 folds"));
}

TEST(Wilcoxon, ComparesWithTheBestThatEndedByItself) {
  Trials trials;
  trials.Ended(Losses(9, 3));
  trials.Ended(Losses(9, 2));
  trials.Ended(Losses(9, 1), /*early=*/true);
  trials.Ended(Losses(9, kWilcoxonNan));
  trials.Active(Losses(9, 4));
  EXPECT_THAT(trials.Ask("wilcoxon"), HasSubstr("worse than trial 2 on 9 folds"));
}

TEST(Wilcoxon, OnlyFoldsThatBothHaveCount) {
  Trials trials;
  trials.Ended({1, 1, 1});
  trials.Active({2, 2, 2, 2, 2, 2, 2});
  EXPECT_EQ(trials.Ask("wilcoxon"), "");
}

// The same folds told in the other way: 1 5 2 7 and 1.1 5.2 2.3 7.4.
TEST(Wilcoxon, ReadsTheFoldsFromMeans) {
  const Settings means = {{"reports", "mean"}};
  Trials trials;
  trials.Ended({1, 3, 8.0 / 3, 15.0 / 4});
  trials.Active({1.1, 6.3 / 2, 8.6 / 3});
  EXPECT_EQ(trials.Ask("wilcoxon", means), "");
  trials.curves.back().Append(4, 16.0 / 4);
  EXPECT_EQ(trials.Ask("wilcoxon", means),
            "at step 4 worse than trial 1 on 4 folds, p = 0.062 < 0.1");
}

// By the mean of its means, 2.5, the first of the two would be the better one.
TEST(Wilcoxon, OfMeansTheLastSaysWhoIsBest) {
  Trials trials;
  trials.Ended({1, 2, 3, 4});
  trials.Ended({4, 4, 3.5, 3});
  trials.Active({9, 9, 9, 9});
  EXPECT_THAT(trials.Ask("wilcoxon", {{"reports", "mean"}}), HasSubstr("worse than trial 2"));
}

// From there on no mean is a number either.
TEST(Wilcoxon, OfMeansAFoldThatDivergedLosesAllThatFollow) {
  Trials trials;
  trials.Ended({1, 1, 1, 1, 1});
  trials.Active({0, kWilcoxonNan, kWilcoxonNan, kWilcoxonNan, kWilcoxonNan});
  EXPECT_THAT(trials.Ask("wilcoxon", {{"reports", "mean"}, {"p_threshold", "0.2"}}),
              HasSubstr("worse than trial 1 on 5 folds"));
}

}  // namespace
}  // namespace shirabe::suggestion
