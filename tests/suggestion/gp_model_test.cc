#include "suggestion/gp/gaussian_process.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/suggestion/gp_data.h"

namespace shirabe::suggestion::gp {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::RowVectorXd;
using Eigen::VectorXd;

std::string Name(const Shape& shape) {
  return std::to_string(shape.n) + " points, " + std::to_string(shape.numeric) + " numbers, " +
         std::to_string(shape.categorical) + " categories";
}

Posterior Conditioned(const Theta& theta, const Inputs& inputs, const VectorXd& y) {
  Posterior posterior(theta, inputs);
  posterior.SetTargets(y);
  return posterior;
}

// Written from the formulas of kernel.h, for one row each.
double PlainCovariance(const Theta& theta, const Inputs& a, const Inputs& b) {
  const int p = a.numeric(), c = a.categorical();
  double r2 = 0, h = 0;
  for (int k = 0; k < p; ++k) {
    const double z = (a.x(0, k) - b.x(0, k)) / std::exp(theta.values[k]);
    r2 += z * z;
  }
  for (int k = 0; k < c; ++k) {
    if (a.u(0, k) != b.u(0, k)) h += 1 / std::exp(theta.values[p + k]);
  }
  const double r = std::sqrt(5 * r2);
  const double k_x = (1 + r + r * r / 3) * std::exp(-r), k_u = std::exp(-h), w = theta.mix();
  if (c == 0) return theta.scale() * k_x;
  if (p == 0) return theta.scale() * k_u;
  return theta.scale() * ((1 - w) * (k_x + k_u) / 2 + w * k_x * k_u);
}

MatrixXd PlainGram(const Theta& theta, const Inputs& inputs) {
  const Index n = inputs.rows();
  MatrixXd k(n, n);
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < n; ++j) k(i, j) = PlainCovariance(theta, inputs.Row(i), inputs.Row(j));
  }
  k.diagonal().array() += theta.noise() + 1e-9;
  return k;
}

TEST(GpModel, CovarianceFollowsItsFormula) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(Name(shape));
    const Inputs a = RandomInputs(shape, 1), b = RandomInputs(shape, 2);
    const Theta theta = RandomTheta(shape, 3);
    const MatrixXd k = Covary(theta, a, b, Slopes::kYes).k;
    for (Index i = 0; i < a.rows(); ++i) {
      for (Index j = 0; j < b.rows(); ++j) {
        EXPECT_NEAR(k(i, j), PlainCovariance(theta, a.Row(i), b.Row(j)), 1e-12);
      }
    }
    const MatrixXd lower = Gram(theta, a).k().triangularView<Eigen::Lower>();
    const MatrixXd all = Covary(theta, a, a, Slopes::kNo).k;
    EXPECT_LT((lower - MatrixXd(all.triangularView<Eigen::Lower>())).cwiseAbs().maxCoeff(), 1e-13);
  }
}

// Of one point and of more than are computed together; of the last bits, too, since the same seed
// gives the same points.
TEST(GpModel, TheLowerHalfIsThatOfTheCovarianceBitByBit) {
  for (const int n : {1, 2, 7, 47, 48, 95, 96, 97, 150, 203}) {
    for (const Shape& shape : {Shape{n, 1, 0}, Shape{n, 3, 0}, Shape{n, 20, 0}, Shape{n, 2, 2}}) {
      SCOPED_TRACE(Name(shape));
      const Inputs inputs = RandomInputs(shape, 1);
      const Theta theta = RandomTheta(shape, 3);
      const MatrixXd half = LowerCovariance(theta, inputs).triangularView<Eigen::Lower>();
      const MatrixXd all = Covary(theta, inputs, inputs, Slopes::kNo).k;
      EXPECT_EQ(half, MatrixXd(all.triangularView<Eigen::Lower>()));
    }
  }
}

TEST(GpModel, CovariancesOfManyBatchesFollowTheFormula) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(Name(shape));
    const Inputs a = RandomInputs(shape, 1);
    const Theta theta = RandomTheta(shape, 3);
    const Covariances covariances(theta, a);
    MatrixXd k;
    for (const uint64_t seed : {1, 2, 3}) {  // the first are `a` itself, at no distance
      const Inputs b = RandomInputs({static_cast<int>(5 + seed), shape.numeric, shape.categorical},
                                    seed == 1 ? 1 : 10 + seed);
      covariances.With(b, k);
      ASSERT_EQ(k.rows(), covariances.rows());
      ASSERT_EQ(k.cols(), b.rows());
      for (Index i = 0; i < a.rows(); ++i) {
        for (Index j = 0; j < b.rows(); ++j) {
          EXPECT_NEAR(k(i, j), PlainCovariance(theta, a.Row(i), b.Row(j)), 1e-12 * theta.scale());
        }
      }
    }
  }
}

TEST(GpModel, FarPointsHaveNoCovariance) {
  const Inputs a = RandomInputs({40, 2, 0}, 1);
  Inputs b = RandomInputs({3, 2, 0}, 2);
  Theta theta = DefaultTheta(2, 0);
  theta.values.head(2).setConstant(std::log(1e-3));  // r up to 1,400: exp(-√5 r) is 0
  MatrixXd k;
  Covariances(theta, a).With(b, k);
  const Covariance fit = Covary(theta, a, b, Slopes::kYes);
  EXPECT_TRUE(k.allFinite());
  EXPECT_TRUE(fit.slope.allFinite());
  for (Index i = 0; i < a.rows(); ++i) {
    for (Index j = 0; j < b.rows(); ++j) {
      const double plain = PlainCovariance(theta, a.Row(i), b.Row(j));
      EXPECT_NEAR(k(i, j), plain, 1e-9 * plain + 1e-290);
      EXPECT_NEAR(fit.k(i, j), plain, 1e-9 * plain + 1e-290);
      EXPECT_NEAR(fit.slope(i, j), 0, 1e3 * plain + 1e-280);
    }
  }
}

TEST(GpModel, OtherValuesAreSolvedForLikeTargets) {
  const Inputs inputs = RandomInputs({30, 3, 1}, 4);
  Posterior posterior(DefaultTheta(3, 1), inputs);
  const VectorXd y = ValuesAt(inputs);
  posterior.SetTargets(y);
  EXPECT_EQ(posterior.MeanOf(y), posterior.mean());
  const MatrixXd k = PlainGram(posterior.theta(), inputs);
  MatrixXd several(inputs.rows(), 2);
  several << y, y.reverse();
  EXPECT_LT((k * posterior.Solve(several) - several).cwiseAbs().maxCoeff(), 1e-9);
}

TEST(GpModel, TheGradientOfTheFitIsThatOfItsValue) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(Name(shape));
    const Inputs inputs = RandomInputs(shape, 4);
    const VectorXd y = ValuesAt(inputs);
    const Theta theta = RandomTheta(shape, 5);
    VectorXd gradient, ignored;
    NegativeLogPosterior(theta, inputs, y, gradient);
    for (Index t = 0; t < theta.values.size(); ++t) {
      constexpr double kStep = 1e-5;
      Theta up = theta, down = theta;
      up.values[t] += kStep;
      down.values[t] -= kStep;
      const double central = (NegativeLogPosterior(up, inputs, y, ignored) -
                              NegativeLogPosterior(down, inputs, y, ignored)) /
                             (2 * kStep);
      EXPECT_NEAR(gradient[t], central, 1e-5 * std::max(1.0, std::abs(central))) << t;
    }
  }
}

TEST(GpModel, FitNeverEndsWorseThanItStarted) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(Name(shape));
    const Inputs inputs = RandomInputs(shape, 6);
    const VectorXd y = ValuesAt(inputs);
    const Theta start = DefaultTheta(shape.numeric, shape.categorical);
    VectorXd ignored;
    EXPECT_LE(Fit(inputs, y, start).value, NegativeLogPosterior(start, inputs, y, ignored) + 1e-9);
  }
}

// Three points a coordinate: fewer cannot say how numbers and categories mix, and nothing is taken
// for known.
TEST(GpModel, TheMixIsLearnedFromEnoughPointsAndInTheMiddleBefore) {
  const auto mix = [](int n) {
    const Inputs inputs = RandomInputs({n, 2, 2}, 6);
    return Fit(inputs, ValuesAt(inputs), DefaultTheta(2, 2)).theta.mix();
  };
  EXPECT_EQ(mix(5), 0.5);
  EXPECT_EQ(mix(11), 0.5);
  EXPECT_NE(mix(12), 0.5);
}

TEST(GpModel, PredictionsAreThoseOfTheTextbook) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(Name(shape));
    const Inputs inputs = RandomInputs(shape, 7),
                 points = RandomInputs({9, shape.numeric, shape.categorical}, 8);
    const VectorXd y = ValuesAt(inputs);
    const Theta theta = RandomTheta(shape, 9);
    const auto prediction = Conditioned(theta, inputs, y).Predict(points);

    const MatrixXd precision = PlainGram(theta, inputs).inverse();
    const VectorXd ones = VectorXd::Ones(y.size());
    const double beta = ones.dot(precision * y) / ones.dot(precision * ones);
    for (Index i = 0; i < points.rows(); ++i) {
      VectorXd k(y.size());
      for (Index j = 0; j < y.size(); ++j)
        k[j] = PlainCovariance(theta, inputs.Row(j), points.Row(i));
      EXPECT_NEAR(prediction.mean(i, 0), beta + k.dot(precision * (y.array() - beta).matrix()),
                  1e-8);
      EXPECT_NEAR(prediction.variance[i], theta.scale() - k.dot(precision * k), 1e-8);
    }
  }
}

TEST(GpModel, LeavingOneOutIsFittingWithoutIt) {
  const Shape shape{15, 2, 2};
  const Inputs inputs = RandomInputs(shape, 10);
  VectorXd y = ValuesAt(inputs);
  const Theta theta = RandomTheta(shape, 11);
  const VectorXd left_out = Conditioned(theta, inputs, y).LeaveOneOut();
  // The mean of the process stays that of all points, as in the formula: make it 0 for both.
  const MatrixXd precision = PlainGram(theta, inputs).inverse();
  const double beta = precision.colwise().sum().dot(y) / precision.sum();
  for (Index i = 0; i < y.size(); ++i) {
    double others = beta;
    for (Index j = 0; j < y.size(); ++j) {
      if (j != i) others -= precision(i, j) / precision(i, i) * (y[j] - beta);
    }
    EXPECT_NEAR(left_out[i], others, 1e-8);
  }
}

TEST(GpModel, AppendingIsConditioningOnAll) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(Name(shape));
    const Inputs inputs = RandomInputs({shape.n + 6, shape.numeric, shape.categorical}, 12);
    const VectorXd y = ValuesAt(inputs);
    const Theta theta = RandomTheta(shape, 13);
    Posterior grown = Conditioned(theta, inputs.Rows(0, shape.n), y.head(shape.n));
    grown.Split(2);
    for (Index i = shape.n; i < y.size(); ++i) {
      grown.Append(inputs.Row(i), RowVectorXd::Constant(2, y[i]));
    }
    const Inputs points = RandomInputs({20, shape.numeric, shape.categorical}, 14);
    const auto one = grown.Predict(points);
    const auto other = Conditioned(theta, inputs, y).Predict(points);
    EXPECT_LT((one.variance - other.variance).cwiseAbs().maxCoeff(), 1e-8);
    EXPECT_EQ(one.mean.col(0), one.mean.col(1));
    // β is that of the first points; what it makes of the difference is known in closed form.
    const MatrixXd precision = PlainGram(theta, inputs).inverse();
    const MatrixXd before = PlainGram(theta, inputs.Rows(0, shape.n)).inverse();
    const double beta = before.colwise().sum().dot(y.head(shape.n)) / before.sum();
    const VectorXd mean =
        (other.cross.k.transpose() * (precision * (y.array() - beta).matrix())).array() + beta;
    EXPECT_LT((one.mean.col(0) - mean).cwiseAbs().maxCoeff(), 1e-8);
  }
}

TEST(GpModel, PointsTwiceAndTooMuchSmoothnessAreFactoredAllTheSame) {
  const Shape shape{10, 2, 0};
  Inputs inputs = RandomInputs(shape, 15);
  for (Index i = 1; i < 6; ++i) inputs.x.row(i) = inputs.x.row(0);
  Theta theta = DefaultTheta(2, 0);
  theta.values << std::log(1e3), std::log(1e3), std::log(1e3), std::log(1e-6), 0;
  Posterior posterior = Conditioned(theta, inputs, ValuesAt(inputs));
  posterior.Append(inputs.Row(0), RowVectorXd::Constant(1, 0.5));
  const auto prediction = posterior.Predict(inputs);
  EXPECT_TRUE(prediction.mean.allFinite());
  EXPECT_GT(prediction.variance.minCoeff(), 0);
}

}  // namespace
}  // namespace shirabe::suggestion::gp
