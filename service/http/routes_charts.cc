// What charts draw: columns, curves, summaries and capacity.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/text/number.h"
#include "client/charts/capacity_reader.h"
#include "client/charts/curve_reader.h"
#include "client/charts/summary_board.h"
#include "proto/shirabe/v1/charts.pb.h"
#include "service/common/suggestion_scheduler.h"
#include "service/http/etag.h"
#include "service/http/http_body.h"
#include "service/http/route_table.h"
#include "view/chart_json.h"

namespace shirabe::service {
namespace {

constexpr size_t kSentAtOnce = 256 << 10;
constexpr int64_t kManyRows = 100'000'000;

// ---- numbers in binary -------------------------------------------------------------------------

// A large body that is there already, sent piece by piece; its bytes are counted among the caller's
// until the reader has them.
class BytesSource : public PieceSource {
 public:
  BytesSource(std::string bytes, Quota::Share share)
      : bytes_(std::move(bytes)), share_(std::move(share)) {}

  StatusOr<Piece> Next() override {
    Piece piece{.text = bytes_.substr(sent_, kSentAtOnce)};
    sent_ += piece.text.size();
    piece.end = sent_ == bytes_.size();
    return piece;
  }

 private:
  const std::string bytes_;
  const Quota::Share share_;
  size_t sent_ = 0;
};

StatusOr<HttpReply> SendBytes(const Call& call, std::string bytes, const std::string& etag) {
  HttpReply reply{.type = view::kColumnsType};
  reply.headers.emplace_back("ETag", etag);
  if (bytes.size() <= kSentAtOnce) {
    reply.body = std::move(bytes);
    return reply;
  }
  Quotas* quotas = call.context.quotas;
  auto share = Quota::Acquire(quotas == nullptr ? nullptr : &quotas->charts, call.caller,
                              static_cast<int64_t>(bytes.size()));
  if (!share.ok()) return TooMany(share.status());
  reply.source = std::make_unique<BytesSource>(std::move(bytes), *std::move(share));
  return reply;
}

// ---- columns -----------------------------------------------------------------------------------

// The field of a line of CSV (RFC 4180) that begins at `at`, which then stands behind it: one with
// a comma or a quote stands in quotes, and a quote within it twice.
StatusOr<std::string> ReadField(const std::string& text, size_t& at) {
  std::string field;
  if (at == text.size() || text[at] != '"') {
    const size_t end = std::min(text.find(',', at), text.size());
    field = text.substr(at, end - at);
    at = end;
    return field;
  }
  for (++at; at < text.size(); ++at) {
    const bool twice = text[at] == '"' && at + 1 < text.size() && text[at + 1] == '"';
    if (text[at] == '"' && !twice) break;
    if (twice) ++at;
    field += text[at];
  }
  if (at == text.size()) return BadField("fields", "a quote is not closed in: " + text);
  ++at;
  if (at == text.size() || text[at] == ',') return field;
  return BadField("fields", "after a closing quote stands a comma, or nothing, not: " + text);
}

StatusOr<std::vector<std::string>> SplitFields(const std::string& text) {
  std::vector<std::string> fields;
  for (size_t at = 0; !text.empty(); ++at) {
    ASSIGN_OR_RETURN(fields.emplace_back(), ReadField(text, at));
    if (at == text.size()) break;
  }
  return fields;
}

std::string TokenOf(const v1::RowPosition& position) {
  return absl::StrCat("c", position.trial(), ".", position.attempt());
}

StatusOr<v1::RowPosition> ReadToken(const std::string& token) {
  v1::RowPosition position;
  if (token.empty()) return position;
  const std::vector<std::string> parts = absl::StrSplit(token.substr(1), '.');
  int64_t trial = 0;
  int32_t attempt = 0;
  const bool read = parts.size() == 2 && absl::SimpleAtoi(parts[0], &trial) &&
                    absl::SimpleAtoi(parts[1], &attempt);
  position.set_trial(trial);
  position.set_attempt(attempt);
  if (read && trial >= 0 && attempt >= 0 && TokenOf(position) == token) return position;
  return BadField("pageToken", "is none of ours: take nextPageToken of the page before");
}

// Errors of a method that are about its request, by the parameter that they begin with.
Status AsField(const Status& status, const std::vector<std::string>& parameters,
               const std::string& otherwise) {
  if (!absl::IsInvalidArgument(status)) return status;
  const std::string message = Message(status);
  for (const std::string& name : parameters) {
    if (message.rfind(name + " ", 0) == 0) return BadField(name, message.substr(name.size() + 1));
  }
  return BadField(otherwise, message);
}

StatusOr<HttpReply> Columns(Call& call, const char* method) {
  v1::ColumnsRequest request;
  request.set_namespace_(call.Text("namespace"));
  request.set_experiment(call.Text("name"));
  request.set_since(call.Integer("since", 0));
  request.set_limit(call.Integer("pageSize", 0));
  request.set_known(KnownVersion(call.request));
  ASSIGN_OR_RETURN(const std::vector<std::string> fields, SplitFields(call.Text("fields")));
  request.mutable_fields()->Assign(fields.begin(), fields.end());
  ASSIGN_OR_RETURN(*request.mutable_after(), ReadToken(call.Text("pageToken")));
  const auto columns = call.client->Get<v1::Columns>(method, request);
  if (!columns.ok()) return AsField(columns.status(), {"since"}, "fields");
  const std::string etag = EtagOf(columns->version());
  if (IsKnown(call.request, etag)) return NotModified(etag);
  const std::string next = columns->has_next() ? TokenOf(columns->next()) : "";
  return SendBytes(call, view::PackColumns(*columns, request.since(), next), etag);
}

StatusOr<HttpReply> TrialColumns(Call& call) { return Columns(call, "GetTrialColumns"); }
StatusOr<HttpReply> AttemptColumns(Call& call) { return Columns(call, "GetAttemptColumns"); }

// ---- curves ------------------------------------------------------------------------------------

StatusOr<std::optional<double>> AxisNumber(const Call& call, const std::string& name) {
  const std::string text = call.Text(name);
  if (text.empty()) return std::nullopt;
  const auto number = ParseNumber(text);
  if (!number) return BadField(name, "must be a number, not \"" + text + "\"");
  return *number;
}

Status ReadTrials(const Call& call, v1::CurvesRequest& request) {
  const std::string text = call.Text("trials");
  if (text.empty()) return absl::OkStatus();
  for (const auto part : absl::StrSplit(text, ',')) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(part, &number) || number < 1) {
      return BadField(
          "trials", absl::StrCat("must be numbers of trials parted by commas, not \"", part, "\""));
    }
    request.add_trials(number);
  }
  return absl::OkStatus();
}

StatusOr<HttpReply> Curves(Call& call) {
  v1::CurvesRequest request;
  request.set_namespace_(call.Text("namespace"));
  request.set_experiment(call.Text("name"));
  request.set_metric(call.Text("metric"));
  request.set_top(static_cast<int32_t>(call.Integer("top", 0)));
  request.set_pixels(static_cast<int32_t>(call.Integer("px", 0)));
  request.set_running(call.Flag("running"));
  request.set_logarithmic(call.Text("scale") == "log");
  request.set_axis(call.Text("axis") == "time" ? v1::CURVE_TIME : v1::CURVE_STEP);
  request.set_known(KnownVersion(call.request));
  RETURN_IF_ERROR(ReadTrials(call, request));
  ASSIGN_OR_RETURN(const auto from, AxisNumber(call, "from"));
  ASSIGN_OR_RETURN(const auto to, AxisNumber(call, "to"));
  if (from) request.set_from(*from);
  if (to) request.set_to(*to);
  const auto curves = call.client->Get<v1::Curves>("GetCurves", request);
  if (!curves.ok()) return AsField(curves.status(), {"trials", "from"}, "metric");
  const std::string etag = EtagOf(curves->version());
  if (IsKnown(call.request, etag)) return NotModified(etag);
  return SendBytes(call, view::PackCurves(*curves), etag);
}

// ---- summaries and capacity --------------------------------------------------------------------

HttpReply TaggedReply(const Json& body, const std::string& etag) {
  HttpReply reply = JsonReply(body);
  reply.headers.emplace_back("ETag", etag);
  return reply;
}

StatusOr<HttpReply> OneSummary(Call& call) {
  v1::SummaryRequest request;
  request.set_namespace_(call.Text("namespace"));
  request.set_experiment(call.Text("name"));
  request.set_known(KnownVersion(call.request));
  ASSIGN_OR_RETURN(const auto summary, call.client->Get<v1::Summary>("GetSummary", request));
  const std::string etag = EtagOf(summary.version());
  if (IsKnown(call.request, etag)) return NotModified(etag);
  return TaggedReply(view::SummaryJson(summary), etag);
}

// The namespace of the path; else that of a user, and of others all.
std::string NamespaceOf(const Call& call) {
  const std::string ns = call.Text("namespace");
  return ns.empty() ? call.principal.ns : ns;
}

StatusOr<HttpReply> Summaries(Call& call) {
  ASSIGN_OR_RETURN(const int64_t revision, call.client->Revision());
  ASSIGN_OR_RETURN(const PagePosition position, ReadPosition(call));
  v1::ListSummariesRequest request;
  request.set_namespace_(NamespaceOf(call));
  const int64_t since = call.Integer("since", 0);
  if (since > revision) {
    return absl::OutOfRangeError(absl::StrCat("since: revision ", since,
                                              " is not of this store, which is at ", revision,
                                              ": ask without it"));
  }
  ASSIGN_OR_RETURN(auto summaries, call.client->List<v1::Summary>("ListSummaries", request));
  std::erase_if(summaries, [&](const v1::Summary& summary) {
    return since > 0 && client::RevisionOf(summary) <= since;
  });
  const auto place = [](const v1::Summary& summary) {
    return PageKey{{}, Json::array({summary.namespace_(), summary.name()})};
  };
  return PageReply(SlicePage(call, position, summaries, PageForm{place, view::SummaryJson}),
                   revision);
}

StatusOr<HttpReply> Capacity(Call& call) {
  v1::CapacityRequest request;
  request.set_namespace_(NamespaceOf(call));
  request.set_hours(static_cast<int32_t>(call.Integer("hours", 0)));
  request.set_known(KnownVersion(call.request));
  ASSIGN_OR_RETURN(const auto report, call.client->Get<v1::CapacityReport>("GetCapacity", request));
  const std::string etag = EtagOf(report.version());
  if (IsKnown(call.request, etag)) return NotModified(etag);
  return TaggedReply(view::CapacityJson(report), etag);
}

// ---- the table ---------------------------------------------------------------------------------

const char* const kAll = "/api/v1/";
const char* const kOfNamespace = "/api/v1/namespaces/{namespace}/";

Parameter Integer(const char* name, const char* help, int64_t min, int64_t max) {
  return {.name = name, .help = help, .type = Parameter::Type::kInteger, .min = min, .max = max};
}

Route ColumnsRoute(const std::string& path, const char* rpc, const char* summary) {
  Route route{.method = "GET", .path = kExperimentPath + path, .rpc = rpc, .summary = summary};
  route.parameters = {
      {.name = "fields",
       .help = "columns by name, parted by commas, as a line of CSV; without it all but details"},
      {.name = "since",
       .help = "the revision of an earlier reply: only rows that have changed since",
       .type = Parameter::Type::kInteger},
      Integer("pageSize", "rows; without it as many as fit into 8 MB", 1, kManyRows),
      {.name = "pageToken", .help = "nextPageToken of the page before"}};
  route.results = {{.type = view::kColumnsType}};
  route.slow = true;
  return route;
}

Route CurvesRoute() {
  Route route{.method = "GET",
              .path = std::string(kExperimentPath) + "/curves",
              .id = "getCurves",
              .rpc = "GetCurves",
              .summary =
                  "Learning curves with at most two points for each pixel; of the ten best "
                  "and the running trials, if it is not said of which"};
  route.parameters = {
      {.name = "metric", .help = "the metric; without it the objective"},
      {.name = "trials", .help = "numbers of trials, parted by commas"},
      Integer("top", "so many of the best trials", 1, client::CurveReader::kMaxTrials),
      {.name = "running", .help = "also those that run", .type = Parameter::Type::kBoolean},
      Integer("px", "width of the picture; 1,000 without it", 1, client::CurveReader::kMaxPixels),
      {.name = "axis",
       .help = "steps, or seconds since the trial started",
       .words = {"step", "time"},
       .default_value = "step"},
      {.name = "scale",
       .help = "of the axis",
       .words = {"linear", "log"},
       .default_value = "linear"},
      {.name = "from", .help = "where the axis begins"},
      {.name = "to", .help = "where it ends"}};
  route.results = {{.type = view::kColumnsType}};
  route.slow = true;
  route.handle = Curves;
  return route;
}

Route SummaryRoute() {
  return {.method = "GET",
          .path = std::string(kExperimentPath) + "/summary",
          .id = "getSummary",
          .rpc = "GetSummary",
          .summary = "How an experiment is getting on: counts, best, cost, time left",
          .results = {{.body = v1::Summary::descriptor()}},
          .handle = OneSummary};
}

Route SummariesRoute(const char* of, const char* id) {
  Route route{.method = "GET",
              .path = absl::StrCat(of, "summaries"),
              .id = id,
              .rpc = "ListSummaries",
              .summary = "How experiments are getting on, by namespace and name",
              .parameters = PageParameters(false),
              .results = {{.body = v1::Summary::descriptor(), .list = true}},
              .slow = true,
              .handle = Summaries};
  route.parameters.push_back({.name = "since",
                              .help = "the revision of an earlier reply: only what has changed",
                              .type = Parameter::Type::kInteger});
  return route;
}

Route CapacityRoute(const char* of, const char* id) {
  return {.method = "GET",
          .path = absl::StrCat(of, "capacity"),
          .id = id,
          .rpc = "GetCapacity",
          .summary = "What runs where, what it costs, and how often machines were taken away",
          .parameters = {Integer("hours", "of the past; 24 without it", 1,
                                 client::CapacityReader::kMaxHours)},
          .results = {{.body = v1::CapacityReport::descriptor()}},
          .slow = true,
          .handle = Capacity};
}

std::vector<Route> ChartRoutes() {
  Route trials = ColumnsRoute("/columns", "GetTrialColumns",
                              "Trials as columns of 64-bit floating-point numbers");
  trials.id = "getColumns";
  trials.handle = TrialColumns;
  Route attempts = ColumnsRoute("/timeline", "GetAttemptColumns",
                                "Attempts of all trials, as columns: when, where, why they ended");
  attempts.id = "getTimeline";
  attempts.handle = AttemptColumns;
  return {trials,
          attempts,
          CurvesRoute(),
          SummaryRoute(),
          SummariesRoute(kAll, "listAllSummaries"),
          SummariesRoute(kOfNamespace, "listSummaries"),
          CapacityRoute(kAll, "getAllCapacity"),
          CapacityRoute(kOfNamespace, "getCapacity")};
}

}  // namespace

SHIRABE_REGISTER(RouteGroup, {.name = "charts", .routes = ChartRoutes});

}  // namespace shirabe::service
