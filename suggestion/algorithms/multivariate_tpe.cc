// TPE with a joint density, as in Katib's Optuna service and, since version 5, in Optuna itself.
// The algorithm is in suggestion/tpe/tpe_algorithm.cc.
#include "suggestion/tpe/tpe_algorithm.h"

namespace shirabe::suggestion {
namespace {

constexpr char kMultivariateTpeHelp[] =
    "TPE, one joint density: for any mix of types, dozens to thousands of "
    "trials, and parameters that act together.";

StatusOr<std::unique_ptr<Algorithm>> CreateMultivariate(const Problem& problem) {
  return CreateTpe(TpeKind::kMultivariate, problem);
}

SHIRABE_REGISTER(AlgorithmInfo, {.name = "multivariate-tpe",
                                 .help = kMultivariateTpeHelp,
                                 .settings = TpeSettings(),
                                 .create = &CreateMultivariate,
                                 .several_objectives = true,
                                 .constraints = true,
                                 .space_rules = true,
                                 .space_priors = true});

}  // namespace
}  // namespace shirabe::suggestion
