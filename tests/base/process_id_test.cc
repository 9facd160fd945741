#include "base/process_id.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/status.h"

namespace shirabe {
namespace {

// A child that does nothing until it is killed.
class Child {
 public:
  Child() : pid_(fork()) {
    if (pid_ == 0) {
      for (;;) pause();
    }
    CHECK(pid_ > 0);
  }
  ~Child() { Reap(); }
  pid_t pid() const { return pid_; }

  // Dead, but not yet waited for.
  void Kill() const {
    kill(pid_, SIGKILL);
    siginfo_t info;
    CHECK(waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) == 0);
  }
  void Reap() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_;
};

TEST(ProcessId, OfThisProcess) {
  const ProcessId self = ThisProcess();
  EXPECT_EQ(self.pid, getpid());
  EXPECT_GT(self.start, 0u);
  EXPECT_FALSE(self.boot.empty());
  EXPECT_EQ(FindProcess(getpid()), self);
  EXPECT_TRUE(MayBeAlive(self));
}

TEST(ProcessId, OfThisProcessStaysTheSameWithoutFileDescriptors) {
  const ProcessId self = ThisProcess();
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none = {.rlim_cur = 0, .rlim_max = limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const bool found = FindProcess(getpid()).has_value();
  const ProcessId later = ThisProcess();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_FALSE(found);
  EXPECT_EQ(later, self);
}

TEST(ProcessId, OfAForkedChildIsItsOwn) {
  const ProcessId self = ThisProcess();
  const pid_t child = fork();
  if (child == 0) _exit(ThisProcess().pid == getpid() && !(ThisProcess() == self) ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(ProcessId, ADeadProcessIsDeadAlsoAsAZombie) {
  Child child;
  const auto id = FindProcess(child.pid());
  ASSERT_TRUE(id.has_value());
  EXPECT_TRUE(MayBeAlive(*id));
  child.Kill();
  EXPECT_EQ(FindProcess(child.pid()), std::nullopt);
  EXPECT_FALSE(MayBeAlive(*id));
  child.Reap();
  EXPECT_FALSE(MayBeAlive(*id));
}

TEST(ProcessId, AReusedPidIsAnotherProcess) {
  ProcessId earlier = ThisProcess();
  earlier.start -= 1;
  EXPECT_FALSE(MayBeAlive(earlier));
  ProcessId other_boot = ThisProcess();
  other_boot.boot = "another";
  EXPECT_FALSE(MayBeAlive(other_boot));
  ProcessId other_host = ThisProcess();
  other_host.host += "-other";
  EXPECT_TRUE(MayBeAlive(other_host)) << "it cannot be known from here";
}

// The name of a command stands in the same line, in parentheses, and may hold anything.
TEST(ProcessId, CommandNamesCannotConfuse) {
  const ProcessId before = ThisProcess();
  char name[16];
  prctl(PR_GET_NAME, name);
  prctl(PR_SET_NAME, ") Z 1 (2 3");
  EXPECT_EQ(ThisProcess(), before);
  prctl(PR_SET_NAME, name);
}

TEST(ProcessId, AsTextAndBack) {
  const ProcessId self = ThisProcess();
  EXPECT_EQ(ParseProcessId(ToString(self)), self);
  EXPECT_EQ(ToString(ProcessId{"host", "boot", 7, 99}), "host:7:99:boot");
  for (const char* text : {"", "host", "host:7:99", "host:x:99:boot", "host:7::boot",
                           "host:7:99:boot:more", "host:7:-1:boot"}) {
    EXPECT_EQ(ParseProcessId(text), std::nullopt) << text;
  }
}

TEST(ProcessId, TheAgeOfAProcessGrows) {
  const absl::Duration machine = AgeOf(0), parent = AgeOf(FindProcess(getppid())->start);
  const absl::Duration self = AgeOf(ThisProcess().start);
  EXPECT_GE(self, absl::ZeroDuration());
  EXPECT_GE(parent + absl::Milliseconds(20), self);
  EXPECT_GT(machine, absl::ZeroDuration());
  EXPECT_GE(machine + absl::Milliseconds(20), parent);
  EXPECT_EQ(AgeOf(uint64_t{1} << 50), absl::ZeroDuration());
}

TEST(ProcessId, NoSuchProcess) {
  EXPECT_EQ(FindProcess(0), std::nullopt);
  EXPECT_EQ(FindProcess(-1), std::nullopt);
  EXPECT_EQ(FindProcess(1 << 30), std::nullopt);
}

}  // namespace
}  // namespace shirabe
