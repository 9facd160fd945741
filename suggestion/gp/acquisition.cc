#include "suggestion/gp/acquisition.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "suggestion/gp/normal_distribution.h"

namespace shirabe::suggestion::gp {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::RowVectorXd;
using Eigen::VectorXd;

constexpr double kConfidence = 1.96;  // deviations, as scikit-optimize's kappa

// Of a label at a point.
double LabelVariance(double of_function, const Posterior& labels) {
  return of_function + labels.theta().noise();
}

}  // namespace

Acquisition::Acquisition(Utility utility, const Posterior& objective, RowVectorXd incumbents,
                         const Posterior* feasibility)
    : utility_(utility),
      objective_(objective),
      incumbents_(std::move(incumbents)),
      feasibility_(feasibility) {}

Acquisition::Score Acquisition::ScoreOf(double mean, double sigma, double incumbent) const {
  if (utility_ == Utility::kUcb) return {mean + kConfidence * sigma, 1, kConfidence};
  const double z = (mean - incumbent) / sigma;
  const Value log = utility_ == Utility::kLogEi ? LogH(z) : LogCdf(z);
  const Score score{log.value, log.slope / sigma, -log.slope * z / sigma};
  if (utility_ == Utility::kLogPi) return score;
  return {score.value + std::log(sigma), score.by_mean, score.by_sigma + 1 / sigma};
}

VectorXd Acquisition::Combine(const Posterior::Prediction& prediction,
                              Derivatives* derivatives) const {
  const Index points = prediction.mean.rows(), scenarios = prediction.mean.cols();
  VectorXd values(points);
  RowVectorXd score(scenarios), by_mean(scenarios), by_sigma(scenarios);
  for (Index i = 0; i < points; ++i) {
    const double sigma = std::sqrt(prediction.variance[i]);
    for (Index k = 0; k < scenarios; ++k) {
      const Score one = ScoreOf(prediction.mean(i, k), sigma, incumbents_[k]);
      score[k] = one.value;
      by_mean[k] = one.by_mean;
      by_sigma[k] = one.by_sigma;
    }
    // The weight of each scenario in the derivative; the mean of logarithms' exponentials, taken
    // about the largest, or the plain mean.
    RowVectorXd weights = RowVectorXd::Constant(scenarios, 1.0 / static_cast<double>(scenarios));
    if (utility_ == Utility::kUcb) {
      values[i] = score.mean();
    } else {
      const double largest = score.maxCoeff();
      const RowVectorXd shares = (score.array() - largest).exp();
      values[i] = largest + std::log(shares.mean());
      weights = shares / shares.sum();
    }
    if (derivatives == nullptr) continue;
    derivatives->mean.row(i) = weights.cwiseProduct(by_mean);
    derivatives->variance[i] = weights.dot(by_sigma) / (2 * sigma);
  }
  return values;
}

VectorXd Acquisition::EvaluateAll(const Inputs& points) const {
  constexpr Index kBlock = 128;
  VectorXd values(points.rows());
  for (Index begin = 0; begin < points.rows(); begin += kBlock) {
    const Index count = std::min(kBlock, points.rows() - begin);
    values.segment(begin, count) = Evaluate(points.Rows(begin, count));
  }
  return values;
}

VectorXd Acquisition::Evaluate(const Inputs& points, MatrixXd* gradient) const {
  const Slopes slopes = gradient != nullptr ? Slopes::kYes : Slopes::kNo;
  const Posterior::Prediction prediction = objective_.Predict(points, slopes);
  VectorXd values;
  if (gradient == nullptr) {
    values = Combine(prediction, nullptr);
  } else {
    Derivatives derivatives{MatrixXd(points.rows(), objective_.scenarios()),
                            VectorXd(points.rows())};
    values = Combine(prediction, &derivatives);
    *gradient = objective_.Pullback(points, prediction, derivatives.mean, derivatives.variance);
  }
  if (feasibility_ != nullptr) AddFeasibility(points, values, gradient);
  return values;
}

void Acquisition::AddFeasibility(const Inputs& points, VectorXd& values, MatrixXd* gradient) const {
  const Slopes slopes = gradient != nullptr ? Slopes::kYes : Slopes::kNo;
  const Posterior::Prediction prediction = feasibility_->Predict(points, slopes);
  MatrixXd by_mean(points.rows(), 1);
  VectorXd by_variance(points.rows());
  for (Index i = 0; i < points.rows(); ++i) {
    const double variance = LabelVariance(prediction.variance[i], *feasibility_);
    const double z = prediction.mean(i, 0) / std::sqrt(variance);
    const Value log = LogCdf(z);
    values[i] += log.value;
    by_mean(i, 0) = log.slope / std::sqrt(variance);
    by_variance[i] = -0.5 * log.slope * z / variance;
  }
  if (gradient != nullptr) {
    *gradient += feasibility_->Pullback(points, prediction, by_mean, by_variance);
  }
}

Eigen::ArrayXd Acquisition::Lengths() const {
  return objective_.theta().Lengths(objective_.inputs().numeric());
}

VectorXd Acquisition::Feasibility(const Inputs& points) const {
  if (feasibility_ == nullptr) return VectorXd::Ones(points.rows());
  const Posterior::Prediction prediction = feasibility_->Predict(points);
  VectorXd probability(points.rows());
  for (Index i = 0; i < points.rows(); ++i) {
    const double variance = LabelVariance(prediction.variance[i], *feasibility_);
    probability[i] = Cdf(prediction.mean(i, 0) / std::sqrt(variance));
  }
  return probability;
}

}  // namespace shirabe::suggestion::gp
