#include "client/state_location.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "base/names.h"
#include "db/postgres/postgres_schema.h"
#include "db/sqlite/sqlite_schema.h"

namespace shirabe::client {
namespace {

// An empty variable counts as none, as the XDG specification wants it.
std::string Lookup(const Environment& environment, const std::string& name) {
  return environment(name).value_or("");
}

StatusOr<std::string> FindHome(const Environment& environment) {
  if (std::string home = Lookup(environment, "SHIRABE_HOME"); !home.empty()) return home;
  if (std::string data = Lookup(environment, "XDG_DATA_HOME"); !data.empty() && data[0] == '/') {
    return data + "/shirabe";
  }
  const std::string user = Lookup(environment, "HOME");
  if (!user.empty()) return user + "/.local/share/shirabe";
  return absl::InvalidArgumentError(
      "neither SHIRABE_HOME nor HOME is set: set SHIRABE_HOME to a directory for the state");
}

}  // namespace

Environment ProcessEnvironment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

std::string ShownDatabase(const StateLocation& place) {
  const std::string& address = place.db;
  const size_t scheme = address.find("://");
  const size_t user = scheme == address.npos ? address.npos : scheme + 3;
  const size_t at = user == address.npos ? address.npos : address.find('@', user);
  // As a parameter, or a host that is none: then the kind of database is all that is safe.
  if (absl::StrContains(absl::AsciiStrToLower(address), "password") ||
      (at != address.npos && address.find('@', at + 1) != address.npos)) {
    return address.substr(0, address.find(':')) + ":…";
  }
  if (at == address.npos) return address;
  const size_t colon = address.find(':', user);
  return colon < at ? address.substr(0, colon) + address.substr(at) : address;
}

StatusOr<StateLocation> FindStateLocation(const StateLocationFlags& flags,
                                          const Environment& environment) {
  StateLocation place;
  ASSIGN_OR_RETURN(place.home, FindHome(environment));
  place.db = flags.db.empty() ? Lookup(environment, "SHIRABE_DB") : flags.db;
  place.db_is_default = place.db.empty();
  if (place.db_is_default) place.db = "sqlite:" + place.home + "/shirabe.db";
  place.ns = flags.ns.empty() ? Lookup(environment, "SHIRABE_NAMESPACE") : flags.ns;
  place.ns_is_default = place.ns.empty();
  if (place.ns_is_default) place.ns = "default";
  RETURN_IF_ERROR(ValidateNamespace(place.ns));
  return place;
}

bool IsDefaultStoreMissing(const StateLocation& place) {
  constexpr char kScheme[] = "sqlite:";
  if (!place.db_is_default || !absl::StartsWith(place.db, kScheme)) return false;
  return access(place.db.c_str() + sizeof kScheme - 1, F_OK) != 0 && errno == ENOENT;
}

std::map<std::string, int64_t> StoredSchemas() {
  return {{"sqlite", static_cast<int64_t>(db::CurrentSchema().size())},
          {"postgres", static_cast<int64_t>(db::CurrentPostgresSchema().size())}};
}

}  // namespace shirabe::client
