#include "crd/trial_window.h"

#include <algorithm>
#include <utility>

#include "crd/resource_kinds.h"
#include "experiment/conditions.h"
#include "experiment/state/experiment_state.h"
#include "experiment/submission.h"

namespace shirabe::crd {

bool HasEnded(const v1::Trial& trial) { return experiment::IsTerminal(trial.phase()); }

Status TrialWindow::Update(client::Client& store, const v1::Experiment& experiment) {
  key_ = experiment::KeyOf(experiment);
  // Read first: what is committed between the two reads comes again.
  ASSIGN_OR_RETURN(const int64_t now, store.Revision());
  if (revision_ < 0) {
    RETURN_IF_ERROR(Load(store, experiment));
  } else {
    ASSIGN_OR_RETURN(const auto changed,
                     store.ListTrials({.experiment = key_, .changed_after = revision_}));
    for (const v1::Trial& trial : changed) Insert(trial);
  }
  RETURN_IF_ERROR(KeepBest(store, experiment));
  revision_ = now;
  Prune();
  return absl::OkStatus();
}

Status TrialWindow::Load(client::Client& store, const v1::Experiment& experiment) {
  ASSIGN_OR_RETURN(const auto live, store.ListTrials({.experiment = key_, .live_only = true}));
  for (const v1::Trial& trial : live) Insert(trial);
  const int64_t window = static_cast<int64_t>(live.size() + std::max(finished_most_, kMaxNames));
  const int64_t after = std::max<int64_t>(0, experiment.status().trials() - window);
  ASSIGN_OR_RETURN(const auto newest,
                   store.ListTrials({.experiment = key_, .after_number = after}));
  for (const v1::Trial& trial : newest) Insert(trial);
  return absl::OkStatus();
}

Status TrialWindow::KeepBest(client::Client& store, const v1::Experiment& experiment) {
  best_ = experiment.status().current_optimal_trial().number();
  if (best_ == 0 || trials_.count(best_) > 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const v1::Trial best, store.GetTrial({key_, best_}));
  Insert(best);
  return absl::OkStatus();
}

void TrialWindow::Insert(const v1::Trial& trial) {
  trials_[trial.number()] = trial;
  if (!HasEnded(trial)) return;
  std::set<int64_t>& numbers = ended_[trial.phase()];
  numbers.insert(trial.number());
  if (numbers.size() > kMaxNames) numbers.erase(numbers.begin());
}

// The newest by number: those that ended last would cost an order of their own.
void TrialWindow::Prune() {
  size_t kept = 0;
  for (auto it = trials_.rbegin(); it != trials_.rend();) {
    const bool drop = HasEnded(it->second) && it->first != best_ && ++kept > finished_most_;
    if (!drop) {
      ++it;
      continue;
    }
    it = std::make_reverse_iterator(trials_.erase(std::prev(it.base())));
  }
}

NamesByPhase TrialWindow::Names() const {
  NamesByPhase names;
  for (const auto& [phase, numbers] : ended_) {
    for (const int64_t number : numbers) names[phase].push_back(TrialName({key_, number}));
  }
  for (const auto& [number, trial] : trials_) {
    if (!HasEnded(trial)) names[trial.phase()].push_back(TrialName({key_, number}));
  }
  return names;
}

ExperimentKey TrialObjectIndex::Touch(const kube::Json& trial, bool deleted) {
  ExperimentKey key{NamespaceOf(trial), LabelOf(trial, kExperimentLabel)};
  const std::string name = NameOf(trial);
  const MutexLock lock(mutex_);
  TrialObjectNames& presence = index_[key];
  presence.touched.insert(name);
  if (deleted) {
    presence.names.erase(name);
  } else {
    presence.names.insert(name);
  }
  return key;
}

TrialObjectNames TrialObjectIndex::Drain(const ExperimentKey& key) {
  const MutexLock lock(mutex_);
  const auto found = index_.find(key);
  if (found == index_.end()) return {};
  TrialObjectNames presence{found->second.names, std::exchange(found->second.touched, {})};
  if (presence.names.empty()) index_.erase(found);
  return presence;
}

void TrialObjectIndex::Restore(const ExperimentKey& key, const std::set<std::string>& touched) {
  const MutexLock lock(mutex_);
  index_[key].touched.insert(touched.begin(), touched.end());
}

}  // namespace shirabe::crd
