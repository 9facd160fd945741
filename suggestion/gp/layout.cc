#include "suggestion/gp/layout.h"

namespace shirabe::suggestion::gp {

Layout::Layout(const Space& space) : space_(space) {
  for (int i = 0; i < space.size(); ++i) {
    (space.axis(i).categorical() ? categorical_ : numeric_).push_back(i);
    discrete_ = discrete_ || !space.axis(i).continuous();
  }
}

Inputs Layout::Empty(Eigen::Index rows) const {
  return {Eigen::MatrixXd(rows, numeric_.size()), Eigen::MatrixXd(rows, categorical_.size())};
}

void Layout::Set(Inputs& inputs, Eigen::Index row, const Point& point) const {
  for (int j = 0; j < inputs.numeric(); ++j) inputs.x(row, j) = point[numeric_[j]];
  for (int j = 0; j < inputs.categorical(); ++j) inputs.u(row, j) = point[categorical_[j]];
}

Inputs Layout::From(const std::vector<Point>& points) const {
  Inputs inputs = Empty(static_cast<Eigen::Index>(points.size()));
  for (size_t i = 0; i < points.size(); ++i) Set(inputs, static_cast<Eigen::Index>(i), points[i]);
  return inputs;
}

Point Layout::ToPoint(const Inputs& inputs, Eigen::Index row) const {
  Point point(space_.size());
  for (int j = 0; j < inputs.numeric(); ++j) point[numeric_[j]] = inputs.x(row, j);
  for (int j = 0; j < inputs.categorical(); ++j) point[categorical_[j]] = inputs.u(row, j);
  return point;
}

void Layout::Round(Inputs& inputs) const {
  for (int j = 0; j < inputs.numeric(); ++j) {
    const Axis& axis = numeric_axis(j);
    if (axis.continuous()) continue;
    for (double& value : inputs.x.col(j)) value = axis.Canonical(value);
  }
}

}  // namespace shirabe::suggestion::gp
