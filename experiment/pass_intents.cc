// What other processes want of an experiment: intents, and who wrote them.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/sorting.h"
#include "base/text/number.h"
#include "base/timestamp.h"
#include "experiment/annotations.h"
#include "experiment/conditions.h"
#include "experiment/pass_steps.h"
#include "experiment/spec/range_changes.h"
#include "experiment/spec/trial_point.h"
#include "experiment/state/retry_policy.h"
#include "experiment/state/stop_rules.h"
#include "experiment/submission.h"

namespace shirabe::experiment {
namespace {

// Passes that come anyway read intents so often; see IntentFollower for the rest.
constexpr absl::Duration kIntentInterval = absl::Milliseconds(400);
// Of the random stream of a suggestion, for what a user leaves open; algorithms use smaller ones.
constexpr uint64_t kTriedStream = 16;

// "parallelTrialCount 2 -> 4, maxTrialCount 10 -> none"
std::string Changes(const v1::ExperimentSpec& before, const v1::ExperimentSpec& after) {
  std::vector<std::string> parts;
  const auto add = [&](const char* field, const std::string& old, const std::string& now) {
    if (old != now) parts.push_back(absl::StrCat(field, " ", old, " -> ", now));
  };
  const auto count = [](bool has, int32_t value) { return has ? absl::StrCat(value) : "none"; };
  const auto goal = [](const v1::ObjectiveSpec& objective) {
    return objective.has_goal() ? FormatNumber(objective.goal()) : "none";
  };
  add("parallelTrialCount", absl::StrCat(before.parallel_trial_count()),
      absl::StrCat(after.parallel_trial_count()));
  add("maxTrialCount", count(before.has_max_trial_count(), before.max_trial_count()),
      count(after.has_max_trial_count(), after.max_trial_count()));
  add("maxFailedTrialCount",
      count(before.has_max_failed_trial_count(), before.max_failed_trial_count()),
      count(after.has_max_failed_trial_count(), after.max_failed_trial_count()));
  add("objective.goal", goal(before.objective()), goal(after.objective()));
  if (const std::string ranges = DescribeChanges(before, after); !ranges.empty()) {
    parts.push_back(ranges);
  }
  return parts.empty() ? "nothing differs" : absl::StrJoin(parts, ", ");
}

// Who asked for it, as an event: these are never changed or removed while their experiment is
// there.
void RecordActor(const v1::Intent& intent, const char* reason, const std::string& message,
                 Delta& delta) {
  if (intent.actor().name().empty()) return;
  v1::Event event;
  event.set_reason(reason);
  event.set_message(message);
  // Of a point to try it is the trial that it is to be like.
  if (intent.verb() != v1::Intent::TRY) event.set_trial(intent.trial());
  *event.mutable_actor() = intent.actor();
  delta.AddEvent(std::move(event));
}

// What the caller could not be told when it was sent.
void RecordRefusal(const char* reason, const Status& done, Delta& delta) {
  if (!done.ok()) delta.AddEvent(true, reason, Message(done));
}

// A pause that came as the experiment ended is passed over.
void SetPaused(const v1::Intent& intent, Delta& delta) {
  const bool pause = intent.verb() == v1::Intent::PAUSE;
  if (pause && IsEnded(delta.experiment())) return;
  if (delta.experiment().status().shirabe().paused() == pause) return;
  RecordActor(intent, pause ? "PauseRequested" : "ResumeRequested",
              pause ? "no new trials are started" : "it goes on", delta);
  delta.mutable_shirabe().set_paused(pause);
  CountPause(pause, delta.now(), delta.mutable_experiment());
}

// Who asked for it first is who stopped it. Written once, however often an intent that stays is
// seen.
void EndExperiment(const v1::Intent& intent, Delta& delta) {
  const v1::ShirabeStatus& known = delta.experiment().status().shirabe();
  const bool deletes = intent.verb() == v1::Intent::DELETE;
  const std::string reason = deletes ? "deleted by a user" : "stopped by a user";
  delta.mutable_memory().ending_verb = intent.verb();
  if (!known.stopping()) {
    RecordActor(intent, "StopRequested",
                deletes                               ? "it is to be deleted"
                : intent.verb() == v1::Intent::CANCEL ? "it is to end at once"
                                                      : "it is to end",
                delta);
  } else if (known.stop_reason() == reason) {
    return;
  }
  v1::ShirabeStatus& status = delta.mutable_shirabe();
  if (!status.stopping() && !intent.actor().name().empty()) {
    *status.mutable_stopped_by() = intent.actor();
  }
  status.set_stopping(true);
  status.set_stop_reason(reason);
}

Status CheckMaySearch(const v1::Experiment& experiment) {
  if (IsEnded(experiment)) {
    return absl::FailedPreconditionError("nothing more is tried: the experiment has ended");
  }
  const v1::ShirabeStatus& status = experiment.status().shirabe();
  if (!status.has_stop_rule() && !status.stopping()) return absl::OkStatus();
  return absl::FailedPreconditionError("nothing more is tried: the experiment is ending");
}

// Also what the administrator allows: others ask the plan, which knows it.
Status CheckMayAdd(const PassInput& in) {
  const v1::Experiment& experiment = in.state.experiment();
  RETURN_IF_ERROR(CheckMaySearch(experiment));
  RETURN_IF_ERROR(CheckHasRoom(experiment));
  const int64_t most = in.options.limits.trials;
  if (most == 0 || experiment.status().trials() < most) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(most, " trials have been made, the most that an experiment may have here ",
                   "(--max-trials of the server)"));
}

std::vector<std::string> GivenNames(const v1::Intent& intent) {
  std::vector<std::string> names;
  for (const auto& [name, value] : intent.point().fields()) names.push_back(name);
  StableSort(names);
  if (names.empty()) names.push_back("no value of its own");
  return names;
}

Status CheckCanRetry(const PassInput& in, const v1::Intent& intent) {
  if (!IsEnded(in.state.experiment())) return CheckMayAdd(in);
  return absl::FailedPreconditionError(
      absl::StrCat("trial ", intent.trial(), " is not tried again: the experiment has ended"));
}

StatusOr<TrialPoint> PointWithin(const PassInput& in, const v1::Trial& trial) {
  const int64_t changes = in.state.experiment().status().shirabe().space_changes();
  return CheckedPoint(in.state.space(), changes, trial);
}

// A new trial with the point of an old one, to be started like any that waits.
Status RepeatTrial(const PassInput& in, const v1::Intent& intent, Delta& delta) {
  RETURN_IF_ERROR(CheckCanRetry(in, intent));
  ASSIGN_OR_RETURN(const auto old, in.options.store->GetTrial({in.state.key(), intent.trial()}));
  suggestion::Suggestion again;
  ASSIGN_OR_RETURN(const TrialPoint at, PointWithin(in, old.record));
  again.point = at.point;
  // What they say is of the space in which they were given.
  if (!at.earlier) again.labels = LabelsFor(old.record, in.state.space());
  again.explanation = absl::StrCat("the point of trial ", intent.trial(), ", tried again");
  AddTrial(in, again, /*open=*/false, delta);
  RecordActor(intent, "RetryRequested", "its point is tried again", delta);
  return absl::OkStatus();
}

// A trial that a user wants: at the values given, else those of another trial, else anywhere.
Status TryPoint(const PassInput& in, const v1::Intent& intent, Delta& delta) {
  RETURN_IF_ERROR(CheckMayAdd(in));
  const suggestion::Space& space = in.state.space();
  if (space.size() == 0) {
    return absl::FailedPreconditionError(
        "an architecture is not given by hand: let a trial be tried again (shirabe retry)");
  }
  suggestion::Suggestion wanted;
  std::string rest;
  if (intent.trial() > 0) {
    ASSIGN_OR_RETURN(const auto like, in.options.store->GetTrial({in.state.key(), intent.trial()}));
    ASSIGN_OR_RETURN(const TrialPoint at, PointWithin(in, like.record));
    wanted.point = at.point;
    rest = absl::StrCat("; the others as in trial ", intent.trial());
    ASSIGN_OR_RETURN(wanted.point, WithValues(in.state.experiment().spec(), space, intent.point(),
                                              std::move(wanted.point)));
  } else {
    const auto ordinal = static_cast<uint64_t>(delta.NextNumber() - 1);
    const Rng rng = Rng(in.state.setup().seed).Fork(ordinal).Fork(kTriedStream);
    ASSIGN_OR_RETURN(wanted.point,
                     SampleWithValues(in.state.experiment().spec(), space, intent.point(), rng));
    rest = "; the others at random";
  }
  const bool all = intent.point().fields_size() == space.size();
  const std::string values = absl::StrCat(absl::StrJoin(GivenNames(intent), ", "), all ? "" : rest);
  wanted.explanation =
      absl::StrCat("asked for", intent.actor().name().empty() ? "" : " by " + intent.actor().name(),
                   ": ", values);
  AddTrial(in, wanted, /*open=*/false, delta);
  RecordActor(intent, "TryRequested", "a point is to be tried: " + values, delta);
  return absl::OkStatus();
}

void StopOne(const PassInput& in, const v1::Intent& intent, Delta& delta) {
  const auto found = in.state.active().find(intent.trial());
  if (found == in.state.active().end()) return;  // it has ended
  const TrialEdit edit{in, delta, delta.Edit(found->second)};
  if (IsTerminal(edit.trial.trial().phase())) return;
  RecordActor(intent, "TrialStopRequested", "it is to end, and keeps its best value", delta);
  StopTrial(edit, "stopped by a user", kStoppedByUser);
}

// A trial that has ended is no longer part of the state. False if nothing differs.
StatusOr<bool> AnnotateTrial(const PassInput& in, const v1::Intent& intent, Delta& delta) {
  const auto found = in.state.active().find(intent.trial());
  if (found != in.state.active().end()) {
    return Annotate(intent, delta.Edit(found->second).mutable_trial());
  }
  db::Write<v1::Trial> ended;
  const auto& waiting = in.state.batch().trials;
  const auto changed = std::find_if(waiting.begin(), waiting.end(), [&](const auto& write) {
    return write.record.number() == intent.trial();
  });
  if (changed != waiting.end()) {
    ended = *changed;
  } else {
    ASSIGN_OR_RETURN(auto stored, in.options.store->GetTrial({in.state.key(), intent.trial()}));
    ended = {std::move(stored.record), stored.revision};
  }
  ASSIGN_OR_RETURN(const bool differs, Annotate(intent, ended.record));
  if (differs) delta.PutEndedTrial(std::move(ended));
  return differs;
}

Status AnnotateOne(const PassInput& in, const v1::Intent& intent, Delta& delta) {
  bool differs = false;
  if (intent.trial() > 0) {
    ASSIGN_OR_RETURN(differs, AnnotateTrial(in, intent, delta));
  } else {
    v1::ShirabeStatus status = delta.experiment().status().shirabe();
    ASSIGN_OR_RETURN(differs, Annotate(intent, status));
    if (differs) delta.mutable_shirabe() = std::move(status);
  }
  if (differs) delta.AddEvent(AnnotationEvent(intent));
  return absl::OkStatus();
}

void ChangeCounts(const v1::Intent& intent, v1::ExperimentSpec& spec) {
  if (intent.replace()) {
    spec.clear_max_trial_count();
    spec.clear_max_failed_trial_count();
    spec.mutable_objective()->clear_goal();
  }
  if (intent.has_parallel_trial_count()) {
    spec.set_parallel_trial_count(std::max(1, intent.parallel_trial_count()));
  }
  if (intent.has_max_trial_count()) spec.set_max_trial_count(intent.max_trial_count());
  if (intent.has_max_failed_trial_count()) {
    spec.set_max_failed_trial_count(intent.max_failed_trial_count());
  }
  if (intent.has_goal()) spec.mutable_objective()->set_goal(intent.goal());
}

// The algorithm begins with what is known, seen in the new space: its memo is of the old one.
void ChangeRanges(const v1::ExperimentSpec& before, Delta& delta) {
  if (DescribeChanges(before, delta.experiment().spec()).empty()) return;
  delta.mutable_memory().ranges_changed = true;
  v1::ShirabeStatus& status = delta.mutable_shirabe();
  status.set_space_changes(status.space_changes() + 1);
  status.clear_memo();
  status.clear_regret_bound();
  status.set_exhausted(false);
  delta.AddEvent(false, "RangesChanged", DescribeChanges(before, delta.experiment().spec()));
}

// Changes the counts and ranges; an experiment that ended at maxTrialCount goes on if it may.
void Scale(const v1::Intent& intent, Delta& delta) {
  auto changed = WithChanges(delta.experiment(), intent.parameters());
  if (!changed.ok()) return RecordRefusal("ChangeRefused", changed.status(), delta);
  v1::Experiment& experiment = delta.mutable_experiment();
  v1::ExperimentSpec& spec = *experiment.mutable_spec();
  const v1::ExperimentSpec before = std::exchange(spec, *std::move(changed));
  experiment.mutable_metadata()->set_generation(experiment.metadata().generation() + 1);
  ChangeCounts(intent, spec);
  ChangeRanges(before, delta);
  RecordActor(intent, "ChangeRequested", Changes(before, spec), delta);
  if (!intent.actor().name().empty()) {
    *experiment.mutable_status()->mutable_shirabe()->mutable_changed_by() = intent.actor();
  }
  const v1::Condition current = CurrentCondition(experiment);
  const bool more =
      !spec.has_max_trial_count() || spec.max_trial_count() > experiment.status().trials();
  if (current.reason() != "ExperimentMaxTrialsReached" || !more) return;
  if (spec.resume_policy() != v1::LONG_RUNNING && spec.resume_policy() != v1::FROM_VOLUME) return;
  // Since its end it has not searched.
  if (experiment.status().has_completion_time()) {
    v1::ShirabeStatus& status = *experiment.mutable_status()->mutable_shirabe();
    const absl::Duration rested = delta.now() - FromProto(experiment.status().completion_time());
    status.set_paused_seconds(status.paused_seconds() +
                              std::max(0.0, absl::ToDoubleSeconds(rested)));
  }
  experiment.mutable_status()->clear_completion_time();
  experiment.mutable_status()->mutable_shirabe()->clear_recommended_trial();
  SetCondition("Restarting", "ExperimentRestarting", "maxTrialCount was raised", delta);
}

// Start points are found by the number of their trial: what else is asked for comes after them.
bool ComesAfterStartPoints(const v1::Intent& intent, const Delta& delta) {
  const v1::Experiment& experiment = delta.experiment();
  const bool adds = intent.verb() == v1::Intent::TRY || intent.verb() == v1::Intent::RETRY;
  return adds && CheckMaySearch(experiment).ok() &&
         delta.NextNumber() <= experiment.spec().shirabe().start_size();
}

}  // namespace

// Said once for each number.
Delta CountOutside(const PassInput& in) {
  Delta delta(in.state, in.now);
  const auto count = static_cast<int64_t>(in.state.shared_history().outside().size());
  if (in.state.experiment().status().shirabe().outside_trials() == count) return delta;
  delta.mutable_shirabe().set_outside_trials(count);
  delta.AddEvent(
      false, "TrialsOutside",
      absl::StrCat(count, " of ", in.state.history().size(),
                   " trials lie outside of the ranges as they are now: they are kept as ",
                   "results, and the algorithm learns from the others"));
  return delta;
}

bool WantsIntents(const PassInput& in) {
  return in.monotonic >= in.state.memory().next_intents || in.mode.check_intents;
}

Delta BeginIntents(const PassInput& in) {
  Delta delta(in.state, in.now);
  delta.mutable_memory().next_intents = in.monotonic + kIntentInterval;
  return delta;
}

Delta ProcessIntent(const PassInput& in, const v1::Intent& intent) {
  Delta delta(in.state, in.now);
  if (ComesAfterStartPoints(intent, delta)) return delta;
  switch (intent.verb()) {
    case v1::Intent::PAUSE:
    case v1::Intent::RESUME: SetPaused(intent, delta); break;
    case v1::Intent::SCALE: Scale(intent, delta); break;
    case v1::Intent::ASK: EnqueueAsk(in, intent, delta); break;
    case v1::Intent::RETRY:
      RecordRefusal("RetryRefused", RepeatTrial(in, intent, delta), delta);
      break;
    case v1::Intent::TRY: RecordRefusal("TryRefused", TryPoint(in, intent, delta), delta); break;
    case v1::Intent::STOP_TRIAL: StopOne(in, intent, delta); break;
    case v1::Intent::ANNOTATE:
      RecordRefusal("AnnotationRefused", AnnotateOne(in, intent, delta), delta);
      break;
    case v1::Intent::STOP:
    case v1::Intent::CANCEL:
    case v1::Intent::DELETE: EndExperiment(intent, delta); break;
    default: break;
  }
  // A deletion and a question stay written until they are carried out, in case we die before.
  const bool stays = intent.verb() == v1::Intent::DELETE || intent.verb() == v1::Intent::ASK;
  if (!stays) delta.FinishIntent(intent.id());
  return delta;
}

}  // namespace shirabe::experiment
