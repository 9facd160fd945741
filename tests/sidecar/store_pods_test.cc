// What a pod is made of where its experiment has code or copies in a store.
#include "absl/strings/str_cat.h"
#include "tests/trial/pod_built.h"
#include "tests/trial/saved.h"

namespace shirabe::trial {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kDigest(64, 'c');
const std::string kFolder = "/shirabe/code/" + kDigest;
constexpr char kTokens[] = "/var/run/secrets/shirabe";

AttemptRequest WithCode(const std::string& object = kJob) {
  AttemptRequest request = Request(object);
  request.cluster.code.set_store("team");
  request.cluster.code.set_prefix("packages");
  request.cluster.code.set_package("sha256:" + kDigest);
  return request;
}

AttemptRequest WithCopies() {
  AttemptRequest request = Request();
  request.cluster.artifacts.set_store("team");
  request.cluster.artifacts.set_prefix("vision");
  request.cluster.artifacts.set_checkpoints(true);
  return request;
}

const Json& MountAt(const Json& container, const std::string& path) {
  return ItemBy(At(container, "volumeMounts"), "mountPath", path);
}

TEST(PodStores, CodeIsThereBeforeTheProgramStartsInIt) {
  const AttemptObject built = Build(WithCode());
  const Pod pod(built.object);
  EXPECT_EQ(pod.program["workingDir"], kFolder);
  EXPECT_EQ(Variable(pod.program, "SHIRABE_CODE_DIR"), kFolder);
  EXPECT_TRUE(MountAt(pod.program, "/shirabe/code").value("readOnly", false));
  EXPECT_FALSE(MountAt(pod.init, "/shirabe/code").value("readOnly", false));
  EXPECT_EQ(ConfigOf(pod.init).code(), kDigest);
  EXPECT_EQ(ConfigOf(pod.init).server(), "s:7450");
  EXPECT_THAT(MountPaths(pod.init), Contains(kTokens));
  EXPECT_THAT(MountPaths(pod.program), Not(Contains(kTokens)));
  EXPECT_THAT(MountPaths(pod.sidecar), Not(Contains("/shirabe/code")));
  EXPECT_EQ(pod.init["terminationMessagePolicy"], "FallbackToLogsOnError");
  EXPECT_EQ(pod.spec["terminationGracePeriodSeconds"], 15) << "nothing is copied";
}

TEST(PodStores, AFolderOfTheTemplateIsWithinTheCodeUnlessItIsAbsolute) {
  Json object = Json::parse(kJob);
  Json& main = object["spec"]["template"]["spec"]["containers"][0];
  main["workingDir"] = "training";
  EXPECT_EQ(Pod(Build(WithCode(object.dump())).object).program["workingDir"],
            kFolder + "/training");
  main["workingDir"] = "/srv";
  EXPECT_EQ(Pod(Build(WithCode(object.dump())).object).program["workingDir"], "/srv");
  EXPECT_FALSE(Pod(Build(Request()).object).program.contains("workingDir"));
}

TEST(PodStores, StepsBeforeTheProgramHaveTheCodeToo) {
  Json object = Json::parse(kJob);
  object["spec"]["template"]["spec"]["initContainers"] = {
      {{"name", "copy"}, {"image", "train:1"}, {"command", {"python3", "copy.py"}}}};
  const AttemptObject built = Build(WithCode(object.dump()));
  const Json& copy = Named(built.object["spec"]["template"]["spec"]["initContainers"], "copy");
  EXPECT_EQ(copy["workingDir"], kFolder);
  EXPECT_EQ(Variable(copy, "SHIRABE_CODE_DIR"), kFolder);
  EXPECT_TRUE(MountAt(copy, "/shirabe/code").value("readOnly", false));
}

TEST(PodStores, CopiesTakeTheirTimeAndWhoResumesMayAskForThem) {
  const AttemptObject first = Build(WithCopies());
  EXPECT_THAT(MountPaths(Pod(first.object).init), Not(Contains(kTokens))) << "it fetches nothing";
  AttemptRequest request = WithCopies();
  request.resume = {Saved({request.key.trial, 1}, 20)};
  const AttemptObject built = Build(request);
  const Pod pod(built.object);
  EXPECT_THAT(MountPaths(pod.init), Contains(kTokens));
  for (const Json* container : {&pod.init, &pod.sidecar}) {
    const v1::PodConfig config = ConfigOf(*container);
    EXPECT_EQ(config.artifacts().store(), "team");
    EXPECT_TRUE(config.artifacts().checkpoints());
    EXPECT_EQ(config.artifacts().prefix(), "") << "it is the server's";
    EXPECT_EQ(config.token_path(), absl::StrCat(kTokens, "/token"));
  }
  EXPECT_EQ(pod.spec["terminationGracePeriodSeconds"], 15 + 600);
  EXPECT_EQ(ConfigOf(pod.sidecar).grace().seconds(), 15);
  EXPECT_EQ(pod.metadata["annotations"]["cluster-autoscaler.kubernetes.io/safe-to-evict"], "true");
}

// A machine is not kept for a pod that copies nothing.
TEST(PodStores, OnlyThePodThatMakesCopiesHasTheTimeForThem) {
  constexpr char kGrace[] = "terminationGracePeriodSeconds";
  AttemptRequest request = WithCopies();
  request.cluster.artifacts.set_checkpoints(false);
  EXPECT_EQ(Pod(Build(request).object).spec[kGrace], 15) << "none are wanted";
  request.cluster.artifacts.set_outputs(true);
  EXPECT_EQ(Pod(Build(request).object).spec[kGrace], 615);
  const Json pod = Json::parse(kJob)["spec"]["template"];
  Json other = pod;
  other["spec"]["containers"][0]["name"] = "other";
  Json object = {{"apiVersion", "kubeflow.org/v1"}, {"kind", "PyTorchJob"}};
  Json& roles = object["spec"]["pytorchReplicaSpecs"];
  roles["Master"] = {{"replicas", 1}, {"template", pod}};
  roles["Worker"] = {{"replicas", 2}, {"template", other}};
  const auto grace_of = [&](const char* role) {
    AttemptRequest copies = WithCopies();
    copies.trial_spec = ParseStruct(object.dump());
    const AttemptObject built = Build(copies);
    return Number(
        At(built.object, {"spec", "pytorchReplicaSpecs", role, "template", "spec", kGrace}));
  };
  EXPECT_EQ(grace_of("Master"), 615);
  EXPECT_EQ(grace_of("Worker"), 15);
  roles["Worker"]["template"] = pod;  // which of them is the program's is not told
  EXPECT_EQ(grace_of("Master"), 15);
}

TEST(PodStores, CodeThatCannotBeBroughtIsRefused) {
  Json object = Json::parse(kJob);
  object["spec"]["template"]["spec"]["containers"][0].erase("command");
  EXPECT_THAT(Refusal(WithCode(object.dump())),
              AllOf(HasSubstr("spec.shirabe.code"), HasSubstr("no command")));
}

TEST(PodStores, NoContainerOfTheUsersHasOurVolume) {
  Json object = Json::parse(kJob);
  object["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = {
      {{"name", "shirabe-code"}, {"mountPath", "/mine"}}};
  EXPECT_THAT(Refusal(WithCode(object.dump())), HasSubstr("shirabe-code"));
}

}  // namespace
}  // namespace shirabe::trial
