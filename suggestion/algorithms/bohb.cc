// BOHB: S. Falkner, A. Klein, F. Hutter, "BOHB: Robust and Efficient Hyperparameter Optimization at
// Scale", ICML 2018: Hyperband's brackets (suggestion/multifidelity/bracket_search.h), where a
// model chooses two of three configurations (suggestion/multifidelity/configuration_sampler.h). The
// model of the paper is that of multivariate TPE; any other algorithm of points can take its place.
#include "suggestion/multifidelity/bracket_search.h"

namespace shirabe::suggestion {
namespace {

SHIRABE_REGISTER(AlgorithmInfo,
                 {.name = "bohb",
                  .help = "Hyperband whose configurations come from a model of the results so far; "
                          "the first choice for long training and more than a few dozen trials.",
                  .settings = RungSettings(ConfigSourceSettings("multivariate-tpe")),
                  .create = &BracketSearch::Create,
                  .reshape = &ReshapeToRungs,
                  .several_objectives = true,
                  .constraints = true});

}  // namespace
}  // namespace shirabe::suggestion
