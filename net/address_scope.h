// Which part of the network an address belongs to, for requests whose destination others chose: a
// name may lead anywhere, so addresses are judged after it was resolved (HttpCall's may_connect).
// Pure functions.
#pragma once

#include <sys/socket.h>

namespace shirabe::net {

enum class AddressScope {
  kPublic,
  kPrivate,    // of this machine, or of a private network
  kForbidden,  // link-local, where clouds keep the credentials of a machine; multicast; reserved
};

// Of an IPv4 or IPv6 address; one that carries an IPv4 address within (mapped, NAT64, 6to4) is
// judged by that. Everything of another family is forbidden.
AddressScope ScopeOf(const sockaddr& address);

}  // namespace shirabe::net
