#include "trial/pod_build.h"

#include "absl/strings/escaping.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "proto/shirabe/v1/pod.pb.h"
#include "tests/trial/parse_struct.h"
#include "trial/pod_paths.h"
#include "trial/records.h"

namespace shirabe::trial {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kJob[] = R"json({
  "apiVersion": "batch/v1", "kind": "Job",
  "spec": {"backoffLimit": 3, "ttlSecondsAfterFinished": 5, "template": {"spec": {
    "containers": [{"name": "main", "image": "train:1",
                    "command": ["python3", "train.py"], "args": ["--lr", "0.1"],
                    "env": [{"name": "MINE", "value": "$(SHIRABE_TRIAL)"},
                            {"name": "SHIRABE_SEED", "value": "7"}]}]}}}})json";

AttemptRequest Request(const std::string& object = kJob) {
  AttemptRequest request;
  request.key = {{{"team", "exp"}, 3}, 2};
  request.token = "secret";
  request.trial_spec = ParseStruct(object);
  request.primary_container = "main";
  request.environment = {{"SHIRABE_TRIAL", "exp-3"},
                         {"SHIRABE_SEED", "1"},
                         {"SHIRABE_PARAM_TEXT", "$(HOME) costs $5"},
                         {"SHIRABE_GRACE_SECONDS", "15"}};
  request.parameters_json = "{\"lr\": 0.1}\n";
  request.grace = absl::Seconds(15);
  request.cluster.trial_template.set_success_condition("status.succeeded");
  request.cluster.owner = "uid-1";
  return request;
}

PodOptions Options() {
  return {.image = "shirabe:1", .image_pull_policy = "Never", .server = "s:7450", .ca = "PEM"};
}

AttemptObject Build(const AttemptRequest& request, const PodPlace& place = {}) {
  auto built = BuildAttemptObject(request, Options(), place);
  EXPECT_TRUE(built.ok()) << built.status();
  return built.value_or(AttemptObject());
}

std::string Refusal(const AttemptRequest& request) {
  const auto built = BuildAttemptObject(request, Options(), {});
  EXPECT_EQ(built.status().code(), absl::StatusCode::kInvalidArgument) << built.status();
  return Message(built.status());
}

// The parts of a pod by name.
struct Pod {
  explicit Pod(const Json& object, const char* main = "main")
      : metadata(At(object, {"spec", "template", "metadata"})),
        spec(At(object, {"spec", "template", "spec"})),
        program(Named(At(spec, "containers"), main)),
        init(Named(At(spec, "initContainers"), "shirabe-init")),
        sidecar(Named(At(spec, "initContainers"), "shirabe-sidecar")) {}
  const Json& metadata;
  const Json& spec;
  const Json& program;
  const Json& init;
  const Json& sidecar;
};

std::string Variable(const Json& container, const std::string& name) {
  return Text(Named(At(container, "env"), name), {"value"});
}

std::vector<std::string> MountPaths(const Json& container) {
  std::vector<std::string> paths;
  for (const Json& mount : Items(At(container, "volumeMounts"))) {
    paths.push_back(Text(mount, {"mountPath"}));
  }
  return paths;
}

v1::PodConfig ConfigOf(const Json& container) {
  std::string text = Variable(container, "SHIRABE_POD");
  // As the kubelet would.
  for (size_t at = 0; (at = text.find("$$", at)) != std::string::npos; ++at) text.erase(at, 1);
  v1::PodConfig config;
  const auto status = google::protobuf::util::JsonStringToMessage(text, &config);
  EXPECT_TRUE(status.ok()) << text;
  return config;
}

// ---- the Job ------------------------------------------------------------------------------------

TEST(PodBuild, AJobIsNamedLabelledOwnedAndTamed) {
  const AttemptObject built = Build(Request());
  const Json& metadata = built.object["metadata"];
  EXPECT_EQ(metadata["name"], "exp-3-a2");
  EXPECT_EQ(metadata["namespace"], "team");
  EXPECT_EQ(metadata["ownerReferences"].dump(),
            R"([{"apiVersion":"kubeflow.org/v1beta1","blockOwnerDeletion":false,)"
            R"("controller":true,"kind":"Experiment","name":"exp","uid":"uid-1"}])");
  EXPECT_FALSE(metadata.contains("finalizers"));
  EXPECT_EQ(KeyOf(built.object), Request().key);
  EXPECT_EQ(AttemptIdOf(built.object), AttemptId(Request().key, "secret"));
  const Json& spec = built.object["spec"];
  EXPECT_EQ(spec["backoffLimit"], 0);
  EXPECT_EQ(spec["podReplacementPolicy"], "Failed");
  EXPECT_FALSE(spec.contains("ttlSecondsAfterFinished"));
  const Pod pod(built.object);
  EXPECT_EQ(pod.spec["restartPolicy"], "Never");
  EXPECT_EQ(pod.spec["terminationGracePeriodSeconds"], 15);
  EXPECT_EQ(pod.metadata["finalizers"].dump(), R"(["shirabe.dev/log"])");
  EXPECT_EQ(pod.metadata["labels"], metadata["labels"]);
  EXPECT_EQ(metadata.dump().find("secret"), std::string::npos);
}

TEST(PodBuild, TheSameRequestGivesTheSameObject) {
  EXPECT_EQ(Build(Request()).object, Build(Request()).object);
}

TEST(PodBuild, ARestartedControllerKnowsTheRecipe) {
  AttemptRequest request = Request();
  request.cluster.trial_template.set_retain(true);
  (*request.cluster.trial_template.mutable_primary_pod_labels())["role"] = "master";
  const AttemptRecipe recipe = RecipeOf(Build(request).object);
  EXPECT_EQ(recipe.primary_container, "main");
  EXPECT_EQ(recipe.success_condition, "status.succeeded");
  EXPECT_TRUE(recipe.retain);
  EXPECT_TRUE(recipe.instrumented);
  const Json pod = Json::parse(R"({"metadata": {"labels": {"role": "master"}},
                                   "spec": {"containers": [{"name": "main"}]}})");
  EXPECT_TRUE(IsPrimary(pod, recipe));
  EXPECT_FALSE(IsPrimary(Json::parse(R"({"spec": {"containers": [{"name": "main"}]}})"), recipe));
}

TEST(PodBuild, WithoutAnOwnerThereIsNone) {
  AttemptRequest request = Request();
  request.cluster.owner.clear();
  EXPECT_FALSE(Build(request).object["metadata"].contains("ownerReferences"));
}

TEST(PodBuild, RetriesOfTheJobItselfAreTakenOut) {
  AttemptRequest request = Request();
  Json object = Json::parse(kJob);
  object["spec"]["podFailurePolicy"] = {{"rules", Json::array()}};
  const AttemptObject built = Build(Request(object.dump()));
  EXPECT_FALSE(built.object["spec"].contains("podFailurePolicy"));
  EXPECT_THAT(built.warnings, ElementsAre(HasSubstr("spec.podFailurePolicy has no effect")));
}

TEST(PodBuild, TheUsersLongerGraceStays) {
  Json object = Json::parse(kJob);
  object["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 120;
  const AttemptObject built = Build(Request(object.dump()));
  const Pod pod(built.object);
  EXPECT_EQ(pod.spec["terminationGracePeriodSeconds"], 120);
  EXPECT_EQ(Variable(pod.program, "SHIRABE_GRACE_SECONDS"), "115");
  EXPECT_EQ(ConfigOf(pod.sidecar).grace().seconds(), 120);
}

// ---- the program --------------------------------------------------------------------------------

TEST(PodBuild, TheProgramRunsUnderTheSupervisorAsArgvNeverThroughAShell) {
  const AttemptObject built = Build(Request());
  const Pod pod(built.object);
  std::vector<std::string> expected =
      PodCommand(AttemptId(Request().key, "secret"), absl::Seconds(15));
  for (const char* word : {"python3", "train.py", "--lr", "0.1"}) expected.push_back(word);
  EXPECT_EQ(pod.program["command"], Json(expected));
  EXPECT_FALSE(pod.program.contains("args"));
}

TEST(PodBuild, TheContractComesBeforeTheUsersVariablesAndYieldsToThem) {
  const AttemptObject built = Build(Request());
  const Pod pod(built.object);
  EXPECT_EQ(Variable(pod.program, "SHIRABE_TRIAL"), "exp-3");
  EXPECT_EQ(Variable(pod.program, "SHIRABE_SEED"), "7");
  EXPECT_EQ(Variable(pod.program, "SHIRABE_GRACE_SECONDS"), "10");
  EXPECT_EQ(Variable(pod.program, "SHIRABE_METRICS_FILE"), "/shirabe/run/metrics.jsonl");
  EXPECT_EQ(Variable(pod.program, "SHIRABE_CHECKPOINT_DIR"),
            PodPaths(Request().key).checkpoint_dir);
  EXPECT_EQ(pod.program["env"].back()["name"], "SHIRABE_SEED");
  EXPECT_THAT(At(pod.program, "env"), SizeIs(11));  // nine of the contract's, and his two
  // Values are not templates of the cluster's.
  EXPECT_EQ(Variable(pod.program, "SHIRABE_PARAM_TEXT"), "$$(HOME) costs $$5");
  EXPECT_EQ(Variable(pod.program, "SHIRABE_POD"), "");
}

// ---- our containers -----------------------------------------------------------------------------

TEST(PodBuild, OursStandAroundTheUsersInitContainers) {
  Json object = Json::parse(kJob);
  object["spec"]["template"]["spec"]["initContainers"] =
      Json::array({Json{{"name", "fetch"}}, Json{{"name", "proxy"}, {"restartPolicy", "Always"}}});
  const AttemptObject built = Build(Request(object.dump()));
  const Pod pod(built.object);
  std::vector<std::string> names;
  for (const Json& container : pod.spec["initContainers"]) names.push_back(container["name"]);
  EXPECT_THAT(names, ElementsAre("shirabe-init", "fetch", "proxy", "shirabe-sidecar"));
  EXPECT_EQ(pod.sidecar["restartPolicy"], "Always");
  EXPECT_FALSE(pod.init.contains("restartPolicy"));
  EXPECT_EQ(pod.init["command"].dump(), R"(["shirabe","pod","init"])");
  EXPECT_EQ(pod.sidecar["lifecycle"]["preStop"]["exec"]["command"].dump(),
            R"(["shirabe","pod","stop"])");
  EXPECT_EQ(pod.sidecar["image"], "shirabe:1");
  EXPECT_EQ(pod.init["imagePullPolicy"], "Never");
}

TEST(PodBuild, EachIsToldWhatItNeedsAndTheTokenOnlyTheSidecar) {
  AttemptRequest request = Request();
  request.resume.emplace_back().set_step(40);
  request.cluster.metrics = {"loss"};
  request.cluster.collector.mutable_source()->mutable_filter()->add_metrics_format("^(\\w+)=(.*)$");
  const AttemptObject built = Build(request);
  const Pod pod(built.object);
  const v1::PodConfig init = ConfigOf(pod.init), sidecar = ConfigOf(pod.sidecar);
  EXPECT_EQ(init.token(), "");
  EXPECT_EQ(init.resume(0).step(), 40);
  EXPECT_EQ(init.parameters_json(), request.parameters_json);
  EXPECT_EQ(sidecar.token(), "");
  EXPECT_EQ(sidecar.token_path(), "/var/run/secrets/shirabe/token");
  EXPECT_EQ(sidecar.server(), "s:7450");
  EXPECT_EQ(sidecar.ca(), "PEM");
  EXPECT_EQ(sidecar.metrics(0), "loss");
  EXPECT_EQ(sidecar.collector().source().filter().metrics_format(0), "^(\\w+)=(.*)$");
  for (const v1::PodConfig& config : {init, sidecar}) {
    EXPECT_EQ(config.namespace_() + "/" + config.experiment(), "team/exp");
    EXPECT_EQ(config.trial(), 3);
    EXPECT_EQ(config.attempt(), 2);
    EXPECT_EQ(config.home(), "/shirabe/home");
  }
}

Json SecurityFor(const std::string& container, const std::string& pod) {
  Json object = Json::parse(kJob);
  Json& spec = object["spec"]["template"]["spec"];
  spec["containers"][0]["securityContext"] = Json::parse(container);
  spec["securityContext"] = Json::parse(pod);
  const AttemptObject built = Build(Request(object.dump()));
  return Pod(built.object).sidecar["securityContext"];
}

TEST(PodBuild, OursRunAsTheProgramsUser) {
  const Json as_program = SecurityFor(R"({"runAsUser": 1000, "privileged": true})", "{}");
  EXPECT_EQ(as_program["runAsUser"], 1000);
  EXPECT_FALSE(as_program.contains("privileged"));
  EXPECT_FALSE(as_program["capabilities"].contains("add"));
  const Json as_pod = SecurityFor("{}", R"({"runAsUser": 1000})");
  EXPECT_FALSE(as_pod.contains("runAsUser"));
  const Json unknown = SecurityFor("{}", "{}");
  EXPECT_EQ(unknown["runAsUser"], 0);
  EXPECT_EQ(unknown["capabilities"].dump(),
            R"({"add":["CHOWN","DAC_OVERRIDE","FOWNER"],"drop":["ALL"]})");
  EXPECT_EQ(unknown["allowPrivilegeEscalation"], false);
}

TEST(PodBuild, APodThatWasGuaranteedStaysSo) {
  Json object = Json::parse(kJob);
  object["spec"]["template"]["spec"]["containers"][0]["resources"] = {
      {"limits", {{"cpu", "4"}, {"memory", "8Gi"}}}};
  const AttemptObject guaranteed = Build(Request(object.dump()));
  const Json& resources = Pod(guaranteed.object).sidecar["resources"];
  EXPECT_EQ(resources["requests"], resources["limits"]);
  const AttemptObject plain = Build(Request());
  EXPECT_EQ(Pod(plain.object).sidecar["resources"]["requests"]["cpu"], "10m");
}

TEST(PodBuild, NamesAndPathsOfOursAreTaken) {
  Json object = Json::parse(kJob);
  Json& spec = object["spec"]["template"]["spec"];
  spec["volumes"] = Json::array({Json{{"name", "shirabe"}}});
  EXPECT_THAT(Refusal(Request(object.dump())),
              HasSubstr("trialSpec.spec.template.spec.volumes[0].name: \"shirabe\""));
  spec["volumes"] = Json::array({Json{{"name", "data"}}});
  spec["containers"][0]["volumeMounts"] =
      Json::array({Json{{"name", "data"}, {"mountPath", "/shirabe/home"}}});
  EXPECT_THAT(Refusal(Request(object.dump())),
              AllOf(HasSubstr("containers[0].volumeMounts[0].mountPath"),
                    HasSubstr("spec.shirabe.checkpoint.volume")));
}

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

v1::Checkpoint CheckpointOf(const AttemptKey& key, int64_t step) {
  v1::Checkpoint checkpoint;
  checkpoint.set_namespace_(key.trial.experiment.ns);
  checkpoint.set_experiment(key.trial.experiment.name);
  checkpoint.set_trial(key.trial.number);
  checkpoint.set_attempt(key.number);
  checkpoint.set_step(step);
  return checkpoint;
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
  request.resume = {CheckpointOf(first, 20), CheckpointOf(first, 10), CheckpointOf(parent, 10),
                    CheckpointOf(foreign, 10)};
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
    request.resume.push_back(CheckpointOf(key, i));
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

AttemptRequest WithFile(const std::string& path, const std::string& object = kJob) {
  AttemptRequest request = Request(object);
  request.cluster.collector.mutable_collector()->set_kind(v1::FILE_COLLECTOR);
  auto* file = request.cluster.collector.mutable_source()->mutable_file_system_path();
  file->set_path(path);
  file->set_kind(v1::FILE);
  return request;
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
  EXPECT_THAT(MountPaths(Pod(folder.object).sidecar), ElementsAre("/shirabe", "/logs"));
}

TEST(PodBuild, ACollectorsFileOnTheUsersVolumeIsReadThere) {
  Json object = Json::parse(kJob);
  object["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] =
      Json::array({Json{{"name", "all"}, {"mountPath", "/"}},
                   Json{{"name", "data"}, {"mountPath", "/data/"}, {"subPath", "a"}}});
  const AttemptObject built = Build(WithFile("/data/logs/metrics.log", object.dump()));
  const Pod pod(built.object);
  const Json& mount = pod.sidecar["volumeMounts"].back();
  EXPECT_EQ(mount.dump(), R"({"mountPath":"/data/","name":"data","readOnly":true,"subPath":"a"})");
  EXPECT_THAT(pod.spec["volumes"], SizeIs(1));
}

TEST(PodBuild, ACollectorsFileInOurOwnFoldersNeedsNoMount) {
  const AttemptObject built = Build(WithFile("$(SHIRABE_OUTPUT_DIR)/metrics.log"));
  const Pod pod(built.object);
  EXPECT_THAT(MountPaths(pod.sidecar), ElementsAre("/shirabe"));
  EXPECT_EQ(ConfigOf(pod.sidecar).collector().source().file_system_path().path(),
            PodPaths(Request().key).output_dir + "/metrics.log");
}

TEST(PodBuild, ACollectorsFileThatWouldHideTheProgramIsRefused) {
  EXPECT_THAT(Refusal(WithFile("metrics.log")), HasSubstr("workingDir"));
  EXPECT_THAT(Refusal(WithFile("/metrics.log")), HasSubstr("would hide"));
  Json object = Json::parse(kJob);
  object["spec"]["template"]["spec"]["containers"][0]["workingDir"] = "/app";
  EXPECT_THAT(Refusal(WithFile("metrics.log", object.dump())), HasSubstr("would hide"));
  const AttemptObject built = Build(WithFile("logs/metrics.log", object.dump()));
  EXPECT_THAT(MountPaths(Pod(built.object).program), ElementsAre("/shirabe", "/app/logs"));
}

TEST(PodBuild, ACustomCollectorRunsBesideTheProgram) {
  AttemptRequest request = WithFile("/logs/metrics.log");
  auto* collector = request.cluster.collector.mutable_collector();
  collector->set_kind(v1::CUSTOM);
  *collector->mutable_custom_collector() = ParseStruct(R"({"image": "collect:1"})");
  const AttemptObject built = Build(request);
  const Json& custom = Pod(built.object).spec["initContainers"].back();
  EXPECT_EQ(custom["name"], "metrics-collector");
  EXPECT_EQ(custom["restartPolicy"], "Always");
  EXPECT_THAT(MountPaths(custom), ElementsAre("/logs"));
  EXPECT_EQ(Variable(custom, "SHIRABE_TRIAL"), "exp-3");
}

// ---- what cannot be instrumented ----------------------------------------------------------------

TEST(PodBuild, AnImagesOwnEntrypointIsLeftAlone) {
  Json object = Json::parse(kJob);
  object["spec"]["template"]["spec"]["containers"][0].erase("command");
  const AttemptObject built = Build(Request(object.dump()));
  EXPECT_FALSE(built.recipe.instrumented);
  EXPECT_THAT(built.bare, HasSubstr("containers[0] has no command"));
  const Pod pod(built.object);
  EXPECT_TRUE(pod.init.is_null());
  EXPECT_EQ(pod.program["args"].dump(), R"(["--lr","0.1"])");
  EXPECT_EQ(Variable(pod.program, "SHIRABE_TRIAL"), "exp-3");
  EXPECT_EQ(Variable(pod.program, "SHIRABE_CHECKPOINT_DIR"), "");
  EXPECT_EQ(pod.metadata["finalizers"][0], "shirabe.dev/log");
  EXPECT_EQ(pod.spec["restartPolicy"], "Never");
  EXPECT_THAT(Refusal(WithFile("/logs/metrics.log", object.dump())),
              AllOf(HasSubstr("metricsCollectorSpec.collector.kind"), HasSubstr("no command")));
}

TEST(PodBuild, AJobOfSeveralPodsIsLeftAloneAndItsFirstPodIsPrimary) {
  Json object = Json::parse(kJob);
  object["spec"]["parallelism"] = 4;
  object["spec"]["completions"] = 4;
  object["spec"]["completionMode"] = "Indexed";
  const AttemptObject built = Build(Request(object.dump()));
  EXPECT_FALSE(built.recipe.instrumented);
  EXPECT_THAT(built.bare, HasSubstr("runs as 4 pods"));
  EXPECT_EQ(built.object["spec"]["parallelism"], 4);
  EXPECT_EQ(RecipeOf(built.object).primary_labels.at("batch.kubernetes.io/job-completion-index"),
            "0");
}

TEST(PodBuild, AWrongContainerOrKindIsNamed) {
  AttemptRequest request = Request();
  request.primary_container = "trainer";
  EXPECT_THAT(
      Refusal(request),
      AllOf(HasSubstr("primaryContainerName: \"trainer\" is no container"), HasSubstr("\"main\"")));
  EXPECT_THAT(Refusal(Request(R"({"kind": "Job", "spec": {}})")), HasSubstr("apiVersion"));
  EXPECT_THAT(Refusal(Request(R"({"apiVersion": "batch/v1", "spec": {}})")), HasSubstr("kind"));
  EXPECT_THAT(Refusal(Request(R"({"apiVersion": "batch/v1", "kind": "Job"})")), HasSubstr("spec"));
  EXPECT_THAT(Refusal(Request(R"({"apiVersion": "batch/v1", "kind": "Job", "spec": {}})")),
              HasSubstr("holds no containers"));
}

// ---- other kinds --------------------------------------------------------------------------------

constexpr char kContainers[] =
    R"({"spec": {"containers": [{"name": "main", "command": ["train"]}]}})";

TEST(PodBuild, ABarePod) {
  const AttemptObject built = Build(Request(
      R"({"apiVersion": "v1", "kind": "Pod",
          "spec": {"containers": [{"name": "main", "command": ["train"]}]}})"));
  EXPECT_TRUE(built.recipe.instrumented);
  EXPECT_EQ(built.object["metadata"]["finalizers"][0], "shirabe.dev/log");
  EXPECT_EQ(built.object["spec"]["restartPolicy"], "Never");
  EXPECT_FALSE(built.object["spec"].contains("backoffLimit"));
}

TEST(PodBuild, ATrainingOperatorsObjectWithOneRole) {
  const AttemptObject built =
      Build(Request(std::string(R"({"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "spec": {
          "runPolicy": {"ttlSecondsAfterFinished": 5}, "pytorchReplicaSpecs": {"Master": {
          "replicas": 1, "restartPolicy": "OnFailure", "template": )") +
                    kContainers + "}}}}"));
  EXPECT_TRUE(built.recipe.instrumented) << built.bare;
  const Json& master = built.object["spec"]["pytorchReplicaSpecs"]["Master"];
  EXPECT_EQ(master["restartPolicy"], "Never");
  EXPECT_EQ(master["template"]["metadata"]["labels"]["shirabe.dev/attempt"], "2");
  EXPECT_EQ(master["template"]["spec"]["initContainers"].size(), 2u);
  EXPECT_EQ(built.object["spec"]["runPolicy"].dump(), "{}");
  EXPECT_FALSE(built.object["spec"].contains("backoffLimit"));
}

TEST(PodBuild, SeveralRolesWithTheContainerAreReadFromOutside) {
  const std::string role = std::string(R"({"replicas": 1, "template": )") + kContainers + "}";
  const AttemptObject built =
      Build(Request(R"({"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "spec": {
          "pytorchReplicaSpecs": {"Master": )" +
                    role + R"(, "Worker": )" + role + "}}}"));
  EXPECT_FALSE(built.recipe.instrumented);
  EXPECT_THAT(built.bare, HasSubstr("2 pod templates"));
  for (const char* name : {"Master", "Worker"}) {
    const Json& pod = built.object["spec"]["pytorchReplicaSpecs"][name]["template"];
    EXPECT_EQ(pod["metadata"]["labels"]["katib.kubeflow.org/trial"], "exp-3");
    EXPECT_EQ(Variable(pod["spec"]["containers"][0], "SHIRABE_TRIAL"), "exp-3");
  }
}

TEST(PodBuild, SeveralReplicasOfOneRoleAreReadFromOutside) {
  const AttemptObject built =
      Build(Request(std::string(R"({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
          "spec": {"replicatedJobs": [{"replicas": 3, "template": {"spec": {"template": )") +
                    kContainers + "}}}]}}"));
  EXPECT_THAT(built.bare, HasSubstr("replicatedJobs[0].template.spec.template runs as 3 pods"));
}

TEST(PodBuild, AnObjectWithoutPodTemplatesIsPassedThrough) {
  const AttemptObject built = Build(Request(
      R"({"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "spec": {"templates": [
          {"name": "hp", "container": {"image": "train", "command": ["train"]}}]}})"));
  EXPECT_FALSE(built.recipe.instrumented);
  EXPECT_THAT(built.bare, HasSubstr("no pod template"));
  EXPECT_EQ(built.object["metadata"]["name"], "exp-3-a2");
  EXPECT_EQ(built.object["spec"]["templates"][0]["container"].dump(),
            R"({"command":["train"],"image":"train"})");
  EXPECT_EQ(built.api_version, "argoproj.io/v1alpha1");
}

// ---- capacity -----------------------------------------------------------------------------------

TEST(PodBuild, ThePlaceGoesIntoThePod) {
  PodPlace place;
  place.node_selector = {{"pool", "a100"}};
  place.tolerations.push_back({{"key", "spot"}});
  const AttemptObject built = Build(Request(), place);
  const Pod pod(built.object);
  EXPECT_EQ(pod.spec["nodeSelector"]["pool"], "a100");
  EXPECT_EQ(pod.spec["tolerations"][0]["key"], "spot");
}

TEST(PodBuild, AUserThatNobodyNamesIsWarnedOf) {
  Json object = Json::parse(kJob);
  object["spec"]["template"]["spec"]["securityContext"] = {{"runAsNonRoot", true}};
  EXPECT_THAT(Build(Request(object.dump())).warnings, ElementsAre(HasSubstr("set runAsUser")));
  EXPECT_THAT(Build(Request()).warnings, IsEmpty());
}

TEST(PodLabels, OfForeignObjectsAreNone) {
  EXPECT_FALSE(KeyOf(Json()).has_value());
  EXPECT_FALSE(KeyOf(Json::parse(R"({"metadata": {"namespace": "n", "labels": {
      "shirabe.dev/attempt": "x", "katib.kubeflow.org/trial": "exp-1",
      "katib.kubeflow.org/experiment": "exp"}}})"))
                   .has_value());
  EXPECT_EQ(AttemptIdOf(Json()), "");
  EXPECT_EQ(RecipeOf(Json()).primary_container, "");
}

TEST(PodJson, WholeNumbersBecomeIntegers) {
  const Json json = FromStruct(ParseStruct(R"({"a": 1, "b": 1.5, "c": 1e300, "d": [null, true]})"));
  EXPECT_TRUE(json["a"].is_number_integer());
  EXPECT_EQ(json["b"], 1.5);
  EXPECT_TRUE(json["c"].is_number_float());
  EXPECT_EQ(json["d"].dump(), "[null,true]");
}

}  // namespace
}  // namespace shirabe::trial
