// Histories of known functions, for tests and benchmarks of suggestion/analysis.
#pragma once

#include <cmath>
#include <functional>
#include <numbers>
#include <string>
#include <vector>

#include "base/rng.h"
#include "suggestion/analysis/estimate.h"
#include "suggestion/history.h"
#include "tests/suggestion/spaces.h"

namespace shirabe::suggestion::analysis {

using Loss = std::function<double(const Point&)>;

inline Space Reals(int count) {
  std::vector<v1::ParameterSpec> parameters;
  for (int i = 0; i < count; ++i) parameters.push_back(Double("x" + std::to_string(i), {0, 1}));
  return Make(parameters);
}

// `count` trials at points drawn by their distributions.
inline History RandomHistory(const Space& space, int count, const Loss& loss, uint64_t seed = 1) {
  History history(space);
  Rng rng(seed);
  for (int i = 0; i < count; ++i) {
    const Point point = space.Sample(rng);
    history.Add(point, {.state = TrialState::kCompleted, .loss = loss(point)});
  }
  return history;
}

// The function itself, in place of what a process makes of it: of spaces of numbers.
inline Functions Exactly(const gp::InputLayout& layout, const Loss& loss) {
  return [&layout, loss](const gp::Inputs& inputs) {
    Eigen::MatrixXd values(inputs.rows(), 1);
    for (Eigen::Index i = 0; i < inputs.rows(); ++i) {
      values(i, 0) = loss(layout.ToPoint(inputs, i));
    }
    return values;
  };
}

// T. Ishigami, T. Homma (1990), with a = 7 and b = 0.1, on [-π, π]³.
inline double Ishigami(const Point& point) {
  const auto angle = [&](int j) { return std::numbers::pi * (2 * point[j] - 1); };
  const double s1 = std::sin(angle(0)), s2 = std::sin(angle(1));
  return s1 + 7 * s2 * s2 + 0.1 * std::pow(angle(2), 4) * s1;
}

// The g-function: I. Sobol (1993).
inline double GFunction(const Point& point, const std::vector<double>& a) {
  double product = 1;
  for (size_t j = 0; j < a.size(); ++j) product *= (std::abs(4 * point[j] - 2) + a[j]) / (1 + a[j]);
  return product;
}

}  // namespace shirabe::suggestion::analysis
