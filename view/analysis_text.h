// What a model makes of an experiment, as tables and sentences. Used by the command line. Pure
// functions.
#pragma once

#include <string>

#include "proto/shirabe/v1/analysis.pb.h"

namespace shirabe::view {

// PARAMETER, its shares with their bands as percentages, and what can be said of it; by PED-ANOVA
// its share alone. "" where nothing can be told.
std::string ImportanceTable(const v1::Importance& importance, bool with_header);

// PARAMETER, FROM, TO, the objective after each change, and the gain of it, with their bands.
std::string AblationTable(const v1::Ablation& ablation, bool with_header);

// "from trial 11, 0.56 (0.45 to 0.74), to trial 8, …: predicted"; "" where nothing can be told.
std::string AblationEndsLine(const v1::Ablation& ablation);

// The trials behind it: "too few trials to tell: no trial has a result yet", or "from 40 results,
// of whose variance the model explains 87 %; 2 trials without a result are not used".
std::string BasisLine(const v1::ModelBasis& basis);

// "0.12 (0.08 to 0.17)".
std::string EstimateText(const v1::Estimate& estimate);

}  // namespace shirabe::view
