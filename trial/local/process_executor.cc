#include "trial/local/process_executor.h"

#include <utility>

#include "absl/strings/str_split.h"
#include "base/log.h"
#include "base/process_id.h"
#include "trial/checkpoint/checkpoint_copy.h"
#include "trial/checkpoint/katib_folder.h"
#include "trial/local/spawn_supervisor.h"
#include "trial/start_error.h"

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

ProcessExecutor::ProcessExecutor(const ExecutorOptions& options)
    : options_(options),
      launcher_(options),
      layout_(launcher_.layout()),
      endpoints_(&layout_, options.status_handlers),
      code_({.home = layout_.home(),
             .clock = options.clock,
             .stores = options.stores,
             .on_change = [this](const ExperimentKey& experiment) { Announce({experiment}); }}),
      committer_(&layout_, options.clock,
                 [this](const ExperimentKey& experiment) { Announce({experiment}); },
                 {.stores = options.stores}),
      attempts_({.clock = options.clock,
                 .host = ThisProcess().host,
                 .devices = options.devices,
                 .pools = options.pools,
                 .watch = [this](const Fd& pidfd,
                                 uint64_t watch) { return watcher_->Watch(pidfd, watch); }}),
      preemptions_({.clock = options.clock,
                    .layout = &layout_,
                    .attempts = &attempts_,
                    .pools = options.pools,
                    .announce = [this](const auto& experiments) { Announce(experiments); }}) {}

StatusOr<std::unique_ptr<Executor>> ProcessExecutor::Create(const ExecutorOptions& options) {
  if (options.home.empty()) return absl::InvalidArgumentError("SHIRABE_HOME must not be empty");
  CHECK(options.clock != nullptr);
  auto executor = std::make_unique<ProcessExecutor>(options);
  ProcessExecutor* self = executor.get();
  const auto on_exits = [self](const std::vector<uint64_t>& watches) { self->OnExits(watches); };
  ASSIGN_OR_RETURN(executor->watcher_, ExitWatcher::Create(on_exits));
  executor->preemptions_.Start();
  return executor;
}

void ProcessExecutor::Announce(const std::set<ExperimentKey>& experiments) {
  if (!options_.on_change) return;
  for (const ExperimentKey& experiment : experiments) options_.on_change(experiment);
}

// ---- starting -----------------------------------------------------------------------------------

Status ProcessExecutor::Start(const AttemptRequest& request) {
  RETURN_IF_ERROR(ValidateKey(request.key));
  RETURN_IF_ERROR(committer_.copier().Check(request.key.trial.experiment));
  RETURN_IF_ERROR(code_.Check(request.key.trial.experiment));
  const std::string id = AttemptId(request.key, request.token);
  ASSIGN_OR_RETURN(const bool reserved, attempts_.Reserve(request.key, id));
  if (!reserved) return absl::OkStatus();
  const ExperimentKey& experiment = request.key.trial.experiment;
  auto found = Begin(request, id);
  if (found.ok()) {
    FinishStart(request.key, *std::move(found));
    preemptions_.Resume({experiment});
    return absl::OkStatus();
  }
  endpoints_.Close(request.key);
  std::set<ExperimentKey> others = attempts_.Drop(request.key);
  // Ours hears of it from this very status; to wake it as well would make it try without a pause.
  others.erase(experiment);
  Announce(others);
  if (!EventReasonOf(found.status()).empty()) return found.status();
  return Prefix(AttemptName(request.key), found.status());
}

// Finds the attempt where an earlier process has started it, else starts it.
StatusOr<AttemptProcess> ProcessExecutor::Begin(const AttemptRequest& request,
                                                const std::string& id) {
  ASSIGN_OR_RETURN(AttemptProcess found, launcher_.Prepare(request, id));
  if (found.state != AttemptProcess::State::kNeverStarted) return found;
  ASSIGN_OR_RETURN(const std::string code, code_.Prepare(request.key.trial.experiment));
  ASSIGN_OR_RETURN(const std::string resume_from, committer_.Prepare(request));
  if (!KatibPath(request.environment).empty()) {
    RETURN_IF_ERROR(FillKatibFolder(layout_, request.key, /*open_to_all=*/false));
  }
  Environment more = endpoints_.Variables(request.key);
  if (!code.empty()) more[kCodeDirVariable] = code;
  ASSIGN_OR_RETURN(LaunchPlan plan, launcher_.Plan(request, resume_from, more));
  ASSIGN_OR_RETURN(ProcessTable::Grant grant,
                   attempts_.Allocate(request.key, plan.command.gpus, request.placement_request));
  plan.devices = std::move(grant.devices);
  plan.place = std::move(grant.place);
  RETURN_IF_ERROR(preemptions_.Begin(request.key.trial.experiment));
  RETURN_IF_ERROR(endpoints_.Open(request.key));
  return launcher_.Launch(request, plan);
}

void ProcessExecutor::FinishStart(const AttemptKey& key, AttemptProcess found) {
  const bool runs = found.state == AttemptProcess::State::kRunning;
  if (runs) endpoints_.Adopt(key);
  if (runs) committer_.Watch(key);
  if (HasEnded(found)) EndCheckpoints(key, found);
  if (attempts_.FinishStart(key, std::move(found))) return;
  // It was forgotten meanwhile.
  committer_.Forget(key);
  endpoints_.Close(key);
}

// Nothing more is saved.
void ProcessExecutor::EndCheckpoints(const AttemptKey& key, const AttemptProcess& found) {
  const bool well = found.state == AttemptProcess::State::kEnded && found.exit.code == 0;
  const Status saved = well ? SaveKatibFolder(layout_, key) : absl::OkStatus();
  if (!saved.ok()) {
    Log(LogLevel::kWarning, "the checkpoint of a trial is not kept",
        {{"attempt", AttemptName(key)}, {"error", Message(saved)}});
  }
  if (well) committer_.copier().CopyOutputs(key);
  committer_.End(key);
}

void ProcessExecutor::Adopt(const std::vector<v1::Attempt>& open) {
  std::set<ExperimentKey> experiments;
  for (const v1::Attempt& attempt : open) {
    AdoptOne(attempt);
    experiments.insert(ExperimentKeyOf(attempt));
  }
  preemptions_.Resume(experiments);
}

void ProcessExecutor::AdoptOne(const v1::Attempt& attempt) {
  const AttemptKey key = KeyOf(attempt);
  const std::string id = AttemptId(key, attempt.token());
  if (!ValidateKey(key).ok() || attempts_.Knows(key)) return;
  if (!attempts_.Reserve(key, id).value_or(false)) return;
  AttemptProcess found = FindAttemptProcess(layout_.Paths(key).dir, id);
  if (found.leftovers) KillLeftovers(id, 0);
  if (found.state == AttemptProcess::State::kRunning) ResumeStop(key, found);
  FinishStart(key, std::move(found));
}

// A machine was being taken away when an earlier process of ours ended, which may have been before
// the signal: then this is the first one, else it changes nothing.
void ProcessExecutor::ResumeStop(const AttemptKey& key, const AttemptProcess& found) {
  if (!found.reclaim || !found.pidfd.valid()) return;
  const absl::Duration left = found.reclaim->deadline - options_.clock->Now();
  if (left > absl::ZeroDuration()) {
    WriteStopRequest(layout_, options_.clock, key, {found.reclaim->cause, left});
  }
  SendStop(found.pidfd, left).IgnoreError();
}

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
  const auto running = attempts_.FindRunning(watch);
  if (!running) return std::nullopt;
  const AttemptKey& key = running->key;
  const AttemptPaths paths = layout_.Paths(key);
  AttemptProcess found =
      ReapSupervisor({.pid = running->pid, .dir = paths.dir, .log = paths.log, .id = running->id});
  const bool ended = found.state != AttemptProcess::State::kRunning;
  // First, so that no caller sees the end before all that was saved and reported.
  if (ended) endpoints_.Close(key);
  if (ended) EndCheckpoints(key, found);
  const bool recorded = attempts_.RecordFound(watch, std::move(found));
  if (!recorded && !attempts_.Knows(key)) committer_.Forget(key);
  return recorded && ended ? std::optional(key.trial.experiment) : std::nullopt;
}

Status ProcessExecutor::Stop(const AttemptKey& key, v1::Cause why, absl::Duration grace) {
  // Also where its program has ended and only its checkpoints are still being read.
  if (grace <= absl::ZeroDuration()) committer_.Abandon(key);
  if (!attempts_.BeginStop(key, grace)) return absl::OkStatus();
  WriteStopRequest(layout_, options_.clock, key, {why, grace});
  return attempts_.Signal(key, grace);
}

// ---- looking and forgetting ---------------------------------------------------------------------

void ProcessExecutor::StopStrays(const FindEnded& ended) {
  for (const std::string& dir : RunningFolders(layout_.home())) {
    // trials/<namespace>/<experiment>/<trial>/<attempt>
    const std::vector<std::string> parts = absl::StrSplit(dir, '/');
    if (parts.size() < 4) continue;
    const auto key = ParseAttemptName(parts.back(), parts[parts.size() - 4]);
    if (!key || !ValidateKey(*key).ok() || layout_.Paths(*key).dir != dir) continue;
    if (attempts_.Knows(*key)) continue;
    const auto record = ended(*key);
    if (!record) continue;
    // Its id says whether that is its record.
    const AttemptProcess found = FindAttemptProcess(dir, AttemptId(*key, record->token()));
    if (found.state != AttemptProcess::State::kRunning || !found.pidfd.valid()) continue;
    Log(LogLevel::kWarning,
        "stopping a program that an earlier process left: its attempt has ended",
        {{"attempt", AttemptName(*key)}});
    SendStop(found.pidfd, absl::ZeroDuration()).IgnoreError();  // looked at again
  }
}

std::vector<AttemptStatus> ProcessExecutor::Observe(const ExperimentKey& experiment) {
  ProcessTable::Snapshot snapshot = attempts_.Observe(experiment);
  if (!snapshot.unwatched.empty()) {
    for (const uint64_t watch : snapshot.unwatched) CheckSupervisor(watch);
    snapshot = attempts_.Observe(experiment);
  }
  for (AttemptStatus& observed : snapshot.statuses) committer_.Describe(observed);
  return std::move(snapshot.statuses);
}

void ProcessExecutor::Forget(const AttemptKey& key) {
  const std::set<ExperimentKey> others = attempts_.Drop(key);
  committer_.Forget(key);
  endpoints_.Close(key);
  Announce(others);
}

Status ProcessExecutor::RemoveFiles(const ExperimentKey& experiment, int64_t trial) {
  RETURN_IF_ERROR(ValidateKey(experiment));
  if (committer_.Busy(experiment, trial)) {
    return absl::UnavailableError("a checkpoint is being copied there; try again");
  }
  if (committer_.copier().IsRemoving(experiment)) {
    return absl::UnavailableError("the copies of its checkpoints are being deleted; try again");
  }
  RETURN_IF_ERROR(attempts_.CheckStopped(experiment, trial));
  if (trial == 0) preemptions_.Forget(experiment);
  return layout_.Remove(experiment, trial);
}

void ProcessExecutor::Prune(const v1::Checkpoint& checkpoint) {
  if (checkpoint.step() != kOutputsStep) committer_.Prune(checkpoint);
  committer_.copier().Prune(checkpoint);
}

void ProcessExecutor::UseVolume(const ExperimentKey& experiment, const v1::ExperimentSpec& spec) {
  committer_.copier().SetPolicy(experiment, spec.shirabe().artifacts());
  code_.SetPackage(experiment, spec.shirabe().code());
}

void ProcessExecutor::CleanVolume(const ExperimentKey& experiment, const v1::ExperimentSpec& spec) {
  if (spec.shirabe().artifacts().store().empty()) return;
  committer_.copier().RemoveAllOf(experiment, spec.shirabe().artifacts());
}

PlacementQuote ProcessExecutor::QuotePlacement(const ExperimentKey& experiment,
                                               const google::protobuf::Struct& trial_spec,
                                               const PlacementRequest& placement_request) {
  return attempts_.QuotePlacement(experiment, RequestedGpus(trial_spec), placement_request);
}

}  // namespace shirabe::trial
