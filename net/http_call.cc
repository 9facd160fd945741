#include "net/http_call.h"

#include <netinet/in.h>

#include "absl/strings/str_cat.h"
#include "base/certificate.h"

namespace shirabe::net {

std::string HttpResponse::Header(std::string_view name) const {
  for (const auto& [known, value] : headers) {
    if (known == name) return value;
  }
  return "";
}

Status CheckTls(const TlsOptions& tls) {
  const auto refuse = [](const char* field) {
    return absl::InvalidArgumentError(absl::StrCat(field, " is not what its name says, in PEM"));
  };
  if (!tls.ca.empty() && !ExpiryOf(tls.ca).ok()) return refuse("ca");
  if (tls.certificate.empty() && tls.key.empty()) return absl::OkStatus();
  if (!ExpiryOf(tls.certificate).ok()) return refuse("certificate");
  const Status pair = CheckPair({tls.certificate, tls.key}, absl::InfinitePast());
  return pair.ok() ? pair : refuse("key");  // also where it is the key of another certificate
}

bool IsLoopback(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return ntohl(v4.sin_addr.s_addr) >> 24 == 127;
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  return address.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

}  // namespace shirabe::net
