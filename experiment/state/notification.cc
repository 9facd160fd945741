#include "experiment/state/notification.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text/json_text.h"
#include "base/timestamp.h"
#include "experiment/spec/field_rules.h"

namespace shirabe::experiment {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Receivers refuse what is large. What is left out stands in the experiment.
constexpr size_t kMaxAssignmentBytes = 16 << 10;
constexpr size_t kMaxMessageBytes = 4 << 10;

OrderedJson ValueOf(const v1::Assignment& assignment) {
  switch (assignment.value_case()) {
    case v1::Assignment::kNumber: return assignment.number();
    case v1::Assignment::kInteger: return assignment.integer();
    default: return assignment.category();
  }
}

OrderedJson BestJson(const v1::Experiment& experiment) {
  const v1::OptimalTrial& best = experiment.status().current_optimal_trial();
  if (!best.has_objective()) return nullptr;
  OrderedJson parameters = OrderedJson::object();
  for (const v1::Assignment& assignment : best.parameter_assignments()) {
    parameters[assignment.name()] = ValueOf(assignment);
  }
  OrderedJson json = {{"trial", best.best_trial_name()},
                      {"metric", experiment.spec().objective().objective_metric_name()},
                      {"value", best.objective()}};
  if (JsonText(parameters).size() <= kMaxAssignmentBytes)
    json["parameters"] = std::move(parameters);
  return json;
}

OrderedJson CostJson(const v1::Experiment& experiment, double spent) {
  const v1::Budget& budget = experiment.spec().shirabe().budget();
  OrderedJson json = {{"spent", std::max(spent, experiment.status().shirabe().cost())}};
  if (budget.has_max_cost()) json["max"] = budget.max_cost();
  json["currency"] = budget.currency().empty() ? "USD" : budget.currency();
  return json;
}

}  // namespace

std::string NotificationId(const v1::Experiment& experiment, int64_t number) {
  return absl::StrCat(experiment.metadata().uid(), ".", number);
}

std::string NotificationBody(const v1::Experiment& experiment, const Occurrence& what,
                             int64_t number) {
  const v1::ExperimentStatus& status = experiment.status();
  const OrderedJson body = {{"id", NotificationId(experiment, number)},
                            {"number", number},
                            {"type", WordOf(*v1::NotificationCause_descriptor(), what.cause)},
                            {"time", FormatTime(ToProto(what.time))},
                            {"experiment",
                             {{"namespace", experiment.metadata().namespace_()},
                              {"name", experiment.metadata().name()},
                              {"uid", experiment.metadata().uid()}}},
                            {"reason", what.reason},
                            {"message", what.message.substr(0, kMaxMessageBytes)},
                            {"best", BestJson(experiment)},
                            {"cost", CostJson(experiment, what.spent)},
                            {"trials",
                             {{"created", status.trials()},
                              {"succeeded", status.trials_succeeded()},
                              {"earlyStopped", status.trials_early_stopped()},
                              {"failed", status.trials_failed()}}}};
  return JsonText(body);
}

}  // namespace shirabe::experiment
