#include "client/schedule_calls.h"

#include <utility>

namespace shirabe::client {

ScheduleCalls::ScheduleCalls(Place place, const NamespaceGuard* namespaces, Check check)
    : actor_(std::move(place.actor)),
      records_(
          {.store = place.store,
           .clock = place.clock,
           .check = std::move(check),
           .namespace_uid = [namespaces](const std::string& ns) { return namespaces->UidOf(ns); },
           .namespace_gone =
               [namespaces](const std::string& ns, const std::string& uid) {
                 return namespaces->IsGone(ns, uid);
               }}) {}

void ScheduleCalls::AddTo(MethodTable& methods) {
  methods.Add("GetSchedule", this, &ScheduleCalls::Get);
  methods.Add("ListSchedules", this, &ScheduleCalls::List);
  methods.Add("SubmitSchedule", this, &ScheduleCalls::Submit);
  methods.Add("SteerSchedule", this, &ScheduleCalls::Steer);
  methods.Add("DeleteSchedule", this, &ScheduleCalls::Delete);
}

StatusOr<v1::ScheduledExperiment> ScheduleCalls::Get(const v1::ExperimentRef& request) {
  return records_.Get({request.namespace_(), request.name()});
}

StatusOr<std::vector<v1::ScheduledExperiment>> ScheduleCalls::List(
    const v1::ExperimentRef& request) {
  return records_.List(request.namespace_());
}

StatusOr<v1::SubmitReply> ScheduleCalls::Submit(const v1::SubmitScheduleRequest& request) {
  if (!request.schedule().status().created_by().name().empty()) return records_.Submit(request);
  v1::SubmitScheduleRequest own = request;
  *own.mutable_schedule()->mutable_status()->mutable_created_by() = actor_;
  return records_.Submit(own);
}

StatusOr<v1::SteerScheduleReply> ScheduleCalls::Steer(const v1::SteerScheduleRequest& request) {
  if (!request.actor().name().empty()) return records_.Steer(request);
  v1::SteerScheduleRequest own = request;
  *own.mutable_actor() = actor_;
  return records_.Steer(own);
}

StatusOr<v1::Done> ScheduleCalls::Delete(const v1::DeleteScheduleRequest& request) {
  RETURN_IF_ERROR(records_.Delete(request));
  return v1::Done();
}

}  // namespace shirabe::client
