#include "trial/local/preemption_player.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "trial/control_file.h"

namespace shirabe::trial {

void WriteStopRequest(const FileLayout& layout, Clock* clock, const AttemptKey& key,
                      const StopRequest& request) {
  const Status written = WriteControl(layout.Paths(key).control_file,
                                      {ControlReason(request.why), clock->Now() + request.grace});
  if (written.ok()) return;
  Log(LogLevel::kWarning, "failed to write the control file of a program that is stopped",
      {{"attempt", AttemptName(key)}, {"error", Message(written)}});
}

PreemptionPlayer::PreemptionPlayer(const Options& options)
    : options_(options), reclaims_(options.pools) {}

void PreemptionPlayer::Start() {
  if (options_.pools.pools_size() == 0) return;
  timer_ = std::make_unique<WakeupTimer>(options_.clock, [this] { return Play(); });
}

// Makes sure that the experiment's reclaims are known, from the file that an earlier process of
// ours has left, or else, with `create`, from now on.
Status PreemptionPlayer::Open(const ExperimentKey& experiment, bool create) {
  RETURN_IF_ERROR(ValidateKey(experiment));
  {
    const MutexLock lock(mutex_);
    if (!reclaims_.any() || reclaims_.Knows(experiment)) return absl::OkStatus();
  }
  const std::string path = options_.layout->ReclaimsFile(experiment);
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
  const MutexLock lock(mutex_);
  reclaims_.Begin(experiment, *state, options_.clock->Monotonic() - ago);
  return absl::OkStatus();
}

// Not before all that runs is known: what was due while it was not played takes the one that has
// run longest, and passes where nothing runs.
void PreemptionPlayer::Resume(const std::set<ExperimentKey>& experiments) {
  if (!timer_) return;
  for (const ExperimentKey& experiment : experiments) {
    const Status opened = Open(experiment, /*create=*/false);
    if (opened.ok()) continue;
    Log(LogLevel::kWarning, "preemptions of an experiment are not simulated",
        {{"experiment", ToString(experiment)}, {"error", Message(opened)}});
  }
  timer_->Wake();
}

void PreemptionPlayer::Forget(const ExperimentKey& experiment) {
  const MutexLock lock(mutex_);
  reclaims_.Forget(experiment);
}

// In the timer's thread. Returns when there is something to do again.
std::optional<absl::Duration> PreemptionPlayer::Play() {
  std::set<ExperimentKey> changed = options_.attempts->TakeReturned();
  std::vector<std::pair<Reclaims::Preemption, std::string>> preempted;
  {
    const MutexLock lock(mutex_);
    const auto running = options_.attempts->RunningInSlots();
    for (auto& preemption : reclaims_.Play(running, options_.clock->Monotonic())) {
      changed.insert(preemption.key.trial.experiment);
      auto id = options_.attempts->Preempt(preemption);
      if (id) preempted.push_back({std::move(preemption), *std::move(id)});
    }
  }
  for (const auto& [preemption, id] : preempted) Preempt(preemption, id);
  options_.announce(changed);
  const auto back = options_.attempts->NextReturn();
  const bool any = !options_.attempts->RunningInSlots().empty();
  const MutexLock lock(mutex_);
  const auto next = any ? reclaims_.Next() : std::nullopt;
  return next && back ? std::min(*next, *back) : next ? next : back;
}

// Each file is there before what it tells of happens: a restart in between may lose a reclaim, but
// never plays one twice, and never takes its victim for a program that failed.
void PreemptionPlayer::Preempt(const Reclaims::Preemption& preemption, const std::string& id) {
  const FileLayout& layout = *options_.layout;
  const absl::Time gone = options_.clock->Now() + preemption.notice;
  const ReclaimRecord record = {id, preemption.cause, gone, gone + preemption.away};
  Status written =
      WriteTraceState(layout.ReclaimsFile(preemption.key.trial.experiment), preemption.state);
  written.Update(WriteReclaimRecord(layout.Paths(preemption.key).dir, record));
  if (!written.ok()) {
    Log(LogLevel::kWarning, "failed to persist a simulated preemption",
        {{"attempt", AttemptName(preemption.key)}, {"error", Message(written)}});
  }
  if (preemption.notice > absl::ZeroDuration()) {
    WriteStopRequest(layout, options_.clock, preemption.key, {preemption.cause, preemption.notice});
  }
  const Status sent = options_.attempts->Signal(preemption.key, preemption.notice);
  if (sent.ok()) return;
  Log(LogLevel::kWarning, "failed to simulate a preemption",
      {{"attempt", AttemptName(preemption.key)}, {"error", Message(sent)}});
}

}  // namespace shirabe::trial
