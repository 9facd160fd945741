// What programs report of their own accord, and the callers of an ask-and-tell experiment who wait
// for a trial.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "experiment/observation_ingest.h"
#include "experiment/pass_steps.h"

namespace shirabe::experiment {
namespace {

constexpr size_t kMaxAsks = 10'000;  // that wait for a trial, of an experiment

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
    // The last number is left for none: a result without a step comes after the last one.
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

// Whether all of its points are there.
StatusOr<bool> HasStored(const Report& report, db::Store& store) {
  ASSIGN_OR_RETURN(const auto rows, store.ListObservations({.trial = report.trial}));
  const KnownRows known(rows);
  return std::all_of(report.points.begin(), report.points.end(),
                     [&](const metrics::Observation& point) { return known.Has(point); });
}

// Whether it comes from the last attempt of a trial that has none open.
StatusOr<bool> IsFromLastAttempt(const Report& report, const v1::Trial& trial, db::Store& store) {
  if (report.attempt != 0 && report.attempt != trial.attempts()) return false;
  if (report.token.empty()) return true;
  ASSIGN_OR_RETURN(const auto attempts, store.ListAttempts({.experiment = report.trial.experiment,
                                                            .trial = report.trial.number}));
  return !attempts.empty() && attempts.back().record.token() == report.token;
}

// Of a trial that has ended: the same report again, whose answer was lost, is no mistake, and a
// caller who does not know yet that its trial was stopped learns it.
StatusOr<ReportReply> ProcessLateReport(const Report& report, db::Store& store) {
  ASSIGN_OR_RETURN(const auto stored, store.GetTrial(report.trial));
  const v1::Trial& trial = stored.record;
  ASSIGN_OR_RETURN(const bool is_of_last, IsFromLastAttempt(report, trial, store));
  if (!IsTerminal(trial.phase()) || !is_of_last) return NotCurrent(report.trial, report.attempt);
  if (trial.phase() == v1::TRIAL_EARLY_STOPPED || trial.phase() == v1::TRIAL_KILLED) {
    ReportReply reply{.stop = trial.message().empty() ? trial.reason() : trial.message(),
                      .ignored = true};
    if (trial.phase() == v1::TRIAL_KILLED || report.points.empty()) return reply;
    ASSIGN_OR_RETURN(const bool same_points, HasStored(report, store));
    reply.ignored = !same_points;
    return reply;
  }
  if (report.end == Report::End::kNone) return NotCurrent(report.trial, report.attempt);
  ASSIGN_OR_RETURN(const bool same_points, HasStored(report, store));
  const bool same_end = (report.end == Report::End::kFailed) == (trial.phase() == v1::TRIAL_FAILED);
  if (same_end && same_points) return ReportReply{};
  return absl::AlreadyExistsError(absl::StrCat("trial ", TrialName(report.trial),
                                               " has ended already: ", trial.reason(),
                                               "; its first result stays"));
}

}  // namespace

StatusOr<ReportReply> ProcessReport(const PassInput& in, const Report& report, Delta& delta) {
  const v1::ExperimentSpec& spec = in.state.experiment().spec();
  RETURN_IF_ERROR(CheckPoints(spec.objective(), report.points));
  RETURN_IF_ERROR(CheckEnd(spec, report));
  const auto found = in.state.active().find(report.trial.number);
  if (found == in.state.active().end() || !found->second.open) {
    return ProcessLateReport(report, *in.options.store);
  }
  const TrialEdit edit{in, delta, delta.Edit(found->second)};
  const v1::Attempt& attempt = found->second.open->record;
  const bool other = (report.attempt != 0 && report.attempt != attempt.number()) ||
                     (!report.token.empty() && report.token != attempt.token());
  if (other || attempt.state() != v1::ATTEMPT_RUNNING) {
    return NotCurrent(report.trial, report.attempt == 0 ? attempt.number() : report.attempt);
  }
  // Whether it says the same is known once the first end is stored: see ProcessLateReport.
  if (edit.trial.memory().reported_end) {
    return absl::UnavailableError(absl::StrCat("the end of trial ", TrialName(report.trial),
                                               " is just being stored; try again"));
  }
  // What has no step counts on from there.
  if (attempt.begin_untold()) {
    return absl::UnavailableError(absl::StrCat("the pod of trial ", TrialName(report.trial),
                                               " has not said yet where it began; try again"));
  }
  std::vector<metrics::Observation> points = report.points;
  for (metrics::Observation& point : points) {
    if (point.time == absl::Time()) point.time = in.now;
  }
  RETURN_IF_ERROR(IngestPoints(edit, std::move(points)));
  if (report.end != Report::End::kNone) {
    edit.trial.mutable_memory().reported_end =
        AttemptMemory::ReportedEnd{report.end == Report::End::kCompleted, report.message};
  }
  return ReportReply{.stop = attempt.has_stop() ? attempt.stop().reason() : ""};
}

// A caller who has a trial open already needs no other: the first answer was lost. One that asks
// again while it waits has asked once. A trial without a caller, a retry, is as good as a new one.
void EnqueueAsk(const PassInput& in, const v1::Intent& intent, Delta& delta) {
  const auto& active = in.state.active();
  const auto of_caller = [&](const std::string& caller) {
    return std::find_if(active.begin(), active.end(), [&](const auto& entry) {
      const v1::Trial& trial = entry.second.trial.record;
      return trial.caller() == caller && !IsTerminal(trial.phase());  // it may end in this pass
    });
  };
  const auto& asks = delta.memory().asks;
  const auto waits = std::find_if(asks.begin(), asks.end(), [&](const v1::Intent& ask) {
    return ask.caller() == intent.caller();
  });
  if (waits != asks.end()) {
    // A question that is stored outlives this process; one that is not gives way to it.
    const bool stored = waits->id() != 0;
    if (stored && waits->id() != intent.id()) delta.FinishIntent(intent.id());
    if (!stored) delta.mutable_memory().asks[static_cast<size_t>(waits - asks.begin())] = intent;
    return;
  }
  const bool asked = in.state.experiment().spec().shirabe().ask_and_tell();
  if (!asked || of_caller(intent.caller()) != active.end()) return delta.FinishIntent(intent.id());
  delta.mutable_memory().asks.push_back(intent);
  const auto free = of_caller("");
  if (free != active.end()) AssignToCaller(delta.Edit(free->second).mutable_trial(), delta);
}

Delta EnqueueCaller(const PassInput& in, const std::string& caller) {
  Delta delta(in.state, in.now);
  if (in.state.memory().asks.size() >= kMaxAsks) return delta;  // who is left out asks again
  v1::Intent intent;
  intent.set_verb(v1::Intent::ASK);
  intent.set_caller(caller);
  EnqueueAsk(in, intent, delta);
  return delta;
}

std::optional<GivenTrial> TrialOfCaller(const ExperimentState& state, const std::string& caller) {
  for (const auto& [number, active] : state.active()) {
    const v1::Trial& trial = active.trial.record;
    if (trial.caller() != caller) continue;
    const bool runs = trial.phase() == v1::TRIAL_RUNNING && active.open &&
                      active.open->record.state() == v1::ATTEMPT_RUNNING;
    if (!runs) return std::nullopt;
    return GivenTrial{trial, active.open->record.number(), active.open->record.token()};
  }
  return std::nullopt;
}

void AssignToCaller(v1::Trial& trial, Delta& delta) {
  if (delta.memory().asks.empty()) return;
  std::deque<v1::Intent>& asks = delta.mutable_memory().asks;
  trial.set_caller(asks.front().caller());
  delta.FinishIntent(asks.front().id());
  asks.pop_front();
}

void CancelAsks(Delta& delta) {
  if (delta.memory().asks.empty()) return;
  for (const v1::Intent& ask : delta.memory().asks) delta.FinishIntent(ask.id());
  delta.mutable_memory().asks.clear();
}

}  // namespace shirabe::experiment
