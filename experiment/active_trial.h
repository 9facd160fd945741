// What the owner of an experiment keeps of a trial that is not in a terminal phase: its records
// with their revisions, what has changed of them since the last Commit, and what this process did
// about the open attempt. Part of State, and used like it.
#pragma once

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "db/store.h"

namespace shirabe::experiment {

// A wait for what only others can give. The longer it lasts, the less often it is looked at, and
// the less often it is written why: that may change with every moment. Times are monotonic.
struct CapacityWait {
  std::optional<absl::Duration> since{};
  std::optional<absl::Duration> began{};
  std::optional<absl::Duration> said{};

  // Until the next look, at least `least`.
  absl::Duration Pause(absl::Duration now, absl::Duration least = absl::Seconds(1)) {
    if (!since) since = now;
    return std::clamp((now - *since) / 8, least, absl::Seconds(10));
  }
  // Whether it may be written again why; then it was.
  bool MayRecordReason(absl::Duration now) {
    if (!began) began = now;
    const bool may = !said || now - *said >= std::min((now - *began) / 4, absl::Minutes(1));
    if (may) said = now;
    return may;
  }
};

struct ActiveTrial {
  db::Versioned<v1::Trial> trial;
  std::optional<db::Versioned<v1::Attempt>> open;
  std::vector<db::Versioned<v1::Checkpoint>> checkpoints;  // by attempt and step; revision 0 = new
  std::set<size_t> checkpoints_changed;                    // indices
  bool trial_changed = false;
  bool open_changed = false;
  // Not stored: what this process did about the open attempt.
  bool started = false;
  bool stop_sent = false;
  bool stop_now = false;  // and without grace
  bool exited = false;    // its program has ended; the rest of its output is being read
  std::optional<absl::Duration> unreadable_since;  // monotonic; nothing of it could be read since
  bool judge = false;          // it has reported: the early-stopping rule is to be asked
  absl::Duration start_again;  // monotonic; after a Start that had no room
  CapacityWait wait;           // or until it has started
  absl::Duration collect_at;   // monotonic
  absl::Duration collect_interval;
  std::optional<absl::Duration> running_since;  // monotonic; ran_before comes on top
  absl::Duration ran_before;                    // until this process saw it, by the wall clock
  absl::Duration saved_at;                      // monotonic; its start, or its last checkpoint
  std::optional<absl::Duration> told_at;  // monotonic; the last event about a checkpoint of it
  bool overdue = false;                   // it was said that the next one is late
  // Its end, as its caller told it; ask-and-tell.
  struct ReportedEnd {
    bool completed = false;
    std::string message;
  };
  std::optional<ReportedEnd> told;
  // Metric and time (µs) of the points without a step that it has reported, once one was.
  std::optional<std::set<std::pair<std::string, int64_t>>> pushed;

  // How long the open attempt has run.
  absl::Duration Ran(absl::Duration monotonic) const {
    return running_since ? ran_before + (monotonic - *running_since) : absl::ZeroDuration();
  }
};

std::vector<v1::Checkpoint> RecordsOf(const std::vector<db::Versioned<v1::Checkpoint>>& rows);

// What is remembered of an algorithm that fails.
struct AlgorithmFailures {
  int failures = 0;            // in a row
  absl::Duration ask_again;    // when it is asked again (monotonic)
  std::string reported_error;  // the last error of it that an event has told
  CapacityWait wait;           // it is not asked, for there is no room for another trial
};

}  // namespace shirabe::experiment
