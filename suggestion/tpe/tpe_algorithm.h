// The tree-structured Parzen estimator: which points are likelier among the good trials than among
// the others? Once with a kernel density per parameter, once with a joint one; the two files under
// algorithms/ register them. Immutable after it is made.
#pragma once

#include <memory>

#include "suggestion/algorithm.h"
#include "suggestion/tpe/tpe_settings.h"

namespace shirabe::suggestion {

// kInvalidArgument if both spellings of a setting are given.
StatusOr<std::unique_ptr<Algorithm>> CreateTpe(TpeKind kind, const Problem& problem);

}  // namespace shirabe::suggestion
