// What a model makes of an experiment's trials: importances, ablation, partial dependence.
#include "proto/shirabe/v1/analysis.pb.h"
#include "service/http/http_body.h"
#include "service/http/http_message.h"
#include "service/http/route_table.h"
#include "view/shaped_json.h"

namespace shirabe::service {
namespace {

template <class Request>
Request RequestFor(const Call& call) {
  Request request;
  request.set_namespace_(call.Text("namespace"));
  request.set_experiment(call.Text("name"));
  return request;
}

// The reply of the method, in the shape that it has.
template <class Reply>
StatusOr<HttpReply> Answer(Call& call, const char* method,
                           const google::protobuf::Message& request) {
  ASSIGN_OR_RETURN(const auto reply, call.client->Get<Reply>(method, request));
  return JsonReply(view::Shaped<Reply>(reply));
}

StatusOr<HttpReply> GetImportance(Call& call) {
  auto request = RequestFor<v1::ImportanceRequest>(call);
  const bool ped = call.Text("method") == "ped";
  request.set_method(ped ? v1::IMPORTANCE_PED : v1::IMPORTANCE_GP);
  return Answer<v1::Importance>(call, "GetImportance", request);
}

StatusOr<HttpReply> GetAblation(Call& call) {
  auto request = RequestFor<v1::AblationRequest>(call);
  request.set_from(call.Integer("from", 0));
  request.set_to(call.Integer("to", 0));
  return Answer<v1::Ablation>(call, "GetAblation", request);
}

StatusOr<HttpReply> GetPartialDependence(Call& call) {
  auto request = RequestFor<v1::PartialDependenceRequest>(call);
  const std::string first = call.Text("parameter"), second = call.Text("with");
  if (first.empty()) return BadField("parameter", "must name a parameter of the experiment");
  request.add_parameters(first);
  if (!second.empty()) request.add_parameters(second);
  return Answer<v1::PartialDependence>(call, "GetPartialDependence", request);
}

Parameter TrialParameter(const char* name, const char* help) {
  return {.name = name,
          .help = help,
          .type = Parameter::Type::kInteger,
          .min = 1,
          .max = int64_t{1} << 53};
}

std::vector<Route> AnalysisRoutes() {
  const std::string one = kExperimentPath;
  return {
      {.method = "GET",
       .path = one + "/importance",
       .id = "getImportance",
       .rpc = "GetImportance",
       .summary = "How much each parameter matters, with how well that can be told",
       .parameters = {{.name = "method",
                       .help = "gp: shares of the objective's variance, by a Gaussian process; "
                               "ped: what separates the best tenth, by PED-ANOVA",
                       .words = {"gp", "ped"},
                       .default_value = "gp"}},
       .results = {{.body = v1::Importance::descriptor()}},
       .slow = true,
       .handle = GetImportance},
      {.method = "GET",
       .path = one + "/ablation",
       .id = "getAblation",
       .rpc = "GetAblation",
       .summary = "What brought the gain from one trial to another, parameter by parameter",
       .parameters = {TrialParameter("from", "number of a trial; without it the median one"),
                      TrialParameter("to", "number of a trial; without it the best one")},
       .results = {{.body = v1::Ablation::descriptor()}},
       .slow = true,
       .handle = GetAblation},
      {.method = "GET",
       .path = one + "/partial-dependence",
       .id = "getPartialDependence",
       .rpc = "GetPartialDependence",
       .summary = "The objective by a parameter, or two, averaged over all others",
       .parameters = {{.name = "parameter", .help = "name of a parameter; required"},
                      {.name = "with", .help = "name of another: then for all pairs of values"}},
       .results = {{.body = v1::PartialDependence::descriptor()}},
       .slow = true,
       .handle = GetPartialDependence},
  };
}

}  // namespace

SHIRABE_REGISTER(RouteGroup, {.name = "analysis", .routes = AnalysisRoutes});

}  // namespace shirabe::service
