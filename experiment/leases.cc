#include "experiment/leases.h"

#include "base/process_id.h"

namespace shirabe::experiment {

namespace {

db::LeaseRequest RequestFor(const ExperimentKey& key, Clock& clock) {
  return {.experiment = key,
          .holder = ToString(ThisProcess()),
          .now = clock.Now(),
          .ttl = kLeaseTtl,
          .dead_epoch = std::nullopt};
}

}  // namespace

StatusOr<v1::Lease> AcquireLease(db::Store& store, Clock& clock, const ExperimentKey& key) {
  db::LeaseRequest request = RequestFor(key, clock);
  auto lease = store.AcquireLease(request);
  if (!absl::IsAlreadyExists(lease.status())) return lease;
  ASSIGN_OR_RETURN(const v1::Lease held, store.GetLease(key));
  const auto holder = ParseProcessId(held.holder());
  if (!holder || MayBeAlive(*holder)) return lease;
  request.dead_epoch = held.epoch();
  return store.AcquireLease(request);
}

StatusOr<std::map<ExperimentKey, int64_t>> RenewLeases(db::Store& store, Clock& clock) {
  ASSIGN_OR_RETURN(const auto held,
                   db::BulkOf(store).RenewLeases(
                       {.holder = ToString(ThisProcess()), .now = clock.Now(), .ttl = kLeaseTtl}));
  std::map<ExperimentKey, int64_t> epochs;
  for (const db::LeaseClaim& claim : held) epochs[claim.experiment] = claim.epoch;
  return epochs;
}

// Whoever slept while another process had the lease, and gave it up, gets a new one here, which is
// of no use to them: they begin again from the store.
Status CheckLease(db::Store& store, Clock& clock, const db::LeaseClaim& claim) {
  const auto lease = store.AcquireLease(RequestFor(claim.experiment, clock));
  if (absl::IsAlreadyExists(lease.status())) return absl::AbortedError(Message(lease.status()));
  RETURN_IF_ERROR(lease.status());
  if (lease->epoch() == claim.epoch) return absl::OkStatus();
  store.ReleaseLease({claim.experiment, lease->epoch()}).IgnoreError();
  return absl::AbortedError("the lease went to another process meanwhile");
}

}  // namespace shirabe::experiment
