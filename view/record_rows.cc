#include "view/record_rows.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/text/number.h"
#include "base/timestamp.h"
#include "client/records/enum_words.h"
#include "experiment/conditions.h"
#include "trial/trial_template.h"
#include "view/result_front.h"
#include "view/spending.h"

namespace shirabe::view {
namespace {

// "; by admin (grpc)"
std::string ByActor(const v1::Actor& actor) {
  return actor.name().empty() ? "" : "; by " + client::ActorWords(actor);
}

using google::protobuf::Timestamp;

std::string Since(const Timestamp& time, absl::Time now) {
  if (time.seconds() == 0) return "";
  return FormatAge(std::max(now - FromProto(time), absl::ZeroDuration()));
}

// From start to end, or until now.
std::string Ran(const Timestamp& start, const Timestamp& end, absl::Time now) {
  if (start.seconds() == 0) return "";
  const absl::Time until = end.seconds() == 0 ? now : FromProto(end);
  return FormatAge(std::max(until - FromProto(start), absl::ZeroDuration()));
}

std::string Value(const v1::Assignment& assignment) {
  return assignment.has_number() ? client::ShortNumber(assignment.number())
                                 : trial::FormatAssignment(assignment);
}

std::string ShownValueOf(const auto& assignments, const std::string& name) {
  for (const v1::Assignment& assignment : assignments) {
    if (assignment.name() == name) return Value(assignment);
  }
  return "";
}

std::string MetricCell(const std::optional<client::ShownValue>& shown) {
  return shown ? client::ShortNumber(shown->value) : "";
}

std::string CountCell(int64_t count) { return count > 0 ? std::to_string(count) : ""; }

// Cost, budget, on-demand, preempted, wasted, refused: each only where there is something to say.
Cells SpendingCells(const v1::Experiment& experiment) {
  const v1::ShirabeStatus& status = experiment.status().shirabe();
  std::string wasted;
  if (status.wasted_seconds() > 0) wasted = SecondsText(status.wasted_seconds());
  if (status.wasted_cost() > 0) {
    absl::StrAppend(&wasted, ", ", MoneyText(experiment, status.wasted_cost()));
  }
  return {MoneyText(experiment, status.cost()),
          MoneyText(experiment, experiment.spec().shirabe().budget().max_cost()),
          MoneyText(experiment, status.cost() > 0 ? status.on_demand_cost() : 0),
          CountCell(status.preemptions()),
          wasted,
          CountCell(status.refused_writes())};
}

// Why it ended, or why it does not run.
std::string ReasonCell(const v1::Trial& trial) {
  return trial.reason().empty() && !client::IsTerminal(trial.phase()) ? trial.waiting()
                                                                      : trial.reason();
}

}  // namespace

int64_t FinishedTrials(const v1::Experiment& experiment) {
  const v1::ExperimentStatus& status = experiment.status();
  return status.trials_succeeded() + status.trials_failed() + status.trials_killed() +
         status.trials_early_stopped() + status.trial_metrics_unavailable();
}

std::string TrialsCell(const v1::Experiment& experiment) {
  std::string finished = std::to_string(FinishedTrials(experiment));
  if (!experiment.spec().has_max_trial_count()) return finished;
  return absl::StrCat(finished, "/", experiment.spec().max_trial_count());
}

std::string BestCell(const v1::Experiment& experiment) {
  const v1::OptimalTrial& best = experiment.status().current_optimal_trial();
  if (!best.has_objective()) return "";
  const int64_t front = experiment.status().shirabe().front().size();
  return absl::StrCat(experiment.spec().objective().objective_metric_name(), "=",
                      client::ShortNumber(best.objective()),
                      front > 0 ? absl::StrCat(" of ", front, " on the front") : "");
}

Cells ExperimentHeader(const RowStyle& style) {
  Cells cells;
  if (style.with_namespace) cells.push_back("NAMESPACE");
  cells.insert(cells.end(), {"NAME", "STATE", "BEST", "TRIALS", "RUNNING", "FAILED", "AGE"});
  if (style.wide)
    cells.insert(cells.end(), {"ALGORITHM", "BEST-TRIAL", "REASON", "COST", "BUDGET", "ON-DEMAND",
                               "PREEMPTED", "WASTED", "REFUSED"});
  return cells;
}

Cells ExperimentRow(const v1::Experiment& experiment, const RowStyle& style) {
  Cells cells;
  if (style.with_namespace) cells.push_back(experiment.metadata().namespace_());
  const v1::ExperimentStatus& status = experiment.status();
  cells.insert(cells.end(),
               {experiment.metadata().name(), client::StateWord(experiment), BestCell(experiment),
                TrialsCell(experiment), std::to_string(status.trials_running()),
                std::to_string(status.trials_failed()),
                Since(experiment.metadata().creation_timestamp(), style.now)});
  if (style.wide) {
    cells.insert(cells.end(), {experiment.spec().algorithm().algorithm_name(),
                               status.current_optimal_trial().best_trial_name(),
                               experiment::CurrentCondition(experiment).reason()});
    const Cells spent = SpendingCells(experiment);
    cells.insert(cells.end(), spent.begin(), spent.end());
  }
  return cells;
}

Cells TrialHeader(const v1::Experiment& experiment, const RowStyle& style) {
  const std::vector<std::string> metrics = client::MetricNames(experiment);
  Cells cells = {"TRIAL", "STATE", metrics[0], "STEP"};
  const std::vector<std::string> objectives = ObjectiveNames(experiment.spec());
  cells.insert(cells.end(), objectives.begin() + 1, objectives.end());
  if (experiment.spec().shirabe().constraints_size() > 0) cells.push_back("BREAKS");
  for (const auto& parameter : experiment.spec().parameters()) cells.push_back(parameter.name());
  cells.push_back("RAN");
  if (!style.wide) return cells;
  cells.insert(cells.end(), metrics.begin() + 1, metrics.end());
  cells.insert(cells.end(), {"ATTEMPTS", "PREEMPTED", "COST", "AGE", "REASON"});
  return cells;
}

Cells TrialRow(const v1::Experiment& experiment, const v1::Trial& trial, const RowStyle& style) {
  const auto objective = client::ShownObjective(experiment, trial);
  Cells cells = {TrialName({ExperimentKeyOf(trial), trial.number()}),
                 client::PhaseWord(trial.phase()), MetricCell(objective),
                 objective ? std::to_string(objective->step) : ""};
  const std::vector<std::string> objectives = ObjectiveNames(experiment.spec());
  for (size_t i = 1; i < objectives.size(); ++i) {
    cells.push_back(MetricCell(client::ShownMetric(experiment, trial, objectives[i])));
  }
  if (experiment.spec().shirabe().constraints_size() > 0) {
    cells.push_back(BrokenWords(experiment.spec(), trial));
  }
  for (const v1::ParameterSpec& parameter : experiment.spec().parameters()) {
    cells.push_back(ShownValueOf(trial.assignments(), parameter.name()));
  }
  cells.push_back(Ran(trial.start_time(), trial.completion_time(), style.now));
  if (!style.wide) return cells;
  const std::vector<std::string> metrics = client::MetricNames(experiment);
  for (size_t i = 1; i < metrics.size(); ++i) {
    cells.push_back(MetricCell(client::ShownMetric(experiment, trial, metrics[i])));
  }
  cells.insert(cells.end(), {std::to_string(trial.attempts()), std::to_string(trial.preemptions()),
                             MoneyText(experiment, trial.cost()),
                             Since(trial.creation_time(), style.now), ReasonCell(trial)});
  return cells;
}

Cells EventHeader() { return {"AGE", "TYPE", "REASON", "OBJECT", "MESSAGE"}; }

Cells EventRow(const v1::Event& event, const RowStyle& style) {
  const TrialKey trial{ExperimentKeyOf(event), event.trial()};
  std::string object = "experiment/" + event.experiment();
  if (event.trial() > 0) object = "trial/" + TrialName(trial);
  if (event.attempt() > 0) object = "attempt/" + AttemptName({trial, event.attempt()});
  return {Since(event.time(), style.now), event.warning() ? "Warning" : "Normal", event.reason(),
          object, event.message() + ByActor(event.actor())};
}

Cells ObservationHeader() { return {"ATTEMPT", "STEP", "METRIC", "VALUE", "AGE", "NOTE"}; }

Cells ObservationRowCells(const db::StoredObservation& row, const RowStyle& style) {
  return {std::to_string(row.attempt),
          std::to_string(row.step),
          row.metric,
          client::ShortNumber(row.value),
          Since(ToProto(row.time), style.now),
          row.superseded      ? "superseded"
          : row.implicit_step ? "counted step"
                              : ""};
}

Cells CandidateHeader(const v1::Experiment& experiment) {
  Cells cells;
  for (const auto& parameter : experiment.spec().parameters()) cells.push_back(parameter.name());
  cells.push_back("WHY");
  return cells;
}

Cells CandidateRow(const v1::Experiment& experiment, const v1::SuggestReply::Point& point) {
  Cells cells;
  for (const v1::ParameterSpec& parameter : experiment.spec().parameters()) {
    cells.push_back(ShownValueOf(point.assignments(), parameter.name()));
  }
  cells.push_back(point.explanation());
  return cells;
}

namespace {

constexpr size_t kShortDigest = 12;  // as much as people compare by eye

std::string StateCell(const v1::Attempt& attempt) {
  const bool stopping = attempt.has_stop() && attempt.state() != v1::ATTEMPT_CLOSED;
  return stopping ? "stopping" : client::AttemptStateWord(attempt.state());
}

std::string ExitCell(const v1::Attempt& attempt) {
  if (attempt.signal() > 0) return absl::StrCat("signal ", attempt.signal());
  return attempt.has_exit_code() ? std::to_string(attempt.exit_code()) : "";
}

// The step, and whose it is where the trial started from another one's checkpoint. 0 is said: it is
// an answer too.
std::string ResumedCell(const v1::Attempt& attempt) {
  if (!attempt.has_start_time()) return "";
  const int64_t trial = attempt.resumed_from_trial();
  if (attempt.resumed_from_attempt() == 0 || trial == 0 || trial == attempt.trial()) {
    return std::to_string(attempt.resumed_from_step());
  }
  return absl::StrCat(attempt.resumed_from_step(), " of ",
                      TrialName({ExperimentKeyOf(attempt), trial}));
}

// Counted when it has ended.
std::string StepsCell(const v1::Attempt& attempt, int64_t steps) {
  return attempt.state() == v1::ATTEMPT_CLOSED ? std::to_string(steps) : "";
}

std::string PriceCell(const v1::Placement& placement) {
  const double price = placement.price_per_hour();
  return price > 0 ? AmountText(price) + "/h" : "";
}

}  // namespace

Cells AttemptHeader(const RowStyle& style) {
  Cells cells = {"NAME",    "STATE", "CAUSE",  "NODE",    "CAPACITY",
                 "RESUMED", "STEPS", "REDONE", "SECONDS", "COST"};
  if (style.wide) {
    cells.insert(cells.end(),
                 {"POOL", "EXIT", "PRICE", "START", "END", "DEVICES", "OBSERVATIONS", "MESSAGE"});
  }
  return cells;
}

Cells AttemptRow(const v1::Attempt& attempt, const RowStyle& style) {
  const TrialKey trial{ExperimentKeyOf(attempt), attempt.trial()};
  const v1::Placement placement = PlacementOf(attempt);
  const Spending spent = SpendingOf(attempt, style.now);
  Cells cells = {AttemptName({trial, attempt.number()}),
                 StateCell(attempt),
                 client::CauseWord(attempt.cause()),
                 placement.node(),
                 placement.capacity(),
                 ResumedCell(attempt),
                 StepsCell(attempt, attempt.steps_gained()),
                 StepsCell(attempt, attempt.steps_redone()),
                 attempt.has_start_time() ? absl::StrFormat("%.1f", spent.seconds) : "",
                 spent.cost > 0 ? AmountText(spent.cost) : ""};
  if (!style.wide) return cells;
  cells.insert(cells.end(),
               {placement.pool(), ExitCell(attempt), PriceCell(placement),
                FormatTime(attempt.start_time()), FormatTime(attempt.end_time()),
                placement.devices(), std::to_string(attempt.rows()), attempt.message()});
  return cells;
}

Cells CheckpointHeader(const RowStyle& style) {
  Cells cells = {"STEP", "ATTEMPT", "SIZE", "AGE", "DIGEST", "GONE"};
  if (style.wide) cells.insert(cells.end(), {"OBJECTIVE", "BYTES", "TIME", "LOCATION"});
  return cells;
}

Cells CheckpointRow(const v1::Checkpoint& checkpoint, const RowStyle& style) {
  const absl::Duration age = style.now - FromProto(checkpoint.time());
  Cells cells = {
      std::to_string(checkpoint.step()),
      absl::StrCat("a", checkpoint.attempt()),
      FormatBytes(checkpoint.bytes()),
      checkpoint.has_time() ? FormatAge(std::max(age, absl::ZeroDuration())) : std::string(),
      checkpoint.digest().substr(0, kShortDigest),
      checkpoint.gone()};
  if (!style.wide) return cells;
  cells.insert(
      cells.end(),
      {checkpoint.has_objective() ? client::ShortNumber(checkpoint.objective()) : std::string(),
       std::to_string(checkpoint.bytes()), FormatTime(checkpoint.time()), checkpoint.location()});
  return cells;
}

}  // namespace shirabe::view
