// Kinds whose pods come of more than a pod template in the object: what their operators are told,
// and how their pods are found. Objects and pods have the shapes that Trainer 2.3 with JobSet 0.12,
// Argo 3.7 and Tekton 1.6 give them.
#include "trial/pod/operator_kinds.h"

#include "tests/trial/pod_built.h"
#include "tests/trial/trainjob_fixture.h"
#include "trial/kubernetes/pod_attempt.h"

namespace shirabe::trial {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

PodScheduling SpotPlace() {
  PodScheduling place;
  place.node_selector = {{"pool", "a100"}};
  place.tolerations.push_back({{"key", "spot"}});
  return place;
}

// ---- what operators are told --------------------------------------------------------------------

TEST(OperatorKinds, ATrainJobPatchesItsRuntime) {
  const AttemptObject built = Build(TrainRequest(), SpotPlace());
  EXPECT_FALSE(built.recipe.instrumented);
  const Json& patches = built.object["spec"]["runtimePatches"];
  ASSERT_EQ(patches.size(), 2u) << "the user's own stays";
  EXPECT_EQ(patches[0]["manager"], "team.example/user");
  EXPECT_EQ(patches[0], Json::parse(kTrainJob)["spec"]["runtimePatches"][0]);
  EXPECT_EQ(patches[1]["manager"], "shirabe.dev/controller");
  const Json& jobs = patches[1]["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"];
  ASSERT_THAT(jobs, SizeIs(1));
  EXPECT_EQ(jobs[0]["name"], "node");
  const Json& pod = jobs[0]["template"]["spec"]["template"];
  EXPECT_EQ(pod["metadata"]["labels"]["shirabe.dev/attempt"], "2");
  EXPECT_EQ(pod["metadata"]["labels"]["katib.kubeflow.org/trial"], "exp-3");
  EXPECT_EQ(pod["metadata"]["finalizers"], Json::array({kLogFinalizer}));
  EXPECT_EQ(pod["spec"]["nodeSelector"]["pool"], "a100");
  EXPECT_EQ(pod["spec"]["tolerations"][0]["key"], "spot");
  EXPECT_EQ(pod["spec"]["terminationGracePeriodSeconds"], 15);
  // The operator takes the program's environment from here and from nowhere else.
  EXPECT_EQ(Variable(built.object["spec"]["trainer"], "SHIRABE_TRIAL"), "exp-3");
  EXPECT_THAT(built.recipe.primary_labels, SizeIs(1)) << "there is one node";
}

TEST(OperatorKinds, OfSeveralNodesTheFirstCounts) {
  Json object = Json::parse(kTrainJob);
  object["spec"]["trainer"]["numNodes"] = 3;
  const AttemptObject built = Build(TrainRequest(object.dump()));
  EXPECT_EQ(built.recipe.primary_labels.at("batch.kubernetes.io/job-completion-index"), "0");
  const std::vector<SamplePod> samples = SamplePods(object);
  ASSERT_THAT(samples, SizeIs(1));
  EXPECT_EQ(samples[0].count, 3);
  EXPECT_EQ(samples[0].pod["spec"]["containers"][0]["resources"]["requests"]["cpu"], "2");
}

// A patch for a job that the runtime does not have would be refused.
TEST(OperatorKinds, ARuntimeWhoseJobsAreNotKnownIsNotPatched) {
  AttemptRequest request = TrainRequest();
  request.cluster.trial_template.clear_primary_pod_labels();
  EXPECT_THAT(Build(request).object["spec"]["runtimePatches"], SizeIs(1));
}

TEST(OperatorKinds, WhatReadsInThePodIsRefusedForATrainJob) {
  AttemptRequest request = WithFile("/out/metrics", kTrainJob);
  request.primary_container = "node";
  EXPECT_THAT(Refusal(request), HasSubstr("spec.metricsCollectorSpec.collector.kind"));
}

TEST(OperatorKinds, AWorkflowPassesItsPodMetadataOn) {
  const AttemptObject built = Build(Request(R"({
      "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
      "spec": {"podMetadata": {"labels": {"mine": "1"}}, "ttlStrategy": {"secondsAfterSuccess": 1},
               "podGC": {"strategy": "OnPodCompletion"}, "templates": [
               {"name": "hp", "container": {"image": "train", "command": ["train"]}}]}})"),
                                    SpotPlace());
  const Json& spec = built.object["spec"];
  EXPECT_EQ(spec["podMetadata"]["labels"]["mine"], "1");
  EXPECT_EQ(spec["podMetadata"]["labels"]["shirabe.dev/attempt"], "2");
  EXPECT_EQ(spec["podMetadata"]["labels"]["katib.kubeflow.org/experiment"], "exp");
  EXPECT_FALSE(spec["podMetadata"].contains("finalizers")) << "the kind has no such field";
  EXPECT_EQ(spec["nodeSelector"]["pool"], "a100");
  EXPECT_FALSE(spec.contains("ttlStrategy") || spec.contains("podGC")) << "it is to be read first";
}

TEST(OperatorKinds, TektonsRunsPassTheirMetadataOn) {
  const std::string spec = R"("spec": {"pipelineRef": {"name": "train"}}})";
  for (const auto& [kind, version, path] :
       {std::tuple("PipelineRun", "v1", "/spec/taskRunTemplate/podTemplate"),
        std::tuple("PipelineRun", "v1beta1", "/spec/podTemplate"),
        std::tuple("TaskRun", "v1", "/spec/podTemplate")}) {
    const std::string object = std::string(R"({"apiVersion": "tekton.dev/)") + version +
                               R"(", "kind": ")" + kind + "\", " + spec;
    const AttemptObject built = Build(Request(object), SpotPlace());
    const Json& metadata = built.object["metadata"];
    EXPECT_EQ(metadata["labels"]["shirabe.dev/attempt"], "2");
    EXPECT_EQ(metadata["annotations"][kPodAttemptIdAnnotation],
              metadata["annotations"][kAttemptIdAnnotation]);
    EXPECT_EQ(built.object.at(Json::json_pointer(path))["nodeSelector"]["pool"], "a100") << path;
    EXPECT_FALSE(Build(Request(object)).object.contains(Json::json_pointer(path)));
  }
}

// Katib's conditions of a Workflow look at two of the three phases in which it has ended.
TEST(OperatorKinds, AWorkflowThatEndedInErrorHasFailed) {
  AttemptSnapshot snapshot;
  snapshot.object = Json::parse(R"({
      "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
      "status": {"phase": "Error", "message": "template name 'fit' undefined"}})");
  PodAttempt attempt;
  attempt.ref.resource.kind = "Workflow";
  attempt.recipe.success_condition = R"(status.[@this].#(phase=="Succeeded")#)";
  attempt.recipe.failure_condition = R"(status.[@this].#(phase=="Failed")#)";
  const PodVerdict verdict = ReadSnapshot(snapshot, attempt, {});
  EXPECT_EQ(verdict.phase, PodVerdict::Phase::kEnded);
  EXPECT_EQ(verdict.exit_code, 1);
  EXPECT_EQ(verdict.message, "it ended in error: template name 'fit' undefined");
  EXPECT_EQ(verdict.cause, v1::CAUSE_NONE) << "its own fault: there never was a pod";
  (*snapshot.object)["status"]["phase"] = "Running";
  EXPECT_EQ(ReadSnapshot(snapshot, attempt, {}).phase, PodVerdict::Phase::kWaiting);
  (*snapshot.object)["status"]["phase"] = "Error";
  (*snapshot.object)["apiVersion"] = "example.org/v1";
  EXPECT_EQ(ReadSnapshot(snapshot, attempt, {}).phase, PodVerdict::Phase::kWaiting) << "not Argo's";
}

// Argo calls a Workflow whose pod was lost an error, too.
TEST(OperatorKinds, AWorkflowThatErredAfterItsPodWasLostIsNotToBlame) {
  AttemptSnapshot snapshot;
  snapshot.object = Json::parse(R"({
      "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
      "status": {"phase": "Error", "message": "pod deleted"}})");
  PodAttempt attempt;
  attempt.ref.resource.kind = "Workflow";
  attempt.recipe.primary_container = "main";
  attempt.recipe.success_condition = R"(status.[@this].#(phase=="Succeeded")#)";
  attempt.recipe.failure_condition = R"(status.[@this].#(phase=="Failed")#)";
  v1::Placement ran;
  ran.mutable_start_time()->set_seconds(1);
  const auto expect_unknown = [&](const char* what) {
    const PodVerdict verdict = ReadSnapshot(snapshot, attempt, ran);
    EXPECT_EQ(verdict.phase, PodVerdict::Phase::kEnded) << what;
    EXPECT_EQ(verdict.cause, v1::UNKNOWN_CAUSE) << what;
    EXPECT_FALSE(verdict.exit_code) << what;
    EXPECT_EQ(verdict.message, "it ended in error: pod deleted") << what;
  };
  expect_unknown("the pod was gone before it was looked at");
  snapshot.pod = Json::parse(R"({
      "metadata": {"name": "a", "uid": "u"}, "spec": {"nodeName": "n"},
      "status": {"phase": "Running", "containerStatuses": [{"name": "main",
          "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]}})");
  expect_unknown("it is seen to run");
  snapshot.pod_vanished = true;
  expect_unknown("it vanished while it ran");
  snapshot.node_state = PodFacts::Node::kDead;
  EXPECT_EQ(ReadSnapshot(snapshot, attempt, ran).cause, v1::PREEMPTED_NODE);
  // Its end was seen: it is as its program says.
  snapshot.node_state = PodFacts::Node::kAlive;
  snapshot.pod_vanished = false;
  (*snapshot.pod)["status"]["phase"] = "Failed";
  (*snapshot.pod)["status"]["containerStatuses"][0]["state"] = {{"terminated", {{"exitCode", 3}}}};
  const PodVerdict seen = ReadSnapshot(snapshot, attempt, ran);
  EXPECT_EQ(seen.cause, v1::CAUSE_NONE);
  EXPECT_EQ(seen.exit_code, 3);
}

// ---- pods that do not carry our labels ----------------------------------------------------------

TEST_F(TrainJobTest, ItsPodIsFoundByTheNameOfItsJobSet) {
  Run();
  // The pod may be seen before its node.
  EXPECT_TRUE(Await([&] { return See(Nth(1)).placement.node() == "node-0"; }));
  ASSERT_TRUE(Await([&] { return LogOf(Nth(1)) == "loss=0.5\n"; })) << LogOf(Nth(1));
  cluster_.SetLog(MadeRef().name, "node", "loss=0.5\nloss=0.25\n");
  cluster_.Put(Pods(), EndedPod(0));
  Pause(Impatient().final_sync);
  EXPECT_EQ(See(Nth(1)).state, AttemptStatus::State::kRunning) << "its operator has not said so";
  Say("Complete");
  const AttemptStatus end = AwaitEnd(Nth(1));
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_EQ(LogOf(Nth(1)), "loss=0.5\nloss=0.25\n") << "all of it, before it is called ended";
  EXPECT_EQ(absl::ToInt64Seconds(*end.ran), 30);
  executor().Forget(Nth(1));
  EXPECT_TRUE(Await([&] { return cluster_.All(kResource).empty(); }));
}

TEST_F(TrainJobTest, AnEvictionIsThePlatformsDoing) {
  Run();
  Json pod = EndedPod(143);
  pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:39Z";
  pod["status"]["conditions"] = {
      {{"type", "DisruptionTarget"}, {"status", "True"}, {"reason", "EvictionByEvictionAPI"}}};
  cluster_.Put(Pods(), pod);
  cluster_.Remove(MadeRef(), /*force=*/true);  // nothing of ours holds it
  EXPECT_EQ(AwaitEnd(Nth(1)).platform, v1::PREEMPTED_EVICTION);
}

TEST_F(TrainJobTest, SuspendedAndTakenBackItIsSuspended) {
  Start();
  Change([](Json& object) { object["spec"]["suspend"] = true; });
  ASSERT_TRUE(Await([&] { return See(Nth(1)).waiting.find("suspended") != std::string::npos; }));
  EXPECT_FALSE(See(Nth(1)).placement.has_start_time()) << "it does not count as running";
  Change([](Json& object) { object["spec"]["suspend"] = false; });
  cluster_.Put(Pods(), MadePod());
  ASSERT_TRUE(Await([&] { return See(Nth(1)).placement.has_start_time(); }));
  Change([](Json& object) { object["spec"]["suspend"] = true; });
  Json pod = EndedPod(143);
  pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:39Z";
  cluster_.Put(Pods(), pod);
  EXPECT_EQ(AwaitEnd(Nth(1)).platform, v1::SUSPENDED);
}

// Its experiment was deleted and made again in a hurry.
TEST_F(TrainJobTest, APodOfAnOlderObjectOfTheNameIsNotItsOwn) {
  Start();
  Change([](Json& object) {
    object["metadata"]["creationTimestamp"] = "2026-01-01T00:00:03Z";
    object["spec"]["suspend"] = true;  // which says when it has been seen
  });
  ASSERT_TRUE(Await([&] { return See(Nth(1)).waiting.find("suspended") != std::string::npos; }));
  cluster_.Put(Pods(), MadePod("2026-01-01T00:00:01Z"));
  Pause(2 * Impatient().retry);
  EXPECT_FALSE(See(Nth(1)).placement.has_start_time());
  cluster_.Remove(MadeRef(), /*force=*/true);
  Pause(2 * Impatient().retry);
  EXPECT_EQ(See(Nth(1)).state, AttemptStatus::State::kRunning) << "nor is its end";
  cluster_.Put(Pods(), MadePod());
  EXPECT_TRUE(Await([&] { return See(Nth(1)).placement.has_start_time(); }));
}

// Of the same name, but made by an operator for a Job's neighbour: it is not the Job's.
TEST_F(TrainJobTest, AJobIsNotConfusedWithAJobSetOfItsName) {
  Run();  // JobSets are followed
  ASSERT_TRUE(executor().Start(PodRequestFor(Nth(2))).ok());
  Json pod = MadePod();
  pod["metadata"]["name"] = "foreign";
  pod["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"] = AttemptName(Nth(2));
  pod["spec"]["containers"][0]["name"] = "training-container";
  cluster_.Put(Pods(), pod);
  Pause(2 * Impatient().retry);
  EXPECT_FALSE(See(Nth(2)).placement.has_start_time());
  cluster_.Remove({Pods(), kTuning.ns, "foreign"}, /*force=*/true);
  Pause(2 * Impatient().retry);
  EXPECT_EQ(See(Nth(2)).state, AttemptStatus::State::kRunning);
}

TEST_F(TrainJobTest, StopDeletesTheObjectBeforeItsPods) {
  Run();
  ASSERT_TRUE(executor().Stop(Nth(1), v1::EARLY_STOPPED, absl::Seconds(1)).ok());
  EXPECT_TRUE(Await([&] { return cluster_.All(kResource).empty(); }));
  EXPECT_TRUE(Await([&] {
    return Text(cluster_.Get(MadeRef()).value_or(Json()), {"metadata", "deletionTimestamp"}) != "";
  }));
}

TEST_F(TrainJobTest, ItIsAdoptedWithItsPod) {
  Run();
  OpenWithStatus();
  executor().Adopt({RecordOf(Nth(1))});
  ASSERT_TRUE(Await([&] { return See(Nth(1)).placement.has_start_time(); }));
  cluster_.Put(Pods(), EndedPod(0));
  Say("Complete");
  EXPECT_EQ(AwaitEnd(Nth(1)).exit_code, 0);
}

// The pod of a Job that JobSet made was refused: the event is about that Job.
TEST_F(TrainJobTest, WhatItsJobsAreRefusedIsSaid) {
  Start();
  cluster_.Put(Events(), {{"metadata", {{"name", "e"}, {"namespace", kTuning.ns}}},
                          {"type", "Warning"},
                          {"reason", "FailedCreate"},
                          {"message", "pods \"x\" is forbidden: exceeded quota: q, requested: 1"},
                          {"involvedObject",
                           {{"kind", "Job"}, {"name", TrialName(Nth(1).trial) + "-node-0"}}}});
  EXPECT_TRUE(Await([&] { return See(Nth(1)).waiting.find("quota") != std::string::npos; }));
}

// ---- metrics that the object tells --------------------------------------------------------------

TEST_F(TrainJobTest, ItsTrainerStatusIsCollected) {
  Run();
  Report("2026-01-01T00:00:20Z", "0.75");
  ASSERT_TRUE(Await([&] { return Metrics().find("0.75") != std::string::npos; })) << Metrics();
  // The last one comes with the end.
  Change([](Json& object) {
    object["status"]["conditions"] = {{{"type", "Complete"}, {"status", "True"}}};
    object["status"]["trainerStatus"] = {{"lastUpdatedTime", "2026-01-01T00:00:30Z"},
                                         {"metrics", {{{"name", "loss"}, {"value", "0.5"}}}}};
  });
  AwaitEnd(Nth(1));
  EXPECT_THAT(Metrics(), HasSubstr("0.5"));
}

TEST_F(TrainJobTest, WhatWasReportedIsTakenOnce) {
  Run();
  EXPECT_FALSE(See(Nth(1)).files_version) << "it is not brought by a sidecar: look for it";
  Report("2026-01-01T00:00:20Z", "0.75");
  ASSERT_TRUE(Await([&] { return Metrics().find("0.75") != std::string::npos; }));
  const std::string before = Metrics();
  OpenWithStatus();
  executor().Adopt({RecordOf(Nth(1))});
  ASSERT_TRUE(Await([&] { return See(Nth(1)).placement.has_start_time(); }));
  Change([](Json& object) { object["metadata"]["annotations"]["touched"] = "1"; });
  Pause(2 * Impatient().retry);
  EXPECT_EQ(Metrics(), before);
}

// attacks: status.trainerStatus of a TrainJob, which the program writes
TEST_F(TrainJobTest, AStatusThatIsNoneChangesNothing) {
  Run();
  Change([](Json& object) {
    object["status"]["trainerStatus"] = {{"lastUpdatedTime", "2026-01-01T00:00:20Z"},
                                         {"metrics", {{{"name", 7}, {"value", "../../x"}}}}};
  });
  Pause(2 * Impatient().retry);
  EXPECT_EQ(See(Nth(1)).state, AttemptStatus::State::kRunning);
  Report("2026-01-01T00:00:30Z", "0.5");
  EXPECT_TRUE(Await([&] { return Metrics().find("0.5") != std::string::npos; }));
}

}  // namespace
}  // namespace shirabe::trial
