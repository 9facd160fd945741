#include "suggestion/gp/gaussian_process.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "base/cancellation.h"

namespace shirabe::suggestion::gp {
namespace {

using Eigen::Index;
using Eigen::LLT;
using Eigen::MatrixXd;
using Eigen::RowVectorXd;
using Eigen::VectorXd;

constexpr double kMinVariance = 1e-12;
constexpr double kSettled = 1e-9;  // added to σ²: what rounding alone needs

// log ℓ ~ N(log(√p / 2), 1) for numbers and N(log c, 1) for categories; s² ~ Gamma(2, 1);
// log σ² ~ N(-7, 2²); logit w ~ N(1, 1).
constexpr double kLogNoiseMean = -7, kLogNoiseDeviation = 2;
constexpr double kMixMean = 1;
constexpr Index kManyPoints = 400;  // see BeginFit

double NumericCentre(int p) { return std::log(0.5 * std::sqrt(std::max(p, 1))); }
double CategoricalCentre(int c) { return std::log(std::max(c, 1)); }

}  // namespace

double NegativeLogPrior(const Theta& theta, int p, int c, VectorXd& gradient) {
  const VectorXd& t = theta.values;
  double value = 0;
  const auto normal = [&](int i, double centre, double deviation) {
    const double z = (t[i] - centre) / deviation;
    value += 0.5 * z * z;
    gradient[i] += z / deviation;
  };
  for (int j = 0; j < p; ++j) normal(j, NumericCentre(p), 1);
  for (int j = p; j < p + c; ++j) normal(j, CategoricalCentre(c), 1);
  value -= theta.log_scale() - theta.scale();
  gradient[p + c] -= 1 - theta.scale();
  normal(p + c + 1, kLogNoiseMean, kLogNoiseDeviation);
  normal(p + c + 2, kMixMean, 1);
  return value;
}

namespace {

// Columns that are worked on together below, so that the zeros of triangles cost little.
constexpr Index kBlock = 32;

// Of a lower-triangular matrix.
MatrixXd TriangularInverse(const MatrixXd& l) {
  const Index n = l.rows();
  MatrixXd inverse = MatrixXd::Identity(n, n);
  for (Index j = 0; j < n; j += kBlock) {
    const Index rest = n - j;
    auto columns = inverse.block(j, j, rest, std::min(kBlock, rest));
    l.bottomRightCorner(rest, rest).triangularView<Eigen::Lower>().solveInPlace(columns);
  }
  return inverse;
}

// The lower half of lᵀl, and a little more, of a lower-triangular l: K⁻¹ from L⁻¹.
MatrixXd LowerHalfOfSquare(const MatrixXd& l) {
  const Index n = l.rows();
  MatrixXd square(n, n);
  for (Index j = 0; j < n; j += kBlock) {
    const Index rest = n - j, width = std::min(kBlock, rest);
    square.block(j, j, rest, width).noalias() =
        l.bottomRightCorner(rest, rest).transpose().triangularView<Eigen::Upper>() *
        l.block(j, j, rest, width);
  }
  return square;
}

// L⁻¹ of K, after as much jitter as it takes. L takes the place of K: of a thousand points each of
// them has 8 MB, which the kernel clears page by page.
MatrixXd InverseFactor(const Theta& theta, const Inputs& inputs) {
  MatrixXd k = LowerCovariance(theta, inputs);
  k.diagonal().array() += theta.noise() + kSettled;
  VectorXd diagonal = k.diagonal();
  // Each factor is of the matrix as it is then: an assignment may give k other memory.
  const auto factored = [&k] { return LLT<Eigen::Ref<MatrixXd>>(k).info() == Eigen::Success; };
  bool done = factored();
  for (double jitter = 1e-10; !done && jitter < 1e3; jitter *= 10) {
    diagonal.array() += jitter * theta.scale();
    k = LowerCovariance(theta, inputs);
    k.diagonal() = diagonal;
    done = factored();
  }
  return TriangularInverse(k);
}

}  // namespace

Theta DefaultTheta(int numeric, int categorical) {
  Theta theta{VectorXd::Zero(Theta::Size(numeric, categorical))};
  theta.values.head(numeric).setConstant(NumericCentre(numeric));
  theta.values.segment(numeric, categorical).setConstant(CategoricalCentre(categorical));
  theta.values[numeric + categorical + 1] = std::log(1e-2);
  theta.values[numeric + categorical + 2] = kMixMean;
  return theta;
}

Box ThetaBox(int numeric, int categorical) {
  const int size = Theta::Size(numeric, categorical), scale = numeric + categorical;
  Box box{VectorXd::Constant(size, std::log(1e-3)), VectorXd::Constant(size, std::log(1e3))};
  box.lower[scale] = std::log(1e-4);
  box.lower[scale + 1] = std::log(1e-6);
  box.upper[scale + 1] = std::log(10.0);
  return box;
}

double NegativeLogPosterior(const Theta& theta, const Inputs& inputs, const VectorXd& y,
                            VectorXd& gradient) {
  const Index n = inputs.rows();
  const int p = inputs.numeric(), c = inputs.categorical();
  const Gram gram(theta, inputs);
  MatrixXd k = gram.k();
  k.diagonal().array() += theta.noise() + kSettled;
  const LLT<Eigen::Ref<MatrixXd>> factor(k);  // in its place
  if (factor.info() != Eigen::Success) {
    gradient = VectorXd::Zero(theta.values.size());
    return std::numeric_limits<double>::infinity();
  }
  MatrixXd precision = LowerHalfOfSquare(TriangularInverse(k));
  const auto symmetric = precision.selfadjointView<Eigen::Lower>();
  const VectorXd ones = symmetric * VectorXd::Ones(n);
  const VectorXd residual = y.array() - ones.dot(y) / ones.sum();
  const VectorXd alpha = symmetric * residual;
  const double log_determinant = k.diagonal().array().log().sum();
  const double value = 0.5 * residual.dot(alpha) + log_determinant;

  // ∂(-log p)/∂K = ½ (K⁻¹ - α αᵀ); β needs no term of its own, being the best one.
  precision.selfadjointView<Eigen::Lower>().rankUpdate(alpha, -1);
  gradient = gram.Pullback(precision);
  gradient[p + c + 1] = 0.5 * precision.trace() * theta.noise();
  return value + NegativeLogPrior(theta, p, c, gradient);
}

Lbfgs BeginFit(const Inputs& inputs, const Theta& start) {
  const int p = inputs.numeric(), c = inputs.categorical();
  Box box = ThetaBox(p, c);
  // Below three points a coordinate the mix is not to be learned from them.
  const Index mix = box.lower.size() - 1;
  const bool mixes = p > 0 && c > 0 && inputs.rows() >= 3 * (p + c);
  if (!mixes) box.lower[mix] = box.upper[mix] = p > 0 && c > 0 ? 0 : kMixMean;
  // Of many points a step costs their cube, and the likelihood is sharp: the last ones change no
  // choice.
  const double stalled = inputs.rows() < kManyPoints ? 1e-9 : 1e-6;
  return Lbfgs(start.values, box,
               {.max_iterations = 100, .gradient_tolerance = 1e-2, .decrease_tolerance = stalled});
}

Fitted Fit(const Inputs& inputs, const VectorXd& y, const Theta& start) {
  Lbfgs search = BeginFit(inputs, start);
  VectorXd gradient;
  int evaluations = 0;
  for (; !search.done() && !IsCancelled(); ++evaluations) {
    const Theta theta{search.next()};
    const double value = NegativeLogPosterior(theta, inputs, y, gradient);
    search.Tell(value, gradient);
  }
  return {{search.x()}, search.value(), evaluations};
}

Posterior::Posterior(const Theta& theta, const Inputs& inputs)
    : theta_(theta), inputs_(inputs), inverse_(InverseFactor(theta, inputs)) {}

Posterior::Posterior(const Theta& theta, const Inputs& inputs, MatrixXd inverse)
    : theta_(theta), inputs_(inputs), inverse_(std::move(inverse)) {}

void Posterior::SetTargets(const MatrixXd& y, std::optional<double> mean) {
  y_ = y;
  mean_ = mean ? *mean : MeanOf(y.col(0));
  whitened_ = inverse_.triangularView<Eigen::Lower>() * MatrixXd(y.array() - mean_);
  alpha_ = inverse_.transpose().triangularView<Eigen::Upper>() * whitened_;
}

double Posterior::MeanOf(const VectorXd& y) const {
  const auto lower = inverse_.triangularView<Eigen::Lower>();
  const VectorXd ones = lower * VectorXd::Ones(size());
  const VectorXd first = lower * y;
  return ones.dot(first) / ones.squaredNorm();
}

MatrixXd Posterior::Solve(const MatrixXd& y) const {
  const MatrixXd whitened = inverse_.triangularView<Eigen::Lower>() * y;
  return inverse_.transpose().triangularView<Eigen::Upper>() * whitened;
}

void Posterior::Split(Index scenarios) {
  scorer_.reset();
  y_ = y_.col(0).replicate(1, scenarios).eval();
  whitened_ = whitened_.col(0).replicate(1, scenarios).eval();
  alpha_ = alpha_.col(0).replicate(1, scenarios).eval();
}

void Posterior::Append(const Inputs& point, const RowVectorXd& y) {
  scorer_.reset();
  const Index n = size();
  const VectorXd k = Covary(theta_, inputs_, point, Slopes::kNo).k;
  const VectorXd t = inverse_.triangularView<Eigen::Lower>() * k;
  const VectorXd w = inverse_.transpose().triangularView<Eigen::Upper>() * t;  // K⁻¹ k
  // Never below the noise, however the rounding went: then the point stood there already.
  const double noise = theta_.noise() + kSettled;
  const double pivot = std::sqrt(std::max(theta_.scale() + noise - t.squaredNorm(), noise));

  inverse_.conservativeResizeLike(MatrixXd::Zero(n + 1, n + 1));
  inverse_.row(n).head(n) = -w.transpose() / pivot;
  inverse_(n, n) = 1 / pivot;
  const RowVectorXd fresh = ((y.array() - mean_).matrix() - t.transpose() * whitened_) / pivot;
  whitened_.conservativeResize(n + 1, Eigen::NoChange);
  whitened_.row(n) = fresh;
  alpha_.conservativeResize(n + 1, Eigen::NoChange);
  alpha_.topRows(n).noalias() -= w * (fresh / pivot);
  alpha_.row(n) = fresh / pivot;
  y_.conservativeResize(n + 1, Eigen::NoChange);
  y_.row(n) = y;
  inputs_.x.conservativeResize(n + 1, Eigen::NoChange);
  inputs_.x.row(n) = point.x.row(0);
  inputs_.u.conservativeResize(n + 1, Eigen::NoChange);
  inputs_.u.row(n) = point.u.row(0);
}

Posterior::Prediction Posterior::Predict(const Inputs& points, Slopes slopes) const {
  Prediction prediction;
  prediction.cross = Covary(theta_, inputs_, points, slopes);
  const MatrixXd& k = prediction.cross.k;
  prediction.mean = (k.transpose() * alpha_).array() + mean_;
  prediction.solved = inverse_.triangularView<Eigen::Lower>() * k;
  const VectorXd explained = prediction.solved.colwise().squaredNorm();
  prediction.variance =
      (theta_.scale() - explained.array()).max(kMinVariance * std::max(1.0, theta_.scale()));
  return prediction;
}

Posterior::Prediction Posterior::Score(const Inputs& points, Slopes slopes) const {
  Prediction prediction;
  if (scorer_ != nullptr && scorer_->Score(points, slopes, prediction)) return prediction;
  return Predict(points, slopes);
}

MatrixXd Posterior::Mean(const Inputs& points) const {
  const MatrixXd k = Covary(theta_, inputs_, points, Slopes::kNo).k;
  return (k.transpose() * alpha_).array() + mean_;
}

MatrixXd Posterior::Pullback(const Inputs& points, const Prediction& prediction,
                             const MatrixXd& mean_bar, const VectorXd& variance_bar) const {
  if (prediction.cross.k.size() == 0) {  // a scorer's
    MatrixXd gradient = variance_bar.asDiagonal() * prediction.variance_slope;
    const Index p = points.x.cols();
    for (Index k = 0; k < mean_bar.cols(); ++k) {
      gradient += mean_bar.col(k).asDiagonal() * prediction.mean_slopes.middleCols(k * p, p);
    }
    return gradient;
  }
  // ∂/∂k of the sum, by point; then through ∂k/∂r² to the coordinates.
  MatrixXd q = inverse_.transpose().triangularView<Eigen::Upper>() *
               (prediction.solved * (-2 * variance_bar).asDiagonal());
  q.noalias() += alpha_ * mean_bar.transpose();
  q.array() *= prediction.cross.slope.array();
  const VectorXd sums = q.colwise().sum();
  const VectorXd inverse2 = (-2 * theta_.values.head(inputs_.numeric())).array().exp();
  MatrixXd gradient = sums.asDiagonal() * points.x;
  gradient.noalias() -= q.transpose() * inputs_.x;
  return 2 * gradient * inverse2.asDiagonal();
}

VectorXd Posterior::LeaveOneOut() const {
  const VectorXd precision = inverse_.colwise().squaredNorm();
  return y_.col(0) - alpha_.col(0).cwiseQuotient(precision);
}

}  // namespace shirabe::suggestion::gp
