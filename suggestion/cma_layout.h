// Which parameter of a space is which coordinate of a search by CMA-ES, and the way between their
// points. Used by suggestion/cma_replay.h and suggestion/algorithms/cmaes.cc. Immutable, any
// thread.
//
// Numeric parameters, lists of numbers too, are coordinates in [0, 1] as the space has them, so
// that a distribution of the specification is already in them; categories are indices. A draw of
// the search may lie outside of the cube: the point tried is the nearest one inside.
#pragma once

#include <Eigen/Core>
#include <vector>

#include "suggestion/cma_search.h"
#include "suggestion/history.h"
#include "suggestion/space.h"

namespace shirabe::suggestion {

struct CmaLayout {
  explicit CmaLayout(const Space& space);

  // The canonical point that a draw stands for.
  Point PointOf(const Space& space, const CmaDraw& draw) const;
  // Whether `draw` stands for the point of trial `index`, up to the rounding of the codec.
  bool Gives(const CmaDraw& draw, const History& history, int64_t index) const;
  // The two parts of a point.
  Eigen::VectorXd Numbers(const Point& point) const;
  Eigen::VectorXi Categories(const Point& point) const;
  // The edges of the level of a stepped coordinate that `mean` lies in, to a thousandth of it.
  CmaEdges EdgesOf(const Space& space, int coordinate, double mean) const;

  std::vector<int> numeric, categorical;  // parameters, by coordinate
  CmaShape shape;
};

}  // namespace shirabe::suggestion
