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

}  // namespace

std::vector<Json> HeldPods(const ClusterView& view, const AttemptKey& key) {
  std::vector<Json> held;
  for (Json& pod : view.PodsOf(key)) {
    if (FinalizerAt(pod, kLogFinalizer) >= 0) held.push_back(std::move(pod));
  }
  return held;
}

void Teardowns::Add(const AttemptKey& key, Object object) {
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
  if (!object.deleted) status.Update(DeleteObject(*context_.client, object.ref, object.uid));
  if (object.suspend) status.Update(SuspendObject(*context_.client, object.ref, object.uid));
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
}

std::optional<absl::Duration> Teardowns::NextDue() const {
  const MutexLock lock(mutex_);
  std::optional<absl::Duration> next;
  for (const auto& [key, teardown] : teardowns_) {
    if (teardown.due) next = next ? std::min(*next, *teardown.due) : *teardown.due;
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
  Log(LogLevel::kWarning, "released an orphaned pod", {{"attempt", AttemptName(key)}});
  teardowns_.Continue(key);
}

}  // namespace shirabe::trial
