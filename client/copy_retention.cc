#include "client/copy_retention.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "artifacts/retries.h"
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

}  // namespace shirabe::client
