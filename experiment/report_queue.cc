#include "experiment/report_queue.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "experiment/conditions.h"
#include "experiment/observation_ingest.h"
#include "experiment/submission.h"

namespace shirabe::experiment {
namespace {

constexpr size_t kMaxPendingReports = 4096;    // letters
constexpr size_t kMaxPointsPerPass = 100'000;  // in one commit

}  // namespace

Status ReportQueue::Put(const PendingReportPtr& pending_report) {
  const size_t points = pending_report->report.points.size();
  if (points > kMaxPointsPerPass) {
    return absl::InvalidArgumentError(absl::StrCat("points has ", points, " values, and at most ",
                                                   kMaxPointsPerPass, " are taken at a time"));
  }
  std::lock_guard lock(mutex_);
  if (waiting_.size() >= kMaxPendingReports) {
    return absl::ResourceExhaustedError(absl::StrCat(
        kMaxPendingReports, " reports of this experiment are waiting: try again later"));
  }
  waiting_.push_back(pending_report);
  return absl::OkStatus();
}

StatusOr<ReportReply> ReportQueue::Await(const PendingReportPtr& pending_report,
                                         absl::Duration timeout) {
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, absl::ToChronoMilliseconds(timeout),
                        [&] { return pending_report->answered; })) {
    return pending_report->answer;
  }
  return absl::UnavailableError(
      "the report was not stored in time: send it again (twice counts once)");
}

std::vector<PendingReportPtr> ReportQueue::Drain() {
  std::lock_guard lock(mutex_);
  size_t count = 0, points = 0;
  while (count < waiting_.size() && (count == 0 || points < kMaxPointsPerPass)) {
    points += waiting_[count++]->report.points.size();
  }
  std::vector<PendingReportPtr> taken(waiting_.begin(), waiting_.begin() + count);
  waiting_.erase(waiting_.begin(), waiting_.begin() + count);
  return taken;
}

bool ReportQueue::empty() const {
  std::lock_guard lock(mutex_);
  return waiting_.empty();
}

void ReportQueue::Answer(const std::vector<PendingReportPtr>& pending_reports,
                         const Status& committed) {
  if (pending_reports.empty()) return;
  std::lock_guard lock(mutex_);
  for (const PendingReportPtr& pending_report : pending_reports) {
    if (!committed.ok()) {
      pending_report->answer =
          absl::UnavailableError("the report was not stored (" + Message(committed) +
                                 "): send it again (twice counts once)");
    }
    pending_report->answered = true;
  }
  changed_.notify_all();
}

namespace {

Status NotCurrent(const TrialKey& trial, int32_t attempt) {
  return absl::PermissionDeniedError(
      attempt == 0 ? absl::StrCat("trial ", TrialName(trial),
                                  " has no running attempt: the report was not counted")
                   : absl::StrCat("attempt ", attempt, " of trial ", TrialName(trial),
                                  " is not its current one: what it reports no longer counts"));
}

Status CheckPoints(const v1::ObjectiveSpec& objective,
                   const std::vector<metrics::Observation>& points) {
  const auto& others = objective.additional_metric_names();
  const std::set<std::string> known(others.begin(), others.end());
  for (const metrics::Observation& point : points) {
    if (point.metric != objective.objective_metric_name() && !known.contains(point.metric)) {
      return absl::InvalidArgumentError(
          absl::StrCat("metric \"", point.metric, "\" is not one of this experiment's: ",
                       objective.objective_metric_name(), others.empty() ? "" : ", ",
                       absl::StrJoin(others, ", "), " (spec.objective.additionalMetricNames)"));
    }
    // The last number is left for none: a result without a step comes after the last one told.
    if (point.step < 0 || point.step == std::numeric_limits<int64_t>::max()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the step of metric \"", point.metric, "\" must be from 0 to ",
                       std::numeric_limits<int64_t>::max() - 1, ", not ", point.step));
    }
  }
  return absl::OkStatus();
}

Status CheckEnd(const v1::ExperimentSpec& spec, const Report& report) {
  if (report.end == Report::End::kNone || spec.shirabe().ask_and_tell()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("trial ", TrialName(report.trial),
                   " is run by Shirabe and ends with its program: only trials of an experiment "
                   "with spec.shirabe.askAndTell are told to end"));
}

// NaN is the same as NaN, and 0 as -0.
uint64_t BitsOf(double value) {
  return std::isnan(value) ? ~uint64_t{0} : std::bit_cast<uint64_t>(value + 0.0);
}

// The rows of a trial, to be asked for many points.
class KnownRows {
 public:
  explicit KnownRows(const std::vector<db::StoredObservation>& rows) {
    for (const db::StoredObservation& row : rows) {
      values_.emplace(row.metric, BitsOf(row.value));
      steps_.emplace(row.metric, row.step, BitsOf(row.value));
    }
  }
  bool Has(const metrics::Observation& point) const {
    const uint64_t value = BitsOf(point.value);
    return point.implicit_step ? values_.contains({point.metric, value})
                               : steps_.contains({point.metric, point.step, value});
  }

 private:
  std::set<std::pair<std::string, uint64_t>> values_;
  std::set<std::tuple<std::string, int64_t, uint64_t>> steps_;
};

// Whether it comes from the last attempt of a trial that has none open.
StatusOr<bool> IsFromLastAttempt(const Report& report, const v1::Trial& trial, db::Store& store) {
  if (report.attempt != 0 && report.attempt != trial.attempts()) return false;
  if (report.token.empty()) return true;
  ASSIGN_OR_RETURN(const auto attempts, store.ListAttempts({.experiment = report.trial.experiment,
                                                            .trial = report.trial.number}));
  return !attempts.empty() && attempts.back().record.token() == report.token;
}

// Of a trial that has ended: the same report again, whose answer was lost, is no mistake, and a
// caller who does not know yet that its trial was stopped is told so.
StatusOr<ReportReply> ApplyLateReport(const Report& report, db::Store& store) {
  ASSIGN_OR_RETURN(const auto stored, store.GetTrial(report.trial));
  const v1::Trial& trial = stored.record;
  ASSIGN_OR_RETURN(const bool is_of_last, IsFromLastAttempt(report, trial, store));
  if (!IsTerminal(trial.phase()) || !is_of_last) return NotCurrent(report.trial, report.attempt);
  if (trial.phase() == v1::TRIAL_EARLY_STOPPED || trial.phase() == v1::TRIAL_KILLED) {
    return ReportReply{.stop = trial.message().empty() ? trial.reason() : trial.message()};
  }
  if (report.end == Report::End::kNone) return NotCurrent(report.trial, report.attempt);
  ASSIGN_OR_RETURN(const auto rows, store.ListObservations({.trial = report.trial}));
  const bool same_end = (report.end == Report::End::kFailed) == (trial.phase() == v1::TRIAL_FAILED);
  const KnownRows known(rows);
  const bool same_points =
      std::all_of(report.points.begin(), report.points.end(),
                  [&](const metrics::Observation& point) { return known.Has(point); });
  if (same_end && same_points) return ReportReply{};
  return absl::AlreadyExistsError(absl::StrCat("trial ", TrialName(report.trial),
                                               " has ended already: ", trial.reason(),
                                               "; its first result stays"));
}

}  // namespace

StatusOr<ReportReply> ApplyReport(State& state, const Report& report, db::Store& store,
                                  absl::Time now) {
  const v1::ExperimentSpec& spec = state.experiment().spec();
  RETURN_IF_ERROR(CheckPoints(spec.objective(), report.points));
  RETURN_IF_ERROR(CheckEnd(spec, report));
  const auto found = state.live().find(report.trial.number);
  if (found == state.live().end() || !found->second.open) return ApplyLateReport(report, store);
  ActiveTrial& live = found->second;
  const v1::Attempt& attempt = live.open->record;
  const bool other = (report.attempt != 0 && report.attempt != attempt.number()) ||
                     (!report.token.empty() && report.token != attempt.token());
  if (other || live.told || attempt.state() != v1::ATTEMPT_RUNNING) {
    return NotCurrent(report.trial, report.attempt == 0 ? attempt.number() : report.attempt);
  }
  std::vector<metrics::Observation> points = report.points;
  for (metrics::Observation& point : points) {
    if (point.time == absl::Time()) point.time = now;
  }
  RETURN_IF_ERROR(IngestPoints(state, live, std::move(points), store));
  if (report.end != Report::End::kNone) {
    live.told = ActiveTrial::ReportedEnd{report.end == Report::End::kCompleted, report.message};
  }
  return ReportReply{.stop = attempt.has_stop() ? attempt.stop().reason() : ""};
}

// A caller who has a trial open already needs no other: the first answer was lost. Who asks again
// while they wait has asked once. A trial without a caller, a retry, is as good as a new one.
void EnqueueAsk(State& state, const v1::Intent& intent) {
  const auto is_same = [&](const v1::Intent& ask) { return ask.caller() == intent.caller(); };
  const auto of_caller = [&](const std::string& caller) {
    return std::find_if(state.live().begin(), state.live().end(), [&](const auto& entry) {
      return entry.second.trial.record.caller() == caller;
    });
  };
  const auto waits = std::find_if(state.asks.begin(), state.asks.end(), is_same);
  if (waits != state.asks.end()) {
    if (waits->id() != intent.id()) state.batch().intents_done.push_back(intent.id());
    return;
  }
  const bool asked = state.experiment().spec().shirabe().ask_and_tell();
  if (!asked || of_caller(intent.caller()) != state.live().end()) {
    return state.batch().intents_done.push_back(intent.id());
  }
  state.asks.push_back(intent);
  const auto free = of_caller("");
  if (free != state.live().end()) AssignToCaller(state, free->second);
}

void AssignToCaller(State& state, ActiveTrial& live) {
  if (state.asks.empty()) return;
  live.trial.record.set_caller(state.asks.front().caller());
  live.trial_changed = true;
  state.batch().intents_done.push_back(state.asks.front().id());
  state.asks.pop_front();
}

void CancelAsks(State& state) {
  for (const v1::Intent& ask : state.asks) state.batch().intents_done.push_back(ask.id());
  state.asks.clear();
}

Status RetryTrial(State& state, int64_t number, db::Store& store, absl::Time now) {
  if (IsEnded(state.experiment())) {
    return absl::FailedPreconditionError(
        absl::StrCat("trial ", number, " is not tried again: the experiment has ended"));
  }
  RETURN_IF_ERROR(CheckHasRoom(state.experiment()));
  ASSIGN_OR_RETURN(const auto old, store.GetTrial({state.key(), number}));
  suggestion::Suggestion again;
  again.point.assign(old.record.point().x().begin(), old.record.point().x().end());
  again.labels.assign(old.record.labels().begin(), old.record.labels().end());
  again.explanation = absl::StrCat("the point of trial ", number, ", tried again");
  state.AddTrial(again, now);
  return absl::OkStatus();
}

}  // namespace shirabe::experiment
