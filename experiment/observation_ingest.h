// Takes an attempt's new metric values from its collector into the batch, the attempt's cursor and
// the trial's observation, all of which are committed together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "db/store.h"
#include "experiment/active_trial.h"
#include "experiment/experiment_state.h"
#include "metrics/collector.h"

namespace shirabe::experiment {

struct IngestResult {
  bool has_new = false;  // something was read
  bool more = false;     // there is more to read at once
  Status unreadable;     // not OK: where the metrics should be there is no file that can be read
};

// Reads on from the attempt's cursor. `source` says where, and whether the program has ended.
StatusOr<IngestResult> Ingest(State& state, ActiveTrial& live, const metrics::Source& source,
                              db::Store& store);

// The same for points that were reported, not read. A point without a step gets its ordinal.
Status IngestPoints(State& state, ActiveTrial& live, std::vector<metrics::Observation> points,
                    db::Store& store);

// The open attempt resumes from this checkpoint (null: from the beginning): what earlier attempts
// reported past it no longer counts, and counted steps go on from its counts. Before the first
// Ingest of the attempt.
Status Supersede(State& state, ActiveTrial& live, const v1::Checkpoint* resumed, db::Store& store);

// The objective at this step, or the last one before it; nullopt if there is none, or no number.
StatusOr<std::optional<double>> ObjectiveAt(State& state, const ActiveTrial& live, int64_t step,
                                            db::Store& store);

// Keeps the logs of running attempts from filling the disk. They are shortened by their reader,
// because only it knows what may go: what a collector has read, once its cursor is in the store, is
// never looked at again but by people. Made for one pass (reconcile_pass.h), and used by it alone.
class LogTrims {
 public:
  // After each look at what an attempt wrote: if its log is long, it will be shortened.
  void Add(ActiveTrial& live, const metrics::Source& source);
  // Once the pass has committed.
  void Run() const;

 private:
  struct LongLog {
    std::string path, root;
    int64_t read = 0;  // how far
  };
  std::vector<LongLog> logs_;
};

}  // namespace shirabe::experiment
