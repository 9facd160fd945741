// The connections of a gRPC server. gRPC's own listener takes as many as come, from any address,
// until no descriptor is left for the other listeners; this one accepts them itself, keeps to the
// limits of ConnectionTable, and hands over those that may stay. Its thread also sees when one has
// ended. Made by the server for each gRPC address. Thread-safe.
#pragma once

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <map>
#include <memory>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "base/status.h"
#include "service/common/connection_table.h"
#include "service/common/server_metrics.h"

namespace shirabe::service {

class GrpcListener {
 public:
  struct Options {
    std::string option;                // --grpc, for errors
    std::string address;               // HOST:PORT
    ConnectionTable::Limits limits{};  // without a reserve: gRPC has nothing to say in it
    Metrics* metrics = nullptr;        // outlives it
  };

  // Listens; errors are those of service/common/connection_table.h.
  static StatusOr<std::unique_ptr<GrpcListener>> Open(Options options);
  explicit GrpcListener(Options options);  // for Open; listens to nothing yet
  ~GrpcListener();

  // Before the server is built.
  using Credentials = std::shared_ptr<grpc::ServerCredentials>;  // shared: gRPC's own
  void AddTo(grpc::ServerBuilder& builder, const Credentials& credentials);
  // Once it is; until then connections wait.
  void Start();
  // Listens no more; those that are there stay. The listener must outlive the server's calls.
  void Stop();

  // A caller at this address (gRPC's name of a peer) has had an answer that not everybody gets: its
  // connection is kept before those of which nothing is known.
  void SetKnown(const std::string& peer);

  int port() const { return socket_.port; }

 private:
  class Accepted;

  void Run();
  // Whether there may be more.
  bool Accept();
  void Track(Fd fd, const std::string& peer);
  // Nothing if it is not there.
  void Remove(int fd) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  ListeningSocket socket_;
  Fd epoll_;
  Fd stop_;  // an eventfd, written once
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  Mutex mutex_;
  ConnectionTable table_ ABSL_GUARDED_BY(mutex_);
  // By our descriptor.
  std::map<int, std::unique_ptr<Accepted>> accepted_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Accepted*> by_peer_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace shirabe::service
