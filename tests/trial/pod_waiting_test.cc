#include "trial/kubernetes/wait_reasons.h"

#include "base/file_io.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/paths.h"
#include "tests/trial/pod_samples.h"

namespace shirabe::trial {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Json Event(const char* reason, const char* message, const char* time = "2026-11-21T12:00:00Z") {
  return {{"reason", reason}, {"message", message}, {"lastTimestamp", time}};
}

std::optional<PodWaiting> Why(const Json& pod, std::vector<Json> events = {}) {
  return WhyWaiting({.pod = &pod, .events = std::move(events), .primary = "main"});
}

Json Unschedulable(const std::string& message) {
  Json pod = PodSample().pod;
  pod["status"]["conditions"] = Json::array({Json{{"type", "PodScheduled"},
                                                  {"status", "False"},
                                                  {"reason", "Unschedulable"},
                                                  {"message", message}}});
  return pod;
}

Json WaitingFor(const char* reason, const char* message) {
  Json pod = PodSample().Scheduled().pod;
  const Json waiting = {{"reason", reason}, {"message", message}};
  pod["status"]["containerStatuses"] =
      Json::array({Json{{"name", "main"}, {"state", {{"waiting", waiting}}}}});
  return pod;
}

TEST(PodWaiting, NothingIsWrongWhileThingsTakeTheirTime) {
  EXPECT_FALSE(Why(PodSample().pod).has_value());
  EXPECT_FALSE(Why(PodSample().Scheduled().pod).has_value());
  EXPECT_FALSE(Why(WaitingFor("ContainerCreating", "")).has_value());
  EXPECT_FALSE(Why(WaitingFor("PodInitializing", "")).has_value());
  EXPECT_FALSE(Why(PodSample().Running().pod).has_value());
  EXPECT_FALSE(Why(PodSample().Ended(1, "Error").pod).has_value());
}

// The scheduler's own sentence, and what to do; it may wait as long as it likes.
TEST(PodWaiting, SchedulersSentencesGetANextStep) {
  const std::vector<std::pair<const char*, const char*>> hints = {
      {"0/3 nodes are available: 3 Insufficient nvidia.com/gpu.", "All GPUs are in use"},
      {"0/3 nodes are available: 1 node(s) had untolerated taint {spot: true}.", "tolerations"},
      {"0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
       "kubectl describe pvc"},
      {"persistentvolumeclaim \"ckpt\" not found", "Create the claim"},
      {"0/3 nodes are available: waiting for ephemeral volume controller to create the "
       "persistentvolumeclaim \"a-1-shirabe\".",
       "quota of claims"},
      {"0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.",
       "--show-labels"},
      {"0/3 nodes are available: 3 Insufficient cpu.", "parallelTrialCount"}};
  for (const auto& [sentence, next] : hints) {
    const auto why = Why(Unschedulable(sentence));
    ASSERT_TRUE(why.has_value()) << sentence;
    EXPECT_EQ(why->reason, "Unschedulable");
    EXPECT_THAT(why->text, AllOf(HasSubstr(sentence), HasSubstr(next)));
    EXPECT_FALSE(why->never_starts);
    EXPECT_EQ(why->give_up, absl::InfiniteDuration());
  }
}

TEST(PodWaiting, GatesOfAQueue) {
  Json pod = Unschedulable("Scheduling is blocked due to non-empty scheduling gates");
  pod["status"]["conditions"][0]["reason"] = "SchedulingGated";
  pod["spec"]["schedulingGates"] = Json::array({Json{{"name", "kueue.x-k8s.io/admission"}}});
  EXPECT_EQ(Why(pod)->reason, "SchedulingGated");
  EXPECT_THAT(Why(pod)->text, HasSubstr("kueue.x-k8s.io/admission"));
}

TEST(PodWaiting, ImagesThatCannotBePulled) {
  const Json pod = WaitingFor("ImagePullBackOff", "Back-off pulling image \"nope:1\"");
  const auto why = Why(pod, {Event("Failed", "Failed to pull image \"nope:1\": not found"),
                             Event("Failed", "Error: ErrImagePull")});
  EXPECT_EQ(why->reason, "ImagePullBackOff");
  EXPECT_THAT(why->text, AllOf(HasSubstr("nope:1\": not found"), HasSubstr("imagePullSecrets")));
  EXPECT_TRUE(why->never_starts);
  EXPECT_EQ(why->give_up, absl::Minutes(10));
  EXPECT_THAT(Why(pod)->text, HasSubstr("Back-off pulling"));  // without the events
  EXPECT_TRUE(Why(WaitingFor("InvalidImageName", "invalid reference format"))->never_starts);
  // It comes and goes; how long has been waited is counted by the reason.
  EXPECT_EQ(Why(WaitingFor("ErrImagePull", "not found"))->reason, "ImagePullBackOff");
}

TEST(PodWaiting, MissingConfigurationIsNamed) {
  const auto why = Why(WaitingFor("CreateContainerConfigError",
                                  "couldn't find key lr in ConfigMap default/settings"));
  EXPECT_THAT(why->text, AllOf(HasSubstr("key lr in ConfigMap default/settings"),
                               HasSubstr("or correct its name")));
  EXPECT_TRUE(why->never_starts);
}

TEST(PodWaiting, AnInitContainerIsNamed) {
  Json pod = PodSample().Scheduled().pod;
  pod["status"]["initContainerStatuses"] = Json::array(
      {Json{{"name", "fetch"}, {"state", {{"waiting", {{"reason", "ErrImagePull"}}}}}}});
  EXPECT_THAT(Why(pod)->text, HasSubstr("container fetch"));
  pod["status"]["initContainerStatuses"][0]["state"] = {{"running", Json::object()}};
  EXPECT_EQ(Why(pod)->reason, "Initializing");
  pod["status"]["initContainerStatuses"][0]["name"] = "shirabe-init";
  EXPECT_EQ(Why(pod)->reason, "PreparingCheckpoint");
  pod["status"]["initContainerStatuses"][0]["started"] = true;  // a sidecar, up and running
  EXPECT_FALSE(Why(pod).has_value());
}

TEST(PodWaiting, VolumesAreKnownByTheirEvents) {
  const Json pod = PodSample().Scheduled().pod;
  const auto missing =
      Why(pod, {Event("FailedMount", "old news", "2026-11-21T11:00:00Z"),
                Event("FailedMount", "MountVolume.SetUp failed: configmap \"c\" not found")});
  EXPECT_THAT(missing->text, HasSubstr("configmap \"c\" not found"));
  EXPECT_TRUE(missing->never_starts);
  const auto held = Why(pod, {Event("FailedAttachVolume", "Multi-Attach error for volume")});
  EXPECT_THAT(held->text, HasSubstr("another node holds"));
  EXPECT_FALSE(held->never_starts);
  Json ready = pod;
  ready["status"]["conditions"] =
      Json::array({Json{{"type", "PodReadyToStartContainers"}, {"status", "True"}}});
  EXPECT_FALSE(Why(ready, {Event("FailedMount", "it is mounted by now")}).has_value());
}

TEST(PodWaiting, WhatTakesItsTimeIsSaidOnceItIsWorthAWord) {
  const auto preparing = [](const Json& pod) {
    return WhyPreparing({.pod = &pod, .events = {}, .primary = "main"});
  };
  EXPECT_FALSE(preparing(PodSample().pod).has_value()) << "no node yet";
  EXPECT_FALSE(preparing(PodSample().Running().pod).has_value());
  Json pod = WaitingFor("ContainerCreating", "");
  pod["spec"]["nodeName"] = "node-7";
  pod["status"]["containerStatuses"][0]["image"] = "registry/large:1";
  const Json sandbox = {{"type", "PodReadyToStartContainers"},
                        {"status", "False"},
                        {"lastTransitionTime", "2026-11-21T12:00:00Z"}};
  pod["status"]["conditions"] = Json::array({sandbox});
  EXPECT_THAT(preparing(pod)->text, AllOf(HasSubstr("volumes are being attached and mounted"),
                                          HasSubstr("on node-7 since 2026-11-21T12:00:00Z")));
  pod["status"]["conditions"][0]["status"] = "True";
  EXPECT_THAT(
      preparing(pod)->text,
      HasSubstr("the image registry/large:1 of its container main is being pulled on node-7"));
  EXPECT_EQ(preparing(pod)->give_up, absl::InfiniteDuration());
  pod["status"]["initContainerStatuses"] = Json::array(
      {Json{{"name", "fetch"}, {"image", "f:1"}, {"state", {{"waiting", Json::object()}}}}});
  EXPECT_THAT(preparing(pod)->text, HasSubstr("the image f:1 of its container fetch"));
}

TEST(PodWaiting, APullSecretThatIsMissingIsSaidWithTheImage) {
  const auto why = Why(WaitingFor("ErrImagePull", "pull access denied"),
                       {Event("FailedToRetrieveImagePullSecret",
                              "Unable to retrieve some image pull secrets (registry)")});
  EXPECT_THAT(why->text, AllOf(HasSubstr("pull access denied. Unable"), HasSubstr("(registry)")));
}

TEST(PodWaiting, WithoutAPodTheJobTells) {
  Json job = Json::parse(R"({"spec": {"suspend": true}})");
  WaitingFacts facts{.object = &job, .primary = "main"};
  EXPECT_EQ(WhyWaiting(facts)->reason, "Suspended");
  job["spec"]["suspend"] = false;
  EXPECT_FALSE(WhyWaiting(facts).has_value());
  facts.events = {Event("FailedCreate",
                        "Error creating: pods \"x\" is forbidden: exceeded quota: q, "
                        "requested: pods=1, used: pods=4, limited: pods=4")};
  EXPECT_EQ(WhyWaiting(facts)->reason, "QuotaExceeded");
  EXPECT_THAT(WhyWaiting(facts)->text, HasSubstr("used: pods=4"));
  EXPECT_EQ(WhyWaiting(facts)->give_up, absl::InfiniteDuration());
  // The training operator 1.7 drops what it does not know, and says it in its own word.
  facts.events = {Event("FailedCreatePod",
                        "Error creating: Pod \"tf-1-a1-worker-0\" is invalid: "
                        "spec.initContainers[1].lifecycle: Forbidden: may not be set for init "
                        "containers without restartPolicy=Always")};
  EXPECT_EQ(WhyWaiting(facts)->reason, "NoNativeSidecars");
  EXPECT_TRUE(WhyWaiting(facts)->never_starts);
}

// As Kubernetes 1.34 with containerd showed them, each brought about on purpose.
TEST(PodWaiting, RealPods) {
  const auto text = ReadFile(SourceDir() + "/tests/testdata/real_pods.json");
  ASSERT_TRUE(text.ok()) << text.status();
  const Json real = Json::parse(*text);
  const auto why = [&](const char* name) {
    const Json& events = Items(At(real, {"events", name}));
    const auto waiting = Why(At(real, {"pods", name}), {events.begin(), events.end()});
    return waiting ? waiting->reason + ": " + waiting->text : "";
  };
  EXPECT_THAT(why("nopull"), AllOf(HasSubstr("ImagePullBackOff: container main"),
                                   HasSubstr("connection refused")));
  EXPECT_THAT(why("never"), HasSubstr("ErrImageNeverPull"));
  EXPECT_THAT(why("noconfig"), HasSubstr("configmap \"settings\" not found"));
  EXPECT_THAT(why("nomount"), AllOf(HasSubstr("FailedMount"), HasSubstr("\"nothere\" not found")));
  EXPECT_THAT(why("noclaim"),
              AllOf(HasSubstr("\"ckpt\" not found"), HasSubstr("Create the claim")));
  EXPECT_THAT(why("gated"), HasSubstr("kueue.x-k8s.io/admission"));
  for (const char* over : {"oom", "pending", "evicted", "outofcpu"}) EXPECT_EQ(why(over), "");
}

TEST(PodWaiting, Refusals) {
  const auto reason = [](const char* words) { return WhyRefused(words).reason; };
  EXPECT_EQ(reason("admission webhook \"policy.io\" denied the request: no latest tags"),
            "AdmissionDenied");
  EXPECT_EQ(reason("failed calling webhook \"policy.io\": connection refused"),
            "WebhookUnavailable");
  EXPECT_EQ(reason("pods \"x\" is forbidden: violates PodSecurity \"restricted:latest\""),
            "PodSecurity");
  // As Kubernetes 1.36 says them.
  for (const char* words : {"pods \"x\" is forbidden: maximum cpu usage per Container is 500m, but "
                            "limit is 2",
                            "pods \"x\" is forbidden: minimum memory usage per Pod is 1Gi, but "
                            "request is 128Mi",
                            "pods \"x\" is forbidden: cpu max limit to request ratio per Container "
                            "is 2, but provided ratio is 4.000000"}) {
    EXPECT_EQ(reason(words), "LimitRange") << words;
  }
  EXPECT_TRUE(WhyRefused("maximum cpu usage per Container is 1").never_starts);
  EXPECT_EQ(reason("something else"), "FailedCreate");
  const PodWaiting unsaid = WhyRefused("failed quota: q: must specify limits.cpu for: main");
  EXPECT_TRUE(unsaid.never_starts);
  EXPECT_THAT(unsaid.text, HasSubstr("requests and limits"));
}

}  // namespace
}  // namespace shirabe::trial
