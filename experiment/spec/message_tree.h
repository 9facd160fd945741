// Messages as a tree of JSON values, shaped as in YAML: what ToYaml and ToJson print, and what
// CheckSameExperiment compares; view/ builds its own trees in the same shape. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "google/protobuf/message.h"

namespace shirabe::experiment {

using Json = nlohmann::ordered_json;

// Fields in the order of the .proto, keys of free-form objects sorted, empty fields left out.
Json ToTree(const google::protobuf::Message& message);

// Block style, as kubectl prints it; reads back as the same values.
std::string YamlOf(const Json& tree);

}  // namespace shirabe::experiment
