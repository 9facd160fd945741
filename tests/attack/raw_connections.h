// TCP connections of many addresses, and leave to have so many of them.
#pragma once

#include <arpa/inet.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cstdint>

#include "base/file_io.h"

namespace shirabe::attack {

inline bool MayOpenFiles(rlim_t count) {
  rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= count;
}

// A connection from 127.0.0.<last>, which is an address of its own; not valid if it was refused.
inline Fd ConnectFrom(int last, int port) {
  Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto loopback = [](int host, int at) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(at));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + static_cast<uint32_t>(host));
    return address;
  };
  const sockaddr_in from = loopback(last, 0);
  const sockaddr_in to = loopback(1, port);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&from), sizeof from) != 0 ||
      connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    return Fd();
  }
  return fd;
}

}  // namespace shirabe::attack
