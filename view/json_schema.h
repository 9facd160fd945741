// The schemas of messages as JSON, made from their fields, the options of those and the words of
// enums: what /openapi.json says of bodies, and resource definitions of custom resources. The one
// generator for both. Pure functions, any thread.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "google/protobuf/descriptor.h"

namespace shirabe::view {

using Json = nlohmann::ordered_json;

enum class SchemaForm {
  // Of OpenAPI 3.1, exact: what is required, and null where it is not known. Other messages are
  // references.
  kInterface,
  // Structural, as Kubernetes wants it, of what people write: whatever the reader of YAML accepts.
  // A number may be text, null is as if it were not there, and unknown fields are kept, so that the
  // controller can refuse them by name.
  kApplied,
  // Structural, of what only Shirabe writes: nothing is required and every word is allowed, since
  // an object made by another version must stay readable.
  kReported,
};

Json SchemaOf(const google::protobuf::Descriptor& message, SchemaForm form);

// A value of a parameter is typed in the records, and text wherever people and programs see it:
// another message. All others are shown as they are.
const google::protobuf::Descriptor& ShownAs(const google::protobuf::Descriptor& message);

// References of OpenAPI: what a message is called there.
std::string SchemaName(const google::protobuf::Descriptor& message);
Json ReferenceTo(const std::string& name);

}  // namespace shirabe::view
