// Sockets that a door listens on. Used by the doors of a server when it starts.
#pragma once

#include <string>

#include "base/file.h"
#include "base/status.h"

namespace shirabe::service {

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

}  // namespace shirabe::service
