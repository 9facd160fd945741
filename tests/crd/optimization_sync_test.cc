// OptimizationJob objects of a cluster in memory: ours become an Experiment each, once, and show
// what becomes of it as Trainer's own controller would; those of others are left alone.
#include "crd/optimization_sync.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "convert/optimization_job.h"
#include "crd/object_conversion.h"
#include "crd/optimization_object.h"
#include "crd/resource_kinds.h"
#include "crd/schedule_object.h"
#include "tests/crd/fake_cluster.h"

namespace shirabe::crd {
namespace {

using kube::Json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Json SmallJob(const std::string& name, const Json& annotations) {
  Json object = Json::parse(R"({
    "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "OptimizationJob",
    "metadata": {"namespace": "team", "labels": {"owner": "mai"}},
    "spec": {
      "objectives": [{"metric": "loss", "direction": "Minimize"}],
      "searchAlgorithm": {"random": {}},
      "parameters": [{"name": "lr",
                      "searchSpace": {"uniform": {"min": "0.1", "max": "0.9", "type": "Float"}}}],
      "numTrials": 3, "parallelTrials": 2,
      "trainJobTemplate": {"spec": {"runtimeRef": {"name": "plain"}}}}})",
                            nullptr, false);
  object["metadata"]["name"] = name;
  if (!annotations.is_null()) object["metadata"]["annotations"] = annotations;
  return object;
}

const Json kOurs = {{convert::kJobManagedBy, "shirabe"}};

class OptimizationSyncTest : public testing::Test {
 protected:
  void Start(bool known = true) {
    if (known) cluster_.Define(OptimizationJobs());
    sync_ = nullptr;
    sync_ = OptimizationSync::Start({.kube = &cluster_,
                                     .clock = RealClock(),
                                     .interval = absl::Milliseconds(10),
                                     .absent = absl::Milliseconds(10)});
  }
  Json Put(const std::string& name, Json annotations = kOurs) {
    return cluster_.Put(OptimizationJobs(), SmallJob(name, std::move(annotations)));
  }
  static kube::Ref Ref(const std::string& name) { return {OptimizationJobs(), "team", name}; }
  std::optional<Json> Experiment(const std::string& name) {
    return cluster_.Find({Experiments(), "team", name});
  }
  // "Status Reason: Message"; "" while there is none.
  std::string ConditionNow(const std::string& name, const std::string& type) {
    const auto object = cluster_.Find(Ref(name));
    if (!object) return "";
    const Json& condition = kube::Condition(*object, type);
    if (condition.is_null()) return "";
    return absl::StrCat(Text(condition, {"status"}), " ", Text(condition, {"reason"}), ": ",
                        Text(condition, {"message"}));
  }
  bool AwaitCondition(const std::string& name, const std::string& type, const std::string& words) {
    return cluster_.Await([&] { return absl::StrContains(ConditionNow(name, type), words); });
  }
  bool HasEvent(const std::string& reason, const std::string& words) {
    for (const Json& event : cluster_.All("events")) {
      if (Text(event, {"reason"}) != reason) continue;
      if (!absl::StrContains(Text(event, {"message"}), words)) continue;
      EXPECT_EQ(Text(event, {"involvedObject", "kind"}), "OptimizationJob");
      EXPECT_EQ(Text(event, {"involvedObject", "apiVersion"}), convert::kTrainerVersion);
      return true;
    }
    return false;
  }
  void End(const std::string& name, const std::string& how, const std::string& reason) {
    cluster_.Edit({Experiments(), "team", name}, [&](Json& object) {
      object["status"] = {
          {"conditions",
           Json::array(
               {{{"type", how}, {"status", "True"}, {"reason", reason}, {"message", "m"}}})},
          {"currentOptimalTrial",
           {{"bestTrialName", name + "-2"},
            {"parameterAssignments", Json::array({{{"name", "lr"}, {"value", "0.25"}}})}}}};
    });
  }

  FakeCluster cluster_;
  std::unique_ptr<OptimizationSync> sync_;
};

TEST_F(OptimizationSyncTest, OursBecomesAnExperimentThatReadsWithoutAProblem) {
  const Json object = Put("tune");
  Start();
  ASSERT_TRUE(AwaitCondition("tune", "Created", "True ExperimentCreated: experiment tune"));
  const Json made = *Experiment("tune");
  EXPECT_TRUE(IsOwnedBy(made, object));
  EXPECT_EQ(LabelOf(made, "owner"), "mai");
  EXPECT_EQ(LabelOf(made, kManagedLabel), "true");
  EXPECT_EQ(Text(made, {"spec", "trialTemplate", "trialSpec", "kind"}), "TrainJob");
  const ConvertedObject read = ConvertObject(made);
  EXPECT_THAT(read.problems, IsEmpty());
  EXPECT_EQ(read.experiment.spec().max_trial_count(), 3);
  EXPECT_EQ(read.experiment.spec().parallel_trial_count(), 2);
  EXPECT_TRUE(HasEvent("ExperimentCreated", "tune"));
  End("tune", "Succeeded", "ExperimentMaxTrialsReached");
  ASSERT_TRUE(AwaitCondition("tune", "Complete", "True MaxTrialsReached: m"));
  const Json ended = *cluster_.Find(Ref("tune"));
  EXPECT_EQ(Text(ended, {"status", "result", "trainJobName"}), "tune-2");
  EXPECT_EQ(ended["status"]["result"]["parameters"],
            Json::array({{{"name", "lr"}, {"value", "0.25"}}}));
  for (const Json& condition : ended["status"]["conditions"]) {
    for (const char* field : {"type", "status", "reason", "message", "lastTransitionTime"}) {
      EXPECT_TRUE(condition.contains(field)) << field << condition;
    }
  }
}

TEST_F(OptimizationSyncTest, OthersAreLeftAlone) {
  Put("upstreams", nullptr);
  Put("of-another", {{convert::kJobManagedBy, "another-controller"}});
  Start();
  // Ours, which is looked at after them, is there.
  Put("zz");
  ASSERT_TRUE(AwaitCondition("zz", "Created", "True"));
  EXPECT_EQ(cluster_.All("experiments").size(), 1u);
  for (const char* name : {"upstreams", "of-another"}) {
    EXPECT_FALSE(cluster_.Find(Ref(name))->contains("status")) << name;
  }
  EXPECT_EQ(cluster_.All("events").size(), 1u);
  // Annotated later, it is ours from then on.
  cluster_.Edit(Ref("upstreams"), [](Json& object) { object["metadata"]["annotations"] = kOurs; });
  EXPECT_TRUE(AwaitCondition("upstreams", "Created", "True"));
}

TEST_F(OptimizationSyncTest, TheKindMayComeLater) {
  Put("tune");
  Start(/*known=*/false);
  EXPECT_FALSE(cluster_.Await([n = 0]() mutable { return ++n > 10; }) && Experiment("tune"));
  cluster_.Define(OptimizationJobs());
  EXPECT_TRUE(AwaitCondition("tune", "Created", "True"));
}

TEST_F(OptimizationSyncTest, AfterACrashBetweenMakingAndNotingItIsFollowed) {
  const Json object = Put("tune");
  cluster_.Put(Experiments(), ReadOptimizationObject(object).experiment);
  Start();
  ASSERT_TRUE(AwaitCondition("tune", "Created", "True"));
  EXPECT_EQ(cluster_.All("experiments").size(), 1u);
  End("tune", "Failed", "ExperimentFailed");
  ASSERT_TRUE(AwaitCondition("tune", "Failed", "True"));
  // What has ended is not begun again, also where its Experiment was deleted, and by the next.
  cluster_.Remove({Experiments(), "team", "tune"});
  Start();
  Put("zz");
  ASSERT_TRUE(AwaitCondition("zz", "Created", "True"));
  EXPECT_FALSE(Experiment("tune"));
}

TEST_F(OptimizationSyncTest, AWrongAnnotationIsSaidAndMayBeCorrected) {
  Json annotations = kOurs;
  annotations[convert::kJobTrials] = "lots";
  Put("tune", annotations);
  Start();
  ASSERT_TRUE(AwaitCondition("tune", "Created", "False InvalidAnnotation: "));
  EXPECT_THAT(ConditionNow("tune", "Created"),
              AllOf(HasSubstr("shirabe.dev/num-trials"), HasSubstr("lots"), HasSubstr("must be")));
  EXPECT_EQ(ConditionNow("tune", "Failed"), "");
  EXPECT_TRUE(HasEvent("InvalidAnnotation", "lots"));
  EXPECT_FALSE(Experiment("tune"));
  cluster_.Edit(Ref("tune"), [](Json& object) {
    object["metadata"]["annotations"][convert::kJobTrials] = "250";
  });
  ASSERT_TRUE(AwaitCondition("tune", "Created", "True"));
  EXPECT_EQ(Number(*Experiment("tune"), {"spec", "maxTrialCount"}), 250);
}

TEST_F(OptimizationSyncTest, ASpecThatCannotBeRunFailsForGood) {
  Json object = SmallJob("tune", kOurs);
  object["spec"]["parameters"][0]["searchSpace"]["uniform"]["max"] = "1e999";
  cluster_.Put(OptimizationJobs(), object);
  Start();
  ASSERT_TRUE(AwaitCondition("tune", "Failed", "True InvalidSpec: "));
  EXPECT_THAT(ConditionNow("tune", "Failed"), HasSubstr("uniform.max: must be a finite number"));
  EXPECT_FALSE(Experiment("tune"));
}

TEST_F(OptimizationSyncTest, MoreTrialsAreAskedForWhileItRuns) {
  Put("tune");
  Start();
  ASSERT_TRUE(AwaitCondition("tune", "Created", "True"));
  cluster_.Edit(Ref("tune"), [](Json& object) {
    object["metadata"]["annotations"][convert::kJobTrials] = "40";
  });
  EXPECT_TRUE(cluster_.Await([&] {
    return Number(*Experiment("tune"), {"spec", "maxTrialCount"}) == 40;
  }));
  // What is wrong leaves it as it was, and is said.
  cluster_.Edit(Ref("tune"), [](Json& object) {
    object["metadata"]["annotations"][convert::kJobTrials] = "-1";
  });
  ASSERT_TRUE(AwaitCondition("tune", "Created", "True ExperimentCreated: "));
  EXPECT_TRUE(AwaitCondition("tune", "Created", "not applied: metadata.annotations"));
  EXPECT_EQ(Number(*Experiment("tune"), {"spec", "maxTrialCount"}), 40);
}

TEST_F(OptimizationSyncTest, AnExperimentOfAnotherIsLeftAlone) {
  cluster_.Put(Experiments(), {{"apiVersion", kApiVersion},
                               {"kind", "Experiment"},
                               {"metadata", {{"name", "tune"}, {"namespace", "team"}}}});
  Put("tune");
  Start();
  ASSERT_TRUE(AwaitCondition("tune", "Created", "False NameTaken: "));
  EXPECT_FALSE(Experiment("tune")->contains("spec"));
}

TEST_F(OptimizationSyncTest, NamesThatNoExperimentHasGetOneOfTheirOwn) {
  const std::string name = std::string(60, 'a') + ".b";
  Put(name);
  Start();
  ASSERT_TRUE(AwaitCondition(name, "Created", "True"));
  const std::string made = ExperimentNameFor(SmallJob(name, kOurs));
  EXPECT_TRUE(ValidateExperimentName(made).ok()) << made;
  EXPECT_TRUE(Experiment(made));
  EXPECT_NE(made, ExperimentNameFor(SmallJob(std::string(60, 'a') + ".c", kOurs)));
}

}  // namespace
}  // namespace shirabe::crd
