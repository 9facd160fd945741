#include "suggestion/cma_layout.h"

#include <algorithm>
#include <cmath>

namespace shirabe::suggestion {
namespace {

// The boundary of the shares of levels `k` and `k + 1`, to a thousandth of their distance.
double Edge(const Axis& axis, uint64_t k) {
  double low = axis.Coordinate(k);
  double high = axis.Coordinate(k + 1);
  for (int i = 0; i < 10; ++i) {
    const double middle = (low + high) / 2;
    (axis.Level(middle) <= k ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

CmaLayout::CmaLayout(const Space& space) {
  for (int i = 0; i < space.size(); ++i) {
    if (space.axis(i).categorical()) {
      categorical.push_back(i);
      shape.categories.push_back(static_cast<int>(space.axis(i).levels()));
    } else {
      numeric.push_back(i);
      shape.continuous.push_back(space.axis(i).continuous());
    }
  }
}

Point CmaLayout::PointOf(const Space& space, const CmaDraw& draw) const {
  Point point(space.size());
  for (size_t k = 0; k < numeric.size(); ++k) {
    point[numeric[k]] = std::clamp(draw.x[static_cast<Eigen::Index>(k)], 0.0, 1.0);
  }
  for (size_t k = 0; k < categorical.size(); ++k) {
    point[categorical[k]] = draw.categories[static_cast<Eigen::Index>(k)];
  }
  return space.Canonical(point);
}

Eigen::VectorXd CmaLayout::Numbers(const Point& point) const {
  Eigen::VectorXd x(numeric.size());
  for (Eigen::Index k = 0; k < x.size(); ++k) x[k] = point[numeric[k]];
  return x;
}

Eigen::VectorXi CmaLayout::Categories(const Point& point) const {
  Eigen::VectorXi categories(categorical.size());
  for (Eigen::Index k = 0; k < categories.size(); ++k) {
    categories[k] = static_cast<int>(point[categorical[k]]);
  }
  return categories;
}

bool CmaLayout::Gives(const CmaDraw& draw, const History& history, int64_t index) const {
  constexpr double kRounding = 1e-9;  // more than the codec ever moves a coordinate
  for (size_t k = 0; k < categorical.size(); ++k) {
    const double tried = history.coordinate(index, categorical[k]);
    if (draw.categories[static_cast<Eigen::Index>(k)] != tried) return false;
  }
  for (size_t k = 0; k < numeric.size(); ++k) {
    const Axis& axis = history.space().axis(numeric[k]);
    const double tried = history.coordinate(index, numeric[k]);
    const double drawn = std::clamp(draw.x[static_cast<Eigen::Index>(k)], 0.0, 1.0);
    const bool same = axis.continuous() ? std::abs(drawn - tried) <= kRounding
                                        : axis.Level(drawn) == axis.Level(tried);
    if (!same) return false;
  }
  return true;
}

CmaEdges CmaLayout::EdgesOf(const Space& space, int coordinate, double mean) const {
  const Axis& axis = space.axis(numeric[coordinate]);
  const uint64_t level = axis.Level(std::clamp(mean, 0.0, 1.0));
  CmaEdges edges;
  if (level > 0) edges.below = Edge(axis, level - 1);
  if (level + 1 < axis.levels()) edges.above = Edge(axis, level);
  return edges;
}

}  // namespace shirabe::suggestion
