// What the owner of an experiment keeps of a trial that is not in a terminal phase: its records
// with their revisions, what has changed of them since the last Commit, and what this process did
// about the open attempt (AttemptMemory). Data, owned and changed by ExperimentState.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "db/store.h"

namespace shirabe::experiment {

// How far the open attempt of a trial has come, as this process knows it. The records say what any
// process knows: an attempt that another process started is kRecorded here until it is seen.
enum class AttemptPhase {
  kNone,      // no attempt is open
  kRecorded,  // neither started nor seen by this process
  kStarted,   // it has been started; its program was not seen to run
  kRunning,   // its program was seen to run
  kExited,    // its program has ended; the rest of its output is being read
};
// The legal transitions, all of them. An attempt returns to kRecorded when its executor knows
// nothing of it and it was never seen to run: then it is started again.
bool MayFollow(AttemptPhase from, AttemptPhase to);

// The request to end that was sent to the executor; a later one may be more urgent, never less.
enum class StopSent { kNone, kWithGrace, kAtOnce };

// A wait for what only others can give. The longer it lasts, the less often it is looked at, and
// the less often it is written why: that may change with every moment. Times are monotonic.
struct CapacityWait {
  std::optional<absl::Duration> since{};
  std::optional<absl::Duration> began{};
  std::optional<absl::Duration> recorded{};

  // Until the next look, at least `least`.
  absl::Duration Pause(absl::Duration now, absl::Duration least = absl::Seconds(1));
  // Whether it may be written again why; then it was.
  bool MayRecordReason(absl::Duration now);
};

// Of the open attempt, not stored: a new owner begins with an empty one. Times are monotonic.
struct AttemptMemory {
  // To this phase, or stays in it. Any other transition is an error of the program.
  void Enter(AttemptPhase next);
  // How long it has run.
  absl::Duration Ran(absl::Duration monotonic) const;

  AttemptPhase phase = AttemptPhase::kNone;
  StopSent stop_sent = StopSent::kNone;
  bool judge = false;  // it has reported: the early-stopping rule is to be asked
  // Of one in kStarted: this process has started it, or has been told why it does not run yet. Of
  // one that is only heard of after a restart it is not known whether it runs.
  bool seen_pending = false;
  absl::Duration start_again{};  // after a Start that had no room
  CapacityWait wait{};           // or until it has started
  absl::Duration collect_at{};
  absl::Duration collect_interval{};
  std::optional<int64_t> collected_version{};        // AttemptStatus::files_version, all of it read
  std::optional<absl::Duration> unreadable_since{};  // nothing of it could be read since
  std::optional<absl::Duration> running_since{};     // ran_before comes on top
  absl::Duration ran_before{};                       // until this process saw it, by the wall clock
  absl::Duration saved_at{};                         // its start, or its last checkpoint
  std::optional<absl::Duration> last_checkpoint_event_at{};
  bool overdue_warned = false;  // an event has said that the next checkpoint is late
  // Its end, as its caller reported it; ask-and-tell.
  struct ReportedEnd {
    bool completed = false;
    std::string message;
  };
  std::optional<ReportedEnd> reported_end{};
};

// Metric and time (µs) of points without a step that an attempt has reported.
using ReportedPoints = std::set<std::pair<std::string, int64_t>>;

struct ActiveTrial {
  db::Versioned<v1::Trial> trial;
  std::optional<db::Versioned<v1::Attempt>> open;
  std::vector<db::Versioned<v1::Checkpoint>> checkpoints;  // by attempt and step; revision 0 = new
  AttemptMemory memory;
  std::optional<ReportedPoints> reported_points;  // of the open attempt, once one was reported
  // Since the last Commit.
  bool trial_changed = false;
  bool open_changed = false;
  std::set<size_t> checkpoints_changed;  // indices

  // Adds the record of a checkpoint, or replaces the one of the same attempt and step.
  void PutCheckpoint(v1::Checkpoint checkpoint);
};

std::vector<v1::Checkpoint> RecordsOf(const std::vector<db::Versioned<v1::Checkpoint>>& rows);

}  // namespace shirabe::experiment
