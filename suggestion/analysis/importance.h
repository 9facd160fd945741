// Which parameters matter, of a history: by the Sobol indices of the fitted process (the default),
// or by PED-ANOVA, which asks another question. Pure; any thread.
#pragma once

#include <vector>

#include "suggestion/analysis/fitted_history.h"
#include "suggestion/analysis/sobol_indices.h"

namespace shirabe::suggestion::analysis {

// kTooFewTrials for all where the process explains nothing: its draws then show its prior; and
// below a dozen results, however sure it is. That a parameter does not matter is said only where it
// was tried all over: a search that stays where the objective is best sees little of what lies
// elsewhere, and its process is sure of what it has not seen. A band that would begin below
// kNegligible begins at 0: no draw is of a parameter that does nothing at all, and many do.
std::vector<ParameterImportance> Importances(const FittedHistory& history);

// PED-ANOVA: how differently the best trials are distributed from all of them, one parameter at a
// time. It needs no model, costs next to nothing, sees no interaction, and tells what separates the
// best tenth, not what the objective depends on.
//
//   D, D'   the trials with a result; the best tenth of them (γ'), with what is equally good
//   p, p'   their densities on at most 50 steps of the axis: one kernel for each step that was
//           visited, with the number of its trials, and a wide one, the prior, of weight 1
//   σ       1.059 min(s, IQR / 1.34) n^(-1/5), Scott's rule, and at least 0.5 / 1.64 steps
//
//   importance_j = (|D'| / |D|)² Σ_x p(x) (p'(x) / p(x) - 1)²
//
// S. Watanabe, A. Bansal, F. Hutter, "PED-ANOVA: efficiently quantifying hyperparameter importance
// in arbitrary subspaces", IJCAI 2023, theorem 1, with γ = 1. The grid, the kernels and the prior
// are those of Optuna, so that the figures are the same.
struct PedAnova {
  std::vector<double> importances;  // as above; their sum is what is shared
  int64_t best = 0;                 // |D'|
};
// Of a history with two different results.
PedAnova PedAnovaOf(const History& history);

}  // namespace shirabe::suggestion::analysis
