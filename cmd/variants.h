// What the registries of algorithms and early-stopping rules hold, as a tree and as a page for
// people: both are made from the tables that validate the settings. Used by the main thread.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "client/view.h"
#include "cmd/context.h"

namespace shirabe::cmd {

inline constexpr char kAlgorithm[] = "algorithm";
inline constexpr char kStopper[] = "stopper";

// All of a kind, by name: {kind, name, aliases, help, settings: [{name, type, values, default,
// help}]}, where a setting also has min, max or words if it has such bounds.
std::vector<client::Json> Variants(const std::string& kind);

// By name or alias. kNotFound, with the known names and the nearest, if there is none.
StatusOr<client::Json> FindVariant(const std::vector<client::Json>& variants,
                                   const std::string& name);

// When to use it, its settings, and how to write it in a file.
std::string VariantPage(const client::Json& variant);

// Prints the one of this name, or all of them where it is "".
Status PrintVariants(const ListFlags& flags, const std::vector<client::Json>& variants,
                     const std::string& name);

}  // namespace shirabe::cmd
