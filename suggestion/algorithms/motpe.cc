// TPE for several objectives: what is good is the first fronts of what has been found (Y. Ozaki et
// al., "Multiobjective tree-structured Parzen estimator", 2022), in the order that RankTrials
// gives. The algorithm is in suggestion/tpe/tpe_algorithm.cc; tpe and multivariate-tpe do the same
// where there are several objectives. This name is the one that Optuna's users know.
#include "suggestion/tpe/tpe_algorithm.h"

namespace shirabe::suggestion {
namespace {

constexpr char kMotpeHelp[] =
    "TPE for several objectives, one joint density: learns from the first fronts of what was "
    "found.";

StatusOr<std::unique_ptr<Algorithm>> CreateMotpe(const Problem& problem) {
  return CreateTpe(TpeKind::kMultivariate, problem);
}

SHIRABE_REGISTER(AlgorithmInfo, {.name = "motpe",
                                 .help = kMotpeHelp,
                                 .settings = TpeSettings(),
                                 .create = &CreateMotpe,
                                 .several_objectives = true,
                                 .constraints = true,
                                 .space_rules = true,
                                 .space_priors = true});

}  // namespace
}  // namespace shirabe::suggestion
