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
  // revision: those who follow the store do not hear of it.
  virtual StatusOr<std::vector<LeaseClaim>> RenewLeases(const LeaseRenewal& renewal) = 0;
  // Gives them up at once, in one write; their epochs are remembered. OK for those that are no
  // longer ours.
  virtual Status ReleaseLeases(const std::vector<LeaseClaim>& claims) = 0;
  // How many experiments there are in a namespace, or in all ("").
  virtual StatusOr<int64_t> CountExperiments(const std::string& ns) = 0;
  // Before an experiment is deleted, by the holder of its lease: removes at most so many of the
  // rows that belong to it, the newest trials first, so that no caller waits long behind a write.
  // True while there are more. Makes no revision.
  virtual StatusOr<bool> RemoveRows(const LeaseClaim& claim, int64_t most) = 0;
};

// The same store; null if there is no such side to it.
inline Bulk* FindBulk(Store& store) { return dynamic_cast<Bulk*>(&store); }
// The same where there must be one.
inline Bulk& BulkOf(Store& store) {
  Bulk* const bulk = FindBulk(store);
  CHECK(bulk != nullptr);
  return *bulk;
}

}  // namespace shirabe::db
