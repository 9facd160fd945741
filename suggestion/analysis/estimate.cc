#include "suggestion/analysis/estimate.h"

#include <algorithm>
#include <cmath>
#include <vector>

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

}  // namespace shirabe::suggestion::analysis
