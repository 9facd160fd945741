// The leases that this process holds: taken one by one, renewed all at once. Used by the
// controller. Functions without state, as thread-safe as the store.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/names.h"
#include "base/status.h"
#include "db/bulk_leases.h"
#include "db/store.h"

namespace shirabe::experiment {

// Leases last for the first time, and are renewed every so often.
inline constexpr absl::Duration kLeaseTtl = absl::Seconds(15);
inline constexpr absl::Duration kLeaseRenewal = absl::Seconds(5);

// What a lease is taken for. With a purpose the holder is "<purpose> of <process>" and another than
// the controller of the same process, which waits for it as for any other.
struct LeaseTerms {
  std::string purpose = {};
  absl::Duration ttl = kLeaseTtl;
};

// Also from a holder that is dead but did not give its lease up: a process of this machine,
// whatever it had it for. kAlreadyExists, naming the holder, if another has it.
StatusOr<v1::Lease> AcquireLease(db::Store& store, Clock& clock, const ExperimentKey& key,
                                 const LeaseTerms& terms = {});

// The epoch of a lease whose holder is such a process; nullopt if the holder may be alive.
std::optional<int64_t> EpochOfDead(const v1::Lease& held);

// Renews all of this process; their epochs. One that is missing is lost, or was deleted.
StatusOr<std::map<ExperimentKey, int64_t>> RenewLeases(db::Store& store, Clock& clock);

// Of one that was not among those renewed. kAborted if another process has it, or had it meanwhile:
// what is known here of its experiment is old. kNotFound if that was deleted.
Status CheckLease(db::Store& store, Clock& clock, const db::LeaseClaim& claim);

// Follows the store and says for which experiment an intent was written, by whatever process, so
// that those who wait for one need not look. Has a thread of its own, which calls `on_intent`; made
// by the controller. The store must outlive it.
class IntentFollower {
 public:
  using OnIntent = std::function<void(const ExperimentKey&)>;

  // Of intents that are written from now on. May be called once too often.
  IntentFollower(db::Store* store, OnIntent on_intent);
  // Within a tenth of a second.
  ~IntentFollower() = default;

 private:
  void Run(std::stop_token stop);

  db::Store* const store_;
  const OnIntent on_intent_;
  int64_t followed_;     // the revision up to which intents are known
  std::jthread thread_;  // last: it uses the rest
};

}  // namespace shirabe::experiment
