#include "trial/local/process_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_split.h"
#include "base/log.h"
#include "base/process_id.h"

namespace shirabe::trial {
namespace {

AttemptKey FirstOf(const ExperimentKey& experiment) { return {{experiment, 0}, 0}; }

}  // namespace

ProcessTable::ProcessTable(const Options& options)
    : options_(options), gpus_(options.devices), nodes_(options.pools) {}

// ---- how they begin and go ----------------------------------------------------------------------

StatusOr<bool> ProcessTable::Reserve(const AttemptKey& key, const std::string& id) {
  const MutexLock lock(mutex_);
  const auto found = attempts_.find(key);
  if (found != attempts_.end() && found->second.id != id) {
    return absl::AlreadyExistsError(AttemptName(key) + " exists with another token");
  }
  if (found != attempts_.end() && !found->second.startable) return false;
  Erase(key);
  ProcessAttempt& attempt = attempts_[key];
  attempt.watch = next_watch_++;
  attempt.id = id;
  attempt.observed.key = key;
  attempt.observed.placement.set_node(options_.host);
  attempt.observed.placement.set_capacity(CapacityWord(v1::ON_DEMAND));
  attempt.starting = true;
  watched_[attempt.watch] = key;
  return true;
}

StatusOr<ProcessTable::Grant> ProcessTable::Allocate(const AttemptKey& key, int gpus,
                                                     const PlacementRequest& request) {
  const MutexLock lock(mutex_);
  const ExperimentKey& experiment = key.trial.experiment;
  const auto found = attempts_.find(key);
  if (found == attempts_.end()) return absl::CancelledError("forgotten while it started");
  ProcessAttempt& attempt = found->second;
  auto devices = gpus_.Allocate(gpus);
  if (absl::IsResourceExhausted(devices.status())) refused_.insert(experiment);
  RETURN_IF_ERROR(devices.status());
  attempt.devices = *std::move(devices);
  Grant grant = {.devices = attempt.devices, .place = ""};
  if (nodes_.empty()) return grant;
  auto placement = nodes_.Allocate(request, options_.clock->Monotonic());
  if (absl::IsResourceExhausted(placement.status())) refused_.insert(experiment);
  // The devices go with the attempt, which the caller drops.
  RETURN_IF_ERROR(placement.status());
  attempt.observed.placement = *std::move(placement);
  attempt.node = attempt.observed.placement.node();
  grant.place = EncodePlacement(attempt.observed.placement);
  return grant;
}

bool ProcessTable::FinishStart(const AttemptKey& key, AttemptProcess found) {
  const MutexLock lock(mutex_);
  const auto place = attempts_.find(key);
  if (place == attempts_.end()) return false;
  ProcessAttempt& attempt = place->second;
  attempt.starting = false;
  Apply(std::move(found), attempt);
  if (attempt.deferred_stop && attempt.pidfd.valid()) {
    SendStop(attempt.pidfd, *attempt.deferred_stop).IgnoreError();
  }
  return true;
}

std::set<ExperimentKey> ProcessTable::Drop(const AttemptKey& key) {
  const MutexLock lock(mutex_);
  return Erase(key);
}

std::set<ExperimentKey> ProcessTable::Erase(const AttemptKey& key) {
  const auto found = attempts_.find(key);
  if (found == attempts_.end()) return {};
  const bool freed = !found->second.devices.empty() || !found->second.node.empty();
  nodes_.Release(found->second.node);
  gpus_.Release(found->second.devices);
  watched_.erase(found->second.watch);
  attempts_.erase(found);
  return freed ? std::exchange(refused_, {}) : std::set<ExperimentKey>();
}

// What cannot be watched is looked at by Observe instead.
void ProcessTable::Apply(AttemptProcess found, ProcessAttempt& attempt) {
  UpdateStatus(found, options_.clock->Now(), attempt.observed);
  attempt.startable = found.state == AttemptProcess::State::kNeverStarted;
  attempt.pidfd = std::move(found.pidfd);
  if (found.reclaim) {
    const absl::Duration back = found.reclaim->back - options_.clock->Now();
    nodes_.SetAway(attempt.observed.placement.node(), options_.clock->Monotonic() + back);
  }
  if (found.state != AttemptProcess::State::kRunning) return;
  Hold(found, attempt);
  if (!attempt.pidfd.valid()) return;
  const Status watched = options_.watch(attempt.pidfd, attempt.watch);
  if (watched.ok()) return;
  attempt.pidfd = Fd();
  Log(LogLevel::kWarning, "a process cannot be watched; its end will be seen late",
      {{"error", Message(watched)}});
}

// An attempt that runs has what its record names, whichever process gave it that.
void ProcessTable::Hold(const AttemptProcess& found, ProcessAttempt& attempt) {
  // One that was launched just now has a pid, but no record that was read back yet.
  const bool read = found.pid.start > 0;
  const absl::Duration age = read ? AgeOf(found.pid.start) : absl::ZeroDuration();
  if (!attempt.since) attempt.since = options_.clock->Monotonic() - age;
  if (found.pid.pid == 0) return;
  attempt.devices = absl::StrSplit(found.pid.devices, ',', absl::SkipEmpty());
  gpus_.Mark(attempt.devices);
  if (attempt.observed.placement.pool().empty()) return;
  if (attempt.node != attempt.observed.placement.node()) nodes_.Release(attempt.node);
  attempt.node = attempt.observed.placement.node();
  nodes_.Mark(attempt.node);
}

// ---- how they end -------------------------------------------------------------------------------

bool ProcessTable::BeginStop(const AttemptKey& key, absl::Duration grace) {
  const MutexLock lock(mutex_);
  const auto found = attempts_.find(key);
  if (found == attempts_.end() || !found->second.running()) return false;
  ProcessAttempt& attempt = found->second;
  const absl::Duration kill_at = options_.clock->Monotonic() + grace;
  if (attempt.kill_at && *attempt.kill_at <= kill_at) return false;
  attempt.kill_at = kill_at;
  if (attempt.starting) attempt.deferred_stop = grace;
  return true;
}

Status ProcessTable::Signal(const AttemptKey& key, absl::Duration grace) {
  const MutexLock lock(mutex_);
  const auto found = attempts_.find(key);
  if (found == attempts_.end() || found->second.starting) return absl::OkStatus();
  ProcessAttempt& attempt = found->second;
  if (!attempt.running()) return absl::OkStatus();
  if (!attempt.pidfd.valid()) {
    attempt.kill_at.reset();
    return absl::UnavailableError("cannot reach " + AttemptName(key) +
                                  ": out of descriptors; try again");
  }
  return SendStop(attempt.pidfd, grace);
}

std::optional<ProcessTable::Watched> ProcessTable::FindRunning(uint64_t watch) const {
  const MutexLock lock(mutex_);
  const auto watched = watched_.find(watch);
  if (watched == watched_.end()) return std::nullopt;
  const ProcessAttempt& attempt = attempts_.at(watched->second);
  if (!attempt.running()) return std::nullopt;
  const auto pid = static_cast<pid_t>(attempt.observed.placement.pid());
  return Watched{watched->second, pid, attempt.id};
}

bool ProcessTable::RecordFound(uint64_t watch, AttemptProcess found) {
  const MutexLock lock(mutex_);
  const auto watched = watched_.find(watch);
  if (watched == watched_.end()) return false;
  ProcessAttempt& attempt = attempts_.at(watched->second);
  if (!attempt.running()) return false;
  Apply(std::move(found), attempt);
  return true;
}

// ---- what is known ------------------------------------------------------------------------------

bool ProcessTable::Knows(const AttemptKey& key) const {
  const MutexLock lock(mutex_);
  return attempts_.count(key) > 0;
}

ProcessTable::Snapshot ProcessTable::Observe(const ExperimentKey& experiment) const {
  const MutexLock lock(mutex_);
  Snapshot snapshot;
  const absl::Duration now = options_.clock->Monotonic();
  for (auto it = attempts_.lower_bound(FirstOf(experiment)); it != attempts_.end(); ++it) {
    const auto& [key, attempt] = *it;
    if (key.trial.experiment != experiment) break;
    const bool running = attempt.running();
    if (running && !attempt.starting && !attempt.pidfd.valid()) {
      snapshot.unwatched.push_back(attempt.watch);
    }
    snapshot.statuses.push_back(attempt.observed);
    if (running && attempt.since) snapshot.statuses.back().ran = now - *attempt.since;
  }
  return snapshot;
}

Status ProcessTable::CheckStopped(const ExperimentKey& experiment, int64_t trial) const {
  const MutexLock lock(mutex_);
  for (auto it = attempts_.lower_bound(FirstOf(experiment)); it != attempts_.end(); ++it) {
    const auto& [key, attempt] = *it;
    if (key.trial.experiment != experiment) break;
    if ((trial != 0 && key.trial.number != trial) || !attempt.running()) continue;
    return absl::FailedPreconditionError(AttemptName(key) + " is running; stop it first");
  }
  return absl::OkStatus();
}

PlacementQuote ProcessTable::QuotePlacement(const ExperimentKey& experiment, int gpus,
                                            const PlacementRequest& request) {
  const MutexLock lock(mutex_);
  PlacementQuote quote;
  if (!nodes_.empty()) quote = nodes_.QuotePlacement(request, options_.clock->Monotonic());
  if (quote.waiting.empty()) quote.waiting = gpus_.Waiting(gpus);
  if (!quote.waiting.empty()) refused_.insert(experiment);
  return quote;
}

// ---- machines that are taken away ---------------------------------------------------------------

std::vector<Reclaims::RunningAttempt> ProcessTable::RunningInSlots() const {
  const MutexLock lock(mutex_);
  std::vector<Reclaims::RunningAttempt> running;
  for (const auto& [key, attempt] : attempts_) {
    if (!attempt.running() || attempt.starting) continue;
    if (!attempt.since || !attempt.pidfd.valid()) continue;
    if (attempt.node.empty() || attempt.observed.platform != v1::CAUSE_NONE) continue;
    running.push_back({key, attempt.observed.placement, *attempt.since});
  }
  return running;
}

std::optional<std::string> ProcessTable::Preempt(const Reclaims::Preemption& preemption) {
  const MutexLock lock(mutex_);
  const absl::Duration gone = options_.clock->Monotonic() + preemption.notice;
  nodes_.SetAway(preemption.node, gone + preemption.away);
  const auto found = attempts_.find(preemption.key);
  if (found == attempts_.end() || !found->second.running()) return std::nullopt;
  ProcessAttempt& attempt = found->second;
  attempt.observed.platform = preemption.cause;
  attempt.kill_at = std::min(attempt.kill_at.value_or(gone), gone);
  return attempt.id;
}

std::set<ExperimentKey> ProcessTable::TakeReturned() {
  const MutexLock lock(mutex_);
  if (!next_return_ || *next_return_ > options_.clock->Monotonic()) return {};
  return std::exchange(refused_, {});
}

std::optional<absl::Duration> ProcessTable::NextReturn() {
  const MutexLock lock(mutex_);
  next_return_ = nodes_.NextReturn(options_.clock->Monotonic());
  return next_return_;
}

}  // namespace shirabe::trial
