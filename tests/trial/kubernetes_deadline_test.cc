// Jobs that have outrun their activeDeadlineSeconds: the Job controller deletes their pods, which
// then look as if anybody had, and says why a moment later.
#include "tests/trial/kubernetes_fixture.h"

namespace shirabe::trial {
namespace {

using ::testing::HasSubstr;
using Overdue = Sighting::Overdue;

class DeadlineTest : public KubernetesTest {
 protected:
  void Begin(bool limited = true) {
    AttemptRequest request = PodRequestFor(Nth(1));
    if (limited) {
      (*(*request.trial_spec.mutable_fields())["spec"]
            .mutable_struct_value()
            ->mutable_fields())["activeDeadlineSeconds"]
          .set_number_value(6);
    }
    ASSERT_TRUE(executor().Start(request).ok());
    MakePod(Nth(1));
  }
  void BeginAndRun(bool limited = true) {
    Begin(limited);
    RunPod(Nth(1));
    ASSERT_TRUE(Await([&] { return See(Nth(1)).placement.has_start_time(); }));
  }
  void Delete() {
    Edit(Nth(1), [](Json& pod) { pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:16Z"; });
  }
  void Fail(const std::string& reason) {
    Json job = *cluster_.Get(JobRef(Nth(1)));
    job["status"]["conditions"] = {{{"type", "FailureTarget"},
                                    {"status", "True"},
                                    {"reason", reason},
                                    {"message", "Job was active longer than specified deadline"}}};
    cluster_.Put(Jobs(), job);
  }
  bool IsRunning() {
    Pause(5 * Impatient().retry);
    return See(Nth(1)).state == Sighting::State::kRunning;
  }
};

// Also where the program ends well once it is asked to, and the Job says so later.
TEST_F(DeadlineTest, AJobThatIsTooSlowHasFailedForGood) {
  for (const int code : {0, 143}) {
    BeginAndRun();
    Delete();
    EndPod(Nth(1), code);
    EXPECT_TRUE(IsRunning()) << "its Job has not said why";
    Fail("DeadlineExceeded");
    const Sighting end = AwaitEnd(Nth(1));
    EXPECT_EQ(end.platform, v1::APP_ERROR);
    EXPECT_EQ(end.overdue, Overdue::kJob);
    EXPECT_THAT(end.message,
                HasSubstr("longer than activeDeadlineSeconds of its Job allows: Job "));
    executor().Forget(Nth(1));
    ASSERT_TRUE(
        Await([&] { return cluster_.All(Jobs()).empty() && cluster_.All(Pods()).empty(); }));
  }
}

TEST_F(DeadlineTest, SoHasOneThatNeverStarted) {
  Begin();
  Delete();
  EXPECT_TRUE(IsRunning());
  Fail("DeadlineExceeded");
  const Sighting end = AwaitEnd(Nth(1));
  EXPECT_EQ(end.platform, v1::APP_ERROR);
  EXPECT_EQ(end.overdue, Overdue::kJob);
  EXPECT_THAT(end.message, HasSubstr("had not started when activeDeadlineSeconds of its Job"));
}

TEST_F(DeadlineTest, APodThatSomebodyDeletedIsNotTooSlow) {
  BeginAndRun();
  Delete();
  EndPod(Nth(1), 143);
  Fail("BackoffLimitExceeded");
  const Sighting end = AwaitEnd(Nth(1));
  EXPECT_EQ(end.platform, v1::UNKNOWN_CAUSE);
  EXPECT_EQ(end.overdue, Overdue::kNo);
}

// Nor one whose Job never says a word, or has no limit: nobody waits for that one.
TEST_F(DeadlineTest, NorIsOneThatNobodyExplains) {
  for (const bool limited : {true, false}) {
    BeginAndRun(limited);
    Delete();
    EndPod(Nth(1), 143);
    const Sighting end = AwaitEnd(Nth(1));
    EXPECT_EQ(end.platform, v1::UNKNOWN_CAUSE);
    EXPECT_EQ(end.overdue, Overdue::kNo);
    executor().Forget(Nth(1));
    ASSERT_TRUE(
        Await([&] { return cluster_.All(Jobs()).empty() && cluster_.All(Pods()).empty(); }));
  }
}

TEST_F(DeadlineTest, WhatEndedBeforeAndWhatWasTakenAwayStaySo) {
  BeginAndRun();
  EndPod(Nth(1), 0);
  Fail("DeadlineExceeded");
  EXPECT_EQ(AwaitEnd(Nth(1)).exit_code, 0);
  EXPECT_EQ(See(Nth(1)).platform, v1::CAUSE_NONE);
  executor().Forget(Nth(1));
  ASSERT_TRUE(Await([&] { return cluster_.All(Jobs()).empty() && cluster_.All(Pods()).empty(); }));

  BeginAndRun();
  Edit(Nth(1), [](Json& pod) {
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:16Z";
    pod["status"]["conditions"] = {
        {{"type", "DisruptionTarget"}, {"status", "True"}, {"reason", "EvictionByEvictionAPI"}}};
  });
  Fail("DeadlineExceeded");
  EndPod(Nth(1), 143);
  const Sighting end = AwaitEnd(Nth(1));
  EXPECT_EQ(end.platform, v1::PREEMPTED_EVICTION);
  EXPECT_EQ(end.overdue, Overdue::kNo);
}

// The supervisor's record: it had ended by itself while its sidecar was still at work.
TEST_F(DeadlineTest, AProgramThatWasInTimeHasSucceeded) {
  BeginAndRun();
  v1::SyncRequest request = Request(Nth(1));
  request.mutable_state()->mutable_exit()->set_code(0);
  ASSERT_TRUE(executor().Sync(request).ok());
  Fail("DeadlineExceeded");
  Delete();
  EndPod(Nth(1), 0);
  const Sighting end = AwaitEnd(Nth(1));
  EXPECT_EQ(end.platform, v1::CAUSE_NONE);
  EXPECT_EQ(end.overdue, Overdue::kNo);
  EXPECT_EQ(end.exit_code, 0);
}

}  // namespace
}  // namespace shirabe::trial
