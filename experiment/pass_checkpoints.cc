// What attempts saved, what they went on from, and what is no longer needed.
#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/printable.h"
#include "base/text/number.h"
#include "experiment/observation_ingest.h"
#include "experiment/pass_steps.h"
#include "experiment/state/checkpoint_policy.h"

namespace shirabe::experiment {
namespace {

constexpr double kDefaultIntervalSeconds = 600;
constexpr absl::Duration kCheckpointEventInterval = absl::Minutes(1);

void RecordDamage(const TrialEdit& edit, const v1::Checkpoint& damaged) {
  edit.delta.AddEvent(edit.trial.trial(), true, "CheckpointDamaged",
                      absl::StrFormat("the one at step %d of attempt %d: %s", damaged.step(),
                                      damaged.attempt(), Printable(damaged.gone())));
  const v1::Checkpoint* known = edit.trial.FindCheckpoint(damaged);
  if (known == nullptr || !known->gone().empty()) return;
  v1::Checkpoint gone = *known;
  gone.set_gone(Printable(damaged.gone()));
  edit.trial.PutCheckpoint(std::move(gone));
}

// The first of an attempt, then one a minute: a program may save every second for days, and each
// has its record all the same.
void AddCheckpointEvent(const TrialEdit& edit, const v1::Checkpoint& checkpoint) {
  std::optional<absl::Duration>& last = edit.trial.mutable_memory().last_checkpoint_event_at;
  if (last && edit.in.monotonic - *last < kCheckpointEventInterval) return;
  last = edit.in.monotonic;
  edit.delta.AddEvent(
      edit.trial.trial(), false, "CheckpointCommitted",
      absl::StrFormat("at step %d (%s)", checkpoint.step(), FormatBytes(checkpoint.bytes())));
}

// Whether that is news. What has been copied stays so: after a restart of the process that copies,
// it is under way once more until the store has said that it is there.
bool RecordCopy(const TrialEdit& edit, const v1::Checkpoint& known, v1::CopyState copy) {
  if (copy == v1::COPY_NONE || copy == known.copy()) return false;
  if (!known.gone().empty() || known.copy() == v1::COPY_MADE) return false;
  v1::Checkpoint changed = known;
  changed.set_copy(copy);
  edit.trial.PutCheckpoint(std::move(changed));
  return true;
}

void WarnOverdue(const TrialEdit& edit) {
  const v1::CheckpointPolicy& policy = edit.in.state.experiment().spec().shirabe().checkpoint();
  const double interval =
      policy.has_interval_seconds() ? policy.interval_seconds() : kDefaultIntervalSeconds;
  // Only what runs can save; what never ran has no beginning to count from.
  AttemptMemory& memory = edit.trial.mutable_memory();
  if (memory.phase != AttemptPhase::kRunning || memory.overdue_warned || interval <= 0) return;
  const absl::Duration since = edit.in.monotonic - std::max(memory.saved_at, *memory.running_since);
  if (since <= absl::Seconds(interval)) return;
  memory.overdue_warned = true;
  edit.delta.AddEvent(
      edit.trial.trial(), true, "CheckpointOverdue",
      absl::StrFormat("none for %.0f s (spec.shirabe.checkpoint.intervalSeconds is %g): losing "
                      "the machine now would cost that much; save more often",
                      absl::ToDoubleSeconds(since), interval));
}

}  // namespace

// The process beside the files has looked at them.
Status RecordResume(const TrialEdit& edit, const trial::AttemptStatus& observed) {
  for (const v1::Checkpoint& damaged : observed.damaged) RecordDamage(edit, damaged);
  const v1::Trial& trial = edit.trial.trial();
  const v1::Checkpoint* resumed = observed.resumed ? &*observed.resumed : nullptr;
  if (edit.trial.attempt().number() == 1 && resumed == nullptr && !trial.has_parent()) {
    return absl::OkStatus();
  }
  if (resumed != nullptr) {
    v1::Attempt& attempt = edit.trial.mutable_attempt();
    attempt.set_resumed_from_step(resumed->step());
    attempt.set_resumed_from_trial(resumed->trial());
    attempt.set_resumed_from_attempt(resumed->attempt());
    const AttemptKey source{{edit.in.state.key(), resumed->trial()}, resumed->attempt()};
    edit.delta.AddEvent(trial, false, "TrialResumed",
                        absl::StrFormat("from step %d, saved by %s (%s)", resumed->step(),
                                        AttemptName(source), FormatBytes(resumed->bytes())));
  } else {
    const bool saved = !observed.damaged.empty();
    edit.delta.AddEvent(trial, true, "TrialRestarted",
                        saved ? "from the beginning: no checkpoint of it is intact"
                              : "from the beginning: no checkpoint was ever committed");
  }
  return Supersede(edit, resumed);
}

bool HasNewCheckpoint(const TrialDelta& trial, const trial::AttemptStatus& observed) {
  return std::any_of(observed.checkpoints.begin(), observed.checkpoints.end(),
                     [&](const v1::Checkpoint& c) { return trial.FindCheckpoint(c) == nullptr; });
}

// New ones are recorded with what has been read of the metrics by now.
Status RecordCheckpoints(const TrialEdit& edit, const trial::AttemptStatus& observed) {
  bool changed = false;
  for (const v1::Checkpoint& reported : observed.checkpoints) {
    if (const v1::Checkpoint* known = edit.trial.FindCheckpoint(reported)) {
      changed |= RecordCopy(edit, *known, reported.copy());
      continue;
    }
    v1::Attempt& attempt = edit.trial.mutable_attempt();
    v1::Checkpoint checkpoint = reported;
    *checkpoint.mutable_counts() = attempt.cursor().counts();
    ASSIGN_OR_RETURN(const auto objective, ObjectiveAt(edit, checkpoint.step()));
    if (objective) checkpoint.set_objective(*objective);
    attempt.set_last_step(std::max(attempt.last_step(), checkpoint.step()));
    AddCheckpointEvent(edit, checkpoint);
    edit.trial.PutCheckpoint(std::move(checkpoint));
    edit.trial.mutable_memory().saved_at = edit.in.monotonic;
    edit.trial.mutable_memory().overdue_warned = false;
    changed = true;
  }
  if (changed) PruneOld(edit);
  WarnOverdue(edit);
  return absl::OkStatus();
}

// Only what no attempt may be about to start from: not while one is being prepared.
void PruneOld(const TrialEdit& edit) {
  if (edit.trial.is_open() && edit.trial.attempt().state() == v1::ATTEMPT_CREATED) return;
  std::set<int64_t> pinned;
  for (const auto& [number, other] : edit.in.state.active()) {
    const v1::Parent& parent = other.trial.record.parent();
    if (parent.trial() == edit.trial.trial().number()) pinned.insert(parent.step());
  }
  const auto superfluous =
      SelectPrunable(edit.trial.Checkpoints(), edit.in.state.experiment().spec(), pinned);
  for (v1::Checkpoint checkpoint : superfluous) {
    checkpoint.set_gone(kPruned);
    edit.trial.PutCheckpoint(checkpoint);
    edit.delta.effects().prune.push_back(std::move(checkpoint));
  }
}

StatusOr<std::vector<v1::Checkpoint>> ResumeCandidates(const PassInput& in,
                                                       const ActiveTrial& active) {
  std::vector<v1::Checkpoint> candidates = Candidates(RecordsOf(active.checkpoints), 0);
  const v1::Parent& parent = active.trial.record.parent();
  if (parent.trial() == 0) return candidates;
  ASSIGN_OR_RETURN(const auto rows,
                   in.options.store->ListCheckpoints({in.state.key(), parent.trial()}));
  const std::vector<v1::Checkpoint> theirs = Candidates(RecordsOf(rows), parent.step());
  candidates.insert(candidates.end(), theirs.begin(), theirs.end());
  return candidates;
}

}  // namespace shirabe::experiment
