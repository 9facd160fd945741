// Files of a trial from a server into a folder here, for `cp`. Used by the main thread.
#pragma once

#include <string>

#include "base/status.h"
#include "client/client.h"

namespace shirabe::cmd {

// Makes them the new folder `to`, whole or not at all: each file has the SHA-256 that the server
// lists for it, where it lists one. Until then they are in `to`.partial, which is left where the
// server cannot be reached any more; the next call goes on with what is there. What fails is tried
// again a few times.
Status Download(client::Client& client, const v1::FilesRequest& request, const std::string& to);

}  // namespace shirabe::cmd
