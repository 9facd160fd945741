// What one generation of CMA-ES is worth: the weights of its members by rank, and the learning
// rates that follow from them. Used by suggestion/cma.h. Pure functions.
//
//   n        members of the generation                   d    dimensions
//   r_i      rank of member i, 1 = best; equal losses share the mean of their ranks
//   w_i      weight; those of the better half are positive and add up to 1 (Σ⁺), the others are
//            negative: the "active" update
//   μ_eff    1 / Σ⁺ w_i², how many members the mean is effectively made of
//   c_σ, d_σ rate and damping of the step size           c_c  rate of the path of C
//   c_1, c_μ rates of the rank-one and rank-μ update of C
//
// N. Hansen, "The CMA Evolution Strategy: A Tutorial" (2016, arXiv 1604.00772), equations 49–58 and
// Table 1. n is that of the generation at hand, which may have more members than asked for, so
// everything is made anew for each. Separable: c_1 and c_μ times (d + 2) / 3, Ros & Hansen 2008.
#pragma once

#include <Eigen/Core>
#include <vector>

namespace shirabe::suggestion {

struct CmaWeights {
  Eigen::VectorXd w;  // by member, not by rank
  double mu_eff = 0;
  double c_sigma = 0, d_sigma = 0;
  double c_c = 0, c_1 = 0, c_mu = 0;
  // Whether the ranks prefer anything: false where all are equal, and then the rest is void.
  bool informative = false;
};

CmaWeights MakeCmaWeights(const Eigen::VectorXd& ranks, int dimensions, bool separable);

// The ranks of `keys`, ascending, 1-based; equal keys get the mean of the ranks that they take up.
Eigen::VectorXd AverageRanks(const std::vector<double>& keys);

}  // namespace shirabe::suggestion
