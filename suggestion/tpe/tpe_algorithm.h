// The tree-structured Parzen estimator: which points are likelier among the good trials than among
// the others? Once with a kernel density per parameter, once with a joint one; the two files under
// algorithms/ register them. Immutable after it is made.
#pragma once

#include <memory>
#include <vector>

#include "suggestion/algorithm.h"

namespace shirabe::suggestion {

enum class TpeKind {
  kUnivariate,    // every parameter on its own: Bergstra et al. 2011
  kMultivariate,  // all together: Falkner et al. 2018
};

std::vector<SettingInfo> TpeSettings();
// kInvalidArgument if both spellings of a setting are given.
StatusOr<std::unique_ptr<Algorithm>> CreateTpe(TpeKind kind, const Problem& problem);

}  // namespace shirabe::suggestion
