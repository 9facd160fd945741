// The plan of a pass, and how it becomes records.
#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/rng.h"
#include "base/timestamp.h"
#include "experiment/conditions.h"
#include "experiment/pass_follow_up.h"
#include "experiment/state/budget.h"
#include "experiment/state/retry_policy.h"
#include "metrics/describe_source.h"
#include "trial/checkpoint/katib_folder.h"

namespace shirabe::experiment {
namespace {

constexpr int kTokenBytes = 16;

// Costs nothing to ask where no budget is set.
BudgetState ComputeBudget(const PassInput& in) {
  const v1::ExperimentSpec& spec = in.state.experiment().spec();
  BudgetState money;
  if (!spec.shirabe().budget().has_max_cost()) return money;
  const absl::Duration reserve = ReservedTime(GraceOf(in.state.experiment()));
  const trial::PlacementQuote quote = QuotePlacement(in);
  money.cap = spec.shirabe().budget().max_cost();
  money.spent = in.state.experiment().status().shirabe().cost();
  money.next = CostOf(reserve, quote.price_per_hour);
  for (const auto& [number, active] : in.state.active()) {
    if (!active.open) continue;
    const v1::Attempt& attempt = active.open->record;
    const double price = IsPlaced(attempt) ? attempt.placements(0).price_per_hour()
                                           : quote.price_per_hour;  // the highest there is
    money.spent += CostOf(active.memory.Ran(in.monotonic), price);
    money.reserved += CostOf(reserve, price);
  }
  return money;
}

// What the namespace has no room for waits until others of it have ended.
void ReserveQuota(const PassInput& in, Plan& plan) {
  if (in.options.namespace_quota == nullptr) return;
  const auto& active = in.state.active();
  const auto trials = std::count_if(active.begin(), active.end(), [](const auto& entry) {
    return entry.second.open.has_value();
  });
  const int64_t open = trials + (OpenFollowUp(in.state) ? 1 : 0);
  const auto starts = static_cast<int64_t>(plan.start.size());
  const int64_t wanted = starts + plan.suggest;
  const int64_t granted = in.options.namespace_quota->Reserve(in.state.key(), open, wanted);
  if (granted == wanted) return;
  plan.more = false;
  plan.waiting = plan.limited = absl::StrFormat(
      "%d trials at the same time are the most for a namespace here (--max-namespace-trials of the "
      "server), and others of it run",
      in.options.limits.namespace_parallel_trials);
  for (int64_t i = granted; i < starts; ++i) plan.why[plan.start[i]] = plan.waiting;
  plan.start.resize(std::min(starts, granted));
  plan.suggest = static_cast<int>(std::max<int64_t>(0, granted - starts));
}

constexpr char kExperimentIsOver[] = "the experiment has ended";
constexpr char kBudgetEnforced[] = "BudgetEnforced";

// A budget keeps nothing where no machine has a price: that is said, and taken back with the first
// price. Its status is False, so that it is never the current condition.
void SayIfBudgetKeepsNothing(const PassInput& in, const BudgetState& money, Delta& delta) {
  const auto& conditions = in.state.experiment().status().conditions();
  const auto is_ours = [](const v1::Condition& one) { return one.type() == kBudgetEnforced; };
  const bool said = std::any_of(conditions.begin(), conditions.end(), is_ours);
  if (said == money.unpriced()) return;
  auto& changed = *delta.mutable_status().mutable_conditions();
  if (said) {
    changed.erase(std::remove_if(changed.begin(), changed.end(), is_ours), changed.end());
    return;
  }
  const std::string message =
      "spec.shirabe.budget.maxCost keeps nothing: no machine that its trials may use has a price; "
      "prices stand in the pools of --nodes FILE of `shirabe run` and `shirabe controller` (as "
      "installed: ConfigMap shirabe-pools), or at a node (annotation shirabe.dev/price-per-hour)";
  v1::Condition& condition = *changed.Add();
  condition.set_type(kBudgetEnforced);
  condition.set_status("False");
  condition.set_reason("NoPrices");
  condition.set_message(message);
  *condition.mutable_last_update_time() = ToProto(in.now);
  *condition.mutable_last_transition_time() = ToProto(in.now);
  delta.AddEvent(true, "BudgetNotEnforced", message);
}

// Whether its checkpoints lie where they are still there once its pod is gone: on this machine, or
// on a volume (see VolumeFor, trial/pod/pod_volumes.h).
bool SavesOutsideOfPod(const v1::ExperimentSpec& spec, const v1::Attempt& attempt) {
  if (IsOnThisMachine(attempt) || spec.shirabe().checkpoint().volume().ByteSizeLong() > 0)
    return true;
  const auto& settings = spec.algorithm().algorithm_settings();
  return std::any_of(settings.begin(), settings.end(), [](const v1::Setting& one) {
    return one.name() == trial::kKatibFolderSetting;
  });
}

// Of the open attempt, what no checkpoint has that outlives its machine. By both clocks: another
// process may have seen it begin, and the wall clock may have been set back meanwhile.
absl::Duration UnsavedWork(const PassInput& in, const ActiveTrial& active) {
  const AttemptMemory& memory = active.memory;
  const v1::Attempt& attempt = active.open->record;
  const bool waits = memory.phase == AttemptPhase::kStarted
                         ? memory.seen_pending
                         : memory.start_again > absl::ZeroDuration();
  if (waits && attempt.state() != v1::ATTEMPT_RUNNING) return absl::ZeroDuration();
  if (memory.phase != AttemptPhase::kRunning || !memory.running_since ||
      !attempt.has_start_time()) {
    return absl::InfiniteDuration();
  }
  const bool outside = SavesOutsideOfPod(in.state.experiment().spec(), attempt);
  absl::Time saved = FromProto(attempt.start_time()), newest = saved;
  for (const auto& checkpoint : active.checkpoints) {
    const v1::Checkpoint& one = checkpoint.record;
    if (one.attempt() != attempt.number()) continue;
    newest = std::max(newest, FromProto(one.time()));
    const bool lasts = one.gone().empty() && (outside || one.copy() == v1::COPY_MADE);
    if (lasts) saved = std::max(saved, FromProto(one.time()));
  }
  // saved_at is the moment of the newest one, which need not be one that lasts.
  const absl::Duration since = in.monotonic - std::max(memory.saved_at, *memory.running_since);
  return std::max(in.now - saved, since + (newest - saved));
}

LiveTrial LiveTrialOf(const PassInput& in, const ActiveTrial& active) {
  if (!active.open) return {.trial = &active.trial.record};
  const v1::Attempt& attempt = active.open->record;
  return {.trial = &active.trial.record,
          .open = &attempt,
          .leaves = attempt.has_stop() || active.memory.phase == AttemptPhase::kExited,
          .unsaved = UnsavedWork(in, active),
          .price_per_hour = IsPlaced(attempt) ? attempt.placements(0).price_per_hour() : 0};
}

// To be gone on with later, where others run on.
void GiveUp(const TrialEdit& edit, const Plan::Stop& stop) {
  RequestStop(edit, stop.cause, stop.why);
  edit.delta.AddEvent(edit.trial.trial(), false, "AttemptGivenUp", stop.why);
}

bool EndsAtOnce(const ExperimentState& state) {
  const auto& verb = state.memory().ending_verb;
  return verb == v1::Intent::CANCEL || verb == v1::Intent::DELETE;
}

// Written with the attempt: a controller that takes the experiment over gives it no more time.
void RevokeGrace(TrialDelta& trial) {
  if (!trial.is_open() || !trial.attempt().has_stop()) return;
  const v1::StopRequest& known = trial.attempt().stop();
  if (FromProto(known.deadline()) <= FromProto(known.requested())) return;
  v1::StopRequest& stop = *trial.mutable_attempt().mutable_stop();
  *stop.mutable_deadline() = stop.requested();
}

// As the executor of such trials would, and the pass after it, with two commits more.
void BeginAtOnce(const PassInput& in, v1::Trial& trial, v1::Attempt& attempt) {
  attempt.set_state(v1::ATTEMPT_RUNNING);
  *attempt.mutable_start_time() = ToProto(in.now);
  v1::Placement& placement = *attempt.add_placements();
  placement.set_node(trial::kAskedNode);
  *placement.mutable_start_time() = attempt.start_time();
  *trial.mutable_start_time() = attempt.start_time();
}

}  // namespace

Plan DecidePlan(const PassInput& in) {
  PlanInput input{.experiment = &in.state.experiment(),
                  .suspended = in.mode.suspended,
                  .limits = in.options.limits,
                  .money = ComputeBudget(in),
                  .now = in.now};
  for (const auto& [number, active] : in.state.active()) {
    if (!IsTerminal(active.trial.record.phase())) input.live.push_back(LiveTrialOf(in, active));
  }
  if (in.state.experiment().spec().shirabe().ask_and_tell()) {
    input.asked = static_cast<int>(in.state.memory().asks.size());
  }
  Plan plan = MakePlan(input);
  plan.money = input.money;
  ReserveQuota(in, plan);
  return plan;
}

Delta ApplyPlan(const PassInput& in, const Plan& plan) {
  Delta delta(in.state, in.now);
  const auto edit = [&](int64_t number) -> TrialDelta& {
    return delta.Edit(in.state.active().at(number));
  };
  if (plan.ending && plan.ending->rule && !delta.experiment().status().shirabe().has_stop_rule()) {
    *delta.mutable_shirabe().mutable_stop_rule() = *plan.ending->rule;
  }
  SayIfBudgetKeepsNothing(in, plan.money, delta);
  for (const int64_t number : plan.kill) {
    StopTrial({in, delta, edit(number)}, kExperimentIsOver, kExperimentEnded);
  }
  for (const Plan::Stop& stop : plan.stop) {
    const TrialEdit trial{in, delta, edit(stop.trial)};
    if (stop.why.empty()) {
      RequestStop(trial, stop.cause, stop.cause == v1::EXPERIMENT_ENDED ? kExperimentIsOver : "");
    } else {
      GiveUp(trial, stop);
    }
  }
  if (EndsAtOnce(in.state)) {
    for (const auto& [number, active] : in.state.active()) RevokeGrace(edit(number));
  }
  for (const int64_t number : plan.start) {
    TrialDelta& trial = edit(number);
    trial.Open(OpenAttempt(in, trial.mutable_trial()));
    if (trial.attempt().state() == v1::ATTEMPT_RUNNING) trial.SetPhase(v1::TRIAL_RUNNING);
  }
  for (const auto& [number, why] : plan.why) {
    TrialDelta& trial = edit(number);
    if (trial.is_open() || trial.trial().waiting() == why) continue;
    trial.mutable_trial().set_waiting(why);
  }
  if (!plan.start.empty()) RecordStarted(delta);
  if (plan.more && !plan.start.empty()) delta.Requeue(absl::ZeroDuration());
  delta.Requeue(plan.wake);
  return delta;
}

trial::PlacementQuote QuotePlacement(const PassInput& in) {
  const v1::ExperimentSpec& spec = in.state.experiment().spec();
  return in.options.executor->QuotePlacement(in.state.key(), spec.trial_template().trial_spec(),
                                             {.policy = spec.shirabe().capacity()});
}

void RequestStop(const TrialEdit& edit, v1::Cause cause, const std::string& reason,
                 const std::string& trial_reason) {
  if (!edit.trial.attempt().has_stop()) {
    v1::StopRequest& stop = *edit.trial.mutable_attempt().mutable_stop();
    stop.set_cause(cause);
    stop.set_reason(reason);
    stop.set_trial_reason(trial_reason);
    *stop.mutable_requested() = ToProto(edit.in.now);
    *stop.mutable_deadline() = ToProto(edit.in.now + GraceOf(edit.in.state.experiment()));
  }
  // One that has not been started yet is closed by the next pass; see ObserveAttempt.
  if (edit.trial.memory().phase == AttemptPhase::kRecorded) {
    edit.delta.Requeue(absl::ZeroDuration());
  }
}

v1::Attempt OpenAttempt(const PassInput& in, v1::Trial& trial) {
  trial.set_attempts(trial.attempts() + 1);
  trial.clear_not_before();
  trial.clear_waiting();
  v1::Attempt attempt;
  attempt.set_namespace_(in.state.key().ns);
  attempt.set_experiment(in.state.key().name);
  attempt.set_trial(trial.number());
  attempt.set_number(trial.attempts());
  attempt.set_token(RandomBytes(kTokenBytes));
  *attempt.mutable_creation_time() = ToProto(in.now);
  *attempt.mutable_cursor() =
      metrics::StartCursor(*in.state.setup().collector, SourceOf(in, trial, attempt));
  const bool asked = in.state.experiment().spec().shirabe().ask_and_tell();
  if (asked && attempt.number() == 1 && !trial.has_parent()) BeginAtOnce(in, trial, attempt);
  return attempt;
}

void SetCondition(const std::string& type, const std::string& reason, const std::string& message,
                  Delta& delta) {
  v1::ExperimentStatus& status = delta.mutable_status();
  const google::protobuf::Timestamp now = ToProto(delta.now());
  v1::Condition* found = nullptr;
  for (v1::Condition& condition : *status.mutable_conditions()) {
    if (condition.type() == type) found = &condition;
    if (condition.type() == type || condition.type() == "Created") continue;
    if (condition.status() == "True") *condition.mutable_last_transition_time() = now;
    condition.set_status("False");
  }
  if (found == nullptr) {
    found = status.add_conditions();
    found->set_type(type);
  }
  if (found->status() != "True") *found->mutable_last_transition_time() = now;
  found->set_status("True");
  found->set_reason(reason);
  found->set_message(message);
  *found->mutable_last_update_time() = now;
}

void SetWaiting(const std::string& why, Delta& delta) {
  if (delta.experiment().status().shirabe().waiting() == why) return;
  delta.mutable_shirabe().set_waiting(why);
}

Delta Conclude(const PassInput& in, const Plan::Ending& ending) {
  Delta delta(in.state, in.now);
  SetCondition(ending.succeeded ? "Succeeded" : "Failed", ending.reason, ending.message, delta);
  *delta.mutable_status().mutable_completion_time() = ToProto(in.now);
  SetWaiting("", delta);
  delta.AddEvent(!ending.succeeded, ending.reason, ending.message);
  BeginFollowUp(in, ending, delta);
  return delta;
}

}  // namespace shirabe::experiment
