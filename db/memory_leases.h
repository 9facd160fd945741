// The leases of the store in memory. Of db/memory_store, under its mutex.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "db/bulk.h"
#include "db/rules.h"

namespace shirabe::db {

class MemoryLeases {
 public:
  v1::Lease Get(const ExperimentKey& key) const {
    const auto found = leases_.find(key);
    if (found == leases_.end()) return NoLease(key);
    const auto renewed = renewed_.find(found->second.holder());
    return renewed == renewed_.end() ? found->second : LeaseUntil(found->second, renewed->second);
  }
  void Set(const ExperimentKey& key, const v1::Lease& lease) { leases_[key] = lease; }
  void Release(const LeaseClaim& claim) {
    const auto found = leases_.find(claim.experiment);
    if (found == leases_.end() || found->second.epoch() != claim.epoch) return;
    found->second.clear_holder();
    found->second.clear_expiry();
  }
  std::vector<LeaseClaim> Renew(const LeaseRenewal& renewal) {
    std::erase_if(renewed_, [&](const auto& entry) { return entry.second <= renewal.now; });
    renewed_[renewal.holder] = renewal.now + renewal.ttl;
    std::vector<LeaseClaim> held;
    for (const auto& [key, lease] : leases_) {
      if (lease.holder() == renewal.holder) held.push_back({key, lease.epoch()});
    }
    return held;
  }

 private:
  std::map<ExperimentKey, v1::Lease> leases_;  // stays when an experiment is deleted
  std::map<std::string, absl::Time> renewed_;  // by holder: until then
};

}  // namespace shirabe::db
