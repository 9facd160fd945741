// The best trial so far, in the forms that people paste: a table, arguments, variables, JSON. The
// JSON is stable: {"trial", "objective", "value", "step", "assignments": {name: typed value}} and,
// where another trial is recommended, "recommended": {"trial", "value", "deviation", "reason",
// "assignments"}; with several objectives "front": {"size", "hypervolume", "reference": {metric:
// number}, "trials": [{"trial", "values": {metric: number}, "assignments"}]}, of which that trial
// is the one that is best in the first. Pure.
#pragma once

#include <string>

#include "base/status.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "view/record_json.h"

namespace shirabe::view {

// kNotFound, saying how far the experiment is, if no trial has a value that counts.
Status CheckHasBest(const v1::Experiment& experiment);

// The rest needs a best trial.
Json BestJson(const v1::Experiment& experiment);
// With several objectives that of the front.
std::string BestTable(const v1::Experiment& experiment, bool with_header);
// --lr=0.0031 --bs=32, quoted for a shell where needed.
std::string BestArguments(const v1::Experiment& experiment);
// SHIRABE_PARAM_LR=0.0031, a line each, as trials are given them, quoted for a shell.
std::string BestVariables(const v1::Experiment& experiment);

// The trial that is recommended in place of the best one: "trial digits-9, predicted 0.21 ± 0.01:
// the best result, …"; "" where the best one is.
std::string RecommendedLine(const v1::Experiment& experiment);
// The same experiment with the recommended trial, if there is one, in place of the best.
v1::Experiment WithRecommended(v1::Experiment experiment);

// The same of any assignments: those of a trial that was asked for.
using Assignments = google::protobuf::RepeatedPtrField<v1::Assignment>;
std::string ArgumentsOf(const Assignments& assignments);
std::string VariablesOf(const Assignments& assignments);

// As `-o json|yaml|args|env` prints it; "" for a table, which each verb makes its own.
std::string BestAs(const v1::Experiment& experiment, const std::string& output);

// As one word of a POSIX shell.
std::string ShellQuote(const std::string& text);

}  // namespace shirabe::view
