#include "trial/kubernetes/pod_verdict.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kube/json_access.h"
#include "trial/pod/pod_names.h"

namespace shirabe::trial {
namespace {

using Phase = PodVerdict::Phase;

constexpr int kSignalBase = 128;
constexpr int kLastSignal = 31;
constexpr int kExitYielded = 75;
constexpr size_t kMaxMessageBytes = 500;
// Clocks of nodes and API server differ, and their times are whole seconds.
constexpr absl::Duration kClockSkew = absl::Seconds(5);
// A kubelet may need so long to let go of volumes after the containers have ended.
constexpr absl::Duration kVolumeDetachTime = absl::Minutes(1);

// The platform's own words, cut to what people read.
std::string QuoteMessage(const std::string& words) {
  if (words.empty()) return "";
  return ": " +
         (words.size() <= kMaxMessageBytes ? words : words.substr(0, kMaxMessageBytes) + "…");
}

// What the pod says, found once. The references are into the pod, which outlives this.
struct Facts {
  const Json& pod;
  const PodFacts& given;
  const Json& status;
  const Json& disruption;  // the condition, whatever it is worth
  const Json& terminated;  // of the primary container
  const Json& running;
  std::string phase;
  std::string reason;
  std::string message;
  bool deleting = false;

  bool terminal() const { return phase == "Failed" || phase == "Succeeded"; }
  // The kubelet could not find the container any more and made a status up.
  bool container_vanished() const {
    return Text(terminated, {"reason"}) == "ContainerStatusUnknown";
  }
  bool overdue() const { return reason == "DeadlineExceeded"; }
  bool end_seen() const { return terminated.is_object() && !container_vanished(); }
  bool started() const { return terminated.is_object() || running.is_object(); }
  // Who deletes a pod writes the condition before, and the delete may never come: then it is stale,
  // even if the program ends and the pod fails. Only the kubelet and the garbage collector of lost
  // pods let a pod fail without deleting it.
  bool disrupted() const {
    if (Text(disruption, {"status"}) != "True") return false;
    const std::string why = Text(disruption, {"reason"});
    const bool deletes = why == "PreemptionByScheduler" || why == "EvictionByEvictionAPI" ||
                         why == "DeletionByTaintManager";
    return deleting || (phase == "Failed" && !deletes);
  }
  v1::Cause node_cause() const { return given.spot ? v1::PREEMPTED_SPOT : v1::PREEMPTED_NODE; }
  std::string node() const {
    const std::string name = Text(pod, {"spec", "nodeName"});
    return name.empty() ? "its node" : "node " + name;
  }
};

Facts Gather(const Json& pod, const PodFacts& given) {
  const Json& status = At(pod, "status");
  const Json& container = At(kube::ContainerStatus(pod, given.primary), "state");
  return {.pod = pod,
          .given = given,
          .status = status,
          .disruption = kube::Condition(pod, "DisruptionTarget"),
          .terminated = At(container, "terminated"),
          .running = At(container, "running"),
          .phase = Text(status, {"phase"}),
          .reason = Text(status, {"reason"}),
          .message = Text(status, {"message"}),
          .deleting = At(pod, {"metadata", "deletionTimestamp"}).is_string()};
}

// A cause with its reason in words.
struct Because {
  v1::Cause cause = v1::CAUSE_NONE;
  std::string message;
};

// ---- the platform -------------------------------------------------------------------------------

// When the pod was asked to end, or disrupted. The API server sets the time of death: a request to
// delete came a grace period earlier. Once all is cleaned up the kubelet deletes again, without
// grace.
std::optional<absl::Time> TouchedAt(const Facts& facts) {
  auto touched = TimeOf(At(facts.pod, {"metadata", "deletionTimestamp"}));
  const int64_t grace = Number(At(facts.pod, {"metadata", "deletionGracePeriodSeconds"}));
  if (touched) *touched -= absl::Seconds(grace);
  if (!facts.disrupted()) return touched && grace == 0 ? *touched - kVolumeDetachTime : touched;
  const auto disrupted = TimeOf(At(facts.disruption, "lastTransitionTime"));
  return touched && disrupted ? std::min(*touched, *disrupted) : disrupted;
}

// Whether the program had ended before that.
bool EndedBefore(const Facts& facts) {
  // The kubelet writes its own condition as it ends the containers, not before.
  const bool by_kubelet = Text(facts.disruption, {"reason"}) == "TerminationByKubelet";
  if (!facts.end_seen() || facts.given.stop_requested || (facts.disrupted() && by_kubelet))
    return false;
  const auto ended = TimeOf(At(facts.terminated, "finishedAt"));
  const auto touched = TouchedAt(facts);
  return ended && touched && *ended + kClockSkew < *touched;
}

// What of its own doing an eviction by the kubelet punishes: more disk than it was allowed.
bool ExceededDisk(const Facts& facts) {
  if (facts.reason != "Evicted") return false;
  for (const char* words : {"exceeds the total limit", "exceeded its local ephemeral storage limit",
                            "exceeds the limit"}) {
    if (absl::StrContains(facts.message, words)) return true;
  }
  return false;
}

bool NodeShutDown(const Facts& facts) {
  return facts.reason == "NodeShutdown" || facts.reason == "Shutdown" ||
         facts.reason == "NodeLost" || absl::StrContains(facts.message, "node shutdown") ||
         absl::StrContains(facts.message, "node is shutting down");
}

Because Disruption(const Facts& facts) {
  const std::string reason = Text(facts.disruption, {"reason"});
  std::string words = Text(facts.disruption, {"message"});
  if (reason == "PreemptionByScheduler") {
    return {v1::PREEMPTED_SCHEDULER, "preempted by the scheduler" + QuoteMessage(words)};
  }
  if (reason == "EvictionByEvictionAPI") {
    return {v1::PREEMPTED_EVICTION, "evicted from " + facts.node() + QuoteMessage(words)};
  }
  if (reason == "DeletionByTaintManager") {
    return {facts.node_cause(),
            facts.node() + " got a taint that ends its pods" + QuoteMessage(words)};
  }
  if (reason == "DeletionByPodGC") {
    return {facts.node_cause(), facts.node() + " is gone" + QuoteMessage(words)};
  }
  if (reason == "TerminationByKubelet") {
    if (!facts.message.empty()) words = facts.message;
    return {facts.node_cause(), facts.node() + " ended it" + QuoteMessage(words)};
  }
  return {v1::INFRASTRUCTURE, "disrupted for the reason " + reason + QuoteMessage(words)};
}

// What the pod or its surroundings say of an end that was not the program's; CAUSE_NONE if nothing.
Because Platform(const Facts& facts) {
  // The taint manager deletes pods that have ended as well, and overwrites their condition: what
  // the kubelet said of the end itself comes first.
  const bool before = EndedBefore(facts);
  if (facts.given.suspended && (facts.deleting || facts.given.vanished) && !before) {
    return {v1::SUSPENDED, "its Job was suspended: its quota was taken back"};
  }
  if (ExceededDisk(facts)) {
    return {v1::APP_ERROR,
            "the program used more disk than its limit" + QuoteMessage(facts.message) +
                "; raise resources.limits[\"ephemeral-storage\"] or write to a volume"};
  }
  if (NodeShutDown(facts)) {
    return {facts.node_cause(), facts.node() + " shut down" + QuoteMessage(facts.message)};
  }
  if (facts.reason == "Evicted" || facts.reason == "Preempting") {
    return {facts.node_cause(), facts.node() + " evicted it" + QuoteMessage(facts.message)};
  }
  if (facts.overdue()) {
    return {v1::APP_ERROR, "it ran longer than activeDeadlineSeconds of its pod allows" +
                               QuoteMessage(facts.message)};
  }
  if (facts.disrupted() && !before) return Disruption(facts);
  return {};
}

// Beside that, for a program that was killed or whose end was not seen.
Because PlatformOrNode(const Facts& facts) {
  Because because = Platform(facts);
  if (because.cause != v1::CAUSE_NONE || facts.given.node != PodFacts::Node::kDead) return because;
  return {facts.node_cause(), facts.node() + " is gone"};
}

// ---- the end of the program ---------------------------------------------------------------------

std::string ExitWords(const PodVerdict& verdict, const std::string& reason) {
  if (verdict.out_of_memory) return "out of memory: raise resources.limits.memory";
  if (verdict.signal == SIGKILL) {
    return "killed by SIGKILL, and not reported as out of memory: no cause was reported";
  }
  if (verdict.signal == SIGTERM) return "ended by SIGTERM without a notice";
  if (verdict.signal != 0) {
    return absl::StrCat("ended by signal ", verdict.signal, " (", strsignal(verdict.signal), ")");
  }
  return reason == "StartError" || reason == "ContainerCannotRun" ? "could not be started" : "";
}

// A runtime sets OOMKilled when any process of the container was killed for it; a program that
// ended well all the same has not run out of memory.
void ReadExit(const Json& terminated, PodVerdict& verdict) {
  const int code = static_cast<int>(Number(At(terminated, "exitCode")));
  const std::string reason = Text(terminated, {"reason"});
  verdict.exit_code = code;
  verdict.signal = static_cast<int>(Number(At(terminated, "signal")));
  if (verdict.signal == 0 && code > kSignalBase && code <= kSignalBase + kLastSignal) {
    verdict.signal = code - kSignalBase;
  }
  verdict.out_of_memory = reason == "OOMKilled" && code != 0 && code != kExitYielded;
  verdict.message = ExitWords(verdict, reason);
  const std::string words = Text(terminated, {"message"});
  if (!words.empty() && code != 0) {
    verdict.message +=
        verdict.message.empty() ? QuoteMessage(words).substr(2) : QuoteMessage(words);
  }
}

void End(const Facts& facts, PodVerdict& verdict) {
  verdict.phase = Phase::kEnded;
  ReadExit(facts.terminated, verdict);
  if (facts.given.stop_requested && !*facts.given.stop_requested) return;
  const bool killed = verdict.signal == SIGKILL || verdict.signal == SIGTERM;
  const bool outside = killed && !verdict.out_of_memory;
  Because because = outside ? PlatformOrNode(facts) : Platform(facts);
  const bool deleted = facts.deleting && !EndedBefore(facts) && !verdict.out_of_memory;
  if (because.cause == v1::CAUSE_NONE && deleted) {
    because = {v1::UNKNOWN_CAUSE, "its pod was deleted while the program ran, and not by Shirabe"};
  }
  if (because.cause == v1::CAUSE_NONE) return;
  verdict.cause = because.cause;
  verdict.message = std::move(because.message);
}

// ---- programs that never started ----------------------------------------------------------------

bool IsSidecarStatus(const Facts& facts, const std::string& container) {
  const Json& spec = Named(At(facts.pod, {"spec", "initContainers"}), container);
  return Text(spec, {"restartPolicy"}) == "Always";
}

// The init container that failed; null if none has.
const Json& FailedInit(const Facts& facts) {
  static const Json none;
  for (const Json& status : Items(At(facts.status, "initContainerStatuses"))) {
    const Json& terminated = At(status, {"state", "terminated"});
    if (Number(At(terminated, "exitCode")) == 0) continue;
    if (Text(terminated, {"reason"}) == "ContainerStatusUnknown") continue;
    if (!IsSidecarStatus(facts, Text(status, {"name"}))) return status;
  }
  return none;
}

// Ours fails for the volume's or our own fault, the user's for the user's.
Because InitFailure(const Json& status) {
  const std::string name = Text(status, {"name"});
  const Json& terminated = At(status, {"state", "terminated"});
  std::string words = Text(terminated, {"message"});
  if (words.empty()) words = Text(terminated, {"reason"});
  const std::string how = absl::StrCat("the init container ", name, " failed with exit code ",
                                       Number(At(terminated, "exitCode")), QuoteMessage(words));
  if (name == kInitContainer && Number(At(terminated, "exitCode")) == kPodInitInVain) {
    return {v1::APP_ERROR, "its code cannot be fetched" + QuoteMessage(words)};
  }
  if (name == kInitContainer || name == kFoldersContainer) {
    return {v1::INFRASTRUCTURE, how + "; its log says more (kubectl logs -c " + name + ")"};
  }
  const bool memory = Text(terminated, {"reason"}) == "OOMKilled";
  return {memory ? v1::OOM : v1::APP_ERROR, how};
}

std::string WhyNeverRan(const Facts& facts) {
  if (!facts.message.empty() || !facts.reason.empty()) {
    const std::string words = facts.message.empty() ? facts.reason : facts.message;
    return "the program never started" + QuoteMessage(words);
  }
  if (facts.given.node == PodFacts::Node::kDead) {
    return "the program never started: " + facts.node() + " is gone";
  }
  return facts.deleting || facts.given.vanished
             ? "the program never started: its pod was deleted before"
             : "the program never started, and its pod has failed without a message";
}

void NeverStarted(const Facts& facts, PodVerdict& verdict) {
  verdict.phase = Phase::kEnded;
  const Json& init = FailedInit(facts);
  const bool suspended = facts.given.suspended;
  Because because = {suspended ? v1::SUSPENDED : v1::NEVER_RAN, WhyNeverRan(facts)};
  const bool taken = facts.disrupted() || NodeShutDown(facts) || facts.deleting || suspended;
  if (!init.is_null() && !taken) because = InitFailure(init);
  if (facts.overdue()) {
    because = {v1::APP_ERROR, "it had not started when activeDeadlineSeconds of its pod were over" +
                                  QuoteMessage(facts.message)};
  }
  verdict.cause = because.cause;
  verdict.message = std::move(because.message);
}

// ---- programs whose end was not seen ------------------------------------------------------------

void Lose(const Facts& facts, PodVerdict& verdict) {
  verdict.phase = Phase::kLost;
  Because because = PlatformOrNode(facts);
  if (because.cause == v1::CAUSE_NONE && facts.container_vanished()) {
    because = {v1::INFRASTRUCTURE, facts.node() + " lost the container" +
                                       QuoteMessage(Text(facts.terminated, {"message"}))};
  } else if (because.cause == v1::CAUSE_NONE && facts.terminal()) {
    because = {v1::INFRASTRUCTURE,
               "its pod has failed, and the end of the program was not observed" +
                   QuoteMessage(facts.message)};
  } else if (because.cause == v1::CAUSE_NONE) {
    because = {v1::UNKNOWN_CAUSE, "its pod was deleted while the program ran, and not by Shirabe"};
  }
  verdict.cause = because.cause;
  verdict.message = std::move(because.message);
}

// Not started, and not ended either, unless it can start no more.
void Wait(const Facts& facts, PodVerdict& verdict) {
  const bool unscheduled = Text(facts.pod, {"spec", "nodeName"}).empty();
  const bool dead = facts.given.node == PodFacts::Node::kDead && !unscheduled;
  const bool hopeless = facts.terminal() || facts.given.vanished || dead;
  if (hopeless || (facts.deleting && unscheduled)) NeverStarted(facts, verdict);
}

}  // namespace

PodVerdict ReadPod(const Json& pod, const PodFacts& given) {
  const Facts facts = Gather(pod, given);
  PodVerdict verdict;
  verdict.node = Text(pod, {"spec", "nodeName"});
  verdict.start =
      TimeOf(At(facts.started() && facts.running.is_object() ? facts.running : facts.terminated,
                "startedAt"));
  verdict.end = TimeOf(At(facts.terminated, "finishedAt"));
  verdict.ending = facts.deleting && !facts.terminal();
  const bool gone = given.vanished || given.node == PodFacts::Node::kDead || facts.terminal();
  if (!facts.started()) {
    Wait(facts, verdict);
  } else if (facts.end_seen()) {
    End(facts, verdict);
  } else if (gone || facts.container_vanished()) {
    Lose(facts, verdict);
  } else {
    verdict.phase = Phase::kRunning;
  }
  if (facts.overdue() && verdict.cause == v1::APP_ERROR)
    verdict.overdue = AttemptStatus::Overdue::kPod;
  return verdict;
}

JobVerdict ReadJob(const Json& job) {
  JobVerdict verdict;
  verdict.suspended =
      IsTrue(At(job, {"spec", "suspend"})) || IsTrue(At(job, {"spec", "runPolicy", "suspend"}));
  for (const char* type : {"Failed", "FailureTarget"}) {
    const Json& failed = kube::Condition(job, type);
    if (Text(failed, {"status"}) != "True") continue;
    const std::string reason = Text(failed, {"reason"});
    verdict.message = "its Job has failed: " + reason + QuoteMessage(Text(failed, {"message"}));
    if (reason == "DeadlineExceeded") {
      verdict.cause = v1::APP_ERROR;
      verdict.overdue = true;
      verdict.message = "it ran longer than activeDeadlineSeconds of its Job allows" +
                        QuoteMessage(Text(failed, {"message"}));
    }
    return verdict;
  }
  verdict.limited = !At(job, {"spec", "activeDeadlineSeconds"}).is_null();
  return verdict;
}

}  // namespace shirabe::trial
