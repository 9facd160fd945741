#include "db/store.h"

#include "absl/strings/str_join.h"
#include "db/change_signal.h"

namespace shirabe::db {
namespace {

// An address as it may be shown: what follows the scheme can hold a password.
std::string Showable(const std::string& address) {
  const bool secret =
      address.find('@') != std::string::npos || address.find("password") != std::string::npos;
  return secret ? address.substr(0, address.find(':')) + ":…" : address;
}

}  // namespace

StatusOr<int64_t> Store::AwaitChange(int64_t after, absl::Duration timeout) {
  ChangeSignal nobody_raises;
  return AwaitByAsking(this, &nobody_raises, after, timeout);
}

StatusOr<std::unique_ptr<Store>> Open(const std::string& address, bool read_only) {
  const size_t colon = address.find(':');
  const std::string scheme = address.substr(0, colon);
  const StoreInfo* info = Registry<StoreInfo>::Get().Find(scheme);
  if (colon == std::string::npos || info == nullptr) {
    const auto names = Registry<StoreInfo>::Get().Names();
    return absl::InvalidArgumentError("database \"" + Showable(address) +
                                      "\" must begin with one of: " + absl::StrJoin(names, ":, ") +
                                      ": (for example sqlite:/data/shirabe.db)");
  }
  return info->open(address.substr(colon + 1), read_only);
}

}  // namespace shirabe::db
