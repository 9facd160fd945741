// The Job that deletes checkpoints from a shared volume: that folder and nothing else.
#include "trial/kubernetes/checkpoint_volume.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/parse_struct.h"
#include "trial/pod/pod_names.h"

namespace shirabe::trial {
namespace {

const ExperimentKey kPodCleanerKey{"lab", "digits"};
const PodOptions kOptions = {.image = "shirabe:1", .image_pull_policy = "Never"};

v1::ExperimentSpec SpecWith(const std::string& pod_fields, const std::string& container_fields) {
  v1::ExperimentSpec spec;
  spec.mutable_trial_template()->set_primary_container_name("main");
  *spec.mutable_trial_template()->mutable_trial_spec() = ParseStruct(
      R"({"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {"spec": {)" + pod_fields +
      R"("containers": [{"name": "side"}, {)" + container_fields + R"("name": "main"}]}}}})");
  spec.mutable_shirabe()->mutable_checkpoint()->mutable_volume()->set_claim("checkpoints");
  return spec;
}

Json PodOf(const Json& job) { return job["spec"]["template"]["spec"]; }

TEST(PodCleaner, DeletesOneFolderOfTheClaimAndThenItself) {
  const auto job = MakeCleaner(kPodCleanerKey, SpecWith("", ""), kOptions);
  ASSERT_TRUE(job);
  EXPECT_EQ((*job)["metadata"]["name"], "digits-clean");
  EXPECT_EQ((*job)["metadata"]["namespace"], "lab");
  EXPECT_EQ((*job)["metadata"]["labels"]["app.kubernetes.io/managed-by"], "shirabe");
  EXPECT_FALSE(KeyOf(*job)) << "it is no attempt's";
  EXPECT_EQ((*job)["spec"]["backoffLimit"], 4);
  EXPECT_EQ((*job)["spec"]["ttlSecondsAfterFinished"], 300);
  const Json pod = PodOf(*job);
  EXPECT_EQ(pod["restartPolicy"], "Never");
  EXPECT_EQ(pod["volumes"], Json::parse(R"([{"name": "shirabe-home",
                             "persistentVolumeClaim": {"claimName": "checkpoints"}}])"));
  ASSERT_EQ(pod["containers"].size(), 1u);
  const Json& container = pod["containers"][0];
  EXPECT_EQ(container["image"], "shirabe:1");
  EXPECT_EQ(container["imagePullPolicy"], "Never");
  EXPECT_EQ(container["command"], Json::parse(R"(["shirabe", "pod", "clean", "lab", "digits"])"));
  EXPECT_EQ(container["volumeMounts"],
            Json::parse(R"([{"name": "shirabe-home", "mountPath": "/shirabe/home"}])"));
  EXPECT_EQ(container["securityContext"]["readOnlyRootFilesystem"], true);
}

TEST(PodCleaner, RunsWhereAndAsWhoTheTrialsRan) {
  const auto job =
      MakeCleaner(kPodCleanerKey,
                  SpecWith(R"("nodeSelector": {"disk": "nfs"}, "securityContext": {"fsGroup": 7},
                              "tolerations": [{"key": "${trialParameters.pool}"}],
                              "imagePullSecrets": [{"name": "registry"}], "hostNetwork": true,)",
                           R"("securityContext": {"runAsUser": 1000},)"),
                  kOptions);
  const Json pod = PodOf(*job);
  EXPECT_EQ(pod["nodeSelector"]["disk"], "nfs");
  EXPECT_EQ(pod["securityContext"]["fsGroup"], 7);
  EXPECT_EQ(pod["imagePullSecrets"][0]["name"], "registry");
  EXPECT_FALSE(pod.contains("tolerations")) << "which depend on a trial";
  EXPECT_FALSE(pod.contains("hostNetwork"));
  EXPECT_EQ(pod["containers"][0]["securityContext"]["runAsUser"], 1000);
}

TEST(PodCleaner, IsMadeForWhatOutlivesPodsAndTrialsOnly) {
  v1::ExperimentSpec spec = SpecWith("", "");
  v1::CheckpointVolume& volume = *spec.mutable_shirabe()->mutable_checkpoint()->mutable_volume();
  volume.Clear();
  EXPECT_FALSE(MakeCleaner(kPodCleanerKey, spec, kOptions));
  volume.set_size("1Gi");
  EXPECT_FALSE(MakeCleaner(kPodCleanerKey, spec, kOptions)) << "the claim goes as a whole";
  volume.Clear();
  volume.set_host_path("/mnt/checkpoints");
  EXPECT_EQ(PodOf(*MakeCleaner(kPodCleanerKey, spec, kOptions))["volumes"][0]["hostPath"]["path"],
            "/mnt/checkpoints");
}

TEST(PodCleaner, ItsEndIsReadFromItsConditions) {
  Json job = Json::object();
  EXPECT_FALSE(HasEnded(job));
  job["status"]["conditions"] = {{{"type", "Failed"}, {"status", "True"}}};
  EXPECT_TRUE(HasEnded(job));
  EXPECT_FALSE(HasCleaned(job));
  job["status"]["conditions"] = {{{"type", "Complete"}, {"status", "True"}}};
  EXPECT_TRUE(HasCleaned(job));
}

}  // namespace
}  // namespace shirabe::trial
