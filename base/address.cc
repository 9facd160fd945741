#include "base/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"

namespace shirabe {

std::string HostOf(const std::string& address) {
  if (absl::StartsWith(address, "[")) return address.substr(0, address.find(']') + 1);
  return address.substr(0, address.rfind(':'));
}

bool IsLoopback(const std::string& host) {
  if (host == "localhost" || host == "::1" || host == "[::1]") return true;
  return absl::StartsWith(host, "127.") && std::all_of(host.begin(), host.end(), [](char c) {
           return absl::ascii_isdigit(c) || c == '.';
         });
}

std::string AddressGroup(const std::string& address) {
  in6_addr six = {};
  if (inet_pton(AF_INET6, address.c_str(), &six) != 1) return address;
  const in6_addr mapped_prefix = {{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0}}};
  const bool mapped = std::memcmp(&six, &mapped_prefix, 12) == 0;
  if (!mapped && std::memcmp(&six, &in6addr_loopback, sizeof six) != 0) {
    std::memset(six.s6_addr + 8, 0, 8);
  }
  char text[INET6_ADDRSTRLEN] = {};
  inet_ntop(AF_INET6, &six, text, sizeof text);
  return text;
}

std::string AddressOfPeer(const std::string& peer) {
  std::string host = HostOf(absl::StrReplaceAll(peer, {{"%5B", "["}, {"%5D", "]"}}));
  host.erase(0, host.find(':') + 1);
  return absl::StrReplaceAll(host, {{"[", ""}, {"]", ""}});
}

}  // namespace shirabe
