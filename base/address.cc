#include "base/address.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

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

}  // namespace shirabe
