// Hyperband: L. Li, K. Jamieson, G. DeSalvo, A. Rostamizadeh, A. Talwalkar, "Hyperband: A Novel
// Bandit-Based Approach to Hyperparameter Optimization", JMLR 18 (2018), algorithm 1, with
// configurations at random. The rungs are in suggestion/multifidelity/rung_ledger.h, the brackets
// in bracket_search.h.
#include "suggestion/multifidelity/bracket_search.h"

namespace shirabe::suggestion {
namespace {

SHIRABE_REGISTER(AlgorithmInfo,
                 {.name = "hyperband",
                  .help = "Random configurations, most of them trained briefly and the best few to "
                          "the end; for long training whose loss shows early who is bad.",
                  .settings = RungSettings({}),
                  .create = &BracketSearch::Create,
                  .reshape = &ReshapeToRungs,
                  .several_objectives = true,
                  .constraints = true});

}  // namespace
}  // namespace shirabe::suggestion
