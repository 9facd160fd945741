// The process executor where things run out, or run many at a time.
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/trial/executor_harness.h"
#include "trial/local/gpu_pool.h"

namespace shirabe::trial {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using State = AttemptStatus::State;

int OpenDescriptors() {
  const std::filesystem::directory_iterator descriptors("/proc/self/fd");
  return static_cast<int>(std::distance(begin(descriptors), end(descriptors)));
}

class ProcessLoadTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(harness_.Open(), nullptr); }
  ExecutorHarness harness_;
};

TEST_F(ProcessLoadTest, TwoHundredAtOnce) {
  constexpr int kTrials = 200;
  const std::string go = harness_.home() + "/go";
  for (int trial = 1; trial <= kTrials; ++trial) {
    const std::string script =
        absl::StrCat("while ! test -e ", go, "; do sleep 0.2; done; exit ", trial % 100);
    ASSERT_TRUE(harness_.Start(Attempt(trial), {.argv = Shell(script)}).ok()) << trial;
  }
  for (const AttemptStatus& observed : harness_.executor().Observe(kExperiment)) {
    EXPECT_EQ(observed.state, State::kRunning);
  }
  ASSERT_TRUE(WriteFileAtomic(go, "").ok());
  for (int trial = 1; trial <= kTrials; ++trial) {
    EXPECT_EQ(harness_.AwaitEnd(Attempt(trial)).exit_code, trial % 100);
  }
  EXPECT_THAT(harness_.executor().Observe(kExperiment), SizeIs(kTrials));
}

TEST_F(ProcessLoadTest, SeveralThreadsMayUseIt) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([this, thread] {
      for (int i = 1; i <= 10; ++i) {
        const AttemptKey key = Attempt(100 * thread + i);
        EXPECT_TRUE(harness_.Start(key, {.argv = {"sleep", "1000"}}).ok());
        EXPECT_FALSE(harness_.executor().Observe(kExperiment).empty());
        EXPECT_TRUE(harness_.executor().Stop(key, v1::USER, absl::Milliseconds(10)).ok());
        EXPECT_EQ(harness_.AwaitEnd(key).state, State::kExited);
        harness_.executor().Forget(key);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(harness_.executor().Observe(kExperiment), IsEmpty());
}

TEST_F(ProcessLoadTest, NoDescriptorIsLeaked) {
  constexpr int kStarts = 500;
  const int before = OpenDescriptors();
  for (int trial = 1; trial <= kStarts; ++trial) {
    ASSERT_TRUE(harness_.Start(Attempt(trial), {.argv = {"true"}}).ok());
    EXPECT_EQ(harness_.AwaitEnd(Attempt(trial)).exit_code, 0);
    if (trial % 2 == 0) harness_.executor().Forget(Attempt(trial));
  }
  EXPECT_EQ(OpenDescriptors(), before);
  harness_.Close();
  EXPECT_LT(OpenDescriptors(), before);
}

TEST_F(ProcessLoadTest, WithoutDescriptorsNothingIsStartedAndItCanBeTriedAgain) {
  ASSERT_TRUE(harness_.Start(Attempt(1), {.argv = {"true"}}).ok());
  harness_.AwaitEnd(Attempt(1));
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit few = {static_cast<rlim_t>(OpenDescriptors() + 4), limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<Fd> hoard;
  while (hoard.empty() || hoard.back().valid()) hoard.emplace_back(open("/dev/null", O_RDONLY));
  const Status status = harness_.Start(Attempt(2), {.argv = {"true"}});
  hoard.clear();
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(harness_.See(Attempt(2)).has_value(), false);
  EXPECT_TRUE(harness_.Start(Attempt(2), {.argv = {"true"}}).ok());
  EXPECT_EQ(harness_.AwaitEnd(Attempt(2)).exit_code, 0);
}

// With just enough descriptors to start, and none to watch: the end is seen all the same.
TEST_F(ProcessLoadTest, WhatCannotBeWatchedIsStillSeenEnding) {
  ASSERT_TRUE(harness_.Start(Attempt(1), {.argv = {"true"}}).ok());
  harness_.AwaitEnd(Attempt(1));
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  int started = 0;
  // Descriptors left for the start: from too few, over just enough, to plenty.
  for (int spare = 0; spare < 8; ++spare) {
    const AttemptKey key = Attempt(10 + spare);
    const rlimit few = {static_cast<rlim_t>(OpenDescriptors() - 1 + spare), limit.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    const Status status = harness_.Start(key, {.argv = Shell("exit 8")});
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    if (!status.ok()) continue;
    ++started;
    EXPECT_EQ(harness_.AwaitEnd(key).exit_code, 8) << spare;
  }
  EXPECT_GT(started, 0);
}

// The space for the exit record is taken before the program can use it up.
TEST_F(ProcessLoadTest, AFullDiskLosesNoExit) {
  const std::string disk = harness_.home() + "/trials";
  ASSERT_TRUE(MakeDirs(disk).ok());
  if (mount("none", disk.c_str(), "tmpfs", 0, "size=256k") != 0) {
    GTEST_SKIP() << "mounting a tmpfs is not permitted here: a full disk is not tried";
  }
  const std::string script = "cat /dev/zero > $SHIRABE_OUTPUT_DIR/fill; exit 11";
  const Status status = harness_.Start(Attempt(1), {.argv = Shell(script)});
  EXPECT_TRUE(status.ok()) << status;
  const AttemptStatus end = harness_.AwaitEnd(Attempt(1));
  const Status full = harness_.Start(Attempt(2), {.argv = {"true"}});
  ASSERT_NE(harness_.Open(), nullptr);
  harness_.executor().Adopt({Record(Attempt(1))});
  const auto adopted = harness_.See(Attempt(1));
  EXPECT_EQ(umount(disk.c_str()), 0);
  EXPECT_EQ(end.exit_code, 11);
  EXPECT_EQ(adopted->exit_code, 11);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Message(full), HasSubstr("No space left"));
}

// `nvidia-smi` as the machine has it, or not at all.
TEST(DetectDevicesTest, ObeysTheEnvironmentAndFindsAProgram) {
  ExecutorHarness harness;
  const std::string path = getenv("PATH");
  const char* visible = getenv("CUDA_VISIBLE_DEVICES");
  setenv("CUDA_VISIBLE_DEVICES", "2, GPU-abc ,5", 1);
  EXPECT_THAT(DetectDevices(RealClock()), SizeIs(3));
  setenv("CUDA_VISIBLE_DEVICES", "3,-1,4", 1);
  EXPECT_THAT(DetectDevices(RealClock()), ElementsAre("3"));
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  EXPECT_THAT(DetectDevices(RealClock()), IsEmpty());
  unsetenv("CUDA_VISIBLE_DEVICES");

  const std::string program = harness.home() + "/nvidia-smi";
  ASSERT_TRUE(
      WriteFileAtomic(program, "#!/bin/sh\ntest $1 = -L && echo 'GPU 0: H100 (UUID: GPU-1)'\n")
          .ok());
  ASSERT_EQ(chmod(program.c_str(), 0755), 0);
  setenv("PATH", (harness.home() + ":" + path).c_str(), 1);
  EXPECT_THAT(DetectDevices(RealClock()), ElementsAre("0"));
  ASSERT_TRUE(WriteFileAtomic(program, "#!/bin/sh\necho 'GPU 0: broken'; exit 9\n").ok());
  ASSERT_EQ(chmod(program.c_str(), 0755), 0);
  EXPECT_THAT(DetectDevices(RealClock()), IsEmpty());
  setenv("PATH", "/nowhere", 1);
  EXPECT_THAT(DetectDevices(RealClock()), IsEmpty());

  setenv("PATH", path.c_str(), 1);
  if (visible != nullptr) setenv("CUDA_VISIBLE_DEVICES", visible, 1);
}

}  // namespace
}  // namespace shirabe::trial
