// More trials: the user's start points, then what the algorithm proposes.
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "base/backoff.h"
#include "base/timestamp.h"
#include "experiment/conditions.h"
#include "experiment/pass_steps.h"
#include "experiment/spec/parse_spec.h"
#include "suggestion/remote/remote_algorithm.h"

namespace shirabe::experiment {
namespace {

// An algorithm that failed is asked again after so long, twice as long each time it fails again.
constexpr Backoff kAlgorithmBackoff{absl::Seconds(1), absl::Minutes(1)};
// An algorithm that gave fewer points than it was asked for is asked for the others.
constexpr absl::Duration kPartialProposalRetry = absl::Milliseconds(400);

// The points that the user wants tried first are trials like any other. False if there are none.
bool AddStartPoints(const PassInput& in, const Plan& plan, Delta& delta) {
  const v1::ExperimentSpec& spec = in.state.experiment().spec();
  const suggestion::Space& space = in.state.space();
  bool added = false;
  for (int i = 0; i < plan.suggest; ++i) {
    const auto index = static_cast<int>(delta.NextNumber() - 1);
    if (index >= spec.shirabe().start_size()) break;
    const auto assignments = StartPoint(spec, index);
    const auto point = assignments.ok() ? space.Encode(*assignments)
                                        : StatusOr<suggestion::Point>(assignments.status());
    suggestion::Suggestion suggestion;
    suggestion.point = point.ok() ? *point : suggestion::Point(space.size(), 0.0);
    suggestion.explanation = point.ok() ? "a start point of the specification"
                                        : "in place of a start point: " + Message(point.status());
    AddTrial(in, suggestion, /*open=*/true, delta);
    added = true;
  }
  if (!added) return false;
  RecordStarted(delta);
  delta.Requeue(absl::ZeroDuration());
  return true;
}

// The experiment is degraded, not dead: what runs goes on, nothing of the answer is used, and the
// algorithm is asked again after a while, however long its repair takes. An event says what was
// wrong with it, once for each error.
void RecordFailure(const PassInput& in, const Status& status, Delta& delta) {
  AlgorithmFailures& known = delta.mutable_memory().algorithm;
  const absl::Duration pause = kAlgorithmBackoff.Delay(known.failures++);
  known.ask_again = in.monotonic + pause;
  const std::string error = Message(status);
  SetWaiting(error + "; trying again in " + FormatAge(pause), delta);
  if (std::exchange(known.reported_error, error) != error) {
    delta.AddEvent(true, absl::IsDataLoss(status) ? "AlgorithmAnswerRefused" : "SuggestionFailed",
                   error);
  }
  delta.Requeue(pause);
}

}  // namespace

void RecordStarted(Delta& delta) {
  if (!delta.experiment().status().has_start_time()) {
    *delta.mutable_status().mutable_start_time() = ToProto(delta.now());
  }
  if (CurrentCondition(delta.experiment()).type() != "Running") {
    SetCondition("Running", "ExperimentRunning", "the experiment is running", delta);
  }
}

v1::Trial NewTrial(const PassInput& in, const suggestion::Suggestion& suggestion, int64_t number) {
  const suggestion::Space& space = in.state.space();
  v1::Trial trial;
  trial.set_namespace_(in.state.key().ns);
  trial.set_experiment(in.state.key().name);
  trial.set_number(number);
  *trial.mutable_creation_time() = ToProto(in.now);
  const suggestion::Point point = space.Canonical(suggestion.point);
  trial.mutable_point()->mutable_x()->Add(point.begin(), point.end());
  trial.mutable_point()->set_space(in.state.experiment().status().shirabe().space_changes());
  for (v1::Assignment& assignment : space.Decode(point)) {
    *trial.add_assignments() = std::move(assignment);
  }
  if (suggestion.parent) *trial.mutable_parent() = *suggestion.parent;
  for (const auto& [name, value] : suggestion.labels) {
    if (!absl::StartsWith(name, suggestion::kAssignedLabel)) {
      (*trial.mutable_labels())[name] = value;
      continue;
    }
    v1::Assignment& assignment = *trial.add_assignments();
    assignment.set_name(name.substr(sizeof suggestion::kAssignedLabel - 1));
    assignment.set_category(value);
  }
  trial.set_explanation(suggestion.explanation);
  return trial;
}

void AddTrial(const PassInput& in, const suggestion::Suggestion& suggestion, bool open,
              Delta& delta) {
  ActiveTrial added;
  v1::Trial& trial = added.trial.record = NewTrial(in, suggestion, delta.NextNumber());
  if (open) {
    AssignToCaller(trial, delta);
    added.open.emplace().record = OpenAttempt(in, trial);
    const bool runs = added.open->record.state() == v1::ATTEMPT_RUNNING;
    if (runs) trial.set_phase(v1::TRIAL_RUNNING);
    added.open_changed = true;
    added.memory.Enter(AttemptPhase::kRecorded);
  }
  delta.AddTrial(std::move(added));
}

AskDecision DecideAsk(const PassInput& in, const Plan& plan, bool leaving) {
  AskDecision decision{.delta = Delta(in.state, in.now)};
  Delta& delta = decision.delta;
  const bool waits = in.state.memory().wait_for_change;
  if (plan.suggest == 0 || waits) {
    const bool explained = waits || in.state.experiment().status().shirabe().exhausted();
    if (!plan.waiting.empty() || !explained) SetWaiting(plan.waiting, delta);
    return decision;
  }
  if (AddStartPoints(in, plan, delta)) return decision;
  if (in.monotonic < in.state.memory().algorithm.ask_again) {
    delta.Requeue(in.state.memory().algorithm.ask_again - in.monotonic);
    return decision;
  }
  const trial::PlacementQuote quote = QuotePlacement(in);
  CapacityWait& wait = delta.mutable_memory().algorithm.wait;
  decision.ask = quote.waiting.empty();
  if (decision.ask) {
    wait = {};
  } else if (leaving) {
    delta.Requeue(absl::ZeroDuration());
  } else {
    if (wait.MayRecordReason(in.monotonic)) SetWaiting(quote.waiting, delta);
    delta.Requeue(wait.Pause(in.monotonic));
  }
  return decision;
}

Delta ApplyProposal(const PassInput& in, const Plan& plan, const ProposalTicket& answered) {
  using Outcome = suggestion::Proposal::Outcome;
  Delta delta(in.state, in.now);
  if (!answered.result->ok()) {
    RecordFailure(in, answered.result->status(), delta);
    return delta;
  }
  delta.mutable_memory().algorithm = {};
  const suggestion::Proposal& proposal = **answered.result;
  const auto room = static_cast<size_t>(std::max(0, plan.suggest));
  const size_t given = std::min(proposal.suggestions.size(), room);
  for (size_t i = 0; i < given; ++i) AddTrial(in, proposal.suggestions[i], /*open=*/true, delta);
  if (given > 0) {
    RecordStarted(delta);
    delta.SetMemo(proposal.memo);
    if (!proposal.notice.empty()) delta.AddEvent(true, "AlgorithmChanged", proposal.notice);
    if (proposal.algorithm != delta.experiment().status().shirabe().algorithm()) {
      delta.mutable_shirabe().set_algorithm(proposal.algorithm);
    }
  }
  delta.mutable_memory().wait_for_change = proposal.outcome == Outcome::kWait;
  SetWaiting(proposal.outcome == Outcome::kOk ? plan.limited : proposal.reason, delta);
  if (proposal.outcome == Outcome::kOk && (plan.more || given < room)) {
    const bool all = given >= std::min(room, static_cast<size_t>(answered.count));
    delta.Requeue(all ? absl::ZeroDuration() : kPartialProposalRetry);
  }
  if (proposal.outcome == Outcome::kExhausted) {
    delta.mutable_shirabe().set_exhausted(true);
    delta.Requeue(absl::ZeroDuration());
  }
  return delta;
}

}  // namespace shirabe::experiment
