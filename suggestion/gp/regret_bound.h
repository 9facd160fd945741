// How much the best result may still be improved, as the Gaussian process of the results sees it:
// when to end a search. Called by the algorithms that have such a process. Pure; any thread.
//
//   y        warped score, larger is better           X, G   all points; those with a result
//   μ, σ     of the function at a point, without the noise of a result
//   κ        1.96, as that of the acquisition function LCB
//
//   r̄ = max over X of (μ + κσ) - max over G of (μ - κσ)
//
// A. Makarova et al., "Automatic termination for hyperparameter optimization" (AutoML 2022), (4),
// here for a maximum, and both terms in units of the objective before their difference is taken.
// Where κ bounds the function at every point, r̄ bounds the simple regret.
#pragma once

#include <cstdint>
#include <optional>

#include "base/rng.h"
#include "suggestion/history.h"

namespace shirabe::suggestion::gp {

// `initial`: so many trials were chosen without looking at results. nullopt while there are fewer
// than three results, or none that differ, or where they differ by more than a number can say.
std::optional<double> BoundRegret(const History& history, int64_t initial, const Rng& root);

}  // namespace shirabe::suggestion::gp
