// What the owner of an experiment keeps of it between two reconciliations: a copy of the store that
// only the owner changes. It is exact while the lease is held; when a Commit fails it is thrown
// away and loaded again, so nothing here needs to be undone. Finished trials are kept only as a row
// of the history. Used by one thread at a time.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "db/store.h"
#include "experiment/active_trial.h"
#include "experiment/algorithm_workers.h"
#include "metrics/collector.h"
#include "suggestion/algorithm.h"
#include "suggestion/history.h"

namespace shirabe::experiment {

class State {
 public:
  static StatusOr<std::unique_ptr<State>> Load(db::Store& store, const ExperimentKey& key,
                                               int64_t epoch);
  ~State();  // cancels a proposal under way

  const ExperimentKey& key() const { return key_; }
  int64_t epoch() const { return epoch_; }
  const v1::Experiment& experiment() const { return experiment_.record; }
  v1::Experiment& mutable_experiment();  // marks it changed
  v1::ExperimentStatus& mutable_status() { return *mutable_experiment().mutable_status(); }

  std::map<int64_t, ActiveTrial>& live() { return live_; }
  const suggestion::Space& space() const { return *space_; }
  const suggestion::History& history() const { return *history_; }
  // Stays as it is while it is held: a change then makes a copy first.
  using HistoryPtr = std::shared_ptr<const suggestion::History>;  // shared with a proposal
  HistoryPtr history_snapshot() const { return history_; }
  // What the trials have reported, by trial, in the same way; empty without early stopping.
  const suggestion::Curves& curves() const { return *curves_; }
  using CurvesPtr = std::shared_ptr<const suggestion::Curves>;  // shared with a question
  CurvesPtr curves_snapshot() const { return curves_; }
  suggestion::Curve& MutableCurve(int64_t trial);
  // A call that is done has read what it was asked with: that may change in place again.
  void ReleaseAnswered();

  // A new trial with the next number; the history and the counts follow.
  ActiveTrial& AddTrial(const suggestion::Suggestion& suggestion, absl::Time now);
  // Changes a live trial's phase; the counts, the history and the best trial follow. A trial in a
  // terminal phase is forgotten here once the batch is committed.
  void SetPhase(ActiveTrial& live, v1::TrialPhase phase);
  // Opens the next attempt of a live trial: recorded, not started.
  v1::Attempt& OpenAttempt(ActiveTrial& live, absl::Time now);
  // The open attempt is over: its record goes into the batch as it is now, its accounts are closed.
  void CloseAttempt(ActiveTrial& live);
  // Adds or changes the record of a checkpoint of a live trial.
  void PutCheckpoint(ActiveTrial& live, const v1::Checkpoint& checkpoint);
  void AddEvent(v1::Event event, absl::Time now);
  // Counts an attempt that is no longer current and still writes; true the first time.
  bool Refuse(const AttemptKey& stray);
  // What the algorithm wants to find in the next history.
  void SetMemo(const std::string& memo);

  // What has changed since the last Commit; empty() if nothing has.
  db::Batch& batch() { return batch_; }
  bool Changed() const;
  // Completes the batch, commits it and forgets it.
  Status Commit(db::Store& store);

  // Built from the experiment when it was loaded.
  std::shared_ptr<suggestion::Algorithm> algorithm;  // shared with a call that is under way
  std::string endpoint;  // of a remote one; see experiment/spec/algorithm_setup.h
  std::unique_ptr<metrics::Collector> collector;
  uint64_t seed = 0;
  std::shared_ptr<ProposalTicket> ticket;        // shared with the worker that runs it
  std::shared_ptr<suggestion::Stopper> stopper;  // shared in the same way; null = no early stopping
  std::shared_ptr<StopTicket> stop_ticket;       // shared with the worker that runs it
  std::shared_ptr<RecommendTicket> recommend_ticket;  // shared with the worker that runs it
  std::string stopper_error;                          // the last error of it that was told
  AlgorithmFailures trouble;                          // of an algorithm that fails
  bool wait_for_change = false;  // the algorithm said: ask again when a trial has ended
  absl::Duration next_intents;   // monotonic
  std::deque<v1::Intent> asks;   // for trials (ask-and-tell), the oldest first
  std::optional<v1::Intent::Verb> ending_verb;  // STOP, CANCEL or DELETE, once asked for

 private:
  explicit State(const ExperimentKey& key, int64_t epoch);
  Status LoadTrials(db::Store& store);
  Status LoadLive(db::Store& store);
  Status LoadStopper(db::Store& store);
  Status LoadPrior(db::Store& store);
  void AddFences();
  void Remember(const v1::Trial& trial);
  void Recount(v1::TrialPhase phase, int64_t by);
  void ConsiderBest(const v1::Trial& trial);
  suggestion::History& MutableHistory();

  ExperimentKey key_;
  int64_t epoch_;
  db::Versioned<v1::Experiment> experiment_;
  bool experiment_changed_ = false;
  std::map<int64_t, ActiveTrial> live_;
  std::optional<suggestion::Space> space_;
  std::shared_ptr<suggestion::History> history_;  // shared with a proposal under way: copied first
  std::shared_ptr<suggestion::Curves> curves_;    // shared with a question under way: copied first
  std::set<AttemptKey> refused_;
  db::Batch batch_;
};

// As an algorithm sees the trial.
suggestion::TrialSummary TrialSummaryOf(const v1::ObjectiveSpec& objective, const v1::Trial& trial);
bool IsTerminal(v1::TrialPhase phase);
// random_state, else spec.shirabe.seed, else from the experiment's name.
uint64_t SeedOf(const v1::Experiment& experiment);

}  // namespace shirabe::experiment
