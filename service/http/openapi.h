// The description of the HTTP interface (OpenAPI 3.1), made from the table of routes and, for
// bodies, from the messages that read and check requests and print replies (view/json_schema.h). A
// pure function, any thread.
#pragma once

#include "view/json_schema.h"

namespace shirabe::service {

// The whole document.
view::Json OpenapiDocument();

}  // namespace shirabe::service
