#include "trial/kubernetes/teardowns.h"

#include <algorithm>
#include <utility>

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
  if (held.empty() && teardown.object.deleted) {
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
  const MutexLock lock(mutex_);
  const auto found = teardowns_.find(key);
  if (found == teardowns_.end()) return;
  found->second.busy = false;
  found->second.object.deleted |= status.ok();
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

}  // namespace shirabe::trial
