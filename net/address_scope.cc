#include "net/address_scope.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "base/status.h"

namespace shirabe::net {
namespace {

struct Network4 {
  const char* prefix;
  int bits;
  AddressScope scope;
};

// The first that holds an address decides. IANA's registry of special addresses, and what clouds
// answer metadata at outside of it.
constexpr Network4 kNetworks4[] = {
    {"0.0.0.0", 8, AddressScope::kForbidden},  // 0.0.0.0 leads to this machine
    {"100.100.100.200", 32, AddressScope::kForbidden},
    {"168.63.129.16", 32, AddressScope::kForbidden},
    {"169.254.0.0", 16, AddressScope::kForbidden},
    {"192.0.0.0", 24, AddressScope::kForbidden},
    {"192.0.2.0", 24, AddressScope::kForbidden},
    {"192.88.99.0", 24, AddressScope::kForbidden},
    {"198.51.100.0", 24, AddressScope::kForbidden},
    {"203.0.113.0", 24, AddressScope::kForbidden},
    {"224.0.0.0", 3, AddressScope::kForbidden},
    {"10.0.0.0", 8, AddressScope::kPrivate},
    {"100.64.0.0", 10, AddressScope::kPrivate},
    {"127.0.0.0", 8, AddressScope::kPrivate},
    {"172.16.0.0", 12, AddressScope::kPrivate},
    {"192.168.0.0", 16, AddressScope::kPrivate},
    {"198.18.0.0", 15, AddressScope::kPrivate},
};

AddressScope ScopeOf4(uint32_t address) {
  for (const Network4& network : kNetworks4) {
    in_addr prefix{};
    CHECK(inet_pton(AF_INET, network.prefix, &prefix) == 1);
    const uint32_t mask = ~uint32_t{0} << (32 - network.bits);
    if ((address & mask) == (ntohl(prefix.s_addr) & mask)) return network.scope;
  }
  return AddressScope::kPublic;
}

using Bytes6 = std::array<uint8_t, 16>;

Bytes6 Parse6(const char* text) {
  Bytes6 bytes{};
  CHECK(inet_pton(AF_INET6, text, bytes.data()) == 1);
  return bytes;
}

bool StartsWith(const Bytes6& address, const char* prefix, int bits) {
  const Bytes6 network = Parse6(prefix);
  for (int i = 0; i < bits; ++i) {
    const int mask = 0x80 >> (i % 8);
    if ((address[i / 8] & mask) != (network[i / 8] & mask)) return false;
  }
  return true;
}

AddressScope ScopeOfEmbedded(const Bytes6& address, size_t at) {
  uint32_t inner = 0;
  for (size_t i = at; i < at + 4; ++i) inner = inner << 8 | address[i];
  return ScopeOf4(inner);
}

AddressScope ScopeOf6(const Bytes6& address) {
  if (StartsWith(address, "::ffff:0:0", 96)) return ScopeOfEmbedded(address, 12);
  if (StartsWith(address, "64:ff9b::", 96)) return ScopeOfEmbedded(address, 12);
  if (StartsWith(address, "2002::", 16)) return ScopeOfEmbedded(address, 2);
  if (address == Parse6("::1")) return AddressScope::kPrivate;
  for (const char* metadata : {"fd00:ec2::254", "fd20:ce::254"}) {
    if (address == Parse6(metadata)) return AddressScope::kForbidden;
  }
  if (StartsWith(address, "fc00::", 7)) return AddressScope::kPrivate;
  // All that is given out to the world lies in 2000::/3; there Teredo, documentation and others.
  const bool global = StartsWith(address, "2000::", 3) && !StartsWith(address, "2001::", 23) &&
                      !StartsWith(address, "2001:db8::", 32) && !StartsWith(address, "3fff::", 20);
  return global ? AddressScope::kPublic : AddressScope::kForbidden;
}

}  // namespace

AddressScope ScopeOf(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof v4);
    return ScopeOf4(ntohl(v4.sin_addr.s_addr));
  }
  if (address.sa_family != AF_INET6) return AddressScope::kForbidden;
  sockaddr_in6 v6{};
  std::memcpy(&v6, &address, sizeof v6);
  Bytes6 bytes{};
  std::memcpy(bytes.data(), v6.sin6_addr.s6_addr, bytes.size());
  return ScopeOf6(bytes);
}

}  // namespace shirabe::net
