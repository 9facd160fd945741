#include "notify/endpoints.h"

#include <re2/re2.h>

#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file_io.h"
#include "base/mutex.h"
#include "base/printable.h"
#include "net/url.h"

namespace shirabe::notify {
namespace {

constexpr size_t kMinSecretBytes = 16;
constexpr size_t kMaxSecretBytes = 4096;
constexpr size_t kMaxShown = 100;

class EndpointTable {
 public:
  static EndpointTable& Get() {
    static EndpointTable table;
    return table;
  }
  void Set(v1::NotificationEndpoints endpoints) {
    const MutexLock lock(mutex_);
    endpoints_ = std::move(endpoints);
  }
  std::optional<v1::NotificationEndpoints> All() {
    const MutexLock lock(mutex_);
    return endpoints_;
  }

 private:
  Mutex mutex_;
  std::optional<v1::NotificationEndpoints> endpoints_ ABSL_GUARDED_BY(mutex_);
};

std::string NameOf(const v1::NotificationEndpoint& endpoint) {
  return absl::StrCat("endpoint ", endpoint.name(), ": ");
}

bool MayUse(const v1::NotificationEndpoint& endpoint, const std::string& ns) {
  return absl::c_any_of(endpoint.namespaces(),
                        [&](const std::string& one) { return one == "*" || one == ns; });
}

StatusOr<std::string> ReadTrimmed(const v1::NotificationEndpoint& endpoint, const char* field,
                                  const std::string& path) {
  const auto text = ReadFile(path, 2 * kMaxSecretBytes);
  if (!text.ok()) {
    return Prefix(absl::StrCat(NameOf(endpoint), field), text.status());
  }
  return std::string(absl::StripAsciiWhitespace(*text));
}

}  // namespace

Status ValidateEndpointName(std::string_view name) {
  static const RE2 form("[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?");
  if (RE2::FullMatch(name, form)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "endpoint name \"", Printable(std::string(name.substr(0, kMaxShown))),
      "\" must be 1 to 63 lower-case letters, digits and '-', and begin and end with a "
      "letter or digit"));
}

StatusOr<std::string> UrlOf(const v1::NotificationEndpoint& endpoint) {
  if (endpoint.url_file().empty()) return endpoint.url();
  return ReadTrimmed(endpoint, "urlFile", endpoint.url_file());
}

StatusOr<std::string> SecretOf(const v1::NotificationEndpoint& endpoint) {
  if (endpoint.secret_file().empty()) return "";
  ASSIGN_OR_RETURN(std::string secret, ReadTrimmed(endpoint, "secretFile", endpoint.secret_file()));
  if (secret.size() >= kMinSecretBytes && secret.size() <= kMaxSecretBytes) return secret;
  return absl::InvalidArgumentError(
      absl::StrCat(NameOf(endpoint), "secretFile: the secret in ", endpoint.secret_file(), " has ",
                   secret.size(), " bytes, and must have ", kMinSecretBytes, " to ",
                   kMaxSecretBytes, ": make one with `openssl rand -hex 32`"));
}

Status SetEndpoints(v1::NotificationEndpoints endpoints) {
  for (const v1::NotificationEndpoint& endpoint : endpoints.endpoints()) {
    ASSIGN_OR_RETURN(const std::string url, UrlOf(endpoint));
    const char* const field = endpoint.url_file().empty() ? "url" : "urlFile";
    RETURN_IF_ERROR(Prefix(absl::StrCat(NameOf(endpoint), field), net::ParseUrl(url).status()));
    RETURN_IF_ERROR(SecretOf(endpoint).status());
  }
  EndpointTable::Get().Set(std::move(endpoints));
  return absl::OkStatus();
}

bool EndpointsAreKnown() { return EndpointTable::Get().All().has_value(); }

StatusOr<v1::NotificationEndpoint> FindEndpoint(const std::string& name, const std::string& ns) {
  const v1::NotificationEndpoints all =
      EndpointTable::Get().All().value_or(v1::NotificationEndpoints());
  std::vector<std::string> names;
  for (const v1::NotificationEndpoint& endpoint : all.endpoints()) {
    if (!MayUse(endpoint, ns)) continue;
    if (endpoint.name() == name) return endpoint;
    names.push_back(endpoint.name());
  }
  const std::string there =
      names.empty() ? "an administrator sets one up with --notifications FILE of serve, controller "
                      "or run"
                    : "there are " + absl::StrJoin(names, ", ");
  return absl::NotFoundError(
      absl::StrCat("there is no endpoint \"", name, "\" for namespace ", ns, " here: ", there));
}

}  // namespace shirabe::notify
