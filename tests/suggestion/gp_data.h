// Data for tests of suggestion/gp: random points with values, in spaces of numbers and categories.
#pragma once

#include <cmath>

#include "base/rng.h"
#include "suggestion/gp/gaussian_process.h"
#include "suggestion/gp/scored_results.h"

namespace shirabe::suggestion::gp {

struct Shape {
  int n, numeric, categorical;
};

inline Inputs RandomInputs(const Shape& shape, uint64_t seed) {
  Rng rng(seed);
  Inputs inputs{Eigen::MatrixXd(shape.n, shape.numeric),
                Eigen::MatrixXd(shape.n, shape.categorical)};
  for (double& x : inputs.x.reshaped()) x = rng.Uniform();
  for (double& u : inputs.u.reshaped()) u = static_cast<double>(rng.Below(3));
  return inputs;
}

inline Eigen::VectorXd ValuesAt(const Inputs& inputs) {
  Eigen::VectorXd y = Eigen::VectorXd::Zero(inputs.rows());
  for (Eigen::Index i = 0; i < y.size(); ++i) {
    for (int j = 0; j < inputs.numeric(); ++j) y[i] += std::sin(5 * inputs.x(i, j) + j);
    for (int j = 0; j < inputs.categorical(); ++j) y[i] += 0.3 * inputs.u(i, j) * (j + 1);
  }
  return Standardize(y);
}

// Some θ away from the default.
inline Theta RandomTheta(const Shape& shape, uint64_t seed) {
  Rng rng(seed);
  Theta theta = DefaultTheta(shape.numeric, shape.categorical);
  for (double& t : theta.values) t += rng.Uniform() - 0.5;
  return theta;
}

inline const Shape kShapes[] = {{12, 3, 0}, {12, 0, 2}, {15, 2, 2}, {30, 5, 1}, {2, 1, 0}};

}  // namespace shirabe::suggestion::gp
