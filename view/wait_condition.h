// What `wait --for` waits for: conditions on an experiment or a trial, and the waiting itself; and
// how all trials are read page by page. Reads through the client, wakes with its changes. Used by
// one thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status.h"
#include "client/client.h"
#include "view/record_filter.h"

namespace shirabe::view {

// The trial, if one is meant; else the experiment.
struct AwaitTarget {
  ExperimentKey experiment;
  std::optional<TrialKey> trial;
};

struct AwaitCondition {
  enum class Kind { kSucceeded, kFailed, kCompleted, kRunning, kDeleted, kMetric, kBest };
  Kind kind = Kind::kSucceeded;
  Term term{};       // kMetric and kBest: the comparison; its field is the metric, or ""
  std::string text;  // as it was given
};

// succeeded, failed, completed (ended in whatever way), running (or has run), deleted;
// metric=NAME<0.1, or NAME<0.1 alone: a trial's metric, by the strategy of the experiment, of any
// trial where an experiment is waited for; best<0.1 or best=NAME<0.1: the best objective so far.
// kInvalidArgument, with the list.
StatusOr<AwaitCondition> ParseAwaitCondition(const std::string& text);

enum class AwaitResult {
  kMet,
  kNever,     // it has ended otherwise
  kTimedOut,  // not yet
};

struct AwaitOutcome {
  AwaitResult awaited = AwaitResult::kTimedOut;
  std::string state;  // as it is now, in words, for messages
};

// Until the condition holds, can no longer hold, or the monotonic clock has reached `deadline`.
// kNotFound if there is no such record (unless that is waited for); kInvalidArgument if the
// experiment has no such metric.
StatusOr<AwaitOutcome> Await(client::Client& client, const AwaitTarget& target,
                             const AwaitCondition& condition, absl::Duration deadline);

// All trials of an experiment, a page at a time: for lists and exports that must not grow in memory
// with the experiment. A page is small enough to stay in the processor's cache.

// In the order of their numbers, until `page` (which may change what it is given) says no. It is
// not called for an experiment without trials.
Status EachTrialPage(client::Client& client, const ExperimentKey& key,
                     const std::function<bool(std::vector<v1::Trial>&)>& page);

}  // namespace shirabe::view
