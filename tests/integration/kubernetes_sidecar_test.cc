// Attempts with our own containers around them, on a real cluster whose nodes have the image that
// SHIRABE_TEST_IMAGE names; skipped elsewhere.
#include <stdlib.h>

#include <string>

#include "base/open_beneath.h"
#include "tests/integration/kubernetes_cluster.h"
#include "trial/kubernetes/checkpoint_volume.h"
#include "trial/pod/pod_volumes.h"

namespace shirabe::trial {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

// As a program saves: written beside, then renamed.
constexpr char kSave[] =
    "save() { mkdir $SHIRABE_CHECKPOINT_DIR/$1.tmp && echo $1 > $SHIRABE_CHECKPOINT_DIR/$1.tmp/m "
    "&& "
    "mv $SHIRABE_CHECKPOINT_DIR/$1.tmp $SHIRABE_CHECKPOINT_DIR/$1; }; ";

class KubernetesClusterSidecar : public KubernetesCluster {
 protected:
  void SetUp() override {
    if (getenv("SHIRABE_TEST_IMAGE") == nullptr) {
      GTEST_SKIP() << "SHIRABE_TEST_IMAGE names no image";
    }
    KubernetesCluster::SetUp();
  }
  AttemptRequest Instrumented(const AttemptKey& key, const std::string& script) {
    AttemptRequest request =
        RequestFor(key, "", {{"command", {"sh", "-c", kSave + script}}, {"args", Json::array()}});
    request.cluster.volume.set_host_path("/tmp/shirabe-" + experiment_.ns);
    request.environment = {{"SHIRABE_RESUME_FROM", ""}};
    return request;
  }
};

TEST_F(KubernetesClusterSidecar, ItBringsFilesCheckpointsAndTheExit) {
  const Status started = executor_->Start(Instrumented(
      Nth(1), "echo loss=0.5; save 10; echo '{\"step\": 10}' >> $SHIRABE_METRICS_FILE; exit 3"));
  ASSERT_TRUE(started.ok()) << started;
  const AttemptStatus end = AwaitEnd(Nth(1));
  EXPECT_EQ(end.exit_code, 3) << end.message;
  EXPECT_EQ(LogOf(Nth(1)), "loss=0.5\n");
  EXPECT_EQ(ReadFile(executor_->Paths(Nth(1)).metrics_file).value_or(""), "{\"step\": 10}\n");
  ASSERT_EQ(end.checkpoints.size(), 1u);
  EXPECT_EQ(end.checkpoints[0].step(), 10);
  executor_->Forget(Nth(1));
  AttemptRequest again = Instrumented({{experiment_, 1}, 2}, "cat $SHIRABE_RESUME_FROM/m");
  again.resume = end.checkpoints;
  ASSERT_TRUE(executor_->Start(again).ok());
  const AttemptStatus resumed = AwaitEnd(again.key);
  EXPECT_EQ(resumed.exit_code, 0) << resumed.message;
  EXPECT_EQ(LogOf(again.key), "10\n");
  ASSERT_TRUE(resumed.resumed.has_value());
  EXPECT_EQ(resumed.resumed->step(), 10);
}

TEST_F(KubernetesClusterSidecar, AStopReachesTheProgramAndWhatItSavesThen) {
  ASSERT_TRUE(executor_
                  ->Start(Instrumented(Nth(1),
                                       "trap 'cat $SHIRABE_CONTROL_FILE; save 7; exit 75' TERM; "
                                       "while :; do sleep 0.1; done"))
                  .ok());
  AwaitRunning(Nth(1));
  ASSERT_TRUE(executor_->Stop(Nth(1), v1::EARLY_STOPPED, absl::Seconds(10)).ok());
  const AttemptStatus end = AwaitEnd(Nth(1));
  EXPECT_EQ(end.exit_code, 75) << end.message;
  EXPECT_THAT(LogOf(Nth(1)), AnyOf(HasSubstr("early-stop"), HasSubstr("preempt")));
  ASSERT_EQ(end.checkpoints.size(), 1u);
  EXPECT_EQ(end.checkpoints[0].step(), 7);
}

// ---- what is left on a volume -------------------------------------------------------------------

class KubernetesClusterVolume : public KubernetesClusterSidecar {
 protected:
  v1::ExperimentSpec SpecOf(const AttemptRequest& request) {
    v1::ExperimentSpec spec;
    spec.set_parallel_trial_count(2);
    *spec.mutable_trial_template() = request.cluster.trial_template;
    *spec.mutable_trial_template()->mutable_trial_spec() = request.trial_spec;
    *spec.mutable_shirabe()->mutable_checkpoint()->mutable_volume() = request.cluster.volume;
    return spec;
  }
  // The nodes of these clusters are on this machine.
  std::string FolderOf(const ExperimentKey& experiment) const {
    return "/tmp/shirabe-" + experiment_.ns + "/trials/" + experiment.ns + "/" + experiment.name;
  }
  Json Claim(const std::string& name, const std::string& mode) {
    return {
        {"apiVersion", "v1"},
        {"kind", "PersistentVolumeClaim"},
        {"metadata", {{"name", name}, {"namespace", experiment_.ns}}},
        {"spec", {{"accessModes", {mode}}, {"resources", {{"requests", {{"storage", "1Mi"}}}}}}}};
  }
};

TEST_F(KubernetesClusterVolume, CheckpointsGoWithTheirExperimentAndNothingElseDoes) {
  const AttemptRequest request = Instrumented(Nth(1), "save 10; save 20");
  ASSERT_TRUE(executor_->Start(request).ok());
  const AttemptStatus end = AwaitEnd(Nth(1));
  ASSERT_EQ(end.checkpoints.size(), 2u) << end.message;
  executor_->Forget(Nth(1));
  const std::string folder = FolderOf(experiment_);
  const std::string other = FolderOf({experiment_.ns, "tuning-2"});
  ASSERT_TRUE(std::filesystem::exists(folder));
  ASSERT_TRUE(MakeDirs(other + "/tuning-2-1").ok());
  ASSERT_TRUE(executor_->RemoveFiles(experiment_, 0).ok());
  executor_->CleanVolume(experiment_, SpecOf(request));
  const Status waits = executor_->Start(request);
  EXPECT_TRUE(absl::IsResourceExhausted(waits)) << waits;
  EXPECT_TRUE(Await([&] { return !std::filesystem::exists(folder); }));
  EXPECT_TRUE(std::filesystem::exists(other));
  EXPECT_TRUE(Await([&] { return executor_->Start(request).ok(); })) << "and then it may begin";
  EXPECT_EQ(AwaitEnd(Nth(1)).checkpoints.size(), 2u);
  executor_->Forget(Nth(1));
  ASSERT_TRUE(executor_->RemoveFiles(experiment_, 0).ok());
  executor_->CleanVolume(experiment_, SpecOf(request));
  EXPECT_TRUE(Await([&] { return !std::filesystem::exists(folder); })) << "also the second time";
  EXPECT_TRUE(RemoveAll("/tmp/shirabe-" + experiment_.ns).ok());
}

TEST_F(KubernetesClusterVolume, AClaimOfATrialGoesWithItsExperiment) {
  AttemptRequest request = Instrumented(Nth(1), "save 10");
  request.cluster.volume.Clear();
  request.cluster.volume.set_size("1Mi");
  ASSERT_TRUE(executor_->Start(request).ok());
  const kube::Ref claim{Claims(), experiment_.ns, ClaimName(Nth(1).trial)};
  ASSERT_TRUE(Await([&] { return client_->Get(claim).ok(); }));
  ASSERT_TRUE(executor_->Stop(Nth(1), v1::USER, absl::ZeroDuration()).ok());
  AwaitEnd(Nth(1));
  executor_->Forget(Nth(1));
  ASSERT_TRUE(executor_->RemoveFiles(experiment_, 0).ok());
  executor_->CleanVolume(experiment_, SpecOf(request));
  EXPECT_TRUE(Await([&] { return absl::IsNotFound(client_->Get(claim).status()); }));
}

TEST_F(KubernetesClusterVolume, AClaimIsReadBeforeItIsUsed) {
  AttemptRequest request = Instrumented(Nth(1), "true");
  request.cluster.volume.Clear();
  request.cluster.volume.set_claim("shared");
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckSharedClaim(*client_, experiment_, SpecOf(request))));
  ASSERT_TRUE(client_->Create(Claims(), Claim("shared", "ReadWriteOnce")).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(CheckSharedClaim(*client_, experiment_, SpecOf(request))));
  request.cluster.volume.set_claim("many");
  ASSERT_TRUE(client_->Create(Claims(), Claim("many", "ReadWriteMany")).ok());
  EXPECT_TRUE(CheckSharedClaim(*client_, experiment_, SpecOf(request)).ok());
}

}  // namespace
}  // namespace shirabe::trial
