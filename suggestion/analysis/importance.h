// Which parameters matter, of a history: by the Sobol indices of the fitted process (the default),
// or by PED-ANOVA, which asks another question; and which of them brought a gain (ablation). Pure;
// any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "suggestion/analysis/estimate.h"
#include "suggestion/analysis/fitted_history.h"
#include "suggestion/history.h"

namespace shirabe::suggestion::analysis {

// How much each parameter matters: its shares of the variance of the objective over the space, as
// Sobol defined them.
//
//   m      a function: the mean of a process, or a draw    V     its variance over the space
//   A, B   two samples of N points, spread evenly          AB_j  A with coordinate j of B
//
//   S_j    first order: V[E[m | x_j]] / V, what x_j does by itself
//   S_Tj   total: E[V[m | all but x_j]] / V, with all that it does together with others; the sum
//          over the parameters is 1 where there is no interaction, and more otherwise
//
//   S_j  = N⁻¹ Σ (m(B) - m̄)(m(AB_j) - m(A)) / V      A. Saltelli et al., "Variance based
//   S_Tj = ½ N⁻¹ Σ (m(A) - m(AB_j))² / V             sensitivity analysis of model output" (2010),
//                                                    table 2, (b) and (f)
//
// Their spread over the draws of a posterior tells how well they can be known from the trials so
// far: L. Le Gratiet et al., "A Bayesian approach for global sensitivity analysis of
// (multifidelity) computer codes" (2014).
//
// One for each parameter, in the order of the space; all 0 for functions that vary by less than
// 1e-12: their unit is to be about what the results differ by. Costs N (d + 2) evaluations;
// `points`: N, a power of two from 16. A band holds the spread of the draws and, since all of them
// look at the same points, what those miss by chance: told by the quarters of the sample, each of
// which is spread evenly by itself.
std::vector<SobolIndex> SobolIndices(const gp::InputLayout& layout, const Functions& functions,
                                     Eigen::Index points);

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

// What brought the gain: the way from one configuration to a better one, one parameter at a time,
// always the one with the largest gain left.
//
// C. Fawcett, H. Hoos, "Analysing differences between algorithm configurations through ablation",
// J. Heuristics 22 (2016); on the predictions of a model: A. Biedenkapp et al., "Efficient
// parameter importance analysis via ablation with surrogates", AAAI 2017.
//
// Canonical points. Of more than 64 parameters that differ, only the 64 that have been the most
// promising are compared at each step after the first.
AblationPath Ablate(const gp::InputLayout& layout, const Functions& functions, const Point& from,
                    const Point& to);

// Indices of the trials to compare where the user names none: the best, and the median one of all
// with a result, which stands for what is found without trying; nullopt without two results.
struct AblationEnds {
  int64_t from = 0, to = 0;
};
std::optional<AblationEnds> DefaultEnds(const History& history);

}  // namespace shirabe::suggestion::analysis
