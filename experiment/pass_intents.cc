// What other processes want of an experiment: intents, and who wrote them.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/number.h"
#include "experiment/conditions.h"
#include "experiment/reconcile_pass.h"
#include "experiment/report_queue.h"
#include "experiment/submission.h"

namespace shirabe::experiment {
namespace {

// Passes that come anyway look for the wishes of others so often; see IntentFollower for the rest.
constexpr absl::Duration kIntentInterval = absl::Milliseconds(400);

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
  return parts.empty() ? "nothing differs" : absl::StrJoin(parts, ", ");
}

// Where and when a wish is noted.
struct ActorContext {
  State& state;
  absl::Time now;
};

// Events are never changed or removed while their experiment is there.
void RecordActor(const v1::Intent& intent, const char* reason, const std::string& message,
                 const ActorContext& noting) {
  if (intent.actor().name().empty()) return;
  v1::Event event;
  event.set_reason(reason);
  event.set_message(message);
  event.set_trial(intent.trial());
  *event.mutable_actor() = intent.actor();
  noting.state.AddEvent(std::move(event), noting.now);
}

void SetPaused(const v1::Intent& intent, const ActorContext& noting) {
  State& state = noting.state;
  const bool pause = intent.verb() == v1::Intent::PAUSE;
  if (state.experiment().status().shirabe().paused() == pause) return;
  RecordActor(intent, pause ? "PauseRequested" : "ResumeRequested",
              pause ? "no new trials are started" : "it goes on", noting);
  state.mutable_status().mutable_shirabe()->set_paused(pause);
}

// Who asked for it first is who stopped it. Written once, however often an intent that stays is
// seen.
void End(const v1::Intent& intent, const ActorContext& noting) {
  State& state = noting.state;
  const v1::ShirabeStatus& known = state.experiment().status().shirabe();
  const bool deletes = intent.verb() == v1::Intent::DELETE;
  const std::string reason = deletes ? "deleted by a user" : "stopped by a user";
  state.ending_verb = intent.verb();
  if (!known.stopping()) {
    RecordActor(intent, "StopRequested",
                deletes                               ? "it is to be deleted"
                : intent.verb() == v1::Intent::CANCEL ? "it is to end at once"
                                                      : "it is to end",
                noting);
  } else if (known.stop_reason() == reason) {
    return;
  }
  v1::ShirabeStatus& status = *state.mutable_status().mutable_shirabe();
  if (!status.stopping() && !intent.actor().name().empty()) {
    *status.mutable_stopped_by() = intent.actor();
  }
  status.set_stopping(true);
  status.set_stop_reason(reason);
}

}  // namespace

Status Pass::ProcessIntents() {
  if (monotonic_ < state_.next_intents && !mode_.check_intents) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto intents, options_.store->ListIntents(state_.key()));
  state_.next_intents = monotonic_ + kIntentInterval;
  for (const v1::Intent& intent : intents) {
    Apply(intent);
    // A deletion and a question stay written until they are carried out, in case we die before.
    const bool stays = intent.verb() == v1::Intent::DELETE || intent.verb() == v1::Intent::ASK;
    if (!stays) state_.batch().intents_done.push_back(intent.id());
  }
  return absl::OkStatus();
}

void Pass::Apply(const v1::Intent& intent) {
  switch (intent.verb()) {
    case v1::Intent::PAUSE:
    case v1::Intent::RESUME: SetPaused(intent, {state_, now_}); break;
    case v1::Intent::SCALE: Scale(intent); break;
    case v1::Intent::ASK: EnqueueAsk(state_, intent); break;
    case v1::Intent::RETRY: Retry(intent); break;
    case v1::Intent::STOP:
    case v1::Intent::CANCEL:
    case v1::Intent::DELETE: End(intent, {state_, now_}); break;
    default: break;
  }
}

void Pass::Retry(const v1::Intent& intent) {
  const Status status = RetryTrial(state_, intent.trial(), *options_.store, now_);
  if (!status.ok()) Event(nullptr, true, "RetryRefused", Message(status));
  if (status.ok())
    RecordActor(intent, "RetryRequested", "its point is tried again", {state_, now_});
}

// Changes the counts; an experiment that ended at maxTrialCount goes on if it may.
void Pass::Scale(const v1::Intent& intent) {
  v1::Experiment& experiment = state_.mutable_experiment();
  v1::ExperimentSpec& spec = *experiment.mutable_spec();
  const v1::ExperimentSpec before = spec;
  experiment.mutable_metadata()->set_generation(experiment.metadata().generation() + 1);
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
  RecordActor(intent, "ChangeRequested", Changes(before, spec), {state_, now_});
  if (!intent.actor().name().empty()) {
    *experiment.mutable_status()->mutable_shirabe()->mutable_changed_by() = intent.actor();
  }
  const v1::Condition current = CurrentCondition(experiment);
  const bool more =
      !spec.has_max_trial_count() || spec.max_trial_count() > experiment.status().trials();
  if (current.reason() != "ExperimentMaxTrialsReached" || !more) return;
  if (spec.resume_policy() != v1::LONG_RUNNING && spec.resume_policy() != v1::FROM_VOLUME) return;
  experiment.mutable_status()->clear_completion_time();
  experiment.mutable_status()->mutable_shirabe()->clear_recommended_trial();
  SetCondition("Restarting", "ExperimentRestarting", "maxTrialCount was raised");
}

}  // namespace shirabe::experiment
