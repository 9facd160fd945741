// What a Status object of the API server means, as client.h lists it. Pure functions.
#pragma once

#include <string>

#include "base/status.h"
#include "kube/connection.h"
#include "kube/object.h"

namespace shirabe::kube {

// Of an answer that is not 2xx: "WHAT: the server's words".
Status ToStatus(const std::string& what, const HttpAnswer& answer);
// Of a Status object; also for the ERROR event of a watch.
Status ToStatus(const std::string& what, int http_status, const Json& status);

}  // namespace shirabe::kube
