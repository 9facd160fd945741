// Network addresses as people write them: HOST:PORT, and [IPv6]:PORT. Pure functions.
#pragma once

#include <string>

namespace shirabe {

// Without the port, where there is one; an IPv6 address keeps its brackets.
std::string HostOf(const std::string& address);

// Whether this host, with or without brackets, can only be this machine: localhost, ::1 or an
// address 127.x. A name that merely begins so (127.example.org) may be that of any machine.
bool IsLoopback(const std::string& host);

// What counts as one address where callers are told apart: of IPv6 the network of 64 bits, which
// one machine may have whole.
std::string AddressGroup(const std::string& address);

// The address of gRPC's name of a peer: ipv4:10.0.0.7:80, ipv6:[fd00::7]:80 or
// ipv6:%5Bfd00::7%5D:80.
std::string AddressOfPeer(const std::string& peer);

}  // namespace shirabe
