// Where this process may send notifications: the entries of its administrator (--notifications
// FILE). Set once at start, before anything is sent; read whenever an experiment is validated and
// whenever something is to be sent. Any thread.
//
// An experiment names an endpoint and never an address, so that none makes a server connect to
// wherever its author likes, and none learns the address: a webhook's may be a secret.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::notify {

// kInvalidArgument, with the rule, unless it is 1–63 characters of [a-z0-9-] that begin and end
// with a letter or digit.
Status ValidateEndpointName(std::string_view name);

// What was read of a file with defaults (experiment/spec/server_files.h). kInvalidArgument, with
// the entry, and nothing changes: a URL that is not one, a secret that is missing or too short.
Status SetEndpoints(v1::NotificationEndpoints endpoints);

// Whether SetEndpoints was called: a process that only looks at a specification does not know.
bool EndpointsAreKnown();

// kNotFound if there is none of that name for experiments of this namespace, saying which there
// are. What other namespaces may use is not told.
StatusOr<v1::NotificationEndpoint> FindEndpoint(const std::string& name, const std::string& ns);

// As they are in its files now, so that they can be exchanged while this process runs. The URL; the
// secret, "" where it has none. Errors name the entry and the file, never what is in it.
StatusOr<std::string> UrlOf(const v1::NotificationEndpoint& endpoint);
StatusOr<std::string> SecretOf(const v1::NotificationEndpoint& endpoint);

}  // namespace shirabe::notify
