// How attempts of the process executor begin: started here, or found as an earlier process of ours
// has left them.
#include "trial/local/process_executor.h"

#include <algorithm>
#include <csignal>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/log.h"
#include "base/process_id.h"
#include "trial/local/pidfd.h"
#include "trial/local/supervisor_records.h"

namespace shirabe::trial {
namespace {

AttemptKey KeyOf(const v1::Attempt& attempt) {
  return {{ExperimentKeyOf(attempt), attempt.trial()}, attempt.number()};
}

bool HasEnded(const AttemptProcess& found) {
  return found.state == AttemptProcess::State::kEnded ||
         found.state == AttemptProcess::State::kVanished;
}

}  // namespace

Status SendStop(const Fd& pidfd, absl::Duration grace) {
  if (grace <= absl::ZeroDuration()) return SendSignal(pidfd, SIGUSR1);
  const int64_t grace_ms = std::min<int64_t>(absl::ToInt64Milliseconds(grace), 1 << 30);
  return SendSignal(pidfd, kStopSignal, static_cast<int>(grace_ms));
}

ProcessExecutor::ProcessExecutor(const ExecutorOptions& options)
    : options_(options),
      host_(ThisProcess().host),
      launcher_(options),
      layout_(launcher_.layout()),
      committer_(&layout_, options.clock,
                 [this](const ExperimentKey& experiment) { Announce({experiment}); }),
      gpus_(options.devices),
      nodes_(options.pools),
      reclaims_(options.pools) {}

StatusOr<std::unique_ptr<Executor>> ProcessExecutor::Create(const ExecutorOptions& options) {
  if (options.home.empty()) return absl::InvalidArgumentError("SHIRABE_HOME must not be empty");
  CHECK(options.clock != nullptr);
  auto executor = std::make_unique<ProcessExecutor>(options);
  ProcessExecutor* self = executor.get();
  const auto on_exits = [self](const std::vector<uint64_t>& watches) { self->OnExits(watches); };
  ASSIGN_OR_RETURN(executor->watcher_, ExitWatcher::Create(on_exits));
  if (options.pools.pools_size() > 0) {
    executor->timer_ =
        std::make_unique<WakeupTimer>(options.clock, [self] { return self->PlayReclaims(); });
  }
  return executor;
}

// ---- starting -----------------------------------------------------------------------------------

Status ProcessExecutor::Start(const AttemptRequest& request) {
  RETURN_IF_ERROR(ValidateKey(request.key));
  const std::string id = AttemptId(request.key, request.token);
  ASSIGN_OR_RETURN(const bool reserved, Reserve(request.key, id));
  if (!reserved) return absl::OkStatus();
  auto found = Begin(request, id);
  if (found.ok()) {
    FinishStart(request.key, *std::move(found));
    ResumeReclaims({request.key.trial.experiment});
    return absl::OkStatus();
  }
  std::set<ExperimentKey> others;
  {
    std::lock_guard lock(mutex_);
    others = Drop(request.key);
  }
  // Ours hears of it from this very status; to wake it as well would make it try without a pause.
  others.erase(request.key.trial.experiment);
  Announce(others);
  return Prefix(AttemptName(request.key), found.status());
}

// True if the attempt is new to us and its place is taken now; false if there is nothing to do.
StatusOr<bool> ProcessExecutor::Reserve(const AttemptKey& key, const std::string& id) {
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found != entries_.end() && found->second.id != id) {
    return absl::AlreadyExistsError(AttemptName(key) + " exists with another token");
  }
  if (found != entries_.end() && !found->second.startable) return false;
  Drop(key);
  Add(key, id).starting = true;
  return true;
}

// Finds the attempt where an earlier process has started it, else starts it.
StatusOr<AttemptProcess> ProcessExecutor::Begin(const AttemptRequest& request,
                                                const std::string& id) {
  ASSIGN_OR_RETURN(AttemptProcess found, launcher_.Prepare(request, id));
  const ExperimentKey& experiment = request.key.trial.experiment;
  if (found.state != AttemptProcess::State::kNeverStarted) return found;
  ASSIGN_OR_RETURN(const std::string resume_from, committer_.Prepare(request));
  ASSIGN_OR_RETURN(LaunchPlan plan, launcher_.Plan(request, resume_from));
  RETURN_IF_ERROR(AllocateResources(request, plan));
  RETURN_IF_ERROR(OpenTrace(experiment, /*create=*/true));
  return launcher_.Launch(request, plan);
}

// Devices and a slot: both, or neither.
Status ProcessExecutor::AllocateResources(const AttemptRequest& request, LaunchPlan& plan) {
  std::lock_guard lock(mutex_);
  const ExperimentKey& experiment = request.key.trial.experiment;
  const auto found = entries_.find(request.key);
  if (found == entries_.end()) return absl::CancelledError("forgotten while it started");
  Entry& entry = found->second;
  auto devices = gpus_.Allocate(plan.command.gpus);
  if (absl::IsResourceExhausted(devices.status())) refused_.insert(experiment);
  RETURN_IF_ERROR(devices.status());
  entry.devices = plan.devices = *std::move(devices);
  if (nodes_.empty()) return absl::OkStatus();
  auto placement = nodes_.Allocate(request.placement_request, options_.clock->Monotonic());
  if (absl::IsResourceExhausted(placement.status())) refused_.insert(experiment);
  // The devices go with the entry, which the caller drops.
  RETURN_IF_ERROR(placement.status());
  entry.observed.placement = *std::move(placement);
  entry.node = entry.observed.placement.node();
  plan.place = EncodePlacement(entry.observed.placement);
  return absl::OkStatus();
}

// Makes sure that the experiment's reclaims are known, from the file that an earlier process of
// ours has left, or else, with `create`, from now on.
Status ProcessExecutor::OpenTrace(const ExperimentKey& experiment, bool create) {
  RETURN_IF_ERROR(ValidateKey(experiment));
  {
    std::lock_guard lock(mutex_);
    if (!reclaims_.any() || reclaims_.Knows(experiment)) return absl::OkStatus();
  }
  const std::string path = layout_.ReclaimsFile(experiment);
  const absl::Time now = options_.clock->Now();
  auto state = ReadTraceState(path);
  if (absl::IsNotFound(state.status()) && !create) return absl::OkStatus();
  if (!state.ok()) {
    if (!absl::IsNotFound(state.status())) {
      Log(LogLevel::kWarning, "the simulated preemptions of an experiment start over",
          {{"experiment", ToString(experiment)}, {"error", Message(state.status())}});
    }
    state = TraceState{now, absl::ZeroDuration()};
    RETURN_IF_ERROR(WriteTraceState(path, *state));
  }
  // A wall clock that was set back meanwhile does not bring back what was played.
  const absl::Duration ago = std::max(now - state->origin, state->until);
  std::lock_guard lock(mutex_);
  reclaims_.Begin(experiment, *state, options_.clock->Monotonic() - ago);
  return absl::OkStatus();
}

void ProcessExecutor::FinishStart(const AttemptKey& key, AttemptProcess found) {
  if (found.state == AttemptProcess::State::kRunning) committer_.Watch(key);
  if (HasEnded(found)) committer_.End(key);
  std::lock_guard lock(mutex_);
  const auto place = entries_.find(key);
  if (place == entries_.end()) return committer_.Forget(key);  // as its caller wished meanwhile
  Entry& entry = place->second;
  entry.starting = false;
  Apply(entry, std::move(found));
  if (entry.deferred_stop && entry.pidfd.valid()) {
    SendStop(entry.pidfd, *entry.deferred_stop).IgnoreError();
  }
}

void ProcessExecutor::Adopt(const std::vector<v1::Attempt>& open) {
  std::set<ExperimentKey> experiments;
  for (const v1::Attempt& attempt : open) {
    AdoptOne(attempt);
    experiments.insert(ExperimentKeyOf(attempt));
  }
  ResumeReclaims(experiments);
}

void ProcessExecutor::AdoptOne(const v1::Attempt& attempt) {
  const AttemptKey key = KeyOf(attempt);
  const std::string id = AttemptId(key, attempt.token());
  {
    std::lock_guard lock(mutex_);
    if (!ValidateKey(key).ok() || entries_.count(key) > 0) return;
    Add(key, id).starting = true;
  }
  AttemptProcess found = FindAttemptProcess(layout_.Paths(key).dir, id);
  if (found.leftovers) KillLeftovers(id, 0);
  if (found.state == AttemptProcess::State::kRunning) ResumeStop(key, found);
  FinishStart(key, std::move(found));
}

// Not before all that runs is known: what was due while it was not played takes the one that has
// run longest, and passes where nothing runs.
void ProcessExecutor::ResumeReclaims(const std::set<ExperimentKey>& experiments) {
  if (!timer_) return;
  for (const ExperimentKey& experiment : experiments) {
    const Status opened = OpenTrace(experiment, /*create=*/false);
    if (opened.ok()) continue;
    Log(LogLevel::kWarning, "preemptions of an experiment are not simulated",
        {{"experiment", ToString(experiment)}, {"error", Message(opened)}});
  }
  timer_->Wake();
}

// A machine was being taken away when an earlier process of ours ended, which may have been before
// the signal: then this is the first one, else it changes nothing.
void ProcessExecutor::ResumeStop(const AttemptKey& key, const AttemptProcess& found) {
  if (!found.reclaim || !found.pidfd.valid()) return;
  const absl::Duration left = found.reclaim->deadline - options_.clock->Now();
  if (left > absl::ZeroDuration()) WriteStopRequest(key, found.reclaim->cause, left);
  SendStop(found.pidfd, left).IgnoreError();
}

// ---- what was found -----------------------------------------------------------------------------

Entry& ProcessExecutor::Add(const AttemptKey& key, const std::string& id) {
  Entry& entry = entries_[key];
  entry.watch = next_watch_++;
  entry.id = id;
  entry.observed.key = key;
  entry.observed.placement.set_node(host_);
  entry.observed.placement.set_capacity(CapacityWord(v1::ON_DEMAND));
  watched_[entry.watch] = key;
  return entry;
}

void ProcessExecutor::Apply(Entry& entry, AttemptProcess found) {
  UpdateStatus(found, options_.clock->Now(), entry.observed);
  entry.startable = found.state == AttemptProcess::State::kNeverStarted;
  entry.pidfd = std::move(found.pidfd);
  if (found.reclaim) {
    const absl::Duration back = found.reclaim->back - options_.clock->Now();
    nodes_.SetAway(entry.observed.placement.node(), options_.clock->Monotonic() + back);
  }
  if (found.state != AttemptProcess::State::kRunning) return;
  Hold(found, entry);
  Watch(entry);
}

// An attempt that runs has what its record names, whichever process gave it that.
void ProcessExecutor::Hold(const AttemptProcess& found, Entry& entry) {
  // One that was launched just now has a pid, but no record that was read back yet.
  const bool read = found.pid.start > 0;
  const absl::Duration age = read ? AgeOf(found.pid.start) : absl::ZeroDuration();
  if (!entry.since) entry.since = options_.clock->Monotonic() - age;
  if (found.pid.pid == 0) return;
  entry.devices = absl::StrSplit(found.pid.devices, ',', absl::SkipEmpty());
  gpus_.Mark(entry.devices);
  if (entry.observed.placement.pool().empty()) return;
  if (entry.node != entry.observed.placement.node()) nodes_.Release(entry.node);
  entry.node = entry.observed.placement.node();
  nodes_.Mark(entry.node);
}

// What cannot be watched is looked at by Observe instead.
void ProcessExecutor::Watch(Entry& entry) {
  if (!entry.pidfd.valid()) return;
  const Status status = watcher_->Watch(entry.pidfd, entry.watch);
  if (status.ok()) return;
  entry.pidfd = Fd();
  Log(LogLevel::kWarning, "a process cannot be watched; its end will be seen late",
      {{"error", Message(status)}});
}

}  // namespace shirabe::trial
