#include "trial/pod/sidecar_injection.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "artifacts/package/code_package.h"
#include "base/text/json_text.h"
#include "base/text/number.h"
#include "google/protobuf/util/time_util.h"
#include "proto/shirabe/v1/collector_traits.h"
#include "trial/checkpoint/katib_folder.h"
#include "trial/local/supervisor_records.h"
#include "trial/local/trial_environment.h"
#include "trial/pod/pod_names.h"
#include "trial/pod/pod_volumes.h"

namespace shirabe::trial {
namespace {

constexpr char kCustomCollectorField[] = "spec.metricsCollectorSpec.collector.customCollector";

// ---- names and paths that we need ---------------------------------------------------------------

Status CheckNames(const Json& list, const std::string& path,
                  std::initializer_list<const char*> taken) {
  for (size_t i = 0; i < Items(list).size(); ++i) {
    const std::string name = Text(list[i], {"name"});
    if (std::none_of(taken.begin(), taken.end(), [&](const char* t) { return name == t; })) {
      continue;
    }
    return InvalidField(
        absl::StrCat(path, "[", i, "].name"),
        absl::StrCat("\"", name, "\" is the name of something that Shirabe adds to the ",
                     "pod: choose another"));
  }
  return absl::OkStatus();
}

// A container of the user's that mounts a volume of ours would see what no trial may: the token of
// the sidecar, and the checkpoints of all others.
Status CheckMounts(const Json& containers, const std::string& path) {
  for (size_t i = 0; i < Items(containers).size(); ++i) {
    for (const char* list : {"volumeMounts", "volumeDevices"}) {
      RETURN_IF_ERROR(CheckNames(At(containers[i], list), absl::StrCat(path, "[", i, "].", list),
                                 {kHomeVolume, kTokenVolume, kCodeVolume}));
    }
  }
  return absl::OkStatus();
}

// Of a container that gets our folders.
Status CheckPodRoot(const Json& container, const std::string& path) {
  const Json& mounts = At(container, "volumeMounts");
  for (size_t i = 0; i < Items(mounts).size(); ++i) {
    const std::string at = Text(mounts[i], {"mountPath"}) + "/";
    if (!absl::StartsWith(at, std::string(kPodRoot) + "/")) continue;
    return InvalidField(
        absl::StrCat(path, ".volumeMounts[", i, "].mountPath"),
        absl::StrCat("Shirabe uses ", kPodRoot, " itself: mount it elsewhere; for checkpoints on ",
                     "a volume give spec.shirabe.checkpoint.volume"));
  }
  return absl::OkStatus();
}

Status CheckFree(const Injection& injection) {
  const Json& spec = injection.pod.spec();
  const std::string path = injection.pod.path + ".spec";
  RETURN_IF_ERROR(CheckNames(At(spec, "volumes"), path + ".volumes",
                             {kOurVolume, kHomeVolume, kMetricsVolume, kTokenVolume, kCodeVolume}));
  for (const char* list : {"containers", "initContainers"}) {
    RETURN_IF_ERROR(CheckNames(At(spec, list), absl::StrCat(path, ".", list),
                               {kFoldersContainer, kInitContainer, kSidecarContainer}));
    RETURN_IF_ERROR(CheckMounts(At(spec, list), absl::StrCat(path, ".", list)));
  }
  RETURN_IF_ERROR(CheckPodRoot(spec["containers"][injection.container],
                               injection.pod.ContainerPath(injection.container)));
  int i = 0;
  for (const Json& container : Items(At(spec, "initContainers"))) {
    RETURN_IF_ERROR(CheckPodRoot(container, absl::StrCat(path, ".initContainers[", i++, "]")));
  }
  return absl::OkStatus();
}

// ---- variables ----------------------------------------------------------------------------------

// The cluster replaces $(NAME) in a value, and $$ by $.
std::string Literal(const std::string& value) { return absl::StrReplaceAll(value, {{"$", "$$"}}); }

// Before the user's own, so that those may refer to them; one that the user sets wins.
void AddEnvironment(const Environment& contract, Json& container) {
  Json env = Json::array();
  const Json theirs = Items(At(container, "env"));
  for (const auto& [name, value] : contract) {
    if (!Named(theirs, name).is_null()) continue;
    env.push_back({{"name", name}, {"value", Literal(value)}});
  }
  env.insert(env.end(), theirs.begin(), theirs.end());
  container["env"] = std::move(env);
}

Environment PodEnvironment(const AttemptRequest& request, absl::Duration grace) {
  Environment contract = ContractEnvironment(request, PodPaths(request.key));
  const std::string code = PodCodeDir(request.cluster.code.package());
  if (!code.empty()) contract[kCodeDirVariable] = code;
  contract["SHIRABE_GRACE_SECONDS"] = FormatNumber(absl::ToDoubleSeconds(ProgramGrace(grace)));
  return contract;
}

// ---- the configuration of our containers --------------------------------------------------------

v1::PodConfig CommonConfig(const Injection& injection) {
  const AttemptRequest& request = injection.request;
  v1::PodConfig config;
  config.set_namespace_(request.key.trial.experiment.ns);
  config.set_experiment(request.key.trial.experiment.name);
  config.set_trial(request.key.trial.number);
  config.set_attempt(request.key.number);
  config.set_home(kPodHome);
  config.set_home_in_parts(!SharedVolume(request.cluster.volume).is_null());
  config.set_ca(injection.options.ca);
  const absl::Duration grace = WholeGrace(request, injection.pod.spec());
  *config.mutable_grace() =
      google::protobuf::util::TimeUtil::MillisecondsToDuration(absl::ToInt64Milliseconds(grace));
  return config;
}

// Of the containers that speak with the server.
void AddServer(const Injection& injection, v1::PodConfig& config) {
  config.set_token_path(kPodTokenFile);
  config.set_server(injection.options.server);
  if (injection.request.cluster.artifacts.store().empty()) return;
  *config.mutable_artifacts() = injection.request.cluster.artifacts;
  config.mutable_artifacts()->clear_prefix();
}

// Whether the init container brings something from a store.
bool InitFetches(const AttemptRequest& request) {
  return !request.cluster.code.package().empty() ||
         (request.cluster.artifacts.checkpoints() && !ResumeCandidates(request).empty());
}

v1::PodConfig InitConfig(const Injection& injection) {
  v1::PodConfig config = CommonConfig(injection);
  if (InitFetches(injection.request)) AddServer(injection, config);
  const auto code = artifacts::DigestOfPackage(injection.request.cluster.code.package());
  if (code.ok()) config.set_code(*code);
  for (v1::Checkpoint& one : ResumeCandidates(injection.request)) {
    *config.add_resume() = std::move(one);
  }
  config.set_parameters_json(injection.request.parameters_json);
  return config;
}

v1::PodConfig SidecarConfig(const Injection& injection, const std::string& collector_path) {
  const AttemptRequest& request = injection.request;
  v1::PodConfig config = CommonConfig(injection);
  AddServer(injection, config);
  *config.mutable_collector() = request.cluster.collector;
  if (!collector_path.empty()) {
    config.mutable_collector()->mutable_source()->mutable_file_system_path()->set_path(
        collector_path);
  }
  for (const std::string& metric : request.cluster.metrics) config.add_metrics(metric);
  const Json& container = injection.pod.spec()["containers"][injection.container];
  config.set_working_dir(Text(container, {"workingDir"}));
  return config;
}

StatusOr<Json> ConfigVariable(const v1::PodConfig& config) {
  ASSIGN_OR_RETURN(const std::string text, MessageToJson(config));
  return Json::array({Json{{"name", kPodVariable}, {"value", Literal(text)}}});
}

// ---- our containers -----------------------------------------------------------------------------

// Whether the kubelet would call the pod Guaranteed: every container has the same requests and
// limits of both.
bool IsGuaranteed(const Json& pod_spec) {
  for (const char* list : {"containers", "initContainers"}) {
    for (const Json& container : Items(At(pod_spec, list))) {
      const Json& requests = At(container, {"resources", "requests"});
      for (const char* resource : {"cpu", "memory"}) {
        const Json& limit = At(container, {"resources", "limits", resource});
        const Json& request = At(requests, resource);
        if (limit.is_null() || (!request.is_null() && request != limit)) return false;
      }
    }
  }
  return true;
}

Json OurContainer(const Injection& injection, const char* name, const char* verb) {
  Json container = {{"name", name},
                    {"image", injection.options.image},
                    {"command", Json::array({kProgram, "pod", verb})}};
  if (!injection.options.image_pull_policy.empty()) {
    container["imagePullPolicy"] = injection.options.image_pull_policy;
  }
  const Json& spec = injection.pod.spec();
  container["resources"] = SidecarResources(spec);
  container["securityContext"] = SecurityBeside(spec, spec["containers"][injection.container]);
  return container;
}

void Append(const Json& items, Json& list) { list.insert(list.end(), items.begin(), items.end()); }

// What of the volume the others mount is there once it has ended.
StatusOr<Json> FoldersContainer(const Injection& injection, const PodVolumes& volumes) {
  Json container = OurContainer(injection, kFoldersContainer, "folders");
  ASSIGN_OR_RETURN(container["env"], ConfigVariable(InitConfig(injection)));
  container["volumeMounts"] = volumes.folders;
  return container;
}

StatusOr<Json> InitContainer(const Injection& injection, const PodVolumes& volumes) {
  Json container = OurContainer(injection, kInitContainer, "init");
  ASSIGN_OR_RETURN(container["env"], ConfigVariable(InitConfig(injection)));
  const std::string katib = KatibPath(injection.request.environment);
  if (!katib.empty()) {
    container["env"].push_back({{"name", kKatibFolderVariable}, {"value", Literal(katib)}});
  }
  container["volumeMounts"] = volumes.shared;
  Append(volumes.init, container["volumeMounts"]);
  if (InitFetches(injection.request)) Append(volumes.token, container["volumeMounts"]);
  container["terminationMessagePolicy"] = "FallbackToLogsOnError";
  return container;
}

// It ends after the program: until then it sends what the program writes; the hook tells it early
// that the end is near.
StatusOr<Json> Sidecar(const Injection& injection, const PodVolumes& volumes,
                       const std::string& path) {
  Json container = OurContainer(injection, kSidecarContainer, "sidecar");
  container["restartPolicy"] = "Always";
  ASSIGN_OR_RETURN(container["env"], ConfigVariable(SidecarConfig(injection, path)));
  if (!injection.checkpoints) {
    container["env"].push_back({{"name", kPodCheckpointsVariable}, {"value", kPodNoCheckpoints}});
  }
  container["volumeMounts"] = volumes.shared;
  Append(volumes.collector, container["volumeMounts"]);
  Append(volumes.token, container["volumeMounts"]);
  container["lifecycle"] = {
      {"preStop", {{"exec", {{"command", Json::array({kProgram, "pod", "stop"})}}}}}};
  return container;
}

Status CheckCollector(const Json& container, const Json& pod_spec) {
  const Json alone = Json::array({container});
  RETURN_IF_ERROR(CheckNames(alone, kCustomCollectorField,
                             {kFoldersContainer, kInitContainer, kSidecarContainer}));
  RETURN_IF_ERROR(CheckMounts(alone, kCustomCollectorField));
  const std::string name = Text(container, {"name"});
  for (const char* list : {"containers", "initContainers"}) {
    if (Named(At(pod_spec, list), name).is_null()) continue;
    return InvalidField(absl::StrCat(kCustomCollectorField, ".name"),
                        absl::StrCat("\"", name, "\" is a container of the trial's own pod: ",
                                     "choose another name"));
  }
  return absl::OkStatus();
}

// The user's own collector, as Katib places it: after the program's container, so that it finds the
// program's process in the namespace of processes that the pod's containers share then, waits for
// its end, and reports. What it reports, it reports by itself; its own end ends the pod.
Status AddCustomCollector(const Injection& injection, const PodVolumes& volumes) {
  const std::string name = CustomCollectorName(injection.request);
  if (name.empty()) return absl::OkStatus();
  Json& spec = injection.pod.spec();
  Json container = FromStruct(injection.request.cluster.collector.collector().custom_collector());
  container["name"] = name;
  container.erase("restartPolicy");
  RETURN_IF_ERROR(CheckCollector(container, spec));
  Append(volumes.collector, ListIn(container, "volumeMounts"));
  AddPlainEnvironment(injection.request, container);
  ListIn(spec, "containers").push_back(std::move(container));
  if (!IsTrue(At(spec, "hostPID"))) spec["shareProcessNamespace"] = true;
  return absl::OkStatus();
}

// ---- the program --------------------------------------------------------------------------------

// As on a laptop: where the template says nothing, the program starts in the folder of its code.
void StartInCode(const AttemptRequest& request, Json& container) {
  const std::string code = PodCodeDir(request.cluster.code.package());
  const std::string theirs = Text(container, {"workingDir"});
  if (code.empty() || absl::StartsWith(theirs, "/")) return;
  container["workingDir"] = theirs.empty() ? code : absl::StrCat(code, "/", theirs);
}

void WrapCommand(const AttemptRequest& request, absl::Duration grace, Json& container) {
  Json command = PodCommand(AttemptId(request.key, request.token), grace);
  for (const char* list : {"command", "args"}) Append(Items(At(container, list)), command);
  container["command"] = std::move(command);
  container.erase("args");
}

}  // namespace

// As the program's user, so that each may read and write the other's files. Where it is not said
// who that is, it is the image's, perhaps root: then as root with no more than the right to its
// files.
Json SecurityBeside(const Json& pod_spec, const Json& program) {
  Json security = {{"allowPrivilegeEscalation", false},
                   {"readOnlyRootFilesystem", true},
                   {"capabilities", {{"drop", Json::array({"ALL"})}}}};
  const Json& theirs = At(program, "securityContext");
  const Json& pods = At(pod_spec, "securityContext");
  for (const char* key :
       {"runAsUser", "runAsGroup", "runAsNonRoot", "seccompProfile", "seLinuxOptions"}) {
    if (!At(theirs, key).is_null()) security[key] = At(theirs, key);
  }
  bool known = false;
  for (const Json* context : {&theirs, &pods}) {
    known |= !At(*context, "runAsUser").is_null() || IsTrue(At(*context, "runAsNonRoot"));
  }
  if (known) return security;
  security["runAsUser"] = 0;
  security["capabilities"]["add"] = Json::array({"CHOWN", "DAC_OVERRIDE", "FOWNER"});
  return security;
}

// Small, and such that the pod keeps its class.
Json SidecarResources(const Json& pod_spec) {
  const bool guaranteed = IsGuaranteed(pod_spec);
  const Json limits = {{"cpu", guaranteed ? "100m" : "1"},
                       {"memory", guaranteed ? "128Mi" : "256Mi"}};
  return {{"limits", limits},
          {"requests", guaranteed ? limits : Json{{"cpu", "10m"}, {"memory", "32Mi"}}}};
}

absl::Duration WholeGrace(const AttemptRequest& request, const Json& pod_spec) {
  const int64_t theirs = Number(At(pod_spec, "terminationGracePeriodSeconds"));
  return std::max(request.grace, absl::Seconds(theirs));
}

void AddPlainEnvironment(const AttemptRequest& request, Json& container) {
  Environment plain = request.environment;
  plain.erase(kKatibFolderVariable);
  AddEnvironment(plain, container);
}

std::string CustomCollectorName(const AttemptRequest& request) {
  const auto& collector = request.cluster.collector.collector();
  if (!v1::TraitsOf(collector.kind()).container() || !collector.has_custom_collector()) return "";
  const std::string name = Text(FromStruct(collector.custom_collector()), {"name"});
  return name.empty() ? "metrics-collector" : name;
}

Status Inject(const Injection& injection) {
  RETURN_IF_ERROR(CheckFree(injection));
  const AttemptRequest& request = injection.request;
  Json& spec = injection.pod.spec();
  Json& program = spec["containers"][injection.container];
  StartInCode(request, program);
  ASSIGN_OR_RETURN(const std::string path, CollectorPath(request, program));
  ASSIGN_OR_RETURN(PodVolumes volumes, MakeVolumes(request, program, path));
  const PodOptions& options = injection.options;
  if (!options.storage_class.empty()) {
    UseClaims(options.storage_class, options.storage_size, volumes);
  }

  ASSIGN_OR_RETURN(Json init, InitContainer(injection, volumes));
  ASSIGN_OR_RETURN(Json sidecar, Sidecar(injection, volumes, path));
  Json containers = Json::array();
  if (!volumes.folders.empty()) {
    ASSIGN_OR_RETURN(Json folders, FoldersContainer(injection, volumes));
    containers.push_back(std::move(folders));
  }
  containers.push_back(std::move(init));
  const absl::Duration grace = WholeGrace(request, spec);
  // The user's have what the program has, as on a laptop: what they prepare in the trial's folder
  // is there for it, and for the attempts that follow.
  for (Json container : Items(At(spec, "initContainers"))) {
    if (Text(container, {"restartPolicy"}) != "Always") {
      StartInCode(request, container);
      AddEnvironment(PodEnvironment(request, grace), container);
      Append(volumes.shared, ListIn(container, "volumeMounts"));
      Append(volumes.code, ListIn(container, "volumeMounts"));
    }
    containers.push_back(std::move(container));
  }
  containers.push_back(std::move(sidecar));

  WrapCommand(request, grace, program);
  AddEnvironment(PodEnvironment(request, grace), program);
  Append(volumes.shared, ListIn(program, "volumeMounts"));
  Append(volumes.program, program["volumeMounts"]);
  Append(volumes.code, program["volumeMounts"]);
  Append(volumes.volumes, ListIn(spec, "volumes"));
  RETURN_IF_ERROR(AddCustomCollector(injection, volumes));  // no use of `program` after this
  spec["initContainers"] = std::move(containers);
  return absl::OkStatus();
}

}  // namespace shirabe::trial
