#include "view/progress.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/timestamp.h"
#include "client/records/enum_words.h"
#include "view/record_rows.h"
#include "view/text_table.h"

namespace shirabe::view {
namespace {

constexpr int kBarWidth = 16;

std::string Bar(int64_t done, int64_t all) {
  const auto full = static_cast<int>(std::clamp<int64_t>(done * kBarWidth / all, 0, kBarWidth));
  return "[" + std::string(full, '#') + std::string(kBarWidth - full, '.') + "]";
}

std::string BestPart(const v1::Experiment& experiment) {
  const v1::OptimalTrial& best = experiment.status().current_optimal_trial();
  if (!best.has_objective()) return "";
  return absl::StrCat("best ", BestCell(experiment), " (trial ", best.number(), ": ",
                      client::ShortAssignments(best.parameter_assignments()), ")");
}

std::string Join(const std::vector<std::string>& parts) {
  std::vector<std::string> shown;
  for (const std::string& part : parts) {
    if (!part.empty()) shown.push_back(part);
  }
  return absl::StrJoin(shown, "  ");
}

std::string CountPart(const char* word, int64_t count) {
  return count > 0 ? absl::StrCat(word, " ", count) : "";
}

}  // namespace

Status Progress::Update() {
  ASSIGN_OR_RETURN(const int64_t newest, client_->Revision());
  if (newest == revision_) return absl::OkStatus();
  const bool first = revision_ < 0;
  ASSIGN_OR_RETURN(experiment_, client_->GetExperiment(key_));
  ASSIGN_OR_RETURN(
      auto trials,
      client_->ListTrials({.experiment = key_, .changed_after = std::max<int64_t>(revision_, 0)}));
  for (v1::Trial& trial : trials) {
    if (!client::IsTerminal(trial.phase()) || !ended_.insert(trial.number()).second) continue;
    Count(trial);
    if (!first) finished_.push_back(std::move(trial));
  }
  revision_ = newest;
  return absl::OkStatus();
}

void Progress::Count(const v1::Trial& trial) {
  if (!trial.has_start_time() || !trial.has_completion_time()) return;
  total_ += std::max(FromProto(trial.completion_time()) - FromProto(trial.start_time()),
                     absl::ZeroDuration());
  ++timed_;
}

std::vector<v1::Trial> Progress::PopFinished() { return std::exchange(finished_, {}); }

std::optional<absl::Duration> Progress::Remaining() const {
  const v1::ExperimentSpec& spec = experiment_.spec();
  if (!spec.has_max_trial_count() || timed_ == 0) return std::nullopt;
  const int64_t left =
      std::max<int64_t>(spec.max_trial_count() - static_cast<int64_t>(ended_.size()), 0);
  const int64_t lanes = std::max(spec.parallel_trial_count(), 1);
  return total_ / timed_ * ((left + lanes - 1) / lanes);
}

std::string Progress::Line(int width) const {
  const v1::ExperimentStatus& status = experiment_.status();
  const int64_t done = FinishedTrials(experiment_);
  const int32_t all = experiment_.spec().max_trial_count();
  const std::string head = Join(
      {absl::StrCat(all > 0 ? Bar(done, all) + " " : "", TrialsCell(experiment_)),
       CountPart("running", status.trials_running()), CountPart("failed", status.trials_failed())});
  const auto remaining = Remaining();
  const std::string eta = remaining ? "ETA " + FormatAge(*remaining) : "";
  const std::string& waiting = status.shirabe().waiting();
  const std::string middle = Printable(
      Join({BestPart(experiment_), status.trials_running() == 0 ? waiting : std::string()}));
  // What is too long loses the end of its middle, never the time left.
  const int room = width - DisplayWidth(head) - DisplayWidth(eta) - (eta.empty() ? 2 : 4);
  if (DisplayWidth(middle) <= room) return Truncate(Join({head, middle, eta}), width);
  const std::string cut = room > 3 ? Truncate(middle, room - 3) + "..." : "";
  return Truncate(Join({head, cut, eta}), width);
}

std::string FinishedLine(const v1::Experiment& experiment, const v1::Trial& trial) {
  std::string line = absl::StrCat("trial ", TrialName({ExperimentKeyOf(trial), trial.number()}),
                                  " ", client::PhaseWord(trial.phase()));
  if (const auto objective = client::ShownObjective(experiment, trial)) {
    absl::StrAppend(&line, " ", experiment.spec().objective().objective_metric_name(), "=",
                    client::ShortNumber(objective->value));
  }
  absl::StrAppend(&line, " ", client::ShortAssignments(trial.assignments()));
  const bool explain = trial.phase() != v1::TRIAL_SUCCEEDED && !trial.message().empty();
  return Printable(explain ? absl::StrCat(line, ": ", trial.message()) : line);
}

}  // namespace shirabe::view
