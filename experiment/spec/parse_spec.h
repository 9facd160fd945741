// From YAML text to a valid Experiment: text → small tree with lines and columns (yaml_tree) →
// walk over the message descriptors (text → proto, here and nowhere else) → defaults → rules.
// Every problem is reported in one go, each with its place, the value and the fix. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "experiment/spec/findings.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::experiment {

struct ParsedExperiment {
  v1::Experiment experiment;      // with defaults; complete only if no finding is an error
  std::vector<Finding> findings;  // by line and column
};

// One entry for each YAML document; at least one. Limits: 1 MiB of text, 64 levels, 100,000 nodes
// after aliases; beyond them, and on text that is no YAML, the one finding says so.
std::vector<ParsedExperiment> ParseExperiments(std::string_view text);

// Fills in what Katib's defaulter would, and namespace "default".
void SetDefaults(v1::Experiment& experiment);

// Katib's rules and ours, on a message however it was made. Algorithm and stopper names and
// settings are checked against the registries; a name of Katib's that this build lacks is a
// warning.
std::vector<Finding> Validate(const v1::Experiment& experiment);

// The Job of spec.shirabe.onSuccess in the form of a trial's template: with the trialParameters of
// spec.trialTemplate, of which it uses what it likes.
v1::TrialTemplate OnSuccessTemplate(const v1::ExperimentSpec& spec);
// How often it is run again after an error of its program: its backoffLimit.
int32_t OnSuccessBackoffLimit(const v1::ExperimentSpec& spec);
// What is said of that template, said of spec.shirabe.onSuccess.
std::string AtOnSuccess(const std::string& text);
// What SetDefaults does to a template.
void SetTemplateDefaults(v1::TrialTemplate& trial_template);

// Point `index` of spec.shirabe.start as typed values, in the order of the parameters.
// kInvalidArgument, naming the parameter and the fix, if one is missing, unknown or of another
// type.
StatusOr<std::vector<v1::Assignment>> StartPoint(const v1::ExperimentSpec& spec, int index);

// The reverse of parsing: kubectl-style YAML of any message with (field) rules; text numbers are
// quoted, internal fields left out. And the same as JSON (compact if indent < 0).
std::string ToYaml(const google::protobuf::Message& message);
std::string ToJson(const google::protobuf::Message& message, int indent = -1);

// kAlreadyExists, naming the first field that differs and the fix, unless `wanted` may continue
// `existing`: only parallelTrialCount, maxTrialCount, maxFailedTrialCount, the goal and the ranges
// of parameters may change (range_changes.h).
Status CheckSameExperiment(const v1::Experiment& existing, const v1::Experiment& wanted);

}  // namespace shirabe::experiment
