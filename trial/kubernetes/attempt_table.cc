#include "trial/kubernetes/attempt_table.h"

#include <openssl/crypto.h>

#include <algorithm>

namespace shirabe::trial {
namespace {

constexpr absl::Duration kApiRetryInterval = absl::Seconds(1);

bool SameSecret(const std::string& a, const std::string& b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

bool IsOf(const AttemptKey& key, const ExperimentKey& experiment, int64_t trial) {
  return key.trial.experiment == experiment && (trial == 0 || key.trial.number == trial);
}

}  // namespace

Status NotCurrent() {
  return absl::PermissionDeniedError("the attempt is not current, or the token is not its own");
}

AttemptTable::AttemptTable(Options options)
    : options_(std::move(options)), began_(options_.clock->Monotonic()) {}

// ---- while objects are made ---------------------------------------------------------------------

StatusOr<std::optional<absl::Duration>> AttemptTable::Reserve(const AttemptKey& key,
                                                              const std::string& id) {
  const MutexLock lock(mutex_);
  absl::Duration patience = options_.start;
  const auto refused = refused_.find(key);
  if (refused != refused_.end()) {
    RETURN_IF_ERROR(std::exchange(refused->second, absl::OkStatus()));
    patience = absl::InfiniteDuration();
  }
  bool taken = false;
  RETURN_IF_ERROR(CheckPlace(key, id, taken));
  if (taken) return std::nullopt;
  if (options_.clock->Monotonic() < away_until_) return absl::UnavailableError(away_);
  if (!starts_.try_emplace(key).second) return std::nullopt;
  return patience;
}

Status AttemptTable::CheckPlace(const AttemptKey& key, const std::string& id, bool& taken) {
  const auto found = attempts_.find(key);
  if (found == attempts_.end()) return absl::OkStatus();
  if (found->second.never_began) {
    Drop(found);
    return absl::OkStatus();
  }
  taken = true;
  if (found->second.id == id) return absl::OkStatus();
  return absl::AlreadyExistsError(AttemptName(key) + " exists with another token");
}

void AttemptTable::Release(const AttemptKey& key) {
  const MutexLock lock(mutex_);
  starts_.erase(key);
}

Status AttemptTable::AwaitStart(const AttemptKey& key, absl::Duration patience) {
  MutexLock lock(mutex_);
  PendingStart& starting = starts_.at(key);
  const auto answered = [&starting] { return starting.answer.has_value(); };
  if (patience == absl::InfiniteDuration()) {
    started_.Wait(lock, answered);
  } else if (!started_.WaitFor(lock, patience, answered)) {
    starting.left = true;
    return absl::OkStatus();
  }
  const Status status = *starting.answer;
  starts_.erase(key);
  return status;
}

void AttemptTable::DeferStop(const AttemptKey& key, v1::Cause why, absl::Duration grace) {
  const MutexLock lock(mutex_);
  const auto starting = starts_.find(key);
  if (starting != starts_.end()) starting->second.stop = {why, grace};
}

AttemptTable::StartOutcome AttemptTable::FinishStart(const AttemptKey& key,
                                                     StatusOr<PodAttempt> started) {
  StartOutcome outcome;
  {
    const MutexLock lock(mutex_);
    if (absl::IsUnavailable(started.status())) {
      // It may exist all the same: its sidecar must not be sent away before we know.
      unconfirmed_.insert(key);
      away_ = Message(started.status());
      away_until_ = options_.clock->Monotonic() + kApiRetryInterval;
    }
    const Status status =
        started.ok() ? absl::OkStatus() : Prefix(AttemptName(key), started.status());
    if (started.ok()) {
      unconfirmed_.erase(key);
      refused_.erase(key);
      attempts_[key] = *std::move(started);
    }
    PendingStart& starting = starts_.at(key);
    starting.answer = status;
    outcome.stop = starting.stop;
    outcome.unheard = starting.left && !status.ok();
    if (outcome.unheard) refused_[key] = status;
    if (starting.left) starts_.erase(key);
  }
  started_.NotifyAll();
  return outcome;
}

// ---- the attempts -------------------------------------------------------------------------------

bool AttemptTable::Adopt(PodAttempt attempt) {
  const MutexLock lock(mutex_);
  const AttemptKey key = attempt.key;
  unconfirmed_.erase(key);
  return attempts_.try_emplace(key, std::move(attempt)).second;
}

bool AttemptTable::Visit(const AttemptKey& key, const std::function<void(PodAttempt&)>& use) {
  const MutexLock lock(mutex_);
  const auto found = attempts_.find(key);
  if (found == attempts_.end()) return false;
  Use(found->second, use);
  return true;
}

// An attempt of an experiment that has not been looked at yet may still be adopted: its sidecar is
// told to wait, not to end.
Status AttemptTable::Admit(const AttemptKey& key, const std::string& id,
                           const std::function<void(PodAttempt&)>& use) {
  const MutexLock lock(mutex_);
  const auto found = attempts_.find(key);
  if (found != attempts_.end()) {
    if (!SameSecret(found->second.id, id) || found->second.ended()) return NotCurrent();
    Use(found->second, use);
    return absl::OkStatus();
  }
  const absl::Duration age = options_.clock->Monotonic() - began_;
  const bool may_be_adopted = owned_.count(key.trial.experiment) == 0 && age < options_.settle;
  if (may_be_adopted || starts_.count(key) > 0 || unconfirmed_.count(key) > 0) {
    return absl::UnavailableError("not ready yet; try again");
  }
  return NotCurrent();
}

std::optional<PodAttempt> AttemptTable::Take(const AttemptKey& key) {
  const MutexLock lock(mutex_);
  unconfirmed_.erase(key);
  refused_.erase(key);
  const auto found = attempts_.find(key);
  if (found == attempts_.end()) return std::nullopt;
  std::optional<PodAttempt> attempt = std::move(found->second);
  Drop(found);
  return attempt;
}

std::vector<AttemptStatus> AttemptTable::Observe(const ExperimentKey& experiment) {
  const MutexLock lock(mutex_);
  owned_.insert(experiment);
  std::vector<AttemptStatus> statuses;
  const AttemptKey first = {{experiment, 0}, 0};
  for (auto it = attempts_.lower_bound(first); it != attempts_.end(); ++it) {
    if (it->first.trial.experiment != experiment) break;
    statuses.push_back(it->second.observed);
  }
  for (auto it = starts_.lower_bound(first); it != starts_.end(); ++it) {
    if (it->first.trial.experiment != experiment) break;
    if (attempts_.count(it->first) == 0) statuses.push_back({.key = it->first});
  }
  return statuses;
}

bool AttemptTable::Owns(const ExperimentKey& experiment) const {
  const MutexLock lock(mutex_);
  return owned_.count(experiment) > 0;
}

bool AttemptTable::Knows(const AttemptKey& key) const {
  const MutexLock lock(mutex_);
  return attempts_.count(key) > 0 || starts_.count(key) > 0 || unconfirmed_.count(key) > 0;
}

Status AttemptTable::CheckStopped(const ExperimentKey& experiment, int64_t trial) {
  const MutexLock lock(mutex_);
  for (const auto& [key, attempt] : attempts_) {
    if (!IsOf(key, experiment, trial) || attempt.ended()) continue;
    return absl::FailedPreconditionError(AttemptName(key) + " is running; stop it first");
  }
  for (const auto& [key, starting] : starts_) {
    if (!IsOf(key, experiment, trial)) continue;
    return absl::FailedPreconditionError(AttemptName(key) + " is being started; stop it first");
  }
  std::erase_if(refused_, [&](const auto& entry) { return IsOf(entry.first, experiment, trial); });
  return absl::OkStatus();
}

std::vector<AttemptKey> AttemptTable::RunningOn(const std::string& node) const {
  const MutexLock lock(mutex_);
  std::vector<AttemptKey> there;
  for (const auto& [key, attempt] : attempts_) {
    if (attempt.progress.node == node && !attempt.ended()) there.push_back(key);
  }
  return there;
}

std::vector<AttemptKey> AttemptTable::WatchedOf(const TrialKey& trial) const {
  const MutexLock lock(mutex_);
  std::vector<AttemptKey> watched;
  for (auto it = attempts_.lower_bound({trial, 0}); it != attempts_.end(); ++it) {
    if (it->first.trial != trial) break;
    watched.push_back(it->first);
  }
  return watched;
}

size_t AttemptTable::size() const {
  const MutexLock lock(mutex_);
  return attempts_.size();
}

// ---- when they are looked at --------------------------------------------------------------------

void AttemptTable::Use(PodAttempt& attempt, const std::function<void(PodAttempt&)>& use) {
  const std::optional<absl::Duration> before = attempt.due;
  use(attempt);
  if (attempt.due == before) return;
  if (before) agenda_.erase({*before, attempt.key});
  if (!attempt.due) return;
  const bool first = agenda_.empty() || *attempt.due < agenda_.begin()->first;
  agenda_.insert({*attempt.due, attempt.key});
  if (first) options_.wake();
}

void AttemptTable::Drop(Attempts::iterator attempt) {
  if (attempt->second.due) agenda_.erase({*attempt->second.due, attempt->first});
  attempts_.erase(attempt);
}

std::vector<AttemptKey> AttemptTable::TakeDue(absl::Duration now) {
  const MutexLock lock(mutex_);
  std::vector<AttemptKey> due;
  while (!agenda_.empty() && agenda_.begin()->first <= now) {
    due.push_back(agenda_.begin()->second);
    agenda_.erase(agenda_.begin());
    const auto found = attempts_.find(due.back());
    if (found != attempts_.end()) found->second.due.reset();
  }
  return due;
}

std::optional<absl::Duration> AttemptTable::NextDue() const {
  const MutexLock lock(mutex_);
  return agenda_.empty() ? std::nullopt : std::optional(agenda_.begin()->first);
}

}  // namespace shirabe::trial
