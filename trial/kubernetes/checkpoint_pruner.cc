#include "trial/kubernetes/checkpoint_pruner.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "trial/kubernetes/checkpoint_volume.h"
#include "trial/kubernetes/volume_cleaner.h"

namespace shirabe::trial {
namespace {

constexpr int kPrunesAtOnce = 100;
constexpr absl::Duration kMaxPruneBackoff = absl::Minutes(10);
constexpr int kMaxShift = 9;

bool SameCheckpoint(const v1::Checkpoint& a, const v1::Checkpoint& b) {
  return a.trial() == b.trial() && a.attempt() == b.attempt() && a.step() == b.step();
}

template <class Checkpoints>
bool IsAmong(const v1::Checkpoint& checkpoint, const Checkpoints& all) {
  return std::any_of(all.begin(), all.end(), [&](const v1::Checkpoint& other) {
    return SameCheckpoint(checkpoint, other);
  });
}

bool IsShared(const v1::CheckpointVolume& volume) {
  return !volume.claim().empty() || !volume.host_path().empty();
}

}  // namespace

void CheckpointPruner::RecordScope(const AttemptRequest& request) {
  const v1::CheckpointVolume& volume = request.cluster.volume;
  const bool whole = !volume.size().empty() && !IsShared(volume);
  const MutexLock lock(mutex_);
  queues_[request.key.trial.experiment].scope = whole ? Scope::kTrial : Scope::kAttempt;
}

void CheckpointPruner::UseVolume(const ExperimentKey& experiment, const v1::ExperimentSpec& spec) {
  auto pruner = MakePruner(experiment, spec, *context_.pods);
  if (!pruner || !MayUseVolume(spec, *context_.pods)) return;
  const MutexLock lock(mutex_);
  queues_[experiment].job = std::move(pruner);
}

void CheckpointPruner::Prune(const v1::Checkpoint& checkpoint) {
  {
    const MutexLock lock(mutex_);
    Queue& queue = queues_[ExperimentKeyOf(checkpoint)];
    if (IsAmong(checkpoint, queue.waiting)) return;
    queue.waiting.push_back(checkpoint);
    if (!queue.due) queue.due = context_.clock->Monotonic() + context_.timeouts.prune;
  }
  context_.wake();
}

bool CheckpointPruner::Reaches(const AttemptKey& key, const v1::Checkpoint& checkpoint,
                               Scope scope) {
  return checkpoint.trial() == key.trial.number &&
         (scope == Scope::kTrial || checkpoint.attempt() == key.number);
}

void CheckpointPruner::FillReply(const AttemptKey& key, const Checkpoints& deleted,
                                 v1::SyncReply& reply) {
  const MutexLock lock(mutex_);
  const auto found = queues_.find(key.trial.experiment);
  if (found == queues_.end()) return;
  Queue& queue = found->second;
  std::erase_if(queue.waiting, [&](const v1::Checkpoint& checkpoint) {
    return Reaches(key, checkpoint, queue.scope) && IsAmong(checkpoint, deleted);
  });
  for (const v1::Checkpoint& checkpoint : queue.waiting) {
    if (reply.prune_size() >= kPrunesAtOnce) break;
    if (Reaches(key, checkpoint, queue.scope)) *reply.add_prune() = checkpoint;
  }
}

void CheckpointPruner::Forget(const ExperimentKey& experiment) {
  const MutexLock lock(mutex_);
  queues_.erase(experiment);
}

// One Job of an experiment at a time.
void CheckpointPruner::OnTimer(absl::Duration now) {
  const MutexLock lock(mutex_);
  for (auto& [experiment, queue] : queues_) {
    if (!queue.due || *queue.due > now) continue;
    queue.due.reset();
    if (!queue.job || (queue.waiting.empty() && queue.handed.empty())) continue;
    queue.due = now + absl::Minutes(1);  // for the case that what follows is cut short
    if (queue.handed.empty()) {
      const size_t most = std::min<size_t>(queue.waiting.size(), kMaxPrunedAtOnce);
      queue.handed.assign(queue.waiting.begin(), queue.waiting.begin() + most);
    }
    context_.run([this, experiment = experiment, job = PrunerFor(*queue.job, queue.handed)] {
      Run(experiment, job);
    });
  }
}

void CheckpointPruner::Run(const ExperimentKey& experiment, const Json& job) {
  const StatusOr<bool> pruned = RunPruner(*context_.client, job);
  const MutexLock lock(mutex_);
  const auto found = queues_.find(experiment);
  if (found == queues_.end()) return;
  Queue& queue = found->second;
  const absl::Duration pause = context_.timeouts.prune;
  const absl::Duration now = context_.clock->Monotonic();
  queue.due = now + pause;
  if (!pruned.ok()) {
    if (queue.failures == 0) {
      Log(LogLevel::kWarning, "failed to delete unneeded checkpoints; trying again",
          {{"experiment", ToString(experiment)}, {"error", Message(pruned.status())}});
    }
    const int shift = std::min(queue.failures++, kMaxShift);
    queue.due = now + std::min(pause * (1 << shift), kMaxPruneBackoff);
  } else if (*pruned) {
    std::erase_if(queue.waiting, [&](const auto& one) { return IsAmong(one, queue.handed); });
    queue.handed.clear();
    queue.failures = 0;
    if (queue.waiting.empty()) queue.due.reset();
  }
  context_.wake();
}

std::optional<absl::Duration> CheckpointPruner::NextDue() const {
  const MutexLock lock(mutex_);
  std::optional<absl::Duration> next;
  for (const auto& [experiment, queue] : queues_) {
    if (queue.due) next = next ? std::min(*next, *queue.due) : *queue.due;
  }
  return next;
}

}  // namespace shirabe::trial
