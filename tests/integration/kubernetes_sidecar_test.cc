// Attempts with our own containers around them, on a real cluster whose nodes have the image that
// SHIRABE_TEST_IMAGE names; skipped elsewhere.
#include <stdlib.h>

#include <string>

#include "tests/integration/kubernetes_cluster.h"

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
  const Sighting end = AwaitEnd(Nth(1));
  EXPECT_EQ(end.exit_code, 3) << end.message;
  EXPECT_EQ(LogOf(Nth(1)), "loss=0.5\n");
  EXPECT_EQ(ReadFile(executor_->Paths(Nth(1)).metrics_file).value_or(""), "{\"step\": 10}\n");
  ASSERT_EQ(end.checkpoints.size(), 1u);
  EXPECT_EQ(end.checkpoints[0].step(), 10);
  executor_->Forget(Nth(1));
  AttemptRequest again = Instrumented({{experiment_, 1}, 2}, "cat $SHIRABE_RESUME_FROM/m");
  again.resume = end.checkpoints;
  ASSERT_TRUE(executor_->Start(again).ok());
  const Sighting resumed = AwaitEnd(again.key);
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
  const Sighting end = AwaitEnd(Nth(1));
  EXPECT_EQ(end.exit_code, 75) << end.message;
  EXPECT_THAT(LogOf(Nth(1)), AnyOf(HasSubstr("early-stop"), HasSubstr("preempt")));
  ASSERT_EQ(end.checkpoints.size(), 1u);
  EXPECT_EQ(end.checkpoints[0].step(), 7);
}

}  // namespace
}  // namespace shirabe::trial
