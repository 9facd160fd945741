// What a step of a pass gives: a value that says what is to be written and what is to be done. A
// step reads the state, which is const, and whatever else it needs (files, the executor, the
// store), and changes nothing; Apply is the one place where deltas become changes.
// A delta reads through: what it does not change is as the state has it, so that a step sees its
// own changes.
//
// A delta refers to the state that it was made from, and is applied, or dropped, before the next
// one is made. Used by one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "experiment/state/active_trial.h"
#include "experiment/state/experiment_state.h"

namespace shirabe::experiment {

// A log that is to be shortened, and how far its collector has read it.
struct LongLog {
  std::string path, root;
  int64_t read = 0;
};

// What is to be done besides writing.
struct Effects {
  // At once, before the commit: they change nothing that a commit could contradict.
  std::vector<v1::Attempt> adopt;       // that should run and that the executor does not know
  std::vector<AttemptKey> forget_lost;  // they never ran, and are started again
  std::vector<AttemptKey> stop_strays;  // they have been replaced and still run
  // After the commit, in this order.
  std::vector<LongLog> trims;
  std::vector<AttemptKey> forget;  // closed
  std::vector<v1::Checkpoint> prune;
  absl::Duration requeue_after = absl::InfiniteDuration();

  void Requeue(absl::Duration after) { requeue_after = std::min(requeue_after, after); }
  // These come after those that are here.
  void Append(Effects later);
};

// What becomes of one active trial. Its records are copied when they are first changed.
class TrialDelta {
 public:
  explicit TrialDelta(const ActiveTrial& base) : base_(base), memory_(base.memory) {}

  const ActiveTrial& base() const { return base_; }
  const v1::Trial& trial() const { return trial_ ? *trial_ : base_.trial.record; }
  v1::Trial& mutable_trial();
  // Of the open attempt; there must be one.
  bool is_open() const { return (attempt_ || base_.open) && !closed_; }
  const v1::Attempt& attempt() const { return attempt_ ? *attempt_ : base_.open->record; }
  v1::Attempt& mutable_attempt();
  // To be written with the next change of the attempt; until then an old cursor does no harm.
  void KeepCursor(v1::CollectorCursor cursor);
  const AttemptMemory& memory() const { return memory_; }
  AttemptMemory& mutable_memory() { return memory_; }

  // Opens the next attempt: recorded, not started.
  void Open(v1::Attempt attempt);
  // The open attempt is over: its record is written as it is, and its cost is charged.
  void Close() { closed_ = true; }
  // The counts, the history and the best trial follow. One in a terminal phase is forgotten once
  // that is committed.
  void SetPhase(v1::TrialPhase phase) { phase_ = phase; }

  // As the records will be.
  std::vector<v1::Checkpoint> Checkpoints() const;
  const v1::Checkpoint* FindCheckpoint(const v1::Checkpoint& like) const;
  void PutCheckpoint(v1::Checkpoint checkpoint) { checkpoints_.push_back(std::move(checkpoint)); }

  // Rows of the open attempt, and those that no longer count.
  const std::vector<db::StoredObservation>& observations() const { return observations_; }
  void AddObservation(db::StoredObservation row) { observations_.push_back(std::move(row)); }
  const std::optional<db::Batch::Supersede>& supersede() const { return supersede_; }
  void Supersede(db::Batch::Supersede supersede) { supersede_ = std::move(supersede); }
  // Those that are stored, where they were not known yet; and new ones.
  const ReportedPoints& LoadReportedPoints(ReportedPoints points);
  void AddReportedPoints(ReportedPoints points) { reported_ = std::move(points); }

  // For the early-stopping rule: the whole curves, by objective, or a further point of one.
  struct CurvePoint {
    size_t objective = 0;
    int64_t step = 0;
    double loss = 0;
  };
  void RedrawCurves(std::vector<suggestion::Curve> curves);
  void GrowCurve(const CurvePoint& point) { curve_points_.push_back(point); }

 private:
  friend class DeltaApplier;

  const ActiveTrial& base_;
  std::optional<v1::Trial> trial_;
  std::optional<v1::Attempt> attempt_;
  bool attempt_changed_ = false;
  bool opened_ = false;
  bool closed_ = false;
  std::optional<v1::TrialPhase> phase_;
  AttemptMemory memory_;
  std::vector<v1::Checkpoint> checkpoints_;  // the last of a step counts
  std::vector<db::StoredObservation> observations_;
  std::optional<db::Batch::Supersede> supersede_;
  std::optional<ReportedPoints> loaded_reported_;
  ReportedPoints reported_;
  std::optional<std::vector<suggestion::Curve>> curves_;
  std::vector<CurvePoint> curve_points_;
};

class Delta {
 public:
  // `base` outlives it. Events get the time `now`.
  Delta(const ExperimentState& base, absl::Time now) : base_(base), now_(now) {}

  absl::Time now() const { return now_; }
  const v1::Experiment& experiment() const {
    return experiment_ ? *experiment_ : base_.experiment();
  }
  v1::Experiment& mutable_experiment();
  v1::ExperimentStatus& mutable_status() { return *mutable_experiment().mutable_status(); }
  v1::ShirabeStatus& mutable_shirabe() { return *mutable_status().mutable_shirabe(); }
  const ExperimentMemory& memory() const { return memory_ ? *memory_ : base_.memory(); }
  ExperimentMemory& mutable_memory();

  // What becomes of this active trial; the same object for the same trial.
  TrialDelta& Edit(const ActiveTrial& trial);
  // A new one, with its record and perhaps its first attempt. Numbers are dense: see NextNumber.
  void AddTrial(ActiveTrial trial) { added_.push_back(std::move(trial)); }
  int64_t NextNumber() const;
  // What the algorithm wants to find in the next history.
  void SetMemo(std::string memo) { memo_ = std::move(memo); }

  // About the experiment, or about one trial and its current attempt.
  void AddEvent(bool warning, const std::string& reason, const std::string& message);
  void AddEvent(const v1::Trial& about, bool warning, const std::string& reason,
                const std::string& message);
  void AddEvent(v1::Event event);
  // A trial that has ended, and is written for people only: nothing follows from it.
  void PutEndedTrial(db::Write<v1::Trial> trial) { ended_.push_back(std::move(trial)); }
  void FinishIntent(int64_t id);  // 0: it is not in the store
  Effects& effects() { return effects_; }
  void Requeue(absl::Duration after) { effects_.Requeue(after); }

 private:
  friend class DeltaApplier;

  const ExperimentState& base_;
  const absl::Time now_;
  std::optional<v1::Experiment> experiment_;
  std::optional<ExperimentMemory> memory_;
  std::map<int64_t, TrialDelta> trials_;
  std::vector<ActiveTrial> added_;
  std::vector<db::Write<v1::Trial>> ended_;
  std::optional<std::string> memo_;
  std::vector<v1::Event> events_;
  std::vector<int64_t> intents_done_;
  Effects effects_;
};

// The one place where the steps of a pass change the state of an experiment.
//
// What a delta, made from this state as it is, says to write goes into the records and the batch of
// the next Commit; what it says to do is returned.
Effects Apply(Delta delta, ExperimentState& state);

}  // namespace shirabe::experiment
