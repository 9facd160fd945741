#include "tests/trial/pod_built.h"
#include "tests/trial/saved.h"

namespace shirabe::trial {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::string Evictable(const AttemptObject& built) {
  return Text(built.object, {"spec", "template", "metadata", "annotations",
                             "cluster-autoscaler.kubernetes.io/safe-to-evict"});
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
  Json labels = metadata["labels"];
  EXPECT_EQ(labels[kAttemptIdLabel], AttemptIdOf(built.object));
  labels.erase(kAttemptIdLabel);  // it selects objects, not pods
  EXPECT_EQ(pod.metadata["labels"], labels);
  EXPECT_EQ(metadata.dump().find("secret"), std::string::npos);
}

// An autoscaler may take the machine where the work is kept elsewhere.
TEST(PodBuild, WhatLosesNothingMayBeEvicted) {
  AttemptRequest request = Request();
  request.cluster.volume.set_claim("checkpoints");
  EXPECT_EQ(Evictable(Build(request)), "true");
  request.cluster.volume.Clear();
  EXPECT_EQ(Evictable(Build(request)), "false") << "it would begin again from 0";
  Json object = Json::parse(kJob);
  Json& pod = object["spec"]["template"]["metadata"];
  pod["annotations"]["cluster-autoscaler.kubernetes.io/safe-to-evict"] = "true";
  request = Request(object.dump());
  request.cluster.volume.Clear();
  EXPECT_EQ(Evictable(Build(request)), "true") << "the user has said so";
}

TEST(PodBuild, TheSameRequestGivesTheSameObject) {
  EXPECT_EQ(Build(Request()).object, Build(Request()).object);
}

TEST(PodBuild, ARestartedControllerKnowsTheRecipe) {
  Json object = Json::parse(kJob);
  object["spec"]["template"]["metadata"]["labels"]["role"] = "master";
  AttemptRequest request = Request(object.dump());
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

TEST(PodBuild, ThatAProgramIsStartedOnceIsSaidWhereItWasToBeRestarted) {
  Json object = Json::parse(kJob);
  object["spec"]["template"]["spec"]["restartPolicy"] = "OnFailure";
  const AttemptObject built = Build(Request(object.dump()));
  EXPECT_EQ(built.object["spec"]["template"]["spec"]["restartPolicy"], "Never");
  EXPECT_THAT(built.warnings, ElementsAre(HasSubstr("spec.restartPolicy has no effect")));
}

// Nothing would ever be looked at.
TEST(PodBuild, LabelsThatNoPodWillHaveAreRefused) {
  AttemptRequest request = Request();
  auto& labels = *request.cluster.trial_template.mutable_primary_pod_labels();
  labels["batch.kubernetes.io/job-completion-index"] = "0";  // by the Job's controller
  labels["role"] = "master";
  EXPECT_THAT(Refusal(request), HasSubstr("primaryPodLabels: no pod will have role=master"));
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

// As on a laptop. What runs beside the program all the time is left alone.
TEST(PodBuild, TheUsersInitContainersHaveTheContractAndTheFoldersOfTheTrial) {
  Json object = Json::parse(kJob);
  object["spec"]["template"]["spec"]["initContainers"] = Json::array(
      {Json{{"name", "copy"}, {"args", Json::array({"--to=$(SHIRABE_OUTPUT_DIR)/model"})}},
       Json{{"name", "proxy"}, {"restartPolicy", "Always"}}});
  const AttemptObject built = Build(Request(object.dump()));
  const Pod pod(built.object);
  const Json& copy = pod.spec["initContainers"][1];
  for (const char* name : {"SHIRABE_TRIAL", "SHIRABE_OUTPUT_DIR", "SHIRABE_PARAM_TEXT"}) {
    EXPECT_EQ(Variable(copy, name), Variable(pod.program, name)) << name;
  }
  EXPECT_FALSE(Variable(copy, "SHIRABE_OUTPUT_DIR").empty());
  EXPECT_EQ(copy["volumeMounts"], pod.program["volumeMounts"]);
  EXPECT_FALSE(copy.contains("command")) << "its image's own";
  EXPECT_EQ(pod.spec["initContainers"][2].size(), 2u);
  object["spec"]["template"]["spec"]["initContainers"][0]["volumeMounts"] =
      Json::array({Json{{"name", "mine"}, {"mountPath", "/shirabe/home"}}});
  EXPECT_THAT(Refusal(Request(object.dump())),
              HasSubstr("initContainers[0].volumeMounts[0].mountPath"));
}

TEST(PodBuild, EachIsToldWhatItNeedsAndTheTokenOnlyTheSidecar) {
  AttemptRequest request = Request();
  request.resume = {Saved({request.key.trial, 1}, 40)};
  request.cluster.metrics = {"loss"};
  request.cluster.collector.mutable_source()->mutable_filter()->add_metrics_format("^(\\w+)=(.*)$");
  const AttemptObject built = Build(request);
  const Pod pod(built.object);
  const v1::PodConfig init = ConfigOf(pod.init), sidecar = ConfigOf(pod.sidecar);
  EXPECT_EQ(init.token(), "");
  ASSERT_EQ(init.resume_size(), 1);
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

// ---- what cannot be instrumented ----------------------------------------------------------------

TEST(PodBuild, AnImagesOwnEntrypointIsLeftAlone) {
  Json object = Json::parse(kJob);
  object["spec"]["template"]["spec"]["containers"][0].erase("command");
  const AttemptObject built = Build(Request(object.dump()));
  EXPECT_FALSE(built.recipe.instrumented);
  EXPECT_THAT(built.uninstrumented_reason, HasSubstr("containers[0] has no command"));
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
  EXPECT_THAT(built.uninstrumented_reason, HasSubstr("runs as 4 pods"));
  EXPECT_EQ(built.object["spec"]["parallelism"], 4);
  EXPECT_EQ(RecipeOf(built.object).primary_labels.at("batch.kubernetes.io/job-completion-index"),
            "0");
}

TEST(PodBuild, AWrongContainerOrKindIsNamed) {
  AttemptRequest request = Request();
  request.primary_container = "trainer";
  EXPECT_THAT(Refusal(request),
              AllOf(HasSubstr("primaryContainerName: \"trainer\" is not a container"),
                    HasSubstr("\"main\"")));
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
  EXPECT_TRUE(built.recipe.instrumented) << built.uninstrumented_reason;
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
  EXPECT_THAT(built.uninstrumented_reason, HasSubstr("2 pod templates"));
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
  EXPECT_THAT(built.uninstrumented_reason,
              HasSubstr("replicatedJobs[0].template.spec.template runs as 3 pods"));
}

TEST(PodBuild, AnObjectWithoutPodTemplatesIsPassedThrough) {
  const AttemptObject built = Build(Request(
      R"({"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "spec": {"templates": [
          {"name": "hp", "container": {"image": "train", "command": ["train"]}}]}})"));
  EXPECT_FALSE(built.recipe.instrumented);
  EXPECT_THAT(built.uninstrumented_reason, HasSubstr("no pod template"));
  EXPECT_EQ(built.object["metadata"]["name"], "exp-3-a2");
  EXPECT_EQ(built.object["spec"]["templates"][0]["container"].dump(),
            R"({"command":["train"],"image":"train"})");
  EXPECT_EQ(built.api_version, "argoproj.io/v1alpha1");
}

// ---- capacity -----------------------------------------------------------------------------------

TEST(PodBuild, ThePlaceGoesIntoThePod) {
  PodScheduling place;
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
