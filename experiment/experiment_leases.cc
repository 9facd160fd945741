#include "experiment/experiment_leases.h"

#include <utility>

#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "base/process_id.h"

namespace shirabe::experiment {
namespace {

db::LeaseRequest RequestFor(const ExperimentKey& key, Clock& clock, const LeaseTerms& terms = {}) {
  const std::string process = ToString(ThisProcess());
  return {.experiment = key,
          .holder = terms.purpose.empty() ? process : terms.purpose + " of " + process,
          .now = clock.Now(),
          .ttl = terms.ttl,
          .dead_epoch = std::nullopt};
}

constexpr absl::Duration kWait = absl::Milliseconds(100);
constexpr absl::Duration kBatchDelay = absl::Milliseconds(10);  // what comes close together
constexpr int64_t kMaxChanges = 10'000;                         // read at once

}  // namespace

std::optional<int64_t> EpochOfDead(const v1::Lease& held) {
  for (const absl::string_view word : absl::StrSplit(held.holder(), ' ')) {
    const auto process = ParseProcessId({word.data(), word.size()});
    if (process && !MayBeAlive(*process)) return held.epoch();
  }
  return std::nullopt;
}

StatusOr<v1::Lease> AcquireLease(db::Store& store, Clock& clock, const ExperimentKey& key,
                                 const LeaseTerms& terms) {
  db::LeaseRequest request = RequestFor(key, clock, terms);
  auto lease = store.AcquireLease(request);
  if (!absl::IsAlreadyExists(lease.status())) return lease;
  ASSIGN_OR_RETURN(const v1::Lease held, store.GetLease(key));
  request.dead_epoch = EpochOfDead(held);
  return request.dead_epoch ? store.AcquireLease(request) : lease;
}

StatusOr<std::map<ExperimentKey, int64_t>> RenewLeases(db::Store& store, Clock& clock) {
  ASSIGN_OR_RETURN(const auto held,
                   db::BulkOf(store).RenewLeases(
                       {.holder = ToString(ThisProcess()), .now = clock.Now(), .ttl = kLeaseTtl}));
  std::map<ExperimentKey, int64_t> epochs;
  for (const db::LeaseClaim& claim : held) epochs[claim.experiment] = claim.epoch;
  return epochs;
}

// A process that slept while another one had the lease, and gave it up, gets a new one here, which
// is of no use to it: it begins again from the store.
Status CheckLease(db::Store& store, Clock& clock, const db::LeaseClaim& claim) {
  const auto lease = store.AcquireLease(RequestFor(claim.experiment, clock));
  if (absl::IsAlreadyExists(lease.status())) return absl::AbortedError(Message(lease.status()));
  RETURN_IF_ERROR(lease.status());
  if (lease->epoch() == claim.epoch) return absl::OkStatus();
  store.ReleaseLease({claim.experiment, lease->epoch()}).IgnoreError();
  return absl::AbortedError("the lease went to another process meanwhile");
}

IntentFollower::IntentFollower(db::Store* store, OnIntent on_intent)
    : store_(store),
      on_intent_(std::move(on_intent)),
      followed_(store->Revision().value_or(0)),
      thread_([this](std::stop_token stop) { Run(stop); }) {}

void IntentFollower::Run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    const auto now = store_->AwaitChange(followed_, kWait);
    if (!now.ok()) Pause(kWait);  // other reads and writes say what the trouble is
    if (!now.ok() || *now <= followed_) continue;
    const auto changes = store_->Changes(followed_, kMaxChanges);
    if (!changes.ok()) continue;
    for (const db::Change& change : *changes) {
      if (change.kind == db::Change::Kind::kIntent) on_intent_(change.experiment);
    }
    followed_ = changes->empty() ? *now : changes->back().revision;
    Pause(kBatchDelay);
  }
}

}  // namespace shirabe::experiment
