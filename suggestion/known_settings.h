// The settings of algorithms and early-stopping rules, as their documentation shows them: the very
// tables that validate them (see algorithm.h and early_stopping.h), and those that several rules
// have. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "suggestion/algorithm.h"
#include "suggestion/early_stopping.h"

namespace shirabe::suggestion {

// Those of the table, and random_state, which every algorithm knows.
std::vector<SettingInfo> KnownSettings(const AlgorithmInfo& info);
std::vector<SettingInfo> KnownSettings(const StopperInfo& info);

// A number that passed the table; nullopt where it has no default and was not given.
std::optional<double> NumberSetting(const Settings& settings, const std::string& name);
// One that has a default.
int64_t IntSetting(const Settings& settings, const std::string& name);

// The settings of rules that compare with other trials. `trials` is the default.
SettingInfo MinTrialsRequired(const std::string& trials);
SettingInfo StartStep(const std::string& reports);

}  // namespace shirabe::suggestion
