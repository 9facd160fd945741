// Ends before their time: of trials by a rule of early stopping, by spec.shirabe.limits or by a
// user, and what a model says of the end of the search.
//
// Early stopping: the rule is asked about every trial that has reported something new, away from
// this thread, and an attempt whose trial it gives up on is asked to end.
//
// The trial reaches its phase in one place whatever comes first, FinishAttempt: if the program ends
// by itself before the request is stored, there is no attempt left to ask; once it is stored, the
// cause of the attempt's end is ours, and a preemption or a completion in between changes nothing.
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text/number.h"
#include "base/timestamp.h"
#include "experiment/conditions.h"
#include "experiment/pass_steps.h"
#include "experiment/spec/objective_value.h"
#include "experiment/spec/trial_result.h"
#include "experiment/state/retry_policy.h"
#include "experiment/state/stop_rules.h"

namespace shirabe::experiment {
namespace {

bool CanBeStoppedEarly(const ActiveTrial& active) {
  return active.open && active.open->record.state() == v1::ATTEMPT_RUNNING &&
         active.memory.phase != AttemptPhase::kExited && !active.open->record.has_stop() &&
         !active.open->record.begin_untold();  // or it is judged by what will not count
}

}  // namespace

std::vector<StopTicket::Question> StopQuestions(const PassInput& in) {
  std::vector<StopTicket::Question> questions;
  for (const auto& [number, active] : in.state.active()) {
    if (!active.memory.judge || !CanBeStoppedEarly(active)) continue;
    questions.push_back({.trial = number, .attempt = active.open->record.number()});
  }
  return questions;
}

Delta MarkAsked(const PassInput& in) {
  Delta delta(in.state, in.now);
  for (const auto& [number, active] : in.state.active()) {
    if (active.memory.judge) delta.Edit(active).mutable_memory().judge = false;
  }
  return delta;
}

// An answer holds for the attempt that it was about: another one has gone back to a checkpoint, and
// what it was judged by may no longer count.
Delta ApplyStopDecisions(const PassInput& in, const StopTicket& answered) {
  Delta delta(in.state, in.now);
  for (const StopTicket::Question& question : answered.questions) {
    const auto found = in.state.active().find(question.trial);
    if (found == in.state.active().end() || !CanBeStoppedEarly(found->second)) continue;
    const ActiveTrial& active = found->second;
    if (active.open->record.number() != question.attempt) continue;
    if (question.reason.ok()) {
      if (!*question.reason) continue;
      RequestStop({in, delta, delta.Edit(active)}, v1::EARLY_STOPPED, **question.reason);
      continue;
    }
    const std::string error = Message(question.reason.status());
    if (delta.memory().stopper_error == error) continue;
    delta.mutable_memory().stopper_error = error;
    delta.AddEvent(active.trial.record, true, "EarlyStoppingFailed", error);
  }
  return delta;
}

// One with an attempt ends with that; one that waits ends here.
void StopTrial(const TrialEdit& edit, const std::string& reason, const char* trial_reason) {
  if (edit.trial.is_open()) {
    // To be gone on with later is less than to be ended.
    if (edit.trial.attempt().stop().cause() == v1::SUSPENDED) {
      edit.trial.mutable_attempt().clear_stop();
    }
    return RequestStop(edit, v1::EARLY_STOPPED, reason, trial_reason);
  }
  const NextStep next = NextAfterStop(trial_reason, edit.trial.trial());
  v1::Trial& trial = edit.trial.mutable_trial();
  trial.set_reason(next.reason);
  trial.clear_waiting();
  *trial.mutable_completion_time() = ToProto(edit.in.now);
  RecordEarlyStop(edit, next.phase, reason);
  edit.trial.SetPhase(next.phase);
  PruneOld(edit);
}

Delta EnforceTrialLimit(const PassInput& in) {
  Delta delta(in.state, in.now);
  const v1::SearchLimits& limits = in.state.experiment().spec().shirabe().limits();
  if (!limits.has_trial_seconds() || IsEnded(in.state.experiment())) return delta;
  for (const auto& [number, active] : in.state.active()) {
    const v1::Trial& trial = active.trial.record;
    if (IsTerminal(trial.phase()) || (active.open && active.open->record.has_stop())) continue;
    // Its program has ended, and only its metrics are still read.
    if (active.open && active.memory.phase == AttemptPhase::kExited) continue;
    const double ran = absl::ToDoubleSeconds(active.memory.Ran(in.monotonic));
    const double left = limits.trial_seconds() - trial.seconds() - (active.open ? ran : 0);
    if (left <= 0) {
      StopTrial({in, delta, delta.Edit(active)},
                absl::StrCat("it has run for ", FormatNumber(limits.trial_seconds()),
                             " s (limits.trialSeconds)"),
                kTimeLimit);
    } else if (active.memory.running_since) {
      delta.Requeue(absl::Seconds(left));
    }
  }
  return delta;
}

Delta StopBroken(const PassInput& in) {
  Delta delta(in.state, in.now);
  const v1::ExperimentSpec& spec = in.state.experiment().spec();
  if (IsEnded(in.state.experiment())) return delta;
  for (const auto& [number, active] : in.state.active()) {
    if (!CanBeStoppedEarly(active)) continue;
    const std::string why = WhyBrokenForGood(spec, active.trial.record);
    if (why.empty()) continue;
    StopTrial({in, delta, delta.Edit(active)}, why, kBreaksConstraint);
  }
  return delta;
}

bool WantsBound(const PassInput& in) {
  const v1::Experiment& experiment = in.state.experiment();
  return !IsEnded(experiment) && WantsRegretBound(experiment) &&
         in.state.memory().regret_unknown != CountResults(experiment.status());
}

// An algorithm that cannot say it is asked again once there are more results.
Delta ApplyRegretBound(const PassInput& in, const RegretTicket& answered) {
  Delta delta(in.state, in.now);
  const auto& answer = *answered.result;
  if (answer.ok() && answer->has_value()) {
    v1::RegretBound& known = *delta.mutable_shirabe().mutable_regret_bound();
    known.set_bound(**answer);
    known.set_results(answered.results);
  } else {
    delta.mutable_memory().regret_unknown = answered.results;
    if (!answer.ok()) delta.AddEvent(true, "RegretBoundFailed", Message(answer.status()));
  }
  delta.Requeue(absl::ZeroDuration());
  return delta;
}

// Without an answer that differs from the best result nothing is stored, and an error only leaves
// the best result as it is.
Delta ApplyRecommendation(const PassInput& in, const RecommendTicket& answered) {
  Delta delta(in.state, in.now);
  const auto& answer = *answered.result;
  if (!answer.ok()) {
    delta.AddEvent(true, "RecommendationFailed", Message(answer.status()));
    return delta;
  }
  if (!answer->has_value()) return delta;
  const suggestion::Recommendation& found = **answer;
  const suggestion::History& history = in.state.history();
  if (found.trial < 0 || found.trial >= history.size()) return delta;
  if (history.trial(found.trial).partial) return delta;
  v1::RecommendedTrial recommended;
  recommended.set_number(found.trial + 1);
  recommended.set_trial_name(TrialName({in.state.key(), recommended.number()}));
  for (v1::Assignment& assignment : in.state.space().Decode(history.point(found.trial))) {
    *recommended.add_parameter_assignments() = std::move(assignment);
  }
  const v1::ObjectiveSpec& objective = in.state.experiment().spec().objective();
  recommended.set_predicted(LossOf(objective, found.loss));  // its own inverse
  recommended.set_deviation(found.deviation);
  recommended.set_reason(found.reason);
  delta.AddEvent(false, "TrialRecommended",
                 "trial " + recommended.trial_name() + ": " + recommended.reason());
  *delta.mutable_shirabe().mutable_recommended_trial() = std::move(recommended);
  return delta;
}

}  // namespace shirabe::experiment
