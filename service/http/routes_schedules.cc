// Schedules, by which experiments are started again and again: list, create, get, apply, delete;
// suspend, resume, and start one now.
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/shirabe/v1/http.pb.h"
#include "proto/shirabe/v1/schedule.pb.h"
#include "schedule/parse_schedule.h"
#include "service/http/http_body.h"
#include "service/http/http_message.h"
#include "service/http/route_table.h"
#include "view/schedule_text.h"

namespace shirabe::service {
namespace {

constexpr char kAllSchedules[] = "/api/v1/schedules";
constexpr char kSchedules[] = "/api/v1/namespaces/{namespace}/schedules";
constexpr char kSchedulePath[] = "/api/v1/namespaces/{namespace}/schedules/{name}";

v1::ExperimentRef ReferenceOf(const ExperimentKey& key) {
  v1::ExperimentRef reference;
  reference.set_namespace_(key.ns);
  reference.set_name(key.name);
  return reference;
}

StatusOr<v1::ScheduledExperiment> ReadSchedule(const Call& call, const ExperimentKey& key) {
  return call.client->Get<v1::ScheduledExperiment>("GetSchedule", ReferenceOf(key));
}

StatusOr<HttpReply> ListSchedules(Call& call) {
  std::string ns = call.Text("namespace");
  if (ns.empty()) ns = call.principal.ns;  // of a user: what they may see
  ASSIGN_OR_RETURN(const int64_t revision, call.client->Revision());
  ASSIGN_OR_RETURN(const PagePosition position, ReadPosition(call));
  ASSIGN_OR_RETURN(const auto schedules, call.client->List<v1::ScheduledExperiment>(
                                             "ListSchedules", ReferenceOf({ns, ""})));
  const auto place = [](const v1::ScheduledExperiment& schedule) {
    const ExperimentKey key = schedule::KeyOf(schedule);
    return PageKey{{}, Json::array({key.ns, key.name})};
  };
  return PageReply(SlicePage(call, position, schedules, PageForm{place, view::ScheduleJson}),
                   revision);
}

StatusOr<HttpReply> GetSchedule(Call& call) {
  ASSIGN_OR_RETURN(const auto schedule, ReadSchedule(call, call.Experiment()));
  return JsonReply(view::ScheduleJson(schedule));
}

// The body as one schedule, in the namespace of the path.
StatusOr<v1::ScheduledExperiment> ReadScheduleBody(const Call& call) {
  std::vector<schedule::ParsedSchedule> parsed = schedule::ParseSchedules(call.request.body);
  if (parsed.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the body must be one ScheduledExperiment, with kind: ScheduledExperiment, in YAML or ",
        "JSON; it holds ", parsed.size()));
  }
  if (experiment::HasErrors(parsed[0].findings)) {
    return BadSpec("the schedule is not valid", parsed[0].findings);
  }
  v1::ScheduledExperiment& schedule = parsed[0].schedule;
  const std::string ns = call.Text("namespace");
  const std::string named = NamedNamespace(call.request.body);
  if (!named.empty() && named != ns) {
    return BadField("metadata.namespace",
                    absl::StrCat("is ", named, ", but the URL says ", ns, ": leave it out"));
  }
  schedule.mutable_metadata()->set_namespace_(ns);
  return std::move(schedule);
}

StatusOr<HttpReply> SubmitSchedule(Call& call, v1::ScheduledExperiment schedule, bool absent) {
  const ExperimentKey key = schedule::KeyOf(schedule);
  v1::SubmitScheduleRequest request;
  *request.mutable_schedule() = std::move(schedule);
  request.set_absent(absent);
  ASSIGN_OR_RETURN(const auto submitted,
                   call.client->Get<v1::SubmitReply>("SubmitSchedule", request));
  ASSIGN_OR_RETURN(const auto stored, ReadSchedule(call, key));
  HttpReply reply = JsonReply(view::ScheduleJson(stored), submitted.created() ? 201 : 200);
  if (submitted.created()) {
    reply.headers.emplace_back(
        "Location", absl::StrCat("/api/v1/namespaces/", key.ns, "/schedules/", key.name));
  }
  return reply;
}

StatusOr<HttpReply> CreateSchedule(Call& call) {
  ASSIGN_OR_RETURN(v1::ScheduledExperiment schedule, ReadScheduleBody(call));
  return SubmitSchedule(call, std::move(schedule), /*absent=*/true);
}

StatusOr<HttpReply> ApplySchedule(Call& call) {
  ASSIGN_OR_RETURN(v1::ScheduledExperiment schedule, ReadScheduleBody(call));
  if (schedule.metadata().name() != call.Text("name")) {
    return BadField("metadata.name", absl::StrCat("is ", schedule.metadata().name(),
                                                  ", but the URL says ", call.Text("name")));
  }
  return SubmitSchedule(call, std::move(schedule), /*absent=*/false);
}

StatusOr<HttpReply> DeleteSchedule(Call& call) {
  v1::DeleteScheduleRequest request;
  *request.mutable_schedule() = ReferenceOf(call.Experiment());
  RETURN_IF_ERROR(call.client->Get<v1::Done>("DeleteSchedule", request).status());
  return HttpReply{.status = 204, .type = ""};
}

template <v1::SteerScheduleRequest::Action kAction>
StatusOr<HttpReply> Steer(Call& call) {
  v1::SteerScheduleRequest request;
  *request.mutable_schedule() = ReferenceOf(call.Experiment());
  request.set_action(kAction);
  RETURN_IF_ERROR(call.client->Get<v1::SteerScheduleReply>("SteerSchedule", request).status());
  ASSIGN_OR_RETURN(const auto schedule, ReadSchedule(call, call.Experiment()));
  return JsonReply(view::ScheduleJson(schedule));
}

Route ScheduleList(const char* path, const char* id, const char* summary) {
  return {.method = "GET",
          .path = path,
          .id = id,
          .rpc = "ListSchedules",
          .summary = summary,
          .parameters = PageParameters(false),
          .results = {{.body = v1::ScheduledExperiment::descriptor(), .list = true}},
          .handle = ListSchedules};
}

Route SteerRoute(const char* word, const char* id, const char* summary) {
  return {.method = "POST",
          .path = absl::StrCat(kSchedulePath, ":", word),
          .id = id,
          .rpc = "SteerSchedule",
          .summary = summary,
          .results = {{.body = v1::ScheduledExperiment::descriptor()}}};
}

std::vector<Route> ScheduleRoutes() {
  using Request = v1::SteerScheduleRequest;
  const auto* schedule = v1::ScheduledExperiment::descriptor();
  Route suspend = SteerRoute("suspend", "suspendSchedule", "Starts no more experiments for now");
  suspend.handle = Steer<Request::SUSPEND>;
  Route resume = SteerRoute("resume", "resumeSchedule", "Starts experiments at their times again");
  resume.handle = Steer<Request::RESUME>;
  Route start = SteerRoute("start", "startSchedule",
                           "Starts an experiment now; its name is status.lastExperiment");
  start.handle = Steer<Request::START>;
  return {
      ScheduleList(kAllSchedules, "listAllSchedules",
                   "Lists the schedules of all namespaces, or of the caller's"),
      ScheduleList(kSchedules, "listSchedules", "Lists the schedules of a namespace"),
      {.method = "POST",
       .path = kSchedules,
       .id = "createSchedule",
       .rpc = "SubmitSchedule",
       .summary = "Creates a schedule from YAML or JSON; refuses if there is one of its name",
       .request = schedule,
       .results = {{.status = 201, .body = schedule}},
       .handle = CreateSchedule},
      {.method = "GET",
       .path = kSchedulePath,
       .id = "getSchedule",
       .rpc = "GetSchedule",
       .summary = "A schedule, with its status",
       .results = {{.body = schedule}},
       .handle = GetSchedule},
      {.method = "PUT",
       .path = kSchedulePath,
       .id = "applySchedule",
       .rpc = "SubmitSchedule",
       .summary = "Creates the schedule, or changes it to this",
       .request = schedule,
       .results = {{.status = 200, .body = schedule}, {.status = 201, .body = schedule}},
       .handle = ApplySchedule},
      {.method = "DELETE",
       .path = kSchedulePath,
       .id = "deleteSchedule",
       .rpc = "DeleteSchedule",
       .summary = "Deletes a schedule; the experiments that it has started stay",
       .results = {{.status = 204, .type = ""}},
       .handle = DeleteSchedule},
      std::move(suspend),
      std::move(resume),
      std::move(start),
  };
}

}  // namespace

SHIRABE_REGISTER(RouteGroup, {.name = "schedules", .routes = ScheduleRoutes});

}  // namespace shirabe::service
