#include "trial/executor.h"

namespace shirabe::trial {

StatusOr<v1::SyncReply> Executor::Sync(const v1::SyncRequest&, const std::string&) {
  return absl::UnimplementedError(
      "attempts run on the machine of this server: there are no pods to sync with");
}

StatusOr<v1::GrantReply> Executor::Grant(const v1::GrantRequest&, const std::string&) {
  return absl::UnimplementedError(
      "attempts run on the machine of this server: there are no pods that need URLs of a store");
}

bool RunsInCluster(const std::string& executor) {
  const ExecutorInfo* info = Registry<ExecutorInfo>::Get().Find(executor);
  return info != nullptr && info->in_cluster;
}

void AskAndTellExecutor::RecordStart(const AttemptKey& key, absl::Time since) {
  const MutexLock lock(mutex_);
  AttemptStatus& observed = attempts_[key];
  if (observed.placement.has_start_time()) return;
  observed.key = key;
  observed.placement.set_node(kAskedNode);
  *observed.placement.mutable_start_time() = ToProto(since);
}

Status AskAndTellExecutor::Start(const AttemptRequest& request) {
  RecordStart(request.key, clock_->Now());
  return absl::OkStatus();
}

Status AskAndTellExecutor::Stop(const AttemptKey& key, v1::Cause, absl::Duration) {
  const MutexLock lock(mutex_);
  const auto found = attempts_.find(key);
  if (found == attempts_.end()) return absl::OkStatus();
  found->second.state = AttemptStatus::State::kExited;
  found->second.exit_code = 0;
  return absl::OkStatus();
}

// Those that the store knows as running still are: their callers have not told their end.
void AskAndTellExecutor::Adopt(const std::vector<v1::Attempt>& open) {
  for (const v1::Attempt& attempt : open) {
    const AttemptKey key{{{attempt.namespace_(), attempt.experiment()}, attempt.trial()},
                         attempt.number()};
    RecordStart(key, attempt.has_start_time() ? FromProto(attempt.start_time()) : clock_->Now());
  }
}

std::vector<AttemptStatus> AskAndTellExecutor::Observe(const ExperimentKey& experiment) {
  const MutexLock lock(mutex_);
  std::vector<AttemptStatus> found;
  for (auto it = attempts_.lower_bound({{experiment, 0}, 0}); it != attempts_.end(); ++it) {
    if (it->first.trial.experiment != experiment) break;
    found.push_back(it->second);
  }
  return found;
}

void AskAndTellExecutor::Forget(const AttemptKey& key) {
  const MutexLock lock(mutex_);
  attempts_.erase(key);
}

}  // namespace shirabe::trial
