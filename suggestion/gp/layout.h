// Between the points of a search space and the inputs of a Gaussian process: which coordinates are
// numbers, which are categories. Immutable, any thread; holds a copy of the space (cheap).
#pragma once

#include <vector>

#include "suggestion/gp/kernel.h"
#include "suggestion/space.h"

namespace shirabe::suggestion::gp {

class Layout {
 public:
  explicit Layout(const Space& space);

  const Space& space() const { return space_; }
  // Axes of the space, in the order of the columns of Inputs.
  const std::vector<int>& numeric() const { return numeric_; }
  const std::vector<int>& categorical() const { return categorical_; }
  const Axis& numeric_axis(int column) const { return space_.axis(numeric_[column]); }
  const Axis& categorical_axis(int column) const { return space_.axis(categorical_[column]); }
  // Some coordinate takes only certain values.
  bool discrete() const { return discrete_; }

  // `rows` rows to be filled.
  Inputs Empty(Eigen::Index rows) const;
  void Set(Inputs& inputs, Eigen::Index row, const Point& point) const;
  Inputs From(const std::vector<Point>& points) const;
  // Not canonical in its continuous coordinates.
  Point ToPoint(const Inputs& inputs, Eigen::Index row) const;
  // Moves the ordered coordinates to the values that would be tried.
  void Round(Inputs& inputs) const;

 private:
  Space space_;
  std::vector<int> numeric_, categorical_;
  bool discrete_ = false;
};

}  // namespace shirabe::suggestion::gp
