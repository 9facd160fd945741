// Reads the metrics of one attempt from where its program left them. A Collector has no state of
// its own: everything it must remember is in the cursor, which is committed together with the rows,
// so that reading on from an old cursor gives the same rows again and nothing is lost or doubled.
// Thread-safe: one object may serve many attempts.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/registry.h"
#include "base/status.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::metrics {

struct Observation {
  std::string metric;
  double value = 0;  // NaN and infinities included
  int64_t step = 0;
  bool implicit_step = false;  // counted: the metric's ordinal within the trial, from 1
  absl::Time time;             // the line's own time stamp, or when it was read
};

// Where to read, and what for.
struct Source {
  v1::MetricsCollectorSpec spec;
  std::vector<std::string> metrics;  // wanted: the objective and the additional ones
  std::string log;                   // stdout and stderr of the attempt
  std::string metrics_file;          // the contract's own files, always read as well: JSON lines,
  std::string hypertune_file;        // and what the library hypertune writes; "" = none
  std::string scrapes_file;  // where what an HTTP endpoint said is kept; see sidecar/sidecar.h
  std::string working_dir;   // for a relative fileSystemPath
  absl::Time now;            // time of lines that carry none
  bool ended = false;        // the program is gone: a last line without newline counts
  // The files are copies of what a program elsewhere writes: another server of ours makes new ones,
  // so that their inodes say nothing, and what is heard over HTTP is heard beside the program.
  bool copies = false;
};

struct Collected {
  std::vector<Observation> observations;
  v1::CollectorCursor cursor;  // to go on from
  int64_t bad_lines = 0;       // named a wanted metric and had no number, or were too long
  std::string bad_sample;      // the first of them, shortened, and why
  bool more = false;           // stopped at the limit for one call: call again
};

class Collector {
 public:
  virtual ~Collector() = default;
  // At most some 4 MiB of input a call. A file that is not there yet gives no points. Errors are
  // of the file system only; a line that cannot be read costs only that line.
  virtual StatusOr<Collected> Collect(const Source& source, const v1::CollectorCursor& cursor) = 0;
};

struct CollectorInfo {
  std::string name;  // Katib's kind: StdOut, File, TensorFlowEvent, …
  std::string help;
  // kInvalidArgument, naming the field and the fix: a regular expression RE2 refuses, no path, …
  StatusOr<std::unique_ptr<Collector>> (*create)(const v1::MetricsCollectorSpec& spec);
  // Where it looked besides the metrics file, for a user whose trial had no metric: "in the output
  // as `loss=<number>` …"; "" = nowhere.
  std::string (*describe)(const Source& source);
  // The files it reads that are there and may hold what an earlier attempt wrote.
  std::vector<std::string> (*shared_files)(const Source& source);
};

}  // namespace shirabe::metrics
