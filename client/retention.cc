#include "client/retention.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "artifacts/retries.h"
#include "base/sorting.h"
#include "base/timestamp.h"
#include "experiment/conditions.h"
#include "experiment/experiment_leases.h"
#include "trial/checkpoint/checkpoint_copy.h"

namespace shirabe::client {
namespace {

constexpr absl::Duration kCopiesLease = absl::Minutes(2);
constexpr absl::Duration kCopiesRenewal = absl::Seconds(20);
constexpr double kMaxDays = 36500;
constexpr char kRemovedReason[] = "CopiesRemoved";

// The lease of an experiment, by another name than that of the controller of this process, which
// has to wait as well.
class CopiesLease {
 public:
  CopiesLease(db::Store& store, Clock* clock, const ExperimentKey& key)
      : store_(store), clock_(clock), key_(key) {}
  ~CopiesLease() {
    if (epoch_) store_.ReleaseLease({key_, *epoch_}).IgnoreError();
  }

  // kAlreadyExists if it is run; kAborted if it was lost in between.
  Status Acquire() {
    ASSIGN_OR_RETURN(const v1::Lease lease,
                     experiment::AcquireLease(store_, *clock_, key_, {"copies", kCopiesLease}));
    const bool lost = epoch_ && *epoch_ != lease.epoch();
    epoch_ = lease.epoch();
    acquired_ = clock_->Monotonic();
    return lost ? absl::AbortedError("the lease was lost") : absl::OkStatus();
  }
  Status Renew() {
    return clock_->Monotonic() - acquired_ < kCopiesRenewal ? absl::OkStatus() : Acquire();
  }
  int64_t epoch() const { return *epoch_; }

 private:
  db::Store& store_;
  Clock* const clock_;
  const ExperimentKey key_;
  std::optional<int64_t> epoch_;
  absl::Duration acquired_;
};

class CopyRemover {
 public:
  CopyRemover(LocalClient& client, const CopyRetention& options)
      : store_(client.store()), stores_(client.stores()), options_(options) {}

  StatusOr<std::vector<RemovedCopies>> Run() {
    std::vector<RemovedCopies> removed;
    if (stores_ == nullptr) return removed;
    ASSIGN_OR_RETURN(const auto experiments, store_.ListExperiments(options_.ns));
    for (const auto& experiment : experiments) {
      if (options_.stop.stop_requested()) break;
      if (!IsDue(experiment.record)) continue;
      RemovedCopies one{.experiment = experiment::KeyOf(experiment.record),
                        .store = experiment.record.spec().shirabe().artifacts().store()};
      const Status status = Remove(one.experiment);
      if (absl::IsAlreadyExists(status) || absl::IsFailedPrecondition(status)) continue;
      if (!status.ok()) one.error = Message(status);
      removed.push_back(std::move(one));
    }
    return removed;
  }

 private:
  bool IsDue(const v1::Experiment& experiment) const {
    const std::string& store = experiment.spec().shirabe().artifacts().store();
    const std::string& ns = experiment.metadata().namespace_();
    if (store.empty() || !stores_->Check(store, ns).ok()) return false;
    const auto due = CopiesDue(experiment, stores_->KeepDays(store));
    return due && *due < options_.clock->Now();
  }

  // kAlreadyExists: it is run; kFailedPrecondition: it is needed after all.
  Status Remove(const ExperimentKey& key) {
    CopiesLease lease(store_, options_.clock, key);
    if (!options_.dry_run) RETURN_IF_ERROR(lease.Acquire());
    ASSIGN_OR_RETURN(auto experiment, store_.GetExperiment(key));
    ASSIGN_OR_RETURN(const auto intents, store_.ListIntents(key));
    ASSIGN_OR_RETURN(const auto open,
                     store_.ListAttempts({.experiment = key, .open_only = true, .limit = 1}));
    if (!IsDue(experiment.record) || !intents.empty() || !open.empty()) {
      return absl::FailedPreconditionError("it goes on");
    }
    if (options_.dry_run) return absl::OkStatus();
    RETURN_IF_ERROR(RemoveFromStore(experiment.record, lease));
    return Record(std::move(experiment), lease);
  }

  Status RemoveFromStore(const v1::Experiment& experiment, CopiesLease& lease) {
    const v1::ArtifactPolicy& policy = experiment.spec().shirabe().artifacts();
    const ExperimentKey key = experiment::KeyOf(experiment);
    ASSIGN_OR_RETURN(const auto whole, stores_->Find(policy.store(), key.ns));
    artifacts::RetryingStore store(whole.get(), {.attempts = 3});
    return Prefix("store " + policy.store(),
                  trial::RemoveCopies(key, {&store, policy.prefix(), options_.stop},
                                      [&lease] { return lease.Renew(); }));
  }

  Status Record(db::Versioned<v1::Experiment> experiment, CopiesLease& lease) {
    const ExperimentKey key = experiment::KeyOf(experiment.record);
    const absl::Time now = options_.clock->Now();
    db::Batch batch{.experiment = key, .epoch = lease.epoch()};
    *experiment.record.mutable_status()->mutable_shirabe()->mutable_copies_removed() = ToProto(now);
    batch.put = db::Write<v1::Experiment>{experiment.record, experiment.revision};
    v1::Event& event = batch.events.emplace_back();
    event.set_namespace_(key.ns);
    event.set_experiment(key.name);
    event.set_reason(kRemovedReason);
    event.set_message(absl::StrCat("from store ",
                                   experiment.record.spec().shirabe().artifacts().store(),
                                   ": their time there is over (keepDays)"));
    *event.mutable_time() = ToProto(now);
    return store_.Commit(batch).status();
  }

  db::Store& store_;
  const std::shared_ptr<const artifacts::StoreTable> stores_;  // shared: with the client
  const CopyRetention& options_;
};

}  // namespace

std::optional<absl::Time> CopiesDue(const v1::Experiment& experiment,
                                    std::optional<double> days_of_store) {
  const v1::ArtifactPolicy& policy = experiment.spec().shirabe().artifacts();
  const v1::ExperimentStatus& status = experiment.status();
  if (!policy.checkpoints() && !policy.outputs()) return std::nullopt;
  if (experiment::NeedsOwner(experiment) || !status.has_completion_time()) return std::nullopt;
  double days = days_of_store.value_or(kMaxDays + 1);
  if (policy.has_keep_days()) days = std::min(days, policy.keep_days());
  if (!(days <= kMaxDays)) return std::nullopt;
  const absl::Time end = FromProto(status.completion_time());
  const v1::ShirabeStatus& ours = status.shirabe();
  if (ours.has_copies_removed() && FromProto(ours.copies_removed()) >= end) return std::nullopt;
  return end + absl::Hours(24) * days;
}

StatusOr<std::vector<RemovedCopies>> RemoveOldCopies(LocalClient& client,
                                                     const CopyRetention& options) {
  return CopyRemover(client, options).Run();
}

namespace {

using Group = std::vector<const db::StoredObservation*>;

// The places, in a group in the order of steps, of rows that stay.
std::set<size_t> PlacesToKeep(const Group& group, size_t keep) {
  std::set<size_t> places = {0, group.size() - 1};
  const auto value = [&](size_t i) { return group[i]->value; };
  size_t least = group.size(), greatest = group.size();
  for (size_t i = 0; i < group.size(); ++i) {
    if (!std::isfinite(value(i))) continue;
    if (least == group.size() || value(i) < value(least)) least = i;
    if (greatest == group.size() || value(i) > value(greatest)) greatest = i;
  }
  if (least != group.size()) places.insert({least, greatest});
  const size_t between = keep - places.size();
  for (size_t i = 1; i <= between; ++i) places.insert(i * (group.size() - 1) / (between + 1));
  return places;
}

}  // namespace

std::vector<db::ObservationKey> RowsToRemove(const v1::ExperimentSpec& spec,
                                             const std::vector<db::StoredObservation>& rows,
                                             int64_t keep) {
  CHECK(keep >= kMinKeptObservations);
  std::map<std::pair<std::string, bool>, Group> groups;
  for (const db::StoredObservation& row : rows) {
    const bool judged = spec.has_early_stopping() && !row.superseded &&
                        row.metric == spec.objective().objective_metric_name();
    if (!judged) groups[{row.metric, row.superseded}].push_back(&row);
  }
  std::vector<db::ObservationKey> removed;
  for (auto& [key, group] : groups) {
    if (std::ssize(group) <= keep) continue;
    StableSort(group, [](const auto* a, const auto* b) {
      return std::pair(a->step, a->attempt) < std::pair(b->step, b->attempt);
    });
    const std::set<size_t> kept = PlacesToKeep(group, static_cast<size_t>(keep));
    for (size_t i = 0; i < group.size(); ++i) {
      if (!kept.contains(i)) removed.push_back({group[i]->attempt, group[i]->step, key.first});
    }
  }
  return removed;
}

}  // namespace shirabe::client
