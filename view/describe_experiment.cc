#include "view/describe_experiment.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/names.h"
#include "base/timestamp.h"
#include "client/records/enum_words.h"
#include "experiment/conditions.h"
#include "suggestion/space/rule_reader.h"
#include "suggestion/space/search_space.h"
#include "view/best_trial.h"
#include "view/record_rows.h"
#include "view/result_front.h"
#include "view/spending.h"
#include "view/text_table.h"

namespace shirabe::view {
namespace {

constexpr size_t kLabelWidth = 14;
constexpr size_t kRecentEvents = 10;

}  // namespace

void Page::Line(const std::string& label, const std::string& text) {
  if (text.empty()) return;
  std::string line = label + ":";
  line.resize(std::max(kLabelWidth, line.size() + 1), ' ');
  text_ += line + Printable(text) + "\n";
}

void Page::Block(const std::string& heading, const std::string& lines) {
  if (lines.empty()) return;
  text_ += heading + ":\n";
  for (const auto& line : absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    absl::StrAppend(&text_, "  ", Printable(std::string(line)), "\n");
  }
}

std::string When(const google::protobuf::Timestamp& time, absl::Time now) {
  if (time.seconds() == 0) return "";
  return absl::StrCat(FormatTime(time), " (", FormatAge(now - FromProto(time)), " ago)");
}

std::string Because(const std::string& reason, const std::string& message) {
  if (reason.empty()) return message.empty() ? "" : " (" + message + ")";
  return absl::StrCat(" (", reason, message.empty() ? "" : ": " + message, ")");
}

StatusOr<std::string> EventsTable(client::Client& client, const TrialKey& key, absl::Time now) {
  ASSIGN_OR_RETURN(auto events, client.ListEvents({.experiment = key.experiment}));
  if (key.number > 0) {
    std::erase_if(events, [&](const v1::Event& event) { return event.trial() != key.number; });
  }
  if (events.empty()) return "";
  if (events.size() > kRecentEvents) events.erase(events.begin(), events.end() - kRecentEvents);
  Table table(EventHeader());
  for (const v1::Event& event : events) table.Add(EventRow(event, {.now = now}));
  return table.Render();
}

namespace {

constexpr int kFrontShown = 20;

std::string ObjectiveText(v1::ObjectiveType type, const std::string& metric,
                          std::optional<double> goal) {
  const std::string text = absl::StrCat(client::ObjectiveWord(type), " ", metric);
  return goal ? absl::StrCat(text, ", goal ", client::ShortNumber(*goal)) : text;
}

std::string ObjectiveLine(const v1::ExperimentSpec& spec) {
  const auto goal = [](const auto& of) {
    return of.has_goal() ? std::optional(of.goal()) : std::nullopt;
  };
  const v1::ObjectiveSpec& objective = spec.objective();
  std::vector<std::string> parts = {
      ObjectiveText(objective.type(), objective.objective_metric_name(), goal(objective))};
  for (const v1::AdditionalObjective& further : spec.shirabe().additional_objectives()) {
    parts.push_back(ObjectiveText(further.type(), further.metric_name(), goal(further)));
  }
  const std::vector<std::string> objectives = ObjectiveNames(spec);
  std::vector<std::string> others;
  for (const std::string& metric : objective.additional_metric_names()) {
    if (!absl::c_linear_search(objectives, metric)) others.push_back(metric);
  }
  if (!others.empty()) parts.push_back("also " + absl::StrJoin(others, ", "));
  return absl::StrJoin(parts, "; ");
}

std::string ConstraintsLine(const v1::ExperimentSpec& spec) {
  return absl::StrJoin(spec.shirabe().constraints(), ", ",
                       [](std::string* out, const auto& one) { *out += ConstraintWords(one); });
}

// An algorithm or an early-stopping rule, with the settings that were given.
template <class Spec>
std::string ChoiceLine(const Spec& spec) {
  std::string text = spec.algorithm_name();
  for (const v1::Setting& setting : spec.algorithm_settings()) {
    absl::StrAppend(&text, " ", setting.name(), "=", setting.value());
  }
  return text;
}

std::string AlgorithmLine(const v1::Experiment& experiment) {
  std::string text = ChoiceLine(experiment.spec().algorithm());
  const std::string& chosen = experiment.status().shirabe().algorithm();
  if (!chosen.empty()) absl::StrAppend(&text, ": ", chosen);
  return text;
}

// "38 trials of a, b; 4 outside of this space left out"
std::string WarmStartLine(const v1::Experiment& experiment) {
  const auto& names = experiment.spec().shirabe().warm_start().experiments();
  const v1::ShirabeStatus& status = experiment.status().shirabe();
  if (names.empty() || !status.has_prior_trials()) return absl::StrJoin(names, ", ");
  std::string text = absl::StrCat(status.prior_trials(), " trials of ", absl::StrJoin(names, ", "));
  if (status.prior_left_out() == 0) return text;
  return absl::StrCat(text, "; ", status.prior_left_out(), " outside of this space left out");
}

// "changed 2 times; 4 of 30 trials lie outside: kept as results, not learned from"
std::string RangesLine(const v1::Experiment& experiment) {
  const v1::ShirabeStatus& status = experiment.status().shirabe();
  if (status.space_changes() == 0) return "";
  std::string text = absl::StrCat("changed ", status.space_changes(),
                                  status.space_changes() == 1 ? " time" : " times");
  if (status.outside_trials() == 0) return text + "; no trial lies outside";
  return absl::StrCat(text, "; ", status.outside_trials(), " of ", experiment.status().trials(),
                      " trials lie outside: kept as results, not learned from");
}

std::string TrialsLine(const v1::Experiment& experiment) {
  const v1::ExperimentStatus& status = experiment.status();
  std::vector<std::string> parts;
  const auto add = [&parts](int64_t count, const char* word) {
    if (count > 0) parts.push_back(absl::StrCat(count, " ", word));
  };
  add(status.trials_running(), "running");
  add(status.trials_pending(), "pending");
  add(status.trials_succeeded(), "succeeded");
  add(status.trials_early_stopped(), "stopped early");
  add(status.trials_failed(), "failed");
  add(status.trial_metrics_unavailable(), "without metrics");
  add(status.trials_killed(), "killed");
  return absl::StrCat(TrialsCell(experiment), " finished", parts.empty() ? "" : ": ",
                      absl::StrJoin(parts, ", "));
}

std::string LimitsLine(const v1::ExperimentSpec& spec) {
  std::string text = absl::StrCat(spec.parallel_trial_count(), " at the same time");
  if (spec.has_max_trial_count()) {
    absl::StrAppend(&text, ", at most ", spec.max_trial_count(), " trials");
  }
  if (spec.has_max_failed_trial_count()) {
    absl::StrAppend(&text, ", fails once more than ", spec.max_failed_trial_count(),
                    " have failed");
  }
  return text;
}

std::string LimitWords(double seconds) { return absl::FormatDuration(absl::Seconds(seconds)); }

// spec.shirabe.limits and stopWhen, with how far they are; "" without any.
std::string StopsWhenLine(const v1::Experiment& experiment) {
  const v1::SearchLimits& limits = experiment.spec().shirabe().limits();
  const v1::StopWhen& stop = experiment.spec().shirabe().stop_when();
  const v1::ShirabeStatus& status = experiment.status().shirabe();
  std::vector<std::string> parts;
  if (limits.has_experiment_seconds()) {
    parts.push_back(
        absl::StrCat("after ", LimitWords(limits.experiment_seconds()), " without pauses"));
  }
  if (stop.has_no_improvement_trials()) {
    parts.push_back(absl::StrCat(
        "after ", stop.no_improvement_trials(), " results without an improvement",
        stop.min_improvement() > 0 ? " by more than " + client::ShortNumber(stop.min_improvement())
                                   : "",
        " (now ", status.trials_since_improvement(), ")"));
  }
  if (stop.has_regret_below()) {
    parts.push_back(absl::StrCat(
        "once the regret is below ", client::ShortNumber(stop.regret_below()),
        status.has_regret_bound()
            ? absl::StrCat(" (now at most ", client::ShortNumber(status.regret_bound().bound()),
                           ", by ", status.regret_bound().results(), " results)")
            : ""));
  }
  if (stop.has_min_trials() && !parts.empty()) {
    parts.push_back(absl::StrCat("by a rule not before ", stop.min_trials(), " results"));
  }
  if (limits.has_trial_seconds()) {
    parts.push_back(absl::StrCat("a trial after ", LimitWords(limits.trial_seconds())));
  }
  return absl::StrJoin(parts, "; ");
}

std::string BestLine(const v1::Experiment& experiment) {
  const v1::OptimalTrial& best = experiment.status().current_optimal_trial();
  if (!best.has_objective()) return "";
  return absl::StrCat(BestCell(experiment), " (trial ", best.best_trial_name(), ", step ",
                      best.step(), "): ", client::ShortAssignments(best.parameter_assignments()));
}

std::string ValuesCell(const v1::FeasibleSpace& space) {
  if (space.list_size() > 0) return absl::StrJoin(space.list(), ", ");
  std::string text =
      absl::StrCat(client::ShortNumber(space.min()), " .. ", client::ShortNumber(space.max()));
  if (space.has_step()) absl::StrAppend(&text, ", step ", client::ShortNumber(space.step()));
  switch (space.distribution()) {
    case v1::LOG_UNIFORM: return text + ", logUniform";
    case v1::NORMAL: return text + ", normal";
    case v1::LOG_NORMAL: return text + ", logNormal";
    default: return text;
  }
}

// "; expected near 3e-4 (medium)": the prior of a parameter.
std::string ExpectedWords(const google::protobuf::Struct& priors, const std::string& parameter) {
  const auto found = priors.fields().find(parameter);
  if (found == priors.fields().end()) return "";
  std::string center, confidence = "medium";
  for (const auto& [name, value] : found->second.struct_value().fields()) {
    (name == "confidence" ? confidence : center) = suggestion::RuleText(value);
  }
  return absl::StrCat("; expected near ", center, " (", confidence, ")");
}

std::string ParametersTable(const v1::ExperimentSpec& spec) {
  if (spec.parameters_size() == 0) return "";
  const auto space = suggestion::Space::Create(spec);
  Table table({"NAME", "TYPE", "VALUES"});
  for (int i = 0; i < spec.parameters_size(); ++i) {
    const v1::ParameterSpec& parameter = spec.parameters(i);
    const std::string condition = space.ok() ? space->ConditionOf(i) : "";
    const std::string expected = ExpectedWords(spec.shirabe().space().priors(), parameter.name());
    table.Add({parameter.name(), client::ParameterTypeWord(parameter.parameter_type()),
               absl::StrCat(ValuesCell(parameter.feasible_space()),
                            condition.empty() ? "" : "; only where ", condition, expected)});
  }
  return table.Render();
}

// Trials that are on their way or are to be, by what they wait for.
StatusOr<std::string> WaitingTable(client::Client& client, const ExperimentKey& key) {
  ASSIGN_OR_RETURN(const auto trials, client.ListTrials({.experiment = key, .live_only = true}));
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const v1::Trial& trial : trials) {
    if (trial.waiting().empty()) continue;
    by_reason[trial.waiting()].push_back(TrialName({key, trial.number()}));
  }
  if (by_reason.empty()) return "";
  Table table({"TRIALS", "FIRST", "WHY"});
  for (const auto& [reason, names] : by_reason) {
    table.Add({absl::StrCat(names.size()), names.front(), reason});
  }
  return table.Render();
}

std::string ConditionsTable(const v1::Experiment& experiment, absl::Time now) {
  if (experiment.status().conditions_size() == 0) return "";
  Table table({"TYPE", "STATUS", "SINCE", "REASON", "MESSAGE"});
  for (const v1::Condition& condition : experiment.status().conditions()) {
    table.Add({condition.type(), condition.status(),
               FormatAge(now - FromProto(condition.last_transition_time())), condition.reason(),
               condition.message()});
  }
  return table.Render();
}

// "admin by grpc, 5m ago"
std::string ActorLine(const v1::Actor& actor, absl::Time now) {
  return client::ActorWords(actor) + (actor.name().empty() ? "" : ", " + When(actor.time(), now));
}

// How far each endpoint has been told.
std::string NotificationsTable(const v1::Experiment& experiment, absl::Time now) {
  const auto& endpoints = experiment.status().shirabe().notifications();
  if (endpoints.empty()) return "";
  Table table({"ENDPOINT", "DELIVERED", "PENDING", "GIVEN UP", "NEXT TRY", "ERROR"});
  for (const v1::NotificationStatus& one : endpoints) {
    const bool waits = one.pending() > 0 && one.has_not_before();
    const absl::Duration wait = waits ? FromProto(one.not_before()) - now : absl::ZeroDuration();
    table.Add({one.endpoint(), absl::StrCat(one.delivered()), absl::StrCat(one.pending()),
               absl::StrCat(one.given_up()),
               waits ? "in " + FormatAge(std::max(wait, absl::ZeroDuration())) : "", one.error()});
  }
  return table.Render();
}

std::string OwnerLine(const v1::Experiment& experiment, const std::string& holder) {
  if (!holder.empty()) return holder;
  return experiment::IsEnded(experiment) ? "" : "none: `shirabe run` with its file continues it";
}

}  // namespace

// "Failed: exit code 1 …, 2 attempts; its log: shirabe logs digits/on-success"
std::string OnSuccessLine(const v1::Experiment& experiment) {
  if (!experiment.spec().shirabe().has_on_success()) return "";
  const v1::OnSuccessStatus& status = experiment.status().shirabe().on_success();
  if (status.phase() == v1::FOLLOW_UP_PHASE_UNSPECIFIED) {
    return "a Job, once the experiment has succeeded";
  }
  std::string text = client::FollowUpWord(status.phase());
  if (!status.best_trial_name().empty()) {
    absl::StrAppend(&text, ", with the parameters of ", status.best_trial_name());
  }
  for (const std::string& more : {status.waiting(), status.message()}) {
    if (!more.empty()) absl::StrAppend(&text, ": ", more);
  }
  if (status.attempts() == 0) return text;
  return absl::StrCat(text, "; attempt ", status.attempts(), ", log: shirabe logs ",
                      experiment.metadata().name(), "/on-success");
}

namespace {

constexpr int64_t kAttemptsRead = 5000;  // which tell how often machines go

StatusOr<std::string> Preemptions(client::Client& client, const ExperimentKey& key,
                                  const v1::Experiment& experiment, absl::Time now) {
  if (experiment.status().shirabe().preemptions() == 0) return "";
  ASSIGN_OR_RETURN(const auto attempts,
                   client.ListAttempts({.experiment = key, .limit = kAttemptsRead}));
  return PreemptionTable(attempts, experiment.spec().shirabe().checkpoint().interval_seconds(),
                         now);
}

}  // namespace

StatusOr<std::string> DescribeExperiment(client::Client& client, const ExperimentKey& key,
                                         absl::Time now) {
  ASSIGN_OR_RETURN(v1::Experiment experiment, client.GetExperiment(key));
  ASSIGN_OR_RETURN(const auto open, client.ListAttempts({.experiment = key, .open_only = true}));
  AddRunning(open, now, experiment);
  ASSIGN_OR_RETURN(const std::string holder, client.Holder(key));
  ASSIGN_OR_RETURN(const std::string events, EventsTable(client, {key, 0}, now));
  ASSIGN_OR_RETURN(const std::string waiting, WaitingTable(client, key));
  ASSIGN_OR_RETURN(const std::string preemptions, Preemptions(client, key, experiment, now));
  const v1::ExperimentSpec& spec = experiment.spec();
  const v1::Condition condition = experiment::CurrentCondition(experiment);
  Page page;
  page.Line("Name", key.name);
  page.Line("Namespace", key.ns);
  page.Line("State",
            client::StateWord(experiment) + Because(condition.reason(), condition.message()));
  page.Line("Waiting", experiment.status().shirabe().waiting());
  page.Line("Created", When(experiment.metadata().creation_timestamp(), now));
  page.Line("Ended", When(experiment.status().completion_time(), now));
  page.Line("Created by", client::ActorWords(experiment.status().shirabe().created_by()));
  page.Line("Changed by", ActorLine(experiment.status().shirabe().changed_by(), now));
  page.Line("Stopped by", ActorLine(experiment.status().shirabe().stopped_by(), now));
  page.Line("Run by", OwnerLine(experiment, holder));
  page.Line("Objective", ObjectiveLine(spec));
  page.Line("Constraints", ConstraintsLine(spec));
  page.Line("Algorithm", AlgorithmLine(experiment));
  page.Line("Early stop", ChoiceLine(spec.early_stopping()));
  page.Line("Warm start", WarmStartLine(experiment));
  page.Line("Ranges", RangesLine(experiment));
  page.Line("Trials", TrialsLine(experiment));
  page.Line("Limits", LimitsLine(spec));
  page.Line("Stops", StopsWhenLine(experiment));
  page.Line("Best", BestLine(experiment));
  page.Line("Front", FrontLine(experiment));
  page.Line("Recommended", RecommendedLine(experiment));
  page.Line("On success", OnSuccessLine(experiment));
  for (const auto& [label, text] : SpendingLines(experiment)) page.Line(label, text);
  if (const int64_t bad = experiment.status().shirabe().bad_metric_lines(); bad > 0) {
    page.Line("Bad lines", absl::StrCat(bad, " lines named a metric and had no number"));
  }
  page.Line("Tags", absl::StrJoin(experiment.status().shirabe().tags(), ", "));
  page.Block("Note", experiment.status().shirabe().note());
  page.Block("Parameters", ParametersTable(spec));
  if (experiment.status().shirabe().front().size() > 0) {
    page.Block("Front", FrontTable(experiment, true, kFrontShown));
  }
  page.Block("Waiting trials", waiting);
  page.Block("Preemptions", preemptions);
  page.Block("Notifications", NotificationsTable(experiment, now));
  page.Block("Conditions", ConditionsTable(experiment, now));
  page.Block("Events", events);
  return page.Release();
}

}  // namespace shirabe::view
