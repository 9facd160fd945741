// Parameters that a Gaussian process may have, after its observations. Pure; any thread.
//
// The most probable ones of all trials are those of the crowd where the search has stayed: what is
// flat there is taken to be flat everywhere, and nothing but the few trials outside speaks against
// it. So each draw is fitted to another sample of the trials, by the share of the space that each
// stands for. Their spread is both how little the trials tell of the parameters, and how far a
// stationary process is from being true.
//
//   n   trials    e   how many that are spread evenly they are worth (Crowding::even)
//   m   trials drawn for a sample, e · e / n, and 4 at least
//
// Trials that are spread evenly are all drawn for (m = n, each of them perhaps twice, and then
// counted once): J. Huggins, J. Miller, "Reproducible model selection using bagged posteriors",
// Bayesian Analysis 18 (2023). Of trials that crowd, a sample of e has a spread as if the process
// were true; it is the less so the fewer of them stand for the space, since the crowd and the rest
// then differ, so that e is cut by that share, e / n. Samples smaller than what is known give what
// is drawn from them the spread that full ones lack: P. Bickel, F. Götze, W. van Zwet, "Resampling
// fewer than n observations", Statistica Sinica 7 (1997). bench/RESULTS.md has what it does for the
// bands: of trained networks they hold 89 % in place of 75 %.
#pragma once

#include <vector>

#include "suggestion/analysis/crowding.h"
#include "suggestion/gp/gaussian_process.h"

namespace shirabe::suggestion::analysis {

// One for each generator; those of `fitted` are the most probable ones, `y` its targets.
std::vector<gp::Theta> DrawThetas(const gp::InputLayout& layout, const gp::Posterior& fitted,
                                  const Eigen::VectorXd& y, const std::vector<Rng>& rngs);

}  // namespace shirabe::suggestion::analysis
