// The settings of algorithms and early-stopping rules, as their documentation shows them: the very
// tables that validate them (see algorithm.h and early_stopping.h). Pure functions.
#pragma once

#include <vector>

#include "suggestion/algorithm.h"
#include "suggestion/early_stopping.h"

namespace shirabe::suggestion {

// Those of the table, and random_state, which every algorithm knows.
std::vector<SettingInfo> KnownSettings(const AlgorithmInfo& info);
std::vector<SettingInfo> KnownSettings(const StopperInfo& info);

}  // namespace shirabe::suggestion
