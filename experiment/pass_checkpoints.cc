// What attempts saved, what they went on from, and what is no longer needed.
#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/printable.h"
#include "base/text/number.h"
#include "experiment/checkpoint_policy.h"
#include "experiment/observation_ingest.h"
#include "experiment/reconcile_pass.h"

namespace shirabe::experiment {
namespace {

constexpr double kDefaultIntervalSeconds = 600;
constexpr absl::Duration kCheckpointEventInterval = absl::Minutes(1);

bool Same(const v1::Checkpoint& a, const v1::Checkpoint& b) {
  return a.trial() == b.trial() && a.attempt() == b.attempt() && a.step() == b.step();
}

const v1::Checkpoint* Find(const ActiveTrial& live, const v1::Checkpoint& wanted) {
  for (const auto& [checkpoint, revision] : live.checkpoints) {
    if (Same(checkpoint, wanted)) return &checkpoint;
  }
  return nullptr;
}

}  // namespace

// Where the attempt began is known once it runs: the process beside the files has looked at them.
Status Pass::RecordResume(ActiveTrial& live, const trial::AttemptStatus& observed) {
  v1::Attempt& attempt = live.open->record;
  const v1::Trial& trial = live.trial.record;
  for (const v1::Checkpoint& damaged : observed.damaged) RecordDamage(live, damaged);
  const v1::Checkpoint* resumed = observed.resumed ? &*observed.resumed : nullptr;
  if (attempt.number() == 1 && resumed == nullptr && !trial.has_parent()) return absl::OkStatus();
  if (resumed != nullptr) {
    attempt.set_resumed_from_step(resumed->step());
    attempt.set_resumed_from_trial(resumed->trial());
    attempt.set_resumed_from_attempt(resumed->attempt());
    Event(&live, false, "TrialResumed",
          absl::StrFormat("from step %d, saved by %s (%s)", resumed->step(),
                          AttemptName({{state_.key(), resumed->trial()}, resumed->attempt()}),
                          FormatBytes(resumed->bytes())));
  } else {
    const bool saved = !observed.damaged.empty();
    Event(&live, true, "TrialRestarted",
          saved ? "from the beginning: no checkpoint of it is intact"
                : "from the beginning: no checkpoint was ever committed");
  }
  return Supersede(state_, live, resumed, *options_.store);
}

void Pass::RecordDamage(ActiveTrial& live, const v1::Checkpoint& damaged) {
  Event(&live, true, "CheckpointDamaged",
        absl::StrFormat("the one at step %d of attempt %d: %s", damaged.step(), damaged.attempt(),
                        Printable(damaged.gone())));
  const v1::Checkpoint* known = Find(live, damaged);
  if (known == nullptr || !known->gone().empty()) return;
  v1::Checkpoint gone = *known;
  gone.set_gone(Printable(damaged.gone()));
  state_.PutCheckpoint(live, gone);
}

bool Pass::HasNewCheckpoint(const ActiveTrial& live, const trial::AttemptStatus& observed) {
  return std::any_of(observed.checkpoints.begin(), observed.checkpoints.end(),
                     [&](const v1::Checkpoint& c) { return Find(live, c) == nullptr; });
}

// New ones are recorded with what has been read of the metrics by now.
Status Pass::RecordCheckpoints(ActiveTrial& live, const trial::AttemptStatus& observed) {
  v1::Attempt& attempt = live.open->record;
  bool has_new = false;
  for (const v1::Checkpoint& reported : observed.checkpoints) {
    if (Find(live, reported) != nullptr) continue;
    v1::Checkpoint checkpoint = reported;
    *checkpoint.mutable_counts() = attempt.cursor().counts();
    ASSIGN_OR_RETURN(const auto objective,
                     ObjectiveAt(state_, live, checkpoint.step(), *options_.store));
    if (objective) checkpoint.set_objective(*objective);
    state_.PutCheckpoint(live, checkpoint);
    attempt.set_last_step(std::max(attempt.last_step(), checkpoint.step()));
    EmitCheckpointEvent(live, checkpoint);
    live.open_changed = true;
    live.saved_at = monotonic_;
    live.overdue = false;
    has_new = true;
  }
  if (has_new) PruneOld(live);
  WarnOverdue(live);
  return absl::OkStatus();
}

// The first of an attempt, then one a minute: a program may save every second for days, and each
// has its record all the same.
void Pass::EmitCheckpointEvent(ActiveTrial& live, const v1::Checkpoint& checkpoint) {
  if (live.told_at && monotonic_ - *live.told_at < kCheckpointEventInterval) return;
  live.told_at = monotonic_;
  Event(&live, false, "CheckpointCommitted",
        absl::StrFormat("at step %d (%s)", checkpoint.step(), FormatBytes(checkpoint.bytes())));
}

// Only what no attempt may be about to start from: not while one is being prepared.
void Pass::PruneOld(ActiveTrial& live) {
  if (live.open && live.open->record.state() == v1::ATTEMPT_CREATED) return;
  std::set<int64_t> pinned;
  for (const auto& [number, other] : state_.live()) {
    const v1::Parent& parent = other.trial.record.parent();
    if (parent.trial() == live.trial.record.number()) pinned.insert(parent.step());
  }
  const auto superfluous =
      SelectPrunable(RecordsOf(live.checkpoints), state_.experiment().spec(), pinned);
  for (v1::Checkpoint checkpoint : superfluous) {
    checkpoint.set_gone(kPruned);
    state_.PutCheckpoint(live, checkpoint);
    prune_.push_back(std::move(checkpoint));
  }
}

void Pass::WarnOverdue(ActiveTrial& live) {
  const v1::CheckpointPolicy& policy = state_.experiment().spec().shirabe().checkpoint();
  const double interval =
      policy.has_interval_seconds() ? policy.interval_seconds() : kDefaultIntervalSeconds;
  // Only what runs can save; what never ran has no beginning to count from.
  if (!live.running_since || live.exited || live.overdue || interval <= 0) return;
  const absl::Duration since = monotonic_ - std::max(live.saved_at, *live.running_since);
  if (since <= absl::Seconds(interval)) return;
  live.overdue = true;
  Event(&live, true, "CheckpointOverdue",
        absl::StrFormat("none for %.0f s (spec.shirabe.checkpoint.intervalSeconds is %g): losing "
                        "the machine now would cost that much; save more often",
                        absl::ToDoubleSeconds(since), interval));
}

// Its own; after them, should none be intact, those of its parent.
StatusOr<std::vector<v1::Checkpoint>> Pass::ResumeFrom(const ActiveTrial& live) {
  std::vector<v1::Checkpoint> candidates = Candidates(RecordsOf(live.checkpoints), 0);
  const v1::Parent& parent = live.trial.record.parent();
  if (parent.trial() == 0) return candidates;
  ASSIGN_OR_RETURN(const auto rows,
                   options_.store->ListCheckpoints({state_.key(), parent.trial()}));
  const std::vector<v1::Checkpoint> theirs = Candidates(RecordsOf(rows), parent.step());
  candidates.insert(candidates.end(), theirs.begin(), theirs.end());
  return candidates;
}

}  // namespace shirabe::experiment
