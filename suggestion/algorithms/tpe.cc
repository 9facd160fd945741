// TPE with a density for each parameter, as in hyperopt and as Katib and Optuna have long known it.
// The algorithm is in suggestion/tpe/tpe_algorithm.cc.
#include "suggestion/tpe/tpe_algorithm.h"

namespace shirabe::suggestion {
namespace {

constexpr char kTpeHelp[] =
    "TPE, a density per parameter: for any mix of types, dozens to thousands of "
    "trials, and parameters that act on their own.";

StatusOr<std::unique_ptr<Algorithm>> Create(const Problem& problem) {
  return CreateTpe(TpeKind::kUnivariate, problem);
}

SHIRABE_REGISTER(AlgorithmInfo, {.name = "tpe",
                                 .help = kTpeHelp,
                                 .settings = TpeSettings(),
                                 .create = &Create,
                                 .several_objectives = true,
                                 .constraints = true,
                                 .space_rules = true,
                                 .space_priors = true});

}  // namespace
}  // namespace shirabe::suggestion
