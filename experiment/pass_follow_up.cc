#include "experiment/pass_follow_up.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/rng.h"
#include "base/text/number.h"
#include "base/timestamp.h"
#include "experiment/attempt_request.h"
#include "experiment/conditions.h"
#include "experiment/spec/parse_spec.h"
#include "experiment/state/checkpoint_policy.h"
#include "experiment/state/retry_policy.h"
#include "trial/checkpoint/checkpoint_copy.h"

namespace shirabe::experiment {
namespace {

constexpr int kFollowUpTokenBytes = 16;
// Of its object and of its log while it is open; its end is told at once.
constexpr absl::Duration kFollowUpPollInterval = absl::Seconds(1);
constexpr absl::Duration kStartLook = absl::Milliseconds(50);
constexpr absl::Duration kResumeRetryInterval = absl::Milliseconds(100);

const v1::OnSuccessStatus& OnSuccessOf(const ExperimentState& state) {
  return state.experiment().status().shirabe().on_success();
}

void StopFollowUp(FollowUpEdit& edit, v1::Cause cause, bool at_once) {
  const bool stops = edit.attempt().has_stop();
  const v1::StopRequest& known = edit.attempt().stop();
  const bool sooner = at_once && FromProto(known.deadline()) > FromProto(known.requested());
  if (!stops || sooner) {
    edit.ChangeAttempt([&](v1::Attempt& attempt) {
      v1::StopRequest& stop = *attempt.mutable_stop();
      if (!stops) {
        stop.set_cause(cause);
        *stop.mutable_requested() = ToProto(edit.in().now);
      }
      const absl::Duration grace =
          at_once ? absl::ZeroDuration() : GraceOf(edit.in().state.experiment());
      *stop.mutable_deadline() = ToProto(FromProto(stop.requested()) + grace);
    });
  }
  if (edit.memory().phase == AttemptPhase::kRecorded) edit.delta().Requeue(absl::ZeroDuration());
}

// Whether there is room for one more attempt in the namespace; if not, `edit` says so.
bool ReserveRoom(FollowUpEdit& edit) {
  const PassInput& in = edit.in();
  if (in.options.namespace_quota == nullptr) return true;
  const auto& active = in.state.active();
  const auto open = std::count_if(active.begin(), active.end(),
                                  [](const auto& entry) { return entry.second.open.has_value(); });
  if (in.options.namespace_quota->Reserve(in.state.key(), open, 1) == 1) return true;
  edit.SetWaiting(absl::StrFormat(
      "%d trials at the same time are the most for a namespace here (--max-namespace-trials of the "
      "server), and others of it run",
      in.options.limits.namespace_parallel_trials));
  return false;
}

void OpenFollowUpAttempt(FollowUpEdit& edit) {
  const PassInput& in = edit.in();
  v1::OnSuccessStatus& status = edit.mutable_status();
  status.set_attempts(status.attempts() + 1);
  status.clear_not_before();
  status.clear_waiting();
  edit.ChangeAttempt([&](v1::Attempt& attempt) {
    attempt.Clear();
    attempt.set_namespace_(in.state.key().ns);
    attempt.set_experiment(in.state.key().name);
    attempt.set_trial(kFollowUpNumber);
    attempt.set_number(edit.status().attempts());
    attempt.set_token(RandomBytes(kFollowUpTokenBytes));
    *attempt.mutable_creation_time() = ToProto(in.now);
  });
  edit.memory() = AttemptMemory{};
  edit.memory().Enter(AttemptPhase::kRecorded);
}

// What a person wants: nothing of it is to run any more.
std::optional<std::string> WhyNotWanted(const PassInput& in) {
  const auto& verb = in.state.memory().ending_verb;
  if (!verb) return std::nullopt;
  return *verb == v1::Intent::DELETE ? "the experiment is to be deleted"
                                     : "it was stopped by a user";
}

// Why there is none though the experiment has succeeded.
std::string WhySkipped(const Plan::Ending& ending, const v1::Experiment& experiment) {
  if (ending.reason == "ExperimentStopped") {
    return "a user stopped the experiment before its end";
  }
  if (experiment.spec().shirabe().ask_and_tell()) return "no programs are run for it here";
  if (!experiment.status().current_optimal_trial().has_objective()) {
    return "no trial has a value of the objective that counts";
  }
  return "";
}

}  // namespace

std::optional<v1::Attempt> OpenAttemptOf(const v1::OnSuccessStatus& status) {
  if (status.attempt().empty()) return std::nullopt;
  v1::Attempt attempt;
  attempt.ParseFromString(status.attempt());
  return attempt;
}

std::optional<ActiveTrial> OpenFollowUp(const ExperimentState& state) {
  auto attempt = OpenAttemptOf(OnSuccessOf(state));
  if (!attempt) return std::nullopt;
  ActiveTrial as_trial;
  as_trial.trial.record = FollowUpAsTrial(state);
  as_trial.open.emplace().record = *std::move(attempt);
  as_trial.memory = state.memory().follow_up;
  // Another process, or an earlier state of this one, has recorded it.
  if (as_trial.memory.phase == AttemptPhase::kNone) {
    as_trial.memory.Enter(AttemptPhase::kRecorded);
  }
  return as_trial;
}

void BeginFollowUp(const PassInput& in, const Plan::Ending& ending, Delta& delta) {
  const v1::Experiment& experiment = in.state.experiment();
  if (!ending.succeeded || !experiment.spec().shirabe().has_on_success()) return;
  if (experiment.status().shirabe().has_on_success()) return;  // it has succeeded before
  const v1::OptimalTrial& best = experiment.status().current_optimal_trial();
  FollowUpEdit edit(in, delta);
  v1::OnSuccessStatus& status = edit.mutable_status();
  status.set_name(TrialName({in.state.key(), kFollowUpNumber}));
  *status.mutable_creation_time() = ToProto(in.now);
  if (const std::string why = WhySkipped(ending, experiment); !why.empty()) {
    return edit.End(v1::FOLLOW_UP_SKIPPED, "NotRun",
                    absl::StrCat(status.name(), " is not run: ", why));
  }
  status.set_phase(v1::FOLLOW_UP_PENDING);
  status.set_best_trial(best.number());
  status.set_best_trial_name(best.best_trial_name());
  status.set_objective(best.objective());
  delta.Requeue(absl::ZeroDuration());
  edit.Say(false, "OnSuccessQueued",
           absl::StrCat(status.name(), " is to run with the parameters of ", best.best_trial_name(),
                        ": ", experiment.spec().objective().objective_metric_name(), " ",
                        FormatNumber(best.objective())));
}

Delta PlanFollowUp(const PassInput& in) {
  Delta delta(in.state, in.now);
  if (!HasPendingFollowUp(in.state.experiment())) return delta;
  FollowUpEdit edit(in, delta);
  const bool open = !edit.status().attempt().empty();
  if (const auto unwanted = WhyNotWanted(in)) {
    const bool gently = in.state.memory().ending_verb == v1::Intent::STOP;
    if (open) {
      StopFollowUp(edit, v1::USER, !gently);
    } else {
      edit.End(v1::FOLLOW_UP_FAILED, "StoppedByUser",
               absl::StrCat(edit.status().name(), " is given up: ", *unwanted));
    }
    return delta;
  }
  if (in.mode.suspended) {
    if (open) StopFollowUp(edit, v1::SUSPENDED, false);
    return delta;
  }
  if (open) return delta;
  const absl::Duration wait = FromProto(edit.status().not_before()) - in.now;
  if (edit.status().has_not_before() && wait > absl::ZeroDuration() && wait <= kMaxAttemptDelay) {
    delta.Requeue(wait);
  } else if (ReserveRoom(edit)) {
    OpenFollowUpAttempt(edit);
  }
  return delta;
}

StatusOr<trial::AttemptRequest> FollowUpRequest(const PassInput& in, const ActiveTrial& follow_up) {
  const ExperimentKey& key = in.state.key();
  const v1::OnSuccessStatus& status = OnSuccessOf(in.state);
  ASSIGN_OR_RETURN(const auto best, in.options.store->GetTrial({key, status.best_trial()}));
  ASSIGN_OR_RETURN(const auto rows, in.options.store->ListCheckpoints({key, status.best_trial()}));
  v1::Trial trial = follow_up.trial.record;
  *trial.mutable_assignments() = best.record.assignments();
  const v1::TrialTemplate job = OnSuccessTemplate(in.state.experiment().spec());
  ASSIGN_OR_RETURN(trial::AttemptRequest request,
                   RequestFrom(in.state, {trial, follow_up.open->record}, job));
  request.working_dir = in.options.working_dir;
  request.resume = Candidates(RecordsOf(rows), 0);
  // Its log is kept; nothing is collected.
  request.cluster.collector.Clear();
  request.cluster.collector.mutable_collector()->set_kind(v1::STD_OUT);
  request.cluster.metrics.clear();
  auto& environment = request.environment;
  environment["SHIRABE_EXPERIMENT"] = key.name;
  environment["SHIRABE_BEST_TRIAL"] = status.best_trial_name();
  environment["SHIRABE_BEST_OBJECTIVE"] = FormatNumber(status.objective());
  environment["CLOUD_ML_TRIAL_ID"] = absl::StrCat(status.best_trial());
  const trial::AttemptPaths paths =
      in.options.executor->Paths({{key, status.best_trial()}, best.record.attempts()});
  // A pod has what its own trial has written, and no other's.
  if (paths.root.empty()) environment["SHIRABE_BEST_OUTPUT_DIR"] = paths.output_dir;
  if (const v1::Checkpoint& outputs = best.record.outputs(); !outputs.digest().empty()) {
    const v1::ArtifactPolicy& policy = in.state.experiment().spec().shirabe().artifacts();
    environment["SHIRABE_BEST_OUTPUT_STORE"] = policy.store();
    environment["SHIRABE_BEST_OUTPUT_KEY"] = trial::CopyOf(policy.prefix(), outputs);
    environment["SHIRABE_BEST_OUTPUT_DIGEST"] = outputs.digest();
  }
  return request;
}

Delta RecordFollowUpStop(const PassInput& in, bool at_once) {
  Delta delta(in.state, in.now);
  delta.mutable_memory().follow_up.stop_sent = at_once ? StopSent::kAtOnce : StopSent::kWithGrace;
  return delta;
}

Delta RecordFollowUpStart(const PassInput& in, const StartResult& result) {
  Delta delta(in.state, in.now);
  FollowUpEdit edit(in, delta);
  AttemptMemory& memory = edit.memory();
  const Status& status = result.status;
  if (status.ok()) {
    memory.Enter(AttemptPhase::kStarted);
    delta.Requeue(kStartLook);
  } else if (absl::IsResourceExhausted(status) || absl::IsUnavailable(status)) {
    edit.SetWaiting(Message(status));
    const bool soon = absl::IsUnavailable(status) && result.resumes;
    const absl::Duration pause = soon ? kResumeRetryInterval : memory.wait.Pause(in.monotonic);
    memory.start_again = in.monotonic + pause;
    delta.Requeue(pause);
  } else if (absl::IsDataLoss(status)) {
    StopFollowUp(edit, v1::APP_ERROR, false);
    edit.ChangeAttempt(
        [&](v1::Attempt& attempt) { attempt.mutable_stop()->set_reason(Message(status)); });
  } else {
    edit.End(v1::FOLLOW_UP_FAILED, "TemplateInvalid",
             absl::StrCat(edit.status().name(), " cannot be run: ", Message(status)));
    delta.Requeue(absl::ZeroDuration());
  }
  return delta;
}

Delta RequeueFollowUp(const PassInput& in) {
  Delta delta(in.state, in.now);
  if (!OnSuccessOf(in.state).attempt().empty()) delta.Requeue(kFollowUpPollInterval);
  return delta;
}

}  // namespace shirabe::experiment
