// How attempts of the executor `kubernetes` are watched: what is seen of them, and what may be said
// while they wait.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "trial/kubernetes/kubernetes_executor.h"
#include "trial/kubernetes/pod_scheduling.h"

namespace shirabe::trial {
namespace {

using Phase = PodVerdict::Phase;

// What others are told of, when it changes.
std::string Digest(const AttemptStatus& observed) {
  return absl::StrCat(static_cast<int>(observed.state), observed.placement.has_start_time(),
                      observed.placement.node(), observed.platform, observed.waiting);
}

}  // namespace

void KubernetesExecutor::Examine(const AttemptKey& key, const Json* gone) {
  {
    std::lock_guard lock(mutex_);
    const auto left = teardowns_.find(key);
    if (left != teardowns_.end()) Clear(key, left->second);
    const auto found = attempts_.find(key);
    if (found == attempts_.end() || found->second.ended()) return;
    PodAttempt& attempt = found->second;
    if (gone != nullptr && (attempt.uid.empty() || IsPrimary(*gone, attempt.recipe))) {
      attempt.gone = *gone;
    }
    const std::string before = Digest(attempt.observed);
    Update(attempt);
    if (Digest(attempt.observed) == before) return;
  }
  if (options_.on_change) options_.on_change(key.trial.experiment);
}

void KubernetesExecutor::Update(PodAttempt& attempt) {
  if (attempt.uid.empty()) Resolve(attempt);
  if (attempt.uid.empty()) return;
  const AttemptSnapshot snapshot = TakeSnapshot(attempt);
  if (!snapshot.object && !attempt.object_gone && view_.Synced()) ConfirmGone(attempt);
  Place(snapshot, attempt);
  PodVerdict verdict = ReadSnapshot(snapshot, attempt);
  const absl::Duration now = options_.clock->Monotonic();
  if (verdict.start && !attempt.observed.placement.has_start_time()) {
    *attempt.observed.placement.mutable_start_time() = ToProto(*verdict.start);
  }
  if (verdict.unexplained) AwaitReason(attempt, verdict);
  if (verdict.phase == Phase::kRunning) ApplyReportedEnd(attempt, verdict);
  if (verdict.phase == Phase::kWaiting) {
    Wait(snapshot, attempt, verdict);
  } else {
    attempt.observed.waiting.clear();
    attempt.needs_events = false;
  }
  if (verdict.phase == Phase::kEnded || verdict.phase == Phase::kLost) {
    if (!attempt.over) attempt.over_at = now;
    attempt.over = std::move(verdict);
  }
  if (attempt.over) AwaitRemainder(snapshot, attempt);
  if (attempt.ended()) return;
  if (attempt.stop && !attempt.stop->deleted) EndPods(attempt);
  if (!attempt.recipe.instrumented && !attempt.over) FollowLog(snapshot, attempt);
}

// A program that has ended by itself, and well, whose every byte is here, need not be waited for
// until its kubelet has said so too. Any other end is the kubelet's to tell, for a while.
void KubernetesExecutor::ApplyReportedEnd(PodAttempt& attempt, PodVerdict& verdict) {
  const v1::PodState& state = attempt.state;
  if (!state.complete() || !state.has_exit() || !ExitDecides(attempt)) return;
  const absl::Duration now = options_.clock->Monotonic();
  if (!attempt.told_complete) attempt.told_complete = now;
  const v1::ProgramExit& exit = state.exit();
  const bool well = exit.code() == 0 && exit.signal() == 0 && !exit.told();
  const absl::Duration patience = *attempt.told_complete + timeouts_.final_sync;
  if (!well && now < patience) return ScheduleCheck(attempt, patience);
  verdict.phase = Phase::kEnded;
}

// What is told of a pod may be older than what is told of its object.
void KubernetesExecutor::AwaitReason(PodAttempt& attempt, PodVerdict& verdict) {
  const absl::Duration now = options_.clock->Monotonic();
  if (!attempt.unexplained_since) attempt.unexplained_since = now;
  const absl::Duration until = *attempt.unexplained_since + timeouts_.final_sync;
  if (now >= until) return;
  verdict.phase = Phase::kRunning;
  ScheduleCheck(attempt, until);
}

// ---- what there is ------------------------------------------------------------------------------

AttemptSnapshot KubernetesExecutor::TakeSnapshot(PodAttempt& attempt) {
  AttemptSnapshot snapshot;
  snapshot.object = view_.FindObject(attempt.ref);
  if (snapshot.object && UidOf(*snapshot.object) != attempt.uid) snapshot.object.reset();
  const std::vector<Json> pods = view_.PodsOf(attempt.key);
  snapshot.pod = PrimaryPod(pods, attempt.recipe);
  if (!snapshot.pod && attempt.gone && IsPrimary(*attempt.gone, attempt.recipe)) {
    snapshot.pod = attempt.gone;
    snapshot.pod_vanished = true;
  }
  if (!snapshot.pod) return snapshot;
  const std::string node = Text(*snapshot.pod, {"spec", "nodeName"});
  if (!node.empty()) ObserveNode(node, snapshot, attempt);
  for (const Json& pod : pods) {
    if (UidOf(pod) == UidOf(*snapshot.pod)) continue;
    const std::optional<Json> other = view_.FindNode(Text(pod, {"spec", "nodeName"}));
    const v1::Placement placement = PlacementOf(pod, other.value_or(Json()), options_.pools);
    PodFacts facts;
    facts.primary = attempt.recipe.primary_container;
    facts.spot = placement.capacity() == "spot";
    if (view_.NodesKnown()) facts.node = other ? PodFacts::Node::kAlive : PodFacts::Node::kDead;
    ObserveSecondaryPod(pod, facts, snapshot);
    snapshot.price_per_hour += placement.price_per_hour();
    snapshot.on_demand_price_per_hour += placement.on_demand_price_per_hour();
  }
  return snapshot;
}

// A node that is not ready is believed dead once it has been silent for a while, and its sidecar
// too: where only the kubelet has died, the program runs on, and so does its attempt.
void KubernetesExecutor::ObserveNode(const std::string& name, AttemptSnapshot& snapshot,
                                     PodAttempt& attempt) {
  using Node = PodFacts::Node;
  snapshot.node = view_.FindNode(name);
  const bool seen_before = attempt.node == name && attempt.node_seen;
  // Noted at once: a pod may be seen before its node, and when that comes, it says where the pod
  // is.
  attempt.node = name;
  attempt.node_seen = seen_before || snapshot.node.has_value();
  if (!snapshot.node && !view_.NodesKnown()) return;
  const absl::Duration now = options_.clock->Monotonic();
  if (snapshot.node && !OutOfService(*snapshot.node).empty()) {
    snapshot.node_state = Node::kDead;
    return;
  }
  if (snapshot.node && IsReady(*snapshot.node)) {
    attempt.node_quiet_since.reset();
    snapshot.node_state = Node::kAlive;
    return;
  }
  if (!attempt.node_quiet_since) attempt.node_quiet_since = now;
  absl::Duration dead_at = *attempt.node_quiet_since;
  if (!snapshot.node) {
    if (!seen_before) dead_at += timeouts_.unseen;
  } else {
    dead_at = (attempt.heard ? *attempt.heard : dead_at) + std::max(timeouts_.silence, 3 * Next());
  }
  snapshot.node_state = now >= dead_at ? Node::kDead : Node::kAlive;
  if (now < dead_at) ScheduleCheck(attempt, dead_at);
}

void KubernetesExecutor::Place(const AttemptSnapshot& snapshot, PodAttempt& attempt) {
  if (!snapshot.pod || !snapshot.node) return;
  v1::Placement placement = PlacementOf(*snapshot.pod, *snapshot.node, options_.pools);
  placement.set_price_per_hour(placement.price_per_hour() + snapshot.price_per_hour);
  placement.set_on_demand_price_per_hour(placement.on_demand_price_per_hour() +
                                         snapshot.on_demand_price_per_hour);
  const v1::Placement& before = attempt.observed.placement;
  if (before.has_start_time()) *placement.mutable_start_time() = before.start_time();
  attempt.observed.placement = std::move(placement);
  if (const auto warning = NodeWarningOf(*snapshot.node)) Warn(*warning, attempt);
}

// Whatever is about to take the node, what is saved now is not lost.
void KubernetesExecutor::Warn(const NodeWarning& warning, PodAttempt& attempt) {
  if (attempt.warned == warning.reason) return;
  attempt.warned = warning.reason;
  if (!attempt.recipe.instrumented || attempt.stop) return;
  Log(LogLevel::kInfo, "a node is about to be removed; requesting a checkpoint",
      {{"attempt", AttemptName(attempt.key)}, {"node", attempt.node}, {"why", warning.text}});
  Ask("checkpoint", options_.clock->Now() + absl::Seconds(30), attempt);
}

// ---- while it waits -----------------------------------------------------------------------------

void KubernetesExecutor::Wait(const AttemptSnapshot& snapshot, PodAttempt& attempt,
                              PodVerdict& verdict) {
  const absl::Duration now = options_.clock->Monotonic();
  WaitingFacts facts;
  facts.object = snapshot.object ? &*snapshot.object : nullptr;
  facts.pod = snapshot.pod ? &*snapshot.pod : nullptr;
  facts.events = attempt.events;
  facts.primary = attempt.recipe.primary_container;
  const auto why = WhyWaiting(facts);
  const std::string reason = why ? why->reason : "";
  if (!attempt.waiting_since || attempt.waiting_reason != reason) attempt.waiting_since = now;
  attempt.waiting_reason = reason;
  attempt.observed.waiting = why ? why->text : "";
  if (!why) return ScheduleEventLookup(attempt);
  attempt.needs_events = false;
  const absl::Duration give_up = *attempt.waiting_since + why->give_up;
  if (why->give_up == absl::InfiniteDuration() || attempt.stop) return;
  if (now < give_up) return ScheduleCheck(attempt, give_up);
  verdict.phase = Phase::kEnded;
  verdict.cause = v1::NEVER_RAN;
  verdict.message = why->text;
}

// ---- when to look -------------------------------------------------------------------------------

// The earliest moment that was asked for stands.
void KubernetesExecutor::ScheduleCheck(PodAttempt& attempt, absl::Duration at) {
  if (attempt.due && *attempt.due <= at) return;
  if (attempt.due) agenda_.erase({*attempt.due, attempt.key});
  attempt.due = at;
  AddToAgenda(attempt.key, at);
}

// Too much on the agenda does no harm: whatever is looked at says itself what there is to do.
void KubernetesExecutor::AddToAgenda(const AttemptKey& key, absl::Duration at) {
  const bool first = agenda_.empty() || at < agenda_.begin()->first;
  agenda_.insert({at, key});
  if (first) Wake();
}

std::optional<absl::Duration> KubernetesExecutor::OnTimer() {
  const absl::Duration now = options_.clock->Monotonic();
  std::vector<AttemptKey> due;
  {
    std::lock_guard lock(mutex_);
    while (!agenda_.empty() && agenda_.begin()->first <= now) {
      due.push_back(agenda_.begin()->second);
      agenda_.erase(agenda_.begin());
      const auto found = attempts_.find(due.back());
      if (found != attempts_.end()) found->second.due.reset();
    }
    FetchDueEvents(now);
    RemoveLeftovers(now);
    StartCleaners(now);
    StartPruners(now);
    FindOrphans(now);
  }
  for (const AttemptKey& key : due) Examine(key, nullptr);
  std::lock_guard lock(mutex_);
  std::optional<absl::Duration> next;
  const auto take = [&](absl::Duration at) { next = next ? std::min(*next, at) : at; };
  if (!agenda_.empty()) take(agenda_.begin()->first);
  for (const auto& [ns, waiting] : event_lookups_) {
    if (!waiting.asking) take(DueOf(waiting));
  }
  for (const auto& [key, at] : removals_) take(at);
  for (const auto& [key, cleaning] : volume_cleanups_) take(cleaning.due);
  for (const auto& [key, prunes] : prune_queues_) {
    if (prunes.due) take(*prunes.due);
  }
  take(next_orphan_scan_);
  return next;
}

void KubernetesExecutor::OnNode(const std::string& name) {
  std::vector<AttemptKey> there;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [key, attempt] : attempts_) {
      if (attempt.node == name && !attempt.ended()) there.push_back(key);
    }
  }
  for (const AttemptKey& key : there) Examine(key, nullptr);
}

}  // namespace shirabe::trial
