// Where things lie in a pod and how its program is started: what the object that we create
// (trial/pod/pod_build), the containers that run in it (sidecar/) and the supervisor agree on.
//   /shirabe/bin/supervisor      put there by the init container
//   /shirabe/run/                log, metrics.jsonl, hypertune.jsonl, scrapes.jsonl, params.json,
//       control.json, and the supervisor's records pid and exit; env: NAME=value lines that it adds
//       to the program's environment; begin: a PodState with what was resumed; stopping: the pod is
//       about to end; alive: held locked by the supervisor while it lives
//   /shirabe/code/SHA256/        the code package, read-only for the program
//   /shirabe/home/               trial/file_layout.h: checkpoints and outputs. A volume, or part of
//       the pod's own space. Nothing but checkpoints/ and output/ is used there
// Pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/names.h"
#include "base/text/json_fields.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "trial/attempt_status.h"

namespace shirabe::trial {

constexpr char kPodRoot[] = "/shirabe";  // where the volume of ours is mounted
constexpr char kPodRun[] = "/shirabe/run";
constexpr char kPodHome[] = "/shirabe/home";                 // where a checkpoint volume is mounted
constexpr char kPodCode[] = "/shirabe/code";                 // a folder for the code package
constexpr char kPodCollected[] = "/shirabe/collected";       // the collector's folder, for our init
constexpr char kPodTokenDir[] = "/var/run/secrets/shirabe";  // of the sidecar alone
constexpr char kPodTokenFile[] = "/var/run/secrets/shirabe/token";
// That its token is for. Another one than people's: what is stolen from a pod tells of its attempt,
// and opens nothing that its ServiceAccount may do besides.
constexpr char kPodAudience[] = "shirabe-pods";
constexpr char kPodSupervisor[] = "/shirabe/bin/supervisor";
constexpr char kPodVariable[] = "SHIRABE_POD";  // v1.PodConfig as JSON
// Of the sidecar's container, where none of the program's checkpoints is committed.
constexpr char kPodCheckpointsVariable[] = "SHIRABE_POD_CHECKPOINTS";
constexpr char kPodNoCheckpoints[] = "none";
// What `shirabe pod init` ends with where another try would come to the same: EX_DATAERR.
constexpr int kPodInitInVain = 65;
// That copies to a store may take, after a program that has ended by itself.
constexpr absl::Duration kCopyTime = absl::Minutes(10);

// As the program sees them, for ContractEnvironment. `dir` is that of the run; `root` is empty.
AttemptPaths PodPaths(const AttemptKey& key);
AttemptPaths PodPaths(const AttemptKey& key, const std::string& pod_root);

// The folder of a code package ("sha256:…"), as the program sees it; "" of none.
std::string PodCodeDir(const std::string& package);

// What the container's command begins with; the program's own command and arguments follow. `id` is
// AttemptId (trial/local/supervisor_records.h), `grace` the whole one.
std::vector<std::string> PodCommand(const std::string& id, absl::Duration grace);

// How much of the grace is the program's, to save its work; the rest is for the last files to be
// sent and for the runtime: 10 s of 15, and all but 5 s of more. SHIRABE_GRACE_SECONDS in a pod.
absl::Duration ProgramGrace(absl::Duration grace);
// And how much of it may have passed when the sidecar gives up and prints its final sync.
absl::Duration FlushGrace(absl::Duration grace);

// What we write on the objects of an attempt, so that they are found and known again after a
// restart of the controller, by people and by Katib's clients. On the object itself and on each of
// its pod templates. Pure functions.

// Labels. Everything with the label kAttemptLabel is ours: it is the selector of our caches.
constexpr char kExperimentLabel[] = "katib.kubeflow.org/experiment";
constexpr char kTrialLabel[] = "katib.kubeflow.org/trial";  // name of the trial
constexpr char kAttemptLabel[] = "shirabe.dev/attempt";     // number of the attempt
constexpr char kManagedByLabel[] = "app.kubernetes.io/managed-by";
// AttemptId, of the object alone: several are selected by it, to be deleted by one request.
constexpr char kAttemptIdLabel[] = "shirabe.dev/attempt-id";
constexpr char kManager[] = "shirabe";

// Annotations of the object (not of its pods).
constexpr char kAttemptIdAnnotation[] = "shirabe.dev/attempt-id";  // AttemptId as well
constexpr char kRecipeAnnotation[] = "shirabe.dev/recipe";         // AttemptRecipe, as JSON

// Keeps a pod until its log and cause are stored; the executor takes it off.
constexpr char kLogFinalizer[] = "shirabe.dev/log";

// Annotation of its pods: AttemptId as well, so that they are known whatever stands between them
// and the object.
constexpr char kPodAttemptIdAnnotation[] = "shirabe.dev/attempt";

// Annotation of its pods that cluster-autoscaler reads.
constexpr char kSafeToEvictAnnotation[] = "cluster-autoscaler.kubernetes.io/safe-to-evict";

// Our containers.
constexpr char kFoldersContainer[] = "shirabe-folders";
constexpr char kInitContainer[] = "shirabe-init";
constexpr char kSidecarContainer[] = "shirabe-sidecar";

// What a restarted controller needs to know about the object.
struct AttemptRecipe {
  std::string primary_container;
  std::map<std::string, std::string> primary_labels;  // of the primary pod; none = there is one pod
  std::string success_condition;  // GJSON (gjson.h); "" = a Job's or a Pod's own
  std::string failure_condition;
  bool retain = false;
  bool instrumented = false;  // our containers are in the primary pod
  std::string collector;      // container of the user's that reports once the program has ended
};

// With the three labels, the digest of the token and the recipe. `object` must be an object.
void Label(const AttemptKey& key, Json& metadata);
void Annotate(const AttemptRequest& request, const AttemptRecipe& recipe, Json& metadata);

// Of an object or a pod that carries our labels; nullopt for any other.
std::optional<AttemptKey> KeyOf(const Json& object);
std::string AttemptIdOf(const Json& object);  // "" = none
AttemptRecipe RecipeOf(const Json& object);   // defaults for what it does not say

// Whether this is the pod whose program counts: it has the container and the labels.
bool IsPrimary(const Json& pod, const AttemptRecipe& recipe);

}  // namespace shirabe::trial
