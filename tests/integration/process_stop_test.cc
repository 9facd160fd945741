// Stopping real programs, those included that do not want to end, and whatever they started.
#include <csignal>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "nlohmann/json.hpp"
#include "tests/trial/executor_harness.h"

namespace shirabe::trial {
namespace {

using ::testing::HasSubstr;
using State = AttemptStatus::State;

class ProcessStopTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(harness_.Open(), nullptr); }

  std::string File(const std::string& name) { return harness_.home() + "/" + name; }
  pid_t AwaitPid(const std::string& name) { return harness_.AwaitPid(File(name)); }
  // Runs the script until it has written file "ready".
  void StartAndAwait(const AttemptKey& key, Ask ask) {
    const Status status = harness_.Start(key, ask);
    ASSERT_TRUE(status.ok()) << status;
    harness_.AwaitFile(File("ready"));
  }
  Status Stop(const AttemptKey& key, absl::Duration grace, v1::Cause why = v1::PREEMPTED_SPOT) {
    return harness_.executor().Stop(key, why, grace);
  }
  // What the program printed, without what its shell says of a sleep that SIGTERM ended.
  std::string Printed(const AttemptKey& key) {
    return absl::StrReplaceAll(harness_.Log(key), {{"Terminated\n", ""}});
  }
  absl::Duration Since(absl::Duration begin) { return RealClock()->Monotonic() - begin; }
  // A loop that the shell itself runs, so that no child of it is waited for.
  std::string Forever() { return "echo up > " + File("ready") + "; while :; do sleep 0.05; done"; }

  ExecutorHarness harness_;
};

TEST_F(ProcessStopTest, TheProgramLearnsWhyAndMayEndByItself) {
  const std::string control = harness_.executor().Paths(Attempt(1)).control_file;
  StartAndAwait(Attempt(1),
                {.argv = Shell("trap 'cat " + control + "; exit 75' TERM; " + Forever())});
  const absl::Time before = RealClock()->Now();
  ASSERT_TRUE(Stop(Attempt(1), absl::Seconds(40)).ok());
  EXPECT_EQ(harness_.AwaitEnd(Attempt(1)).exit_code, 75);
  const auto request = nlohmann::json::parse(Printed(Attempt(1)), nullptr, false);
  ASSERT_TRUE(request.is_object()) << harness_.Log(Attempt(1));
  EXPECT_EQ(request["id"], 1);
  EXPECT_EQ(request["reason"], "preempt");
  EXPECT_NEAR(request["deadline"].get<double>(), absl::ToUnixSeconds(before) + 40, 5);
}

TEST_F(ProcessStopTest, TermReachesTheWholeGroup) {
  StartAndAwait(Attempt(1), {.argv = Shell("trap 'wait; echo parent; exit 7' TERM; "
                                           "(trap 'echo child; exit' TERM; " +
                                           Forever() + ") & wait")});
  ASSERT_TRUE(Stop(Attempt(1), absl::Seconds(40)).ok());
  EXPECT_EQ(harness_.AwaitEnd(Attempt(1)).exit_code, 7);
  EXPECT_EQ(Printed(Attempt(1)), "child\nparent\n");
}

TEST_F(ProcessStopTest, WhoIgnoresTermIsKilledAfterTheGrace) {
  StartAndAwait(Attempt(1), {.argv = Shell("trap '' TERM; " + Forever())});
  const absl::Duration begin = RealClock()->Monotonic();
  ASSERT_TRUE(Stop(Attempt(1), absl::Milliseconds(300)).ok());
  const AttemptStatus end = harness_.AwaitEnd(Attempt(1));
  EXPECT_EQ(end.signal, SIGKILL);
  EXPECT_FALSE(end.out_of_memory);
  EXPECT_GE(Since(begin), absl::Milliseconds(290));
}

TEST_F(ProcessStopTest, NoGraceMeansNow) {
  StartAndAwait(Attempt(1), {.argv = Shell("trap '' TERM INT; " + Forever())});
  ASSERT_TRUE(Stop(Attempt(1), absl::ZeroDuration()).ok());
  EXPECT_EQ(harness_.AwaitEnd(Attempt(1)).signal, SIGKILL);
}

TEST_F(ProcessStopTest, AnotherStopMayOnlyShortenAndTellsTheProgramOnce) {
  StartAndAwait(Attempt(1), {.argv = Shell("trap 'echo told' TERM; " + Forever())});
  const absl::Duration begin = RealClock()->Monotonic();
  ASSERT_TRUE(Stop(Attempt(1), absl::Seconds(50)).ok());
  EXPECT_TRUE(harness_.Await([&] { return Printed(Attempt(1)) == "told\n"; }));
  ASSERT_TRUE(Stop(Attempt(1), absl::Hours(1)).ok());
  ASSERT_TRUE(Stop(Attempt(1), absl::Milliseconds(100)).ok());
  ASSERT_TRUE(Stop(Attempt(1), absl::Hours(1)).ok());
  EXPECT_EQ(harness_.AwaitEnd(Attempt(1)).signal, SIGKILL);
  EXPECT_LT(Since(begin), absl::Seconds(40));
  EXPECT_EQ(Printed(Attempt(1)), "told\n");
}

TEST_F(ProcessStopTest, AStopRightAfterTheStartIsNotLost) {
  for (int trial = 1; trial <= 20; ++trial) {
    ASSERT_TRUE(harness_.Start(Attempt(trial), {.argv = {"sleep", "1000"}}).ok());
    ASSERT_TRUE(Stop(Attempt(trial), absl::Seconds(50)).ok());
  }
  for (int trial = 1; trial <= 20; ++trial) {
    EXPECT_EQ(harness_.AwaitEnd(Attempt(trial)).signal, SIGTERM);
  }
}

TEST_F(ProcessStopTest, AGrandchildInASessionOfItsOwnIsStopped) {
  StartAndAwait(Attempt(1),
                {.argv = Shell("setsid sh -c 'trap \"\" TERM; echo $$$$ > " + File("escaped") +
                               "; while :; do sleep 1; done' & " + Forever())});
  const pid_t escaped = AwaitPid("escaped");
  ASSERT_TRUE(FindProcess(escaped).has_value());
  ASSERT_TRUE(Stop(Attempt(1), absl::Milliseconds(200)).ok());
  harness_.AwaitEnd(Attempt(1));
  EXPECT_FALSE(FindProcess(escaped).has_value());
}

// It forks twice, and its parents are gone: nobody but a subreaper can find it.
TEST_F(ProcessStopTest, ADaemonIsStoppedWhenTheCommandHasEnded) {
  const std::string daemon = "(setsid sh -c 'echo $$$$ > " + File("daemon") +
                             "; while :; do sleep 1; done' &) & wait; while ! test -s " +
                             File("daemon") + "; do sleep 0.01; done; exit 3";
  ASSERT_TRUE(harness_.Start(Attempt(1), {.argv = Shell(daemon)}).ok());
  EXPECT_EQ(harness_.AwaitEnd(Attempt(1)).exit_code, 3);
  EXPECT_FALSE(FindProcess(AwaitPid("daemon")).has_value());
}

TEST_F(ProcessStopTest, ADaemonThatIgnoresTermIsKilledSoon) {
  const std::string daemon = "setsid sh -c 'trap \"\" TERM; echo $$$$ > " + File("daemon") +
                             "; while :; do sleep 1; done' & while ! test -s " + File("daemon") +
                             "; do sleep 0.01; done";
  ASSERT_TRUE(harness_.Start(Attempt(1), {.argv = Shell(daemon)}).ok());
  const AttemptStatus end = harness_.AwaitEnd(Attempt(1));
  EXPECT_EQ(end.exit_code, 0);
  // The end is the command's own, not that of what it left behind.
  EXPECT_LT(FromProto(end.placement.end_time()) - FromProto(end.placement.start_time()),
            absl::Milliseconds(1900));
  EXPECT_FALSE(FindProcess(AwaitPid("daemon")).has_value());
}

// sh ends at once on SIGTERM, while the program it runs saves its work: that has the grace.
TEST_F(ProcessStopTest, AGroupMemberMaySaveItsWorkWhenItsShellIsGone) {
  const std::string saving = "sh -c 'trap \"sleep 0.5; echo saved > " + File("saved") +
                             "; exit\" TERM; echo up > " + File("ready") +
                             "; while :; do sleep 0.05; done' & wait";
  StartAndAwait(Attempt(1), {.argv = Shell(saving)});
  ASSERT_TRUE(Stop(Attempt(1), absl::Seconds(30)).ok());
  EXPECT_EQ(harness_.AwaitEnd(Attempt(1)).signal, SIGTERM);
  EXPECT_EQ(ReadFile(File("saved")).value_or(""), "saved\n");
}

TEST_F(ProcessStopTest, ACommandThatForksWithoutEndIsStopped) {
  StartAndAwait(Attempt(1),
                {.argv = Shell("trap '' TERM; echo up > " + File("ready") +
                               "; for i in 1 2 3 4; do (trap '' TERM; while :; do setsid sleep "
                               "0.05 & wait; done) & done; wait")});
  ASSERT_TRUE(Stop(Attempt(1), absl::Milliseconds(50)).ok());
  EXPECT_EQ(harness_.AwaitEnd(Attempt(1)).signal, SIGKILL);
}

TEST_F(ProcessStopTest, AStoppedProcessCanBeKilled) {
  StartAndAwait(Attempt(1), {.argv = Shell("echo up > " + File("ready") + "; kill -STOP $$$$")});
  ASSERT_TRUE(Stop(Attempt(1), absl::Milliseconds(100)).ok());
  EXPECT_EQ(harness_.AwaitEnd(Attempt(1)).signal, SIGKILL);
}

// The deadline is kept by the supervisor: nobody else need be there.
TEST_F(ProcessStopTest, TheGraceIsKeptWhenWeAreGone) {
  StartAndAwait(Attempt(1), {.argv = Shell("trap '' TERM; " + Forever())});
  const auto pid = static_cast<pid_t>(harness_.See(Attempt(1))->placement.pid());
  ASSERT_TRUE(Stop(Attempt(1), absl::Milliseconds(200)).ok());
  harness_.Close();
  EXPECT_TRUE(harness_.AwaitGone(pid));
  ASSERT_NE(harness_.Open(), nullptr);
  harness_.executor().Adopt({Record(Attempt(1))});
  EXPECT_EQ(harness_.See(Attempt(1))->signal, SIGKILL);
}

TEST_F(ProcessStopTest, AnIdOfTheControlFileIsNeverUsedTwice) {
  StartAndAwait(Attempt(1), {.argv = Shell("trap '' TERM; " + Forever())});
  ASSERT_TRUE(Stop(Attempt(1), absl::Seconds(50), v1::EARLY_STOPPED).ok());
  ASSERT_NE(harness_.Open(), nullptr);
  harness_.executor().Adopt({Record(Attempt(1))});
  ASSERT_TRUE(Stop(Attempt(1), absl::Milliseconds(50), v1::USER).ok());
  harness_.AwaitEnd(Attempt(1));
  const std::string text =
      ReadFile(harness_.executor().Paths(Attempt(1)).control_file).value_or("");
  EXPECT_THAT(text, HasSubstr("\"id\":2"));
  EXPECT_THAT(text, HasSubstr("\"reason\":\"cancel\""));
}

}  // namespace
}  // namespace shirabe::trial
