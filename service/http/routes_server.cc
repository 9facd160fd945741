// What is asked of the server itself: health, metrics, its description, and the checks of an
// experiment that need no store.
#include "absl/strings/str_cat.h"
#include "proto/shirabe/v1/http.pb.h"
#include "service/common/change_hub.h"
#include "service/common/server_metrics.h"
#include "service/http/http_body.h"
#include "service/http/http_message.h"
#include "service/http/openapi.h"
#include "service/http/route_table.h"
#include "view/variants_json.h"

namespace shirabe::service {
namespace {

constexpr char kPlain[] = "text/plain; charset=utf-8";
constexpr char kExposition[] = "text/plain; version=0.0.4; charset=utf-8";

HttpReply PlainReply(std::string text, int status = 200) {
  return {.status = status, .type = kPlain, .body = std::move(text)};
}

StatusOr<HttpReply> Livez(Call& /*call*/) { return PlainReply("ok\n"); }

std::map<std::string, std::string> ProblemsNow(const HttpContext& context) {
  std::map<std::string, std::string> problems;
  problems["store"] = Message(context.hub->health());
  problems["shutdown"] = context.shutdown_wait->over() ? "the server is ending" : "";
  for (const auto& [name, check] : context.checks) problems[name] = check();
  return problems;
}

StatusOr<HttpReply> Readyz(Call& call) {
  std::string lines;
  bool ready = true;
  for (const auto& [name, problem] : ProblemsNow(call.context)) {
    ready = ready && problem.empty();
    if (problem.empty() && !call.Flag("verbose")) continue;
    absl::StrAppend(&lines, problem.empty() ? "[+]" : "[-]", name,
                    problem.empty() ? " ok" : ": " + problem, "\n");
  }
  return PlainReply(lines + (ready ? "ok\n" : "not ready\n"), ready ? 200 : 503);
}

StatusOr<HttpReply> Version(Call& /*call*/) { return JsonReply({{"version", SHIRABE_VERSION}}); }

StatusOr<HttpReply> MetricsText(Call& call) {
  if (call.context.metrics == nullptr) return absl::UnavailableError("another replica leads");
  return HttpReply{.type = kExposition, .body = call.context.metrics->Text()};
}

StatusOr<HttpReply> Openapi(Call& /*call*/) {
  static const std::string document = view::PrintJson(OpenapiDocument());
  return HttpReply{.body = document};
}

StatusOr<HttpReply> Validate(Call& call) {
  const experiment::ParsedExperiment parsed = ParseOne(call.request.body);
  return JsonReply({{"valid", !experiment::HasErrors(parsed.findings)},
                    {"findings", FindingsJson(parsed.findings)}});
}

template <const char* kKind>
StatusOr<HttpReply> ListVariants(Call& /*call*/) {
  return JsonReply(ListJson(view::Variants(kKind)));
}

template <const char* kKind>
StatusOr<HttpReply> GetVariant(Call& call) {
  ASSIGN_OR_RETURN(const Json variant, view::FindVariant(view::Variants(kKind), call.Text("name")));
  return JsonReply(variant);
}

// Of anyone who can reach the port.
Route Get(const char* path, const char* id, const char* summary, Result result) {
  return {.method = "GET",
          .path = path,
          .id = id,
          .rights = MakeRights(v1::Rights::ANYONE),
          .summary = summary,
          .results = {std::move(result)}};
}

Route For(v1::Rights::Audience audience, Route route) {
  route.rights = MakeRights(audience);
  return route;
}

Route Handled(Route route, StatusOr<HttpReply> (*handle)(Call&)) {
  route.handle = handle;
  return route;
}

Route AtOnce(Route route) {
  route.at_once = true;
  return route;
}

Route ReadyRoute() {
  Route route = Handled(
      Get("/readyz", "readyz", "Whether the server can do its work", {.type = "text/plain"}),
      Readyz);
  route.parameters = {
      {.name = "verbose", .help = "say what was looked at", .type = Parameter::Type::kBoolean}};
  route.results.push_back({.status = 503, .type = "text/plain"});
  return route;
}

std::vector<Route> ServerRoutes() {
  const auto* variant = v1::http::Variant::descriptor();
  return {
      AtOnce(Handled(Get("/livez", "livez", "Whether the server lives", {.type = "text/plain"}),
                     Livez)),
      AtOnce(ReadyRoute()),
      Handled(Get("/version", "version", "Which version it is",
                  {.body = v1::http::Version::descriptor()}),
              Version),
      For(v1::Rights::METRICS,
          Handled(Get("/metrics", "metrics", "Metrics for Prometheus", {.type = "text/plain"}),
                  MetricsText)),
      Handled(Get("/openapi.json", "openapi", "This interface, as OpenAPI 3.1", {}), Openapi),
      {.method = "POST",
       .path = "/api/v1/validate",
       .id = "validate",
       .rights = MakeRights(v1::Rights::CALLERS),
       .summary = "Checks an experiment, YAML or JSON, without storing it, and says all that is "
                  "wrong with it",
       .request = v1::Experiment::descriptor(),
       .results = {{.body = v1::http::Validation::descriptor()}},
       .handle = Validate},
      For(v1::Rights::CALLERS,
          Handled(Get("/api/v1/algorithms", "listAlgorithms", "Lists the suggestion algorithms",
                      {.body = variant, .list = true}),
                  ListVariants<view::kAlgorithm>)),
      For(v1::Rights::CALLERS, Handled(Get("/api/v1/algorithms/{name}", "getAlgorithm",
                                           "A suggestion algorithm", {.body = variant}),
                                       GetVariant<view::kAlgorithm>)),
      For(v1::Rights::CALLERS,
          Handled(Get("/api/v1/stoppers", "listStoppers", "Lists the early-stopping rules",
                      {.body = variant, .list = true}),
                  ListVariants<view::kStopper>)),
      For(v1::Rights::CALLERS, Handled(Get("/api/v1/stoppers/{name}", "getStopper",
                                           "An early-stopping rule", {.body = variant}),
                                       GetVariant<view::kStopper>)),
  };
}

}  // namespace

SHIRABE_REGISTER(RouteGroup, {.name = "server", .routes = ServerRoutes});

}  // namespace shirabe::service
