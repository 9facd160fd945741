#include "suggestion/remote/remote_algorithm_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "base/address.h"
#include "base/mutex.h"

namespace shirabe::suggestion {
namespace {

constexpr size_t kMaxEndpoint = 300;
constexpr int kMaxPort = 65535;

struct Shared {
  Mutex mutex;
  RemoteAlgorithmTable table ABSL_GUARDED_BY(mutex);
};

Shared& GlobalTable() {
  static Shared shared;
  return shared;
}

struct Address {
  std::string host;  // without the brackets of [::1]
  std::string port;
};

// A name, an IPv4 address or [an IPv6 address], and a port: nothing that a resolver would take for
// a scheme, a path or an option.
StatusOr<Address> ParseAddress(const std::string& text, bool pattern) {
  const Status bad =
      absl::InvalidArgumentError("\"" + text.substr(0, kMaxEndpoint) +
                                 "\" is not an address; write HOST:PORT, such as svc:6789");
  const size_t colon = text.rfind(':');
  if (text.size() > kMaxEndpoint || colon == std::string::npos || colon == 0) return bad;
  Address address{text.substr(0, colon), text.substr(colon + 1)};
  int port = 0;
  if (!absl::SimpleAtoi(address.port, &port) || port < 1 || port > kMaxPort) return bad;
  const bool v6 =
      address.host.size() > 2 && address.host.front() == '[' && address.host.back() == ']';
  if (v6) address.host = address.host.substr(1, address.host.size() - 2);
  const bool good = std::all_of(address.host.begin(), address.host.end(), [&](char c) {
    return absl::ascii_isalnum(c) || c == '.' || (c == '-' && !v6) || (c == ':' && v6) ||
           (c == '_' && !v6) || (c == '*' && pattern);
  });
  if (!good) return bad;
  return address;
}

// A pattern is an address whose first label may be "*".
bool Matches(const std::string& pattern, const std::string& endpoint) {
  if (!absl::StartsWith(pattern, "*.")) return pattern == endpoint;
  const std::string rest = pattern.substr(1);
  return endpoint.size() > rest.size() && absl::EndsWith(endpoint, rest);
}

}  // namespace

Status SetRemoteAlgorithmTable(RemoteAlgorithmTable table) {
  for (const auto& [name, endpoint] : table.named) {
    RETURN_IF_ERROR(Prefix("algorithm " + name, ParseAddress(endpoint, false).status()));
  }
  for (const std::string& pattern : table.allowed) {
    RETURN_IF_ERROR(ParseAddress(pattern, true).status());
  }
  Shared& shared = GlobalTable();
  const MutexLock lock(shared.mutex);
  shared.table = std::move(table);
  return absl::OkStatus();
}

RemoteAlgorithmTable GetRemoteAlgorithms() {
  Shared& shared = GlobalTable();
  const MutexLock lock(shared.mutex);
  return shared.table;
}

Status AddRemoteAlgorithm(const std::string& text, RemoteAlgorithmTable& table) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return absl::InvalidArgumentError("\"" + text + "\" maps no name; write NAME=HOST:PORT");
  }
  const std::string name = text.substr(0, equals), endpoint = text.substr(equals + 1);
  RETURN_IF_ERROR(ParseAddress(endpoint, false).status());
  if (!table.named.emplace(name, endpoint).second) {
    return absl::InvalidArgumentError("algorithm " + name + " is mapped twice; remove one");
  }
  return absl::OkStatus();
}

Status CheckRemoteAddress(const std::string& endpoint) {
  const RemoteAlgorithmTable table = GetRemoteAlgorithms();
  ASSIGN_OR_RETURN(const Address address, ParseAddress(endpoint, false));
  const bool allowed =
      (table.allow_loopback && IsLoopback(address.host)) ||
      std::any_of(table.allowed.begin(), table.allowed.end(),
                  [&endpoint](const std::string& pattern) { return Matches(pattern, endpoint); });
  if (allowed) return absl::OkStatus();
  return absl::PermissionDeniedError("\"" + endpoint + "\" is not allowed here");
}

StatusOr<std::string> RemoteEndpoint(const v1::ExperimentSpec& spec) {
  const std::string& endpoint = spec.shirabe().algorithm().endpoint();
  if (endpoint.empty()) {
    const RemoteAlgorithmTable table = GetRemoteAlgorithms();
    const auto named = table.named.find(spec.algorithm().algorithm_name());
    return named == table.named.end() ? "" : named->second;
  }
  const Status status = CheckRemoteAddress(endpoint);
  if (!absl::IsPermissionDenied(status))
    return status.ok() ? StatusOr<std::string>(endpoint) : status;
  return absl::PermissionDeniedError(Message(status) +
                                     "; the administrator of this program allows an algorithm with "
                                     "--algorithm NAME=" +
                                     endpoint + ", and spec.algorithm.algorithmName names it then");
}

}  // namespace shirabe::suggestion
