#include "trial/kubernetes/wait_reasons.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kube/json_access.h"

namespace shirabe::trial {
namespace {

// An image registry or a volume server may be away for a while; a name that does not exist stays
// wrong. Then the attempt is closed and tried again, so that a corrected cluster is noticed.
constexpr absl::Duration kImagePullTimeout = absl::Minutes(10);
constexpr absl::Duration kConfigTimeout = absl::Minutes(5);
constexpr absl::Duration kVolumeTimeout = absl::Minutes(15);
constexpr size_t kMaxWords = 500;
constexpr size_t kMostNames = 5;  // of pods, in a sentence

std::string Cut(const std::string& words) {
  return words.size() <= kMaxWords ? words : words.substr(0, kMaxWords) + "…";
}

std::string Sentence(const std::string& words) {
  return words.empty() || absl::EndsWith(words, ".") ? words : words + ".";
}

std::string Join(const std::string& what, const std::string& next) {
  return next.empty() ? Cut(what) : absl::StrCat(Sentence(Cut(what)), " ", next);
}

PodWaiting Patient(const std::string& reason, const std::string& what, const std::string& next) {
  return {.reason = reason, .text = Join(what, next)};
}

// ---- events -------------------------------------------------------------------------------------

std::string MessageOfEvent(const Json& event) {
  const std::string message = Text(event, {"message"});
  return message.empty() ? Text(event, {"note"}) : message;
}

// What the newest event for one of these reasons says; "" if there is none.
std::string LastEvent(const WaitingFacts& facts, std::initializer_list<const char*> reasons) {
  std::string words;
  absl::Time newest = absl::InfinitePast();
  for (const Json& event : facts.events) {
    const std::string reason = Text(event, {"reason"});
    const bool asked = std::any_of(reasons.begin(), reasons.end(),
                                   [&](const char* wanted) { return reason == wanted; });
    if (!asked || TimeOfEvent(event) < newest) continue;
    newest = TimeOfEvent(event);
    words = MessageOfEvent(event);
  }
  return words;
}

// ---- scheduling ---------------------------------------------------------------------------------

struct Hint {
  const char* words;  // in the scheduler's sentence
  const char* next;
};

// The next step, by what the scheduler complains of; the first that applies of those that a user
// must do something about.
std::string SchedulingHint(const std::string& sentence) {
  static const std::vector<Hint> kHints = {
      {"unbound immediate PersistentVolumeClaims",
       "Look at the claim (kubectl describe pvc): it needs a StorageClass that can make the "
       "volume."},
      {"ephemeral volume controller",
       "Where it stays so, a quota of claims is used up (kubectl describe pod, kubectl get "
       "resourcequota)."},
      {"persistentvolumeclaim", "Create the claim, or correct its name in the experiment."},
      {"node(s) didn't match Pod's node affinity/selector",
       "Look for nodes with these labels (kubectl get nodes --show-labels), or change the pools or "
       "spec.shirabe.capacity."},
      {"untolerated taint", "Give the pool tolerations for it, or the trial's pod template."},
      {"volume node affinity conflict",
       "The volume lies in another zone than the nodes that are free."},
      {"Insufficient nvidia.com/",
       "All GPUs are in use, or none is offered under this name (kubectl describe nodes); lower "
       "parallelTrialCount, or wait."},
      {"Too many pods", "Nodes are full; wait, or add nodes."},
      {"Insufficient ",
       "Nodes are full; wait, add nodes, lower parallelTrialCount or what a trial requests."},
  };
  for (const Hint& hint : kHints) {
    if (absl::StrContains(sentence, hint.words)) return hint.next;
  }
  return "";
}

std::optional<PodWaiting> Scheduling(const WaitingFacts& facts) {
  const Json& scheduled = kube::Condition(*facts.pod, "PodScheduled");
  if (Text(scheduled, {"status"}) != "False") return std::nullopt;
  const std::string reason = Text(scheduled, {"reason"});
  const std::string words = Text(scheduled, {"message"});
  if (reason == "SchedulingGated") {
    std::vector<std::string> gates;
    for (const Json& gate : Items(At(*facts.pod, {"spec", "schedulingGates"}))) {
      gates.push_back(Text(gate, {"name"}));
    }
    return Patient(reason, absl::StrCat("its pod is held back by ", absl::StrJoin(gates, ", ")),
                   "Whoever has put that there (a queue such as Kueue) admits it.");
  }
  if (words.empty()) return std::nullopt;
  return Patient(reason.empty() ? "Unschedulable" : reason, "no node can take it: " + words,
                 SchedulingHint(words));
}

// ---- containers ---------------------------------------------------------------------------------

// What a reason of a waiting container means.
struct State {
  const char* reason;
  const char* what;
  const char* next;
  absl::Duration patience;
};

const State* StateOf(const std::string& reason) {
  static const std::vector<State> kStates = {
      {"InvalidImageName", "its image has an impossible name",
       "Correct the image in the trial's pod template.", kConfigTimeout},
      {"ErrImageNeverPull", "its image is not on the node, and imagePullPolicy is Never",
       "Load it there, or set another policy.", kImagePullTimeout},
      {"ErrImagePull", "its image cannot be pulled",
       "Check its name and tag, and imagePullSecrets for a private registry.", kImagePullTimeout},
      {"ImagePullBackOff", "its image cannot be pulled",
       "Check its name and tag, and imagePullSecrets for a private registry.", kImagePullTimeout},
      {"ImageInspectError", "its image cannot be read", "Look at the node's image store.",
       kImagePullTimeout},
      {"RegistryUnavailable", "the image registry does not answer", "", kImagePullTimeout},
      {"CreateContainerConfigError", "what it refers to is missing",
       "Create the ConfigMap, Secret or key, or correct its name.", kConfigTimeout},
      {"CreateContainerError", "its container cannot be made", "", kConfigTimeout},
      {"RunContainerError", "its container cannot be started", "", kConfigTimeout},
      {"PreStartHookError", "its hook before the start fails", "", kConfigTimeout},
      {"PostStartHookError", "its hook after the start fails", "", kConfigTimeout},
      {"CrashLoopBackOff", "it ends again and again", "Look at its log.", kConfigTimeout},
  };
  const auto found = std::find_if(kStates.begin(), kStates.end(),
                                  [&](const State& state) { return reason == state.reason; });
  return found == kStates.end() ? nullptr : &*found;
}

// The kubelet's second message, "Back-off pulling image", says less than the event before it. A
// pull secret that is missing is told of in an event alone.
std::string PullWords(const WaitingFacts& facts, const std::string& reason,
                      const std::string& words) {
  if (reason != "ImagePullBackOff" && reason != "ErrImagePull") return words;
  const std::string secrets = LastEvent(facts, {"FailedToRetrieveImagePullSecret"});
  if (!secrets.empty())
    return words.empty() ? secrets : absl::StrCat(Sentence(words), " ", secrets);
  if (reason != "ImagePullBackOff") return words;
  for (const Json& event : facts.events) {
    const std::string message = MessageOfEvent(event);
    if (Text(event, {"reason"}) == "Failed" && absl::StartsWith(message, "Failed to pull image")) {
      return message;
    }
  }
  return words;
}

std::optional<PodWaiting> ContainerNamed(const WaitingFacts& facts, const Json& status) {
  const Json& waiting = At(status, {"state", "waiting"});
  const std::string reason = Text(waiting, {"reason"});
  const State* state = StateOf(reason);
  if (state == nullptr) return std::nullopt;
  const std::string words = PullWords(facts, reason, Text(waiting, {"message"}));
  const std::string name = Text(status, {"name"});
  const std::string what =
      absl::StrCat("container ", name, ": ", state->what, words.empty() ? "" : ": ", words);
  // The kubelet goes to and fro between the two; the wait must not start over.
  return PodWaiting{.reason = reason == "ErrImagePull" ? "ImagePullBackOff" : reason,
                    .text = Join(what, state->next),
                    .never_starts = true,
                    .give_up = state->patience};
}

// The first container that something is wrong with, in the order in which they start.
std::optional<PodWaiting> Containers(const WaitingFacts& facts) {
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const Json& status : Items(At(*facts.pod, {"status", list}))) {
      if (auto waiting = ContainerNamed(facts, status)) return waiting;
    }
  }
  return std::nullopt;
}

// ---- volumes ------------------------------------------------------------------------------------

// Before any container there is only the word of events. One that is older than the sandbox is of
// the past.
std::optional<PodWaiting> Volumes(const WaitingFacts& facts) {
  const Json& ready = kube::Condition(*facts.pod, "PodReadyToStartContainers");
  if (Text(ready, {"status"}) == "True") return std::nullopt;
  const std::string mount = LastEvent(facts, {"FailedMount"});
  const std::string attach = LastEvent(facts, {"FailedAttachVolume"});
  if (!attach.empty()) {
    return PodWaiting{.reason = "FailedAttachVolume",
                      .text = Join("a volume cannot be attached to its node: " + attach,
                                   "A ReadWriteOnce volume that another node holds is let go once "
                                   "that node is known to be dead."),
                      .give_up = kVolumeTimeout};
  }
  if (!mount.empty()) {
    const bool missing = absl::StrContains(mount, "not found");
    return PodWaiting{.reason = "FailedMount",
                      .text = Join("a volume cannot be mounted: " + mount,
                                   missing ? "Create what is not found, or correct its name." : ""),
                      .never_starts = missing,
                      .give_up = missing ? kConfigTimeout : kVolumeTimeout};
  }
  const std::string sandbox = LastEvent(facts, {"FailedCreatePodSandBox"});
  if (sandbox.empty()) return std::nullopt;
  return PodWaiting{.reason = "FailedCreatePodSandBox",
                    .text = Join("its node cannot set the pod up: " + sandbox, ""),
                    .give_up = kVolumeTimeout};
}

std::string Since(const std::string& time) { return time.empty() ? "" : " since " + time; }

// The container that starts next: the first, in the order in which they start, that waits.
const Json* NextContainer(const Json& pod) {
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const Json& status : Items(At(pod, {"status", list}))) {
      if (At(status, {"state", "waiting"}).is_object()) return &status;
    }
  }
  return nullptr;
}

// An init container that takes its time: ours copies a checkpoint, the user's does what it does.
std::optional<PodWaiting> Initialising(const WaitingFacts& facts) {
  for (const Json& status : Items(At(*facts.pod, {"status", "initContainerStatuses"}))) {
    if (!At(status, {"state", "running"}).is_object() || IsTrue(At(status, "started"))) continue;
    const std::string name = Text(status, {"name"});
    const std::string since = Since(Text(status, {"state", "running", "startedAt"}));
    const bool ours = name == kInitContainer || name == kFoldersContainer;
    return Patient(ours ? "PreparingCheckpoint" : "Initializing",
                   ours ? "the checkpoint to go on from is being verified and copied" + since
                        : absl::StrCat("its init container ", name, " runs", since),
                   "");
  }
  return std::nullopt;
}

// ---- the object ---------------------------------------------------------------------------------

std::optional<PodWaiting> Object(const WaitingFacts& facts) {
  if (facts.object == nullptr) return std::nullopt;
  const bool suspended = IsTrue(At(*facts.object, {"spec", "suspend"})) ||
                         IsTrue(At(*facts.object, {"spec", "runPolicy", "suspend"}));
  if (suspended) {
    return Patient("Suspended",
                   "it is suspended: a queue has not admitted it yet, or it was "
                   "suspended by hand",
                   "With Kueue look at its Workload (kubectl get workloads).");
  }
  // A Job's controller has the one word for it, Kubeflow's training operator the other.
  const std::string words = LastEvent(facts, {"FailedCreate", "FailedCreatePod"});
  if (words.empty()) return std::nullopt;
  return WhyRefused(words);
}

bool ProgramStarted(const WaitingFacts& facts) {
  const Json& state = At(kube::ContainerStatus(*facts.pod, facts.primary), "state");
  return At(state, "running").is_object() || At(state, "terminated").is_object();
}

}  // namespace

// Old and new API have different names for it.
absl::Time TimeOfEvent(const Json& event) {
  for (const Json* time : {&At(event, {"series", "lastObservedTime"}), &At(event, "eventTime"),
                           &At(event, "lastTimestamp"), &At(event, "firstTimestamp")}) {
    if (const auto at = TimeOf(*time)) return *at;
  }
  return absl::InfinitePast();
}

PodWaiting WhyRefused(const std::string& words) {
  if (absl::StrContains(words, "exceeded quota") || absl::StrContains(words, "failed quota")) {
    const bool unsaid = absl::StrContains(words, "must specify");
    return {.reason = "QuotaExceeded",
            .text = Join("the namespace's quota refuses it: " + words,
                         unsaid ? "Give the trial's container requests and limits of these."
                                : "Wait, lower parallelTrialCount, or ask for more quota: each "
                                  "pod needs room for our sidecar, too, of limits.cpu up to 1."),
            .never_starts = unsaid,
            .give_up = unsaid ? kConfigTimeout : absl::InfiniteDuration()};
  }
  if (absl::StrContains(words, " usage per ") || absl::StrContains(words, " ratio per ")) {
    return {.reason = "LimitRange",
            .text = Join("a LimitRange of the namespace refuses it: " + words,
                         "Change requests and limits of the trial's container, or the LimitRange: "
                         "it holds for our sidecar too (kubectl describe limitrange)."),
            .never_starts = true,
            .give_up = kConfigTimeout};
  }
  if (absl::StrContains(words, "admission webhook") ||
      absl::StrContains(words, "ValidatingAdmissionPolicy") ||
      absl::StrContains(words, "failed calling webhook")) {
    const bool away = absl::StrContains(words, "failed calling webhook");
    return {.reason = away ? "WebhookUnavailable" : "AdmissionDenied",
            .text = Join("an admission rule of the cluster refuses it: " + words,
                         away ? "The webhook itself does not answer."
                              : "Change the trial's pod template to what the rule asks for."),
            .never_starts = !away,
            .give_up = away ? absl::InfiniteDuration() : kConfigTimeout};
  }
  if (absl::StrContains(words, "violates PodSecurity")) {
    return {.reason = "PodSecurity",
            .text = Join("the namespace's pod security level refuses it: " + words,
                         "Set securityContext of the trial's pod (runAsNonRoot, runAsUser, "
                         "seccompProfile), or use another namespace."),
            .never_starts = true,
            .give_up = kConfigTimeout};
  }
  if (absl::StrContains(words, "may not be set for init containers")) {
    return {.reason = "NoNativeSidecars",
            .text = Join("its pod is not valid: " + words,
                         "Whatever makes the pod has dropped restartPolicy of our sidecar: it, or "
                         "the definition of its kind, is older than Kubernetes 1.28. Bring it up "
                         "to date (Kubeflow's training operator: 1.8), or take the image's own "
                         "entrypoint instead of command, and nothing is put into the pod."),
            .never_starts = true,
            .give_up = kConfigTimeout};
  }
  return {.reason = "FailedCreate",
          .text = Join("the cluster refuses to make its pod: " + words, ""),
          .give_up = kVolumeTimeout};
}

std::optional<PodWaiting> WhyPreparing(const WaitingFacts& facts) {
  if (facts.pod == nullptr || ProgramStarted(facts)) return std::nullopt;
  const std::string node = Text(*facts.pod, {"spec", "nodeName"});
  if (node.empty()) return std::nullopt;
  const Json& ready = kube::Condition(*facts.pod, "PodReadyToStartContainers");
  const std::string since = Since(Text(ready, {"lastTransitionTime"}));
  if (Text(ready, {"status"}) == "False") {
    return Patient(
        "PreparingVolumes",
        absl::StrCat("its volumes are being attached and mounted, and its network made, on ", node,
                     since),
        "");
  }
  const Json* next = NextContainer(*facts.pod);
  if (next == nullptr) return std::nullopt;
  return Patient("Pulling",
                 absl::StrCat("the image ", Text(*next, {"image"}), " of its container ",
                              Text(*next, {"name"}), " is being pulled on ", node, since),
                 "");
}

std::optional<PodWaiting> WhyNoPrimary(const std::vector<Json>& pods, const AttemptRecipe& recipe) {
  if (pods.empty()) return std::nullopt;
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(pods.size(), kMostNames); ++i) {
    names.push_back(kube::NameOf(pods[i]));
  }
  if (pods.size() > kMostNames) names.push_back("…");
  std::string labels = absl::StrJoin(recipe.primary_labels, ",", absl::PairFormatter("="));
  if (!labels.empty()) labels = absl::StrCat(" and the labels ", labels, " (primaryPodLabels)");
  return Patient("NoPrimaryPod",
                 absl::StrCat("none of its pods (", absl::StrJoin(names, ", "),
                              ") is the one whose program counts: that has a container ",
                              recipe.primary_container, " (primaryContainerName)", labels),
                 "See what they have with kubectl get pods --show-labels.");
}

std::optional<PodWaiting> WhyWaiting(const WaitingFacts& facts) {
  if (facts.pod == nullptr) return Object(facts);
  if (ProgramStarted(facts)) return std::nullopt;
  const std::string phase = Text(*facts.pod, {"status", "phase"});
  if (phase == "Failed" || phase == "Succeeded") return std::nullopt;
  if (At(*facts.pod, {"metadata", "deletionTimestamp"}).is_string()) {
    return Patient("Terminating", "its pod is being deleted before it has started", "");
  }
  for (const auto look : {Scheduling, Containers, Volumes, Initialising}) {
    if (auto waiting = look(facts)) return waiting;
  }
  return std::nullopt;
}

}  // namespace shirabe::trial
