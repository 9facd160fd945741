// The sockets that a server listens on, and who may be connected to them (ConnectionTable). Used by
// its HTTP and gRPC listeners.
#pragma once

#include <list>
#include <map>
#include <string>

#include "base/file_io.h"
#include "base/status.h"

namespace shirabe::service {

struct TlsFiles {
  std::string certificate;  // PEM; "" = plaintext
  std::string key;          // PEM
  std::string client_ca;    // PEM; callers must show a certificate of it; "" = they need none
};

struct ListeningSocket {
  Fd fd;
  int port = 0;
  int family = 0;  // AF_INET, AF_INET6
};

// A TCP socket that listens at HOST:PORT ([IPv6]:PORT; an empty host for every IPv4 address; port 0
// for any free one). `option` is the flag that named the address, for errors: kInvalidArgument for
// what is no address, kPermissionDenied, kUnavailable if it is in use or of another machine.
StatusOr<ListeningSocket> Listen(const std::string& option, const std::string& address);

// Connections are files: raises this process's limit as far as it may. Returns how many may be used
// for connections, so that enough are left for everything else.
size_t RaiseFileLimit();

// How many of these each listener may have. One of gRPC takes two files. In a cluster the sidecars
// of all trials come by gRPC, elsewhere most callers by HTTP.
struct ConnectionShares {
  size_t http = 0;
  size_t grpc = 0;
};
ConnectionShares ShareConnections(size_t files, bool in_cluster, size_t grpc_listeners);

// ConnectionTable says who may be connected: so many in all, so many from one address, and when
// there is no room, who goes. Those that have shown nothing yet that we know go first, the oldest
// of them; then those that are known and idle, the longest. Those at work stay. A small reserve
// beyond all limits takes those who then still come, for as long as it takes to ask whether the
// server lives. Used by the HTTP server in its thread, and by listeners of gRPC under their lock.
class TrackedConnection {
 public:
  virtual ~TrackedConnection() = default;
  // At once. Calls ConnectionTable::Leave.
  virtual void Close() = 0;
};

class ConnectionTable {
 public:
  struct Limits {
    size_t all = 12'000;
    size_t address = 0;  // of one address; 0 = as many as of all
    size_t reserve = 64;
    size_t reserve_address = 8;
  };
  enum class ConnectionSlot {
    kNone,  // there is no room for it
    kTable,
    kReserve,  // only to ask how the server is
  };
  enum class ConnectionState {
    kUnknown,  // has shown no token that we know
    kIdle,     // is known, and asks nothing now
    kAtWork,
  };

  explicit ConnectionTable(Limits limits) : limits_(limits) {}

  // Where a new connection from this address goes; closes another one where that makes room.
  ConnectionSlot Find(const std::string& address);
  // Takes the slot that Find has found just now; the connection is kUnknown at first.
  void Enter(TrackedConnection* connection, const std::string& address, ConnectionSlot slot);
  // As the newest of those in this state.
  void SetConnectionState(TrackedConnection* connection, ConnectionState standing);
  // Nothing if it is not there.
  void Leave(TrackedConnection* connection);

  size_t size() const { return entries_.size(); }

 private:
  using Queue = std::list<TrackedConnection*>;
  struct Entry {
    std::string address;
    ConnectionSlot slot = ConnectionSlot::kTable;
    Queue* queue = nullptr;  // null: at work
    Queue::iterator place;
  };
  struct Count {
    size_t table = 0;
    size_t reserve = 0;
  };
  bool MakeRoom();
  ConnectionSlot FindReserve(const Count& count);

  const Limits limits_;
  std::map<TrackedConnection*, Entry> entries_;
  std::map<std::string, Count> counts_;  // by address
  size_t reserved_ = 0;
  Queue unknown_;  // the oldest first
  Queue idle_;
  Queue reserve_;
};

}  // namespace shirabe::service
