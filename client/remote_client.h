// The client over a server (shirabe serve), by gRPC. Calls that a lost connection has interrupted
// are made again, for a while, where doing so changes nothing; kUnavailable, naming the address,
// if it stays lost. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "base/clock.h"
#include "client/client.h"

namespace grpc {
class Channel;
}

namespace shirabe::client {

struct RemoteOptions {
  std::string server;      // HOST:PORT
  std::string token = {};  // bearer token; "" = none (serve --insecure)
  bool tls = false;
  std::string ca = {};           // PEM: whom to trust; "" = the system's
  std::string certificate = {};  // PEM, of this client, where the server asks for one
  std::string key = {};          // PEM
  Clock* clock = nullptr;        // outlives the client
  // How long a call that changes nothing is tried again once a server that was there is lost.
  absl::Duration retry_period = absl::Seconds(10);
  std::function<void(const std::string& error)> on_lost = {};  // each time, after 1.5 s
  // Where the way to it is another than an address; `server` is a name for messages then.
  std::shared_ptr<grpc::Channel> channel = nullptr;  // shared: gRPC's own
};

// Does not connect yet. kInvalidArgument for what is no address.
StatusOr<std::unique_ptr<Client>> Connect(const RemoteOptions& options);

}  // namespace shirabe::client
