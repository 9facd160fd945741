// Reads the metrics of one attempt from where its program left them. A Collector is made from the
// specification and has no state of one attempt: what must be remembered is in the cursor, which is
// committed together with the rows, so that reading on from an old cursor gives the same rows again
// and nothing is lost or doubled. Thread-safe: one object may serve many attempts.
//
// A new one is a file in metrics/collectors/ and a CollectorKind in proto/shirabe/v1/
// experiment.proto, whose options say what it reads.
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

// Where what the program of an attempt leaves lies on this machine; "" = there is none.
struct AttemptFiles {
  std::string log;        // its stdout and stderr
  std::string metrics;    // the contract's own files, which every collector reads: JSON lines,
  std::string hypertune;  // and what the library hypertune writes
  std::string scrapes;    // what an HTTP endpoint said; see http_scraper.h
  std::string path;       // the file or folder of source.fileSystemPath
  // They are copies of what a program elsewhere writes: another server of ours makes new ones, so
  // that their inodes say nothing, and what is heard over HTTP is heard beside the program.
  bool copies = false;
};

// What to read, and what for.
struct Source {
  std::vector<std::string> metrics;  // wanted: the objective and the additional ones
  AttemptFiles files;
  absl::Time now;      // time of lines that carry none
  bool ended = false;  // the program is gone: a last line without newline counts
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
  // Where it looked besides the contract's files, for a user whose trial had no metric: "in the
  // output as `loss=<number>` …"; "" = nowhere.
  virtual std::string Describe(const Source& source) const = 0;
  // The files of `files.path` that it reads and that are there now: in a pod they are sent to the
  // server, and what they hold when an attempt starts is not this attempt's.
  virtual std::vector<std::string> Files(const AttemptFiles&) const { return {}; }
};

struct CollectorInfo {
  std::string name;  // Katib's kind, the word of its CollectorKind: StdOut, File, …
  std::string help;
  // kInvalidArgument, naming the field and the fix: a regular expression RE2 refuses, no path, …
  StatusOr<std::unique_ptr<Collector>> (*create)(const v1::MetricsCollectorSpec& spec);
};

}  // namespace shirabe::metrics
