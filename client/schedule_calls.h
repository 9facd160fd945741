// What the client over a store answers about schedules. Made by it, with what it has; thread-safe.
#pragma once

#include <functional>
#include <vector>

#include "base/clock.h"
#include "client/method_table.h"
#include "client/records/namespace_guard.h"
#include "schedule/schedule_records.h"

namespace shirabe::client {

class ScheduleCalls {
 public:
  struct Place {
    db::Store* store = nullptr;
    Clock* clock = nullptr;
    v1::Actor actor{};  // of what no request names another for
  };
  // Whether an experiment may be stored; called when one is started.
  using Check = std::function<Status(const v1::Experiment&)>;

  // All of it outlives this.
  ScheduleCalls(Place place, const NamespaceGuard* namespaces, Check check);

  void AddTo(MethodTable& methods);
  schedule::ScheduleRecords& records() { return records_; }

 private:
  StatusOr<v1::ScheduledExperiment> Get(const v1::ExperimentRef& request);
  StatusOr<std::vector<v1::ScheduledExperiment>> List(const v1::ExperimentRef& request);
  StatusOr<v1::SubmitReply> Submit(const v1::SubmitScheduleRequest& request);
  StatusOr<v1::SteerScheduleReply> Steer(const v1::SteerScheduleRequest& request);
  StatusOr<v1::Done> Delete(const v1::DeleteScheduleRequest& request);

  const v1::Actor actor_;
  schedule::ScheduleRecords records_;
};

}  // namespace shirabe::client
