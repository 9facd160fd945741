// kill -9: of us, of the supervisor, and of neither although it looks like it.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/open_beneath.h"
#include "tests/trial/executor_harness.h"

namespace shirabe::trial {
namespace {

using ::testing::HasSubstr;
using State = AttemptStatus::State;

class ProcessAdoptTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(harness_.Open(), nullptr); }

  std::string File(const std::string& name) { return harness_.home() + "/" + name; }
  pid_t AwaitPid(const std::string& name) { return harness_.AwaitPid(File(name)); }

  // Another process opens an executor over this home, starts the attempts, and is killed. With
  // `cgroup`, in a control group of that directory.
  void StartElsewhereAndKill(const std::vector<AttemptRequest>& requests,
                             const std::string& cgroup = "") {
    harness_.Close();
    const pid_t other = fork();
    ASSERT_GE(other, 0);
    if (other == 0) {
      harness_.Open();
      bool good = cgroup.empty() || WriteOver(cgroup + "/cgroup.procs", absl::StrCat(getpid()));
      for (const AttemptRequest& request : requests) {
        good = good && harness_.executor().Start(request).ok();
      }
      if (good && WriteFileAtomic(File("started"), "yes\n").ok()) raise(SIGKILL);
      _exit(1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(other, &status, 0), other);
    ASSERT_TRUE(WIFSIGNALED(status));
    ASSERT_TRUE(std::filesystem::exists(File("started"))) << "killed before it had started all";
    ASSERT_NE(harness_.Open(), nullptr);
  }

  // Into a file that cannot be replaced.
  static bool WriteOver(const std::string& path, const std::string& text) {
    const Fd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
    return fd.valid() &&
           write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  }

  // A control group below ours with 64 MB of memory; "" if it cannot be had.
  static std::string MakeSmallGroup() {
    const std::string groups = ReadFile("/proc/self/cgroup").value_or("");
    const struct {
      std::string controller, root, limit;
    } versions[] = {{":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
                    {"0::", "/sys/fs/cgroup", "memory.max"}};
    for (const auto& version : versions) {
      const size_t at = groups.find(version.controller);
      if (at == std::string::npos) continue;
      const size_t begin = at + version.controller.size();
      const std::string dir =
          absl::StrCat(version.root, groups.substr(begin, groups.find('\n', begin) - begin),
                       "/shirabe-test-", getpid());
      if (mkdir(dir.c_str(), 0755) != 0) continue;
      if (WriteOver(dir + "/" + version.limit, "64000000")) return dir;
      rmdir(dir.c_str());
    }
    return "";
  }

  // Replaces "key value" in a record.
  void Forge(const AttemptKey& key, const std::string& field, const std::string& value) {
    const std::string path = harness_.executor().Paths(key).dir + "/pid";
    const std::string text = *ReadFile(path);
    const size_t begin = text.find(field + " ");
    ASSERT_NE(begin, std::string::npos);
    const size_t end = text.find('\n', begin);
    ASSERT_TRUE(
        WriteFileAtomic(path, text.substr(0, begin) + field + " " + value + text.substr(end)).ok());
  }

  AttemptStatus AdoptOne(const AttemptKey& key) {
    harness_.executor().Adopt({Record(key)});
    return harness_.See(key).value_or(AttemptStatus());
  }

  ExecutorHarness harness_;
};

TEST_F(ProcessAdoptTest, TrialsSurviveKillMinusNineAndAreAdopted) {
  const std::string go = File("go");
  StartElsewhereAndKill(
      {MakeRequest(Attempt(1), {.argv = Shell("while ! test -e " + go +
                                              "; do sleep 0.01; done; echo on; exit 6")}),
       MakeRequest(Attempt(2), {.argv = Shell("exit 7")})});
  ASSERT_TRUE(harness_.Await([&] {
    return std::filesystem::exists(harness_.executor().Paths(Attempt(2)).dir + "/exit");
  }));
  EXPECT_EQ(AdoptOne(Attempt(1)).state, State::kRunning);
  const AttemptStatus ended = AdoptOne(Attempt(2));
  EXPECT_EQ(ended.state, State::kExited);
  EXPECT_EQ(ended.exit_code, 7);
  EXPECT_TRUE(ended.placement.has_start_time());
  EXPECT_TRUE(ended.placement.has_end_time());
  ASSERT_TRUE(WriteFileAtomic(go, "").ok());
  EXPECT_EQ(harness_.AwaitEnd(Attempt(1)).exit_code, 6);
  EXPECT_EQ(harness_.Log(Attempt(1)), "on\n");
  EXPECT_TRUE(harness_.Await([&] { return harness_.Changes(kExperiment) >= 1; }));
}

TEST_F(ProcessAdoptTest, AnAdoptedTrialCanBeStopped) {
  StartElsewhereAndKill({MakeRequest(Attempt(1), {.argv = {"sleep", "1000"}})});
  EXPECT_EQ(AdoptOne(Attempt(1)).state, State::kRunning);
  ASSERT_TRUE(harness_.executor().Stop(Attempt(1), v1::USER, absl::Seconds(30)).ok());
  EXPECT_EQ(harness_.AwaitEnd(Attempt(1)).signal, SIGTERM);
}

TEST_F(ProcessAdoptTest, StartAfterKillMinusNineAdoptsAsWell) {
  const AttemptRequest request = MakeRequest(Attempt(1), {.argv = Shell("echo once; exit 4")});
  StartElsewhereAndKill({request});
  ASSERT_TRUE(harness_.executor().Start(request).ok());
  EXPECT_EQ(harness_.AwaitEnd(Attempt(1)).exit_code, 4);
  EXPECT_EQ(harness_.Log(Attempt(1)), "once\n");
}

TEST_F(ProcessAdoptTest, AKilledSupervisorIsALossAndLeavesNothing) {
  ASSERT_TRUE(harness_
                  .Start(Attempt(1), {.argv = Shell("setsid sh -c 'echo $$$$ > " + File("escaped") +
                                                    "; exec sleep 1000' & echo $$$$ > " +
                                                    File("main") + "; wait")})
                  .ok());
  const pid_t main = AwaitPid("main");
  const pid_t escaped = AwaitPid("escaped");
  kill(static_cast<pid_t>(harness_.See(Attempt(1))->placement.pid()), SIGKILL);
  const AttemptStatus end = harness_.AwaitEnd(Attempt(1));
  EXPECT_EQ(end.state, State::kLost);
  EXPECT_EQ(end.message, "its supervisor was killed by signal 9");
  EXPECT_TRUE(end.placement.has_end_time());
  EXPECT_TRUE(harness_.AwaitGone(main));
  EXPECT_TRUE(harness_.AwaitGone(escaped));
}

// In the middle of an exec a process has no environment for a moment.
TEST_F(ProcessAdoptTest, WhatIsBetweenTwoProgramsIsFoundAsWell) {
  const std::string again = File("again");
  ASSERT_TRUE(WriteFileAtomic(again, "exec sh " + again).ok());
  for (int trial = 1; trial <= 20; ++trial) {
    const std::string name = absl::StrCat("escaped", trial);
    const std::string script =
        "setsid sh -c 'echo $$$$ > " + File(name) + "; exec sh " + again + "' & wait";
    ASSERT_TRUE(harness_.Start(Attempt(trial), {.argv = Shell(script)}).ok());
    const pid_t escaped = AwaitPid(name);
    kill(static_cast<pid_t>(harness_.See(Attempt(trial))->placement.pid()), SIGKILL);
    EXPECT_EQ(harness_.AwaitEnd(Attempt(trial)).state, State::kLost);
    const bool gone = harness_.AwaitGone(escaped);
    if (!gone) kill(escaped, SIGKILL);
    ASSERT_TRUE(gone) << trial;
  }
}

// Neither knows of the other: our own process dies first, then the supervisor.
TEST_F(ProcessAdoptTest, LeftoversOfALostAttemptAreFoundAtTheNextStart) {
  StartElsewhereAndKill(
      {MakeRequest(Attempt(1), {.argv = Shell("setsid sh -c 'echo $$$$ > " + File("escaped") +
                                              "; exec sleep 1000' & wait")})});
  const pid_t escaped = AwaitPid("escaped");
  int supervisor = 0;
  const std::string record = *ReadFile(harness_.executor().Paths(Attempt(1)).dir + "/pid");
  ASSERT_TRUE(absl::SimpleAtoi(record.substr(4, record.find('\n') - 4), &supervisor));
  kill(supervisor, SIGKILL);
  ASSERT_TRUE(harness_.AwaitGone(supervisor));
  EXPECT_TRUE(FindProcess(escaped).has_value());
  EXPECT_EQ(AdoptOne(Attempt(1)).state, State::kLost);
  EXPECT_TRUE(harness_.AwaitGone(escaped));
}

TEST_F(ProcessAdoptTest, AReusedPidIsNeitherAdoptedNorKilled) {
  ASSERT_TRUE(harness_.Start(Attempt(1), {.argv = {"true"}}).ok());
  harness_.AwaitEnd(Attempt(1));
  ASSERT_TRUE(harness_.Start(Attempt(2), {.argv = {"sleep", "1000"}}).ok());
  const auto innocent = static_cast<pid_t>(harness_.See(Attempt(2))->placement.pid());
  ASSERT_TRUE(RemoveAll(harness_.executor().Paths(Attempt(1)).dir + "/exit").ok());
  Forge(Attempt(1), "pid", absl::StrCat(innocent));
  Forge(Attempt(1), "start", absl::StrCat(FindProcess(innocent)->start - 1));
  ASSERT_NE(harness_.Open(), nullptr);
  const AttemptStatus lost = AdoptOne(Attempt(1));
  EXPECT_EQ(lost.state, State::kLost);
  EXPECT_THAT(lost.message, HasSubstr("no exit record"));
  EXPECT_EQ(AdoptOne(Attempt(2)).state, State::kRunning);
  ASSERT_TRUE(harness_.executor().Stop(Attempt(2), v1::USER, absl::ZeroDuration()).ok());
  harness_.AwaitEnd(Attempt(2));
}

// What it costs goes by how long it ran, so that must not follow a clock that somebody sets.
TEST_F(ProcessAdoptTest, HowLongItHasRunDoesNotGoByTheWallClock) {
  const absl::Duration before = RealClock()->Monotonic();
  ASSERT_TRUE(harness_.Start(Attempt(1), {.argv = {"sleep", "1000"}}).ok());
  ASSERT_TRUE(harness_.See(Attempt(1))->ran.has_value());
  EXPECT_LE(*harness_.See(Attempt(1))->ran, RealClock()->Monotonic() - before);
  const absl::Time hours_ago = RealClock()->Now() - absl::Hours(3);
  Forge(Attempt(1), "began", absl::StrCat(absl::ToUnixNanos(hours_ago)));
  ASSERT_NE(harness_.Open(), nullptr);
  const std::optional<absl::Duration> ran = AdoptOne(Attempt(1)).ran;
  ASSERT_TRUE(ran.has_value());
  EXPECT_GE(*ran, absl::ZeroDuration());
  // The age of a process is known to 20 ms.
  EXPECT_LE(*ran, RealClock()->Monotonic() - before + absl::Milliseconds(20));
  ASSERT_TRUE(harness_.executor().Stop(Attempt(1), v1::USER, absl::ZeroDuration()).ok());
  harness_.AwaitEnd(Attempt(1));
}

TEST_F(ProcessAdoptTest, AnEarlierBootIsOver) {
  ASSERT_TRUE(harness_.Start(Attempt(1), {.argv = {"sleep", "1000"}}).ok());
  const auto pid = static_cast<pid_t>(harness_.See(Attempt(1))->placement.pid());
  Forge(Attempt(1), "boot", "00000000-0000-0000-0000-000000000000");
  ASSERT_NE(harness_.Open(), nullptr);
  const AttemptStatus lost = AdoptOne(Attempt(1));
  EXPECT_EQ(lost.state, State::kLost);
  EXPECT_THAT(lost.message, HasSubstr("restarted"));
  kill(pid, SIGKILL);
  EXPECT_TRUE(harness_.AwaitGone(pid));
}

TEST_F(ProcessAdoptTest, ARecordThatNobodyCanReadIsNotOurs) {
  for (const char* text : {"", "pid", "pid x\nstart y\n", "\xff\xfe\n\n \n", "pid -1\nstart 1\n"}) {
    const AttemptPaths paths = harness_.executor().Paths(Attempt(1));
    ASSERT_TRUE(MakeDirs(paths.dir).ok());
    ASSERT_TRUE(WriteFileAtomic(paths.dir + "/pid", text).ok());
    EXPECT_EQ(AdoptOne(Attempt(1)).state, State::kLost);
    harness_.executor().Forget(Attempt(1));
    EXPECT_EQ(harness_.Start(Attempt(1), {.argv = {"true"}}).code(),
              absl::StatusCode::kAlreadyExists);
  }
}

TEST_F(ProcessAdoptTest, AKillByTheKernelForWantOfMemoryIsTold) {
  const std::string group = MakeSmallGroup();
  if (group.empty())
    GTEST_SKIP() << "making a control group is not permitted here: running out of memory is "
                    "not tried";
  // Memory runs out only then: the kernel might choose who starts them.
  const std::string go = File("go");
  const std::string wait = "until test -e " + go + "; do sleep 0.05; done; ";
  StartElsewhereAndKill(
      {MakeRequest(Attempt(1), {.argv = Shell(wait + "exec tail /dev/zero")}),
       MakeRequest(Attempt(2), {.argv = Shell(wait + "tail /dev/zero; exit 137")}),
       MakeRequest(Attempt(3), {.argv = {"sleep", "1000"}})},
      group);
  ASSERT_TRUE(WriteFileAtomic(go, "").ok());
  harness_.executor().Adopt({Record(Attempt(1)), Record(Attempt(2)), Record(Attempt(3))});
  const AttemptStatus direct = harness_.AwaitEnd(Attempt(1));
  EXPECT_EQ(direct.signal, SIGKILL);
  EXPECT_TRUE(direct.out_of_memory);
  EXPECT_THAT(direct.message, HasSubstr("memory"));
  EXPECT_TRUE(harness_.AwaitEnd(Attempt(2)).out_of_memory);
  // A kill of ours is no such thing, whatever happened around it.
  ASSERT_TRUE(harness_.executor().Stop(Attempt(3), v1::USER, absl::ZeroDuration()).ok());
  EXPECT_FALSE(harness_.AwaitEnd(Attempt(3)).out_of_memory);
  EXPECT_TRUE(harness_.Await([&] { return rmdir(group.c_str()) == 0; }));
}

// The race of a start that a crash cut short with the start that follows it.
TEST_F(ProcessAdoptTest, OfTwoSupervisorsOneStarts) {
  const AttemptRequest request = MakeRequest(Attempt(1), {.argv = Shell("echo once; sleep 0.2")});
  harness_.Close();
  for (int round = 1; round <= 5; ++round) {
    AttemptRequest mine = request;
    mine.key = Attempt(round);
    const pid_t twin = fork();
    ASSERT_GE(twin, 0);
    if (twin == 0) {
      harness_.Open();
      _exit(harness_.executor().Start(mine).ok() ? 0 : 1);
    }
    ASSERT_NE(harness_.Open(), nullptr);
    EXPECT_TRUE(harness_.executor().Start(mine).ok());
    int status = 0;
    ASSERT_EQ(waitpid(twin, &status, 0), twin);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(harness_.AwaitEnd(mine.key).exit_code, 0);
    EXPECT_EQ(harness_.Log(mine.key), "once\n");
    harness_.Close();
  }
  ASSERT_NE(harness_.Open(), nullptr);
}

}  // namespace
}  // namespace shirabe::trial
