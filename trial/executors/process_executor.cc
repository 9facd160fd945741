// How attempts of the process executor begin: started here, or found as an earlier process of ours
// has left them.
#include "trial/executors/process_executor.h"

#include <csignal>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/log.h"
#include "base/process_id.h"
#include "trial/pidfd.h"
#include "trial/sighting.h"

namespace shirabe::trial {
namespace {

AttemptKey KeyOf(const v1::Attempt& attempt) {
  return {{ExperimentKeyOf(attempt), attempt.trial()}, attempt.number()};
}

bool HasEnded(const Found& found) {
  return found.state == Found::State::kEnded || found.state == Found::State::kVanished;
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
      keeper_(&layout_, options.clock,
              [this](const ExperimentKey& experiment) { Announce({experiment}); }),
      gpus_(options.devices) {}

StatusOr<std::unique_ptr<Executor>> ProcessExecutor::Create(const ExecutorOptions& options) {
  if (options.home.empty()) return absl::InvalidArgumentError("SHIRABE_HOME must not be empty");
  CHECK(options.clock != nullptr);
  auto executor = std::make_unique<ProcessExecutor>(options);
  ProcessExecutor* self = executor.get();
  const auto on_exits = [self](const std::vector<uint64_t>& watches) { self->OnExits(watches); };
  ASSIGN_OR_RETURN(executor->watcher_, ExitWatcher::Create(on_exits));
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
    Settle(request.key, *std::move(found));
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
StatusOr<Found> ProcessExecutor::Begin(const AttemptRequest& request, const std::string& id) {
  ASSIGN_OR_RETURN(Found found, launcher_.Prepare(request, id));
  if (found.state != Found::State::kNeverStarted) return found;
  ASSIGN_OR_RETURN(const std::string resume_from, keeper_.Prepare(request));
  ASSIGN_OR_RETURN(LaunchPlan plan, launcher_.Plan(request, resume_from));
  ASSIGN_OR_RETURN(plan.devices, TakeDevices(request.key, plan.command.gpus));
  return launcher_.Launch(request, plan);
}

StatusOr<Devices> ProcessExecutor::TakeDevices(const AttemptKey& key, int count) {
  std::lock_guard lock(mutex_);
  auto devices = gpus_.Take(count);
  if (absl::IsResourceExhausted(devices.status())) refused_.insert(key.trial.experiment);
  const auto entry = entries_.find(key);
  if (devices.ok() && entry != entries_.end()) entry->second.devices = *devices;
  return devices;
}

void ProcessExecutor::Settle(const AttemptKey& key, Found found) {
  if (found.state == Found::State::kRunning) keeper_.Watch(key);
  if (HasEnded(found)) keeper_.End(key);
  std::lock_guard lock(mutex_);
  const auto place = entries_.find(key);
  if (place == entries_.end()) return keeper_.Forget(key);  // as its caller wished meanwhile
  Entry& entry = place->second;
  entry.starting = false;
  Apply(entry, std::move(found));
  if (entry.wish && entry.pidfd.valid()) {
    SendStop(entry.pidfd, *entry.wish).IgnoreError();
  }
}

void ProcessExecutor::Adopt(const std::vector<v1::Attempt>& open) {
  for (const v1::Attempt& attempt : open) AdoptOne(attempt);
}

void ProcessExecutor::AdoptOne(const v1::Attempt& attempt) {
  const AttemptKey key = KeyOf(attempt);
  const std::string id = AttemptId(key, attempt.token());
  {
    std::lock_guard lock(mutex_);
    if (!ValidateKey(key).ok() || entries_.count(key) > 0) return;
    Add(key, id).starting = true;
  }
  Found found = FindAttempt(layout_.Paths(key).dir, id);
  if (found.leftovers) KillLeftovers(id, 0);
  Settle(key, std::move(found));
}

// ---- what was found -----------------------------------------------------------------------------

Entry& ProcessExecutor::Add(const AttemptKey& key, const std::string& id) {
  Entry& entry = entries_[key];
  entry.watch = next_watch_++;
  entry.id = id;
  entry.sighting.key = key;
  entry.sighting.placement.set_node(host_);
  watched_[entry.watch] = key;
  return entry;
}

void ProcessExecutor::Apply(Entry& entry, Found found) {
  UpdateSighting(found, options_.clock->Now(), entry.sighting);
  entry.startable = found.state == Found::State::kNeverStarted;
  entry.pidfd = std::move(found.pidfd);
  if (found.state != Found::State::kRunning) return;
  if (found.pid.pid != 0) {
    entry.devices = absl::StrSplit(found.pid.devices, ',', absl::SkipEmpty());
    gpus_.Mark(entry.devices);
  }
  Watch(entry);
}

// What cannot be watched is looked at by Observe instead.
void ProcessExecutor::Watch(Entry& entry) {
  if (!entry.pidfd.valid()) return;
  const Status status = watcher_->Watch(entry.pidfd, entry.watch);
  if (status.ok()) return;
  entry.pidfd = Fd();
  Log(LogLevel::kWarning, "the end of an attempt will be seen late", {{"error", Message(status)}});
}

}  // namespace shirabe::trial
