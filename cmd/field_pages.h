// The fields of an Experiment as pages for people, from the table in the .proto files. Pure.
#pragma once

#include <string>

#include "base/status.h"
#include "view/record_json.h"

namespace shirabe::cmd {

// A field as `spec.shirabe.stopWhen`, "experiment" in front of it or not, indices left out; of the
// Experiment itself `experiment`. An object: path, type, help, required, default, least, words (of
// an enum) and fields, which are such objects without theirs. kInvalidArgument names what is near.
StatusOr<view::Json> FieldOfExperiment(const std::string& path);

// As `kubectl explain` has it.
std::string FieldPage(const view::Json& field);

}  // namespace shirabe::cmd
