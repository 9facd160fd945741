// Requests to whoever runs an experiment: pause, resume, stop, cancel, scale, and to try a trial
// again. They are noted, and acted upon within a second.
#include "absl/strings/str_cat.h"
#include "experiment/submit.h"
#include "proto/shirabe/v1/http.pb.h"
#include "service/http_body.h"
#include "service/http_errors.h"
#include "service/routes.h"

namespace shirabe::service {
namespace {

StatusOr<HttpReply> Send(Call& call, const v1::Intent& intent) {
  const ExperimentKey key = call.Experiment();
  RETURN_IF_ERROR(call.client->Send(key, intent));
  ASSIGN_OR_RETURN(const std::string holder, call.client->Holder(key));
  Json body = {
      {"message", holder.empty()
                      ? "noted; nobody runs the experiment now: it counts once somebody does"
                      : "noted; who runs the experiment acts on it within a second"}};
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
      !request.has_max_failed_trial_count()) {
    return absl::InvalidArgumentError(
        "give one of parallelTrialCount, maxTrialCount and maxFailedTrialCount");
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
  return Send(call, intent);
}

StatusOr<HttpReply> Retry(Call& call) {
  v1::Intent intent;
  intent.set_verb(v1::Intent::RETRY);
  intent.set_trial(call.Trial().number);
  return Send(call, intent);
}

Route IntentRoute(const std::string& path, const char* id, const char* summary,
                  StatusOr<HttpReply> (*handle)(Call&)) {
  return {.method = "POST",
          .path = path,
          .id = id,
          .summary = summary,
          .results = {{.status = 202, .body = v1::http::Noted::descriptor()}},
          .handle = handle};
}

}  // namespace

std::vector<Route> IntentRoutes() {
  const std::string one = kExperimentPath;
  std::vector<Route> routes = {
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
      IntentRoute(one + ":scale", "scaleExperiment",
                  "Changes the counts of an experiment, also while it runs", Scale),
      IntentRoute(one + "/trials/{trial}:retry", "retryTrial",
                  "Makes a new trial with the same point", Retry),
  };
  routes[4].request = v1::http::ScaleRequest::descriptor();
  return routes;
}

}  // namespace shirabe::service
