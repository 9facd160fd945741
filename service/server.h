// shirabe serve: the endpoints of a store (gRPC and HTTP), and the owner of its experiments, as one
// object. Start returns once every endpoint answers; the destructor closes them, gives the calls
// under way a few seconds, and gives the experiments back: their attempts run on, to be adopted by
// the next server.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "client/local_client.h"
#include "service/common/authorization.h"
#include "service/common/connection_table.h"

namespace shirabe::service {

class Metrics;

struct ServerOptions {
  client::LocalClient* client = nullptr;  // outlives the server
  Clock* clock = nullptr;
  client::ExecutionOptions machines;  // what trials get here
  std::string grpc = "127.0.0.1:0";
  std::string http = "127.0.0.1:0";
  // Katib's Suggestion and DBManager for its own clients, plaintext and without a token; "" =
  // nowhere.
  std::string katib_listen = {};
  // The namespace that a caller there acts for, by the address that it calls from:
  // kPermissionDenied for one of no namespace, kUnavailable where the cluster cannot be asked. May
  // take a moment.
  std::function<StatusOr<std::string>(const std::string& address)> namespace_of = {};
  TlsFiles tls;
  Tokens tokens = Tokens::Open();
  std::string home = {};            // of the client's store, with the logs
  int64_t log_bytes = 0;            // of ended attempts' logs that are kept, the newest; 0 = all
  int64_t keep_observations = 0;    // of each metric of a trial that has ended; 0 = all
  double requests_per_second = 0;   // of one caller, twice as many at once; 0 = any
  std::string base_path = {};       // before the paths of HTTP: "" or "/shirabe"
  int connections_per_address = 0;  // to each listener; 0 = as many as there is room for
  // Sets what is counted elsewhere in the process, each time /metrics is read.
  std::function<void(Metrics&)> refresh_metrics = {};
};

class Server {
 public:
  // kInvalidArgument, naming the option and the fix: an address that is open to the network without
  // TLS and a token, files that are no certificate. kUnavailable: an address that is in use.
  static StatusOr<std::unique_ptr<Server>> Start(ServerOptions options);
  virtual ~Server() = default;

  // HOST:PORT, with the port that was found free where 0 was asked for.
  virtual std::string grpc_address() const = 0;
  virtual std::string http_address() const = 0;
  virtual std::string katib_address() const = 0;  // "" = none
};

}  // namespace shirabe::service
