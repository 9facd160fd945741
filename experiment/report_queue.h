// What programs report of their own accord, and what the callers of an ask-and-tell experiment ask
// for, on its way to the owner of their experiment: a report waits here until a pass of the
// reconciler has taken it and committed it. The queue of one experiment lives as long as a thread
// waits at it. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/mutex.h"
#include "base/names.h"
#include "base/status.h"
#include "metrics/collector.h"

namespace shirabe::experiment {

// Metric values, with or without the end of their trial. All of it counts, or nothing. A point
// without a step (implicit_step) gets its metric's ordinal; the same point with the same time is
// the same point.
struct Report {
  TrialKey trial{};     // without a number it reports nothing, and only asks: next_for
  int32_t attempt = 0;  // 0 = the current one
  std::string token{};  // of the attempt; "" = the caller has been found to be allowed to
  std::vector<metrics::Observation> points{};
  // Ends a trial of an ask-and-tell experiment: it has done its work, or failed.
  enum class End { kNone, kCompleted, kFailed } end = End::kNone;
  std::string message{};   // of the end, for people
  std::string next_for{};  // who asks for a trial, once the rest counts; "" = asks for none
};

// A trial that runs, for the caller who asked.
struct GivenTrial {
  v1::Trial trial;
  int32_t attempt = 0;
  std::string token;  // of the attempt
};

struct ReportReply {
  std::string stop;      // why the trial should end now, in words; "" = it may go on
  bool ignored = false;  // it had been stopped before: of the report nothing counts
  // The trial of next_for, in the same commit; none: there is none yet, or none any more.
  std::optional<GivenTrial> next = std::nullopt;
};

// One report that waits. The pass that takes it sets its answer; it counts once that pass has
// committed.
struct PendingReport {
  Report report;
  StatusOr<ReportReply> answer = ReportReply{};
  bool answered = false;  // guarded by the queue's mutex
};
using PendingReportPtr =
    std::shared_ptr<PendingReport>;  // shared: the one who waits for it may give up

class ReportQueue {
 public:
  // Puts it in. kResourceExhausted if too many wait: try again.
  Status Put(const PendingReportPtr& pending_report);
  // Its answer, once there is one. kUnavailable, for it is not known whether it counts, if that
  // takes longer than `timeout`: tell it again.
  StatusOr<ReportReply> Await(const PendingReportPtr& pending_report, absl::Duration timeout);

  // For the pass: the oldest reports, some 100,000 points at most, but at least one.
  std::vector<PendingReportPtr> Drain();
  bool empty() const;
  // Each of these is answered: as it says itself if `committed` is OK.
  void Answer(const std::vector<PendingReportPtr>& pending_reports, const Status& committed);

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<PendingReportPtr> waiting_ ABSL_GUARDED_BY(mutex_);
};

using ReportQueuePtr = std::shared_ptr<ReportQueue>;  // shared by its owner and those who report

}  // namespace shirabe::experiment
