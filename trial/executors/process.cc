// Attempts as processes of this machine. Each has a supervisor (trial/supervisor) that outlives us;
// what is true of it stands in the records it leaves, and an Entry is only what we remember of
// them. So a start, the end of a process and a restart of ours all come down to the same two steps:
// something is found (trial/records.h), and Apply writes it down.
//
// Locking: mutex_ guards everything that changes. Files are read and processes started without it;
// an entry that is `starting` holds the attempt's place meanwhile. on_change is called without it.
#include <algorithm>
#include <csignal>
#include <mutex>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/log.h"
#include "base/process_id.h"
#include "trial/control.h"
#include "trial/executor.h"
#include "trial/exit_watcher.h"
#include "trial/gpus.h"
#include "trial/launcher.h"
#include "trial/pidfd.h"
#include "trial/records.h"
#include "trial/sighting.h"

namespace shirabe::trial {
namespace {

using Devices = std::vector<std::string>;

struct Entry {
  uint64_t watch = 0;  // names this entry to the watcher; never used twice
  std::string id;
  Sighting sighting;
  Devices devices;                        // taken from the pool, until Forget
  Fd pidfd;                               // while it runs; not valid if descriptors ran out
  bool starting = false;                  // Start is at work on it without the lock
  bool startable = false;                 // lost, but only because it never began
  std::optional<absl::Duration> kill_at;  // when the last stop ends in SIGKILL; monotonic
  std::optional<absl::Duration> wish;     // the grace of a stop that came while starting
};

using Entries = std::map<AttemptKey, Entry>;

AttemptKey KeyOf(const v1::Attempt& attempt) {
  return {{ExperimentKeyOf(attempt), attempt.trial()}, attempt.number()};
}

// Asks the supervisor to end its attempt; it tells the program, and once only.
Status SendStop(const Fd& pidfd, absl::Duration grace) {
  if (grace <= absl::ZeroDuration()) return SendSignal(pidfd, SIGUSR1);
  const int64_t grace_ms = std::min<int64_t>(absl::ToInt64Milliseconds(grace), 1 << 30);
  return SendSignal(pidfd, kStopSignal, static_cast<int>(grace_ms));
}

class ProcessExecutor : public Executor {
 public:
  explicit ProcessExecutor(const ExecutorOptions& options)
      : options_(options),
        host_(ThisProcess().host),
        launcher_(options),
        layout_(launcher_.layout()),
        gpus_(options.devices) {}

  static StatusOr<std::unique_ptr<Executor>> Create(const ExecutorOptions& options) {
    if (options.home.empty()) return absl::InvalidArgumentError("SHIRABE_HOME must not be empty");
    CHECK(options.clock != nullptr);
    auto executor = std::make_unique<ProcessExecutor>(options);
    ProcessExecutor* self = executor.get();
    const auto on_exits = [self](const std::vector<uint64_t>& watches) { self->OnExits(watches); };
    ASSIGN_OR_RETURN(executor->watcher_, ExitWatcher::Create(on_exits));
    return executor;
  }

  Status Start(const AttemptRequest& request) override;
  Status Stop(const AttemptKey& key, v1::Cause why, absl::Duration grace) override;
  void Adopt(const std::vector<v1::Attempt>& open) override;
  std::vector<Sighting> Observe(const ExperimentKey& experiment) override;
  void Forget(const AttemptKey& key) override;
  Status RemoveFiles(const ExperimentKey& experiment, int64_t trial) override;
  AttemptPaths Paths(const AttemptKey& key) const override { return layout_.Paths(key); }
  Offer Quote(const google::protobuf::Struct& trial_spec, const Placing& placing) override;
  void Prune(const v1::Checkpoint& checkpoint) override;

 private:
  StatusOr<bool> Reserve(const AttemptKey& key, const std::string& id);
  StatusOr<Found> Begin(const AttemptRequest& request, const std::string& id);
  StatusOr<Devices> TakeDevices(const AttemptKey& key, int count);
  void Settle(const AttemptKey& key, Found found);
  void AdoptOne(const v1::Attempt& attempt);

  // With mutex_ held.
  Entry& Add(const AttemptKey& key, const std::string& id);
  void Apply(Entry& entry, Found found);
  void Watch(Entry& entry);
  std::set<ExperimentKey> Drop(const AttemptKey& key);
  Entries::iterator FirstOf(const ExperimentKey& experiment);

  void OnExits(const std::vector<uint64_t>& watches);
  std::optional<ExperimentKey> Conclude(uint64_t watch);
  void Announce(const std::set<ExperimentKey>& experiments);

  const ExecutorOptions options_;
  const std::string host_;
  Launcher launcher_;
  const Layout& layout_;

  std::mutex mutex_;
  // These four are guarded by mutex_.
  Entries entries_;
  std::map<uint64_t, AttemptKey> watched_;
  GpuPool gpus_;
  std::set<ExperimentKey> refused_;  // no device was free for them; told when one is
  uint64_t next_watch_ = 1;

  std::unique_ptr<ExitWatcher> watcher_;  // last: its thread uses all of the above
};

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
  ASSIGN_OR_RETURN(LaunchPlan plan, launcher_.Plan(request));
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
  std::lock_guard lock(mutex_);
  const auto place = entries_.find(key);
  if (place == entries_.end()) return;  // forgotten meanwhile, as its caller wished
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

// ---- ending -------------------------------------------------------------------------------------

void ProcessExecutor::OnExits(const std::vector<uint64_t>& watches) {
  std::set<ExperimentKey> changed;
  for (const uint64_t watch : watches) {
    if (const auto experiment = Conclude(watch)) changed.insert(*experiment);
  }
  Announce(changed);
}

// Looks again at an attempt whose supervisor has ended, or cannot be watched. Returns the
// experiment if the attempt has ended.
std::optional<ExperimentKey> ProcessExecutor::Conclude(uint64_t watch) {
  AttemptKey key;
  EndedSupervisor supervisor;
  {
    std::lock_guard lock(mutex_);
    const auto watched = watched_.find(watch);
    if (watched == watched_.end()) return std::nullopt;
    key = watched->second;
    const Entry& entry = entries_.at(key);
    if (entry.sighting.state != Sighting::State::kRunning) return std::nullopt;
    supervisor.pid = static_cast<pid_t>(entry.sighting.placement.pid());
    supervisor.id = entry.id;
  }
  const AttemptPaths paths = layout_.Paths(key);
  supervisor.dir = paths.dir;
  supervisor.log = paths.log;
  Found found = FindAfterEnd(supervisor);
  const bool ended = found.state != Found::State::kRunning;
  std::lock_guard lock(mutex_);
  const auto entry = entries_.find(key);
  if (entry == entries_.end() || entry->second.watch != watch) return std::nullopt;
  if (entry->second.sighting.state != Sighting::State::kRunning) return std::nullopt;
  Apply(entry->second, std::move(found));
  return ended ? std::optional(key.trial.experiment) : std::nullopt;
}

Status ProcessExecutor::Stop(const AttemptKey& key, v1::Cause why, absl::Duration grace) {
  {
    std::lock_guard lock(mutex_);
    const auto found = entries_.find(key);
    if (found == entries_.end()) return absl::OkStatus();
    Entry& entry = found->second;
    const absl::Duration kill_at = options_.clock->Monotonic() + grace;
    if (entry.sighting.state != Sighting::State::kRunning) return absl::OkStatus();
    if (entry.kill_at && *entry.kill_at <= kill_at) return absl::OkStatus();
    entry.kill_at = kill_at;
    if (entry.starting) entry.wish = grace;
  }
  // Before the signal, so that the program finds it when it looks. Without it the program does not
  // learn why, which is no reason to let it run on.
  const Status written = WriteControl(layout_.Paths(key).control_file,
                                      {ControlReason(why), options_.clock->Now() + grace});
  if (!written.ok()) {
    Log(LogLevel::kWarning, "a program is stopped without being told why",
        {{"attempt", AttemptName(key)}, {"error", Message(written)}});
  }
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end() || found->second.starting) return absl::OkStatus();
  Entry& entry = found->second;
  if (entry.sighting.state != Sighting::State::kRunning) return absl::OkStatus();
  if (!entry.pidfd.valid()) {
    entry.kill_at.reset();
    return absl::UnavailableError("cannot reach " + AttemptName(key) +
                                  ": out of descriptors; try again");
  }
  return SendStop(entry.pidfd, grace);
}

// ---- looking and forgetting ---------------------------------------------------------------------

Entries::iterator ProcessExecutor::FirstOf(const ExperimentKey& experiment) {
  return entries_.lower_bound(AttemptKey{{experiment, 0}, 0});
}

std::vector<Sighting> ProcessExecutor::Observe(const ExperimentKey& experiment) {
  std::vector<uint64_t> unwatched;
  std::vector<Sighting> sightings;
  const auto look = [&] {
    std::lock_guard lock(mutex_);
    sightings.clear();
    for (auto it = FirstOf(experiment); it != entries_.end(); ++it) {
      const auto& [key, entry] = *it;
      if (key.trial.experiment != experiment) break;
      const bool running = entry.sighting.state == Sighting::State::kRunning;
      if (running && !entry.starting && !entry.pidfd.valid()) unwatched.push_back(entry.watch);
      sightings.push_back(entry.sighting);
    }
  };
  look();
  if (unwatched.empty()) return sightings;
  for (const uint64_t watch : unwatched) Conclude(watch);
  look();
  return sightings;
}

// Those that may try again because of it.
std::set<ExperimentKey> ProcessExecutor::Drop(const AttemptKey& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return {};
  const bool freed = !found->second.devices.empty();
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
  Announce(others);
}

Status ProcessExecutor::RemoveFiles(const ExperimentKey& experiment, int64_t trial) {
  RETURN_IF_ERROR(ValidateKey(experiment));
  {
    std::lock_guard lock(mutex_);
    for (auto it = FirstOf(experiment); it != entries_.end(); ++it) {
      const auto& [key, entry] = *it;
      if (key.trial.experiment != experiment) break;
      if (trial != 0 && key.trial.number != trial) continue;
      if (entry.sighting.state != Sighting::State::kRunning) continue;
      return absl::FailedPreconditionError(AttemptName(key) + " is running; stop it first");
    }
  }
  return layout_.Remove(experiment, trial);
}

Offer ProcessExecutor::Quote(const google::protobuf::Struct& trial_spec, const Placing&) {
  const int gpus = RequestedGpus(trial_spec);
  std::lock_guard lock(mutex_);
  return {.waiting = gpus_.Waiting(gpus)};
}

void ProcessExecutor::Prune(const v1::Checkpoint&) {}

void ProcessExecutor::Announce(const std::set<ExperimentKey>& experiments) {
  if (!options_.on_change) return;
  for (const ExperimentKey& experiment : experiments) options_.on_change(experiment);
}

SHIRABE_REGISTER(ExecutorInfo, {.name = "process",
                                .help = "processes of this machine",
                                .create = ProcessExecutor::Create});

}  // namespace
}  // namespace shirabe::trial
