// What a server does now and then beside its answers, each in a thread of its own: it starts what
// schedules have due, and keeps what ended attempts have left from filling the disk and the
// store. What they are given outlives them. Made and ended by the server.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/names.h"
#include "client/client.h"
#include "client/local_client.h"
#include "schedule/schedule_records.h"

namespace shirabe::service {

class PeriodicTask {
 public:
  // Calls `run` at once and then again and again, with so long a pause between, until this is
  // destroyed, which waits for a call that is under way; its token tells it.
  PeriodicTask(absl::Duration pause, std::function<void(const std::stop_token&)> run);

 private:
  Mutex mutex_;          // serialises nothing; changed_ wants one
  CondVar changed_;      // only to be woken by the stop
  std::jthread thread_;  // last: it uses the rest
};
using PeriodicTaskPtr = std::unique_ptr<PeriodicTask>;

// Deletes the oldest logs where there are too many (client/leftover_files.h): what may be kept of
// attempts that have ended, in bytes; 0 = everything, and there is no task. They lie in `home`,
// that of the client's store.
PeriodicTaskPtr StartDeletingLogs(client::Client* client, const std::string& home, int64_t bytes);

// Thins out the observations of trials that have ended (client/retention.h). `keep`: what
// stays of each metric of a trial; 0 = everything, and there is no task.
PeriodicTaskPtr StartThinning(client::LocalClient* client, int64_t keep, Clock* clock);

// Deletes copies in artifact stores whose time is over (client/retention.h). None where no
// stores are known.
PeriodicTaskPtr StartDeletingCopies(client::LocalClient* client, Clock* clock);

// Starts what the schedules of a store have due: looks at each at its time, and at all of them now
// and then, for those that are new or were changed. Any number of servers may do so for one store:
// see schedule/schedule_records.h.
class ScheduleRunner {
 public:
  ScheduleRunner(const schedule::ScheduleRecords* records, Clock* clock);

 private:
  void LookAtAll();
  void LookAt(const v1::ScheduledExperiment& schedule);

  struct Known {
    int64_t generation = 0;
    std::string uid;
    absl::Time due;          // when it is to be looked at
    std::string last_error;  // logged once
  };

  const schedule::ScheduleRecords* const records_;
  Clock* const clock_;
  std::map<ExperimentKey, Known> known_;
  std::string last_error_;
  PeriodicTask task_;  // last: it uses the rest
};

}  // namespace shirabe::service
