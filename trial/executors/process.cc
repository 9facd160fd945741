// How attempts of the process executor end, and what becomes of them then.
#include <algorithm>
#include <csignal>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "trial/control_file.h"
#include "trial/local/process_executor.h"

namespace shirabe::trial {

// ---- ending -------------------------------------------------------------------------------------

void ProcessExecutor::OnExits(const std::vector<uint64_t>& watches) {
  std::set<ExperimentKey> changed;
  for (const uint64_t watch : watches) {
    if (const auto experiment = CheckSupervisor(watch)) changed.insert(*experiment);
  }
  Announce(changed);
}

// Looks again at an attempt whose supervisor has ended, or cannot be watched. Returns the
// experiment if the attempt has ended.
std::optional<ExperimentKey> ProcessExecutor::CheckSupervisor(uint64_t watch) {
  AttemptKey key;
  EndedSupervisor supervisor;
  {
    std::lock_guard lock(mutex_);
    const auto watched = watched_.find(watch);
    if (watched == watched_.end()) return std::nullopt;
    key = watched->second;
    const Entry& entry = entries_.at(key);
    if (entry.observed.state != AttemptStatus::State::kRunning) return std::nullopt;
    supervisor.pid = static_cast<pid_t>(entry.observed.placement.pid());
    supervisor.id = entry.id;
  }
  const AttemptPaths paths = layout_.Paths(key);
  supervisor.dir = paths.dir;
  supervisor.log = paths.log;
  AttemptProcess found = ReapSupervisor(supervisor);
  const bool ended = found.state != AttemptProcess::State::kRunning;
  // First, so that no caller sees the end before all that was saved.
  if (ended) committer_.End(key);
  std::lock_guard lock(mutex_);
  const auto entry = entries_.find(key);
  if (entry == entries_.end()) committer_.Forget(key);
  if (entry == entries_.end() || entry->second.watch != watch) return std::nullopt;
  if (entry->second.observed.state != AttemptStatus::State::kRunning) return std::nullopt;
  Apply(entry->second, std::move(found));
  return ended ? std::optional(key.trial.experiment) : std::nullopt;
}

Status ProcessExecutor::Stop(const AttemptKey& key, v1::Cause why, absl::Duration grace) {
  // Also where its program has ended and only its checkpoints are still being read.
  if (grace <= absl::ZeroDuration()) committer_.Abandon(key);
  {
    std::lock_guard lock(mutex_);
    const auto found = entries_.find(key);
    if (found == entries_.end()) return absl::OkStatus();
    Entry& entry = found->second;
    const absl::Duration kill_at = options_.clock->Monotonic() + grace;
    if (entry.observed.state != AttemptStatus::State::kRunning) return absl::OkStatus();
    if (entry.kill_at && *entry.kill_at <= kill_at) return absl::OkStatus();
    entry.kill_at = kill_at;
    if (entry.starting) entry.deferred_stop = grace;
  }
  WriteStopRequest(key, why, grace);
  return Signal(key, grace);
}

// Before the signal, so that the program finds it when it looks. Without it the program does not
// learn why, which is no reason to let it run on.
void ProcessExecutor::WriteStopRequest(const AttemptKey& key, v1::Cause why, absl::Duration grace) {
  const Status written = WriteControl(layout_.Paths(key).control_file,
                                      {ControlReason(why), options_.clock->Now() + grace});
  if (written.ok()) return;
  Log(LogLevel::kWarning, "failed to write the control file of a program that is stopped",
      {{"attempt", AttemptName(key)}, {"error", Message(written)}});
}

Status ProcessExecutor::Signal(const AttemptKey& key, absl::Duration grace) {
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end() || found->second.starting) return absl::OkStatus();
  Entry& entry = found->second;
  if (entry.observed.state != AttemptStatus::State::kRunning) return absl::OkStatus();
  if (!entry.pidfd.valid()) {
    entry.kill_at.reset();
    return absl::UnavailableError("cannot reach " + AttemptName(key) +
                                  ": out of descriptors; try again");
  }
  return SendStop(entry.pidfd, grace);
}

// ---- reclaims -----------------------------------------------------------------------------------

// Those whose machine can be taken away: what runs in a slot and is not being reclaimed yet.
std::vector<Reclaims::RunningAttempt> ProcessExecutor::RunningAttempts() const {
  std::vector<Reclaims::RunningAttempt> runners;
  for (const auto& [key, entry] : entries_) {
    const AttemptStatus& observed = entry.observed;
    const bool running = observed.state == AttemptStatus::State::kRunning && !entry.starting;
    if (!running || !entry.since || !entry.pidfd.valid()) continue;
    if (entry.node.empty() || observed.platform != v1::CAUSE_NONE) continue;
    runners.push_back({key, observed.placement, *entry.since});
  }
  return runners;
}

// In the alarm's thread. Returns when there is something to do again.
std::optional<absl::Duration> ProcessExecutor::PlayReclaims() {
  std::vector<Reclaims::Preemption> preemptions;
  std::set<ExperimentKey> changed;
  {
    std::lock_guard lock(mutex_);
    const absl::Duration now = options_.clock->Monotonic();
    if (next_return_ && *next_return_ <= now) changed = std::exchange(refused_, {});
    preemptions = reclaims_.Play(RunningAttempts(), now);
    for (const Reclaims::Preemption& preemption : preemptions) {
      Entry& entry = entries_.at(preemption.key);
      const absl::Duration gone = now + preemption.notice;
      entry.observed.platform = preemption.cause;
      entry.kill_at = std::min(entry.kill_at.value_or(gone), gone);
      nodes_.SetAway(preemption.node, gone + preemption.away);
      changed.insert(preemption.key.trial.experiment);
    }
  }
  for (const Reclaims::Preemption& preemption : preemptions) Reclaim(preemption);
  Announce(changed);
  std::lock_guard lock(mutex_);
  next_return_ = nodes_.NextReturn(options_.clock->Monotonic());
  const auto next = RunningAttempts().empty() ? std::nullopt : reclaims_.Next();
  return next && next_return_ ? std::min(*next, *next_return_) : next ? next : next_return_;
}

// Each file is there before what it tells of happens: a restart in between may lose a reclaim, but
// never plays one twice, and never takes its victim for a program that failed.
void ProcessExecutor::Reclaim(const Reclaims::Preemption& preemption) {
  const AttemptPaths paths = layout_.Paths(preemption.key);
  const absl::Time gone = options_.clock->Now() + preemption.notice;
  ReclaimRecord record = {"", preemption.cause, gone, gone + preemption.away};
  {
    std::lock_guard lock(mutex_);
    const auto found = entries_.find(preemption.key);
    if (found == entries_.end()) return;
    record.id = found->second.id;
  }
  Status written =
      WriteTraceState(layout_.ReclaimsFile(preemption.key.trial.experiment), preemption.state);
  written.Update(WriteReclaimRecord(paths.dir, record));
  if (!written.ok()) {
    Log(LogLevel::kWarning, "failed to persist a simulated preemption",
        {{"attempt", AttemptName(preemption.key)}, {"error", Message(written)}});
  }
  if (preemption.notice > absl::ZeroDuration())
    WriteStopRequest(preemption.key, preemption.cause, preemption.notice);
  const Status sent = Signal(preemption.key, preemption.notice);
  if (sent.ok()) return;
  Log(LogLevel::kWarning, "failed to simulate a preemption",
      {{"attempt", AttemptName(preemption.key)}, {"error", Message(sent)}});
}

// ---- looking and forgetting ---------------------------------------------------------------------

Entries::iterator ProcessExecutor::FirstOf(const ExperimentKey& experiment) {
  return entries_.lower_bound(AttemptKey{{experiment, 0}, 0});
}

std::vector<AttemptStatus> ProcessExecutor::Observe(const ExperimentKey& experiment) {
  std::vector<uint64_t> unwatched;
  std::vector<AttemptStatus> statuses;
  const auto look = [&] {
    std::lock_guard lock(mutex_);
    statuses.clear();
    const absl::Duration now = options_.clock->Monotonic();
    for (auto it = FirstOf(experiment); it != entries_.end(); ++it) {
      const auto& [key, entry] = *it;
      if (key.trial.experiment != experiment) break;
      const bool running = entry.observed.state == AttemptStatus::State::kRunning;
      if (running && !entry.starting && !entry.pidfd.valid()) unwatched.push_back(entry.watch);
      statuses.push_back(entry.observed);
      if (running && entry.since) statuses.back().ran = now - *entry.since;
    }
  };
  look();
  if (!unwatched.empty()) {
    for (const uint64_t watch : unwatched) CheckSupervisor(watch);
    look();
  }
  for (AttemptStatus& observed : statuses) committer_.Describe(observed);
  return statuses;
}

// Those that may try again because of it.
std::set<ExperimentKey> ProcessExecutor::Drop(const AttemptKey& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return {};
  const bool freed = !found->second.devices.empty() || !found->second.node.empty();
  nodes_.Release(found->second.node);
  gpus_.Release(found->second.devices);
  watched_.erase(found->second.watch);
  entries_.erase(found);
  return freed ? std::exchange(refused_, {}) : std::set<ExperimentKey>();
}

void ProcessExecutor::Forget(const AttemptKey& key) {
  std::set<ExperimentKey> others;
  {
    std::lock_guard lock(mutex_);
    others = Drop(key);
  }
  committer_.Forget(key);
  Announce(others);
}

Status ProcessExecutor::RemoveFiles(const ExperimentKey& experiment, int64_t trial) {
  RETURN_IF_ERROR(ValidateKey(experiment));
  if (committer_.Busy(experiment, trial)) {
    return absl::UnavailableError("a checkpoint is being copied there; try again");
  }
  {
    std::lock_guard lock(mutex_);
    for (auto it = FirstOf(experiment); it != entries_.end(); ++it) {
      const auto& [key, entry] = *it;
      if (key.trial.experiment != experiment) break;
      if (trial != 0 && key.trial.number != trial) continue;
      if (entry.observed.state != AttemptStatus::State::kRunning) continue;
      return absl::FailedPreconditionError(AttemptName(key) + " is running; stop it first");
    }
    if (trial == 0) reclaims_.Forget(experiment);
  }
  return layout_.Remove(experiment, trial);
}

PlacementQuote ProcessExecutor::QuotePlacement(const ExperimentKey& experiment,
                                               const google::protobuf::Struct& trial_spec,
                                               const PlacementRequest& placement_request) {
  const int gpus = RequestedGpus(trial_spec);
  std::lock_guard lock(mutex_);
  PlacementQuote quote;
  if (!nodes_.empty())
    quote = nodes_.QuotePlacement(placement_request, options_.clock->Monotonic());
  if (quote.waiting.empty()) quote.waiting = gpus_.Waiting(gpus);
  if (!quote.waiting.empty()) refused_.insert(experiment);
  return quote;
}

void ProcessExecutor::Prune(const v1::Checkpoint& checkpoint) { committer_.Prune(checkpoint); }

void ProcessExecutor::Announce(const std::set<ExperimentKey>& experiments) {
  if (!options_.on_change) return;
  for (const ExperimentKey& experiment : experiments) options_.on_change(experiment);
}

namespace {

SHIRABE_REGISTER(ExecutorInfo, {.name = "process",
                                .help = "processes of this machine",
                                .create = ProcessExecutor::Create});

}  // namespace
}  // namespace shirabe::trial
