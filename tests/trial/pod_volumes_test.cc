// What a pod of an attempt mounts, and what none of its containers may.
#include "trial/pod/pod_volumes.h"

#include "absl/strings/escaping.h"
#include "tests/trial/pod_built.h"
#include "tests/trial/saved.h"
#include "trial/kubernetes/checkpoint_volume.h"

namespace shirabe::trial {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

constexpr char kTokens[] = "/var/run/secrets/shirabe";  // of the sidecar's own token

// ---- volumes ------------------------------------------------------------------------------------

TEST(PodBuild, WithoutAVolumeCheckpointsShareTheirPodsFate) {
  const AttemptObject built = Build(Request());
  const Pod pod(built.object);
  EXPECT_EQ(pod.spec["volumes"][0].dump(), R"({"emptyDir":{},"name":"shirabe"})");
  ASSERT_EQ(pod.spec["volumes"].size(), 2u);
  EXPECT_EQ(pod.spec["volumes"][1]["name"], "shirabe-token");
  EXPECT_THAT(MountPaths(pod.program), ElementsAre("/shirabe"));
  EXPECT_FALSE(built.claim.has_value());
}

// Then `kubectl drain` sees no emptyDir: the claims come and go with their pod.
TEST(PodBuild, WithAStorageClassAPodsOwnVolumesAreClaims) {
  AttemptRequest request = Request();
  request.cluster.code.set_package(std::string(64, 'a'));
  request.cluster.collector.mutable_collector()->set_kind(v1::FILE_COLLECTOR);
  auto* path = request.cluster.collector.mutable_source()->mutable_file_system_path();
  path->set_path("/var/log/katib/metrics.log");
  PodOptions options = Options();
  options.storage_class = "local-lvm";
  options.storage_size = "4Gi";
  const auto built = BuildAttemptObject(request, options, {});
  ASSERT_TRUE(built.ok()) << built.status();
  const Json volumes = Pod(built->object).spec["volumes"];
  EXPECT_THAT(volumes.dump(), Not(HasSubstr("emptyDir")));
  int claims = 0;
  for (const Json& volume : volumes) {
    if (!volume.contains("ephemeral")) continue;
    ++claims;
    const Json& spec = volume["ephemeral"]["volumeClaimTemplate"]["spec"];
    EXPECT_EQ(spec["storageClassName"], "local-lvm");
    EXPECT_EQ(spec["accessModes"].dump(), R"(["ReadWriteOnce"])");
    EXPECT_EQ(spec["resources"]["requests"]["storage"], "4Gi");
  }
  EXPECT_EQ(claims, 3) << "ours, the code's and that of the collector's file: " << volumes;
  EXPECT_THAT(MountPaths(Pod(built->object).init), Contains("/shirabe/collected"));
}

// A program can read, write and delete what its pod mounts: of a volume that all trials share, its
// attempt's own folders alone. The init container has ended by then.
TEST(PodBuild, OfASharedVolumeAnAttemptMountsItsOwnFolders) {
  AttemptRequest request = Request();
  request.cluster.volume.set_claim("ckpt");
  AttemptKey first = request.key, parent = request.key, foreign = request.key;
  request.key.number = 3;
  parent.trial.number = 1;
  foreign.trial.experiment.ns = "other";
  request.resume = {Saved(first, 20), Saved(first, 10), Saved(parent, 10), Saved(foreign, 10)};
  const AttemptObject built = Build(request);
  const Pod pod(built.object);
  EXPECT_EQ(pod.spec["volumes"][1]["persistentVolumeClaim"]["claimName"], "ckpt");
  const std::string trial = "/shirabe/home/trials/" + first.trial.experiment.ns + "/exp/exp-3/";
  const std::string own = trial + "exp-3-a3", output = trial + "output";
  EXPECT_THAT(MountPaths(pod.program), ElementsAre("/shirabe", own, output));
  EXPECT_THAT(MountPaths(pod.sidecar),
              ElementsAre("/shirabe", own, output, "/var/run/secrets/shirabe"));
  const std::string before = trial + AttemptName(first) + "/checkpoints";
  EXPECT_THAT(MountPaths(pod.init),
              ElementsAre("/shirabe", own, output, before,
                          "/shirabe/home/trials/" + first.trial.experiment.ns + "/exp/exp-1/" +
                              AttemptName(parent) + "/checkpoints"));
  for (const Json* container : {&pod.init, &pod.sidecar, &pod.program}) {
    for (const Json& mount : (*container)["volumeMounts"]) {
      if (mount["name"] != "shirabe-home") continue;
      const std::string path = mount["mountPath"];
      EXPECT_EQ("/shirabe/home/" + mount["subPath"].get<std::string>(), path);
      EXPECT_EQ(mount.value("readOnly", false), path != own && path != output) << path;
    }
  }
}

// The folders must be there before the kubelet can mount them: made by a container that ends before
// any other begins.
TEST(PodBuild, OneContainerAloneMountsTheWholeVolume) {
  AttemptRequest request = Request();
  request.cluster.volume.set_host_path("/mnt/ckpt");
  const AttemptObject built = Build(request);
  const Pod pod(built.object);
  EXPECT_EQ(pod.spec["volumes"][1]["hostPath"]["path"], "/mnt/ckpt");
  const Json& folders = pod.spec["initContainers"][0];
  EXPECT_EQ(folders["name"], "shirabe-folders");
  EXPECT_EQ(folders["command"], Json::parse(R"(["shirabe", "pod", "folders"])"));
  EXPECT_THAT(MountPaths(folders), ElementsAre("/shirabe/home"));
  EXPECT_FALSE(folders.contains("restartPolicy"));
  EXPECT_EQ(pod.spec["initContainers"][1]["name"], "shirabe-init");
}

TEST(PodBuild, CandidatesOfManyAttemptsAreNotMoreMountsThanAPodCanHave) {
  AttemptRequest request = Request();
  request.cluster.volume.set_claim("ckpt");
  AttemptKey key = request.key;
  request.key.number = 200;
  for (int i = 150; i > 0; --i) {
    key.number = i;
    request.resume.push_back(Saved(key, i));
  }
  const AttemptObject built = Build(request);
  EXPECT_EQ(Pod(built.object).init["volumeMounts"].size(), 3u + 32u);
}

TEST(PodBuild, NoContainerOfTheUsersMountsWhatNoTrialMay) {
  for (const char* volume : {"shirabe-home", "shirabe-token"}) {
    for (const char* list : {"containers", "initContainers"}) {
      Json job = Json::parse(kJob);
      Json& pod = job["spec"]["template"]["spec"];
      Json spy = {{"name", "spy"}, {"image", "spy"}};
      spy["volumeMounts"] = {{{"name", volume}, {"mountPath", "/all"}}};
      pod[list].push_back(spy);
      AttemptRequest request = Request(job.dump());
      request.cluster.volume.set_claim("ckpt");
      EXPECT_THAT(Refusal(request), AllOf(HasSubstr(std::string(list) + "["),
                                          HasSubstr(".volumeMounts[0].name"), HasSubstr(volume)));
    }
  }
}

// Whoever may view a pod reads its specification.
TEST(PodBuild, NoSecretStandsInThePod) {
  AttemptRequest request = Request();
  request.token = "a-secret-of-the-attempt";
  const AttemptObject built = Build(request);
  const std::string text = built.object.dump();
  EXPECT_THAT(text, testing::Not(HasSubstr(request.token)));
  EXPECT_THAT(text, testing::Not(HasSubstr(absl::Base64Escape(request.token))));
  const Pod pod(built.object);
  const Json& token = pod.spec["volumes"][1]["projected"]["sources"][0]["serviceAccountToken"];
  EXPECT_EQ(token["audience"], "shirabe-pods");
  EXPECT_THAT(MountPaths(pod.sidecar), testing::Contains("/var/run/secrets/shirabe"));
  for (const Json* container : {&pod.init, &pod.program}) {
    EXPECT_THAT(MountPaths(*container),
                testing::Not(testing::Contains("/var/run/secrets/shirabe")));
  }
}

TEST(PodBuild, AClaimOfItsOwnIsMadeForTheTrial) {
  AttemptRequest request = Request();
  request.cluster.volume.set_size("10Gi");
  request.cluster.volume.set_storage_class_name("fast");
  const AttemptObject built = Build(request);
  ASSERT_TRUE(built.claim.has_value());
  const Json& claim = *built.claim;
  EXPECT_EQ(claim["metadata"]["name"], "exp-3");
  EXPECT_EQ(claim["metadata"]["ownerReferences"][0]["uid"], "uid-1");
  EXPECT_EQ(claim["spec"]["resources"]["requests"]["storage"], "10Gi");
  EXPECT_EQ(claim["spec"]["storageClassName"], "fast");
  EXPECT_EQ(Pod(built.object).spec["volumes"][1]["persistentVolumeClaim"]["claimName"], "exp-3");
}

TEST(PodBuild, ACollectorsFolderIsShared) {
  const AttemptObject built = Build(WithFile("/var/log/katib/metrics.log"));
  const Pod pod(built.object);
  EXPECT_THAT(MountPaths(pod.program), ElementsAre("/shirabe", "/var/log/katib"));
  EXPECT_EQ(pod.sidecar["volumeMounts"].back()["readOnly"], true);
  EXPECT_THAT(MountPaths(pod.init), ElementsAre("/shirabe"));
  AttemptRequest events = WithFile("/logs/");
  events.cluster.collector.mutable_collector()->set_kind(v1::TENSOR_FLOW_EVENT);
  events.cluster.collector.mutable_source()->mutable_file_system_path()->set_kind(v1::DIRECTORY);
  const AttemptObject folder = Build(events);
  EXPECT_THAT(MountPaths(Pod(folder.object).sidecar), ElementsAre("/shirabe", "/logs", kTokens));
}

TEST(PodBuild, ACollectorsFileOnTheUsersVolumeIsReadThere) {
  Json object = Json::parse(kJob);
  object["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] =
      Json::array({Json{{"name", "all"}, {"mountPath", "/"}},
                   Json{{"name", "data"}, {"mountPath", "/data/"}, {"subPath", "a"}}});
  const AttemptObject built = Build(WithFile("/data/logs/metrics.log", object.dump()));
  const Pod pod(built.object);
  ASSERT_THAT(MountPaths(pod.sidecar), ElementsAre("/shirabe", "/data/", kTokens));
  EXPECT_EQ(pod.sidecar["volumeMounts"][1].dump(),
            R"({"mountPath":"/data/","name":"data","readOnly":true,"subPath":"a"})");
  EXPECT_THAT(pod.spec["volumes"], SizeIs(2));
}

TEST(PodBuild, ACollectorsFileInOurOwnFoldersNeedsNoMount) {
  const AttemptObject built = Build(WithFile("$(SHIRABE_OUTPUT_DIR)/metrics.log"));
  const Pod pod(built.object);
  EXPECT_THAT(MountPaths(pod.sidecar), ElementsAre("/shirabe", kTokens));
  EXPECT_EQ(ConfigOf(pod.sidecar).collector().source().file_system_path().path(),
            PodPaths(Request().key).output_dir + "/metrics.log");
}

TEST(PodBuild, ACollectorsFileThatWouldHideTheProgramIsRefused) {
  EXPECT_THAT(Refusal(WithFile("metrics.log")), HasSubstr("workingDir"));
  for (const char* path : {"/metrics.log", "/etc/metrics.log", "/usr/m", "/usr/lib/m", "/proc/1/m",
                           "/sys/m", "/dev/m", "/var/m", "/run/secrets/a/m"}) {
    EXPECT_THAT(Refusal(WithFile(path)), HasSubstr("would hide")) << path;
  }
  for (const char* path :
       {"/etc/app/m", "/dev/shm/m", "/var/log/m", "/usr/src/app/m", "/run/m/m"}) {
    EXPECT_TRUE(BuildAttemptObject(WithFile(path), Options(), {}).ok()) << path;
  }
  Json object = Json::parse(kJob);
  object["spec"]["template"]["spec"]["containers"][0]["workingDir"] = "/app";
  EXPECT_THAT(Refusal(WithFile("metrics.log", object.dump())), HasSubstr("would hide"));
  const AttemptObject built = Build(WithFile("logs/metrics.log", object.dump()));
  EXPECT_THAT(MountPaths(Pod(built.object).program), ElementsAre("/shirabe", "/app/logs"));
}

// As Katib's example of a TFJob has it: the collector reads event files that the first worker
// writes.
AttemptRequest TwoWorkers(const Json& roles, const char* label, const char* value) {
  AttemptRequest request = Request(Json({{"apiVersion", "kubeflow.org/v1"},
                                         {"kind", "TFJob"},
                                         {"spec", {{"tfReplicaSpecs", roles}}}})
                                       .dump());
  request.primary_container = "tensorflow";
  request.cluster.volume.set_claim("ckpt");
  request.resume = {Saved(request.key, 20)};
  request.cluster.collector.mutable_collector()->set_kind(v1::TENSOR_FLOW_EVENT);
  auto& path = *request.cluster.collector.mutable_source()->mutable_file_system_path();
  path.set_path("/logs/test");
  path.set_kind(v1::DIRECTORY);
  (*request.cluster.trial_template.mutable_primary_pod_labels())[label] = value;
  return request;
}

Json Role(int replicas) {
  return Json::parse(absl::StrCat(R"({"restartPolicy": "OnFailure", "replicas": )", replicas,
                                  R"(, "template": {"spec": {"containers": [
           {"name": "tensorflow", "image": "t:1", "command": ["python", "t.py"]}]}}})"));
}

constexpr char kJobRole[] = "training.kubeflow.org/job-role";
constexpr char kReplicaType[] = "training.kubeflow.org/replica-type";

TEST(PodBuild, OfTwoWorkersTheFirstIsCollectedAndNothingIsResumed) {
  const AttemptObject built = Build(TwoWorkers({{"Worker", Role(2)}}, kReplicaType, "worker"));
  EXPECT_TRUE(built.recipe.instrumented);
  EXPECT_THAT(built.without_checkpoints, HasSubstr("Worker.template runs as 2 pods"));
  EXPECT_FALSE(built.claim.has_value());
  const std::map<std::string, std::string> labels = {{kReplicaType, "worker"},
                                                     {"training.kubeflow.org/replica-index", "0"}};
  EXPECT_EQ(RecipeOf(built.object).primary_labels, labels);
  const Json& worker = built.object["spec"]["tfReplicaSpecs"]["Worker"];
  EXPECT_EQ(worker["restartPolicy"], "Never");
  const Json& spec = worker["template"]["spec"];
  EXPECT_THAT(MountPaths(spec["containers"][0]), ElementsAre("/shirabe", "/logs/test"));
  const Json& sidecar = Named(spec["initContainers"], "shirabe-sidecar");
  EXPECT_EQ(Variable(sidecar, "SHIRABE_POD_CHECKPOINTS"), "none");
  EXPECT_EQ(ConfigOf(Named(spec["initContainers"], "shirabe-init")).resume_size(), 0);
}

TEST(PodBuild, OfSeveralRolesTheOneOfTheLabelsIsCollected) {
  const Json roles = {{"Chief", Role(1)}, {"Worker", Role(2)}};
  for (const auto& [label, value, role] :
       {std::tuple(kJobRole, "master", "Chief"), std::tuple(kReplicaType, "worker", "Worker")}) {
    const AttemptObject built = Build(TwoWorkers(roles, label, value));
    const Json& specs = built.object["spec"]["tfReplicaSpecs"];
    for (const char* one : {"Chief", "Worker"}) {
      EXPECT_EQ(specs[one]["template"]["spec"].contains("initContainers"), std::string(one) == role)
          << one << " for " << value;
    }
    EXPECT_THAT(built.without_checkpoints, HasSubstr("2 pod templates"));
  }
}

TEST(PodBuild, WhereNothingTellsPodsApartACollectorInThemIsRefused) {
  AttemptRequest request = TwoWorkers({{"Worker", Role(2)}}, kReplicaType, "worker");
  request.cluster.collector.mutable_collector()->set_kind(v1::CUSTOM);
  *request.cluster.collector.mutable_collector()->mutable_custom_collector() =
      ParseStruct(R"({"name": "csv", "image": "collect:1"})");
  EXPECT_THAT(Refusal(request), HasSubstr("runs as 2 pods"));
  AttemptRequest job = WithFile("/logs/metrics.log");
  Json object = Json::parse(kJob);
  object["spec"]["parallelism"] = 2;
  job.trial_spec = ParseStruct(object.dump());
  EXPECT_THAT(Refusal(job), HasSubstr("runs as 2 pods"));
  object["spec"]["completionMode"] = "Indexed";
  job.trial_spec = ParseStruct(object.dump());
  EXPECT_EQ(Build(job).recipe.primary_labels.begin()->second, "0");
}

// ---- Katib's population-based training ----------------------------------------------------------

AttemptRequest RequestOfKatib() {
  AttemptRequest request = Request();
  request.environment["SHIRABE_SUGGESTION_TRIAL_DIR"] = "/var/log/katib/checkpoints/";
  return request;
}

TEST(PodBuild, KatibsFolderOfCheckpointsIsTheAttemptsOwn) {
  const std::string own = "trials/team/exp/exp-3/exp-3-a2/suggestion";
  const AttemptObject built = Build(RequestOfKatib());
  const Pod pod(built.object);
  const Json& mount = pod.program["volumeMounts"].back();
  EXPECT_EQ(mount, Json({{"name", "shirabe"},
                         {"mountPath", "/var/log/katib/checkpoints"},
                         {"subPath", "home/" + own}}));
  EXPECT_EQ(Variable(pod.init, "SHIRABE_SUGGESTION_TRIAL_DIR"), "/var/log/katib/checkpoints");
  EXPECT_EQ(Variable(Pod(Build(Request()).object).init, "SHIRABE_SUGGESTION_TRIAL_DIR"), "");
  AttemptRequest shared = RequestOfKatib();
  shared.cluster.volume.set_claim("ckpt");
  const AttemptObject on_claim = Build(shared);
  EXPECT_EQ(Pod(on_claim.object).program["volumeMounts"].back(),
            Json({{"name", "shirabe-home"},
                  {"mountPath", "/var/log/katib/checkpoints"},
                  {"subPath", own}}));
}

// As Katib makes one for the experiment: parents' checkpoints must be at hand for their children.
TEST(PodBuild, WithoutAVolumeTrialsOfKatibsTrainingShareAClaim) {
  AttemptRequest request = RequestOfKatib();
  const ExperimentKey& experiment = request.key.trial.experiment;
  v1::CheckpointVolume own;
  own.set_claim("mine");
  EXPECT_EQ(VolumeFor(experiment, own, request.environment).claim(), "mine");
  EXPECT_EQ(VolumeFor(experiment, {}, {}).claim(), "");
  request.cluster.volume = VolumeFor(experiment, {}, request.environment);
  const AttemptObject built = Build(request);
  ASSERT_TRUE(built.claim.has_value());
  const Json& metadata = (*built.claim)["metadata"];
  EXPECT_EQ(metadata["name"], "exp-suggestion");
  EXPECT_EQ(metadata["labels"], Json({{"katib.kubeflow.org/experiment", "exp"},
                                      {"app.kubernetes.io/managed-by", "shirabe"}}))
      << "it stays when a trial goes";
  EXPECT_EQ(metadata["ownerReferences"][0]["uid"], "uid-1");
  EXPECT_EQ((*built.claim)["spec"]["resources"]["requests"]["storage"], "1Gi");
  EXPECT_EQ(Pod(built.object).spec["volumes"][1]["persistentVolumeClaim"]["claimName"],
            "exp-suggestion");
}

TEST(PodBuild, WhatTheUserMountsThereStays) {
  AttemptRequest request = RequestOfKatib();
  Json object = Json::parse(kJob);
  object["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = {
      {{"name", "mine"}, {"mountPath", "/var/log/katib/checkpoints"}}};
  request.trial_spec = ParseStruct(object.dump());
  const AttemptObject built = Build(request);
  EXPECT_THAT(MountPaths(Pod(built.object).program),
              ElementsAre("/var/log/katib/checkpoints", "/shirabe"));
}

// ---- collectors of users' own -------------------------------------------------------------------

AttemptRequest WithCustom(const std::string& container) {
  AttemptRequest request = WithFile("/logs/metrics.log");
  auto* collector = request.cluster.collector.mutable_collector();
  collector->set_kind(v1::CUSTOM);
  *collector->mutable_custom_collector() = ParseStruct(container);
  return request;
}

// As Katib places it: it looks for the program's process, waits for its end, and ends.
TEST(PodBuild, ACustomCollectorRunsAfterTheProgramAndSeesItsProcesses) {
  AttemptRequest request = WithCustom(R"({"image": "collect:1", "restartPolicy": "Always"})");
  request.cluster.volume.set_claim("ckpt");
  const AttemptObject built = Build(request);
  const Pod pod(built.object);
  const Json& custom = pod.spec["containers"].back();
  EXPECT_EQ(custom["name"], "metrics-collector");
  EXPECT_FALSE(custom.contains("restartPolicy"));
  EXPECT_THAT(MountPaths(custom), ElementsAre("/logs"));
  EXPECT_EQ(Variable(custom, "SHIRABE_TRIAL"), "exp-3");
  EXPECT_EQ(pod.spec["containers"][0]["name"], "main");
  EXPECT_TRUE(pod.spec["shareProcessNamespace"]);
  EXPECT_EQ(built.recipe.collector, "metrics-collector");
  EXPECT_EQ(RecipeOf(built.object).collector, "metrics-collector");
  EXPECT_FALSE(Pod(Build(WithFile("/logs/metrics.log")).object)
                   .spec.contains("shareProcess"
                                  "Namespace"));
}

// Processes of the same user may look into each other's files: of the sidecar's there is none that
// the program does not have, but for the token that speaks for this attempt alone.
TEST(PodBuild, BesideACustomCollectorTheSidecarHoldsNothingElse) {
  AttemptRequest request = WithCustom(R"({"name": "csv", "image": "collect:1"})");
  request.cluster.volume.set_claim("ckpt");
  const AttemptObject built = Build(request);
  const Pod pod(built.object);
  std::vector<std::string> more = MountPaths(pod.program);
  more.push_back(kTokens);
  EXPECT_THAT(MountPaths(pod.sidecar), testing::UnorderedElementsAreArray(more));
  ASSERT_EQ(pod.sidecar["env"].size(), 1u);
  const v1::PodConfig config = ConfigOf(pod.sidecar);
  EXPECT_TRUE(config.token().empty());
  for (const Json& volume : pod.spec["volumes"]) {
    if (volume["name"] != "shirabe-token") continue;
    const Json& source = volume["projected"]["sources"][0]["serviceAccountToken"];
    EXPECT_EQ(source["audience"], "shirabe-pods");
  }
}

TEST(PodBuild, ACustomCollectorThatTakesWhatIsOursIsRefused) {
  for (const char* volume : {"shirabe-token", "shirabe-home"}) {
    EXPECT_THAT(Refusal(WithCustom(absl::StrCat(
                    R"({"name": "csv", "volumeMounts": [{"mountPath": "/x", "name": ")", volume,
                    R"("}]})"))),
                HasSubstr("customCollector[0].volumeMounts[0].name"));
  }
  EXPECT_THAT(Refusal(WithCustom(R"({"name": "shirabe-sidecar"})")),
              HasSubstr("that Shirabe adds"));
  EXPECT_THAT(Refusal(WithCustom(R"({"name": "main"})")),
              HasSubstr("customCollector.name: \"main\" is a container of the trial's own pod"));
}

// ---- folders of machines ------------------------------------------------------------------------

Status CheckPath(const std::string& path, const std::vector<std::string>& allowed) {
  v1::CheckpointVolume volume;
  volume.set_host_path(path);
  return CheckHostPath(volume, allowed);
}

TEST(HostPaths, WhatIsOnTheListAndBelowIsAllowed) {
  for (const char* path : {"/mnt/a", "/mnt/a/", "/mnt/a/b/c"}) {
    EXPECT_TRUE(CheckPath(path, {"/data", "/mnt/a/"}).ok()) << path;
  }
  EXPECT_TRUE(CheckHostPath(v1::CheckpointVolume(), {}).ok());
}

TEST(HostPaths, NothingElseIs) {
  for (const char* path : {"/", "/mnt", "/mnt/ab", "/mnt/a/../b", "/mnt/a/..", "/mnt//a", "mnt/a",
                           "/mnt/./a", "/etc"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckPath(path, {"/mnt/a"}))) << path;
  }
  EXPECT_THAT(Message(CheckPath("/etc", {})),
              AllOf(HasSubstr("spec.shirabe.checkpoint.volume.hostPath: \"/etc\""),
                    HasSubstr("allowed: none"), HasSubstr("--allow-host-path")));
}

TEST(HostPaths, TheListNamesFolders) {
  EXPECT_TRUE(ValidateHostPath("/mnt/a").ok());
  for (const char* path : {"", "/", "mnt", "/mnt/..", "/mnt/../etc"}) {
    EXPECT_FALSE(ValidateHostPath(path).ok()) << path;
  }
}

}  // namespace
}  // namespace shirabe::trial
