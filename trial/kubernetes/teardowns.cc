#include "trial/kubernetes/teardowns.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "trial/kubernetes/cluster_actions.h"
#include "trial/pod/pod_names.h"

namespace shirabe::trial {
namespace {

// Pods that a Job makes while it is being deleted still come, and are let go.
constexpr absl::Duration kDeletionGracePeriod = absl::Seconds(30);
constexpr size_t kMostJobs = 64;  // of one request, whose selector is a part of its path

// A Job of an older controller has no label to select it by.
std::string SelectableId(const std::optional<std::pair<kube::Ref, Json>>& object,
                         const std::string& uid) {
  if (!object || object->first.resource.kind != Jobs().kind || UidOf(object->second) != uid) {
    return "";
  }
  return Text(object->second, {"metadata", "labels", kAttemptIdLabel});
}

}  // namespace

std::vector<Json> HeldPods(const ClusterView& view, const AttemptKey& key) {
  std::vector<Json> held;
  for (Json& pod : view.PodsOf(key)) {
    if (FinalizerAt(pod, kLogFinalizer) >= 0) held.push_back(std::move(pod));
  }
  return held;
}

void Teardowns::Add(const AttemptKey& key, Object object) {
  object.id = object.deleted ? "" : SelectableId(context_.view->FindObjectOf(key), object.uid);
  const MutexLock lock(mutex_);
  Teardown& teardown = teardowns_[key];
  teardown.object = std::move(object);
  teardown.since = context_.clock->Monotonic();
}

void Teardowns::Continue(const AttemptKey& key) {
  const MutexLock lock(mutex_);
  const auto found = teardowns_.find(key);
  if (found == teardowns_.end() || found->second.busy) return;
  Teardown& teardown = found->second;
  const absl::Duration now = context_.clock->Monotonic();
  if (teardown.due && now < *teardown.due) return;
  teardown.due.reset();
  if (teardown.object.deleted && !teardown.object.id.empty()) {
    // Its label is another one, or none, by now: then nothing selected it.
    const auto object = context_.view->FindObjectOf(key);
    const bool there = object && UidOf(object->second) == teardown.object.uid;
    if (there && !IsDeleting(object->second)) teardown.object.deleted = false;
    teardown.object.id.clear();
  }
  std::vector<Json> held = HeldPods(*context_.view, key);
  if (held.empty() && teardown.object.deleted && !teardown.object.suspend) {
    const absl::Duration until = teardown.since + kDeletionGracePeriod;
    if (now >= until) {
      teardowns_.erase(found);
    } else {
      teardown.due = until;
      context_.wake();
    }
    return;
  }
  teardown.busy = true;
  context_.run(
      [this, key, object = teardown.object, held = std::move(held)] { LetGo(key, object, held); });
}

void Teardowns::LetGo(const AttemptKey& key, const Object& object, const std::vector<Json>& held) {
  Status status;
  for (const Json& pod : held) status.Update(RemoveLogFinalizer(*context_.client, pod));
  if (object.suspend) status.Update(SuspendObject(*context_.client, object.ref, object.uid));
  if (!object.deleted && !object.id.empty() && status.ok()) return DeleteLater(key);
  if (!object.deleted) status.Update(DeleteObject(*context_.client, object.ref, object.uid));
  Finish(key, status);
}

void Teardowns::DeleteLater(const AttemptKey& key) {
  {
    const MutexLock lock(mutex_);
    batches_[key.trial.experiment.ns].keys.push_back(key);
  }
  DeleteDue(context_.clock->Monotonic());
  context_.wake();
}

// The first of a namespace at once, those that come soon after it together.
void Teardowns::DeleteDue(absl::Duration now) {
  const MutexLock lock(mutex_);
  for (auto& [ns, batch] : batches_) {
    if (batch.keys.empty() || now < batch.due) continue;
    batch.due = now + context_.timeouts.gather;
    std::vector<std::pair<AttemptKey, Object>> jobs;
    for (const AttemptKey& key : std::exchange(batch.keys, {})) {
      const auto found = teardowns_.find(key);
      if (found != teardowns_.end()) jobs.emplace_back(key, found->second.object);
      if (jobs.size() < kMostJobs) continue;
      context_.run([this, jobs = std::exchange(jobs, {})] { DeleteJobs(jobs); });
    }
    if (!jobs.empty()) context_.run([this, jobs = std::move(jobs)] { DeleteJobs(jobs); });
  }
  std::erase_if(batches_, [&](const auto& entry) {
    return entry.second.keys.empty() && entry.second.due <= now;
  });
}

// By itself where there is one, or where we may not delete several, as after an update that left
// the roles of an older version.
void Teardowns::DeleteJobs(const std::vector<std::pair<AttemptKey, Object>>& jobs) {
  if (jobs.size() > 1) {
    std::vector<std::string> ids;
    for (const auto& [key, job] : jobs) ids.push_back(job.id);
    const Status status =
        DeleteJobsOf(*context_.client, jobs.front().first.trial.experiment.ns, ids);
    if (!absl::IsPermissionDenied(status)) {
      for (const auto& [key, job] : jobs) Finish(key, status);
      return;
    }
  }
  for (const auto& [key, job] : jobs) {
    Finish(key, DeleteObject(*context_.client, job.ref, job.uid));
  }
}

void Teardowns::Finish(const AttemptKey& key, const Status& status) {
  const MutexLock lock(mutex_);
  const auto found = teardowns_.find(key);
  if (found == teardowns_.end()) return;
  found->second.busy = false;
  found->second.object.deleted |= status.ok();
  found->second.object.suspend &= !status.ok();
  // The pods' changes are seen a little later; until then there is nothing to do.
  found->second.due = context_.clock->Monotonic() + context_.timeouts.retry;
  context_.wake();
}

void Teardowns::Cancel(const AttemptKey& key) {
  const MutexLock lock(mutex_);
  teardowns_.erase(key);
}

bool Teardowns::Knows(const AttemptKey& key) const {
  const MutexLock lock(mutex_);
  return teardowns_.count(key) > 0;
}

Status Teardowns::MakeRoom(const AttemptKey& key) {
  const MutexLock lock(mutex_);
  const auto found = teardowns_.find(key);
  if (found == teardowns_.end()) return absl::OkStatus();
  if (!found->second.object.deleted) {
    return absl::UnavailableError(AttemptName(key) + " is just being deleted");
  }
  teardowns_.erase(found);
  return absl::OkStatus();
}

void Teardowns::OnTimer(absl::Duration now) {
  std::vector<AttemptKey> due;
  {
    const MutexLock lock(mutex_);
    for (const auto& [key, teardown] : teardowns_) {
      if (teardown.due && *teardown.due <= now) due.push_back(key);
    }
  }
  for (const AttemptKey& key : due) Continue(key);
  DeleteDue(now);
}

std::optional<absl::Duration> Teardowns::NextDue() const {
  const MutexLock lock(mutex_);
  std::optional<absl::Duration> next;
  for (const auto& [key, teardown] : teardowns_) {
    if (teardown.due) next = next ? std::min(*next, *teardown.due) : *teardown.due;
  }
  for (const auto& [ns, batch] : batches_) {
    if (!batch.keys.empty()) next = next ? std::min(*next, batch.due) : batch.due;
  }
  return next;
}

bool OrphanFinder::OnTimer(absl::Duration now) {
  if (now < next_) return false;
  const absl::Duration patience = context_.timeouts.orphan;
  next_ = now + patience / 4;
  std::map<AttemptKey, absl::Duration> still;
  std::set<ExperimentKey> unowned;
  for (const AttemptKey& key : context_.view->Attempts()) {
    if (attempts_.Knows(key) || teardowns_.Knows(key)) continue;
    const auto object = context_.view->FindObjectOf(key);
    const bool stays = !object || IsDeleting(object->second) || RecipeOf(object->second).retain;
    const bool owned = attempts_.Owns(key.trial.experiment);
    // Nothing of it waits for us, unless its experiment was deleted: that is asked once.
    const bool retained = stays && HeldPods(*context_.view, key).empty();
    if (retained && (owned || asked_.count(key.trial.experiment) > 0)) continue;
    const auto since = orphans_.find(key);
    still[key] = since == orphans_.end() ? now : since->second;
    if (now < still[key] + patience) continue;
    if (owned) {
      Release(key, {.ref = object ? object->first : kube::Ref(),
                    .uid = object ? UidOf(object->second) : "",
                    .deleted = stays});
    } else {
      unowned.insert(key.trial.experiment);
    }
  }
  orphans_ = std::move(still);
  asked_.insert(unowned.begin(), unowned.end());
  for (const ExperimentKey& key : unowned) {
    std::error_code error;
    if (!std::filesystem::is_directory(context_.layout->ExperimentDir(key), error)) continue;
    context_.run([this, key] { context_.notify(key); });
  }
  return true;
}

// A start of that name finds the teardown or is known here, whichever comes first.
void OrphanFinder::Release(const AttemptKey& key, const Teardowns::Object& object) {
  teardowns_.Add(key, object);
  if (attempts_.Knows(key)) return teardowns_.Cancel(key);
  Log(LogLevel::kWarning, "released an orphaned attempt", {{"attempt", AttemptName(key)}});
  teardowns_.Continue(key);
}

}  // namespace shirabe::trial
