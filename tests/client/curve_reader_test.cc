// Learning curves over a store: which trials are drawn, along which axis, and within which bounds.
#include "client/charts/curve_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/support/stored.h"

namespace shirabe::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::SizeIs;

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

class CurvesTest : public testing::Test {
 protected:
  // A trial whose loss falls from `loss` + steps - 1 to `loss`.
  void PutCurve(int64_t number, v1::TrialPhase phase, double loss, int64_t steps) {
    v1::Trial trial = MakeTrial(number, phase, loss);
    trial.mutable_observation()->mutable_metrics(0)->set_count(steps);
    db::Batch batch{.experiment = stored_.key()};
    const auto old = stored_.store().GetTrial({stored_.key(), number});
    batch.trials.push_back({trial, old.ok() ? old->revision : 0});
    if (!old.ok()) {
      v1::Attempt attempt = MakeClosedAttempt(number, 1);
      batch.attempts.push_back({attempt, 0});
    }
    for (int64_t step = 1; step <= steps; ++step) {
      batch.observations.push_back({.trial = number,
                                    .attempt = 1,
                                    .metric = "loss",
                                    .step = step,
                                    .value = loss + static_cast<double>(steps - step),
                                    .time = At(20) + absl::Seconds(2 * step)});
    }
    stored_.Commit(batch);
  }
  static v1::CurvesRequest Request() {
    v1::CurvesRequest request;
    request.set_namespace_("default");
    request.set_experiment("digits");
    return request;
  }
  v1::Curves Curves(const v1::CurvesRequest& request) {
    auto curves = stored_.client().Get<v1::Curves>("GetCurves", request);
    EXPECT_TRUE(curves.ok()) << curves.status();
    return curves.value_or(v1::Curves());
  }
  static std::vector<int64_t> TrialsOf(const v1::Curves& curves) {
    std::vector<int64_t> trials;
    for (const v1::Curve& curve : curves.curves()) trials.push_back(curve.trial());
    return trials;
  }
  std::string Complaint(const v1::CurvesRequest& request) {
    return Message(stored_.client().Get<v1::Curves>("GetCurves", request).status());
  }

  Stored stored_{/*read_only=*/false};
};

TEST_F(CurvesTest, TheBestAndTheRunningAreDrawn) {
  for (int64_t n = 1; n <= 6; ++n) {
    PutCurve(n, v1::TRIAL_SUCCEEDED, 0.1 * static_cast<double>((n * 5) % 7), 4);
  }
  PutCurve(7, v1::TRIAL_RUNNING, 50, 3);
  v1::CurvesRequest request = Request();
  EXPECT_THAT(TrialsOf(Curves(request)), ElementsAre(1, 2, 3, 4, 5, 6, 7)) << "if nothing is said";
  request.set_top(2);  // 0.1 and 0.2 of (n * 5) % 7 = 1, 2
  EXPECT_THAT(TrialsOf(Curves(request)), ElementsAre(3, 6));
  request.set_running(true);
  EXPECT_THAT(TrialsOf(Curves(request)), ElementsAre(3, 6, 7));
  request.add_trials(5);
  EXPECT_THAT(TrialsOf(Curves(request)), ElementsAre(3, 5, 6, 7));
  request = Request();
  request.add_trials(5);
  request.add_trials(99);  // there is none
  EXPECT_THAT(TrialsOf(Curves(request)), ElementsAre(5));
}

TEST_F(CurvesTest, TheBestAreTheGreatestWhereThatIsTheObjective) {
  stored_.experiment.mutable_spec()->mutable_objective()->set_type(v1::MAXIMIZE);
  stored_.PutExperiment();
  for (int64_t n = 1; n <= 4; ++n) {
    PutCurve(n, v1::TRIAL_SUCCEEDED, 0.1 * static_cast<double>(n % 4), 2);
  }
  v1::CurvesRequest request = Request();
  request.set_top(1);
  EXPECT_THAT(TrialsOf(Curves(request)), ElementsAre(3));
}

TEST_F(CurvesTest, ATrialWithTooManyValuesIsNamedAndNotRead) {
  PutCurve(1, v1::TRIAL_SUCCEEDED, 0.5, 2);
  v1::Trial huge = MakeTrial(2, v1::TRIAL_SUCCEEDED, 0.25);
  huge.mutable_observation()->mutable_metrics(0)->set_count(CurveReader::kMaxRows + 1);
  stored_.Put(huge);
  const v1::Curves curves = Curves(Request());
  EXPECT_THAT(TrialsOf(curves), ElementsAre(1));
  EXPECT_THAT(curves.too_long(), ElementsAre(2));
  EXPECT_EQ(curves.trials(), 2);
}

TEST_F(CurvesTest, ACurveIsByStepOrByTheTimeSinceItsStart) {
  PutCurve(1, v1::TRIAL_SUCCEEDED, 0.5, 4);
  v1::CurvesRequest request = Request();
  v1::Curves curves = Curves(request);
  ASSERT_THAT(curves.curves(), SizeIs(1));
  EXPECT_EQ(curves.metric(), "loss");
  EXPECT_EQ(curves.curves(0).phase(), v1::TRIAL_SUCCEEDED);
  EXPECT_EQ(curves.curves(0).points(), 4);
  EXPECT_THAT(curves.curves(0).x(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(curves.curves(0).y(), ElementsAre(3.5, 2.5, 1.5, 0.5));
  request.set_axis(v1::CURVE_TIME);
  EXPECT_THAT(Curves(request).curves(0).x(), ElementsAre(2, 4, 6, 8));
  request.set_from(3);
  request.set_to(6);
  curves = Curves(request);
  EXPECT_THAT(curves.curves(0).x(), ElementsAre(4, 6));
  EXPECT_EQ(curves.curves(0).points(), 2);
  request = Request();
  request.set_metric("acc");
  EXPECT_THAT(Curves(request).curves(), IsEmpty());
  EXPECT_EQ(Curves(request).trials(), 1) << "of which it was meant";
}

TEST_F(CurvesTest, ARunningCurveGrows) {
  PutCurve(1, v1::TRIAL_RUNNING, 0.5, 3);
  v1::CurvesRequest request = Request();
  const v1::Curves first = Curves(request);
  EXPECT_EQ(first.curves(0).points(), 3);
  request.set_known(first.version());
  EXPECT_THAT(Curves(request).curves(), IsEmpty()) << "nothing has changed";
  PutCurve(1, v1::TRIAL_RUNNING, 0.5, 6);
  EXPECT_EQ(Curves(request).curves(0).points(), 6);
}

TEST_F(CurvesTest, ALongCurveHasTwoPointsAPixel) {
  PutCurve(1, v1::TRIAL_SUCCEEDED, 0.5, 3000);
  v1::CurvesRequest request = Request();
  request.set_pixels(50);
  const v1::Curves curves = Curves(request);
  EXPECT_EQ(curves.curves(0).points(), 3000);
  EXPECT_EQ(curves.curves(0).x_size(), 100);
  EXPECT_EQ(curves.curves(0).y(0), 2999.5);
}

TEST_F(CurvesTest, WhatIsOutOfRangeIsRefusedByName) {
  v1::CurvesRequest request = Request();
  request.set_metric("los");
  EXPECT_THAT(Complaint(request), HasSubstr("there is no metric \"los\"; did you mean \"loss\"?"));
  request.set_metric("zz");  // read on behind the name of the field, as over HTTP
  EXPECT_THAT(Complaint(request), MatchesRegex("must be one of loss.*: there is no metric \"zz\""));
  request = Request();
  request.set_top(-1);
  EXPECT_THAT(Complaint(request), HasSubstr("top must be from 0 to 1000"));
  request = Request();
  request.set_pixels(1'000'000);
  EXPECT_THAT(Complaint(request), HasSubstr("pixels must be from 0 to 10000"));
  request = Request();
  for (int i = 0; i < 1001; ++i) request.add_trials(i);
  EXPECT_THAT(Complaint(request), HasSubstr("trials"));
  for (const auto& [from, to] : {std::pair(kNoNumber, 1.0), std::pair(2.0, 1.0)}) {
    request = Request();
    request.set_from(from);
    request.set_to(to);
    EXPECT_THAT(Complaint(request), HasSubstr("from and to must be finite")) << from;
  }
  request = Request();
  request.set_logarithmic(true);
  request.set_from(0);
  request.set_to(1);
  EXPECT_THAT(Complaint(request), HasSubstr("above 0 on a logarithmic axis"));
}

}  // namespace
}  // namespace shirabe::client
