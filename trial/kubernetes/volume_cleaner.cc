#include "trial/kubernetes/volume_cleaner.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "trial/kubernetes/checkpoint_volume.h"
#include "trial/kubernetes/cluster_actions.h"

namespace shirabe::trial {
namespace {

// For the Job to be started, each twice as long after the one before.
constexpr int kCleanTries = 8;

}  // namespace

bool MayUseVolume(const v1::ExperimentSpec& spec, const PodOptions& pods) {
  return CheckHostPath(spec.shirabe().checkpoint().volume(), pods.host_paths).ok();
}

void VolumeCleaner::Clean(const ExperimentKey& experiment, const v1::ExperimentSpec& spec) {
  auto cleaner = MakeCleaner(experiment, spec, *context_.pods);
  if (!cleaner || !MayUseVolume(spec, *context_.pods)) return;
  // What it was to delete goes with the rest, and is perhaps another's by then.
  DeleteObject(*context_.client, {Jobs(), experiment.ns, PrunerName(experiment)}, "").IgnoreError();
  const Status started = StartCleaner(*context_.client, *cleaner);
  {
    const MutexLock lock(mutex_);
    clean_.erase(experiment);
    if (started.ok()) return;
    cleanups_[experiment] = {.job = *std::move(cleaner),
                             .due = context_.clock->Monotonic() + context_.timeouts.retry};
  }
  context_.wake();
}

Status VolumeCleaner::CheckClean(const AttemptRequest& request) {
  const ExperimentKey& experiment = request.key.trial.experiment;
  const v1::CheckpointVolume& volume = request.cluster.volume;
  if (volume.claim().empty() && volume.host_path().empty()) return absl::OkStatus();
  // One that was accepted by another server, or before there was a list, waits until it is on it.
  const Status allowed = CheckHostPath(volume, context_.pods->host_paths);
  if (!allowed.ok()) return absl::ResourceExhaustedError(Message(allowed));
  {
    const MutexLock lock(mutex_);
    if (cleanups_.count(experiment) > 0) {
      return absl::UnavailableError(
          "the checkpoints of an earlier experiment of this name are to be deleted first");
    }
    if (clean_.count(experiment) > 0) return absl::OkStatus();
  }
  RETURN_IF_ERROR(CheckCleaned(*context_.client, experiment));
  const MutexLock lock(mutex_);
  clean_.insert(experiment);
  return absl::OkStatus();
}

void VolumeCleaner::OnTimer(absl::Duration now) {
  const MutexLock lock(mutex_);
  for (auto& [experiment, cleanup] : cleanups_) {
    if (cleanup.due > now) continue;
    cleanup.due = now + absl::Minutes(1);
    context_.run([this, experiment = experiment, job = cleanup.job] { Start(experiment, job); });
  }
}

// Where we may not start the Job, the files stay, and it is said.
void VolumeCleaner::Start(const ExperimentKey& experiment, const Json& job) {
  const Status started = StartCleaner(*context_.client, job);
  const MutexLock lock(mutex_);
  const auto found = cleanups_.find(experiment);
  if (found == cleanups_.end()) return;
  const bool given_up = !started.ok() && ++found->second.failures >= kCleanTries;
  if (!started.ok()) {
    Log(LogLevel::kWarning,
        given_up ? "the checkpoints of a deleted experiment stay on their volume"
                 : "the checkpoints of a deleted experiment are still there; trying again",
        {{"experiment", ToString(experiment)}, {"error", Message(started)}});
  }
  if (started.ok() || given_up) {
    cleanups_.erase(found);
    return;
  }
  found->second.due =
      context_.clock->Monotonic() + context_.timeouts.retry * (1 << found->second.failures);
  context_.wake();
}

std::optional<absl::Duration> VolumeCleaner::NextDue() const {
  const MutexLock lock(mutex_);
  std::optional<absl::Duration> next;
  for (const auto& [experiment, cleanup] : cleanups_) {
    next = next ? std::min(*next, cleanup.due) : cleanup.due;
  }
  return next;
}

}  // namespace shirabe::trial
