#include "suggestion/analysis/estimate.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/sorting.h"
#include "suggestion/sobol_sequence.h"

namespace shirabe::suggestion::analysis {
namespace {

using Eigen::Index;

constexpr double kTail = 0.05;             // on each side of a band
constexpr double kAffordable = 6'000'000;  // covariances of two points

// The column of an axis in Inputs, among the numbers or among the categories.
struct Place {
  bool numeric;
  int column;
};

Place PlaceOf(const gp::InputLayout& layout, int axis) {
  const auto find = [axis](const std::vector<int>& axes) {
    return static_cast<int>(std::find(axes.begin(), axes.end(), axis) - axes.begin());
  };
  const int column = find(layout.numeric());
  if (column < static_cast<int>(layout.numeric().size())) return {true, column};
  return {false, find(layout.categorical())};
}

// Of values in order: that at place `share` (m + 1), counted from 1; the first or the last beyond.
double AtPlace(const std::vector<double>& ordered, double share) {
  const auto m = static_cast<double>(ordered.size());
  const double place = std::clamp(share * (m + 1), 1.0, m) - 1;
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, ordered.size() - 1);
  return ordered[below] + (place - std::floor(place)) * (ordered[above] - ordered[below]);
}

}  // namespace

Estimate EstimateOf(const Eigen::VectorXd& values) {
  Estimate estimate{values[0], values[0], values[0]};
  if (values.size() == 1) return estimate;
  std::vector<double> draws(values.begin() + 1, values.end());
  std::sort(draws.begin(), draws.end());
  estimate.low = std::min(estimate.value, AtPlace(draws, kTail));
  estimate.high = std::max(estimate.value, AtPlace(draws, 1 - kTail));
  return estimate;
}

gp::Inputs Spread(const gp::InputLayout& layout, const SampleSize& size, uint64_t seed) {
  const int d = layout.space().size();
  const int wanted = d * size.blocks;
  const SobolSequence sequence(std::min(wanted, SobolSequence::kMaxDimensions));
  gp::Inputs points = layout.Empty(size.points);
  Point point(d);
  for (Index i = 0; i < size.points; ++i) {
    std::vector<double> unit = sequence.At(static_cast<uint64_t>(i), seed);
    Rng rest = Rng(seed).Fork(static_cast<uint64_t>(i));
    while (static_cast<int>(unit.size()) < wanted) unit.push_back(rest.Uniform());
    for (int j = 0; j < d; ++j) {
      const double u = unit[size.block * d + j];
      const Axis& axis = layout.space().axis(j);
      point[j] = axis.categorical()  ? std::floor(u * static_cast<double>(axis.levels()))
                 : axis.continuous() ? u
                                     : axis.Canonical(u);
    }
    layout.Set(points, i, point);
  }
  return points;
}

Eigen::MatrixXd ValuesAt(const gp::InputLayout& layout, const Functions& functions,
                         gp::Inputs points) {
  layout.Neutralize(points);
  return functions(points);
}

Index AffordablePoints(Index cost, double times, Index least, Index most) {
  Index points = most;
  const double each = times * static_cast<double>(std::max<Index>(cost, 1));
  while (points > least && static_cast<double>(points) * each > kAffordable) points /= 2;
  return points;
}

void CopyAxis(const gp::InputLayout& layout, int axis, const gp::Inputs& from, gp::Inputs& to) {
  const Place place = PlaceOf(layout, axis);
  if (place.numeric) {
    to.x.col(place.column) = from.x.col(place.column);
  } else {
    to.u.col(place.column) = from.u.col(place.column);
  }
}

void SetAxis(const gp::InputLayout& layout, int axis, double coordinate, gp::Inputs& points) {
  const Place place = PlaceOf(layout, axis);
  (place.numeric ? points.x : points.u).col(place.column).setConstant(coordinate);
}

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
  StableSort(rows, [&](Index a, Index b) { return shares_[a] > shares_[b]; });
  rows.resize(std::min<size_t>(rows.size(), count));
  std::sort(rows.begin(), rows.end());
  return rows;
}

}  // namespace shirabe::suggestion::analysis
