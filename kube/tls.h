// What TLS needs to know of an API server and of us. Called by kube/transport.cc.
#pragma once

#include <memory>
#include <string>

#include <boost/asio/ssl/context.hpp>

#include "base/status.h"
#include "kube/config.h"

namespace shirabe::kube {

// For connections to the server of this configuration, as the client that the PEM texts say ("" =
// none). kInvalidArgument, naming the field, for what is no certificate or key.
StatusOr<std::unique_ptr<boost::asio::ssl::context>> MakeTls(const Config& config,
                                                             const std::string& certificate,
                                                             const std::string& key);

}  // namespace shirabe::kube
