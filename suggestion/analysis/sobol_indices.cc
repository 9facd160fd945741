#include "suggestion/analysis/sobol_indices.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace shirabe::suggestion::analysis {
namespace {

using Eigen::ArrayXd;
using Eigen::Index;
using Eigen::MatrixXd;

constexpr uint64_t kIndexSampleSeed = 1;

// Of shares, which are small: std::hypot needs glibc 2.35.
double Length(double a, double b) { return std::sqrt(a * a + b * b); }

ArrayXd ColumnMeans(const MatrixXd& values) { return values.colwise().mean().array(); }

constexpr Index kQuarters = 4;
constexpr double kStudent = 2.353;  // 95 % quantile of Student's t with 3 degrees of freedom

// What is seen of functions (columns) at the points, to be divided: squares about the mean.
struct Sampled {
  MatrixXd squares;
  ArrayXd variance;  // their means; 0 of a constant
};

// By how much a share of the first function may be wrong for want of points, with 90 %.
double SamplingError(const MatrixXd& parts, const Sampled& sampled, double share) {
  const Index size = parts.rows() / kQuarters;
  double sum = 0;
  for (Index i = 0; i < kQuarters; ++i) {
    const auto rows = Eigen::seqN(i * size, size);
    const double error = parts(rows, 0).mean() - share * sampled.squares(rows, 0).mean();
    sum += error * error;
  }
  return kStudent * std::sqrt(sum / (kQuarters * (kQuarters - 1))) / sampled.variance[0];
}

// The means of `parts` over the variance, within [0, 1]; 0 where there is none.
Estimate Share(const MatrixXd& parts, const Sampled& sampled) {
  const ArrayXd& variance = sampled.variance;
  const ArrayXd shares = (variance > 0).select(ColumnMeans(parts) / variance, 0);
  Estimate estimate = EstimateOf(shares.max(0).min(1));
  if (!(variance[0] > 0)) return estimate;
  const double error = SamplingError(parts, sampled, shares[0]), value = estimate.value;
  estimate.low = std::max(0.0, value - Length(value - estimate.low, error));
  estimate.high = std::min(1.0, value + Length(estimate.high - value, error));
  return estimate;
}

}  // namespace

std::vector<SobolIndex> SobolIndices(const gp::InputLayout& layout, const Functions& functions,
                                     Index points) {
  const gp::Inputs a = Spread(layout, {points, 0, 2}, kIndexSampleSeed);
  const gp::Inputs b = Spread(layout, {points, 1, 2}, kIndexSampleSeed);
  MatrixXd at_a = ValuesAt(layout, functions, a), at_b = ValuesAt(layout, functions, b);
  // About the mean, so that rounding does not make a variance of a large constant.
  const ArrayXd mean = (ColumnMeans(at_a) + ColumnMeans(at_b)) / 2;
  at_a.rowwise() -= mean.matrix().transpose();
  at_b.rowwise() -= mean.matrix().transpose();
  Sampled sampled{(at_a.cwiseAbs2() + at_b.cwiseAbs2()) / 2, {}};
  sampled.variance = ColumnMeans(sampled.squares);
  // What rounding alone makes of a constant is no variance.
  const ArrayXd least = (1e-12 * mean.abs()).square();
  sampled.variance = (sampled.variance > least).select(sampled.variance, 0);
  std::vector<SobolIndex> indices;
  for (int j = 0; j < layout.space().size(); ++j) {
    gp::Inputs mixed = a;
    CopyAxis(layout, j, b, mixed);
    MatrixXd change = ValuesAt(layout, functions, mixed);
    change.rowwise() -= mean.matrix().transpose();
    change -= at_a;
    indices.push_back({.total = Share(change.cwiseAbs2() / 2, sampled),
                       .first = Share(at_b.cwiseProduct(change), sampled)});
  }
  return indices;
}

}  // namespace shirabe::suggestion::analysis
