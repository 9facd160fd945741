#include "trial/kubernetes/volume_jobs.h"

#include "absl/strings/str_cat.h"
#include "trial/pod/pod_labels.h"
#include "trial/pod/pod_paths.h"
#include "trial/pod/pod_templates.h"
#include "trial/pod/pod_volumes.h"
#include "trial/pod/sidecar_injection.h"

namespace shirabe::trial {
namespace {

constexpr char kCleanerLabel[] = "shirabe.dev/cleaner";
constexpr char kContainer[] = "shirabe-clean";
constexpr int kTries = 4;             // after the first, each later than the one before
constexpr int kSeconds = 60 * 60;     // for all of them, a pod that finds no node included
constexpr int kTtlSeconds = 60 * 60;  // after its end

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
    const bool rendered = theirs.dump().find("${") == std::string::npos;
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

}  // namespace shirabe::trial
