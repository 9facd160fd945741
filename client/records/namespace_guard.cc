#include "client/records/namespace_guard.h"

#include "base/log.h"
#include "experiment/conditions.h"
#include "experiment/submission.h"

namespace shirabe::client {
namespace {

constexpr absl::Duration kDeletionRetry = absl::Seconds(30);

}  // namespace

bool NamespaceGuard::IsGone(const std::string& ns, const std::string& uid) const {
  if (!uid_ || uid.empty()) return false;
  const auto now = uid_(ns);
  return now.ok() ? *now != uid : absl::IsNotFound(now.status());
}

Status NamespaceGuard::CheckNamespaceExists(const v1::Experiment& experiment) {
  const std::string& uid = experiment.status().shirabe().namespace_uid();
  const ExperimentKey key = experiment::KeyOf(experiment);
  if (!IsGone(key.ns, uid)) return absl::OkStatus();
  Remove(key, uid);
  // As the store says it.
  return absl::NotFoundError("no experiment \"" + key.name + "\" in namespace \"" + key.ns + "\"");
}

Status NamespaceGuard::CheckReadable(const ExperimentKey& key) {
  if (!uid_) return absl::OkStatus();
  const auto experiment = store_->GetExperiment(key);
  return experiment.ok() ? CheckNamespaceExists(experiment->record) : absl::OkStatus();
}

Status NamespaceGuard::CheckNotBeingRemoved(const ExperimentKey& key) {
  if (CheckReadable(key).ok()) return absl::OkStatus();
  return absl::AlreadyExistsError("experiment " + ToString(key) +
                                  " of an earlier namespace of this name is still being removed: "
                                  "try again in a moment");
}

// By its owner; asked again after a while, until it is done.
void NamespaceGuard::Remove(const ExperimentKey& key, const std::string& uid) {
  {
    const absl::Duration now = clock_->Monotonic();
    const MutexLock lock(mutex_);
    std::erase_if(asked_, [&](const auto& one) { return now > one.second + kDeletionRetry; });
    if (!asked_.try_emplace(key, now).second) return;
  }
  Log(LogLevel::kInfo, "the namespace of an experiment is gone: deleting the experiment",
      {{"experiment", ToString(key)}, {"namespace-uid", uid}});
  v1::Intent intent;
  intent.set_verb(v1::Intent::DELETE);
  intent.mutable_actor()->set_name("the end of its namespace");
  experiment::Send(*store_, *clock_, key, intent).IgnoreError();
  notify_(key);
}

}  // namespace shirabe::client
