#include "suggestion/analysis/crowding.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace shirabe::suggestion::analysis {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr Index kFewestSampled = 512, kMostSampled = 1024;
constexpr Index kBatchOfSample = 64;  // whose distances are in memory together
constexpr uint64_t kSpaceSeed = 4, kEvenSeed = 5;
// Squared distance of two categories that differ: two numbers by chance are 1/6 apart, and two of
// three categories, mostly different.
constexpr double kCategoryDistance = 0.25;

// How many of the sample are nearest to each of the inputs.
VectorXd NearestCounts(const gp::Inputs& sample, const gp::Inputs& inputs) {
  VectorXd counts = VectorXd::Zero(inputs.rows());
  const VectorXd squares = inputs.x.rowwise().squaredNorm();
  MatrixXd distances;  // but for what is the same for all inputs
  for (Index begin = 0; begin < sample.rows(); begin += kBatchOfSample) {
    const gp::Inputs batch = sample.Rows(begin, std::min(kBatchOfSample, sample.rows() - begin));
    distances.setZero(inputs.rows(), batch.rows());
    if (inputs.numeric() > 0) {
      distances.noalias() = -2 * inputs.x * batch.x.transpose();
      distances.colwise() += squares;
    }
    for (Index i = 0; i < batch.rows(); ++i) {
      auto column = distances.col(i);
      for (int c = 0; c < inputs.categorical(); ++c) {
        const auto differs = inputs.u.col(c).array() != batch.u(i, c);
        column.array() += differs.cast<double>() * kCategoryDistance;
      }
      // Twice as fast as minCoeff with its place.
      counts[std::find(column.begin(), column.end(), column.minCoeff()) - column.begin()] += 1;
    }
  }
  return counts;
}

// Σ w², from counts of a sample, without what the sample adds by chance.
double SumOfSquares(const VectorXd& counts) {
  const double size = counts.sum();
  return (counts.squaredNorm() - size) / (size * (size - 1));
}

}  // namespace

Crowding::Crowding(const gp::InputLayout& layout, const gp::Inputs& inputs) {
  const Index n = inputs.rows();
  const auto points = [&](Index count, uint64_t seed) {
    gp::Inputs spread = Spread(layout, {count, 0, 1}, seed);
    layout.Neutralize(spread);
    return spread;
  };
  const gp::Inputs sample = points(n <= 128 ? kFewestSampled : kMostSampled, kSpaceSeed);
  const VectorXd counts = NearestCounts(sample, inputs);
  shares_ = counts / counts.sum();
  const double spread = SumOfSquares(NearestCounts(sample, points(n, kEvenSeed)));
  const double ratio = spread / std::max(SumOfSquares(counts), 1e-12);
  even_ = std::clamp<Index>(std::lround(ratio * static_cast<double>(n)), 1, n);
}

std::vector<Index> Crowding::Sample(Index count, Rng& rng) const {
  VectorXd sums = shares_;
  std::partial_sum(sums.begin(), sums.end(), sums.begin());
  std::vector<Index> rows;
  for (Index i = 0; i < count; ++i) {
    const auto at =
        std::upper_bound(sums.begin(), sums.end(), rng.Uniform() * sums[sums.size() - 1]);
    rows.push_back(std::min<Index>(at - sums.begin(), sums.size() - 1));
  }
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

std::vector<Index> Crowding::Largest(Index count) const {
  std::vector<Index> rows(shares_.size());
  std::iota(rows.begin(), rows.end(), 0);
  std::stable_sort(rows.begin(), rows.end(),
                   [&](Index a, Index b) { return shares_[a] > shares_[b]; });
  rows.resize(std::min<size_t>(rows.size(), count));
  std::sort(rows.begin(), rows.end());
  return rows;
}

}  // namespace shirabe::suggestion::analysis
