#include "trial/kubernetes/checkpoint_volume.h"

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/json_text.h"
#include "kube/api_errors.h"
#include "trial/kubernetes/cluster_actions.h"
#include "trial/pod/pod_names.h"
#include "trial/pod/pod_templates.h"
#include "trial/pod/pod_volumes.h"
#include "trial/pod/sidecar_injection.h"

namespace shirabe::trial {
namespace {

constexpr char kCleanerLabel[] = "shirabe.dev/cleaner";
constexpr char kContainer[] = "shirabe-clean";
constexpr int kTries = 4;          // after the first, each later than the one before
constexpr int kSeconds = 60 * 60;  // for all of them, a pod that finds no node included
// After its end: a controller that was replaced meanwhile does not know of it.
constexpr int kTtlSeconds = 5 * 60;

// The pod that wrote the files, as far as it is the same for all trials.
struct Writer {
  Json spec = Json::object();
  Json container = Json::object();
};

Writer WriterOf(const v1::TrialTemplate& from) {
  Json object = FromStruct(from.trial_spec());
  Writer writer;
  for (const PodTemplate& pod : FindTemplates(object)) {
    const int index = IndexOfContainer(pod, from.primary_container_name());
    if (index < 0) continue;
    writer.spec = pod.spec();
    writer.container = writer.spec["containers"][static_cast<size_t>(index)];
    break;
  }
  return writer;
}

// Where the trials ran, the volume can be mounted and the image be had. What depends on a trial's
// parameters is left out.
Json PodSpec(const Writer& writer) {
  Json spec = {{"restartPolicy", "Never"}, {"automountServiceAccountToken", false}};
  for (const char* field : {"securityContext", "nodeSelector", "affinity", "tolerations",
                            "imagePullSecrets", "serviceAccountName", "schedulerName"}) {
    const Json& theirs = At(writer.spec, field);
    const bool rendered = JsonText(theirs).find("${") == std::string::npos;
    if (!theirs.is_null() && rendered) spec[field] = theirs;
  }
  return spec;
}

Json Container(const Writer& writer, const Json& words, const PodOptions& options) {
  Json container = {
      {"name", kContainer},
      {"image", options.image},
      {"command", words},
      {"resources", SidecarResources(Json::object())},
      {"securityContext", SecurityBeside(writer.spec, writer.container)},
      {"volumeMounts", Json::array({{{"name", kHomeVolume}, {"mountPath", kPodHome}}})}};
  if (!options.image_pull_policy.empty()) container["imagePullPolicy"] = options.image_pull_policy;
  return container;
}

struct Task {
  const char* verb;  // of `shirabe pod`
  const ExperimentKey& experiment;
};

std::optional<Json> MakeJob(const std::string& name, const Task& task,
                            const v1::ExperimentSpec& spec, const PodOptions& options) {
  Json volume = SharedVolume(spec.shirabe().checkpoint().volume());
  if (volume.is_null()) return std::nullopt;
  const ExperimentKey& experiment = task.experiment;
  const Writer writer = WriterOf(spec.trial_template());
  const Json words = {kProgram, "pod", task.verb, experiment.ns, experiment.name};
  const Json labels = {
      {kExperimentLabel, experiment.name}, {kCleanerLabel, "true"}, {kManagedByLabel, kManager}};
  Json pod = PodSpec(writer);
  pod["containers"] = Json::array({Container(writer, words, options)});
  pod["volumes"] = Json::array({std::move(volume)});
  return Json{{"apiVersion", "batch/v1"},
              {"kind", "Job"},
              {"metadata", {{"name", name}, {"namespace", experiment.ns}, {"labels", labels}}},
              {"spec",
               {{"backoffLimit", kTries},
                {"activeDeadlineSeconds", kSeconds},
                {"ttlSecondsAfterFinished", kTtlSeconds},
                {"template", {{"metadata", {{"labels", labels}}}, {"spec", std::move(pod)}}}}}};
}

bool Is(const Json& job, const char* condition) {
  return Text(kube::Condition(job, condition), {"status"}) == "True";
}

constexpr char kClaimField[] = "spec.shirabe.checkpoint.volume.claim";

std::vector<std::string> ModesOf(const Json& claim) {
  std::vector<std::string> modes;
  for (const Json& mode : Items(At(claim, {"spec", "accessModes"}))) modes.push_back(Text(mode));
  return modes;
}

bool Has(const std::vector<std::string>& modes, const char* mode) {
  for (const std::string& one : modes) {
    if (one == mode) return true;
  }
  return false;
}

Status CheckModes(const std::vector<std::string>& modes, const std::string& claim, int parallel) {
  if (Has(modes, "ReadWriteMany")) return absl::OkStatus();
  const std::string is =
      absl::StrCat(kClaimField, ": \"", claim, "\" is ", absl::StrJoin(modes, " and "));
  if (!Has(modes, "ReadWriteOnce") && !Has(modes, "ReadWriteOncePod")) {
    return absl::InvalidArgumentError(
        absl::StrCat(is, ", so that no trial can save there: name a claim that is ReadWriteMany, ",
                     "or give volume.size for a claim of its own for each trial"));
  }
  if (parallel <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      is, ", which one ", Has(modes, "ReadWriteOnce") ? "node" : "pod",
      " at a time can mount, and spec.parallelTrialCount is ", parallel,
      ": name a claim that is ReadWriteMany, give volume.size in place of ",
      "volume.claim for a claim of its own for each trial, or set ", "parallelTrialCount: 1"));
}

}  // namespace

// No attempt is called so: their names end in a number.
std::string CleanerName(const ExperimentKey& experiment) { return experiment.name + "-clean"; }

bool HasCleaned(const Json& job) { return Is(job, "Complete"); }

bool HasEnded(const Json& job) { return HasCleaned(job) || Is(job, "Failed"); }

std::optional<Json> MakeCleaner(const ExperimentKey& experiment, const v1::ExperimentSpec& spec,
                                const PodOptions& options) {
  return MakeJob(CleanerName(experiment), {"clean", experiment}, spec, options);
}

std::string PrunerName(const ExperimentKey& experiment) { return experiment.name + "-prune"; }

std::optional<Json> MakePruner(const ExperimentKey& experiment, const v1::ExperimentSpec& spec,
                               const PodOptions& options) {
  return MakeJob(PrunerName(experiment), {"prune", experiment}, spec, options);
}

Json PrunerFor(Json pruner, const std::vector<v1::Checkpoint>& checkpoints) {
  Json& words = pruner["spec"]["template"]["spec"]["containers"][0]["command"];
  for (const v1::Checkpoint& one : checkpoints) {
    words.push_back(absl::StrCat(one.trial(), "/", one.attempt(), "/", one.step()));
  }
  return pruner;
}

Status CheckSharedClaim(kube::Client& client, const ExperimentKey& experiment,
                        const v1::ExperimentSpec& spec) {
  const std::string& name = spec.shirabe().checkpoint().volume().claim();
  if (name.empty()) return absl::OkStatus();
  const auto claim = client.Get({Claims(), experiment.ns, name});
  if (absl::IsNotFound(claim.status())) {
    return absl::FailedPreconditionError(absl::StrCat(
        kClaimField, ": namespace ", experiment.ns, " has no PersistentVolumeClaim \"", name,
        "\", and trials wait until it has one: create it with accessModes: [ReadWriteMany], or ",
        "give volume.size in place of volume.claim for a claim of its own for each trial"));
  }
  RETURN_IF_ERROR(claim.status());
  if (IsDeleting(*claim)) {
    return absl::FailedPreconditionError(absl::StrCat(
        kClaimField, ": PersistentVolumeClaim ", experiment.ns, "/", name,
        " is being deleted, and trials wait until there is another: create it, or name one"));
  }
  return CheckModes(ModesOf(*claim), name, spec.parallel_trial_count());
}

Status StartCleaner(kube::Client& client, const Json& cleaner) {
  const auto made = client.Create(Jobs(), cleaner);
  if (made.ok() || kube::IsNamespaceGone(made.status())) return absl::OkStatus();
  if (!absl::IsAlreadyExists(made.status())) return made.status();
  const kube::Ref ref{Jobs(), NamespaceOf(cleaner), NameOf(cleaner)};
  const auto there = client.Get(ref);
  if (absl::IsNotFound(there.status())) return absl::UnavailableError("it has just been deleted");
  RETURN_IF_ERROR(there.status());
  if (!HasEnded(*there) && !IsDeleting(*there)) return absl::OkStatus();
  // Of an earlier experiment of this name.
  RETURN_IF_ERROR(DeleteObject(client, ref, UidOf(*there)));
  return absl::UnavailableError("an earlier Job " + ref.name + " makes room for it");
}

StatusOr<bool> RunPruner(kube::Client& client, const Json& pruner) {
  const kube::Ref ref{Jobs(), NamespaceOf(pruner), NameOf(pruner)};
  const auto there = client.Get(ref);
  if (absl::IsNotFound(there.status())) {
    const Status made = client.Create(Jobs(), pruner).status();
    if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
    return false;
  }
  RETURN_IF_ERROR(there.status());
  if (!HasEnded(*there) || IsDeleting(*there)) return false;
  RETURN_IF_ERROR(DeleteObject(client, ref, UidOf(*there)));
  const auto words = [](const Json& job) {
    const Json& containers = Items(At(job, {"spec", "template", "spec", "containers"}));
    return containers.empty() ? Json() : At(containers[0], "command");
  };
  if (words(*there) != words(pruner)) return false;  // of an earlier process of ours
  if (HasCleaned(*there)) return true;
  return absl::UnavailableError("Job " + ref.namespace_name + "/" + ref.name + " has failed");
}

Status CheckCleaned(kube::Client& client, const ExperimentKey& experiment) {
  const std::string name = CleanerName(experiment);
  const auto job = client.Get({Jobs(), experiment.ns, name});
  if (absl::IsNotFound(job.status())) return absl::OkStatus();
  if (!job.ok()) return absl::UnavailableError(Message(job.status()));
  if (HasCleaned(*job)) return absl::OkStatus();
  if (!HasEnded(*job)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the checkpoints of an earlier experiment of this name are being deleted: Job ",
        experiment.ns, "/", name, " has not ended yet"));
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "the checkpoints of an earlier experiment of this name could not be deleted: see `kubectl ",
      "-n ", experiment.ns, " logs job/", name, "`, delete the folder trials/", experiment.ns, "/",
      experiment.name, " of the volume and then that Job, or rename the experiment"));
}

namespace {

constexpr char kHostPathField[] = "spec.shirabe.checkpoint.volume.hostPath";

std::string WithoutSlash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// No "..", no ".", no double '/': what is compared is what will be mounted.
bool IsPlain(const std::string& path) {
  const std::string normal = std::filesystem::path(path).lexically_normal().string();
  return absl::StartsWith(path, "/") && WithoutSlash(normal) == WithoutSlash(path) &&
         path.find('\0') == path.npos;
}

}  // namespace

Status CheckHostPath(const v1::CheckpointVolume& volume, const std::vector<std::string>& allowed) {
  const std::string path = WithoutSlash(volume.host_path());
  if (path.empty()) return absl::OkStatus();
  for (const std::string& one : allowed) {
    const std::string folder = WithoutSlash(one);
    if (IsPlain(path) && (path == folder || absl::StartsWith(path, folder + "/"))) {
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      kHostPathField, ": \"", volume.host_path(),
      "\" is a folder of the nodes that no administrator has ",
      "allowed (allowed: ", allowed.empty() ? "none" : absl::StrJoin(allowed, ", "),
      "): use volume.claim or volume.size, or have the server started with --allow-host-path"));
}

Status ValidateHostPath(const std::string& path) {
  if (IsPlain(path) && path.size() > 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", path, "\" is not an absolute path of a folder below /, without . and .. in it"));
}

}  // namespace shirabe::trial
