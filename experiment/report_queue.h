// What programs report of their own accord, on its way to the owner of their experiment: a report
// waits here until a pass of the reconciler has taken it and committed it. The queue of one
// experiment lives as long as a thread waits at it. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/names.h"
#include "base/status.h"
#include "db/store.h"
#include "experiment/experiment_state.h"
#include "metrics/collector.h"

namespace shirabe::experiment {

// Metric values, with or without the end of their trial. All of it counts, or nothing. A point
// without a step (implicit_step) gets its metric's ordinal; the same point with the same time is
// the same point.
struct Report {
  TrialKey trial{};
  int32_t attempt = 0;  // 0 = the current one
  std::string token{};  // of the attempt; "" = the caller has been found to be allowed to
  std::vector<metrics::Observation> points{};
  // Ends a trial of an ask-and-tell experiment: it has done its work, or failed.
  enum class End { kNone, kCompleted, kFailed } end = End::kNone;
  std::string message{};  // of the end, for people
};

struct ReportReply {
  std::string stop;  // why the trial should end now, in words; "" = it may go on
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
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<PendingReportPtr> waiting_;  // guarded by mutex_
};

// What is asked for and told by programs themselves: reports on their way into the batch, and the
// callers of an ask-and-tell experiment who wait for a trial. Functions on the owner's state,
// called by a pass; what they change counts once it is committed.

// The report's points into the batch; its end, if it tells one, into `told` of the live trial.
// kInvalidArgument, with the field; kPermissionDenied if its attempt is not the current one;
// kAlreadyExists if the trial was told something else before.
StatusOr<ReportReply> ApplyReport(State& state, const Report& report, db::Store& store,
                                  absl::Time now);

// An ASK intent: its caller waits in state.asks, unless it has an open trial already.
void EnqueueAsk(State& state, const v1::Intent& intent);
// A new trial is for the caller that asked first, if there is one.
void AssignToCaller(State& state, ActiveTrial& live);
// There will be no trial for those who still ask.
void CancelAsks(State& state);

// A RETRY intent: a new trial with the point of an old one, to be started like any that waits.
Status RetryTrial(State& state, int64_t number, db::Store& store, absl::Time now);

using ReportQueuePtr = std::shared_ptr<ReportQueue>;  // shared by its owner and those who report

}  // namespace shirabe::experiment
