#include "trial/kubernetes/attempt_watcher.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "trial/control_file.h"
#include "trial/kubernetes/cluster_actions.h"
#include "trial/kubernetes/pod_log_copy.h"

namespace shirabe::trial {
namespace {

// A log is read again and again from its beginning: so much of it a second.
constexpr double kLogBytesPerSecond = 1 << 20;

// What others are told of, when it changes.
std::string Digest(const AttemptStatus& observed) {
  return absl::StrCat(static_cast<int>(observed.state), observed.placement.has_start_time(),
                      observed.placement.node(), observed.platform, observed.waiting);
}

// Of a pod whose object, and with it the recipe, is gone.
AttemptRecipe RecipeFromPod(const Json& pod) {
  AttemptRecipe recipe;
  for (const Json& container : Items(At(pod, {"spec", "containers"}))) {
    if (recipe.primary_container.empty()) recipe.primary_container = Text(container, {"name"});
  }
  recipe.instrumented = Named(At(pod, {"spec", "initContainers"}), kSidecarContainer).is_object();
  return recipe;
}

}  // namespace

EventLookups::Callbacks AttemptWatcher::Callbacks() {
  return {.object_name =
              [this](const AttemptKey& key) {
                std::optional<std::string> name;
                attempts_.Visit(key, [&](PodAttempt& attempt) {
                  if (attempt.progress.needs_events) name = attempt.ref.name;
                });
                return name;
              },
          .on_events =
              [this](const AttemptKey& key, const std::vector<Json>& events) {
                attempts_.Visit(key, [&](PodAttempt& attempt) { attempt.events = events; });
                Examine(key);
              }};
}

// ---- one look -----------------------------------------------------------------------------------

void AttemptWatcher::Examine(const AttemptKey& key, const Json* gone) {
  const absl::Duration interval = SyncInterval(context_.timeouts, attempts_.size());
  AttemptStep step;
  AttemptFacts facts;
  Target target;
  bool changed = false;
  attempts_.Visit(key, [&](PodAttempt& attempt) {
    if (attempt.ended()) return;
    if (gone != nullptr && (attempt.uid.empty() || IsPrimary(*gone, attempt.recipe))) {
      attempt.gone = *gone;
    }
    const std::string before = Digest(attempt.observed);
    facts = GatherFacts(attempt, interval);
    const StepRules rules = {context_.timeouts, *context_.pools};
    step = NextStep(facts, attempt, rules);
    Apply(step, facts, attempt);
    if (step.bind) {
      step = NextStep(facts, attempt, rules);
      Apply(step, facts, attempt);
    }
    target = {key, attempt.ref, attempt.uid, attempt.recipe};
    changed = Digest(attempt.observed) != before;
  });
  Perform(step, facts, target);
  if (changed) context_.notify(key.trial.experiment);
}

AttemptFacts AttemptWatcher::GatherFacts(const PodAttempt& attempt,
                                         absl::Duration sync_interval) const {
  const ClusterView& view = *context_.view;
  AttemptFacts facts;
  facts.now = context_.clock->Monotonic();
  facts.time = context_.clock->Now();
  facts.synced = view.Synced();
  facts.nodes_known = view.NodesKnown();
  facts.nodes_refused = view.NodesRefused();
  facts.object = view.FindObject(attempt.ref);
  facts.pods = view.PodsOf(attempt.key);
  facts.sync_interval = sync_interval;
  const auto find = [&](const Json& pod) {
    const std::string name = Text(pod, {"spec", "nodeName"});
    if (auto node = view.FindNode(name)) facts.nodes[name] = *std::move(node);
  };
  for (const Json& pod : facts.pods) find(pod);
  if (attempt.gone) find(*attempt.gone);
  return facts;
}

void AttemptWatcher::Perform(const AttemptStep& step, const AttemptFacts& facts,
                             const Target& target) {
  const AttemptKey& key = target.key;
  if (step.look_up_events) events_.Request(key);
  if (step.warning) {
    Log(LogLevel::kInfo, "a node is about to be removed; requesting a checkpoint",
        {{"attempt", AttemptName(key)}, {"node", step.progress.node}, {"why", step.warning->text}});
  }
  if (step.confirm_gone) context_.run([this, target] { ConfirmGone(target); });
  if (step.read_remainder) {
    context_.run([this, target, pod = *step.pod] { ReadRemainder(target, pod); });
  }
  if (step.follow_log) context_.run([this, target, pod = *step.pod] { FollowLog(target, pod); });
  if (step.end_pods) {
    context_.run(
        [this, target, pods = facts.pods, end = *step.end_pods] { EndPods(target, pods, end); });
  }
}

void AttemptWatcher::OnTimer(absl::Duration now) {
  events_.OnTimer(now);
  for (const AttemptKey& key : attempts_.TakeDue(now)) Examine(key);
}

std::optional<absl::Duration> AttemptWatcher::NextDue() const {
  const auto look = attempts_.NextDue();
  const auto lookup = events_.NextDue();
  return look && lookup ? std::min(*look, *lookup) : look ? look : lookup;
}

// ---- whether its object is gone -----------------------------------------------------------------

void AttemptWatcher::ConfirmGone(const Target& target) {
  const auto object = context_.client->Get(target.ref);
  const bool known =
      attempts_.Visit(target.key, [&](PodAttempt& attempt) { OnConfirmed(object, attempt); });
  if (known) Examine(target.key);
}

void AttemptWatcher::OnConfirmed(const StatusOr<Json>& object, PodAttempt& attempt) {
  attempt.confirming = false;
  if (object.ok()) {
    const bool ours = AttemptIdOf(*object) == attempt.id &&
                      (attempt.uid.empty() || attempt.uid == UidOf(*object));
    if (ours) {
      context_.view->Put(attempt.ref.resource, *object);
      return Bind(*object, attempt);
    }
    attempt.object_gone = true;  // its name is another's by now
  } else if (absl::IsNotFound(object.status())) {
    attempt.object_gone = true;
  } else {
    return CheckAt(context_.clock->Monotonic() + context_.timeouts.retry, attempt);
  }
  if (!attempt.uid.empty()) return;
  for (const Json& pod : context_.view->PodsOf(attempt.key)) {
    // One without an owner is the object itself, or that of a user who has copied our labels.
    const Json& owners = Items(At(pod, {"metadata", "ownerReferences"}));
    if (owners.empty() && AttemptIdOf(pod) != attempt.id) continue;
    attempt.recipe = RecipeFromPod(pod);
    attempt.uid = owners.empty() ? UidOf(pod) : Text(owners.front(), {"uid"});
    return;
  }
  attempt.never_began = !attempt.state.has_exit();
  attempt.observed.state = AttemptStatus::State::kLost;
  attempt.observed.message = "it has never started, or nothing of it is left in the cluster";
}

// ---- ending it ----------------------------------------------------------------------------------

void AttemptWatcher::Stop(const AttemptKey& key, v1::Cause why, absl::Duration grace) {
  const absl::Duration interval = SyncInterval(context_.timeouts, attempts_.size());
  attempts_.Visit(key, [&](PodAttempt& attempt) {
    if (attempt.ended()) return;
    const absl::Duration now = context_.clock->Monotonic();
    const absl::Duration kill_at = now + grace;
    if (attempt.stop && attempt.stop->kill_at <= kill_at) return;
    const bool listens = attempt.recipe.instrumented && attempt.heard &&
                         now - *attempt.heard < 2 * interval && !attempt.stop;
    const absl::Duration acknowledged_by = now + context_.timeouts.stop_ack_timeout;
    attempt.stop = {kill_at, listens ? std::min(acknowledged_by, kill_at) : now};
    RequestOfProgram(ControlReason(why), context_.clock->Now() + grace, attempt);
  });
  Examine(key);
}

void AttemptWatcher::EndPods(const Target& target, const std::vector<Json>& pods,
                             const AttemptStep::PodsEnd& end) {
  Status status;
  if (end.object_too) status.Update(DeleteObject(*context_.client, target.ref, target.uid));
  for (const Json& pod : pods) status.Update(EndPod(*context_.client, pod, end.grace));
  const bool known = attempts_.Visit(target.key, [&](PodAttempt& attempt) {
    if (status.ok() || !attempt.stop) return;
    attempt.stop->deleted = false;
    attempt.stop->delete_at = context_.clock->Monotonic() + context_.timeouts.retry;
    attempt.pending_request.reset();
    CheckAt(attempt.stop->delete_at, attempt);
  });
  if (known) Examine(target.key);
}

// ---- the rest of what a program left ------------------------------------------------------------

// What the sidecar could not send, it has printed; what it could not even print, the program's own
// container may have.
void AttemptWatcher::ReadRemainder(const Target& target, const Json& pod) {
  const AttemptKey& key = target.key;
  const AttemptRecipe& recipe = target.recipe;
  const Status words = recipe.instrumented ? ApplyFinalSync(key, pod) : absl::OkStatus();
  bool complete = false;
  const bool known = attempts_.Visit(key, [&](PodAttempt& attempt) {
    complete = recipe.instrumented && attempt.state.complete();
  });
  if (!known) return;
  const Status log = complete ? absl::OkStatus() : CopyLog(context_, pod, recipe, mirror_);
  attempts_.Visit(key, [&](PodAttempt& attempt) {
    attempt.reading_log = false;
    const absl::Duration now = context_.clock->Monotonic();
    const bool passing = IsPassing(words) || IsPassing(log);
    const absl::Duration patience = attempt.progress.over_at + 3 * context_.timeouts.final_sync;
    const bool again = passing && now < patience;
    attempt.remainder_read = !again;
    if (again) CheckAt(now + context_.timeouts.retry, attempt);
  });
  Examine(key);
}

Status AttemptWatcher::ApplyFinalSync(const AttemptKey& key, const Json& pod) {
  ASSIGN_OR_RETURN(const auto words, ReadFinalSync(context_, pod));
  for (const v1::SyncRequest& word : words) {
    const auto taken = mirror_.Apply(key, word, word.state().complete());
    if (!taken.ok() || !word.has_state()) continue;
    attempts_.Visit(key, [&](PodAttempt& attempt) { ApplyPodState(word.state(), attempt); });
  }
  return absl::OkStatus();
}

void AttemptWatcher::FollowLog(const Target& target, const Json& pod) {
  // Read again, at the latest at the end.
  CopyLog(context_, pod, target.recipe, mirror_).IgnoreError();
  std::error_code error;
  const auto size = std::filesystem::file_size(context_.layout->Paths(target.key).log, error);
  const bool known = attempts_.Visit(target.key, [&](PodAttempt& attempt) {
    attempt.reading_log = false;
    const auto reading = absl::Seconds(error ? 0 : static_cast<double>(size) / kLogBytesPerSecond);
    attempt.log_at = context_.clock->Monotonic() + std::max(context_.timeouts.logs, reading);
  });
  if (known) Examine(target.key);
}

}  // namespace shirabe::trial
