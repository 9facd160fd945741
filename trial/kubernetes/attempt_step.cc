#include "trial/kubernetes/attempt_step.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "trial/pod/operator_kinds.h"

namespace shirabe::trial {
namespace {

using Phase = PodVerdict::Phase;

constexpr absl::Duration kSyncWait = absl::Milliseconds(100);  // for the cluster to be known
constexpr absl::Duration kWarningNotice = absl::Seconds(30);   // for a checkpoint to be saved
constexpr absl::Duration kSuspension = absl::Seconds(10);      // for an operator to end its pods

class Stepper {
 public:
  Stepper(const AttemptFacts& facts, const PodAttempt& attempt, const StepRules& rules)
      : facts_(facts), attempt_(attempt), timeouts_(rules.timeouts), pools_(rules.pools) {
    step_.observed = attempt.observed;
    step_.progress = attempt.progress;
    step_.never_began = attempt.never_began;
  }

  AttemptStep Run() {
    if (attempt_.uid.empty()) {
      Resolve();
    } else {
      Look();
    }
    return std::move(step_);
  }

 private:
  void Resolve();
  void ConfirmGone() { step_.confirm_gone = !attempt_.confirming; }
  void Look();
  void TakeSnapshot();
  void ObserveNode(const std::string& name);
  void ObserveSecondary(const Json& pod);
  void Place();
  void ReadEndReport(PodVerdict& verdict);
  void AwaitReason(PodVerdict& verdict);
  void Wait(PodVerdict& verdict);
  void Prepare(const WaitingFacts& facts);
  void ScheduleEventLookup();
  std::string WhyUnheard();
  bool EndedWell() const;
  bool AwaitsCollector();
  void AwaitRemainder();
  bool AwaitsRemainder() const;
  void FollowLog();
  void EndPods();

  bool started() const { return step_.observed.placement.has_start_time(); }
  const Json* FindNode(const std::string& name) const {
    const auto found = facts_.nodes.find(name);
    return found == facts_.nodes.end() ? nullptr : &found->second;
  }
  // The earliest moment that was asked for stands.
  void CheckAt(absl::Duration at) {
    if (!step_.check_at || at < *step_.check_at) step_.check_at = at;
  }

  const AttemptFacts& facts_;
  const PodAttempt& attempt_;
  const PodTimeouts& timeouts_;
  const v1::NodePools& pools_;
  AttemptSnapshot snapshot_;
  AttemptStep step_;
};

// Looks for the object of an attempt that was adopted.
void Stepper::Resolve() {
  if (!facts_.synced) return CheckAt(facts_.now + kSyncWait);
  // That it is not to be seen is believed once the API server itself says so.
  if (!facts_.object) return ConfirmGone();
  step_.bind = AttemptIdOf(*facts_.object) == attempt_.id;
  if (step_.bind) return;
  step_.never_began = true;
  step_.observed.state = AttemptStatus::State::kLost;
  step_.observed.message = "another attempt has its name; this one has never started";
}

void Stepper::Look() {
  TakeSnapshot();
  if (!snapshot_.object && !attempt_.object_gone && facts_.synced) ConfirmGone();
  Place();
  PodVerdict verdict = ReadSnapshot(snapshot_, attempt_, step_.observed.placement);
  if (verdict.start && !started()) {
    *step_.observed.placement.mutable_start_time() = ToProto(*verdict.start);
  }
  if (verdict.unexplained) AwaitReason(verdict);
  if (verdict.phase == Phase::kRunning) ReadEndReport(verdict);
  if (verdict.phase == Phase::kWaiting) {
    Wait(verdict);
  } else {
    step_.observed.waiting = verdict.phase == Phase::kRunning ? WhyUnheard() : "";
    step_.progress.needs_events = false;
  }
  if (attempt_.stop && !attempt_.stop->refused.empty()) {
    step_.observed.waiting = attempt_.stop->refused;
  }
  if (verdict.phase == Phase::kEnded || verdict.phase == Phase::kLost) {
    if (!step_.progress.over) step_.progress.over_at = facts_.now;
    step_.progress.over = std::move(verdict);
  }
  if (step_.progress.over && !AwaitsCollector()) AwaitRemainder();
  if (step_.observed.state != AttemptStatus::State::kRunning) return;
  if (attempt_.stop && !attempt_.stop->deleted) EndPods();
  if (!attempt_.recipe.instrumented && !step_.progress.over) FollowLog();
}

// ---- what there is ------------------------------------------------------------------------------

void Stepper::TakeSnapshot() {
  if (facts_.object && UidOf(*facts_.object) == attempt_.uid) snapshot_.object = facts_.object;
  snapshot_.pod = PrimaryPod(facts_.pods, attempt_.recipe);
  if (!snapshot_.pod && attempt_.gone && IsPrimary(*attempt_.gone, attempt_.recipe)) {
    snapshot_.pod = attempt_.gone;
    snapshot_.pod_vanished = true;
  }
  if (!snapshot_.pod) return;
  const std::string node = Text(*snapshot_.pod, {"spec", "nodeName"});
  if (!node.empty()) ObserveNode(node);
  for (const Json& pod : facts_.pods) {
    if (UidOf(pod) != UidOf(*snapshot_.pod)) ObserveSecondary(pod);
  }
}

// A node that is not ready is believed dead once it has been silent for a while, and its sidecar
// too: where only the kubelet has died, the program runs on, and so does its attempt.
void Stepper::ObserveNode(const std::string& name) {
  using Node = PodFacts::Node;
  AttemptProgress& progress = step_.progress;
  if (const Json* node = FindNode(name)) snapshot_.node = *node;
  const bool seen_before = progress.node == name && progress.node_seen;
  // At once: a pod may be seen before its node, and when that comes, this says where the pod is.
  progress.node = name;
  progress.node_seen = seen_before || snapshot_.node.has_value();
  if (!snapshot_.node && !facts_.nodes_known) return;
  if (snapshot_.node && !OutOfService(*snapshot_.node).empty()) {
    snapshot_.node_state = Node::kDead;
    return;
  }
  if (snapshot_.node && IsReady(*snapshot_.node)) {
    progress.node_quiet_since.reset();
    snapshot_.node_state = Node::kAlive;
    return;
  }
  if (!progress.node_quiet_since) progress.node_quiet_since = facts_.now;
  absl::Duration dead_at = *progress.node_quiet_since;
  if (!snapshot_.node) {
    if (!seen_before) dead_at += timeouts_.unseen;
  } else {
    dead_at =
        attempt_.heard.value_or(dead_at) + std::max(timeouts_.silence, 2 * facts_.sync_interval);
  }
  snapshot_.node_state = facts_.now >= dead_at ? Node::kDead : Node::kAlive;
  if (facts_.now < dead_at) CheckAt(dead_at);
}

void Stepper::ObserveSecondary(const Json& pod) {
  const Json* node = FindNode(Text(pod, {"spec", "nodeName"}));
  const v1::Placement placement = PlacementOf(pod, node == nullptr ? Json() : *node, pools_);
  PodFacts facts;
  facts.primary = attempt_.recipe.primary_container;
  facts.spot = placement.capacity() == "spot";
  if (facts_.nodes_known) {
    facts.node = node == nullptr ? PodFacts::Node::kDead : PodFacts::Node::kAlive;
  }
  ObserveSecondaryPod(pod, facts, snapshot_);
  snapshot_.price_per_hour += placement.price_per_hour();
  snapshot_.on_demand_price_per_hour += placement.on_demand_price_per_hour();
}

// Whatever is about to take the node, what is saved now is not lost. Of a node that we may not look
// at its name is all there is; the price is what was reckoned with before.
void Stepper::Place() {
  if (!snapshot_.pod) return;
  const bool hidden = facts_.nodes_refused && !Text(*snapshot_.pod, {"spec", "nodeName"}).empty();
  if (!snapshot_.node && !hidden) return;
  const Json node = snapshot_.node.value_or(Json());
  v1::Placement placement = PlacementOf(*snapshot_.pod, node, pools_);
  placement.set_price_per_hour(placement.price_per_hour() + snapshot_.price_per_hour);
  placement.set_on_demand_price_per_hour(placement.on_demand_price_per_hour() +
                                         snapshot_.on_demand_price_per_hour);
  const v1::Placement& before = step_.observed.placement;
  if (hidden) placement.set_price_per_hour(before.price_per_hour());
  if (before.has_start_time()) *placement.mutable_start_time() = before.start_time();
  step_.observed.placement = std::move(placement);
  auto warning = NodeWarningOf(node);
  if (!warning || step_.progress.warned == warning->reason) return;
  step_.progress.warned = warning->reason;
  if (attempt_.recipe.instrumented && !attempt_.stop) step_.warning = std::move(warning);
}

// A program that has ended by itself, and well, whose every byte is here, need not be waited for
// until its kubelet has said so too. Any other end is the kubelet's to tell, for a while.
void Stepper::ReadEndReport(PodVerdict& verdict) {
  const v1::PodState& state = attempt_.state;
  if (!state.complete() || !state.has_exit() || !ExitDecides(attempt_)) return;
  std::optional<absl::Duration>& since = step_.progress.complete_since;
  if (!since) since = facts_.now;
  const v1::ProgramExit& exit = state.exit();
  const bool well = exit.code() == 0 && exit.signal() == 0 && !exit.told();
  const absl::Duration patience = *since + timeouts_.final_sync;
  if (!well && facts_.now < patience) return CheckAt(patience);
  verdict.phase = Phase::kEnded;
}

// What is told of a pod may be older than what is told of its object.
void Stepper::AwaitReason(PodVerdict& verdict) {
  std::optional<absl::Duration>& since = step_.progress.unexplained_since;
  if (!since) since = facts_.now;
  const absl::Duration until = *since + timeouts_.final_sync;
  if (facts_.now >= until) return;
  verdict.phase = Phase::kRunning;
  CheckAt(until);
}

// ---- while it waits -----------------------------------------------------------------------------

void Stepper::Wait(PodVerdict& verdict) {
  WaitingFacts facts;
  facts.object = snapshot_.object ? &*snapshot_.object : nullptr;
  facts.pod = snapshot_.pod ? &*snapshot_.pod : nullptr;
  facts.events = attempt_.events;
  facts.primary = attempt_.recipe.primary_container;
  const auto why = WhyWaiting(facts);
  const std::string reason = why ? why->reason : "";
  AttemptProgress& progress = step_.progress;
  if (!progress.waiting_since || progress.waiting_reason != reason) {
    progress.waiting_since = facts_.now;
  }
  progress.waiting_reason = reason;
  step_.observed.waiting = why ? why->text : "";
  if (!why) {
    Prepare(facts);
    return ScheduleEventLookup();
  }
  progress.needs_events = false;
  const absl::Duration give_up = *progress.waiting_since + why->give_up;
  if (why->give_up == absl::InfiniteDuration() || attempt_.stop) return;
  if (facts_.now < give_up) return CheckAt(give_up);
  verdict.phase = Phase::kEnded;
  verdict.cause = v1::NEVER_RAN;
  verdict.message = why->text;
}

// What usually takes a moment is worth a word, and with it a write, once it takes longer.
void Stepper::Prepare(const WaitingFacts& facts) {
  const absl::Duration worth_a_word = *step_.progress.waiting_since + timeouts_.ask_events;
  if (facts_.now < worth_a_word) return CheckAt(worth_a_word);
  const auto why = facts.pod ? WhyPreparing(facts) : WhyNoPrimary(facts_.pods, attempt_.recipe);
  if (why) step_.observed.waiting = why->text;
}

void Stepper::ScheduleEventLookup() {
  AttemptProgress& progress = step_.progress;
  if (progress.needs_events) return;
  if (!progress.events_at) progress.events_at = facts_.now + timeouts_.ask_events;
  if (facts_.now < *progress.events_at) return CheckAt(*progress.events_at);
  progress.needs_events = step_.look_up_events = true;
}

// Its program runs; what it writes comes by a sidecar that cannot reach us.
std::string Stepper::WhyUnheard() {
  std::optional<absl::Duration>& since = step_.progress.unheard_since;
  if (!attempt_.recipe.instrumented || attempt_.heard || attempt_.stop || snapshot_.pod_vanished) {
    since.reset();
    return "";
  }
  if (!since) since = facts_.now;
  const absl::Duration until = *since + timeouts_.unheard;
  if (facts_.now < until) {
    CheckAt(until);
    return "";
  }
  step_.ask_sidecar = attempt_.unheard_why.empty() && !attempt_.reading_sidecar;
  if (step_.ask_sidecar) step_.pod = snapshot_.pod;
  return attempt_.unheard_why;
}

// ---- its end ------------------------------------------------------------------------------------

bool Stepper::EndedWell() const {
  const PodVerdict& over = *step_.progress.over;
  if (over.phase != Phase::kEnded || over.cause != v1::CAUSE_NONE || over.signal != 0) return false;
  if (over.exit_code) return *over.exit_code == 0;
  const v1::PodState& state = attempt_.state;
  return state.has_exit() && state.exit().code() == 0 && state.exit().signal() == 0;
}

// A collector of the user's own begins its work when the program has ended well, and what it
// reports counts only while the attempt runs. It is waited for, within bounds; how it failed is
// said, which matters where the metrics are missing.
bool Stepper::AwaitsCollector() {
  const std::string& name = attempt_.recipe.collector;
  if (name.empty() || attempt_.stop || !EndedWell() || !snapshot_.pod) return false;
  const Json& terminated =
      At(kube::ContainerStatus(*snapshot_.pod, name.c_str()), {"state", "terminated"});
  std::string& message = step_.progress.over->message;
  if (terminated.is_object()) {
    const int64_t code = Number(At(terminated, "exitCode"));
    if (code != 0) message = absl::StrCat("its collector ", name, " ended with exit code ", code);
    return false;
  }
  const bool gone = snapshot_.pod_vanished || IsTerminal(*snapshot_.pod) ||
                    IsDeleting(*snapshot_.pod) || snapshot_.node_state == PodFacts::Node::kDead;
  const absl::Duration patience = step_.progress.over_at + timeouts_.collector;
  if (!gone && facts_.now < patience) {
    CheckAt(patience);
    return true;
  }
  message =
      absl::StrCat("its collector ", name,
                   gone ? " was lost with the pod before it had ended"
                        : absl::StrCat(" had not ended ", absl::FormatDuration(timeouts_.collector),
                                       " after the program"));
  return false;
}

void Stepper::AwaitRemainder() {
  if (!AwaitsRemainder()) {
    return RecordEnd(*step_.progress.over, facts_.time, attempt_, step_.observed);
  }
  if (attempt_.reading_log) return;
  absl::Duration patience = step_.progress.over_at + timeouts_.final_sync;
  // Copies take their time, which the pod's grace bounds; a sidecar that makes them says that
  // often.
  if (attempt_.state.copying() && attempt_.heard) {
    patience = std::max(patience, *attempt_.heard + timeouts_.final_sync);
  }
  const bool sends = attempt_.recipe.instrumented && !SidecarHasEnded(snapshot_);
  if (sends && facts_.now < patience) return CheckAt(patience);
  step_.read_remainder = true;
  step_.pod = snapshot_.pod;
}

// Whether more may come of a program that has ended.
bool Stepper::AwaitsRemainder() const {
  const PodVerdict& over = *step_.progress.over;
  if (over.phase == Phase::kLost) return false;
  if (!over.start && !started()) return false;
  if (snapshot_.pod_vanished || snapshot_.node_state == PodFacts::Node::kDead) return false;
  if (attempt_.recipe.instrumented && attempt_.state.complete()) return false;
  return !attempt_.remainder_read;
}

// Of a pod that has no sidecar, while it runs.
void Stepper::FollowLog() {
  if (!snapshot_.pod || snapshot_.pod_vanished || !started() || attempt_.reading_log) return;
  if (facts_.now < attempt_.log_at) return CheckAt(attempt_.log_at);
  step_.follow_log = true;
  step_.pod = snapshot_.pod;
}

// Its pods go, with what is left of the grace; the object stays until all of it is in the store,
// but where nothing runs, or an operator would start pods again. A TrainJob that is to stay, for
// those who look for it, is suspended: where its operator does not end the pods, it goes as well.
void Stepper::EndPods() {
  const PodAttempt::Stop& stop = *attempt_.stop;
  const bool waits = attempt_.pending_request || stop.suspended;
  if (waits && facts_.now < stop.delete_at) return CheckAt(stop.delete_at);
  const kube::Resource& resource = attempt_.ref.resource;
  const bool object_too = facts_.pods.empty() || resource.kind != Jobs().kind;
  const bool suspend = attempt_.recipe.retain && !facts_.pods.empty() && !stop.suspended &&
                       SharesObjectName(resource.group, resource.kind);
  step_.end_pods = {.object_too = object_too,
                    .suspend = suspend,
                    .grace = std::max(absl::ZeroDuration(), stop.kill_at - facts_.now)};
  if (suspend) CheckAt(stop.kill_at + kSuspension);
}

}  // namespace

AttemptStep NextStep(const AttemptFacts& facts, const PodAttempt& attempt, const StepRules& rules) {
  return Stepper(facts, attempt, rules).Run();
}

void Apply(const AttemptStep& step, const AttemptFacts& facts, PodAttempt& attempt) {
  if (step.bind) return Bind(*facts.object, attempt);
  attempt.observed = step.observed;
  attempt.progress = step.progress;
  attempt.never_began = step.never_began;
  if (step.check_at) CheckAt(*step.check_at, attempt);
  if (step.confirm_gone) attempt.confirming = true;
  if (step.warning) RequestOfProgram("checkpoint", facts.time + kWarningNotice, attempt);
  if (step.read_remainder || step.follow_log) attempt.reading_log = true;
  if (step.ask_sidecar) attempt.reading_sidecar = true;
  if (!step.end_pods) return;
  attempt.stop->suspended |= step.end_pods->suspend;
  attempt.stop->deleted = !step.end_pods->suspend;
  if (step.end_pods->suspend) attempt.stop->delete_at = attempt.stop->kill_at + kSuspension;
}

}  // namespace shirabe::trial
