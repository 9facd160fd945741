// What the API server itself refuses of an Experiment, at `kubectl apply`: lists that are too long,
// numbers that are none, fields that exclude each other. Written into its definition as bounds and
// as rules of CEL, from the limits that the controller keeps (experiment/spec/spec_limits.h); what
// compares each item with each other costs more than an API server lets a rule, and what hangs on
// the algorithm or on the cluster is not known there: that stays the controller's. Pure.
#pragma once

#include <nlohmann/json.hpp>

namespace shirabe::crd {

// `schema` is that of the whole object, as kApplied has it.
void AddExperimentRules(nlohmann::ordered_json& schema);
// The same of a ScheduledExperiment, whose template's spec has those rules.
void AddScheduleRules(nlohmann::ordered_json& schema);

}  // namespace shirabe::crd
