// Messages as a tree of JSON values, shaped as in YAML: what ToYaml and ToJson print, what
// CheckSameExperiment compares, and what view/ makes its trees of. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "google/protobuf/message.h"

namespace shirabe::experiment {

using Json = nlohmann::ordered_json;

// Fields in the order of the .proto, keys of free-form objects sorted, empty fields left out.
Json ToTree(const google::protobuf::Message& message);

// One field of a message, set or not, in the same shape.
Json FieldTree(const google::protobuf::Message& message,
               const google::protobuf::FieldDescriptor& field);

// The shortest form of a number, 16 and not 16.0; as text where JSON has none (NaN, Infinity).
Json NumberTree(double value);

// Block style, as kubectl prints it; reads back as the same values.
std::string YamlOf(const Json& tree);

}  // namespace shirabe::experiment
