#include "experiment/report_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace shirabe::experiment {
namespace {

constexpr size_t kMaxPendingReports = 4096;
constexpr size_t kMaxPointsPerPass = 100'000;  // in one commit

}  // namespace

Status ReportQueue::Put(const PendingReportPtr& pending_report) {
  const size_t points = pending_report->report.points.size();
  if (points > kMaxPointsPerPass) {
    return absl::InvalidArgumentError(absl::StrCat("points has ", points, " values, and at most ",
                                                   kMaxPointsPerPass, " are taken at a time"));
  }
  const MutexLock lock(mutex_);
  if (waiting_.size() >= kMaxPendingReports) {
    return absl::ResourceExhaustedError(absl::StrCat(
        kMaxPendingReports, " reports of this experiment are waiting: try again later"));
  }
  waiting_.push_back(pending_report);
  return absl::OkStatus();
}

StatusOr<ReportReply> ReportQueue::Await(const PendingReportPtr& pending_report,
                                         absl::Duration timeout) {
  MutexLock lock(mutex_);
  if (changed_.WaitFor(lock, timeout, [&] { return pending_report->answered; })) {
    return pending_report->answer;
  }
  return absl::UnavailableError(
      "the report was not stored in time: send it again (twice counts once)");
}

std::vector<PendingReportPtr> ReportQueue::Drain() {
  const MutexLock lock(mutex_);
  size_t count = 0, points = 0;
  while (count < waiting_.size() && (count == 0 || points < kMaxPointsPerPass)) {
    points += waiting_[count++]->report.points.size();
  }
  std::vector<PendingReportPtr> taken(waiting_.begin(), waiting_.begin() + count);
  waiting_.erase(waiting_.begin(), waiting_.begin() + count);
  return taken;
}

bool ReportQueue::empty() const {
  const MutexLock lock(mutex_);
  return waiting_.empty();
}

void ReportQueue::Answer(const std::vector<PendingReportPtr>& pending_reports,
                         const Status& committed) {
  if (pending_reports.empty()) return;
  const MutexLock lock(mutex_);
  for (const PendingReportPtr& pending_report : pending_reports) {
    if (!committed.ok()) {
      pending_report->answer =
          absl::UnavailableError("the report was not stored (" + Message(committed) +
                                 "): send it again (twice counts once)");
    }
    pending_report->answered = true;
  }
  changed_.NotifyAll();
}

}  // namespace shirabe::experiment
