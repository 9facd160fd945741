// describe trial: what it is, why it runs or does not, and its ledger.
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/number.h"
#include "base/timestamp.h"
#include "client/records/enum_words.h"
#include "view/describe_experiment.h"
#include "view/record_rows.h"
#include "view/result_front.h"
#include "view/spending.h"
#include "view/text_table.h"

namespace shirabe::view {
namespace {

// What a trial's metrics come to, each by the strategy of the experiment.
std::string MetricsTable(const v1::Trial& trial) {
  if (trial.observation().metrics_size() == 0) return "";
  const auto cell = [](bool known, double value) {
    return known ? client::ShortNumber(value) : "";
  };
  Table table({"NAME", "MIN", "MAX", "LATEST", "COUNT"});
  for (const v1::Metric& metric : trial.observation().metrics()) {
    table.Add({metric.name(), cell(metric.has_min(), metric.min()),
               cell(metric.has_max(), metric.max()), cell(metric.has_latest(), metric.latest()),
               std::to_string(metric.count())});
  }
  return table.Render();
}

std::string TrialState(const v1::Experiment& experiment, const v1::Trial& trial) {
  std::string text = client::PhaseWord(trial.phase());
  if (const auto objective = client::ShownObjective(experiment, trial)) {
    absl::StrAppend(&text, "   ", experiment.spec().objective().objective_metric_name(), "=",
                    client::ShortNumber(objective->value), " (step ", objective->step, ")");
  }
  const std::vector<std::string> names = ObjectiveNames(experiment.spec());
  for (size_t i = 1; i < names.size(); ++i) {
    const auto value = client::ShownMetric(experiment, trial, names[i]);
    if (value) absl::StrAppend(&text, ", ", names[i], "=", client::ShortNumber(value->value));
  }
  const std::string broken = BrokenWords(experiment.spec(), trial);
  if (!broken.empty()) absl::StrAppend(&text, "; breaks ", broken);
  return text;
}

std::string AttemptsTable(const std::vector<v1::Attempt>& attempts, absl::Time now) {
  if (attempts.empty()) return "";
  const RowStyle style{.now = now, .wide = true};
  Table table(AttemptHeader(style));
  for (const v1::Attempt& attempt : attempts) table.Add(AttemptRow(attempt, style));
  return table.Render();
}

std::string CheckpointsTable(const std::vector<v1::Checkpoint>& checkpoints, absl::Time now) {
  if (checkpoints.empty()) return "";
  const RowStyle style{.now = now};
  Table table(CheckpointHeader(style));
  for (const v1::Checkpoint& checkpoint : checkpoints) table.Add(CheckpointRow(checkpoint, style));
  return table.Render();
}

std::string BackoffText(const v1::Trial& trial, absl::Time now) {
  const absl::Time until = FromProto(trial.not_before());
  if (!trial.has_not_before() || until <= now) return "";
  return absl::StrCat("backoff until ", FormatTime(trial.not_before()), " (in ",
                      FormatAge(until - now), ")");
}

// What holds the whole experiment up holds up each of its trials.
std::string ExperimentWaitReason(const v1::Experiment& experiment, const std::string& holder) {
  const v1::ShirabeStatus& status = experiment.status().shirabe();
  if (status.stopping()) return "the experiment is ending" + Because("", status.stop_reason());
  if (status.paused()) {
    return "the experiment is paused: `shirabe resume " + experiment.metadata().name() + "`";
  }
  if (holder.empty())
    return "no process runs the experiment: `shirabe run` with its file continues it";
  return status.waiting();
}

// Why the trial is not running: its own reasons first. "" if it runs or has ended.
std::string WhyLine(const v1::Experiment& experiment, const v1::Trial& trial,
                    const std::string& holder, absl::Time now) {
  if (trial.phase() != v1::TRIAL_PENDING && trial.waiting().empty()) return "";
  if (client::IsTerminal(trial.phase())) return "";
  std::vector<std::string> reasons = {BackoffText(trial, now), trial.waiting(),
                                      ExperimentWaitReason(experiment, holder)};
  if (!reasons[1].empty() && absl::StartsWith(reasons[1], "backoff")) reasons[0].clear();
  std::erase(reasons, "");
  if (reasons.empty()) return "it has only just been created, or is about to start";
  reasons.erase(std::unique(reasons.begin(), reasons.end()), reasons.end());
  return absl::StrJoin(reasons, "; ");
}

// How the last attempt of a trial that goes on came to its end.
std::string LastStop(const v1::Trial& trial, const std::vector<v1::Attempt>& attempts,
                     absl::Time now) {
  if (client::IsTerminal(trial.phase()) || attempts.empty()) return "";
  const v1::Attempt& last = attempts.back();
  if (last.state() != v1::ATTEMPT_CLOSED) {
    if (!last.has_stop()) return "";
    return absl::StrCat("being stopped: ", client::CauseWord(last.stop().cause()),
                        last.stop().reason().empty() ? "" : ": " + last.stop().reason());
  }
  return absl::StrCat("attempt ", last.number(), ": ", client::CauseWord(last.cause()),
                      last.message().empty() ? "" : ": " + last.message(), ", ",
                      When(last.end_time(), now));
}

// Seconds, money, and what of both was for nothing.
std::string TrialSpentLine(const v1::Experiment& experiment, const v1::Trial& trial,
                           const std::vector<v1::Attempt>& attempts, absl::Time now) {
  Spending all;
  for (const v1::Attempt& attempt : attempts) {
    const Spending spent = SpendingOf(attempt, now);
    all.seconds += spent.seconds;
    all.cost += spent.cost;
  }
  if (all.seconds <= 0) return "";
  std::string text = SecondsText(all.seconds);
  if (all.cost > 0) absl::StrAppend(&text, ", ", MoneyText(experiment, all.cost));
  if (trial.wasted_seconds() <= 0) return text;
  absl::StrAppend(&text, "; wasted ", SecondsText(trial.wasted_seconds()));
  if (trial.wasted_cost() <= 0) return text;
  return absl::StrCat(text, ", ", MoneyText(experiment, trial.wasted_cost()));
}

// The copy of them that is in a store.
std::string OutputsLine(const v1::Trial& trial, absl::Time now) {
  const v1::Checkpoint& outputs = trial.outputs();
  if (outputs.digest().empty()) return "";
  return absl::StrCat(FormatBytes(outputs.bytes()), " in ", outputs.location(), ", copied ",
                      When(outputs.time(), now));
}

bool EndedBadly(v1::TrialPhase phase) {
  return phase == v1::TRIAL_FAILED || phase == v1::TRIAL_METRICS_UNAVAILABLE ||
         phase == v1::TRIAL_KILLED;
}

// All that is told of, read at about the same time.
struct TrialRecords {
  v1::Experiment experiment;
  v1::Trial trial;
  std::vector<v1::Attempt> attempts;
  std::vector<v1::Checkpoint> checkpoints;
  std::string holder;
};

StatusOr<TrialRecords> Read(client::Client& client, const TrialKey& key) {
  TrialRecords records;
  ASSIGN_OR_RETURN(records.experiment, client.GetExperiment(key.experiment));
  ASSIGN_OR_RETURN(records.trial, client.GetTrial(key));
  ASSIGN_OR_RETURN(records.attempts,
                   client.ListAttempts({.experiment = key.experiment, .trial = key.number}));
  ASSIGN_OR_RETURN(records.checkpoints, client.ListCheckpoints(key));
  ASSIGN_OR_RETURN(records.holder, client.Holder(key.experiment));
  return records;
}

// What its attempts have in fact gone on from, once there are any.
std::string ParentLine(const TrialKey& key, const TrialRecords& records) {
  const v1::Parent& parent = records.trial.parent();
  if (parent.trial() == 0) return "";
  const std::string name = TrialName({key.experiment, parent.trial()});
  bool began = false;
  for (const v1::Attempt& attempt : records.attempts) {
    if (attempt.resumed_from_trial() == parent.trial()) {
      return absl::StrCat(name, ", from step ", attempt.resumed_from_step());
    }
    began |= attempt.last_step() > 0;
  }
  if (began) return name + ", of which no checkpoint was at hand: it began from scratch";
  if (parent.step() == 0) return name + ", from its newest checkpoint";
  return absl::StrCat(name, ", from step ", parent.step());
}

}  // namespace

StatusOr<std::string> DescribeTrial(client::Client& client, const TrialKey& key, absl::Time now) {
  ASSIGN_OR_RETURN(const TrialRecords records, Read(client, key));
  ASSIGN_OR_RETURN(const std::string events, EventsTable(client, key, now));
  const v1::Experiment& experiment = records.experiment;
  const v1::Trial& trial = records.trial;
  const std::string ended =
      client::IsTerminal(trial.phase())
          ? When(trial.completion_time(), now) + Because(trial.reason(), trial.message())
          : "";
  Page page;
  page.Line("Name", TrialName(key));
  page.Line("Experiment", key.experiment.name);
  page.Line("State", TrialState(experiment, trial));
  page.Line("Why", WhyLine(experiment, trial, records.holder, now));
  page.Line("Last stop", LastStop(trial, records.attempts, now));
  page.Line("Ended", ended);
  page.Line("Parameters", client::ShortAssignments(trial.assignments()));
  page.Line("Chosen", trial.explanation());
  page.Line("Parent", ParentLine(key, records));
  page.Line("Created", When(trial.creation_time(), now));
  page.Line("Started", When(trial.start_time(), now));
  page.Line("Took", TrialSpentLine(experiment, trial, records.attempts, now));
  const bool has_log = trial.attempts() > 0 && !experiment.spec().shirabe().ask_and_tell();
  if (has_log) page.Line("Log", client.LogLocation({key, trial.attempts()}));
  page.Line("Outputs", OutputsLine(trial, now));
  page.Line("Tags", absl::StrJoin(trial.tags(), ", "));
  page.Block("Note", trial.note());
  page.Block("Constraints", ConstraintsTable(experiment.spec(), trial));
  page.Block("Metrics", MetricsTable(trial));
  page.Block("Attempts", AttemptsTable(records.attempts, now));
  page.Block("Checkpoints", CheckpointsTable(records.checkpoints, now));
  if (EndedBadly(trial.phase()) && !records.attempts.empty()) {
    page.Block("Last lines", records.attempts.back().log_tail());
  }
  page.Block("Events", events);
  return page.Release();
}

}  // namespace shirabe::view
