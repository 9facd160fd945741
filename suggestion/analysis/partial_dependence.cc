#include "suggestion/analysis/partial_dependence.h"

#include <algorithm>

namespace shirabe::suggestion::analysis {
namespace {

using Eigen::Index;

constexpr int kMaxValues = 41, kMaxValuesOfPair = 17;
constexpr Index kFewestAveraged = 64, kMostAveraged = 256;
constexpr uint64_t kGridSampleSeed = 3;

// The rows at which these parameters exist; all, if they do at none.
gp::Inputs WhereAllExist(const gp::InputLayout& layout, const std::vector<int>& axes,
                         const gp::Inputs& points) {
  if (!layout.space().has_rules()) return points;
  std::vector<Point> chosen;
  for (Index i = 0; i < points.rows(); ++i) {
    Point point = layout.ToPoint(points, i);
    const std::vector<bool> active = layout.space().Active(point);
    const auto exists = [&](int axis) { return active[axis]; };
    if (std::all_of(axes.begin(), axes.end(), exists)) chosen.push_back(std::move(point));
  }
  return chosen.empty() ? points : layout.From(chosen);
}

}  // namespace

GridAxis GridOf(const gp::InputLayout& layout, int axis, int most) {
  const Axis& values = layout.space().axis(axis);
  const auto wanted = static_cast<uint64_t>(most);
  const uint64_t levels = values.levels();
  GridAxis grid{.axis = axis};
  if (values.continuous()) {
    for (int i = 0; i < most; ++i) grid.coordinates.push_back(static_cast<double>(i) / (most - 1));
    return grid;
  }
  const uint64_t count = std::min(wanted, levels);
  const bool all = values.categorical() || levels <= wanted;
  for (uint64_t k = 0; k < count; ++k) {
    const double place = static_cast<double>(k) / static_cast<double>(std::max(wanted, 2UL) - 1);
    grid.coordinates.push_back(
        all ? values.Coordinate(k)
            : values.Coordinate(static_cast<uint64_t>(place * static_cast<double>(levels - 1))));
  }
  grid.left_out = levels - count;
  return grid;
}

PartialDependence PartialDependenceOf(const gp::InputLayout& layout, const Functions& functions,
                                      const std::vector<int>& axes, Index cost) {
  CHECK(axes.size() == 1 || (axes.size() == 2 && axes[0] != axes[1]));
  const int most = axes.size() == 1 ? kMaxValues : kMaxValuesOfPair;
  PartialDependence dependence;
  double cells = 1;
  for (const int axis : axes) {
    dependence.axes.push_back(GridOf(layout, axis, most));
    cells *= static_cast<double>(dependence.axes.back().coordinates.size());
  }
  // The same points for every value: what they are by chance is in all of them alike.
  const Index count = AffordablePoints(cost, cells, kFewestAveraged, kMostAveraged);
  gp::Inputs points = Spread(layout, {count, 0, 1}, kGridSampleSeed);
  const auto add = [&] {
    const Eigen::MatrixXd losses = ValuesAt(layout, functions, WhereAllExist(layout, axes, points));
    dependence.losses.push_back(EstimateOf(losses.colwise().mean().transpose()));
  };
  for (const double first : dependence.axes[0].coordinates) {
    SetAxis(layout, axes[0], first, points);
    if (axes.size() == 1) {
      add();
      continue;
    }
    for (const double second : dependence.axes[1].coordinates) {
      SetAxis(layout, axes[1], second, points);
      add();
    }
  }
  return dependence;
}

}  // namespace shirabe::suggestion::analysis
