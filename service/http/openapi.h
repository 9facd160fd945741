// The description of the HTTP interface (OpenAPI 3.1), made from the table of routes and, for the
// shapes of bodies, from the field options of the .proto files: the same tables that read and check
// requests. Pure functions, any thread.
#pragma once

#include "google/protobuf/descriptor.h"
#include "view/record_json.h"

namespace shirabe::service {

// The whole document.
view::Json OpenapiDocument();

// The JSON Schema of a message and, by their names, of all that it refers to, as
// #/components/schemas/… has them. Of `strict` ones other fields are refused.
void AddSchemas(const google::protobuf::Descriptor& message, view::Json& schemas);
std::string SchemaName(const google::protobuf::Descriptor& message);

}  // namespace shirabe::service
