// What is left of attempts that have ended, and that none of it stays in the cluster.
#include "tests/trial/kubernetes_fixture.h"

namespace shirabe::trial {
namespace {

using ::testing::IsEmpty;

TEST_F(KubernetesTest, ForgottenItLeavesNothingInTheCluster) {
  Run(Nth(1));
  EndPod(Nth(1), 0);
  AwaitEnd(Nth(1));
  EXPECT_TRUE(HasJob(Nth(1)));
  executor().Forget(Nth(1));
  executor().Forget(Nth(1));
  EXPECT_THAT(executor().Observe(kTuning), IsEmpty());
  EXPECT_TRUE(Await([&] { return cluster_.All(Jobs()).empty() && cluster_.All(Pods()).empty(); }));
}

TEST_F(KubernetesTest, WhatIsToBeRetainedStaysAndIsFree) {
  AttemptRequest request = PodRequestFor(Nth(1));
  request.cluster.trial_template.set_retain(true);
  ASSERT_TRUE(executor().Start(request).ok());
  MakePod(Nth(1));
  RunPod(Nth(1));
  EndPod(Nth(1), 0);
  AwaitEnd(Nth(1));
  executor().Forget(Nth(1));
  EXPECT_TRUE(Await([&] { return FinalizerAt(PodOf(Nth(1)), kLogFinalizer) < 0; }));
  EXPECT_TRUE(HasJob(Nth(1)));
}

// F7: the finalizer's patch fails, once with the patch applied.
TEST_F(KubernetesTest, LettingGoIsTriedAgain) {
  Run(Nth(1));
  EndPod(Nth(1), 0);
  AwaitEnd(Nth(1));
  int failures = 2;
  cluster_.before = [&](const std::string& verb, const kube::Ref&) {
    if (verb == "patch" && failures-- > 0) return Status(absl::AbortedError("conflict"));
    return absl::OkStatus();
  };
  executor().Forget(Nth(1));
  EXPECT_TRUE(Await([&] { return cluster_.All(Pods()).empty() && cluster_.All(Jobs()).empty(); }));
}

class JobsTest : public KubernetesTest {
 protected:
  // `count` trials that have ended, of which none has been forgotten.
  void EndAll(int64_t count) {
    PodTimeouts times = Impatient();
    times.gather = absl::Milliseconds(500);
    Reopen(times);
    for (int64_t trial = 1; trial <= count; ++trial) {
      Run(Nth(trial));
      EndPod(Nth(trial), 0);
      AwaitEnd(Nth(trial));
    }
  }
  bool AwaitNone() {
    return Await([&] { return cluster_.All(Pods()).empty() && cluster_.All(Jobs()).empty(); });
  }
};

TEST_F(JobsTest, ThoseThatEndTogetherAreDeletedByOneRequest) {
  EndAll(6);
  for (int64_t trial = 1; trial <= 6; ++trial) executor().Forget(Nth(trial));
  EXPECT_TRUE(AwaitNone());
  EXPECT_EQ(cluster_.Calls("delete") + cluster_.Calls("deletecollection"), 2)
      << "the first does not wait";
}

TEST_F(JobsTest, WhereSeveralMayNotBeDeletedAtOnceEachIsByItself) {
  EndAll(4);
  cluster_.before = [](const std::string& verb, const kube::Ref&) {
    return verb == "deletecollection" ? absl::PermissionDeniedError("403") : absl::OkStatus();
  };
  for (int64_t trial = 1; trial <= 4; ++trial) executor().Forget(Nth(trial));
  EXPECT_TRUE(AwaitNone());
}

TEST_F(JobsTest, ARequestThatFailedIsMadeAgain) {
  EndAll(4);
  std::atomic<int> failures = 2;
  cluster_.before = [&](const std::string& verb, const kube::Ref&) {
    if (verb == "deletecollection" && failures-- > 0) return absl::UnavailableError("503");
    return absl::OkStatus();
  };
  for (int64_t trial = 1; trial <= 4; ++trial) executor().Forget(Nth(trial));
  EXPECT_TRUE(AwaitNone());
  EXPECT_LE(failures, 0);
}

// One of an older controller has no label by which it could be selected; one of another user that
// has our name and labels, but for the attempt's id, is left alone.
TEST_F(JobsTest, OnlyWhatIsOursGoesWithOrWithoutTheLabel) {
  EndAll(3);
  Json old = *cluster_.Get(JobRef(Nth(1)));
  old["metadata"]["labels"].erase(kAttemptIdLabel);
  cluster_.Put(Jobs(), old);
  Json other = *cluster_.Get(JobRef(Nth(2)));
  other["metadata"]["name"] = "other";
  other["metadata"]["uid"] = "other";
  other["metadata"]["labels"][kAttemptIdLabel] = "0123";
  other["metadata"]["annotations"].erase(kAttemptIdAnnotation);
  other["metadata"]["labels"].erase(kAttemptLabel);
  cluster_.Put(Jobs(), other);
  for (int64_t trial = 3; trial >= 1; --trial) executor().Forget(Nth(trial));
  EXPECT_TRUE(Await([&] { return cluster_.All(Jobs()).size() == 1; }));
  EXPECT_TRUE(cluster_.Get({Jobs(), kTuning.ns, "other"}).ok());
}

// F1: the process died after the end was stored, and before it was forgotten.
TEST_F(KubernetesTest, WhatNobodyWaitsForAnyMoreIsLetGo) {
  Run(Nth(1));
  Run(Nth(2));
  EndPod(Nth(1), 0);
  Reopen();
  executor().Adopt({RecordOf(Nth(2))});
  executor().Observe(kTuning);
  EXPECT_TRUE(Await([&] { return cluster_.All(Pods()).size() == 1 && !HasJob(Nth(1)); }));
  EXPECT_TRUE(HasJob(Nth(2)));
}

// F1: the process died while a Job, of whose pods nothing was left, waited to be deleted.
TEST_F(KubernetesTest, AJobWithoutPodsOfAnUnknownAttemptGoesUnlessItIsRetained) {
  Run(Nth(1));
  Run(Nth(2));
  AttemptRequest request = PodRequestFor(Nth(3));
  request.cluster.trial_template.set_retain(true);
  ASSERT_TRUE(executor().Start(request).ok());
  cluster_.Remove(PodRef(Nth(1)), /*force=*/true);
  Reopen();
  executor().Adopt({RecordOf(Nth(2))});
  executor().Observe(kTuning);
  EXPECT_TRUE(Await([&] { return !HasJob(Nth(1)); }));
  EXPECT_TRUE(HasJob(Nth(2)));
  EXPECT_TRUE(HasJob(Nth(3)));
}

// The last attempt of an experiment that has ended and has no pass: the controller is told of it,
// where the experiment was ours.
TEST_F(KubernetesTest, WhatIsLeftOfAnExperimentThatHasEndedIsTold) {
  Run(Nth(1));
  EndPod(Nth(1), 0);
  AwaitEnd(Nth(1));
  last_change_.reset();
  const auto told = [&] {
    std::lock_guard lock(mutex_);
    return last_change_ == kTuning;
  };
  Reopen();
  EXPECT_TRUE(Await(told));
  EXPECT_TRUE(HasJob(Nth(1)));
  executor().Observe(kTuning);
  EXPECT_TRUE(Await([&] { return cluster_.All(Pods()).empty() && !HasJob(Nth(1)); }));
}

TEST_F(KubernetesTest, WhatIsLeftOfSomebodyElsesExperimentStays) {
  Run(Nth(1));
  executor_.reset();
  ASSERT_TRUE(RemoveAll(home_ + "/trials").ok());
  last_change_.reset();
  Reopen();
  Pause(absl::Seconds(3));  // nothing comes that could be waited for; what is ours is told sooner
  EXPECT_TRUE(HasJob(Nth(1)));
  std::lock_guard lock(mutex_);
  EXPECT_FALSE(last_change_.has_value());
}

TEST_F(KubernetesTest, RemoveFilesTakesWhatIsLeftOfTheExperiment) {
  Run(Nth(1));
  cluster_.Put(Claims(), {{"metadata", {{"name", "mine"}, {"namespace", "lab"}}}});
  cluster_.Put(Claims(), {{"metadata",
                           {{"name", "tuning-1"},
                            {"namespace", "lab"},
                            {"labels",
                             {{"katib.kubeflow.org/experiment", "tuning"},
                              {"app.kubernetes.io/managed-by", "shirabe"}}}}}});
  EXPECT_TRUE(absl::IsFailedPrecondition(executor().RemoveFiles(kTuning, 0)));
  EndPod(Nth(1), 0);
  AwaitEnd(Nth(1));
  Reopen();
  const std::string dir = executor().Paths(Nth(1)).dir;
  EXPECT_TRUE(std::filesystem::exists(dir));
  EXPECT_TRUE(executor().RemoveFiles(kTuning, 0).ok());
  EXPECT_FALSE(std::filesystem::exists(dir));
  // "mine", and the one that all trials share.
  EXPECT_TRUE(Await([&] { return cluster_.All(Claims()).size() == 2; }));
  EXPECT_TRUE(Await([&] { return cluster_.All(Pods()).empty() && cluster_.All(Jobs()).empty(); }));
}

}  // namespace
}  // namespace shirabe::trial
