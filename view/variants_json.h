// What the registries of algorithms and early-stopping rules hold, as trees made from the tables
// that validate the settings. Used by the command line and by the HTTP server. Pure functions of
// the registries, any thread.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "view/record_json.h"

namespace shirabe::view {

inline constexpr char kAlgorithm[] = "algorithm";
inline constexpr char kStopper[] = "stopper";

// All of a kind, by name: {kind, name, aliases, help, settings: [{name, type, values, default,
// help}]}, where a setting also has min, max or words if it has such bounds.
std::vector<Json> Variants(const std::string& kind);

// By name or alias. kNotFound, with the known names and the nearest, if there is none.
StatusOr<Json> FindVariant(const std::vector<Json>& variants, const std::string& name);

}  // namespace shirabe::view
