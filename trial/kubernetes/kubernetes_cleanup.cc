// How what attempts of the executor `kubernetes` leave in the cluster goes: once their end is in
// the store, and also if the process died just then.
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/file_io.h"
#include "base/log.h"
#include "trial/host_paths.h"
#include "trial/kubernetes/checkpoint_volume.h"
#include "trial/kubernetes/cluster_actions.h"
#include "trial/kubernetes/kubernetes_executor.h"
#include "trial/kubernetes/removal_records.h"
#include "trial/kubernetes/volume_jobs.h"

namespace shirabe::trial {
namespace {

// For the Job that cleans a volume to be started, each twice as long after the one before.
constexpr int kCleanTries = 8;
// Pods that a Job makes while it is being deleted still come, and are let go.
constexpr absl::Duration kDeletionGracePeriod = absl::Seconds(30);

// The pods of an attempt that wait for us to let go of them.
std::vector<Json> HeldPods(const ClusterView& view, const AttemptKey& key) {
  std::vector<Json> held;
  for (Json& pod : view.PodsOf(key)) {
    if (FinalizerAt(pod, kLogFinalizer) >= 0) held.push_back(std::move(pod));
  }
  return held;
}

}  // namespace

void KubernetesExecutor::Forget(const AttemptKey& key) {
  mirror_.Forget(key);
  std::lock_guard lock(mutex_);
  unconfirmed_.erase(key);
  refused_.erase(key);
  const auto found = attempts_.find(key);
  if (found == attempts_.end()) return;
  const PodAttempt& attempt = found->second;
  if (!attempt.uid.empty()) {
    Teardown& teardown = teardowns_[key];
    teardown.ref = attempt.ref;
    teardown.uid = attempt.uid;
    teardown.deleted = attempt.object_gone || attempt.recipe.retain;
    teardown.since = options_.clock->Monotonic();
    Clear(key, teardown);
  }
  Drop(found);
}

void KubernetesExecutor::Drop(Attempts::iterator attempt) {
  if (attempt->second.due) agenda_.erase({*attempt->second.due, attempt->first});
  attempts_.erase(attempt);
}

// Lets go of the pods, then deletes the object. Looked at again with each change of a pod.
void KubernetesExecutor::Clear(const AttemptKey& key, Teardown& teardown) {
  if (teardown.busy) return;
  const absl::Duration now = options_.clock->Monotonic();
  if (teardown.due && now < *teardown.due) return;
  teardown.due.reset();
  std::vector<Json> held = HeldPods(view_, key);
  if (held.empty() && teardown.deleted) {
    if (now >= teardown.since + kDeletionGracePeriod) {
      teardowns_.erase(key);
    } else {
      ClearAgain(key, teardown, teardown.since + kDeletionGracePeriod);
    }
    return;
  }
  teardown.busy = true;
  Do([this, key, ref = teardown.ref, uid = teardown.deleted ? "" : teardown.uid,
      held = std::move(held)] {
    Status status;
    for (const Json& pod : held) status.Update(RemoveLogFinalizer(client_, pod));
    if (!uid.empty()) status.Update(DeleteObject(client_, ref, uid));
    std::lock_guard lock(mutex_);
    const auto found = teardowns_.find(key);
    if (found == teardowns_.end()) return;
    found->second.busy = false;
    found->second.deleted |= status.ok();
    // The pods' changes are seen a little later; until then there is nothing to do.
    ClearAgain(key, found->second, options_.clock->Monotonic() + timeouts_.retry);
  });
}

void KubernetesExecutor::ClearAgain(const AttemptKey& key, Teardown& teardown, absl::Duration at) {
  teardown.due = at;
  AddToAgenda(key, at);
}

Status KubernetesExecutor::RemoveFiles(const ExperimentKey& experiment, int64_t trial) {
  RETURN_IF_ERROR(ValidateKey(experiment));
  {
    std::lock_guard lock(mutex_);
    for (const auto& [key, attempt] : attempts_) {
      if (key.trial.experiment != experiment || attempt.ended()) continue;
      if (trial != 0 && key.trial.number != trial) continue;
      return absl::FailedPreconditionError(AttemptName(key) + " is running; stop it first");
    }
    const auto of_it = [&](const AttemptKey& key) {
      return key.trial.experiment == experiment && (trial == 0 || key.trial.number == trial);
    };
    for (const auto& [key, starting] : pending_starts_) {
      if (!of_it(key)) continue;
      return absl::FailedPreconditionError(AttemptName(key) + " is being started; stop it first");
    }
    std::erase_if(refused_, [&](const auto& entry) { return of_it(entry.first); });
    if (trial == 0) prune_queues_.erase(experiment);
  }
  if (trial == 0) RecordRemoval(experiment);
  RETURN_IF_ERROR(layout_.Remove(experiment, trial));
  // Its folder says that there may be more of it, also to the next process: see FindOrphans. It
  // stands before any process may come to take it away again.
  if (trial == 0) RETURN_IF_ERROR(MakeDirs(layout_.ExperimentDir(experiment)));
  std::lock_guard lock(mutex_);
  removals_[{experiment, trial}] = options_.clock->Monotonic();
  Wake();
  return absl::OkStatus();
}

// Before its files go, which may be all that still says of what kind its objects are. A full disk
// is no reason to keep it: should we die as well, what is retained of it stays.
void KubernetesExecutor::RecordRemoval(const ExperimentKey& experiment) {
  const ObjectKind recorded = KindOfRecords(layout_, experiment);
  ObjectKind kind;
  {
    std::lock_guard lock(mutex_);
    kind = kinds_.try_emplace(experiment, recorded).first->second;
  }
  const Status saved = SaveRemoval(layout_, experiment, kind);
  if (saved.ok()) return;
  Log(LogLevel::kWarning, "failed to record the removal of an experiment",
      {{"experiment", ToString(experiment)}, {"error", Message(saved)}});
}

// Of Jobs and pods all are looked for in any case.
void KubernetesExecutor::RecordKind(const ExperimentKey& experiment,
                                    const google::protobuf::Struct& trial_spec) {
  const auto text = [&](const char* field) {
    const auto found = trial_spec.fields().find(field);
    return found == trial_spec.fields().end() ? "" : found->second.string_value();
  };
  const std::string kind = text("kind");
  if (kind.empty() || kind == Jobs().kind || kind == Pods().kind) return;
  std::lock_guard lock(mutex_);
  kinds_[experiment] = {.api_version = text("apiVersion"), .kind = kind};
}

// The Job is started before the call returns, if the API server lets us: from then on the cluster
// remembers, should we die.
void KubernetesExecutor::CleanVolume(const ExperimentKey& experiment,
                                     const v1::ExperimentSpec& spec) {
  RecordKind(experiment, spec.trial_template().trial_spec());
  auto cleaner = MakeCleaner(experiment, spec, options_.pods);
  if (!cleaner || !MayUse(spec)) return;
  // What it was to delete goes with the rest, and is perhaps another's by then.
  DeleteObject(client_, {Jobs(), experiment.ns, PrunerName(experiment)}, "").IgnoreError();
  const Status started = StartCleaner(client_, *cleaner);
  std::lock_guard lock(mutex_);
  clean_.erase(experiment);
  if (started.ok()) return;
  volume_cleanups_[experiment] = {.job = *std::move(cleaner),
                                  .due = options_.clock->Monotonic() + timeouts_.retry};
  Wake();
}

// A new experiment of a name waits until the folder that it shares with an old one is empty.
Status KubernetesExecutor::AwaitCleaned(const AttemptRequest& request) {
  const ExperimentKey& experiment = request.key.trial.experiment;
  const v1::CheckpointVolume& volume = request.cluster.volume;
  if (volume.claim().empty() && volume.host_path().empty()) return absl::OkStatus();
  // One that was accepted by another server, or before there was a list, waits until it is on it.
  const Status allowed = CheckHostPath(volume, options_.pods.host_paths);
  if (!allowed.ok()) return absl::ResourceExhaustedError(Message(allowed));
  {
    std::lock_guard lock(mutex_);
    if (volume_cleanups_.count(experiment) > 0) {
      return absl::UnavailableError(
          "the checkpoints of an earlier experiment of this name are to be deleted first");
    }
    if (clean_.count(experiment) > 0) return absl::OkStatus();
  }
  RETURN_IF_ERROR(CheckCleaned(client_, experiment));
  std::lock_guard lock(mutex_);
  clean_.insert(experiment);
  return absl::OkStatus();
}

// A process that dies between closing an attempt in the store and letting go of its pods leaves
// them without an owner. Whatever of an experiment of ours is unknown for long enough was closed:
// what is open is adopted before the first pass over the experiment. One without a pass has ended,
// or been deleted, if it is ours at all, which its folder says: the controller is told.
void KubernetesExecutor::FindOrphans(absl::Duration now) {
  if (now < next_orphan_scan_) return;
  next_orphan_scan_ = now + timeouts_.orphan / 4;
  std::map<AttemptKey, absl::Duration> still;
  std::set<ExperimentKey> unowned;
  for (const AttemptKey& key : view_.Attempts()) {
    const bool known = attempts_.count(key) > 0 || pending_starts_.count(key) > 0 ||
                       unconfirmed_.count(key) > 0 || teardowns_.count(key) > 0;
    if (known) continue;
    const kube::Ref ref{Jobs(), key.trial.experiment.ns, AttemptName(key)};
    const auto job = view_.FindObject(ref);
    const bool stays = !job || IsDeleting(*job) || RecipeOf(*job).retain;
    const bool owned = owned_.count(key.trial.experiment) > 0;
    // Nothing of it waits for us, unless its experiment was deleted: that is asked once.
    const bool retained = stays && HeldPods(view_, key).empty();
    if (retained && (owned || asked_.count(key.trial.experiment) > 0)) continue;
    const auto since = orphans_.find(key);
    still[key] = since == orphans_.end() ? now : since->second;
    if (now < still[key] + timeouts_.orphan) continue;
    if (!owned) {
      unowned.insert(key.trial.experiment);
      continue;
    }
    Teardown& teardown = teardowns_[key];
    teardown.ref = ref;
    if (job) teardown.uid = UidOf(*job);
    teardown.deleted = stays;
    teardown.since = now;
    Log(LogLevel::kWarning, "released an orphaned pod", {{"attempt", AttemptName(key)}});
    Clear(key, teardown);
  }
  orphans_ = std::move(still);
  asked_.insert(unowned.begin(), unowned.end());
  for (const ExperimentKey& key : unowned) {
    std::error_code error;
    if (std::filesystem::is_directory(layout_.ExperimentDir(key), error)) NotifyController(key);
  }
  ResumeRemovals(now);
}

// Those that a process before this one has begun. Whether the experiment is deleted, and no other
// has its name by now, the controller knows, and then removes its files again.
void KubernetesExecutor::ResumeRemovals(absl::Duration now) {
  if (now < began_ + timeouts_.orphan) return;
  for (auto it = unfinished_.begin(); it != unfinished_.end();) {
    const ExperimentKey key = *it++;
    if (removals_.count({key, 0}) > 0) continue;
    if (owned_.count(key) == 0) {
      NotifyController(key);
    } else {  // another of its name
      unfinished_.erase(key);
      kinds_.erase(key);
      ForgetRemoval(layout_, key);
    }
  }
}

void KubernetesExecutor::NotifyController(const ExperimentKey& key) {
  if (!options_.on_change) return;
  Do([this, key] { options_.on_change(key); });
}

// Until the API server has done it: it is not asked for again.
void KubernetesExecutor::RemoveLeftovers(absl::Duration now) {
  for (auto& [trial, due] : removals_) {
    if (due > now) continue;
    due = now + absl::Minutes(1);  // for the case that what follows is cut short
    const auto known = kinds_.find(trial.experiment);
    Do([this, trial = trial, kind = known == kinds_.end() ? ObjectKind() : known->second] {
      const Status status = DeleteAllOf(client_, trial, kind);
      // Not where an experiment of that name has begun anew meanwhile.
      if (status.ok()) rmdir(layout_.ExperimentDir(trial.experiment).c_str());
      if (status.ok() && trial.number == 0) ForgetRemoval(layout_, trial.experiment);
      std::lock_guard lock(mutex_);
      if (status.ok()) {
        removals_.erase(trial);
        if (trial.number == 0) {
          kinds_.erase(trial.experiment);
          unfinished_.erase(trial.experiment);
        }
      } else {
        removals_[trial] = options_.clock->Monotonic() + timeouts_.retry;
        Wake();
        Log(LogLevel::kWarning, "objects of a deleted experiment are still there; trying again",
            {{"experiment", ToString(trial.experiment)}, {"error", Message(status)}});
      }
    });
  }
}

void KubernetesExecutor::StartCleaners(absl::Duration now) {
  for (auto& [experiment, cleaning] : volume_cleanups_) {
    if (cleaning.due > now) continue;
    cleaning.due = now + absl::Minutes(1);
    Do([this, experiment = experiment, job = cleaning.job] {
      const Status started = StartCleaner(client_, job);
      std::lock_guard lock(mutex_);
      RecordCleanerResult(experiment, started);
    });
  }
}

// Where we may not start the Job, the files stay, and it is said.
void KubernetesExecutor::RecordCleanerResult(const ExperimentKey& experiment,
                                             const Status& started) {
  const auto found = volume_cleanups_.find(experiment);
  if (found == volume_cleanups_.end()) return;
  const bool given_up = !started.ok() && ++found->second.failures >= kCleanTries;
  if (!started.ok()) {
    Log(LogLevel::kWarning,
        given_up ? "the checkpoints of a deleted experiment stay on their volume"
                 : "the checkpoints of a deleted experiment are still there; trying again",
        {{"experiment", ToString(experiment)}, {"error", Message(started)}});
  }
  if (started.ok() || given_up) {
    volume_cleanups_.erase(found);
    return;
  }
  found->second.due = options_.clock->Monotonic() + timeouts_.retry * (1 << found->second.failures);
  Wake();
}

}  // namespace shirabe::trial
