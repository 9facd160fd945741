// Takes an attempt's new metric values from its collector into the rows, the attempt's cursor and
// the trial's observation of a delta, all of which are committed together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "experiment/pass_steps.h"
#include "metrics/collector.h"
#include "trial/attempt_status.h"

namespace shirabe::experiment {

struct IngestResult {
  bool has_new = false;  // something was read
  bool more = false;     // there is more to read at once
  Status unreadable;     // not OK: where the metrics should be there is no file that can be read
};

// Reads on from the attempt's cursor. `source` says where, and whether the program has ended.
StatusOr<IngestResult> Ingest(const TrialEdit& edit, const metrics::Source& source);

// The same for points that were reported, not read. A point without a step gets its ordinal.
Status IngestPoints(const TrialEdit& edit, std::vector<metrics::Observation> points);

// The open attempt resumes from this checkpoint (null: from the beginning): what earlier attempts
// reported past it no longer counts, and counted steps go on from its counts. Before the first
// Ingest of the attempt.
Status Supersede(const TrialEdit& edit, const v1::Checkpoint* resumed);

// The objective at this step, or the last one before it; nullopt if there is none, or no number.
StatusOr<std::optional<double>> ObjectiveAt(const TrialEdit& edit, int64_t step);

// What programs of this machine report over HTTP goes into their own metrics files.
trial::StatusHandlers TrainerStatusHandlers();

// Logs of running attempts must not fill the disk. They are shortened by their reader, because only
// it knows what may go: what a collector has read, once its cursor is in the store, is never looked
// at again but by people.

// After a look at what an attempt wrote: its log, if that is long.
std::optional<LongLog> FindLongLog(const TrialEdit& edit, const metrics::Source& source);
// The same of an attempt of which nothing is collected.
std::optional<LongLog> LongLogOf(const trial::AttemptPaths& paths);
// Once the pass has committed.
void TrimLogs(const std::vector<LongLog>& logs);

}  // namespace shirabe::experiment
