#include "kube/resource_path.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "net/url.h"

namespace shirabe::kube {
namespace {

constexpr size_t kMaxNameBytes = 253;  // as of a DNS subdomain
constexpr size_t kShown = 80;          // of one that is none

bool IsUnreserved(unsigned char c) {
  return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_' || c == '~';
}

}  // namespace

std::string Endpoint::Address() const {
  const bool v6 = host.find(':') != std::string::npos;
  return v6 ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

StatusOr<Endpoint> ParseServer(const std::string& server, const std::string& server_name) {
  const auto url = net::ParseUrl(server);
  if (absl::IsInvalidArgument(url.status())) {
    // What stands before an @ may be a password, and is not repeated.
    const std::string shown =
        absl::StrContains(server, '@') ? "" : absl::StrCat(" \"", server, "\"");
    return absl::InvalidArgumentError(
        absl::StrCat("cluster.server", shown, " ", Message(url.status()),
                     ": write https://HOST:PORT, and a password as user.password"));
  }
  RETURN_IF_ERROR(url.status());
  Endpoint endpoint{.tls = url->tls, .host = url->host, .port = url->port, .prefix = url->path};
  while (endpoint.prefix.ends_with('/')) endpoint.prefix.pop_back();
  endpoint.name = server_name.empty() ? endpoint.host : server_name;
  return endpoint;
}

std::string PathOf(const Resource& resource, const std::string& namespace_name,
                   const std::string& name, const std::string& subresource) {
  std::string path = resource.group.empty() ? "/api/" : "/apis/" + Escape(resource.group) + "/";
  path += Escape(resource.version);
  if (resource.namespaced && !namespace_name.empty()) {
    path += "/namespaces/" + Escape(namespace_name);
  }
  path += "/" + Escape(resource.plural);
  if (!name.empty()) path += "/" + Escape(name);
  if (!subresource.empty()) path += "/" + Escape(subresource);
  return path;
}

Status CheckNames(const std::string& namespace_name, const std::string& name) {
  for (const std::string& one : {namespace_name, name}) {
    const bool odd = std::any_of(one.begin(), one.end(), [](unsigned char c) {
      return c <= ' ' || c == 0x7f || c == '/' || c == '%' || c == '\\';
    });
    if (!odd && one != "." && one != ".." && one.size() <= kMaxNameBytes) continue;
    return absl::InvalidArgumentError(absl::StrCat("\"", absl::CHexEscape(one.substr(0, kShown)),
                                                   "\" is not a name of an object of a cluster"));
  }
  return absl::OkStatus();
}

bool IsDnsName(const std::string& name) {
  if (name.empty() || name.size() > kMaxNameBytes) return false;
  const auto ends = [](char c) { return absl::ascii_islower(c) || absl::ascii_isdigit(c); };
  const bool good = std::all_of(name.begin(), name.end(),
                                [&](char c) { return ends(c) || c == '-' || c == '.'; });
  return good && ends(name.front()) && ends(name.back());
}

Status CheckApiVersion(const std::string& api_version) {
  const bool good = std::all_of(api_version.begin(), api_version.end(), [](unsigned char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '.' || c == '-' || c == '/';
  });
  const std::vector<std::string> parts = absl::StrSplit(api_version, '/');
  bool names = parts.size() <= 2;
  for (const std::string& part : parts) names &= !part.empty() && part.front() != '.';
  if (good && names && api_version.size() <= kMaxNameBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("apiVersion \"", absl::CHexEscape(api_version.substr(0, kShown)),
                   "\" is not VERSION or GROUP/VERSION, as v1 and batch/v1 are"));
}

std::string WithQuery(const std::string& path,
                      const std::vector<std::pair<std::string, std::string>>& query) {
  std::string url = path;
  char separator = '?';
  for (const auto& [name, value] : query) {
    if (value.empty()) continue;
    url += separator;
    url += name + "=" + Escape(value);
    separator = '&';
  }
  return url;
}

std::string Escape(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (IsUnreserved(byte)) {
      out += c;
    } else {
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out;
}

}  // namespace shirabe::kube
