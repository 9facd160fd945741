// What the owner of an experiment keeps of it between two passes: a copy of the store that only the
// owner changes. It is exact while the lease is held; when a Commit fails it is thrown away and
// loaded again, so nothing here needs to be undone. Finished trials are kept only as a row of the
// history. Steps of a pass read it; it is changed by Apply (pass_delta.h) and Commit alone. Used
// by one thread at a time.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "db/store.h"
#include "experiment/state/active_trial.h"
#include "experiment/state/shared_history.h"
#include "metrics/collector.h"
#include "suggestion/algorithm.h"
#include "suggestion/early_stopping.h"

namespace shirabe::experiment {

struct NotificationTicket;
struct ProposalTicket;
struct RecommendTicket;
struct RegretTicket;
struct StopTicket;

// Built from the experiment when it is loaded.
struct ExperimentSetup {
  std::shared_ptr<suggestion::Algorithm> algorithm;  // shared with a call that is under way
  std::string endpoint;  // of a remote one; see experiment/spec/algorithm_setup.h
  std::shared_ptr<suggestion::Stopper> stopper;  // shared in the same way; null = no early stopping
  std::unique_ptr<metrics::Collector> collector;
  uint64_t seed = 0;
};

// What is remembered of an algorithm that fails.
struct AlgorithmFailures {
  int failures = 0;            // in a row
  absl::Duration ask_again;    // when it is asked again (monotonic)
  std::string reported_error;  // the last error of it that an event has said
  CapacityWait wait;           // it is not asked, for there is no room for another trial
};

// Not stored: a new owner begins with an empty one.
struct ExperimentMemory {
  AlgorithmFailures algorithm;
  std::string stopper_error;              // the last error of the rule that an event has said
  std::optional<int64_t> regret_unknown;  // of so many results its model could say nothing
  bool wait_for_change = false;           // the algorithm said: ask again when a trial has ended
  bool ranges_changed = false;            // since the history was read: see ReloadHistory
  absl::Duration next_intents;            // when they are read again; monotonic
  std::deque<v1::Intent> asks;            // for trials (ask-and-tell), the oldest first
  std::optional<v1::Intent::Verb> ending_verb;  // STOP, CANCEL or DELETE, once asked for
  std::set<AttemptKey> strays;                  // replaced attempts whose writes were refused
  AttemptMemory follow_up;                      // of its open attempt: see pass_follow_up.h
};

// The algorithm's and the rule's calls that are under way, or done and not yet read; and attempts
// to deliver notifications.
struct AlgorithmCalls {
  ~AlgorithmCalls();  // cancels a proposal and deliveries under way

  // Cancels and forgets all of them.
  void Drop();

  // A call that is done has read what it was asked with: that may change in place again.
  void ReleaseAnswered();

  std::shared_ptr<ProposalTicket> proposal;         // shared with the workers that run them
  std::shared_ptr<StopTicket> stop;                 // shared
  std::shared_ptr<RecommendTicket> recommendation;  // shared
  std::shared_ptr<RegretTicket> regret;             // shared
  // One of each endpoint, and the event after which its next is looked for.
  struct Delivery {
    std::shared_ptr<NotificationTicket> ticket;  // shared
    int64_t after_event = 0;
  };
  std::map<std::string, Delivery> deliveries;

 private:
  void CancelDeliveries();
};

struct ExperimentData {
  ExperimentKey key;
  int64_t epoch = 0;
  db::Versioned<v1::Experiment> experiment;
  bool experiment_changed = false;
  std::map<int64_t, ActiveTrial> active;  // by number
  std::optional<SharedHistory> history;   // always
  ExperimentSetup setup;
  ExperimentMemory memory;
  db::Batch batch;  // what has changed since the last Commit, as far as it is no record above
};

class ExperimentState {
 public:
  static StatusOr<std::unique_ptr<ExperimentState>> Load(db::Store& store, const ExperimentKey& key,
                                                         int64_t epoch);

  const ExperimentKey& key() const { return data_.key; }
  int64_t epoch() const { return data_.epoch; }
  const v1::Experiment& experiment() const { return data_.experiment.record; }
  const std::map<int64_t, ActiveTrial>& active() const { return data_.active; }
  const SharedHistory& shared_history() const { return *data_.history; }
  const suggestion::History& history() const { return data_.history->history(); }
  const suggestion::Space& space() const { return history().space(); }
  const ExperimentSetup& setup() const { return data_.setup; }
  const ExperimentMemory& memory() const { return data_.memory; }
  const db::Batch& batch() const { return data_.batch; }
  AlgorithmCalls& calls() { return calls_; }

  // Whether there is anything to commit.
  bool Changed() const;
  Status Commit(db::Store& store);
  // Once other ranges are committed: the algorithm and the history, made from the store again for
  // the space as it is now. Calls under way are dropped. Where this fails, so is this state.
  Status ReloadHistory(db::Store& store);
  // Forgets what is to be committed beside records.
  void DropBatch();
  // In place of all changes: the experiment goes, with all that belongs to it.
  Status CommitDelete(db::Store& store);

 private:
  friend class DeltaApplier;
  explicit ExperimentState(ExperimentData data) : data_(std::move(data)) {}

  ExperimentData data_;
  AlgorithmCalls calls_;
};

// Adds `by` to the count of trials in this phase; 0 clears it.
void Recount(v1::ExperimentStatus& status, v1::TrialPhase phase, int64_t by);

// random_state, else spec.shirabe.seed, else from the experiment's name.
uint64_t SeedOf(const v1::Experiment& experiment);

}  // namespace shirabe::experiment
