// Conditioned processes and their scores against gp::Posterior.
#include <cmath>

#include "tests/gpu/device.h"

namespace shirabe::suggestion::gpu {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

class PosteriorTest : public Device {
 protected:
  struct Case {
    gp::Inputs inputs;
    MatrixXd y;
    gp::Theta theta;
    DevicePosterior* posterior;
    gp::Posterior known;
  };
  Case Make(const Shape& shape) {
    const gp::Inputs inputs = RandomInputs(shape, shape.n);
    const MatrixXd y = RandomTargets(shape, shape.n);
    const gp::Theta theta = RandomTheta(shape, shape.n);
    DevicePosterior* posterior =
        Condition(Upload(inputs, y), {theta.values.data(), nullptr, 0, nullptr});
    gp::Posterior known(theta, inputs);
    known.SetTargets(y);
    return {inputs, y, theta, posterior, std::move(known)};
  }

  struct Scores {
    MatrixXd mean, mean_slopes, variance_slopes;
    VectorXd variance;
  };
  Scores ScoreAll(const Case& one, const gp::Inputs& points) {
    const Eigen::Index count = points.rows(), p = points.numeric(), m = one.y.cols();
    Scores scores{MatrixXd(count, m), MatrixXd(count, m * p), MatrixXd(count, p), VectorXd(count)};
    const Scoring scoring{one.posterior,
                          count,
                          points.x.data(),
                          points.u.data(),
                          scores.mean.data(),
                          scores.variance.data(),
                          scores.mean_slopes.data(),
                          scores.variance_slopes.data()};
    EXPECT_EQ(shirabe_cuda_score(context_, &scoring, 1), kOk);
    return scores;
  }
};

TEST_F(PosteriorTest, PredictsWhatEigenPredicts) {
  for (const Shape& shape : {Shape{1, 1, 0, 2}, Shape{2, 1, 1, 1}, Shape{31, 9, 0, 1},
                             Shape{65, 3, 2, 3}, Shape{64, 0, 2, 1}}) {
    const Case one = Make(shape);
    for (const int count : {1, 65}) {
      const gp::Inputs points = RandomInputs({count, shape.p, shape.c}, 99);
      const gp::Posterior::Prediction known = one.known.Predict(points, gp::Slopes::kYes);
      const Scores found = ScoreAll(one, points);
      EXPECT_LT(Difference(found.mean, known.mean), 1e-9) << shape.n;
      EXPECT_LT(Difference(found.variance, known.variance), 1e-9) << shape.n;
    }
  }
}

// With any weights, what gp::Posterior::Pullback gives.
TEST_F(PosteriorTest, SlopesAreThoseOfEigen) {
  for (const Shape& shape : {Shape{66, 10, 1, 2}, Shape{5, 1, 0, 1}}) {
    const Case one = Make(shape);
    const gp::Inputs points = RandomInputs({7, shape.p, shape.c}, 98);
    const Scores found = ScoreAll(one, points);
    const gp::Posterior::Prediction known = one.known.Predict(points, gp::Slopes::kYes);
    const MatrixXd mean_bar = RandomTargets({7, 1, 0, shape.m}, 97);
    const VectorXd variance_bar = RandomTargets({7, 1, 0, 1}, 96).col(0);
    MatrixXd gradient = variance_bar.asDiagonal() * found.variance_slopes;
    for (int k = 0; k < shape.m; ++k) {
      gradient += mean_bar.col(k).asDiagonal() * found.mean_slopes.middleCols(k * shape.p, shape.p);
    }
    EXPECT_LT(Difference(gradient, one.known.Pullback(points, known, mean_bar, variance_bar)),
              1e-9);
  }
}

TEST_F(PosteriorTest, WhatIsNotAskedForChangesNothing) {
  const Case one = Make({40, 2, 1, 2});
  const gp::Inputs points = RandomInputs({20, 2, 1}, 95);
  const Scores all = ScoreAll(one, points);
  MatrixXd mean(20, 2), mean_slopes(20, 4), variance_slopes(20, 2);
  VectorXd variance(20);
  const auto ask = [&](Scoring scoring) {
    scoring.posterior = one.posterior;
    scoring.count = 20;
    scoring.x = points.x.data();
    scoring.u = points.u.data();
    EXPECT_EQ(shirabe_cuda_score(context_, &scoring, 1), kOk);
  };
  ask({nullptr, 0, nullptr, nullptr, mean.data(), nullptr, nullptr, nullptr});
  ask({nullptr, 0, nullptr, nullptr, nullptr, variance.data(), nullptr, nullptr});
  ask({nullptr, 0, nullptr, nullptr, nullptr, nullptr, mean_slopes.data(), nullptr});
  ask({nullptr, 0, nullptr, nullptr, nullptr, nullptr, nullptr, variance_slopes.data()});
  ask({});
  EXPECT_EQ(mean, all.mean);
  EXPECT_EQ(variance, all.variance);
  EXPECT_EQ(mean_slopes, all.mean_slopes);
  EXPECT_EQ(variance_slopes, all.variance_slopes);
}

// Of several processes, of points as many as there are and of one, with all and with parts of what
// can be asked for: the bits of each alone.
TEST_F(PosteriorTest, GivesTheSameBitsAloneAndInABatch) {
  const Case large = Make({130, 3, 1, 2}), small = Make({5, 2, 0, 1}), odd = Make({65, 0, 2, 3});
  const gp::Inputs many = RandomInputs({70, 3, 1}, 92), few = RandomInputs({2, 2, 0}, 91),
                   one = RandomInputs({1, 0, 2}, 90);
  const Scores alone[] = {ScoreAll(large, many), ScoreAll(small, few), ScoreAll(odd, one)};
  Scores found[] = {alone[0], alone[1], alone[2]};
  for (Scores& scores : found) {
    for (MatrixXd* some : {&scores.mean, &scores.mean_slopes, &scores.variance_slopes}) {
      some->setConstant(7);
    }
    scores.variance.setConstant(7);
  }
  MatrixXd mean(70, 2);
  const Scoring batch[] = {
      {small.posterior, 2, few.x.data(), few.u.data(), found[1].mean.data(),
       found[1].variance.data(), found[1].mean_slopes.data(), found[1].variance_slopes.data()},
      {large.posterior, 70, many.x.data(), many.u.data(), mean.data(), nullptr, nullptr, nullptr},
      {large.posterior, 70, many.x.data(), many.u.data(), found[0].mean.data(),
       found[0].variance.data(), found[0].mean_slopes.data(), found[0].variance_slopes.data()},
      {odd.posterior, 1, one.x.data(), one.u.data(), found[2].mean.data(), found[2].variance.data(),
       nullptr, nullptr}};
  ASSERT_EQ(shirabe_cuda_score(context_, batch, 4), kOk);
  EXPECT_EQ(mean, alone[0].mean);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(found[i].mean, alone[i].mean) << i;
    EXPECT_EQ(found[i].variance, alone[i].variance) << i;
    EXPECT_EQ(found[i].mean_slopes, alone[i].mean_slopes) << i;
    EXPECT_EQ(found[i].variance_slopes, alone[i].variance_slopes) << i;
  }
}

// The parts of gp::Posterior: enough to go on from without the device.
TEST_F(PosteriorTest, PartsGiveBackTheMatrixAndTheTargets) {
  const Shape shape{70, 3, 1, 2};
  const gp::Inputs inputs = RandomInputs(shape, 3);
  const MatrixXd y = RandomTargets(shape, 3);
  const gp::Theta theta = RandomTheta(shape, 3);
  MatrixXd inverse(70, 70), whitened(70, 2), alpha(70, 2);
  VectorXd precision(70);
  PosteriorParts parts{inverse.data(), whitened.data(), alpha.data(), precision.data(), 0};
  const DeviceModel* model = Upload(inputs, RandomTargets({70, 3, 1, 5}, 8));
  Condition(model, {theta.values.data(), y.data(), 2, nullptr}, &parts);
  MatrixXd k = gp::Covary(theta, inputs, inputs, gp::Slopes::kNo).k;
  k.diagonal().array() += theta.noise() + 1e-9;
  EXPECT_LT(Difference(inverse * k * inverse.transpose(), MatrixXd::Identity(70, 70)), 1e-9);
  EXPECT_EQ(MatrixXd(inverse.triangularView<Eigen::StrictlyUpper>()), MatrixXd::Zero(70, 70));
  EXPECT_LT(Difference(k * alpha, y.array() - parts.mean), 1e-9);
  EXPECT_LT(Difference(inverse * MatrixXd(y.array() - parts.mean), whitened), 1e-9);
  gp::Posterior known(theta, inputs);
  known.SetTargets(y);
  EXPECT_LT(Difference(y.col(0) - alpha.col(0).cwiseQuotient(precision), known.LeaveOneOut()),
            1e-9);
}

// Points that are imagined are conditioned on with the β of those that were observed.
TEST_F(PosteriorTest, AGivenMeanIsUsed) {
  const Shape shape{12, 2, 0, 1};
  const gp::Inputs inputs = RandomInputs(shape, 2);
  const MatrixXd y = RandomTargets(shape, 2);
  const gp::Theta theta = RandomTheta(shape, 2);
  gp::Posterior known(theta, inputs.Rows(0, 11));
  known.SetTargets(y.topRows(11));
  known.Append(inputs.Row(11), y.row(11));
  PosteriorParts parts{};
  const DeviceModel* first = Upload(inputs.Rows(0, 11), y.topRows(11));
  Condition(first, {theta.values.data(), nullptr, 0, nullptr}, &parts);
  const double beta = parts.mean;
  const Case one{inputs, y, theta,
                 Condition(Upload(inputs, y), {theta.values.data(), nullptr, 0, &beta}, &parts),
                 known};
  EXPECT_EQ(parts.mean, beta);
  const gp::Inputs points = RandomInputs({9, 2, 0}, 94);
  EXPECT_LT(Difference(ScoreAll(one, points).mean, known.Predict(points).mean), 1e-9);
}

// Equal points without noise: as much is added to the diagonal as it takes.
TEST_F(PosteriorTest, ASingularMatrixGetsAGrowingDiagonal) {
  gp::Inputs inputs = RandomInputs({70, 2, 0}, 1);
  inputs.x.setConstant(0.5);
  const MatrixXd y = RandomTargets({70, 2, 0}, 1);
  gp::Theta theta{VectorXd::Zero(5)};
  theta.values[2] = 25;
  theta.values[3] = -50;
  PosteriorParts parts{};
  DevicePosterior* posterior =
      Condition(Upload(inputs, y), {theta.values.data(), nullptr, 0, nullptr}, &parts);
  ASSERT_NE(posterior, nullptr);
  const Case one{inputs, y, theta, posterior, gp::Posterior(theta, inputs)};
  const Scores found = ScoreAll(one, inputs.Row(0));
  EXPECT_NEAR(found.mean(0, 0), y.mean(), 1e-2);
}

TEST_F(PosteriorTest, GoesOnWithoutItsModel) {
  const Case one = Make({10, 2, 0, 1});
  shirabe_cuda_release(models_.back(), nullptr);
  models_.clear();
  const gp::Inputs points = RandomInputs({3, 2, 0}, 93);
  EXPECT_LT(Difference(ScoreAll(one, points).mean, one.known.Predict(points).mean), 1e-9);
}

}  // namespace
}  // namespace shirabe::suggestion::gpu
