// What is said beforehand of trials that are more than a process: several pods, and a folder of
// checkpoints that all trials know by one path.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/experiment/specs.h"

namespace shirabe::experiment {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The same code that makes the object in a cluster says what becomes of it there.
TEST(PodRules, OfTrialsOfSeveralPods) {
  const std::string tfjob = ReadTestFile("katib/tfjob.yaml");
  EXPECT_THAT(FindingsOf(tfjob),
              ElementsAre(AllOf(HasSubstr("warning: spec.trialTemplate.trialSpec: checkpoints are "
                                          "not committed in a cluster"),
                                HasSubstr("Worker.template runs as 2 pods"))));
  const std::string custom = Replaced(tfjob, "kind: TensorFlowEvent",
                                      "kind: Custom\n      customCollector: {name: csv, image: a}");
  EXPECT_THAT(FindingsOf(custom), Contains(HasSubstr("is refused in a cluster: "
                                                     "spec.metricsCollectorSpec")));
}

TEST(PodRules, OfKatibsFolderOfCheckpoints) {
  const std::string good = ReadTestFile("katib/pbt.yaml");
  EXPECT_THAT(FindingsOf(good), IsEmpty());
  EXPECT_THAT(FindingsOf(Replaced(good, "value: /var/log/katib/checkpoints/", "value: /proc")),
              Contains(AllOf(HasSubstr("error: spec.algorithm.algorithmSettings[0].value"),
                             HasSubstr("cannot be the folder"))));
  EXPECT_THAT(FindingsOf(Replaced(good, "--checkpoint=/var/log/katib/checkpoints/", "--resume")),
              ElementsAre(HasSubstr("no command of the trial names /var/log/katib/checkpoints")));
}

}  // namespace
}  // namespace shirabe::experiment
