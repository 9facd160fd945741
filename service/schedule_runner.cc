#include "service/schedule_runner.h"

#include <algorithm>
#include <set>

#include "base/log.h"
#include "schedule/parse_schedule.h"

namespace shirabe::service {
namespace {

constexpr absl::Duration kScheduleInterval = absl::Seconds(1);
constexpr absl::Duration kAfterFailure = absl::Seconds(5);
// However far away its time is: the clock may be set, and what runs is looked at.
constexpr absl::Duration kMaxScheduleWait = absl::Minutes(1);

}  // namespace

ScheduleRunner::ScheduleRunner(const schedule::ScheduleRecords* records, Clock* clock)
    : records_(records), clock_(clock), thread_([this](std::stop_token stop) { Run(stop); }) {}

ScheduleRunner::~ScheduleRunner() {
  thread_.request_stop();
  thread_.join();
}

void ScheduleRunner::Run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    LookAtAll();
    MutexLock lock(mutex_);
    changed_.SleepFor(lock, stop, kScheduleInterval);
  }
}

void ScheduleRunner::LookAtAll() {
  const auto schedules = records_->List("");
  const std::string error = schedules.ok() ? "" : Message(schedules.status());
  if (!error.empty() && last_error_.empty()) {
    Log(LogLevel::kWarning, "failed to read the schedules; trying again", {{"error", error}});
  }
  last_error_ = error;
  if (!schedules.ok()) return;
  std::set<ExperimentKey> there;
  for (const v1::ScheduledExperiment& schedule : *schedules) {
    there.insert(schedule::KeyOf(schedule));
    LookAt(schedule);
  }
  std::erase_if(known_, [&](const auto& entry) { return !there.contains(entry.first); });
}

void ScheduleRunner::LookAt(const v1::ScheduledExperiment& schedule) {
  const ExperimentKey key = schedule::KeyOf(schedule);
  Known& known = known_[key];
  const v1::ObjectMeta& metadata = schedule.metadata();
  const bool same = known.generation == metadata.generation() && known.uid == metadata.uid();
  const absl::Time now = clock_->Now();
  if (same && now < known.due) return;
  known.generation = metadata.generation();
  known.uid = metadata.uid();
  const auto due = records_->Reconcile(key);
  if (due.ok()) {
    known.last_error.clear();
    known.due = std::min(*due, now + kMaxScheduleWait);
    return;
  }
  if (absl::IsAborted(due.status())) {  // another process was faster
    known.due = now;
    return;
  }
  known.due = now + kAfterFailure;
  if (known.last_error == Message(due.status())) return;
  known.last_error = Message(due.status());
  Log(LogLevel::kWarning, "failed to look after a schedule; trying again",
      {{"schedule", ToString(key)}, {"error", known.last_error}});
}

}  // namespace shirabe::service
