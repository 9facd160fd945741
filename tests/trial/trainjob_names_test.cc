// All attempts of a trial have a TrainJob of one name, the trial's: that of an attempt is made once
// that of the one before is gone, and nothing that is late of the one counts for the other.
#include "tests/trial/trainjob_fixture.h"
#include "trial/kubernetes/removal_records.h"

namespace shirabe::trial {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using SeenState = AttemptStatus::State;

PodTimeouts Quick() {
  PodTimeouts times = Impatient();
  times.start = absl::Milliseconds(20);  // the object may take longer
  return times;
}

class TrainJobNamesTest : public TrainJobTest {
 protected:
  TrainJobNamesTest() { OpenWithStatus(Quick()); }

  // Of what stays when it has ended, as the OptimizerClient asks for it.
  static AttemptRequest Retained(int32_t number) {
    AttemptRequest request = RequestOf(Nth(1, number));
    request.cluster.trial_template.set_retain(true);
    request.cluster.owner = "uid-of-experiment";
    return request;
  }
  Status StartNth(int32_t number) { return executor().Start(Retained(number)); }

  // The first attempt runs, is evicted and forgotten; its object stays.
  void LoseTheFirst() {
    ASSERT_TRUE(StartNth(1).ok());
    ASSERT_TRUE(Await([&] { return NumberOf(Object()) == "1"; }));
    cluster_.Put(Pods(), MadePod());
    ASSERT_TRUE(Await([&] { return See(Nth(1)).placement.has_start_time(); }));
    cluster_.Put(Pods(), Evicted());
    cluster_.Remove(MadeRef(), /*force=*/true);
    EXPECT_EQ(AwaitEnd(Nth(1)).platform, v1::PREEMPTED_EVICTION);
    Say("Failed");
    executor().Forget(Nth(1));
    Pause(2 * Impatient().retry);
    ASSERT_EQ(NumberOf(Object()), "1") << "it is retained";
    EXPECT_TRUE(Object()["spec"].value("suspend", false)) << "its operator does not try again";
  }

  Json Evicted() const {
    Json pod = EndedPod(143);
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:39Z";
    pod["status"]["conditions"] = {
        {{"type", "DisruptionTarget"}, {"status", "True"}, {"reason", "EvictionByEvictionAPI"}}};
    return pod;
  }
  Json Object() { return cluster_.Get(ObjectRef()).value_or(Json()); }
  static std::string NumberOf(const Json& object) {
    return Text(object, {"metadata", "labels", kAttemptLabel});
  }
  static bool Goes(const Json& object) {
    return !Text(object, {"metadata", "deletionTimestamp"}).empty();
  }
  void Hold() {
    Change([](Json& object) { object["metadata"]["finalizers"] = {"foregroundDeletion"}; });
  }
  bool AwaitNumber(const std::string& number) {
    return Await([&] { return NumberOf(Object()) == number; });
  }

  const kube::Resource kJobSets{"jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet"};
};

TEST_F(TrainJobNamesTest, TheNextIsMadeOnceTheOneBeforeIsGone) {
  LoseTheFirst();
  const std::string first = UidOf(Object());
  Hold();
  ASSERT_TRUE(StartNth(2).ok());
  ASSERT_TRUE(Await([&] { return Goes(Object()); }));
  Pause(4 * Impatient().retry);
  EXPECT_EQ(UidOf(Object()), first) << "it is not gone yet";
  EXPECT_THAT(cluster_.propagations(), ElementsAre("Foreground"))
      << "once: a caller finds the name until all that it owns is gone";
  cluster_.Remove(ObjectRef(), /*force=*/true);
  ASSERT_TRUE(AwaitNumber("2"));
  EXPECT_NE(UidOf(Object()), first);
  EXPECT_EQ(cluster_.All(kResource).size(), 1u);
}

// Its pod is on a machine without power, and would hold all that stands above it.
TEST_F(TrainJobNamesTest, APodThatDoesNotEndHoldsUpNothing) {
  LoseTheFirst();
  Json pod = MadePod();
  pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:01:00Z";
  cluster_.Put(Pods(), pod);
  Pause(2 * Impatient().retry);
  ASSERT_TRUE(StartNth(2).ok());
  ASSERT_TRUE(AwaitNumber("2"));
  EXPECT_THAT(cluster_.propagations(), ElementsAre("Background"));
}

// What the JobSet of an earlier attempt has come to would be taken for the next one's.
TEST_F(TrainJobNamesTest, AJobSetOfTheNameIsAwaited) {
  cluster_.AddKind(kJobSets);
  cluster_.Put(kJobSets, {{"metadata", {{"name", kTrial}, {"namespace", kTuning.ns}}}});
  ASSERT_TRUE(StartNth(1).ok());
  Pause(4 * Impatient().retry);
  EXPECT_TRUE(Object().is_null());
  cluster_.Remove({kJobSets, kTuning.ns, kTrial}, /*force=*/true);
  EXPECT_TRUE(AwaitNumber("1"));
}

TEST_F(TrainJobNamesTest, WhatIsLateOfTheOneBeforeDoesNotCount) {
  LoseTheFirst();
  ASSERT_TRUE(StartNth(2).ok());
  ASSERT_TRUE(AwaitNumber("2"));
  Change([](Json& object) {
    object["metadata"]["creationTimestamp"] = "2026-01-01T00:02:00Z";
    object["spec"]["suspend"] = true;  // which says when it has been seen
  });
  ASSERT_TRUE(Await([&] { return See(Nth(1, 2)).waiting.find("suspended") != std::string::npos; }));
  OpenWithStatus(Quick());
  executor().Adopt({RecordOf(Nth(1, 2))});
  ASSERT_TRUE(Await([&] { return See(Nth(1, 2)).waiting.find("suspended") != std::string::npos; }));
  // The pod of the first is told of once more, by name alone and as the first's own.
  Json old_pod = MadePod();
  cluster_.Put(Pods(), old_pod);
  Json labelled = old_pod;
  labelled["metadata"]["name"] = "labelled";
  labelled["metadata"]["labels"].update(Object()["metadata"]["labels"]);
  labelled["metadata"]["annotations"][kPodAttemptIdAnnotation] = "of another";
  cluster_.Put(Pods(), labelled);
  Pause(2 * Impatient().retry);
  EXPECT_FALSE(See(Nth(1, 2)).placement.has_start_time());
  cluster_.Remove(MadeRef(), /*force=*/true);
  cluster_.Remove({Pods(), kTuning.ns, "labelled"}, /*force=*/true);
  Pause(2 * Impatient().retry);
  EXPECT_EQ(See(Nth(1, 2)).state, SeenState::kRunning) << "nor does their end";
  cluster_.Put(Pods(), MadePod("2026-01-01T00:02:05Z"));
  EXPECT_TRUE(Await([&] { return See(Nth(1, 2)).placement.has_start_time(); }));
}

// A warning about the object of the first, whose name the second has.
TEST_F(TrainJobNamesTest, TroubleOfTheOneBeforeIsNotTold) {
  LoseTheFirst();
  ASSERT_TRUE(StartNth(2).ok());
  ASSERT_TRUE(AwaitNumber("2"));
  Change([](Json& o) { o["metadata"]["creationTimestamp"] = "2026-01-01T00:02:00Z"; });
  const auto warn = [&](const std::string& time, const std::string& quota) {
    cluster_.Put(Events(), {{"metadata", {{"name", quota}, {"namespace", kTuning.ns}}},
                            {"type", "Warning"},
                            {"reason", "FailedCreate"},
                            {"lastTimestamp", time},
                            {"message", "exceeded quota: " + quota},
                            {"involvedObject", {{"kind", "Job"}, {"name", kTrial + "-node-0"}}}});
  };
  OpenWithStatus(Quick());
  executor().Adopt({RecordOf(Nth(1, 2))});
  warn("2026-01-01T00:01:00Z", "old");
  Pause(4 * Impatient().events_again);
  EXPECT_EQ(See(Nth(1, 2)).waiting.find("quota"), std::string::npos) << See(Nth(1, 2)).waiting;
  warn("2026-01-01T00:02:30Z", "new");
  EXPECT_TRUE(Await([&] { return See(Nth(1, 2)).waiting.find("new") != std::string::npos; }));
}

// The process has died after the intent to start the second was stored.
TEST_F(TrainJobNamesTest, ACrashBetweenBothLeavesOne) {
  LoseTheFirst();
  executor_.reset();
  OpenWithStatus(Quick());
  executor().Adopt({RecordOf(Nth(1, 2))});
  EXPECT_EQ(AwaitEnd(Nth(1, 2)).state, SeenState::kLost) << "the first is not taken for it";
  ASSERT_TRUE(StartNth(2).ok());
  ASSERT_TRUE(AwaitNumber("2"));
  EXPECT_EQ(See(Nth(1, 2)).state, SeenState::kRunning);

  // And after the second was made, with the files of the controller lost.
  executor_.reset();
  ASSERT_TRUE(RemoveAll(home_).ok());
  OpenWithStatus(Quick());
  executor().Adopt({RecordOf(Nth(1, 2))});
  Change([](Json& object) { object["spec"]["suspend"] = true; });
  EXPECT_TRUE(Await([&] { return See(Nth(1, 2)).waiting.find("suspended") != std::string::npos; }));
}

// A controller of version 0.1 has made it, under its attempt's own name, and is replaced meanwhile.
TEST_F(TrainJobNamesTest, OneOfAnOlderControllerGoesOnAndHasASuccessor) {
  ASSERT_TRUE(StartNth(1).ok());
  ASSERT_TRUE(AwaitNumber("1"));
  executor_.reset();
  Json object = Object();
  cluster_.Remove(ObjectRef(), /*force=*/true);
  const std::string old_name = AttemptName(Nth(1));
  object["metadata"]["name"] = old_name;
  cluster_.Put(kResource, object);
  const kube::Ref old_ref{kResource, kTuning.ns, old_name};
  ASSERT_TRUE(SaveObjectRecord(FileLayout(home_).Paths(Nth(1)).dir, old_ref).ok());
  OpenWithStatus(Quick());
  executor().Adopt({RecordOf(Nth(1))});
  Json pod = MadePod();
  pod["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"] = old_name;
  cluster_.Put(Pods(), pod);
  ASSERT_TRUE(Await([&] { return See(Nth(1)).placement.has_start_time(); }));
  pod = Evicted();
  pod["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"] = old_name;
  cluster_.Put(Pods(), pod);
  cluster_.Remove(MadeRef(), /*force=*/true);
  EXPECT_EQ(AwaitEnd(Nth(1)).platform, v1::PREEMPTED_EVICTION);
  executor().Forget(Nth(1));
  ASSERT_TRUE(StartNth(2).ok());
  EXPECT_TRUE(AwaitNumber("2"));
}

// attacks: an object of a user's that has the name of a trial, or our labels as well
TEST_F(TrainJobNamesTest, WhatIsNotOfTheExperimentStays) {
  const Json bare = {{"metadata", {{"name", kTrial}, {"namespace", kTuning.ns}}}};
  Json copied = bare;
  Label(Nth(1), copied["metadata"]);
  Json other = copied;
  other["metadata"]["annotations"][kAttemptIdAnnotation] = "x";
  other["metadata"]["ownerReferences"] = {{{"uid", "another"}, {"controller", true}}};
  for (const Json& theirs : {bare, copied, other}) {
    cluster_.Put(kResource, theirs);
    Status told;
    ASSERT_TRUE(Await([&] { return !(told = StartNth(2)).ok(); }));
    EXPECT_TRUE(absl::IsAlreadyExists(told)) << told;
    EXPECT_THAT(Message(told), HasSubstr("belongs to another owner"));
    EXPECT_FALSE(Goes(Object()));
    cluster_.Remove(ObjectRef(), /*force=*/true);
  }
}

TEST_F(TrainJobNamesTest, WhatDoesNotGoIsSaid) {
  LoseTheFirst();
  Hold();
  PodTimeouts times = Quick();
  times.succession = absl::Milliseconds(150);
  OpenWithStatus(times);
  ASSERT_TRUE(StartNth(2).ok());
  Status told;
  ASSERT_TRUE(Await([&] { return !(told = StartNth(2)).ok(); }));
  EXPECT_TRUE(absl::IsResourceExhausted(told)) << told;
  EXPECT_THAT(Message(told), HasSubstr("TrainJob tuning-1 of the attempt before"));
  EXPECT_THAT(cluster_.propagations(), testing::Contains("Background"))
      << "its operator may make again what is deleted below it";
}

// Callers who look for the object of a trial that was given up find it.
TEST_F(TrainJobNamesTest, WhatIsToStayIsSuspended) {
  ASSERT_TRUE(StartNth(1).ok());
  ASSERT_TRUE(AwaitNumber("1"));
  cluster_.Put(Pods(), MadePod());
  ASSERT_TRUE(Await([&] { return See(Nth(1)).placement.has_start_time(); }));
  ASSERT_TRUE(executor().Stop(Nth(1), v1::EXPERIMENT_ENDED, absl::Seconds(1)).ok());
  ASSERT_TRUE(Await([&] { return Object()["spec"].value("suspend", false); }));
  EXPECT_THAT(cluster_.propagations(), ElementsAre()) << "its operator ends the pods";
  Json pod = EndedPod(143);
  pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:39Z";
  cluster_.Put(Pods(), pod);
  AwaitEnd(Nth(1));
  executor().Forget(Nth(1));
  Pause(2 * Impatient().retry);
  EXPECT_FALSE(Object().is_null());
}

}  // namespace
}  // namespace shirabe::trial
