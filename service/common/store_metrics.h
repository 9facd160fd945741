// What Prometheus is told of experiments, trials and attempts, from the store: how many there are
// in each state, looked up when asked for, at most once a second; and what has happened since the
// server began, from the differences of experiments' own counts and from the attempts that change.
// Counters begin at zero with the server, as Prometheus expects it of a restart. Made by the server
// over its metrics and its hub. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "client/client.h"
#include "service/common/change_hub.h"
#include "service/common/server_metrics.h"

namespace shirabe::service {

class StoreMetrics {
 public:
  // All outlive it; the hub has not started yet, or its first changes are missed.
  struct Options {
    client::Client* client = nullptr;
    ChangeHub* hub = nullptr;
    Metrics* metrics = nullptr;
    Clock* clock = nullptr;
    std::function<void(Metrics&)> refresh = {};  // sets what others count, before each text
    bool process_only = false;                   // says nothing of what is in the store
  };
  // What is there by now has happened before.
  explicit StoreMetrics(Options options);
  ~StoreMetrics();

 private:
  // Of an experiment, as it was seen last.
  struct Seen {
    std::string uid;
    std::string state;  // its current condition
    int64_t failing_endpoints = 0;
    v1::ExperimentStatus status;  // its counts
  };
  // Attempts of a trial, by number: those counted as started and as closed.
  struct Counted {
    int32_t started = 0;
    int32_t closed = 0;
  };

  // Before the text is made.
  void Refresh();
  void ReadIfOlder(absl::Duration age) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Experiments that have changed.
  void Read() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns whether any has.
  StatusOr<bool> ReadChanged() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Record(const v1::Experiment& experiment, bool count) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RecordDeletion(const ExperimentKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Compare(const v1::Experiment& now, const Seen& before);
  void SetGauges() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnChanges(const std::vector<db::Change>& changes);
  void CountAttempts(const TrialKey& trial) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountStart(const std::vector<v1::Attempt>& attempts, size_t i);
  void CountEnd(const v1::Attempt& attempt);

  const Options options_;
  const absl::Time began_;
  int listener_ = 0;
  Mutex mutex_;
  absl::Duration read_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();  // when
  int64_t revision_ ABSL_GUARDED_BY(mutex_) = -1;  // up to which experiments are known
  std::map<ExperimentKey, Seen> seen_ ABSL_GUARDED_BY(mutex_);
  // Of experiments that have not ended.
  std::map<TrialKey, Counted> counted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shirabe::service
