#include "trial/checkpoint/checkpoint_copier.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "trial/checkpoint/checkpoint_copy.h"
#include "trial/checkpoint/checkpoint_folder.h"

namespace shirabe::trial {
namespace {

constexpr size_t kCopyThreads = 4;
constexpr size_t kRemovalThreads = 2;
constexpr absl::Duration kMaxWaitForRemovals = absl::Seconds(10);

std::string Steps(const std::set<int64_t>& steps) {
  return absl::StrCat(steps.size(), steps.size() == 1 ? " checkpoint" : " checkpoints",
                      ", the latest at step ", *steps.rbegin());
}

}  // namespace

CheckpointCopier::CheckpointCopier(CopierOptions options)
    : options_(std::move(options)), copies_(kCopyThreads), removals_(kRemovalThreads) {}

void CheckpointCopier::End() {
  if (stop_.stop_requested()) return;
  {
    MutexLock lock(mutex_);
    removed_.WaitFor(lock, kMaxWaitForRemovals, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return removals_under_way_ == 0;
    });
    stop_.request_stop();
    for (auto& [key, tracked] : attempts_) tracked.stop.request_stop();
  }
  copies_.End();
  removals_.End();
}

// ---- where to ----------------------------------------------------------------------------------

void CheckpointCopier::SetPolicy(const ExperimentKey& key, const v1::ArtifactPolicy& policy) {
  const MutexLock lock(mutex_);
  if (policy.store().empty()) {
    policies_.erase(key);
  } else {
    policies_[key] = policy;
  }
}

std::optional<v1::ArtifactPolicy> CheckpointCopier::PolicyOf(const ExperimentKey& key) const {
  const MutexLock lock(mutex_);
  const auto found = policies_.find(key);
  return found == policies_.end() ? std::nullopt : std::optional(found->second);
}

StatusOr<CheckpointCopier::Target> CheckpointCopier::TargetOf(
    const std::string& ns, const v1::ArtifactPolicy& policy) const {
  if (options_.stores == nullptr) {
    return InvalidField("spec.shirabe.artifacts.store",
                        "no stores are known here: name them with --stores FILE");
  }
  ASSIGN_OR_RETURN(auto store, options_.stores->Find(policy.store(), ns));
  return Target{std::move(store), policy.store(), policy.prefix()};
}

Status CheckpointCopier::Check(const ExperimentKey& key) const {
  const auto policy = PolicyOf(key);
  return policy ? TargetOf(key.ns, *policy).status() : absl::OkStatus();
}

// ---- out ---------------------------------------------------------------------------------------

void CheckpointCopier::Copy(const v1::Checkpoint& checkpoint) {
  const AttemptKey key = KeyOf(checkpoint);
  const auto policy = PolicyOf(key.trial.experiment);
  if (!policy || !policy->checkpoints()) return;
  std::stop_token stop;
  if (!Announce(key, checkpoint.step(), &stop)) return;
  copies_.Run([this, checkpoint, policy = *policy, stop = std::move(stop)] {
    FinishCopy(checkpoint, CopyNow(checkpoint, policy, stop));
  });
}

bool CheckpointCopier::Announce(const AttemptKey& key, int64_t step, std::stop_token* stop) {
  const MutexLock lock(mutex_);
  TrackedCopies& tracked = attempts_[key];
  if (!tracked.announced.insert(step).second) return false;
  tracked.under_way.insert(step);
  *stop = tracked.stop.get_token();
  return true;
}

Status CheckpointCopier::CopyNow(const v1::Checkpoint& checkpoint, const v1::ArtifactPolicy& policy,
                                 const std::stop_token& stop) const {
  ASSIGN_OR_RETURN(const Target target, TargetOf(checkpoint.namespace_(), policy));
  artifacts::RetryingStore store(target.store.get(), options_.retries.calls);
  const std::string dir = options_.layout->Paths(KeyOf(checkpoint)).checkpoint_dir;
  return artifacts::WithRetries(options_.retries.checkpoints, stop, [&] {
    return CopyOut(checkpoint, dir, {&store, target.prefix, stop});
  });
}

void CheckpointCopier::FinishCopy(const v1::Checkpoint& checkpoint, const Status& status) {
  const AttemptKey key = KeyOf(checkpoint);
  const int64_t step = checkpoint.step();
  bool pruned = false;
  bool idle = false;
  {
    const MutexLock lock(mutex_);
    const auto found = attempts_.find(key);
    if (found == attempts_.end()) return;
    TrackedCopies& tracked = found->second;
    tracked.under_way.erase(step);
    pruned = tracked.pruned.contains(step);
    idle = tracked.under_way.empty();
    if (status.ok() && !pruned) tracked.copied.insert(step);
    if (!status.ok() && !pruned) tracked.failed[step] = Message(status);
  }
  // It has been removed while it was being made: whatever of it is there goes again.
  if (const auto policy = PolicyOf(key.trial.experiment); pruned && policy) {
    Remove(checkpoint, *policy);
  }
  if (idle && options_.on_idle) options_.on_idle(key);
}

void CheckpointCopier::CopyOutputs(const AttemptKey& key) {
  const auto policy = PolicyOf(key.trial.experiment);
  if (!policy || !policy->outputs() || key.trial.number == kFollowUpNumber) return;
  std::stop_token stop;
  if (!Announce(key, kOutputsStep, &stop)) return;
  copies_.Run([this, key, policy = *policy, stop = std::move(stop)] {
    FinishOutputs(key, CopyOutputsNow(key, policy, stop));
  });
}

StatusOr<v1::Checkpoint> CheckpointCopier::CopyOutputsNow(const AttemptKey& key,
                                                          const v1::ArtifactPolicy& policy,
                                                          const std::stop_token& stop) const {
  ASSIGN_OR_RETURN(const Target target, TargetOf(key.trial.experiment.ns, policy));
  artifacts::RetryingStore store(target.store.get(), options_.retries.calls);
  v1::Checkpoint outputs;
  RETURN_IF_ERROR(artifacts::WithRetries(options_.retries.checkpoints, stop, [&]() -> Status {
    ASSIGN_OR_RETURN(outputs, CopyOutputsOut(key, options_.layout->Paths(key).output_dir,
                                             {&store, target.prefix, stop}));
    return absl::OkStatus();
  }));
  outputs.set_location(
      absl::StrCat("store ", policy.store(), ": ", CopyOf(policy.prefix(), outputs)));
  return outputs;
}

void CheckpointCopier::FinishOutputs(const AttemptKey& key,
                                     const StatusOr<v1::Checkpoint>& outputs) {
  {
    const MutexLock lock(mutex_);
    const auto found = attempts_.find(key);
    if (found == attempts_.end()) return;
    TrackedCopies& tracked = found->second;
    tracked.under_way.erase(kOutputsStep);
    if (!outputs.ok()) tracked.outputs_failed = Message(outputs.status());
    if (outputs.ok() && !outputs->digest().empty()) tracked.outputs = *outputs;
    if (!tracked.under_way.empty()) return;
  }
  if (options_.on_idle) options_.on_idle(key);
}

bool CheckpointCopier::Busy(const AttemptKey& key) const {
  const MutexLock lock(mutex_);
  const auto found = attempts_.find(key);
  return found != attempts_.end() && !found->second.under_way.empty();
}

void CheckpointCopier::Describe(AttemptStatus& observed) const {
  const auto policy = PolicyOf(observed.key.trial.experiment);
  const MutexLock lock(mutex_);
  const auto found = attempts_.find(observed.key);
  if (found == attempts_.end() || !policy) return;
  const TrackedCopies& tracked = found->second;
  observed.outputs = tracked.outputs;
  if (!tracked.outputs_failed.empty()) {
    observed.outputs_uncopied =
        absl::StrCat("to store ", policy->store(), ": ", tracked.outputs_failed);
  }
  if (!tracked.copied.empty()) {
    observed.copied = absl::StrCat(Steps(tracked.copied), ", to store ", policy->store());
  }
  if (tracked.failed.empty()) return;
  std::set<int64_t> steps;
  for (const auto& [step, why] : tracked.failed) steps.insert(step);
  observed.uncopied = absl::StrCat(Steps(steps), ", to store ", policy->store(), ": ",
                                   tracked.failed.rbegin()->second);
}

v1::CopyState CheckpointCopier::StateOf(const v1::Checkpoint& checkpoint) const {
  const MutexLock lock(mutex_);
  const auto found = attempts_.find(KeyOf(checkpoint));
  if (found == attempts_.end()) return v1::COPY_NONE;
  const TrackedCopies& tracked = found->second;
  if (tracked.copied.contains(checkpoint.step())) return v1::COPY_MADE;
  if (tracked.under_way.contains(checkpoint.step())) return v1::COPY_UNDER_WAY;
  return tracked.failed.contains(checkpoint.step()) ? v1::COPY_FAILED : v1::COPY_NONE;
}

void CheckpointCopier::Abandon(const AttemptKey& key) {
  const MutexLock lock(mutex_);
  const auto found = attempts_.find(key);
  if (found != attempts_.end()) found->second.stop.request_stop();
}

void CheckpointCopier::Forget(const AttemptKey& key) {
  const MutexLock lock(mutex_);
  const auto found = attempts_.find(key);
  if (found == attempts_.end()) return;
  found->second.stop.request_stop();
  attempts_.erase(found);
}

// ---- in ----------------------------------------------------------------------------------------

bool CheckpointCopier::MayHave(const v1::Checkpoint& checkpoint) const {
  const auto policy = PolicyOf(ExperimentKeyOf(checkpoint));
  return policy && policy->checkpoints();
}

Status CheckpointCopier::Fetch(const v1::Checkpoint& checkpoint,
                               const std::string& checkpoint_dir) {
  const auto policy = PolicyOf(ExperimentKeyOf(checkpoint));
  if (!policy || !policy->checkpoints()) return absl::NotFoundError("it has no copy");
  ASSIGN_OR_RETURN(const Target target, TargetOf(checkpoint.namespace_(), *policy));
  artifacts::RetryingStore store(target.store.get(), options_.retries.calls);
  const std::string path = absl::StrCat(checkpoint_dir, "/", checkpoint.step());
  const Status fetched = CopyIn(checkpoint, path, {&store, target.prefix, stop_.get_token()});
  return Prefix("store " + target.shown, fetched);
}

// ---- away --------------------------------------------------------------------------------------

void CheckpointCopier::Prune(const v1::Checkpoint& checkpoint) {
  const auto policy = PolicyOf(ExperimentKeyOf(checkpoint));
  const bool outputs = checkpoint.step() == kOutputsStep;
  if (!policy || !(outputs ? policy->outputs() : policy->checkpoints())) return;
  {
    const MutexLock lock(mutex_);
    const auto found = attempts_.find(KeyOf(checkpoint));
    if (found != attempts_.end()) {
      found->second.failed.erase(checkpoint.step());
      if (found->second.under_way.contains(checkpoint.step())) {
        found->second.pruned.insert(checkpoint.step());
        return;
      }
    }
  }
  Remove(checkpoint, *policy);
}

void CheckpointCopier::Remove(const v1::Checkpoint& checkpoint, const v1::ArtifactPolicy& policy) {
  RunRemoval([this, checkpoint, policy] {
    const auto target = TargetOf(checkpoint.namespace_(), policy);
    Status status = target.status();
    if (target.ok()) {
      artifacts::RetryingStore store(target->store.get(), options_.retries.calls);
      status = RemoveCopy(checkpoint, {&store, target->prefix, stop_.get_token()});
    }
    if (status.ok() || absl::IsCancelled(status)) return;
    Log(LogLevel::kWarning, "failed to delete the copy of an unneeded checkpoint",
        {{"store", policy.store()},
         {"copy", CopyOf(policy.prefix(), checkpoint)},
         {"error", Message(status)}});
  });
}

void CheckpointCopier::RunRemoval(std::function<void()> removal) {
  {
    const MutexLock lock(mutex_);
    ++removals_under_way_;
  }
  removals_.Run([this, removal = std::move(removal)] {
    removal();
    const MutexLock lock(mutex_);
    --removals_under_way_;
    removed_.NotifyAll();
  });
}

Status CheckpointCopier::RemoveNow(const ExperimentKey& key,
                                   const v1::ArtifactPolicy& policy) const {
  ASSIGN_OR_RETURN(const Target target, TargetOf(key.ns, policy));
  artifacts::RetryingStore store(target.store.get(), options_.retries.calls);
  return RemoveCopies(key, {&store, target.prefix, stop_.get_token()});
}

void CheckpointCopier::RemoveAllOf(const ExperimentKey& key, const v1::ArtifactPolicy& policy) {
  if (!policy.checkpoints() && !policy.outputs()) return;
  {
    const MutexLock lock(mutex_);
    policies_.erase(key);
    if (!removing_.insert(key).second) return;
  }
  RunRemoval([this, key, policy] {
    const Status status = RemoveNow(key, policy);
    if (!status.ok()) {
      Log(LogLevel::kWarning, "failed to delete the copies of a deleted experiment's checkpoints",
          {{"experiment", ToString(key)},
           {"store", policy.store()},
           {"below", CopiesOfExperiment(policy.prefix(), key)},
           {"error", Message(status)}});
    }
    {
      const MutexLock lock(mutex_);
      removing_.erase(key);
    }
    if (options_.on_removed) options_.on_removed(key);
  });
}

bool CheckpointCopier::IsRemoving(const ExperimentKey& key) const {
  const MutexLock lock(mutex_);
  return removing_.contains(key);
}

}  // namespace shirabe::trial
