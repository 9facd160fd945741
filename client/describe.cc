#include "client/describe.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "client/objective.h"
#include "client/rows.h"
#include "client/table.h"
#include "client/words.h"

namespace shirabe::client {
namespace {

constexpr size_t kLabelWidth = 14;
constexpr size_t kRecentEvents = 10;

// Lines of "Label:   text", and tables under a heading.
class Page {
 public:
  // Nothing is said about what is empty.
  void Line(const std::string& label, const std::string& text) {
    if (text.empty()) return;
    std::string line = label + ":";
    line.resize(std::max(kLabelWidth, line.size() + 1), ' ');
    text_ += line + Printable(text) + "\n";
  }

  void Block(const std::string& heading, const std::string& lines) {
    if (lines.empty()) return;
    text_ += heading + ":\n";
    for (const auto& line : absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
      absl::StrAppend(&text_, "  ", Printable(std::string(line)), "\n");
    }
  }

  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string When(const google::protobuf::Timestamp& time, absl::Time now) {
  if (time.seconds() == 0) return "";
  return absl::StrCat(FormatTime(time), " (", FormatAge(now - FromProto(time)), " ago)");
}

// Reason and message after a state, where they say something.
std::string Because(const std::string& reason, const std::string& message) {
  if (reason.empty()) return message.empty() ? "" : " (" + message + ")";
  return absl::StrCat(" (", reason, message.empty() ? "" : ": " + message, ")");
}

std::string ObjectiveLine(const v1::ObjectiveSpec& objective) {
  std::string text =
      absl::StrCat(ObjectiveWord(objective.type()), " ", objective.objective_metric_name());
  if (objective.has_goal()) {
    absl::StrAppend(&text, ", goal ", ShortNumber(objective.goal()));
  }
  if (objective.additional_metric_names_size() > 0) {
    absl::StrAppend(&text, "; also ", absl::StrJoin(objective.additional_metric_names(), ", "));
  }
  return text;
}

std::string AlgorithmLine(const v1::ExperimentSpec& spec) {
  std::string text = spec.algorithm().algorithm_name();
  for (const v1::Setting& setting : spec.algorithm().algorithm_settings()) {
    absl::StrAppend(&text, " ", setting.name(), "=", setting.value());
  }
  return text;
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

std::string BestLine(const v1::Experiment& experiment) {
  const v1::OptimalTrial& best = experiment.status().current_optimal_trial();
  if (!best.has_objective()) return "";
  return absl::StrCat(BestCell(experiment), " (trial ", best.best_trial_name(), ", step ",
                      best.step(), "): ", ShortAssignments(best.parameter_assignments()));
}

std::string ValuesCell(const v1::FeasibleSpace& space) {
  if (space.list_size() > 0) return absl::StrJoin(space.list(), ", ");
  std::string text = absl::StrCat(ShortNumber(space.min()), " .. ", ShortNumber(space.max()));
  if (space.has_step()) absl::StrAppend(&text, ", step ", ShortNumber(space.step()));
  switch (space.distribution()) {
    case v1::LOG_UNIFORM: return text + ", logUniform";
    case v1::NORMAL: return text + ", normal";
    case v1::LOG_NORMAL: return text + ", logNormal";
    default: return text;
  }
}

std::string ParametersTable(const v1::ExperimentSpec& spec) {
  if (spec.parameters_size() == 0) return "";
  Table table({"NAME", "TYPE", "VALUES"});
  for (const v1::ParameterSpec& parameter : spec.parameters()) {
    table.Add({parameter.name(), ParameterTypeWord(parameter.parameter_type()),
               ValuesCell(parameter.feasible_space())});
  }
  return table.Take();
}

std::string ConditionsTable(const v1::Experiment& experiment, absl::Time now) {
  if (experiment.status().conditions_size() == 0) return "";
  Table table({"TYPE", "STATUS", "SINCE", "REASON", "MESSAGE"});
  for (const v1::Condition& condition : experiment.status().conditions()) {
    table.Add({condition.type(), condition.status(),
               FormatAge(now - FromProto(condition.last_transition_time())), condition.reason(),
               condition.message()});
  }
  return table.Take();
}

// The newest events, of one trial or (0) of all.
StatusOr<std::string> EventsTable(Client& client, const TrialKey& key, absl::Time now) {
  ASSIGN_OR_RETURN(auto events, client.ListEvents({.experiment = key.experiment}));
  if (key.number > 0) {
    std::erase_if(events, [&](const v1::Event& event) { return event.trial() != key.number; });
  }
  if (events.empty()) return "";
  if (events.size() > kRecentEvents) events.erase(events.begin(), events.end() - kRecentEvents);
  Table table(EventHeader());
  for (const v1::Event& event : events) table.Add(EventRow(event, {.now = now}));
  return table.Take();
}

std::string OwnerLine(const v1::Experiment& experiment, const std::string& holder) {
  if (!holder.empty()) return holder;
  return experiment::IsEnded(experiment) ? "" : "nobody: `shirabe run` with its file goes on";
}

// What a trial's metrics come to, each by the strategy of the experiment.
std::string MetricsTable(const v1::Trial& trial) {
  if (trial.observation().metrics_size() == 0) return "";
  const auto cell = [](bool known, double value) { return known ? ShortNumber(value) : ""; };
  Table table({"NAME", "MIN", "MAX", "LATEST", "COUNT"});
  for (const v1::Metric& metric : trial.observation().metrics()) {
    table.Add({metric.name(), cell(metric.has_min(), metric.min()),
               cell(metric.has_max(), metric.max()), cell(metric.has_latest(), metric.latest()),
               std::to_string(metric.count())});
  }
  return table.Take();
}

std::string TrialState(const v1::Experiment& experiment, const v1::Trial& trial) {
  std::string text = PhaseWord(trial.phase());
  if (const auto objective = ShownObjective(experiment, trial)) {
    absl::StrAppend(&text, "   ", experiment.spec().objective().objective_metric_name(), "=",
                    ShortNumber(objective->value), " (step ", objective->step, ")");
  }
  return text;
}

std::string AttemptsTable(const std::vector<v1::Attempt>& attempts, absl::Time now) {
  if (attempts.empty()) return "";
  const RowStyle style{.now = now, .wide = true};
  Table table(AttemptHeader(style));
  for (const v1::Attempt& attempt : attempts) table.Add(AttemptRow(attempt, style));
  return table.Take();
}

bool WentWrong(v1::TrialPhase phase) {
  return phase == v1::TRIAL_FAILED || phase == v1::TRIAL_METRICS_UNAVAILABLE ||
         phase == v1::TRIAL_KILLED;
}

}  // namespace

StatusOr<std::string> DescribeExperiment(Client& client, const ExperimentKey& key, absl::Time now) {
  ASSIGN_OR_RETURN(const v1::Experiment experiment, client.GetExperiment(key));
  ASSIGN_OR_RETURN(const std::string holder, client.Holder(key));
  ASSIGN_OR_RETURN(const std::string events, EventsTable(client, {key, 0}, now));
  const v1::ExperimentSpec& spec = experiment.spec();
  const v1::Condition condition = experiment::CurrentCondition(experiment);
  Page page;
  page.Line("Name", key.name);
  page.Line("Namespace", key.ns);
  page.Line("State", StateWord(experiment) + Because(condition.reason(), condition.message()));
  page.Line("Waiting", experiment.status().shirabe().waiting());
  page.Line("Created", When(experiment.metadata().creation_timestamp(), now));
  page.Line("Ended", When(experiment.status().completion_time(), now));
  page.Line("Run by", OwnerLine(experiment, holder));
  page.Line("Objective", ObjectiveLine(spec.objective()));
  page.Line("Algorithm", AlgorithmLine(spec));
  page.Line("Early stop", spec.early_stopping().algorithm_name());
  page.Line("Trials", TrialsLine(experiment));
  page.Line("Limits", LimitsLine(spec));
  page.Line("Best", BestLine(experiment));
  if (const int64_t bad = experiment.status().shirabe().bad_metric_lines(); bad > 0) {
    page.Line("Bad lines", absl::StrCat(bad, " lines named a metric and had no number"));
  }
  page.Block("Parameters", ParametersTable(spec));
  page.Block("Conditions", ConditionsTable(experiment, now));
  page.Block("Events", events);
  return page.Take();
}

StatusOr<std::string> DescribeTrial(Client& client, const TrialKey& key, absl::Time now) {
  ASSIGN_OR_RETURN(const v1::Experiment experiment, client.GetExperiment(key.experiment));
  ASSIGN_OR_RETURN(const v1::Trial trial, client.GetTrial(key));
  ASSIGN_OR_RETURN(const auto attempts,
                   client.ListAttempts({.experiment = key.experiment, .trial = key.number}));
  ASSIGN_OR_RETURN(const std::string events, EventsTable(client, key, now));
  Page page;
  page.Line("Name", TrialName(key));
  page.Line("Experiment", key.experiment.name);
  page.Line("State", TrialState(experiment, trial));
  page.Line("Why", trial.waiting());
  page.Line("Ended", IsTerminal(trial.phase()) ? When(trial.completion_time(), now) +
                                                     Because(trial.reason(), trial.message())
                                               : "");
  page.Line("Parameters", ShortAssignments(trial.assignments()));
  page.Line("Chosen", trial.explanation());
  if (trial.parent().trial() > 0) {
    page.Line("Parent", absl::StrCat(TrialName({key.experiment, trial.parent().trial()}),
                                     ", from step ", trial.parent().step()));
  }
  page.Line("Created", When(trial.creation_time(), now));
  page.Line("Started", When(trial.start_time(), now));
  if (trial.attempts() > 0) page.Line("Log", client.LogPlace({key, trial.attempts()}));
  page.Block("Metrics", MetricsTable(trial));
  page.Block("Attempts", AttemptsTable(attempts, now));
  if (WentWrong(trial.phase()) && !attempts.empty()) {
    page.Block("Last lines", attempts.back().log_tail());
  }
  page.Block("Events", events);
  return page.Take();
}

}  // namespace shirabe::client
