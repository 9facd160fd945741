#include "service/periodic_tasks.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "client/leftover_files.h"
#include "client/retention.h"
#include "client/store_prune.h"
#include "schedule/parse_schedule.h"
#include "trial/file_layout.h"

namespace shirabe::service {
namespace {

constexpr absl::Duration kLogsInterval = absl::Minutes(5);
constexpr absl::Duration kThinInterval = absl::Minutes(10);
constexpr absl::Duration kCopiesInterval = absl::Minutes(30);
constexpr absl::Duration kScheduleInterval = absl::Seconds(1);
constexpr absl::Duration kAfterFailure = absl::Seconds(5);
// However far away its time is: the clock may be set, and what runs is looked at.
constexpr absl::Duration kMaxScheduleWait = absl::Minutes(1);

void Thin(client::LocalClient& client, const client::ThinOptions& options) {
  const auto thinned = client::ThinObservations(client.store(), options);
  if (!thinned.ok()) {
    Log(LogLevel::kWarning, "failed to thin observations out",
        {{"error", Message(thinned.status())}});
  } else if (thinned->observations > 0) {
    Log(LogLevel::kInfo, "thinned observations out",
        {{"trials", absl::StrCat(thinned->trials)},
         {"observations", absl::StrCat(thinned->observations)}});
  }
}

void DeleteCopies(client::LocalClient& client, const client::CopyRetention& options) {
  const auto removed = client::RemoveOldCopies(client, options);
  if (!removed.ok()) {
    Log(LogLevel::kWarning, "failed to look for copies that may go",
        {{"error", Message(removed.status())}});
    return;
  }
  for (const client::RemovedCopies& one : *removed) {
    const bool failed = !one.error.empty();
    Log(failed ? LogLevel::kWarning : LogLevel::kInfo,
        failed ? "failed to delete copies whose time is over" : "deleted copies whose time is over",
        {{"experiment", ToString(one.experiment)}, {"store", one.store}, {"error", one.error}});
  }
}

}  // namespace

PeriodicTask::PeriodicTask(absl::Duration pause, std::function<void(const std::stop_token&)> run)
    : thread_([this, pause, run = std::move(run)](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
          run(stop);
          MutexLock lock(mutex_);
          changed_.SleepFor(lock, stop, pause);
        }
      }) {}

PeriodicTaskPtr StartDeletingLogs(client::Client* client, const std::string& home, int64_t bytes) {
  if (bytes <= 0) return nullptr;
  return std::make_unique<PeriodicTask>(
      kLogsInterval, [client, layout = trial::FileLayout(home), bytes](const std::stop_token&) {
        const Status deleted = client::RemoveOldLogs(*client, layout, bytes);
        if (deleted.ok()) return;
        Log(LogLevel::kWarning, "failed to delete old logs", {{"error", Message(deleted)}});
      });
}

PeriodicTaskPtr StartThinning(client::LocalClient* client, int64_t keep, Clock* clock) {
  if (keep <= 0) return nullptr;
  return std::make_unique<PeriodicTask>(
      kThinInterval,
      [client, keep, clock,
       progress = std::map<ExperimentKey, client::ThinProgress>()](const std::stop_token&) mutable {
        Thin(*client, {.ns = "",
                       .keep = keep,
                       .ended_before = clock->Now() - client::kRowsUntouched,
                       .progress = &progress});
      });
}

PeriodicTaskPtr StartDeletingCopies(client::LocalClient* client, Clock* clock) {
  if (client->stores() == nullptr) return nullptr;
  return std::make_unique<PeriodicTask>(
      kCopiesInterval, [client, clock](const std::stop_token& stop) {
        DeleteCopies(*client, {.ns = "", .clock = clock, .stop = stop});
      });
}

ScheduleRunner::ScheduleRunner(const schedule::ScheduleRecords* records, Clock* clock)
    : records_(records),
      clock_(clock),
      task_(kScheduleInterval, [this](const std::stop_token&) { LookAtAll(); }) {}

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
