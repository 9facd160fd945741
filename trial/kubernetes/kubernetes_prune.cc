// How checkpoints that an experiment does not keep are deleted from its volume. A sidecar reaches
// the folder of its own attempt, on a claim of the trial's own all of that trial, and nothing else.
// What no sidecar has deleted after a while, on a volume that trials share, a Job does.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "trial/host_paths.h"
#include "trial/kubernetes/checkpoint_volume.h"
#include "trial/kubernetes/kubernetes_executor.h"
#include "trial/kubernetes/volume_jobs.h"

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

bool KubernetesExecutor::MayUse(const v1::ExperimentSpec& spec) const {
  return CheckHostPath(spec.shirabe().checkpoint().volume(), options_.pods.host_paths).ok();
}

// Where checkpoints lie is the same for all attempts of an experiment.
void KubernetesExecutor::RecordPruneScope(const AttemptRequest& request) {
  const v1::CheckpointVolume& volume = request.cluster.volume;
  const bool whole = !volume.size().empty() && !IsShared(volume);
  std::lock_guard lock(mutex_);
  prune_queues_[request.key.trial.experiment].scope = whole ? Scope::kTrial : Scope::kAttempt;
}

void KubernetesExecutor::UseVolume(const ExperimentKey& experiment,
                                   const v1::ExperimentSpec& spec) {
  auto pruner = MakePruner(experiment, spec, options_.pods);
  if (!pruner || !MayUse(spec)) return;
  std::lock_guard lock(mutex_);
  prune_queues_[experiment].job = std::move(pruner);
}

void KubernetesExecutor::Prune(const v1::Checkpoint& checkpoint) {
  std::lock_guard lock(mutex_);
  PruneQueue& prunes = prune_queues_[ExperimentKeyOf(checkpoint)];
  if (IsAmong(checkpoint, prunes.queue)) return;
  prunes.queue.push_back(checkpoint);
  if (!prunes.due) prunes.due = options_.clock->Monotonic() + timeouts_.prune;
  Wake();
}

// By the sidecar that asks, what it can reach.
void KubernetesExecutor::FillPrunes(const PodAttempt& attempt, v1::SyncReply& reply) {
  const auto found = prune_queues_.find(attempt.key.trial.experiment);
  if (found == prune_queues_.end()) return;
  PruneQueue& prunes = found->second;
  std::erase_if(prunes.queue, [&](const v1::Checkpoint& checkpoint) {
    const bool own = checkpoint.trial() == attempt.key.trial.number &&
                     (prunes.scope == Scope::kTrial || checkpoint.attempt() == attempt.key.number);
    return own && IsAmong(checkpoint, attempt.state.pruned());
  });
  for (const v1::Checkpoint& checkpoint : prunes.queue) {
    if (reply.prune_size() >= kPrunesAtOnce) break;
    if (checkpoint.trial() != attempt.key.trial.number) continue;
    if (prunes.scope == Scope::kAttempt && checkpoint.attempt() != attempt.key.number) continue;
    *reply.add_prune() = checkpoint;
  }
}

// One Job of an experiment at a time.
void KubernetesExecutor::StartPruners(absl::Duration now) {
  for (auto& [experiment, prunes] : prune_queues_) {
    if (!prunes.due || *prunes.due > now) continue;
    prunes.due.reset();
    if (!prunes.job || (prunes.queue.empty() && prunes.handed.empty())) continue;
    prunes.due = now + absl::Minutes(1);  // for the case that what follows is cut short
    if (prunes.handed.empty()) {
      const size_t most = std::min<size_t>(prunes.queue.size(), kMaxPrunedAtOnce);
      prunes.handed.assign(prunes.queue.begin(), prunes.queue.begin() + most);
    }
    Do([this, experiment = experiment, job = PrunerFor(*prunes.job, prunes.handed)] {
      const auto pruned = RunPruner(client_, job);
      std::lock_guard lock(mutex_);
      RecordPrunerResult(experiment, pruned);
    });
  }
}

void KubernetesExecutor::RecordPrunerResult(const ExperimentKey& experiment,
                                            const StatusOr<bool>& pruned) {
  const auto found = prune_queues_.find(experiment);
  if (found == prune_queues_.end()) return;
  PruneQueue& prunes = found->second;
  const absl::Duration now = options_.clock->Monotonic();
  prunes.due = now + timeouts_.prune;
  if (!pruned.ok()) {
    if (prunes.failures == 0) {
      Log(LogLevel::kWarning, "failed to delete unneeded checkpoints; trying again",
          {{"experiment", ToString(experiment)}, {"error", Message(pruned.status())}});
    }
    const int shift = std::min(prunes.failures++, kMaxShift);
    prunes.due = now + std::min(timeouts_.prune * (1 << shift), kMaxPruneBackoff);
  } else if (*pruned) {
    std::erase_if(prunes.queue, [&](const auto& one) { return IsAmong(one, prunes.handed); });
    prunes.handed.clear();
    prunes.failures = 0;
    if (prunes.queue.empty()) prunes.due.reset();
  }
  Wake();
}

}  // namespace shirabe::trial
