// Which of the observed points to use in the end: the best observed one, unless a Gaussian process
// is sure that it was lucky. Pure; any thread.
//
//   y_i   warped score of point i       μ_i, K⁺  posterior mean and covariance of the function
//   there b     the best observed, argmax y   r        the best in the mean, argmax μ s deviation
//   of f(r) - f(b), √(K⁺_rr + K⁺_bb - 2 K⁺_rb)
//
// Of many noisy results the best one is also the luckiest: the winner's curse. r is recommended in
// place of b if μ_r - μ_b > 2 s, so that f(r) is better with a probability of 98 %. Less would not
// do: where results are exact, y_b is the truth, and a process that fits badly takes what it cannot
// explain for noise; bench/RESULTS.md has the figures.
#pragma once

#include <Eigen/Dense>
#include <optional>

#include "suggestion/gp/surrogate.h"

namespace shirabe::suggestion::gp {

struct Recommended {
  Eigen::Index best = 0;   // b
  Eigen::Index point = 0;  // r
  double score = 0;        // predicted at r
  double deviation = 0;    // of that prediction, in units of scores
  double at_best = 0;      // the score predicted at b
};

// `scores`: those that `surrogate` was learned from. nullopt: the best observed one.
std::optional<Recommended> Recommend(const Surrogate& surrogate, const Eigen::VectorXd& scores);

}  // namespace shirabe::suggestion::gp
