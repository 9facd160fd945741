#include "trial/pod/pod_build.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/shirabe/v1/collector_traits.h"
#include "trial/checkpoint/katib_folder.h"
#include "trial/local/supervisor_records.h"
#include "trial/pod/operator_kinds.h"
#include "trial/pod/pod_templates.h"
#include "trial/pod/pod_volumes.h"
#include "trial/pod/sidecar_injection.h"
#include "trial/trial_template.h"

namespace shirabe::trial {
namespace {

Status InvalidTemplate(const char* field, const std::string& what) {
  return InvalidField(absl::StrCat(kTrialSpecPath, ".", field), what);
}

bool IsJob(const AttemptObject& built) {
  return built.kind == "Job" && absl::StartsWith(built.api_version, "batch/");
}

bool IsPod(const AttemptObject& built) { return built.kind == "Pod" && built.api_version == "v1"; }

// ---- the program's container --------------------------------------------------------------------

struct Primary {
  size_t pod = 0;  // index of the template
  size_t container = 0;
};

std::vector<Primary> FindPrimaries(const std::vector<PodTemplate>& pods, const std::string& name) {
  std::vector<Primary> found;
  for (size_t i = 0; i < pods.size(); ++i) {
    const int index = IndexOfContainer(pods[i], name);
    if (index >= 0) found.push_back({i, static_cast<size_t>(index)});
  }
  return found;
}

Status NoSuchContainer(const std::string& name, const std::vector<PodTemplate>& pods) {
  if (pods.empty()) {
    return InvalidTemplate("spec",
                           "holds no containers; write a Job with spec.template.spec.containers");
  }
  std::vector<std::string> names;
  for (const Json& container : Items(At(pods[0].spec(), "containers"))) {
    names.push_back("\"" + Text(container, {"name"}) + "\"");
  }
  return InvalidField(
      "spec.trialTemplate.primaryContainerName",
      absl::StrCat("\"", name, "\" is not a container of the trial's object, which has: ",
                   absl::StrJoin(names, ", "), "; name one of them"));
}

// Why nothing can be put around the program, in words; "" if it can.
std::string WhyNotInstrumented(const std::vector<Primary>& found,
                               const std::vector<PodTemplate>& pods, const std::string& name) {
  if (found.empty()) {
    return absl::StrCat("no pod template of the object holds a container \"", name, "\"");
  }
  if (found.size() > 1) {
    return absl::StrCat(found.size(), " pod templates of the object hold a container \"", name,
                        "\", and only one pod can be the attempt's");
  }
  const PodTemplate& pod = pods[found[0].pod];
  if (pod.pods > 1) {
    return absl::StrCat(pod.path, " runs as ", pod.pods,
                        " pods, and only one can be the attempt's");
  }
  const Json& container = pod.spec()["containers"][found[0].container];
  if (!Items(At(container, "command")).empty()) return "";
  return absl::StrCat(pod.ContainerPath(found[0].container), " has no command, and what its image ",
                      "starts by itself cannot be put under a supervisor");
}

// Of several pods no checkpoint is one of all: each attempt of them begins at 0.
AttemptRequest WithoutCheckpoints(AttemptRequest request) {
  request.resume.clear();
  request.cluster.volume.Clear();
  request.cluster.artifacts.Clear();
  request.environment.erase(kKatibFolderVariable);
  return request;
}

// What a collector reads within a pod must be read in the one whose metrics count, beside whatever
// others the trial has. nullopt where that one cannot be told from the others, or nothing can be
// put around its program.
std::optional<Primary> ChooseCollected(const AttemptRequest& request,
                                       const std::vector<Primary>& found,
                                       const std::vector<PodTemplate>& pods, AttemptObject& built) {
  const v1::CollectorTraits& traits = v1::TraitsOf(request.cluster.collector);
  if (!v1::ReadsInPod(traits)) return std::nullopt;
  std::vector<size_t> candidates;
  for (const Primary& primary : found) candidates.push_back(primary.pod);
  const auto chosen = TemplateOfPrimary(pods, candidates, built.recipe);
  if (!chosen) return std::nullopt;
  for (const Primary& primary : found) {
    const PodTemplate& pod = pods[primary.pod];
    if (primary.pod != *chosen) continue;
    if (Items(At(pod.spec()["containers"][primary.container], "command")).empty()) break;
    if (pod.pods == 1) return primary;
    // A container of the user's would report for each of them.
    if (!traits.container() && PinFirstPod(built.object, built.recipe)) return primary;
  }
  return std::nullopt;
}

Status CheckUninstrumented(const AttemptRequest& request,
                           const std::string& uninstrumented_reason) {
  if (!v1::ReadsInPod(v1::TraitsOf(request.cluster.collector))) return absl::OkStatus();
  return InvalidField(
      "spec.metricsCollectorSpec.collector.kind",
      absl::StrCat(
          "this collector reads inside the pod, beside the program, and ", uninstrumented_reason,
          ": write the command to run into one container of one pod, or use ", "StdOut or Push"));
}

// Code is brought into one pod, and made the place where its program starts.
Status CheckCode(const AttemptRequest& request, const AttemptObject& built) {
  const std::string& why =
      built.without_checkpoints.empty() ? built.uninstrumented_reason : built.without_checkpoints;
  if (request.cluster.code.package().empty() || why.empty()) return absl::OkStatus();
  return InvalidField("spec.shirabe.code",
                      absl::StrCat("code is brought to one program that we start, and ", why,
                                   ": write the command to run into one container of one pod, or ",
                                   "leave it out and build an image that has the program"));
}

// ---- the object ---------------------------------------------------------------------------------

Status ReadKind(AttemptObject& built) {
  built.api_version = Text(built.object, {"apiVersion"});
  built.kind = Text(built.object, {"kind"});
  if (built.api_version.empty())
    return InvalidTemplate("apiVersion", "is required, such as batch/v1");
  if (built.kind.empty()) return InvalidTemplate("kind", "is required, such as Job");
  if (!At(built.object, "spec").is_object()) {
    return InvalidTemplate("spec", "is required: what the object runs");
  }
  return absl::OkStatus();
}

Json OwnerOf(const AttemptRequest& request) {
  return {{"apiVersion", "kubeflow.org/v1beta1"},
          {"kind", "Experiment"},
          {"name", request.key.trial.experiment.name},
          {"uid", request.cluster.owner},
          {"controller", true},
          {"blockOwnerDeletion", false}};
}

void Identify(const AttemptRequest& request, AttemptObject& built) {
  built.object.erase("status");
  Json& metadata = ObjectIn(built.object, "metadata");
  metadata.erase("generateName");
  metadata["name"] = ObjectName(request.key, built.object);
  metadata["namespace"] = request.key.trial.experiment.ns;
  Label(request.key, metadata);
  Annotate(request, built.recipe, metadata);
  if (!request.cluster.owner.empty()) {
    metadata["ownerReferences"] = Json::array({OwnerOf(request)});
  }
}

// It never tries again by itself, and is there until we have read it.
void DisableJobRetries(AttemptObject& built) {
  Json& spec = built.object["spec"];
  spec["backoffLimit"] = 0;
  spec["podReplacementPolicy"] = "Failed";
  for (const char* retries : {"podFailurePolicy", "backoffLimitPerIndex", "maxFailedIndexes"}) {
    if (spec.erase(retries) == 0) continue;
    built.warnings.push_back(absl::StrCat(kTrialSpecPath, ".spec.", retries,
                                          " has no effect: every retry is an attempt of its own; "
                                          "see spec.shirabe.attempts"));
  }
}

// A copy that is gone before it was read would be lost.
void KeepUntilRead(AttemptObject& built) {
  Json& spec = built.object["spec"];
  spec.erase("ttlSecondsAfterFinished");
  const auto policy = spec.find("runPolicy");
  if (policy != spec.end() && policy->is_object()) policy->erase("ttlSecondsAfterFinished");
  if (!IsOperatorKind(built.object)) return;
  for (const char* theirs : {"ttlStrategy", "podGC"}) spec.erase(theirs);
}

// ---- its pods -----------------------------------------------------------------------------------

// The one whose sidecar copies what the program has saved; null = none does.
const PodTemplate* CopyingPod(const AttemptRequest& request, const std::vector<PodTemplate>& pods,
                              const AttemptObject& built) {
  const v1::ArtifactPolicy& policy = request.cluster.artifacts;
  const bool wanted = !policy.store().empty() && (policy.checkpoints() || policy.outputs());
  if (!wanted || !built.recipe.instrumented || !built.without_checkpoints.empty()) return nullptr;
  const std::vector<Primary> found = FindPrimaries(pods, request.primary_container);
  return found.empty() ? nullptr : &pods[found[0].pod];
}

// What each pod of the attempt gets, ours inside or not. The kubelet gives our sidecar `copy_time`
// as well, once the program has ended by itself.
Status DecoratePod(const AttemptRequest& request, const PodScheduling& place,
                   const PodTemplate& pod, absl::Duration copy_time) {
  Json& metadata = ObjectIn(*pod.root, "metadata");
  Label(request.key, metadata);
  ObjectIn(metadata, "annotations")[kPodAttemptIdAnnotation] =
      AttemptId(request.key, request.token);
  Json& finalizers = ListIn(metadata, "finalizers");
  if (std::find(finalizers.begin(), finalizers.end(), kLogFinalizer) == finalizers.end()) {
    finalizers.push_back(kLogFinalizer);
  }
  Json& spec = pod.spec();
  spec["terminationGracePeriodSeconds"] =
      static_cast<int64_t>(std::ceil(absl::ToDoubleSeconds(WholeGrace(request, spec) + copy_time)));
  return Prefix(pod.path, ApplyScheduling(place, spec));
}

// Whether the cluster's autoscaler may evict it to remove a machine: yes where what it has done is
// saved outside of the pod, so that only seconds are lost; else it would begin again from 0. What
// the user says of it stands.
void SayIfEvictable(const AttemptRequest& request, const AttemptObject& built, Json& pod) {
  const v1::CheckpointVolume& volume = request.cluster.volume;
  const bool outside = volume.ByteSizeLong() > 0 || request.cluster.artifacts.checkpoints();
  const bool keeps = built.recipe.instrumented && built.without_checkpoints.empty() && outside;
  ObjectIn(ObjectIn(pod, "metadata"), "annotations")
      .emplace(kSafeToEvictAnnotation, keeps ? "true" : "false");
}

// A program that is started twice in one pod would find the traces of the first time.
void RunOnce(const PodTemplate& pod, AttemptObject& built) {
  Json& policy = pod.spec()["restartPolicy"];
  if (policy.is_string() && policy != "Never") {
    built.warnings.push_back(absl::StrCat(
        pod.path, ".spec.restartPolicy has no effect: a program that fails is started in an ",
        "attempt of its own; see spec.shirabe.attempts"));
  }
  policy = "Never";
  if (pod.owner != nullptr && pod.owner->contains("restartPolicy")) {
    (*pod.owner)["restartPolicy"] = "Never";
  }
}

void WarnOfUser(const PodTemplate& pod, size_t container, AttemptObject& built) {
  const Json& theirs = At(pod.spec()["containers"][container], "securityContext");
  const Json& pods = At(pod.spec(), "securityContext");
  bool user = false, other = false;
  for (const Json* context : {&theirs, &pods}) {
    user |= !At(*context, "runAsUser").is_null();
    other |= IsTrue(At(*context, "runAsNonRoot"));
  }
  if (user || !other) return;
  built.warnings.push_back(absl::StrCat(
      pod.path, ".spec.securityContext sets runAsNonRoot without runAsUser: the sidecar runs as ",
      "another user than the program and may not be able to commit its checkpoints; set ",
      "runAsUser"));
}

AttemptRecipe RecipeFor(const AttemptRequest& request) {
  const v1::TrialTemplate& from = request.cluster.trial_template;
  return {.primary_container = request.primary_container,
          .primary_labels = {from.primary_pod_labels().begin(), from.primary_pod_labels().end()},
          .success_condition = from.success_condition(),
          .failure_condition = from.failure_condition(),
          .retain = from.retain(),
          .collector = CustomCollectorName(request)};
}

// Of several pods of the only template the first is the primary one, unless labels say otherwise.
void ChoosePod(AttemptObject& built, int64_t pods, bool only) {
  if (pods < 2 || (IsJob(built) ? !built.recipe.primary_labels.empty() : !only)) return;
  PinFirstPod(built.object, built.recipe);
}

// A TrainJob of several nodes trains in an indexed Job, too.
void ChooseNode(AttemptObject& built) {
  if (IsTrainJob(built.object) && TrainerNodes(built.object) > 1) {
    built.recipe.primary_labels.emplace(kIndexLabel, "0");
  }
}

// What the operator that makes the pods is to write on them.
Status TellOperator(const AttemptRequest& request, const PodScheduling& place,
                    AttemptObject& built) {
  if (!IsOperatorKind(built.object)) return absl::OkStatus();
  Json pod = {{"metadata", Json::object()}, {"spec", Json::object()}};
  RETURN_IF_ERROR(DecoratePod(request, place, {&pod, nullptr, kTrialSpecPath},
                              /*copy_time=*/absl::ZeroDuration()));
  SayIfEvictable(request, built, pod);
  if (IsTrainJob(built.object)) AddPlainEnvironment(request, TrainerOf(built.object));
  return PassOn(pod, place, built.recipe, built.object);
}

// Around the program where that is possible, else beside it.
Status PlaceProgram(const AttemptRequest& request, const PodOptions& options,
                    const std::vector<PodTemplate>& pods, AttemptObject& built) {
  const std::vector<Primary> found = FindPrimaries(pods, request.primary_container);
  if (found.empty() && (IsJob(built) || IsPod(built))) {
    return NoSuchContainer(request.primary_container, pods);
  }
  built.uninstrumented_reason = WhyNotInstrumented(found, pods, request.primary_container);
  built.recipe.instrumented = built.uninstrumented_reason.empty();
  if (built.uninstrumented_reason.empty()) {
    const PodTemplate& pod = pods[found[0].pod];
    RunOnce(pod, built);
    WarnOfUser(pod, found[0].container, built);
    built.claim = MakeClaim(request);
    return Inject({request, options, pod, found[0].container});
  }
  if (const auto collected = ChooseCollected(request, found, pods, built)) {
    built.without_checkpoints = std::move(built.uninstrumented_reason);
    built.uninstrumented_reason.clear();
    built.recipe.instrumented = true;
    const PodTemplate& pod = pods[collected->pod];
    RunOnce(pod, built);
    WarnOfUser(pod, collected->container, built);
    for (const Primary& other : found) {
      if (other.pod == collected->pod) continue;
      AddPlainEnvironment(request, pods[other.pod].spec()["containers"][other.container]);
    }
    return Inject({WithoutCheckpoints(request), options, pod, collected->container, false});
  }
  for (const Primary& primary : found) {
    AddPlainEnvironment(request, pods[primary.pod].spec()["containers"][primary.container]);
    ChoosePod(built, pods[primary.pod].pods, found.size() == 1);
  }
  return CheckUninstrumented(request, built.uninstrumented_reason);
}

void OwnClaim(const AttemptRequest& request, AttemptObject& built) {
  if (!built.claim || request.cluster.owner.empty()) return;
  (*built.claim)["metadata"]["ownerReferences"] = Json::array({OwnerOf(request)});
}

}  // namespace

StatusOr<AttemptObject> BuildAttemptObject(const AttemptRequest& request, const PodOptions& options,
                                           const PodScheduling& place) {
  AttemptObject built;
  built.object = FromStruct(request.trial_spec);
  RETURN_IF_ERROR(ReadKind(built));
  built.recipe = RecipeFor(request);
  KeepUntilRead(built);
  ChooseNode(built);
  const std::vector<PodTemplate> pods = FindTemplates(built.object);
  RETURN_IF_ERROR(PlaceProgram(request, options, pods, built));
  RETURN_IF_ERROR(CheckCode(request, built));
  const PodTemplate* copying = CopyingPod(request, pods, built);
  for (const PodTemplate& pod : pods) {
    const auto copy_time = &pod == copying ? kCopyTime : absl::ZeroDuration();
    RETURN_IF_ERROR(DecoratePod(request, place, pod, copy_time));
    SayIfEvictable(request, built, *pod.root);
  }
  for (const PodTemplate& pod : pods) {
    if (!IsJob(built) && !IsPod(built)) continue;
    RunOnce(pod, built);
    RETURN_IF_ERROR(CheckPrimaryLabels(At(*pod.root, {"metadata", "labels"}), built.recipe));
  }
  if (IsJob(built)) DisableJobRetries(built);
  Identify(request, built);
  RETURN_IF_ERROR(TellOperator(request, place, built));
  OwnClaim(request, built);
  return built;
}

std::vector<SamplePod> SamplePods(const Json& object) {
  Json copy = object;
  std::vector<SamplePod> samples;
  if (IsTrainJob(copy)) return {{TrainerPod(copy), TrainerNodes(copy)}};
  const std::vector<PodTemplate> pods = FindTemplates(copy);
  for (const PodTemplate& pod : pods) {
    Json spec = pod.spec();
    const Json& containers = Items(At(spec, "containers"));
    const bool has_command = std::any_of(containers.begin(), containers.end(), [](const Json& one) {
      return !Items(At(one, "command")).empty();
    });
    // Where exactly one pod runs a command, that is the program; see WhyNotInstrumented.
    if (pods.size() == 1 && pod.pods == 1 && has_command) {
      const Json resources = SidecarResources(spec);
      ListIn(spec, "initContainers")
          .push_back({{"restartPolicy", "Always"}, {"resources", resources}});
    }
    samples.push_back({{{"spec", std::move(spec)}}, pod.pods});
  }
  return samples;
}

}  // namespace shirabe::trial
