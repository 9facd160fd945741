// What brought the gain: the way from one configuration to a better one, one parameter at a time,
// always the one with the largest gain left. Pure; any thread.
//
// C. Fawcett, H. Hoos, "Analysing differences between algorithm configurations through ablation",
// J. Heuristics 22 (2016); on the predictions of a model: A. Biedenkapp et al., "Efficient
// parameter importance analysis via ablation with surrogates", AAAI 2017.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "suggestion/analysis/estimate.h"
#include "suggestion/history.h"

namespace shirabe::suggestion::analysis {

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
