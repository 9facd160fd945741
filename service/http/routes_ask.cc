// Ask and tell, suggestions, and reports of trials.
#include <algorithm>
#include <cmath>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/text/number.h"
#include "client/wire_format.h"
#include "experiment/submission.h"
#include "proto/shirabe/v1/http.pb.h"
#include "service/common/long_polls.h"
#include "service/http/http_body.h"
#include "service/http/http_message.h"
#include "service/http/route_table.h"

namespace shirabe::service {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;

constexpr double kDefaultWait = 20;  // seconds
constexpr double kMaxWait = 60;
constexpr int64_t kDefaultCount = 5;
constexpr int64_t kLargestCount = 1000;

Json TypedParametersJson(const v1::Trial& trial) {
  Json parameters = Json::object();
  for (const v1::Assignment& assignment : trial.assignments()) {
    parameters[assignment.name()] = view::TypedValue(assignment);
  }
  return parameters;
}

StatusOr<Json> AskedJson(const v1::AskReply& asked, const ExperimentKey& key,
                         client::Client& client) {
  Json body = Json::object();
  if (asked.has_trial()) {
    ASSIGN_OR_RETURN(const auto experiment, client.GetExperiment(key));
    body["trial"] = view::TrialRenderer(experiment)(asked.trial());
    body["parameters"] = TypedParametersJson(asked.trial());
    body["attempt"] = asked.attempt();
    body["token"] = absl::BytesToHexString(asked.token());
  } else {
    body["reason"] = asked.reason();
  }
  body["ended"] = asked.ended();
  return body;
}

StatusOr<HttpReply> ReplyTo(const v1::AskReply& asked, PendingAskCheck& ask) {
  ASSIGN_OR_RETURN(const Json body, AskedJson(asked, ask.key(), ask.client()));
  return JsonReply(body);
}

class PendingAsk : public PendingReply {
 public:
  PendingAsk(PendingAskCheck ask, Quota::Share share, absl::Duration patience)
      : PendingReply({.experiment = ask.key(), .patience = patience}),
        ask_(std::move(ask)),
        share_(std::move(share)) {}
  std::optional<StatusOr<HttpReply>> TryAnswer(bool last) override {
    const auto asked = ask_.TryAnswer(last);
    if (!asked) return std::nullopt;
    if (!asked->ok()) return asked->status();
    return ReplyTo(**asked, ask_);
  }

 private:
  PendingAskCheck ask_;
  const Quota::Share share_;
};

StatusOr<HttpReply> Ask(Call& call) {
  v1::http::AskRequest request;
  RETURN_IF_ERROR(ReadBody(call.request, request));
  const double wait = request.has_wait_seconds() ? request.wait_seconds() : kDefaultWait;
  if (wait > kMaxWait) return BadField("waitSeconds", "must be at most 60: ask again after it");
  ASSIGN_OR_RETURN(Quota::Share share, call.AcquireWait());
  PendingAskCheck ask(std::move(call.client), call.Experiment(), request.caller());
  ASSIGN_OR_RETURN(const v1::AskReply asked, ask.Begin());
  if (!asked.pending() || wait <= 0) return ReplyTo(asked, ask);
  HttpReply reply;
  reply.pending =
      std::make_unique<PendingAsk>(std::move(ask), std::move(share), absl::Seconds(wait));
  return reply;
}

// A number, or the text of one, which JSON needs for NaN and infinities.
StatusOr<double> NumberOf(const std::string& field, const Value& value) {
  if (value.kind_case() == Value::kNumberValue) return value.number_value();
  if (value.kind_case() == Value::kStringValue) {
    if (const auto number = ParseNumber(value.string_value())) return *number;
  }
  return BadField(field, "must be a number, or one as text (\"NaN\")");
}

struct When {
  std::optional<int64_t> step;
  absl::Time time;
};

Status AddPoints(const std::string& path, const Struct& metrics, const When& when,
                 experiment::Report& report) {
  for (const auto& [name, value] : metrics.fields()) {
    ASSIGN_OR_RETURN(const double number, NumberOf(path + "." + name, value));
    report.points.push_back({.metric = name,
                             .value = number,
                             .step = when.step.value_or(0),
                             .implicit_step = !when.step,
                             .time = when.time});
  }
  return absl::OkStatus();
}

Status ParsePoints(const v1::http::TellRequest& request, absl::Time now,
                   experiment::Report& report) {
  When when{.time = now};
  if (request.has_step()) when.step = request.step();
  RETURN_IF_ERROR(AddPoints("metrics", request.metrics(), when, report));
  for (int i = 0; i < request.points_size(); ++i) {
    const v1::http::TellPoint& point = request.points(i);
    When its{.time = point.has_time() ? FromProto(point.time()) : now};
    if (point.has_step()) its.step = point.step();
    RETURN_IF_ERROR(
        AddPoints(absl::StrCat("points[", i, "].metrics"), point.metrics(), its, report));
  }
  return absl::OkStatus();
}

// Hexadecimal, as ask gave it.
Status ParseAttemptToken(const std::string& text, experiment::Report& report) {
  const bool hex =
      text.size() % 2 == 0 && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
      });
  if (!hex) return BadField("token", "must be what ask gave: hexadecimal digits");
  report.token = absl::HexStringToBytes(text);
  return absl::OkStatus();
}

experiment::Report::End EndOf(v1::http::TellEnd end) {
  using End = experiment::Report::End;
  return end == v1::http::COMPLETED ? End::kCompleted
         : end == v1::http::FAILED  ? End::kFailed
                                    : End::kNone;
}

StatusOr<HttpReply> Tell(Call& call) {
  v1::http::TellRequest request;
  RETURN_IF_ERROR(ReadBody(call.request, request));
  experiment::Report report{.trial = call.Trial(),
                            .attempt = request.attempt(),
                            .end = EndOf(request.end()),
                            .message = request.message(),
                            .next_for = request.next_for()};
  RETURN_IF_ERROR(ParsePoints(request, call.context.clock->Now(), report));
  RETURN_IF_ERROR(ParseAttemptToken(request.token(), report));
  if (report.points.empty() && report.end == experiment::Report::End::kNone) {
    return absl::InvalidArgumentError("the report is empty: give metrics, points or end");
  }
  ASSIGN_OR_RETURN(const auto told,
                   call.client->Get<v1::TellReply>("Tell", client::ToWire(report)));
  Json body = Json::object();
  if (!told.stop().empty()) body["stop"] = told.stop();
  if (told.ignored()) body["ignored"] = true;
  if (told.has_next()) {
    ASSIGN_OR_RETURN(body["next"], AskedJson(told.next(), report.trial.experiment, *call.client));
  }
  return JsonReply(body);
}

StatusOr<HttpReply> SuggestFor(Call& call, const v1::Experiment& experiment) {
  const auto count = static_cast<int>(call.Integer("count", kDefaultCount));
  ASSIGN_OR_RETURN(const auto suggested, call.client->Suggest(experiment, count));
  Json items = Json::array();
  for (const v1::SuggestReply::Point& point : suggested.points()) {
    items.push_back(view::CandidateJson(point));
  }
  Json body = {{"items", std::move(items)}};
  if (!suggested.reason().empty()) body["reason"] = suggested.reason();
  return JsonReply(body);
}

StatusOr<HttpReply> SuggestStored(Call& call) {
  ASSIGN_OR_RETURN(const auto experiment, call.client->GetExperiment(call.Experiment()));
  return SuggestFor(call, experiment);
}

StatusOr<HttpReply> SuggestNew(Call& call) {
  ASSIGN_OR_RETURN(const ReadExperiment read, ReadExperimentBody(call.request, call.principal.ns));
  return SuggestFor(call, read.experiment);
}

const Parameter kCount{.name = "count",
                       .help = "how many points",
                       .type = Parameter::Type::kInteger,
                       .min = 1,
                       .max = kLargestCount,
                       .default_value = std::to_string(kDefaultCount)};

std::vector<Route> AskRoutes() {
  const std::string one = kExperimentPath;
  const auto* candidates = v1::http::Candidates::descriptor();
  return {
      {.method = "POST",
       .path = one + ":ask",
       .id = "ask",
       .rpc = "Ask",
       .summary = "The trial that the caller is to run: the one that it has open, or a new one",
       .request = v1::http::AskRequest::descriptor(),
       .results = {{.body = v1::http::Asked::descriptor()}},
       .slow = true,
       .handle = Ask},
      {.method = "POST",
       .path = one + "/trials/{trial}:tell",
       .id = "tell",
       .rpc = "Tell",
       .summary = "Metric values of a trial, with or without its end. Stored when it answers; "
                  "sending it again changes nothing. With nextFor it asks as well: one request for "
                  "each trial of a search",
       .request = v1::http::TellRequest::descriptor(),
       .results = {{.body = v1::http::Told::descriptor()}},
       .slow = true,
       .handle = Tell},
      {.method = "GET",
       .path = one + "/suggestions",
       .id = "suggest",
       .rpc = "Suggest",
       .summary = "The points that the algorithm would try next. Nothing is stored",
       .parameters = {kCount},
       .results = {{.body = candidates}},
       .slow = true,
       .handle = SuggestStored},
      {.method = "POST",
       .path = "/api/v1/suggest",
       .id = "suggestFor",
       .rpc = "Suggest",
       .summary = "The first points of an experiment that is not stored",
       .parameters = {kCount},
       .request = v1::Experiment::descriptor(),
       .results = {{.body = candidates}},
       .slow = true,
       .handle = SuggestNew},
  };
}

}  // namespace

SHIRABE_REGISTER(RouteGroup, {.name = "ask", .routes = AskRoutes});

}  // namespace shirabe::service
