#include "trial/kubernetes/attempt_watcher.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "base/log.h"
#include "base/text/json_text.h"
#include "trial/control_file.h"
#include "trial/kubernetes/cluster_actions.h"
#include "trial/kubernetes/pod_log_copy.h"

namespace shirabe::trial {
namespace {

// A log is read again and again from its beginning: so much of it a second.
constexpr double kLogBytesPerSecond = 1 << 20;
// When the status that was taken last from a TrainJob was reported.
constexpr char kTrainerStatusFile[] = "/trainer-status";

// What others are told of, when it changes.
std::string Digest(const AttemptStatus& observed) {
  return absl::StrCat(static_cast<int>(observed.state), observed.placement.has_start_time(),
                      observed.placement.node(), observed.platform, observed.waiting);
}

std::optional<absl::Time> CreationOf(const Json& object) {
  return TimeOf(At(object, {"metadata", "creationTimestamp"}));
}

// One of another object that had the name before may still be ending, or be told of: such as that
// of the attempt before, or of an experiment that was deleted and made again.
bool IsOlder(const Json& pod, const PodAttempt& attempt, const std::optional<Json>& object) {
  const auto made = attempt.created || !object ? attempt.created : CreationOf(*object);
  return made && CreationOf(pod) < made;
}

// A pod says itself whose it is, where that reached it.
bool SaysOtherwise(const Json& pod, const PodAttempt& attempt) {
  const std::string id = AnnotationOf(pod, kPodAttemptIdAnnotation);
  return !id.empty() && id != attempt.id;
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
  return {.object =
              [this](const AttemptKey& key) {
                std::optional<kube::Ref> object;
                attempts_.Visit(key, [&](PodAttempt& attempt) {
                  if (attempt.progress.needs_events) object = attempt.ref;
                });
                return object;
              },
          .on_events =
              [this](const AttemptKey& key, const std::vector<Json>& events) {
                attempts_.Visit(key, [&](PodAttempt& attempt) {
                  attempt.events = events;
                  // One of the name before may have had trouble that this one has not.
                  std::erase_if(attempt.events, [&](const Json& event) {
                    return attempt.created && TimeOfEvent(event) < *attempt.created;
                  });
                });
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
    attempt.own_pod.clear();  // its pods may be others by now
    if (gone != nullptr && IsOf(*gone, attempt)) attempt.gone = *gone;
    const std::string before = Digest(attempt.observed);
    facts = GatherFacts(attempt, interval);
    if (facts.object) TakeTrainerStatus(*facts.object, attempt);
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

bool AttemptWatcher::IsOf(const Json& gone, const PodAttempt& attempt) const {
  const bool labelled = KeyOf(gone) == attempt.key;
  const bool made = !labelled && IsMadeOf(gone, attempt.ref) &&
                    !IsOlder(gone, attempt, context_.view->FindObject(attempt.ref));
  return (labelled || made) && !SaysOtherwise(gone, attempt) &&
         (attempt.uid.empty() || IsPrimary(gone, attempt.recipe));
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
  std::erase_if(facts.pods, [&](const Json& pod) { return SaysOtherwise(pod, attempt); });
  for (Json& pod : view.PodsMadeOf(attempt.ref)) {
    if (!IsOlder(pod, attempt, facts.object)) facts.pods.push_back(std::move(pod));
  }
  facts.sync_interval = sync_interval;
  const auto find = [&](const Json& pod) {
    const std::string name = Text(pod, {"spec", "nodeName"});
    if (auto node = view.FindNode(name)) facts.nodes[name] = *std::move(node);
  };
  for (const Json& pod : facts.pods) find(pod);
  if (attempt.gone) find(*attempt.gone);
  return facts;
}

// Before the end that the same object may tell of: what is collected after that is never looked at.
// What was taken already is known to the next process, too.
void AttemptWatcher::TakeTrainerStatus(const Json& object, PodAttempt& attempt) const {
  const Json& status = At(object, {"status", "trainerStatus"});
  const std::string time = Text(status, {"lastUpdatedTime"});
  if (time.empty() || !context_.status_handlers.make || attempt.uid != UidOf(object)) return;
  const AttemptPaths paths = context_.layout->Paths(attempt.key);
  const std::string taken = paths.dir + kTrainerStatusFile;
  if (!attempt.trainer.handle) {
    attempt.trainer = {ReadFile(taken).value_or(""),
                       context_.status_handlers.make(paths.metrics_file)};
  }
  if (attempt.trainer.time == time) return;
  const Status written = attempt.trainer.handle(JsonText(Json{{"trainerStatus", status}}));
  if (!written.ok() && !absl::IsInvalidArgument(written)) {
    return CheckAt(context_.clock->Monotonic() + context_.timeouts.retry, attempt);
  }
  if (!written.ok()) {
    Log(LogLevel::kWarning, "the status of a TrainJob cannot be read",
        {{"attempt", AttemptName(attempt.key)}, {"error", Message(written)}});
  }
  attempt.trainer.time = time;
  WriteFileAtomic(taken, time).IgnoreError();  // at worst a value is there twice
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
  if (step.ask_sidecar) context_.run([this, key, pod = *step.pod] { AskSidecar(key, pod); });
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
    SetRecipe(RecipeFromPod(pod), attempt);
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
  if (end.suspend) {
    status.Update(SuspendObject(*context_.client, target.ref, target.uid));
  } else if (end.object_too) {
    status.Update(DeleteObject(*context_.client, target.ref, target.uid));
  }
  for (const Json& pod : pods) {
    if (!end.suspend) status.Update(EndPod(*context_.client, pod, end.grace));
  }
  const bool known = attempts_.Visit(target.key, [&](PodAttempt& attempt) {
    if (!attempt.stop) return;
    attempt.stop->refused =
        absl::IsPermissionDenied(status) ? "it cannot be ended: " + Message(status) : "";
    if (status.ok()) return;
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
  const Status log = complete ? absl::OkStatus() : CopyLog(context_, {key, pod, recipe}, mirror_);
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
  CopyLog(context_, {target.key, pod, target.recipe}, mirror_).IgnoreError();
  std::error_code error;
  const auto size = std::filesystem::file_size(context_.layout->Paths(target.key).log, error);
  const bool known = attempts_.Visit(target.key, [&](PodAttempt& attempt) {
    attempt.reading_log = false;
    const auto reading = absl::Seconds(error ? 0 : static_cast<double>(size) / kLogBytesPerSecond);
    attempt.log_at = context_.clock->Monotonic() + std::max(context_.timeouts.logs, reading);
  });
  if (known) Examine(target.key);
}

// ---- a sidecar that is not heard of -------------------------------------------------------------

void AttemptWatcher::AskSidecar(const AttemptKey& key, const Json& pod) {
  const auto error = ReadSidecarError(context_, pod);
  const std::string words = !error.ok()      ? "its log cannot be read: " + Message(error.status())
                            : error->empty() ? "its log does not say why"
                                             : *error;
  const bool known = attempts_.Visit(key, [&](PodAttempt& attempt) {
    attempt.reading_sidecar = false;
    attempt.unheard_why = absl::StrCat(
        "its program runs, but its sidecar has not reached the controller at ",
        context_.pods->server, ": ", words,
        "; metrics and checkpoints come once it does. See whether names resolve in its namespace ",
        "(the cluster's DNS), and whether a NetworkPolicy lets its pods out");
  });
  if (known) Examine(key);
}

}  // namespace shirabe::trial
