// Trials and what belongs to them: attempts, observations, checkpoints, events, logs.
#include "absl/strings/str_cat.h"
#include "proto/shirabe/v1/http.pb.h"
#include "service/http/http_body.h"
#include "service/http/http_message.h"
#include "service/http/route_table.h"
#include "view/record_filter.h"

namespace shirabe::service {
namespace {

const char* const kExperiment = "/api/v1/namespaces/{namespace}/experiments/{name}";
const char* const kTrial = "/api/v1/namespaces/{namespace}/experiments/{name}/trials/{trial}";

using Selection = view::Selection<v1::Trial>;

struct TrialPage {
  std::vector<v1::Trial> trials;
  int64_t next = 0;
};

// In the order of their numbers: read on until the page is full, so that a filter that admits few
// does not make many empty pages.
StatusOr<TrialPage> PageByNumber(Call& call, const Selection& selection) {
  ASSIGN_OR_RETURN(const int64_t after, ReadPageToken(call));
  const auto size = static_cast<size_t>(call.Integer("pageSize", kDefaultPageSize));
  db::TrialQuery query{.experiment = call.Experiment(), .after_number = after};
  query.limit = static_cast<int64_t>(size) + 1;
  TrialPage page;
  for (;;) {
    ASSIGN_OR_RETURN(auto trials, call.client->ListTrials(query));
    const bool last = static_cast<int64_t>(trials.size()) < query.limit;
    for (v1::Trial& trial : trials) {
      if (!selection.Matches(trial)) continue;
      if (page.trials.size() == size) {
        page.next = page.trials.back().number();
        return page;
      }
      page.trials.push_back(std::move(trial));
    }
    if (last) return page;
    query.after_number = trials.back().number();
  }
}

StatusOr<HttpReply> ListTrials(Call& call) {
  const ExperimentKey key = call.Experiment();
  ASSIGN_OR_RETURN(const int64_t revision, call.client->Revision());
  ASSIGN_OR_RETURN(const v1::Experiment experiment, call.client->GetExperiment(key));
  ASSIGN_OR_RETURN(const Selection selection, SelectionOf(call, view::TrialFields(experiment)));
  const view::TrialRenderer view(experiment);
  if (selection.sorts()) {
    ASSIGN_OR_RETURN(auto trials, call.client->ListTrials({.experiment = key}));
    selection.Apply(trials, -1);
    ASSIGN_OR_RETURN(const PagePosition position, ReadPosition(call));
    const auto place = [&](const v1::Trial& trial) {
      return PageKey{selection.OrderOf(trial), Json::array({trial.number()})};
    };
    return PageReply(SlicePage(call, position, trials, PageForm{place, view}), revision);
  }
  ASSIGN_OR_RETURN(const TrialPage found, PageByNumber(call, selection));
  Page page;
  if (found.next > 0) page.next = PageToken(found.next);
  for (const v1::Trial& trial : found.trials) page.items.push_back(view(trial));
  return PageReply(std::move(page), revision);
}

StatusOr<HttpReply> GetTrial(Call& call) {
  ASSIGN_OR_RETURN(const v1::Trial trial, call.client->GetTrial(call.Trial()));
  ASSIGN_OR_RETURN(const v1::Experiment experiment,
                   call.context.client->GetExperiment(call.Experiment()));
  return JsonReply(view::TrialRenderer(experiment)(trial));
}

StatusOr<HttpReply> Attempts(Call& call) {
  db::AttemptQuery query{.experiment = call.Experiment(), .open_only = call.Flag("open")};
  ASSIGN_OR_RETURN(const int64_t revision, call.client->Revision());
  if (call.parameters.contains("trial")) {
    query.trial = call.Trial().number;
    RETURN_IF_ERROR(call.client->GetTrial(call.Trial()).status());
  } else {
    RETURN_IF_ERROR(call.client->GetExperiment(call.Experiment()).status());
  }
  ASSIGN_OR_RETURN(const PagePosition position, ReadPosition(call));
  ASSIGN_OR_RETURN(const auto attempts, call.client->ListAttempts(query));
  const absl::Time now = call.context.clock->Now();
  const auto place = [](const v1::Attempt& attempt) {
    return PageKey{{}, Json::array({attempt.trial(), attempt.number()})};
  };
  const auto view = [&](const v1::Attempt& attempt) {
    const TrialKey trial{call.Experiment(), attempt.trial()};
    return view::AttemptJson(
        attempt, {.log = call.client->LogLocation({trial, attempt.number()}), .now = now});
  };
  return PageReply(SlicePage(call, position, attempts, PageForm{place, view}), revision);
}

StatusOr<HttpReply> Checkpoints(Call& call) {
  ASSIGN_OR_RETURN(const int64_t revision, call.context.client->Revision());
  RETURN_IF_ERROR(call.client->GetTrial(call.Trial()).status());
  ASSIGN_OR_RETURN(const auto checkpoints, call.client->ListCheckpoints(call.Trial()));
  ASSIGN_OR_RETURN(const PagePosition position, ReadPosition(call));
  const auto place = [](const v1::Checkpoint& checkpoint) {
    return PageKey{{}, Json::array({checkpoint.attempt(), checkpoint.step()})};
  };
  return PageReply(SlicePage(call, position, checkpoints, PageForm{place, view::CheckpointJson}),
                   revision);
}

StatusOr<HttpReply> Observations(Call& call) {
  const TrialKey trial = call.Trial();
  ASSIGN_OR_RETURN(const int64_t revision, call.context.client->Revision());
  RETURN_IF_ERROR(call.client->GetTrial(trial).status());
  ASSIGN_OR_RETURN(const auto rows,
                   call.client->ListObservations({.trial = trial,
                                                  .metric = call.Text("metric"),
                                                  .include_superseded = call.Flag("allAttempts")}));
  ASSIGN_OR_RETURN(const PagePosition position, ReadPosition(call));
  const auto place = [](const db::StoredObservation& row) {
    return PageKey{{}, Json::array({row.attempt, row.step, row.metric})};
  };
  const auto view = [&](const db::StoredObservation& row) {
    return view::ObservationJson(trial, row);
  };
  return PageReply(SlicePage(call, position, rows, PageForm{place, view}), revision);
}

// Of an experiment and its trials, or of one trial; the page's token is an event's id.
StatusOr<HttpReply> Events(Call& call) {
  ASSIGN_OR_RETURN(const int64_t revision, call.client->Revision());
  RETURN_IF_ERROR(call.client->GetExperiment(call.Experiment()).status());
  ASSIGN_OR_RETURN(const int64_t after, ReadPageToken(call));
  const int64_t trial = call.Integer("trial", 0);
  const auto size = static_cast<size_t>(call.Integer("pageSize", kDefaultPageSize));
  ASSIGN_OR_RETURN(const auto events,
                   call.client->ListEvents({.experiment = call.Experiment(), .after_id = after}));
  Page page;
  int64_t last = 0;  // of the page
  for (const v1::Event& event : events) {
    if (trial > 0 && event.trial() != trial) continue;
    if (page.items.size() == size) {
      page.next = PageToken(last);
      break;
    }
    page.items.push_back(view::EventJson(event));
    last = event.id();
  }
  return PageReply(std::move(page), revision);
}

Route TrialListRoute(const std::string& path, const char* id, const char* summary,
                     const google::protobuf::Descriptor* item) {
  return {.method = "GET",
          .path = path,
          .id = id,
          .summary = summary,
          .parameters = PageParameters(false),
          .results = {{.body = item, .list = true}}};
}

Route TrialsRoute() {
  Route route = TrialListRoute(std::string(kExperiment) + "/trials", "listTrials",
                               "Lists the trials of an experiment", v1::http::Trial::descriptor());
  route.parameters = PageParameters(true);
  route.rpc = "ListTrials";
  route.handle = ListTrials;
  return route;
}

Route AttemptsRoute(const std::string& of, const char* id, const char* summary) {
  Route route = TrialListRoute(of + "/attempts", id, summary, v1::http::Attempt::descriptor());
  route.parameters.push_back({.name = "open",
                              .help = "only those that have not ended",
                              .type = Parameter::Type::kBoolean});
  route.rpc = "ListAttempts";
  route.handle = Attempts;
  return route;
}

Route ObservationsRoute() {
  Route route = TrialListRoute(std::string(kTrial) + "/observations", "listObservations",
                               "Lists the metric values of a trial, by attempt, step and metric",
                               v1::http::Observation::descriptor());
  route.parameters.push_back({.name = "metric", .help = "only those of this metric"});
  route.parameters.push_back({.name = "allAttempts",
                              .help = "also values that a later attempt has run again",
                              .type = Parameter::Type::kBoolean});
  route.rpc = "ListObservations";
  route.handle = Observations;
  return route;
}

Route EventsRoute(const std::string& of, const char* id, const char* summary) {
  Route route = TrialListRoute(of + "/events", id, summary, v1::http::Event::descriptor());
  route.rpc = "ListEvents";
  route.handle = Events;
  return route;
}

Route CheckpointsRoute() {
  Route route =
      TrialListRoute(std::string(kTrial) + "/checkpoints", "listCheckpoints",
                     "Lists the checkpoints of a trial", v1::http::Checkpoint::descriptor());
  route.rpc = "ListCheckpoints";
  route.handle = Checkpoints;
  return route;
}

std::vector<Route> TrialRoutes() {
  return {
      TrialsRoute(),
      {.method = "GET",
       .path = kTrial,
       .id = "getTrial",
       .rpc = "GetTrial",
       .summary = "A trial, with its status",
       .results = {{.body = v1::http::Trial::descriptor()}},
       .handle = GetTrial},
      AttemptsRoute(kExperiment, "listAttempts", "Lists the attempts of all trials"),
      AttemptsRoute(kTrial, "listTrialAttempts", "Lists the attempts of a trial"),
      CheckpointsRoute(),
      ObservationsRoute(),
      EventsRoute(kExperiment, "listEvents", "Lists what happened to an experiment"),
      EventsRoute(kTrial, "listTrialEvents", "Lists what happened to a trial"),
  };
}

}  // namespace

SHIRABE_REGISTER(RouteGroup, {.name = "trials", .routes = TrialRoutes});

}  // namespace shirabe::service
