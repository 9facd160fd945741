#include "trial/kubernetes/experiment_removals.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "trial/kubernetes/removal_records.h"

namespace shirabe::trial {

ExperimentRemovals::ExperimentRemovals(const ClusterContext* context)
    : context_(*context), kinds_(FindRemovals(*context->layout)) {
  for (const auto& [experiment, kind] : kinds_) unfinished_.insert(experiment);
}

// Of Jobs and pods all are looked for in any case.
void ExperimentRemovals::RecordKind(const ExperimentKey& experiment,
                                    const google::protobuf::Struct& trial_spec) {
  const auto text = [&](const char* field) {
    const auto found = trial_spec.fields().find(field);
    return found == trial_spec.fields().end() ? "" : found->second.string_value();
  };
  const std::string kind = text("kind");
  if (kind.empty() || kind == Jobs().kind || kind == Pods().kind) return;
  const MutexLock lock(mutex_);
  kinds_[experiment] = {.api_version = text("apiVersion"), .kind = kind};
}

// The files may be all that still says of what kind its objects are. A full disk is no reason to
// keep it: should we die as well, what is retained of it stays.
void ExperimentRemovals::Record(const ExperimentKey& experiment) {
  const ObjectKind recorded = KindOfRecords(*context_.layout, experiment);
  ObjectKind kind;
  {
    const MutexLock lock(mutex_);
    kind = kinds_.try_emplace(experiment, recorded).first->second;
  }
  const Status saved = SaveRemoval(*context_.layout, experiment, kind);
  if (saved.ok()) return;
  Log(LogLevel::kWarning, "failed to record the removal of an experiment",
      {{"experiment", ToString(experiment)}, {"error", Message(saved)}});
}

void ExperimentRemovals::Begin(const TrialKey& trial) {
  {
    const MutexLock lock(mutex_);
    removals_[trial] = context_.clock->Monotonic();
  }
  context_.wake();
}

void ExperimentRemovals::Resume(const std::function<bool(const ExperimentKey&)>& owns) {
  const MutexLock lock(mutex_);
  for (auto it = unfinished_.begin(); it != unfinished_.end();) {
    const ExperimentKey key = *it++;
    if (removals_.count({key, 0}) > 0) continue;
    if (!owns(key)) {
      context_.run([this, key] { context_.notify(key); });
    } else {  // another of its name
      unfinished_.erase(key);
      kinds_.erase(key);
      ForgetRemoval(*context_.layout, key);
    }
  }
}

// Until the API server has done it: it is not asked for again.
void ExperimentRemovals::OnTimer(absl::Duration now) {
  const MutexLock lock(mutex_);
  for (auto& [trial, due] : removals_) {
    if (due > now) continue;
    due = now + absl::Minutes(1);  // for the case that what follows is cut short
    const auto known = kinds_.find(trial.experiment);
    const ObjectKind kind = known == kinds_.end() ? ObjectKind() : known->second;
    context_.run([this, trial = trial, kind] { Remove(trial, kind); });
  }
}

void ExperimentRemovals::Remove(const TrialKey& trial, const ObjectKind& kind) {
  const Status status = DeleteAllOf(*context_.client, trial, kind);
  // Not where an experiment of that name has begun meanwhile.
  if (status.ok()) rmdir(context_.layout->ExperimentDir(trial.experiment).c_str());
  if (status.ok() && trial.number == 0) ForgetRemoval(*context_.layout, trial.experiment);
  const MutexLock lock(mutex_);
  if (status.ok()) {
    removals_.erase(trial);
    if (trial.number != 0) return;
    kinds_.erase(trial.experiment);
    unfinished_.erase(trial.experiment);
    return;
  }
  removals_[trial] = context_.clock->Monotonic() + context_.timeouts.retry;
  context_.wake();
  Log(LogLevel::kWarning, "objects of a deleted experiment are still there; trying again",
      {{"experiment", ToString(trial.experiment)}, {"error", Message(status)}});
}

std::optional<absl::Duration> ExperimentRemovals::NextDue() const {
  const MutexLock lock(mutex_);
  std::optional<absl::Duration> next;
  for (const auto& [trial, due] : removals_) next = next ? std::min(*next, due) : due;
  return next;
}

}  // namespace shirabe::trial
