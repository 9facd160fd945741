// The supervisor by itself: what its two files say, and what its signals do, with nobody between.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <thread>

#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "base/file_io.h"
#include "base/open_beneath.h"
#include "base/process_id.h"
#include "trial/local/spawn_supervisor.h"
#include "trial/local/supervisor_records.h"

namespace shirabe::trial {
namespace {

using ::testing::ElementsAre;

constexpr int kStopSignal = 40;
constexpr int kNoSupervisor = 125;

class SupervisorTest : public testing::Test {
 protected:
  SupervisorTest() {
    std::string path = testing::TempDir() + "shirabe-supervisor-XXXXXX";
    EXPECT_NE(mkdtemp(path.data()), nullptr);
    home_ = path;
    dir_ = home_ + "/attempt";
    EXPECT_TRUE(MakeDirs(dir_).ok());
    const auto program = UnpackSupervisor(home_);
    EXPECT_TRUE(program.ok()) << program.status();
    program_ = program.value_or("");
  }
  ~SupervisorTest() override {
    if (pid_ > 0) {
      kill(pid_, SIGUSR1);
      End();
    }
    EXPECT_TRUE(RemoveAll(home_).ok());
  }

  void Run(const std::string& script, absl::Duration grace = absl::Seconds(60)) {
    const Fd log(open((home_ + "/log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    SpawnRequest request;
    request.supervisor = program_;
    request.dir = dir_;
    request.log = log.get();
    request.id = "id";
    request.grace = grace;
    request.argv = {"sh", "-c", script};
    request.environment = {{"PATH", getenv("PATH")}};
    const auto pid = SpawnSupervisor(request);
    ASSERT_TRUE(pid.ok()) << pid.status();
    pid_ = *pid;
  }
  void Stop(absl::Duration grace) const {
    union sigval value = {};
    value.sival_int = static_cast<int>(absl::ToInt64Milliseconds(grace));
    EXPECT_EQ(sigqueue(pid_, kStopSignal, value), 0);
  }
  ExitRecord End() {
    EXPECT_EQ(waitpid(pid_, nullptr, 0), pid_);
    pid_ = 0;
    const auto record = ReadExitRecord(dir_);
    EXPECT_TRUE(record.ok()) << record.status();
    return record.value_or(ExitRecord());
  }

  std::string File(const std::string& name) const { return home_ + "/" + name; }
  std::vector<std::string> Lines(const std::string& name) const {
    return absl::StrSplit(ReadFile(File(name)).value_or(""), '\n', absl::SkipEmpty());
  }
  void AwaitFile(const std::string& name) const {
    EXPECT_TRUE(Await([&] { return !Lines(name).empty(); })) << name;
  }
  static bool Await(const std::function<bool()>& condition) {
    const absl::Duration deadline = RealClock()->Monotonic() + absl::Seconds(60);
    while (!condition()) {
      if (RealClock()->Monotonic() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  }
  // Whether the command itself has ended, and something that it started lives on.
  bool CommandHasEnded() const {
    const std::string record = ReadFile(dir_ + "/pid").value_or("");
    const size_t at = record.find("\nchild ");
    const int child = at == std::string::npos ? 0 : atoi(record.c_str() + at + 7);
    return child > 0 && !FindProcess(child).has_value();
  }

  std::string home_, dir_, program_;
  pid_t pid_ = 0;
};

// The command is over, with an end of its own; only what it left behind is there to be stopped.
TEST_F(SupervisorTest, AStopAfterTheEndChangesNothingOfTheEnd) {
  Run("setsid sh -c \"trap '' TERM; echo up > " + File("left") +
      "; while :; do sleep 0.05; done\" & while ! test -s " + File("left") +
      "; do sleep 0.01; done; exit 3");
  AwaitFile("left");
  ASSERT_TRUE(Await([this] { return CommandHasEnded(); }));
  Stop(absl::ZeroDuration());
  const ExitRecord record = End();
  EXPECT_EQ(record.code, 3);
  EXPECT_FALSE(record.stop_requested);
  EXPECT_FALSE(record.killed);
  EXPECT_LT(record.ended - record.began, absl::Seconds(30));
}

TEST_F(SupervisorTest, AStopBeforeTheEndIsTold) {
  Run("trap 'exit 7' TERM; echo up > " + File("ready") + "; while :; do sleep 0.05; done");
  AwaitFile("ready");
  Stop(absl::Seconds(60));
  const ExitRecord record = End();
  EXPECT_EQ(record.code, 7);
  EXPECT_TRUE(record.stop_requested);
  EXPECT_FALSE(record.killed);
}

TEST_F(SupervisorTest, ALaterStopNeverLengthensTheGrace) {
  Run("trap 'echo told >> " + File("told") + "' TERM; echo up > " + File("ready") +
      "; while :; do sleep 0.05; done");
  AwaitFile("ready");
  const absl::Duration begin = RealClock()->Monotonic();
  Stop(absl::Milliseconds(700));
  Stop(absl::Seconds(40));
  kill(pid_, SIGTERM);  // whose grace is a minute
  const ExitRecord record = End();
  EXPECT_LT(RealClock()->Monotonic() - begin, absl::Seconds(30));
  EXPECT_EQ(record.signal, SIGKILL);
  EXPECT_TRUE(record.killed);
  EXPECT_TRUE(record.stop_requested);
}

// A shell ends at once and leaves its program, which was told as well: it is told once, and has
// the whole grace, more than what an end without a stop leaves to leftovers.
TEST_F(SupervisorTest, WhatAStoppedCommandLeavesHasTheGraceAndIsToldOnce) {
  Run("sh -c \"trap 'echo told >> " + File("told") + "' TERM; echo up > " + File("ready") +
      "; while ! test -s " + File("told") + "; do sleep 0.05; done" +
      "; i=0; while test \\$i -lt 54; do sleep 0.05; i=\\$((i+1)); done; echo saved > " +
      File("saved") + "\" & trap 'sleep 0.2; exit 0' TERM; wait");
  AwaitFile("ready");
  Stop(absl::Seconds(60));
  EXPECT_EQ(End().code, 0);
  EXPECT_THAT(Lines("saved"), ElementsAre("saved"));
  EXPECT_THAT(Lines("told"), ElementsAre("told"));
}

// Nobody is to take what never began for what has vanished.
TEST_F(SupervisorTest, AStartThatFailsLeavesNoRecord) {
  ASSERT_EQ(chmod(home_.c_str(), 0777), 0);
  ASSERT_EQ(chmod(dir_.c_str(), 0777), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    // No process more; root is above that limit, so it is nobody who tries.
    const rlimit none = {0, 0};
    if (getuid() == 0 && (setgroups(0, nullptr) != 0 || setgid(65534) != 0 || setuid(65534) != 0)) {
      _exit(1);
    }
    if (setrlimit(RLIMIT_NPROC, &none) != 0) _exit(1);
    execl(program_.c_str(), program_.c_str(), "--dir", dir_.c_str(), "--id", "id", "--", "true",
          nullptr);
    _exit(2);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) < 3) GTEST_SKIP() << "this user cannot be denied another process";
  ASSERT_EQ(WEXITSTATUS(status), kNoSupervisor);
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/pid"));
  EXPECT_EQ(FindAttemptProcess(dir_, "id").state, AttemptProcess::State::kNeverStarted);
}

}  // namespace
}  // namespace shirabe::trial
