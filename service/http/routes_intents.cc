// Requests to the owner of an experiment: pause, resume, stop, cancel and scale it; try a point, or
// that of a trial again, and stop a trial; notes and tags. They are noted, and acted upon within a
// second.
#include <utility>

#include "proto/shirabe/v1/http.pb.h"
#include "service/http/http_body.h"
#include "service/http/http_message.h"
#include "service/http/route_table.h"

namespace shirabe::service {
namespace {

StatusOr<HttpReply> Send(Call& call, const v1::Intent& intent) {
  const ExperimentKey key = call.Experiment();
  RETURN_IF_ERROR(call.client->Send(key, intent));
  ASSIGN_OR_RETURN(const std::string holder, call.client->Holder(key));
  const char* unowned =
      intent.verb() == v1::Intent::ANNOTATE
          ? "written"
          : "accepted; no process runs the experiment now: it takes effect once one does";
  Json body = {
      {"message", holder.empty()
                      ? unowned
                      : "accepted; the owner of the experiment acts on it within a second"}};
  if (!holder.empty()) body["holder"] = holder;
  return JsonReply(body, 202);
}

template <v1::Intent::Verb kVerb>
StatusOr<HttpReply> SendVerb(Call& call) {
  v1::Intent intent;
  intent.set_verb(kVerb);
  return Send(call, intent);
}

StatusOr<HttpReply> Scale(Call& call) {
  v1::http::ScaleRequest request;
  RETURN_IF_ERROR(ReadBody(call.request, request));
  if (!request.has_parallel_trial_count() && !request.has_max_trial_count() &&
      !request.has_max_failed_trial_count() && request.parameters().empty()) {
    return absl::InvalidArgumentError(
        "give one of parallelTrialCount, maxTrialCount, maxFailedTrialCount and parameters");
  }
  v1::Intent intent;
  intent.set_verb(v1::Intent::SCALE);
  if (request.has_parallel_trial_count()) {
    intent.set_parallel_trial_count(request.parallel_trial_count());
  }
  if (request.has_max_trial_count()) intent.set_max_trial_count(request.max_trial_count());
  if (request.has_max_failed_trial_count()) {
    intent.set_max_failed_trial_count(request.max_failed_trial_count());
  }
  *intent.mutable_parameters() = std::move(*request.mutable_parameters());
  return Send(call, intent);
}

StatusOr<HttpReply> Retry(Call& call) {
  v1::Intent intent;
  intent.set_verb(v1::Intent::RETRY);
  intent.set_trial(call.Trial().number);
  return Send(call, intent);
}

// A trial's, or, on the path of an experiment, the experiment's.
int64_t TrialOf(const Call& call) {
  return call.parameters.contains("trial") ? call.Trial().number : 0;
}

StatusOr<HttpReply> StopTrial(Call& call) {
  v1::Intent intent;
  intent.set_verb(v1::Intent::STOP_TRIAL);
  intent.set_trial(TrialOf(call));
  return Send(call, intent);
}

StatusOr<HttpReply> Try(Call& call) {
  v1::http::TryRequest request;
  RETURN_IF_ERROR(ReadBody(call.request, request));
  v1::Intent intent;
  intent.set_verb(v1::Intent::TRY);
  intent.set_trial(request.like());
  *intent.mutable_point() = std::move(*request.mutable_parameters());
  return Send(call, intent);
}

StatusOr<HttpReply> Annotate(Call& call) {
  v1::http::AnnotateRequest request;
  RETURN_IF_ERROR(ReadBody(call.request, request));
  v1::Intent intent;
  intent.set_verb(v1::Intent::ANNOTATE);
  intent.set_trial(TrialOf(call));
  if (request.has_note()) intent.set_note(request.note());
  intent.mutable_add_tags()->Swap(request.mutable_add_tags());
  intent.mutable_remove_tags()->Swap(request.mutable_remove_tags());
  return Send(call, intent);
}

Route IntentRoute(const std::string& path, const char* id, const char* summary,
                  StatusOr<HttpReply> (*handle)(Call&)) {
  return {.method = "POST",
          .path = path,
          .id = id,
          .rpc = "SendIntent",
          .summary = summary,
          .results = {{.status = 202, .body = v1::http::Noted::descriptor()}},
          .handle = handle};
}

Route WithBody(Route route, const google::protobuf::Descriptor* body) {
  route.request = body;
  return route;
}

std::vector<Route> IntentRoutes() {
  const std::string one = kExperimentPath;
  return {
      IntentRoute(one + ":pause", "pauseExperiment",
                  "Starts no new trials; running ones go on. :resume undoes it",
                  SendVerb<v1::Intent::PAUSE>),
      IntentRoute(one + ":resume", "resumeExperiment", "Goes on after a pause",
                  SendVerb<v1::Intent::RESUME>),
      IntentRoute(one + ":stop", "stopExperiment",
                  "Ends an experiment: running trials may save, then stop. Final",
                  SendVerb<v1::Intent::STOP>),
      IntentRoute(one + ":cancel", "cancelExperiment",
                  "Ends an experiment and its trials at once. Final", SendVerb<v1::Intent::CANCEL>),
      IntentRoute(one + "/trials/{trial}:retry", "retryTrial",
                  "Makes a new trial with the same point", Retry),
      IntentRoute(one + "/trials/{trial}:stop", "stopTrial",
                  "Ends a trial early; its best value counts", StopTrial),
      WithBody(
          IntentRoute(one + ":scale", "scaleExperiment",
                      "Changes the counts of an experiment, and ranges of its parameters, also "
                      "while it runs",
                      Scale),
          v1::http::ScaleRequest::descriptor()),
      WithBody(IntentRoute(
                   one + ":try", "tryPoint",
                   "Makes a new trial with these values, before what the algorithm proposes", Try),
               v1::http::TryRequest::descriptor()),
      WithBody(IntentRoute(one + ":annotate", "annotateExperiment",
                           "Changes the note and the tags of an experiment", Annotate),
               v1::http::AnnotateRequest::descriptor()),
      WithBody(IntentRoute(one + "/trials/{trial}:annotate", "annotateTrial",
                           "Changes the note and the tags of a trial", Annotate),
               v1::http::AnnotateRequest::descriptor()),
  };
}

}  // namespace

SHIRABE_REGISTER(RouteGroup, {.name = "intents", .routes = IntentRoutes});

}  // namespace shirabe::service
