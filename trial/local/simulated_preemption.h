// When the local executor takes machines away, as pools of a nodes file ask for it. An experiment
// has a trace of its own, counted from its first start: `times` of a pool, each of which takes the
// slot that has run longest, and for `perNodeHour` a seeded Poisson process for each slot. A
// reclaim that finds nothing of the experiment running there just passes. Pure; not thread-safe:
// its owner locks, kills, and keeps what has to survive in the two small files below.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/names.h"
#include "base/rng.h"
#include "base/status.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::trial {

// The reclaims of one experiment, by time; endless with a perNodeHour. Nodes outside of it have no
// part in it: the same pools and seed give the same trace, whatever happens.
class ReclaimTrace {
 public:
  struct Event {
    absl::Duration at;  // since the first start
    int pool = 0;       // index in the nodes file
    std::string node;   // "" = the longest-running of the pool
  };

  explicit ReclaimTrace(const v1::NodePools& pools);

  // The next one; null if there is none any more.
  const Event* Next() const;
  void Pop();

 private:
  struct Source {
    explicit Source(int pool) { event.pool = pool; }
    Event event;                // the next of this source
    std::vector<double> times;  // what is left of `times`, the last one first
    double per_hour = 0;        // 0 = only `times`
    Rng rng{0};
  };
  static bool Draw(Source& source);

  std::vector<Source> sources_;
};

// What of a trace must survive a restart, in the experiment's folder (FileLayout::ReclaimsFile).
struct TraceState {
  absl::Time origin;     // the first start
  absl::Duration until;  // since then; what was due by then has been played
};
StatusOr<TraceState> ReadTraceState(const std::string& path);
Status WriteTraceState(const std::string& path, const TraceState& state);

// A reclaim under way, DIR/reclaim of the attempt: there before any signal, so that a process that
// adopts the attempt knows why it ends, and ends it in time.
struct ReclaimRecord {
  std::string id;  // AttemptId
  v1::Cause cause = v1::CAUSE_NONE;
  absl::Time deadline;  // when it is killed
  absl::Time back;      // when the machine can be used again
};
StatusOr<ReclaimRecord> ReadReclaimRecord(const std::string& dir);
Status WriteReclaimRecord(const std::string& dir, const ReclaimRecord& record);

// The traces of all experiments of an executor. Moments are monotonic.
class Reclaims {
 public:
  explicit Reclaims(const v1::NodePools& pools) : pools_(pools) {}

  // Whether any pool reclaims at all.
  bool any() const;
  bool Knows(const ExperimentKey& experiment) const { return traces_.count(experiment) > 0; }
  // `first_start` is the time of the first start; nothing that was due by `state.until` comes
  // again.
  void Begin(const ExperimentKey& experiment, const TraceState& state, absl::Duration first_start);
  void Forget(const ExperimentKey& experiment) { traces_.erase(experiment); }

  struct RunningAttempt {
    AttemptKey key;
    v1::Placement placement;
    absl::Duration since;
  };
  struct Preemption {
    AttemptKey key;
    std::string node;
    v1::Cause cause = v1::CAUSE_NONE;
    absl::Duration notice, away;  // until it is killed; from then until the node is back
    TraceState state;             // of its experiment, with this reclaim
  };
  // Plays what is due by `now`. A reclaim takes only what ran when it was due: one that was not
  // played then finds what has survived until now, and not what has started since.
  std::vector<Preemption> Play(std::vector<RunningAttempt> running, absl::Duration now);
  // When to play again; nullopt for never.
  std::optional<absl::Duration> Next() const;

 private:
  struct TraceProgress {
    ReclaimTrace trace;
    absl::Duration first_start;
    TraceState state;
  };

  const v1::NodePools pools_;
  std::map<ExperimentKey, TraceProgress> traces_;
};

}  // namespace shirabe::trial
