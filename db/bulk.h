// What a holder of many experiments asks of a store at once, where db/store.h has one call for each
// of them. Every store of ours is one of these, too; see BulkOf. Thread-safe, with the errors of
// db/store.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "db/store.h"

namespace shirabe::db {

struct LeaseRenewal {
  std::string holder{};
  absl::Time now{};
  absl::Duration ttl{};
};

class Bulk {
 public:
  virtual ~Bulk() = default;

  // Renews all leases of a holder, in one write that costs the same however many they are, and
  // returns them. One that is not among them was lost. Like every call for leases it makes no
  // revision: nobody who follows the store hears of it.
  virtual StatusOr<std::vector<LeaseClaim>> RenewLeases(const LeaseRenewal& renewal) = 0;
  // Gives them up at once, in one write; their epochs are remembered. OK for those that are no
  // longer ours.
  virtual Status ReleaseLeases(const std::vector<LeaseClaim>& claims) = 0;
  // How many experiments there are in a namespace, or in all ("").
  virtual StatusOr<int64_t> CountExperiments(const std::string& ns) = 0;
};

// The same store; there must be such a side to it.
inline Bulk& BulkOf(Store& store) {
  Bulk* const bulk = dynamic_cast<Bulk*>(&store);
  CHECK(bulk != nullptr);
  return *bulk;
}

}  // namespace shirabe::db
