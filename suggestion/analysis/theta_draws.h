// Parameters that a Gaussian process may have, after its observations. Pure; any thread.
//
// The most probable ones of all trials are those of the crowd where the search has stayed: what is
// flat there is taken to be flat everywhere, and nothing but the few trials outside speaks against
// it. So each draw is fitted to another sample of the trials, by the share of the space that each
// stands for, and as large as the space is covered evenly. Their spread is both how little the
// trials tell of the parameters, and how far a stationary process is from being true:
// J. Huggins, J. Miller, "Reproducible model selection using bagged posteriors", Bayesian Analysis
// 18 (2023). bench/RESULTS.md has what it does for the bands.
#pragma once

#include <vector>

#include "suggestion/analysis/crowding.h"
#include "suggestion/gp/gaussian_process.h"

namespace shirabe::suggestion::analysis {

// One for each generator; those of `fitted` are the most probable ones, `y` its targets.
std::vector<gp::Theta> DrawThetas(const gp::InputLayout& layout, const gp::Posterior& fitted,
                                  const Eigen::VectorXd& y, const std::vector<Rng>& rngs);

}  // namespace shirabe::suggestion::analysis
