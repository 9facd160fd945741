#include "suggestion/cma_start.h"

#include <Eigen/Cholesky>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace shirabe::suggestion {
namespace {

constexpr int kOneIn = 10;       // 1/γ
constexpr double kAround = 0.1;  // α

// Σ* = (1/n) Σ (x − m*)(x − m*)ᵀ + α² I.
Eigen::MatrixXd Covariance(const Eigen::MatrixXd& best, const Eigen::VectorXd& mean) {
  const Eigen::MatrixXd centred = best.colwise() - mean;
  Eigen::MatrixXd covariance = centred * centred.transpose() / static_cast<double>(best.cols());
  covariance.diagonal().array() += kAround * kAround;
  return covariance;
}

}  // namespace

std::vector<int> Promising(const std::vector<double>& losses) {
  std::vector<int> order(losses.size());
  std::iota(order.begin(), order.end(), 0);
  const size_t kept = std::min(losses.size(), std::max<size_t>(1, losses.size() / kOneIn));
  std::partial_sort(
      order.begin(), order.begin() + static_cast<int64_t>(kept), order.end(),
      [&losses](int a, int b) { return losses[a] != losses[b] ? losses[a] < losses[b] : a < b; });
  order.resize(kept);
  return order;
}

CmaStart WarmStart(const CmaSource& source, double sigma) {
  const Eigen::Index d = source.points.rows();
  const std::vector<int> promising = Promising(source.losses);
  if (promising.empty()) return {.mean = Eigen::VectorXd::Constant(d, 0.5), .sigma = sigma};
  if (source.losses.size() < kOneIn) {
    return {.mean = source.points.col(promising[0]), .sigma = sigma};
  }
  Eigen::MatrixXd best(d, promising.size());
  for (size_t i = 0; i < promising.size(); ++i) {
    best.col(static_cast<Eigen::Index>(i)) = source.points.col(promising[i]);
  }
  const Eigen::VectorXd mean = best.rowwise().mean();
  const Eigen::MatrixXd covariance = Covariance(best, mean);
  // σ^2d = det Σ*, through the Cholesky factor so that many dimensions do not underflow.
  const Eigen::MatrixXd factor = covariance.llt().matrixL();
  const double scale = std::exp(factor.diagonal().array().log().mean());
  return {.mean = mean, .sigma = scale, .covariance = covariance / (scale * scale)};
}

}  // namespace shirabe::suggestion
