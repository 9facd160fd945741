#include "trial/kubernetes/pod_attempt.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <map>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/sha256.h"
#include "trial/checkpoint/checkpoint_copy.h"
#include "trial/checkpoint/checkpoint_folder.h"
#include "trial/gjson/gjson.h"
#include "trial/pod/operator_kinds.h"

namespace shirabe::trial {
namespace {

using Phase = PodVerdict::Phase;

// The platform's doing, whatever the program's exit code.
bool IsPlatformCause(v1::Cause cause) {
  switch (cause) {
    case v1::PREEMPTED_SCHEDULER:
    case v1::PREEMPTED_EVICTION:
    case v1::PREEMPTED_NODE:
    case v1::PREEMPTED_SPOT:
    case v1::SUSPENDED:
    case v1::INFRASTRUCTURE: return true;
    default: return false;
  }
}

// Katib's defaults say of a Job what its pod says sooner.
bool IsJobsOwn(const std::string& condition) {
  return condition.empty() || absl::StrContains(condition, "\"Complete\"") ||
         absl::StrContains(condition, "\"Failed\"");
}

bool DoesHold(const std::string& condition, const Json& object) {
  return !condition.empty() && MatchesGjson(condition, object).value_or(false);
}

// An operator may call its object failed because a pod is about to go, long before that has ended:
// what the platform did to any of the pods goes before, and one that is ending will say it.
PodVerdict ByFailure(const AttemptSnapshot& snapshot, bool had_pod, PodVerdict verdict) {
  const bool runs = verdict.phase == Phase::kRunning;
  const bool ending = verdict.ending && (runs || verdict.phase == Phase::kWaiting);
  if (IsPlatformCause(verdict.cause) || ending) return verdict;
  verdict.phase = Phase::kEnded;
  if (snapshot.taken) {
    verdict.cause = snapshot.taken->cause;
    verdict.message = snapshot.taken->message;
    return verdict;
  }
  verdict.unexplained = runs;
  const std::optional<std::string> erred = WhyErred(*snapshot.object);
  // It errs where a pod is lost, too. It is the trial's own fault where there never was a pod, or
  // where the end of its program was seen.
  const bool unseen =
      erred && had_pod && (!verdict.exit_code || verdict.cause == v1::UNKNOWN_CAUSE);
  if (!unseen && verdict.exit_code.value_or(0) == 0) verdict.exit_code = 1;
  if (verdict.message.empty() || verdict.cause == v1::UNKNOWN_CAUSE) {
    const std::string words =
        erred.value_or(Text(kube::Condition(*snapshot.object, "Failed"), {"message"}));
    verdict.message = absl::StrCat(erred ? "it ended in error" : "its failureCondition holds",
                                   words.empty() ? "" : ": ", words);
  }
  if (unseen) {
    if (verdict.cause == v1::CAUSE_NONE) verdict.cause = v1::UNKNOWN_CAUSE;
  } else if (verdict.cause == v1::UNKNOWN_CAUSE) {
    verdict.cause = v1::CAUSE_NONE;  // a pod that is gone by now was deleted by the operator
  }
  return verdict;
}

PodVerdict Lost(v1::Cause cause, const std::string& message) {
  PodVerdict verdict;
  verdict.phase = PodVerdict::Phase::kLost;
  verdict.cause = cause;
  verdict.message = message;
  return verdict;
}

// What the conditions of the object say goes before what its pods say, but for a machine that was
// taken away: no operator's patience is waited for then.
PodVerdict ByConditions(const AttemptSnapshot& snapshot, const AttemptRecipe& recipe, bool had_pod,
                        PodVerdict verdict) {
  const Json& object = *snapshot.object;
  if (DoesHold(recipe.success_condition, object)) {
    verdict.phase = Phase::kEnded;
    verdict.exit_code = 0;
    verdict.signal = 0;
    verdict.cause = v1::CAUSE_NONE;
  } else if (DoesHold(recipe.failure_condition, object) || WhyErred(object)) {
    return ByFailure(snapshot, had_pod, std::move(verdict));
  } else if (verdict.phase == Phase::kEnded && !IsPlatformCause(verdict.cause)) {
    if (!IsDeleting(object)) {
      verdict.phase = verdict.start ? Phase::kRunning : Phase::kWaiting;
    } else if (verdict.exit_code == 0) {
      // No condition will hold any more; a pod that is the object itself waits for our finalizer.
      return Lost(v1::UNKNOWN_CAUSE, "it was deleted before its successCondition held");
    }
  }
  return verdict;
}

// What its Job says of an end that its pod does not explain: a Job whose time is over has its pods
// deleted, and is seen to say so a little later. What the platform did, or the program itself,
// stays; where we stopped it, the Job need not say why.
void ExplainByJob(const JobVerdict& job, bool stopped, PodVerdict& verdict) {
  const bool ran = verdict.phase == Phase::kLost || verdict.start;
  const bool over = verdict.phase == Phase::kEnded || verdict.phase == Phase::kLost;
  const bool killed = verdict.cause == v1::CAUSE_NONE && !verdict.out_of_memory &&
                      (verdict.signal == SIGTERM || verdict.signal == SIGKILL);
  const bool by_somebody = verdict.cause == v1::UNKNOWN_CAUSE || verdict.cause == v1::NEVER_RAN;
  if (over && !killed && !by_somebody) return;
  if (!over && (verdict.phase != Phase::kWaiting || job.message.empty())) return;
  if (over && !job.overdue) {
    verdict.unexplained = job.limited && !stopped;
    return;
  }
  if (!over) verdict.phase = Phase::kEnded;
  verdict.cause = job.cause;
  verdict.message = job.message;
  if (!job.overdue) return;
  verdict.overdue = AttemptStatus::Overdue::kJob;
  if (!ran) {
    verdict.message = "it had not started when activeDeadlineSeconds of its Job were over";
  }
}

bool ExitedByItself(const v1::ProgramExit& exit) {
  return !exit.told() && exit.signal() != SIGKILL && exit.signal() != SIGTERM;
}

void SetTimes(const PodVerdict& verdict, const v1::ProgramExit& exit, absl::Time now,
              AttemptStatus& observed) {
  v1::Placement& placement = observed.placement;
  std::optional<absl::Time> start = verdict.start;
  if (!start && exit.has_began()) start = FromProto(exit.began());
  if (start && !placement.has_start_time()) *placement.mutable_start_time() = ToProto(*start);
  if (!placement.has_start_time()) return;
  absl::Time end = verdict.end.value_or(now);
  if (!verdict.end && exit.has_ended()) end = FromProto(exit.ended());
  end = std::max(end, FromProto(placement.start_time()));
  *placement.mutable_end_time() = ToProto(end);
  observed.ran = exit.has_ran() ? FromProto(exit.ran()) : end - FromProto(placement.start_time());
}

}  // namespace

bool IsTerminal(const Json& pod) {
  const std::string phase = Text(pod, {"status", "phase"});
  return phase == "Succeeded" || phase == "Failed";
}

void CheckAt(absl::Duration at, PodAttempt& attempt) {
  if (!attempt.due || at < *attempt.due) attempt.due = at;
}

void SetRecipe(AttemptRecipe recipe, PodAttempt& attempt) {
  attempt.recipe = std::move(recipe);
  if (attempt.recipe.instrumented) return MarkFilesChanged(attempt);
  attempt.observed.begin_known = true;
  // Copies of its log, and what its object tells, come from elsewhere: they are looked for.
  attempt.observed.files_version.reset();
}

// Unique in this process: one that is forgotten and adopted again has none of its old numbers.
void MarkFilesChanged(PodAttempt& attempt) {
  static std::atomic<int64_t> last{0};
  attempt.observed.files_version = ++last;
}

void Bind(const Json& object, PodAttempt& attempt) {
  attempt.uid = UidOf(object);
  attempt.created = TimeOf(At(object, {"metadata", "creationTimestamp"}));
  SetRecipe(RecipeOf(object), attempt);
  attempt.never_began = false;
  attempt.object_gone = false;
}

void RequestOfProgram(const std::string& reason, absl::Time deadline, PodAttempt& attempt) {
  if (attempt.recipe.instrumented) attempt.pending_request = {reason, deadline};
}

bool ExitDecides(const PodAttempt& attempt) {
  const AttemptRecipe& recipe = attempt.recipe;
  const std::string& kind = attempt.ref.resource.kind;
  if ((kind == "Job" || kind == "Pod") && IsJobsOwn(recipe.success_condition) &&
      IsJobsOwn(recipe.failure_condition)) {
    return true;
  }
  return recipe.success_condition.empty() && recipe.failure_condition.empty();
}

std::optional<Json> PrimaryPod(const std::vector<Json>& pods, const AttemptRecipe& recipe) {
  const Json* best = nullptr;
  const auto before = [](const Json& a, const Json& b) {
    if (IsTerminal(a) != IsTerminal(b)) return !IsTerminal(a);
    return Text(a, {"metadata", "creationTimestamp"}) < Text(b, {"metadata", "creationTimestamp"});
  };
  for (const Json& pod : pods) {
    if (!IsPrimary(pod, recipe)) continue;
    if (best == nullptr || before(pod, *best)) best = &pod;
  }
  return best == nullptr ? std::nullopt : std::optional<Json>(*best);
}

void ObserveSecondaryPod(const Json& pod, const PodFacts& facts, AttemptSnapshot& snapshot) {
  PodVerdict verdict = ReadPod(pod, facts);
  if (!IsPlatformCause(verdict.cause)) return;
  verdict.message = absl::StrCat("pod ", NameOf(pod), ": ", verdict.message);
  snapshot.taken = std::move(verdict);
}

PodVerdict ReadSnapshot(const AttemptSnapshot& snapshot, const PodAttempt& attempt,
                        const v1::Placement& placement) {
  const JobVerdict job = snapshot.object ? ReadJob(*snapshot.object) : JobVerdict();
  PodVerdict verdict;
  if (snapshot.pod) {
    PodFacts facts;
    facts.primary = attempt.recipe.primary_container;
    facts.spot = placement.capacity() == "spot";
    facts.node = snapshot.node_state;
    facts.vanished = snapshot.pod_vanished;
    facts.suspended = job.suspended;
    verdict = ReadPod(*snapshot.pod, facts);
  }
  const bool speaks =
      verdict.phase == PodVerdict::Phase::kEnded || verdict.phase == PodVerdict::Phase::kLost;
  const bool started = verdict.start || placement.has_start_time();
  if (attempt.object_gone && !speaks && (!snapshot.pod || !IsDeleting(*snapshot.pod))) {
    return Lost(started ? v1::UNKNOWN_CAUSE : v1::NEVER_RAN,
                "its " + attempt.ref.resource.kind + " was deleted, and not by Shirabe");
  }
  if (snapshot.object && !ExitDecides(attempt)) {
    const bool had_pod = snapshot.pod || started || !attempt.progress.node.empty();
    return ByConditions(snapshot, attempt.recipe, had_pod, std::move(verdict));
  }
  ExplainByJob(job, attempt.stop.has_value(), verdict);
  return verdict;
}

bool SidecarHasEnded(const AttemptSnapshot& snapshot) {
  if (!snapshot.pod || snapshot.pod_vanished) return false;
  return IsTerminal(*snapshot.pod) ||
         At(kube::ContainerStatus(*snapshot.pod, kSidecarContainer), {"state", "terminated"})
             .is_object();
}

void RecordEnd(const PodVerdict& verdict, absl::Time now, const PodAttempt& attempt,
               AttemptStatus& observed) {
  const v1::ProgramExit& exit = attempt.state.exit();
  const bool recorded = attempt.state.has_exit() && ExitDecides(attempt);
  // Lost is what the caller may begin again under the same name; this attempt has been here.
  observed.state = AttemptStatus::State::kExited;
  observed.exit_code = verdict.exit_code;
  observed.signal = verdict.signal;
  observed.out_of_memory = verdict.out_of_memory;
  observed.platform = verdict.cause;
  observed.overdue = verdict.overdue;
  observed.message = verdict.message;
  observed.waiting.clear();
  if (recorded) {
    observed.signal = exit.signal();
    observed.exit_code = exit.signal() == 0 ? std::optional<int>(exit.code()) : std::nullopt;
    observed.out_of_memory = observed.out_of_memory || exit.out_of_memory();
    const bool overdue = verdict.overdue != AttemptStatus::Overdue::kNo;
    if (ExitedByItself(exit) && (overdue || IsPlatformCause(verdict.cause))) {
      observed.platform = v1::CAUSE_NONE;
      observed.overdue = AttemptStatus::Overdue::kNo;
      observed.message.clear();
    }
    if (observed.message.empty()) observed.message = exit.message();
  }
  if (observed.signal != 0) observed.exit_code.reset();
  SetTimes(verdict, exit, now, observed);
}

namespace {

// In its own words, but for what they are copies of.
void TakeCopies(const v1::PodState& state, PodAttempt& attempt) {
  AttemptStatus& observed = attempt.observed;
  observed.copied = Printable(state.copied());
  observed.uncopied = state.uncopied();
  observed.outputs_uncopied = state.outputs_uncopied();
  observed.outputs.reset();
  const v1::Checkpoint& told = state.outputs();
  if (!IsHexSha256(told.digest()) || told.bytes() < 0) return;
  v1::Checkpoint outputs;
  SetKey(attempt.key, outputs);
  outputs.set_step(kOutputsStep);
  outputs.set_bytes(told.bytes());
  outputs.set_digest(told.digest());
  observed.outputs = std::move(outputs);
}

}  // namespace

bool ApplyPodState(const v1::PodState& state, PodAttempt& attempt) {
  const ExperimentKey& experiment = attempt.key.trial.experiment;
  const auto ours = [&](v1::Checkpoint checkpoint) {
    checkpoint.set_namespace_(experiment.ns);
    checkpoint.set_experiment(experiment.name);
    return checkpoint;
  };
  AttemptStatus& observed = attempt.observed;
  const size_t checkpoints_before = observed.checkpoints.size();
  const bool resumed_before = observed.resumed.has_value();
  const bool awaited = !observed.begin_known && observed.placement.has_start_time();
  const bool news = state.has_exit() != attempt.state.has_exit() ||
                    state.complete() != attempt.state.complete() ||
                    state.refused_size() != attempt.state.refused_size();
  observed.begin_known = true;
  if (state.has_resumed()) observed.resumed = ours(state.resumed());
  observed.damaged.clear();
  for (const v1::Checkpoint& damaged : state.damaged()) observed.damaged.push_back(ours(damaged));
  std::map<int64_t, v1::Checkpoint> by_step;
  for (const v1::Checkpoint& told : state.checkpoints()) {
    v1::Checkpoint checkpoint = told;
    SetKey(attempt.key, checkpoint);
    by_step[checkpoint.step()] = std::move(checkpoint);
  }
  observed.checkpoints.clear();
  for (auto& [step, checkpoint] : by_step) observed.checkpoints.push_back(std::move(checkpoint));
  observed.refused.assign(state.refused().begin(), state.refused().end());
  TakeCopies(state, attempt);
  attempt.state = state;
  return news || awaited || observed.checkpoints.size() != checkpoints_before ||
         observed.resumed.has_value() != resumed_before;
}

}  // namespace shirabe::trial
