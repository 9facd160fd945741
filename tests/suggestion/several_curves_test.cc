// Early stopping where there are several objectives: by front, then crowding.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suggestion/objective_curves.h"
#include "tests/suggestion/spaces.h"

namespace shirabe::suggestion {
namespace {

using ::testing::HasSubstr;

// Trials of two objectives, each the same at steps 1 to 8, the second to be maximised. The last one
// added runs.
class TwoObjectives {
 public:
  void Add(double loss, double gain, bool active = false) {
    history_.Add({0.5}, active ? TrialSummary{}
                               : TrialSummary{.state = TrialState::kCompleted,
                                              .loss = loss,
                                              .further_losses = {-gain}});
    curves_.further.resize(1);
    curves_.emplace_back();
    curves_.further[0].emplace_back();
    for (int64_t step = 1; step <= 8; ++step) {
      curves_.back().Append(step, loss);
      curves_.further[0].back().Append(step, -gain);
    }
  }
  // The second objective of the last trial is not reported.
  void Forget() { curves_.further[0].back() = Curve(); }

  std::string Ask(const std::string& rule, const Settings& settings = {}) const {
    const auto stopper = CreateStopper(rule, {.settings = settings, .further_maximize = {true}});
    EXPECT_TRUE(stopper.ok()) << stopper.status();
    const auto reason = (*stopper)->ShouldStop(history_.size() - 1, history_, curves_);
    EXPECT_TRUE(reason.ok()) << reason.status();
    return reason->value_or("");
  }

 private:
  History history_{Make({Double("x", {0, 1})})};
  Curves curves_;
};

// A front of nine, on a line.
TwoObjectives FrontOfNine() {
  TwoObjectives trials;
  for (int i = 0; i < 9; ++i) trials.Add(i, i);
  return trials;
}

TEST(SeveralCurves, WhoIsBehindTheFrontStops) {
  TwoObjectives trials = FrontOfNine();
  trials.Add(7.5, 1.5, /*active=*/true);
  EXPECT_EQ(trials.Ask("medianstop"),
            "at step 8 best (7.5, 1.5) is on front 2, behind the averages of 9 of 9 trials");
  EXPECT_EQ(trials.Ask("percentile"),
            "at step 8 best (7.5, 1.5) is on front 2, behind 9 of 9 trials, over 75 %");
  EXPECT_EQ(trials.Ask("asha-stop"),
            "at step 8 (7.5, 1.5) up to step 3 is on front 2, behind 9 of 10; 3 go on");
}

TEST(SeveralCurves, ThePoorestInOneObjectiveGoesOnWhereItIsTheBestInAnother) {
  TwoObjectives trials = FrontOfNine();
  trials.Add(100, 100, /*active=*/true);
  for (const char* rule : {"medianstop", "percentile", "asha-stop"}) {
    EXPECT_EQ(trials.Ask(rule), "") << rule;
  }
}

// On the front no rule but that of rungs, which must choose, gives up a trial.
TEST(SeveralCurves, OnTheFrontTheCrowdedOnesStopAtARung) {
  TwoObjectives trials;
  for (const double x : {0.0, 10.0, 20.0, 30.0, 40.0}) trials.Add(x, x);
  trials.Add(20.5, 20.5, /*active=*/true);
  EXPECT_EQ(trials.Ask("medianstop"), "");
  EXPECT_EQ(trials.Ask("percentile"), "");
  EXPECT_THAT(trials.Ask("asha-stop"), HasSubstr("is on front 1, behind"));
}

TEST(SeveralCurves, WithoutAValueOfEachNobodyIsCompared) {
  TwoObjectives trials = FrontOfNine();
  trials.Add(1e6, -1e6, /*active=*/true);
  trials.Forget();
  for (const char* rule : {"medianstop", "percentile", "asha-stop"}) {
    EXPECT_EQ(trials.Ask(rule), "") << rule;
  }
}

TEST(SeveralCurves, PatienceWaitsForAllOfThem) {
  TwoObjectives trials;
  trials.Add(1, 1, /*active=*/true);
  EXPECT_EQ(trials.Ask("patience", {{"patience", "3"}}),
            "at step 8 no report of the last 7 was better in any objective");
  EXPECT_EQ(trials.Ask("patience", {{"patience", "8"}}), "");
  const auto refused =
      CreateStopper("patience", {.settings = {{"min_delta", "0.1"}}, .further_maximize = {false}});
  EXPECT_THAT(Message(refused.status()), HasSubstr("\"min_delta\" is in units of one objective"));
}

TEST(SeveralCurves, WhoCannotRefusesAndSaysWhoCan) {
  const auto refused = CreateStopper("wilcoxon", {.further_maximize = {false}});
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status()));
  EXPECT_EQ(Message(refused.status()),
            "early-stopping rule wilcoxon compares trials by one objective; with several use "
            "asha-stop, medianstop, patience, percentile, threshold");
}

TEST(FrontPlaces, AreCountedByFrontThenCrowding) {
  std::vector<Individual> all;
  for (const std::vector<double>& losses :
       std::vector<std::vector<double>>{{0, 4}, {1, 2}, {2, 1}, {4, 0}, {3, 3}, {5, 5}}) {
    all.push_back({.losses = losses});
  }
  EXPECT_EQ(PlaceOf(0, all).better, 0u);
  EXPECT_EQ(PlaceOf(3, all).better, 0u);
  EXPECT_EQ(PlaceOf(1, all).better, 2u);
  EXPECT_EQ(PlaceOf(4, all).front, 1u);
  EXPECT_EQ(PlaceOf(4, all).better, 4u);
  EXPECT_EQ(PlaceOf(5, all).front, 2u);
  EXPECT_EQ(PlaceOf(5, all).better, 5u);
}

}  // namespace
}  // namespace shirabe::suggestion
