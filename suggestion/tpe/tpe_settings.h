// The settings of the tree-structured Parzen estimators, and what they mean.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "suggestion/algorithm.h"

namespace shirabe::suggestion {

enum class TpeKind {
  kUnivariate,    // every parameter on its own: Bergstra et al. 2011
  kMultivariate,  // all together: Falkner et al. 2018
};

struct TpeOptions {
  TpeKind kind = TpeKind::kUnivariate;
  double gamma = 0;
  double prior_weight = 1;
  int candidates = 0;
  int64_t startup = 0;
};

std::vector<SettingInfo> TpeSettings();
// kInvalidArgument if both spellings of a setting are given.
StatusOr<TpeOptions> ReadTpeSettings(TpeKind kind, const Settings& settings);

}  // namespace shirabe::suggestion
