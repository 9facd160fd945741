#include "cmd/verbs/jobs/job_records.h"

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/printable.h"
#include "base/sorting.h"
#include "base/timestamp.h"
#include "client/records/enum_words.h"
#include "cmd/terminal.h"
#include "convert/conversion.h"
#include "experiment/conditions.h"
#include "trial/trial_template.h"
#include "view/best_trial.h"

namespace shirabe::cmd {
namespace {

std::string TrialStateWord(v1::TrialPhase phase) {
  switch (phase) {
    case v1::TRIAL_PENDING: return "QUEUED";
    case v1::TRIAL_RUNNING: return "RUNNING";
    case v1::TRIAL_SUCCEEDED:
    case v1::TRIAL_EARLY_STOPPED:
    case v1::TRIAL_METRICS_UNAVAILABLE: return "SUCCEEDED";
    case v1::TRIAL_FAILED: return "FAILED";
    default: return "CANCELLED";
  }
}

void SetTime(const char* key, bool known, const google::protobuf::Timestamp& time,
             view::Json& json) {
  if (known) json[key] = FormatTime(time);
}

view::Json JobTrialJson(const v1::Trial& trial) {
  view::Json json = {{"trialId", std::to_string(trial.number())},
                     {"state", TrialStateWord(trial.phase())}};
  for (const v1::Assignment& assignment : trial.assignments()) {
    json["hyperparameters"][assignment.name()] = trial::FormatAssignment(assignment);
  }
  if (trial.has_objective()) {
    json["finalMetric"] = {{"objectiveValue", trial.objective()},
                           {"trainingStep", std::to_string(trial.objective_step())}};
  }
  if (trial.phase() == v1::TRIAL_EARLY_STOPPED) json["isTrialStoppedEarly"] = true;
  SetTime("startTime", trial.has_start_time(), trial.start_time(), json);
  SetTime("endTime", trial.has_completion_time(), trial.completion_time(), json);
  if (!trial.message().empty()) json["message"] = trial.message();
  return json;
}

// The best first; those without a result last.
void SortByObjective(bool maximize, std::vector<v1::Trial>& trials) {
  StableSort(trials, [&](const v1::Trial& a, const v1::Trial& b) {
    if (a.has_objective() != b.has_objective()) return a.has_objective();
    return maximize ? a.objective() > b.objective() : a.objective() < b.objective();
  });
}

bool HasSucceeded(const v1::Experiment& experiment) {
  const v1::ExperimentStatus& status = experiment.status();
  if (experiment::CurrentCondition(experiment).type() != "Succeeded") return false;
  if (!IsSingleJob(experiment)) return view::CheckHasBest(experiment).ok();
  return status.trials_succeeded() + status.trial_metrics_unavailable() > 0;
}

}  // namespace

bool IsSingleJob(const v1::Experiment& experiment) {
  const auto& annotations = experiment.metadata().annotations();
  const auto found = annotations.find(convert::kConvertedFrom);
  return found != annotations.end() && found->second == convert::kSingleJob;
}

std::string JobState(const v1::Experiment& experiment) {
  const v1::ExperimentStatus& status = experiment.status();
  const bool stopped = status.shirabe().has_stopped_by();
  if (experiment::IsEnded(experiment)) {
    if (stopped) return "CANCELLED";
    return HasSucceeded(experiment) ? "SUCCEEDED" : "FAILED";
  }
  if (stopped || status.shirabe().stopping()) return "CANCELLING";
  if (status.trials_running() > 0) return "RUNNING";
  if (status.trials() == 0) return "QUEUED";
  return status.trials_pending() == status.trials() ? "PREPARING" : "RUNNING";
}

view::Json JobJson(const v1::Experiment& experiment, std::vector<v1::Trial> trials) {
  const v1::ExperimentStatus& status = experiment.status();
  const v1::ObjectiveSpec& objective = experiment.spec().objective();
  view::Json json = {{"jobId", experiment.metadata().name()},
                     {"namespace", experiment.metadata().namespace_()},
                     {"state", JobState(experiment)}};
  const v1::ObjectMeta& metadata = experiment.metadata();
  SetTime("createTime", metadata.has_creation_timestamp(), metadata.creation_timestamp(), json);
  SetTime("startTime", status.has_start_time(), status.start_time(), json);
  SetTime("endTime", status.has_completion_time(), status.completion_time(), json);
  for (const auto& [name, value] : metadata.labels()) json["labels"][name] = value;
  if (json["state"] == "FAILED") {
    json["errorMessage"] = experiment::CurrentCondition(experiment).message();
  }
  if (!status.shirabe().waiting().empty()) json["waiting"] = status.shirabe().waiting();
  view::Json output = {
      {"isHyperparameterTuningJob", !IsSingleJob(experiment)},
      {"hyperparameterMetricTag", objective.objective_metric_name()},
      {"completedTrialCount", status.trials_succeeded() + status.trials_early_stopped()}};
  SortByObjective(objective.type() == v1::MAXIMIZE, trials);
  for (const v1::Trial& trial : trials) output["trials"].push_back(JobTrialJson(trial));
  json["trainingOutput"] = std::move(output);
  return json;
}

namespace {

constexpr int64_t kLogPiece = 1 << 16;
// A line that is longer is printed in pieces.
constexpr size_t kMaxLogLine = 1 << 16;

}  // namespace

void JobLogs::PrintLine(const AttemptKey& key, const std::string& line) const {
  const std::string prefix =
      prefix_ ? absl::StrCat(key.trial.number, ".", key.number, "  ") : std::string();
  Out(absl::StrCat(prefix, Printable(line), "\n"));
}

Status JobLogs::PrintAttempt(const AttemptKey& key) {
  Tail& tail = tails_[{key.trial.number, key.number}];
  for (;;) {
    const auto chunk = client_->ReadLog(key, tail.offset, kLogPiece);
    if (absl::IsNotFound(chunk.status())) return absl::OkStatus();
    RETURN_IF_ERROR(chunk.status());
    tail.begun += chunk->text();
    tail.offset = chunk->next();
    size_t begin = 0;
    for (size_t end = tail.begun.find('\n'); end != std::string::npos;
         end = tail.begun.find('\n', begin)) {
      PrintLine(key, tail.begun.substr(begin, end - begin));
      begin = end + 1;
    }
    tail.begun.erase(0, begin);
    if (tail.begun.size() > kMaxLogLine) PrintLine(key, std::exchange(tail.begun, ""));
    if (chunk->at_end()) return FlushOut();
  }
}

Status JobLogs::PrintTrial(const v1::Trial& trial) {
  const TrialKey key{key_, trial.number()};
  for (int32_t attempt = 1; attempt <= trial.attempts(); ++attempt) {
    RETURN_IF_ERROR(PrintAttempt({key, attempt}));
  }
  if (!client::IsTerminal(trial.phase())) return absl::OkStatus();
  for (int32_t attempt = 1; attempt <= trial.attempts(); ++attempt) {
    const auto tail = tails_.extract({trial.number(), attempt});
    if (!tail.empty() && !tail.mapped().begun.empty()) {
      PrintLine({key, attempt}, tail.mapped().begun);
    }
  }
  ended_.insert(trial.number());
  return absl::OkStatus();
}

Status JobLogs::Print() {
  ASSIGN_OR_RETURN(const auto trials, client_->ListTrials({.experiment = key_}));
  for (const v1::Trial& trial : trials) {
    if (!ended_.contains(trial.number())) RETURN_IF_ERROR(PrintTrial(trial));
  }
  return FlushOut();
}

void JobLogs::PrintSometimes(absl::Duration interval) {
  const absl::Duration now = RealClock()->Monotonic();
  if (now < next_) return;
  next_ = now + interval;
  Print().IgnoreError();
}

}  // namespace shirabe::cmd
