// What one call of Collect has taken so far: the points, the bad lines, the cursor that goes with
// them, and how much more the call may take. ReadAttempt (attempt_reader.h) makes one; the readers
// of files put in what they found. Lives for that call, used by its thread alone.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "metrics/collector.h"
#include "metrics/file_tail.h"
#include "metrics/line_parser.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::metrics {

// Steps for points that have none: a metric's first such point in the trial is step 1, its next one
// step 2, and so on, going on from the counts in the cursor. One object serves one call of Collect.
class ImplicitSteps {
 public:
  ImplicitSteps(const std::vector<std::string>& metrics, const v1::CollectorCursor& cursor);

  // The step of the next point of this metric, one of those above, that has none.
  int64_t Next(const std::string& metric) { return ++counts_.find(metric)->second; }
  // Its last one; 0 if there was none.
  int64_t Last(const std::string& metric) const { return counts_.find(metric)->second; }
  // Writes the counts that are not zero.
  void Save(v1::CollectorCursor& cursor) const;

 private:
  std::map<std::string, int64_t> counts_;
};

class CollectionBuilder {
 public:
  CollectionBuilder(const Source& source, const v1::CollectorCursor& cursor);

  const Source& source() const { return source_; }
  // The wanted metrics, once each.
  const std::vector<std::string>& metrics() const { return metrics_; }
  // Those of them that the contract's own files have not named: a program that reports a metric
  // there means it, so it is taken from nowhere else.
  std::vector<std::string> UnclaimedMetrics() const;
  // What has been taken up to now came from the contract's own files.
  void ClaimAll();

  // One value, with its own step, or with the metric's next ordinal.
  void Add(const std::string& metric, const ParsedObservation& observation);
  // Something that named a wanted metric and could not be read; the first is kept for people.
  void AddBad(int64_t count, const std::string& what, const std::string& path);
  void SetDone() { collected_.cursor.set_done(true); }

  // Whether the metric has not had a point in the trial that was counted, nor one in the attempt
  // that came from the contract's own files.
  bool IsFirst(const std::string& metric) const;

  // Where reading of this file goes on; nothing but the path for one that is new.
  v1::FileCursor CursorOf(const std::string& path) const;
  // A file that is not there yet (inode 0) has no place in the cursor.
  void Save(v1::FileCursor file);
  v1::CollectorCursor& cursor() { return collected_.cursor; }

  // Input that this call may still read. Reading more than that is counted, never an error.
  int64_t BytesLeft() const;
  void CountBytes(int64_t bytes) { bytes_ += bytes; }
  // How far a file of lines was read: its bytes, its long lines, and whether there is more.
  void CountTail(const TailResult& result, const std::string& path);
  // As many points as one Commit takes without keeping others waiting.
  bool Full() const;
  // There is more to read at once: the caller comes again.
  void RequestMore() { collected_.more = true; }
  bool stopped() const { return collected_.more; }

  Collected Finish();

 private:
  const Source& source_;
  const std::vector<std::string> metrics_;
  ImplicitSteps implicit_steps_;
  Collected collected_;
  int64_t bytes_ = 0;
};

}  // namespace shirabe::metrics
