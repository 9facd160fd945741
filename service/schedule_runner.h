// Starts what the schedules of a store have due: looks at each at its time, and at all of them now
// and then, for those that are new or were changed. One thread of its own. Any number of servers
// may do so for one store: see schedule/schedule_records.h. What it uses outlives it.
#pragma once

#include <map>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/names.h"
#include "schedule/schedule_records.h"

namespace shirabe::service {

class ScheduleRunner {
 public:
  ScheduleRunner(const schedule::ScheduleRecords* records, Clock* clock);
  ~ScheduleRunner();

 private:
  void Run(std::stop_token stop);
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
  Mutex mutex_;          // serialises nothing; changed_ wants one
  CondVar changed_;      // only to be woken by the stop
  std::jthread thread_;  // last: it uses the rest
};

}  // namespace shirabe::service
