// Where CMA-ES begins: in the middle of the cube, anywhere, or where earlier trials were good, of
// this experiment or of another one over the same space. Called by suggestion/cma_search.h. Pure.
//
//   x_i      coordinates of trial i in [0, 1]^d           N    trials with a loss
//   γ        0.1, the share of the best taken as a sample of the promising distribution
//   α        0.1, how far around each of them the optimum is thought to be
//   m*, Σ*   mean of the ⌊γN⌋ best, and α² I + their covariance
//
// M. Nomura, S. Watanabe, Y. Akimoto, Y. Ozaki, M. Onishi, "Warm Starting CMA-ES for Hyperparameter
// Optimization" (AAAI 2021), equations 7 and 8: the normal distribution nearest to the promising
// one, in the sense of Kullback and Leibler; m = m*, σ² C = Σ*, det C = 1.
#pragma once

#include <Eigen/Core>
#include <vector>

#include "suggestion/cma.h"

namespace shirabe::suggestion {

// Trials with finite losses, one column and one number each.
struct CmaSource {
  Eigen::MatrixXd points;  // d × N
  std::vector<double> losses;
};

// The indices of the ⌊γN⌋ best, best first; the one best if there are fewer than 1/γ; none of none.
std::vector<int> Promising(const std::vector<double>& losses);

// m* and Σ*. Fewer than 1/γ trials tell where to begin but not how far to look: their best is the
// mean, and σ is `sigma`. Without any trial the mean is the middle.
CmaStart WarmStart(const CmaSource& source, double sigma);

}  // namespace shirabe::suggestion
