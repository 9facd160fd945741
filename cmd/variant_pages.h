// What the registries of algorithms and early-stopping rules hold, as pages for people. Used by the
// main thread.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "cmd/verb_flags.h"
#include "view/record_json.h"
#include "view/variants_json.h"

namespace shirabe::cmd {

using view::kAlgorithm;
using view::kStopper;
using view::Variants;

// When to use it, its settings, and how to write it in a file.
std::string VariantPage(const view::Json& variant);

// Prints the one of this name, or all of them where it is "".
Status PrintVariants(const ListFlags& flags, const std::vector<view::Json>& variants,
                     const std::string& name);

}  // namespace shirabe::cmd
