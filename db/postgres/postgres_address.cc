#include "db/postgres/postgres_address.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/dynamic_library.h"
#include "base/mutex.h"

namespace shirabe::db {
namespace {

using Options = std::map<std::string, std::string>;

// What the store wants unless the address says otherwise. A connection whose other end is gone must
// be noticed within seconds, not after the two hours of the system's default; and after a failover
// only the new primary will do, for reads too: we read what we wrote.
constexpr std::pair<const char*, const char*> kDefaults[] = {
    {"application_name", "shirabe"}, {"client_encoding", "UTF8"}, {"keepalives_idle", "10"},
    {"keepalives_interval", "5"},    {"keepalives_count", "3"},   {"tcp_user_timeout", "15000"},
    {"connect_timeout", "3"},
};

// libpq's complaint can quote the address, and with it a password.
bool MayHoldPassword(const std::string& address) {
  const size_t at = address.rfind('@');
  const bool in_uri = at != std::string::npos && address.rfind(':', at) != std::string::npos;
  return in_uri || absl::StrContains(address, "password");
}

Status Unreadable(const std::string& address, const char* detail) {
  std::string why;
  if (detail != nullptr && !MayHoldPassword(address)) {
    why = absl::StrCat(" (", absl::StripTrailingAsciiWhitespace(detail), ")");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the address after postgres: cannot be understood", why,
                   ": write postgres://USER@HOST:PORT/DATABASE, or postgres: and libpq's keywords "
                   "such as host=/run/postgresql dbname=shirabe"));
}

std::string Shown(const Options& options) {
  const auto get = [&](const char* name, const char* before) {
    const auto found = options.find(name);
    return found == options.end() ? "" : absl::StrCat(before, found->second);
  };
  const std::string user = get("user", "");
  const std::string host = options.contains("host") ? get("host", "") : get("hostaddr", "");
  return absl::StrCat("postgres://", user, user.empty() ? "" : "@", host, get("port", ":"),
                      get("dbname", "/"));
}

}  // namespace

StatusOr<PostgresAddress> ParsePostgresAddress(const PostgresLibrary& pq,
                                               const std::string& address) {
  const std::string text = absl::StartsWith(address, "//") ? "postgresql:" + address : address;
  char* complaint = nullptr;
  const std::unique_ptr<PQconninfoOption, decltype(pq.PQconninfoFree)> parsed(
      pq.PQconninfoParse(text.c_str(), &complaint), pq.PQconninfoFree);
  const std::unique_ptr<char, decltype(pq.PQfreemem)> owned(complaint, pq.PQfreemem);
  if (parsed == nullptr) return Unreadable(address, complaint);

  Options options;
  for (const PQconninfoOption* at = parsed.get(); at->keyword != nullptr; ++at) {
    if (at->val != nullptr) options[at->keyword] = at->val;
  }
  PostgresAddress result{.shown = Shown(options)};
  for (const auto& [keyword, value] : kDefaults) options.emplace(keyword, value);
  int64_t seconds = 0;
  // As libpq has it: zero and less mean for ever.
  if (absl::SimpleAtoi(options["connect_timeout"], &seconds)) {
    result.patience = seconds > 0 ? absl::Seconds(seconds) : absl::Hours(1);
  }
  result.options.assign(options.begin(), options.end());
  return result;
}

namespace {

constexpr char kFile[] = "libpq.so.5";

Status Missing(const std::string& why) {
  return absl::UnimplementedError(
      absl::StrCat("databases postgres: need PostgreSQL's client library, which cannot be loaded (",
                   why, "): install it (on Debian: apt-get install libpq5), or use sqlite:PATH"));
}

}  // namespace

StatusOr<PostgresLibrary> LoadPostgresLibraryFrom(const char* file) {
  const auto library = OpenLibrary(file);
  if (!library.ok()) return Missing(Message(library.status()));
  PostgresLibrary table;
  Status found;
#define SHIRABE_LIBPQ_FIND(name) \
  if (found.ok()) found = FindFunction(*library, #name, &table.name);
  SHIRABE_LIBPQ_FUNCTIONS(SHIRABE_LIBPQ_FIND)
#undef SHIRABE_LIBPQ_FIND
  if (!found.ok()) return Missing(Message(found));
  return table;
}

StatusOr<const PostgresLibrary*> LoadPostgresLibrary() {
  static Mutex mutex;
  static std::optional<PostgresLibrary> loaded ABSL_GUARDED_BY(mutex);
  const MutexLock lock(mutex);
  if (!loaded) {
    ASSIGN_OR_RETURN(loaded, LoadPostgresLibraryFrom(kFile));
  }
  return &*loaded;
}

}  // namespace shirabe::db
