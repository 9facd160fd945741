// How much each parameter matters: its shares of the variance of the objective over the space, as
// Sobol defined them. Pure; any thread.
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
#pragma once

#include <vector>

#include "suggestion/analysis/estimate.h"

namespace shirabe::suggestion::analysis {

// One for each parameter, in the order of the space; all 0 for functions that do not vary. Costs
// N (d + 2) evaluations; `points`: N, a power of two from 16. A band holds the spread of the draws
// and, since all of them look at the same points, what those miss by chance: told by the quarters
// of the sample, each of which is spread evenly by itself.
std::vector<SobolIndex> SobolIndices(const gp::InputLayout& layout, const Functions& functions,
                                     Eigen::Index points);

}  // namespace shirabe::suggestion::analysis
