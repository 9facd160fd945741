// Attempts that are no Jobs: an operator makes and ends their pods, and says in conditions of its
// object what it makes of them, sometimes before the pods do.
#include "tests/trial/kubernetes_fixture.h"
#include "trial/kubernetes/removal_records.h"

namespace shirabe::trial {
namespace {

using ::testing::HasSubstr;
using SeenState = AttemptStatus::State;

constexpr char kRole[] = "training.kubeflow.org/job-role";

class OtherKindTest : public KubernetesTest {
 protected:
  OtherKindTest() { cluster_.AddKind(kResource); }

  // An object with a master, whose program counts, and a worker, both running.
  void Begin(bool retain = false) {
    AttemptRequest request = PodRequestFor(Nth(1));
    request.cluster.trial_template.set_retain(retain);
    (*request.trial_spec.mutable_fields())["apiVersion"].set_string_value("kubeflow.org/v1");
    (*request.trial_spec.mutable_fields())["kind"].set_string_value("PyTorchJob");
    v1::TrialTemplate& trial = request.cluster.trial_template;
    trial.set_success_condition(R"(status.conditions.#(type=="Succeeded")#|#(status=="True")#)");
    trial.set_failure_condition(R"(status.conditions.#(type=="Failed")#|#(status=="True")#)");
    (*trial.mutable_primary_pod_labels())[kRole] = "master";
    const Status started = executor().Start(request);
    ASSERT_TRUE(started.ok()) << started;
    Make("master", PodRef(Nth(1)).name);
    Make("worker", kWorker.name);
    RunPod(Nth(1));
    ASSERT_TRUE(Await([&] { return See(Nth(1)).placement.has_start_time(); }));
  }

  void Make(const std::string& role, const std::string& name) {
    Json pod = (*cluster_.Get(ObjectRef()))["spec"]["template"];
    pod["metadata"]["name"] = name;
    pod["metadata"]["namespace"] = kTuning.ns;
    pod["metadata"]["labels"][kRole] = role;
    pod["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z";
    pod["spec"]["nodeName"] = "node-0";
    pod["status"] = {
        {"phase", "Running"},
        {"containerStatuses",
         {State("training-container", {{"running", {{"startedAt", "2026-01-01T00:00:10Z"}}}})}}};
    cluster_.Put(Pods(), pod);
  }

  void Say(const std::string& condition) {
    Json object = *cluster_.Get(ObjectRef());
    object["status"]["conditions"] = {
        {{"type", condition}, {"status", "True"}, {"message", "1 replica has failed"}}};
    cluster_.Put(kResource, object);
  }

  static void Evict(Json& pod) {
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:01:00Z";
    pod["status"]["conditions"] = {
        {{"type", "DisruptionTarget"}, {"status", "True"}, {"reason", "EvictionByEvictionAPI"}}};
  }

  // Its attempt has ended, and is forgotten; its object and pods are there.
  void BeginAndRetain() {
    Begin(/*retain=*/true);
    Say("Succeeded");
    EXPECT_EQ(AwaitEnd(Nth(1)).exit_code, 0);
    executor().Forget(Nth(1));
    Pause(2 * Impatient().retry);
    ASSERT_EQ(cluster_.All(kResource).size(), 1u) << "it is retained";
  }

  static v1::ExperimentSpec Spec() {
    v1::ExperimentSpec spec;
    auto& fields = *spec.mutable_trial_template()->mutable_trial_spec()->mutable_fields();
    fields["apiVersion"].set_string_value("kubeflow.org/v1");
    fields["kind"].set_string_value("PyTorchJob");
    return spec;
  }

  // Of what was told before, nothing is known any more.
  void Restart() {
    executor_.reset();
    cluster_.before = [](const std::string&, const kube::Ref&) { return absl::OkStatus(); };
    last_change_.reset();
    Reopen();
  }
  bool Told() {
    std::lock_guard lock(mutex_);
    return last_change_ == kTuning;
  }

  kube::Ref ObjectRef() const { return {kResource, kTuning.ns, AttemptName(Nth(1))}; }

  const kube::Resource kResource{"kubeflow.org", "v1", "pytorchjobs", "PyTorchJob"};
  const kube::Ref kWorker{Pods(), kTuning.ns, "worker"};
};

TEST_F(OtherKindTest, EndsByItsConditions) {
  Begin();
  Say("Succeeded");
  EXPECT_EQ(AwaitEnd(Nth(1)).exit_code, 0);
  executor().Forget(Nth(1));
  EXPECT_TRUE(Await([&] { return cluster_.All(kResource).empty(); }));
}

// What stays after its end goes with its experiment, of whatever kind it is.
TEST_F(OtherKindTest, ARetainedObjectGoesWithItsExperiment) {
  BeginAndRetain();
  // Of another experiment, which stays.
  Json other = *cluster_.Get(ObjectRef());
  other["metadata"]["name"] = "other-1-a1";
  other["metadata"]["labels"][kExperimentLabel] = "other";
  cluster_.Put(kResource, other);

  executor().CleanVolume(kTuning, Spec());
  EXPECT_TRUE(executor().RemoveFiles(kTuning, 0).ok());
  EXPECT_TRUE(Await([&] { return cluster_.All(kResource).size() == 1; }));
  EXPECT_EQ(kube::NameOf(cluster_.All(kResource)[0]), "other-1-a1");
}

// F1: the process died while objects of a deleted experiment were being deleted, and the record and
// the files of it were gone by then. The next one remembers, and asks whoever owns experiments.
TEST_F(OtherKindTest, ARetainedObjectGoesThoughTheProcessDiesMeanwhile) {
  BeginAndRetain();
  cluster_.before = [&](const std::string& verb, const kube::Ref&) {
    return verb == "delete" ? absl::UnavailableError("down") : absl::OkStatus();
  };
  executor().CleanVolume(kTuning, Spec());
  EXPECT_TRUE(executor().RemoveFiles(kTuning, 0).ok());
  Restart();
  ASSERT_TRUE(Await([&] { return Told(); }));
  EXPECT_TRUE(executor().RemoveFiles(kTuning, 0).ok());
  EXPECT_TRUE(Await([&] { return cluster_.All(kResource).empty(); }));
  EXPECT_TRUE(Await([&] { return FindRemovals(FileLayout(home_)).empty(); }));
  EXPECT_FALSE(std::filesystem::exists(home_ + "/trials/lab/tuning")) << "its name is free";
  Restart();
  Pause(2 * Impatient().orphan);
  EXPECT_FALSE(Told()) << "it is done";
}

// Before that: only the record was gone.
TEST_F(OtherKindTest, ARetainedObjectGoesThoughTheProcessDiesBefore) {
  BeginAndRetain();
  Restart();
  ASSERT_TRUE(Await([&] { return Told(); }));
  last_change_.reset();
  Pause(Impatient().orphan);
  EXPECT_FALSE(Told()) << "it may stay for years";
  EXPECT_TRUE(executor().RemoveFiles(kTuning, 0).ok());
  EXPECT_TRUE(Await([&] { return cluster_.All(kResource).empty(); }));
}

// Nobody's removal is carried out on the experiment that has the name by now.
TEST_F(OtherKindTest, AnotherExperimentOfTheNameIsLeftAlone) {
  BeginAndRetain();
  ASSERT_TRUE(SaveRemoval(FileLayout(home_), kTuning, {"kubeflow.org/v1", "PyTorchJob"}).ok());
  Restart();
  executor().Observe(kTuning);
  EXPECT_TRUE(Await([&] { return FindRemovals(FileLayout(home_)).empty(); }));
  EXPECT_EQ(cluster_.All(kResource).size(), 1u);
  EXPECT_FALSE(Told());
}

TEST_F(OtherKindTest, AFailureThatNoPodExplainsIsItsOwn) {
  Begin();
  Say("Failed");
  const AttemptStatus end = AwaitEnd(Nth(1));
  EXPECT_EQ(end.platform, v1::CAUSE_NONE);
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_THAT(end.message, HasSubstr("failureCondition holds: 1 replica has failed"));
}

// The training operator calls its object failed at the moment a pod of it is told to go.
TEST_F(OtherKindTest, AnEvictionIsThePlatformsDoingThoughTheOperatorCallsItAFailure) {
  Begin();
  Edit(Nth(1), Evict);
  Say("Failed");
  Pause(2 * Impatient().final_sync);
  EXPECT_EQ(See(Nth(1)).state, SeenState::kRunning) << "its pod has not ended";
  EndPod(Nth(1), 143);
  EXPECT_EQ(AwaitEnd(Nth(1)).platform, v1::PREEMPTED_EVICTION);
}

// The object was heard of before the pod.
TEST_F(OtherKindTest, APodMayExplainAFailureAfterwards) {
  Begin();
  Say("Failed");
  Edit(Nth(1), Evict);
  EndPod(Nth(1), 143);
  EXPECT_EQ(AwaitEnd(Nth(1)).platform, v1::PREEMPTED_EVICTION);
}

TEST_F(OtherKindTest, AWorkerThatIsTakenAwayExplainsTheFailureOfAll) {
  Begin();
  Json worker = *cluster_.Get(kWorker);
  Evict(worker);
  worker["status"]["phase"] = "Failed";
  const Json ended = {{"terminated", {{"exitCode", 143}, {"reason", "Error"}}}};
  worker["status"]["containerStatuses"] = Json::array({State("training-container", ended)});
  cluster_.Put(Pods(), worker);
  EXPECT_EQ(See(Nth(1)).state, SeenState::kRunning) << "the operator may make it anew";
  Say("Failed");
  const AttemptStatus end = AwaitEnd(Nth(1));
  EXPECT_EQ(end.platform, v1::PREEMPTED_EVICTION);
  EXPECT_THAT(end.message, HasSubstr("pod worker: evicted"));
}

// When a worker has failed by itself, the operator deletes the rest.
TEST_F(OtherKindTest, WhatTheOperatorDeletesIsNoMystery) {
  Begin();
  Edit(Nth(1), [](Json& pod) { pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:01:00Z"; });
  Say("Failed");
  EndPod(Nth(1), 143);
  const AttemptStatus end = AwaitEnd(Nth(1));
  EXPECT_EQ(end.platform, v1::CAUSE_NONE);
  EXPECT_THAT(end.message, HasSubstr("failureCondition holds"));
}

}  // namespace
}  // namespace shirabe::trial
