// How far from the incumbent to look: a box that grows while it finds better points and shrinks
// while it does not, replayed from the results in the order of the trials. D. Eriksson et al.,
// "Scalable global optimization via local Bayesian optimization", NeurIPS 2019, section 3, with one
// box, whose centre is the best point, and which starts again when it has become too small. Pure;
// any thread.
//
//   L   side of the box before it is shaped by the lengths ℓ of the process, in units of the cube
#pragma once

#include <Eigen/Dense>

#include "suggestion/gp/lbfgs.h"

namespace shirabe::suggestion::gp {

// L after `scores` (larger is better; -infinity = it failed) of a space of `dimensions`, the first
// `initial` of which were not chosen by looking at the box.
double TrustRegionSide(const Eigen::VectorXd& scores, int dimensions, Eigen::Index initial);

// The box of side L around `centre`, longer where the function is flatter, within the unit cube.
Box TrustRegion(double side, const Eigen::VectorXd& centre, const Eigen::ArrayXd& lengths);

}  // namespace shirabe::suggestion::gp
