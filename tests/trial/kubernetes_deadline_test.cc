// Jobs that have outrun their activeDeadlineSeconds: the Job controller deletes their pods, which
// then look as if anybody had, and says why a moment later.
#include "tests/trial/kubernetes_fixture.h"

namespace shirabe::trial {
namespace {

using ::testing::HasSubstr;
using Overdue = AttemptStatus::Overdue;

class DeadlineTest : public KubernetesTest {
 protected:
  void Begin(bool limited = true) {
    AttemptRequest request = PodRequestFor(key_);
    if (limited) {
      (*(*request.trial_spec.mutable_fields())["spec"]
            .mutable_struct_value()
            ->mutable_fields())["activeDeadlineSeconds"]
          .set_number_value(6);
    }
    ASSERT_TRUE(executor().Start(request).ok());
    MakePod(key_);
  }
  void BeginAndRun(bool limited = true) {
    Begin(limited);
    RunPod(key_);
    ASSERT_TRUE(Await([&] { return See(key_).placement.has_start_time(); }));
  }
  void Delete() {
    Edit(key_, [](Json& pod) { pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:16Z"; });
  }
  void Fail(const std::string& reason) {
    Json job = *cluster_.Get(JobRef(key_));
    job["status"]["conditions"] = {{{"type", "FailureTarget"},
                                    {"status", "True"},
                                    {"reason", reason},
                                    {"message", "Job was active longer than specified deadline"}}};
    cluster_.Put(Jobs(), job);
  }
  // Another attempt: what is deleted late of this one has no object of the next.
  void Next() {
    executor().Forget(key_);
    key_ = Nth(++count_);
  }
  bool IsRunning() {
    Pause(5 * Impatient().retry);
    return See(key_).state == AttemptStatus::State::kRunning;
  }

  int count_ = 1;
  AttemptKey key_ = Nth(1);
};

// Also where the program ends well once it is asked to, and the Job says so later.
TEST_F(DeadlineTest, AJobThatIsTooSlowHasFailedForGood) {
  for (const int code : {0, 143}) {
    BeginAndRun();
    Delete();
    EndPod(key_, code);
    EXPECT_TRUE(IsRunning()) << "its Job has not said why";
    Fail("DeadlineExceeded");
    const AttemptStatus end = AwaitEnd(key_);
    EXPECT_EQ(end.platform, v1::APP_ERROR);
    EXPECT_EQ(end.overdue, Overdue::kJob);
    EXPECT_THAT(end.message,
                HasSubstr("longer than activeDeadlineSeconds of its Job allows: Job "));
    Next();
  }
}

TEST_F(DeadlineTest, SoHasOneThatNeverStarted) {
  Begin();
  Delete();
  EXPECT_TRUE(IsRunning());
  Fail("DeadlineExceeded");
  const AttemptStatus end = AwaitEnd(key_);
  EXPECT_EQ(end.platform, v1::APP_ERROR);
  EXPECT_EQ(end.overdue, Overdue::kJob);
  EXPECT_THAT(end.message, HasSubstr("had not started when activeDeadlineSeconds of its Job"));
}

TEST_F(DeadlineTest, APodThatSomebodyDeletedIsNotTooSlow) {
  BeginAndRun();
  Delete();
  EndPod(key_, 143);
  Fail("BackoffLimitExceeded");
  const AttemptStatus end = AwaitEnd(key_);
  EXPECT_EQ(end.platform, v1::UNKNOWN_CAUSE);
  EXPECT_EQ(end.overdue, Overdue::kNo);
}

// Nor one whose Job never says a word, or has no limit: nobody waits for that one.
TEST_F(DeadlineTest, NorIsOneThatNobodyExplains) {
  for (const bool limited : {true, false}) {
    BeginAndRun(limited);
    Delete();
    EndPod(key_, 143);
    const AttemptStatus end = AwaitEnd(key_);
    EXPECT_EQ(end.platform, v1::UNKNOWN_CAUSE);
    EXPECT_EQ(end.overdue, Overdue::kNo);
    Next();
  }
}

TEST_F(DeadlineTest, WhatEndedBeforeAndWhatWasTakenAwayStaySo) {
  BeginAndRun();
  EndPod(key_, 0);
  Fail("DeadlineExceeded");
  EXPECT_EQ(AwaitEnd(key_).exit_code, 0);
  EXPECT_EQ(See(key_).platform, v1::CAUSE_NONE);
  Next();

  BeginAndRun();
  Edit(key_, [](Json& pod) {
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:16Z";
    pod["status"]["conditions"] = {
        {{"type", "DisruptionTarget"}, {"status", "True"}, {"reason", "EvictionByEvictionAPI"}}};
  });
  Fail("DeadlineExceeded");
  EndPod(key_, 143);
  const AttemptStatus end = AwaitEnd(key_);
  EXPECT_EQ(end.platform, v1::PREEMPTED_EVICTION);
  EXPECT_EQ(end.overdue, Overdue::kNo);
}

// The supervisor's record: it had ended by itself while its sidecar was still at work.
TEST_F(DeadlineTest, AProgramThatWasInTimeHasSucceeded) {
  BeginAndRun();
  v1::SyncRequest request = Request(key_);
  request.mutable_state()->mutable_exit()->set_code(0);
  ASSERT_TRUE(executor().Sync(request).ok());
  Fail("DeadlineExceeded");
  Delete();
  EndPod(key_, 0);
  const AttemptStatus end = AwaitEnd(key_);
  EXPECT_EQ(end.platform, v1::CAUSE_NONE);
  EXPECT_EQ(end.overdue, Overdue::kNo);
  EXPECT_EQ(end.exit_code, 0);
}

}  // namespace
}  // namespace shirabe::trial
