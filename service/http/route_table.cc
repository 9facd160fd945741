#include "service/http/route_table.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "service/common/authorization.h"
#include "service/common/suggestion_scheduler.h"
#include "service/http/http_message.h"

namespace shirabe::service {
namespace {

void Append(std::vector<Route>& all, std::vector<Route> some) {
  for (Route& route : some) all.push_back(std::move(route));
}

Route::Access AccessOf(AccessRule::For whom) {
  if (whom == AccessRule::For::kAnyone) return Route::Access::kOpen;
  return whom == AccessRule::For::kTrials ? Route::Access::kTrial : Route::Access::kUser;
}

Parameter PathParameter(const std::string& name) {
  Parameter parameter{.name = name, .in = Parameter::In::kPath};
  if (name == "namespace") parameter.help = "namespace of the experiment";
  if (name == "name") parameter.help = "name of the experiment, or of the variant";
  if (name == "trial") parameter.help = "number of the trial, from 1";
  if (name == "attempt") parameter.help = "number of the attempt, from 1";
  if (name == "trial" || name == "attempt") {
    parameter.type = Parameter::Type::kInteger;
    parameter.min = 1;
    parameter.max = name == "trial" ? int64_t{1} << 53 : 1 << 30;
  }
  return parameter;
}

}  // namespace

std::string Call::Text(const std::string& name) const {
  const auto found = parameters.find(name);
  return found == parameters.end() ? "" : found->second;
}

int64_t Call::Integer(const std::string& name, int64_t otherwise) const {
  int64_t value = otherwise;
  const auto found = parameters.find(name);
  if (found != parameters.end()) CHECK(absl::SimpleAtoi(found->second, &value));
  return value;
}

// `?verbose` alone says yes.
bool Call::Flag(const std::string& name) const {
  const auto found = parameters.find(name);
  return found != parameters.end() && found->second != "false";
}

ExperimentKey Call::Experiment() const { return {Text("namespace"), Text("name")}; }

TrialKey Call::Trial() const { return {Experiment(), Integer("trial", 0)}; }

StatusOr<Quota::Share> Call::AcquireWait() const {
  Quotas* quotas = context.quotas;
  auto share = Quota::Acquire(quotas == nullptr ? nullptr : &quotas->waits, caller);
  if (!share.ok()) return TooMany(share.status());
  return share;
}

StatusOr<Quota::Share> Call::AcquireStream() const {
  Quotas* quotas = context.quotas;
  auto share = Quota::Acquire(quotas == nullptr ? nullptr : &quotas->streams, caller);
  if (!share.ok()) return TooMany(share.status());
  return share;
}

const std::vector<Route>& Routes() {
  static const std::vector<Route> routes = [] {
    std::vector<Route> all;
    Append(all, ExperimentRoutes());
    Append(all, IntentRoutes());
    Append(all, TrialRoutes());
    Append(all, AskRoutes());
    Append(all, StreamRoutes());
    Append(all, ServerRoutes());
    for (Route& route : all) route.access = AccessOf(AccessRuleOf(route.id).whom);
    return all;
  }();
  return routes;
}

std::vector<Parameter> PathParameters(const std::string& path) {
  std::vector<Parameter> parameters;
  size_t open = path.find('{');
  while (open != std::string::npos) {
    const size_t close = path.find('}', open);
    parameters.push_back(PathParameter(path.substr(open + 1, close - open - 1)));
    open = path.find('{', close);
  }
  return parameters;
}

}  // namespace shirabe::service
