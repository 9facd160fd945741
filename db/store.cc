#include "db/store.h"

#include "absl/strings/str_join.h"

namespace shirabe::db {

StatusOr<std::unique_ptr<Store>> Open(const std::string& address, bool read_only) {
  const size_t colon = address.find(':');
  const std::string scheme = address.substr(0, colon);
  const StoreInfo* info = Registry<StoreInfo>::Get().Find(scheme);
  if (colon == std::string::npos || info == nullptr) {
    const auto names = Registry<StoreInfo>::Get().Names();
    return absl::InvalidArgumentError("database \"" + address +
                                      "\" must begin with one of: " + absl::StrJoin(names, ":, ") +
                                      ": (for example sqlite:/data/shirabe.db)");
  }
  return info->open(address.substr(colon + 1), read_only);
}

}  // namespace shirabe::db
