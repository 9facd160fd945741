// Which logs go when there are too many, and what never does.
#include "client/leftover_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/file_io.h"
#include "tests/support/stored.h"

namespace shirabe::client {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMiB = 1 << 20;

class OldLogsTest : public testing::Test {
 protected:
  // An attempt with a log of 1 MiB that was last written to so many hours ago.
  trial::AttemptPaths Put(int64_t trial, int hours_ago, bool open = false) {
    const AttemptKey key{{stored_.key(), trial}, 1};
    stored_.Put(MakeTrial(trial, open ? v1::TRIAL_RUNNING : v1::TRIAL_SUCCEEDED));
    v1::Attempt attempt;
    attempt.set_namespace_(stored_.key().ns);
    attempt.set_experiment(stored_.key().name);
    attempt.set_trial(trial);
    attempt.set_number(1);
    attempt.set_state(open ? v1::ATTEMPT_RUNNING : v1::ATTEMPT_CLOSED);
    db::Batch batch;
    batch.experiment = stored_.key();
    batch.attempts.push_back({attempt, 0});
    stored_.Commit(batch);
    EXPECT_TRUE(layout_.Create(key).ok());
    const trial::AttemptPaths paths = layout_.Paths(key);
    Write(paths.log, hours_ago);
    return paths;
  }
  static void Write(const std::string& path, int hours_ago) {
    EXPECT_TRUE(MakeDirs(std::filesystem::path(path).parent_path()).ok());
    EXPECT_TRUE(WriteFileAtomic(path, std::string(kMiB, 'x')).ok());
    timespec times[2] = {};
    times[0].tv_sec = times[1].tv_sec = 1'700'000'000 - hours_ago * 3600;
    EXPECT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  void Sweep(int64_t bytes) {
    const Status swept = RemoveOldLogs(stored_.client(), layout_, bytes);
    EXPECT_TRUE(swept.ok()) << swept;
  }
  static bool IsWhole(const std::string& path) {
    const auto text = ReadFile(path);
    return text.ok() && static_cast<int64_t>(text->size()) == kMiB;
  }

  Stored stored_{/*read_only=*/false};
  const trial::FileLayout layout_{stored_.home()};
};

TEST_F(OldLogsTest, TheOldestGoUntilTheRestFits) {
  const auto newest = Put(1, 1), oldest = Put(2, 30), middle = Put(3, 20);
  Sweep(2 * kMiB + kMiB / 2);
  EXPECT_TRUE(IsWhole(newest.log));
  EXPECT_TRUE(IsWhole(middle.log));
  EXPECT_THAT(*ReadFile(oldest.log), HasSubstr("shirabe: this log is gone"));
  EXPECT_THAT(*ReadFile(oldest.log), HasSubstr("--log-space"));
  Sweep(0);
  EXPECT_FALSE(IsWhole(newest.log));
}

TEST_F(OldLogsTest, WhatFitsStays) {
  const auto one = Put(1, 1000);
  Sweep(2 * kMiB);
  EXPECT_TRUE(IsWhole(one.log));
}

TEST_F(OldLogsTest, AnOpenAttemptKeepsItsLogHoweverOld) {
  const auto open = Put(1, 1000, /*open=*/true);
  Sweep(0);
  EXPECT_TRUE(IsWhole(open.log));
}

TEST_F(OldLogsTest, WhatProgramsSavedIsNeverTaken) {
  const auto paths = Put(1, 10);
  const std::string kept[] = {paths.checkpoint_dir + "/7/model", paths.output_dir + "/result",
                              paths.params_file};
  for (const std::string& path : kept) Write(path, 10);
  const std::string gone[] = {paths.metrics_file, paths.scrapes_file, paths.dir + "/files/out/e"};
  for (const std::string& path : gone) Write(path, 10);
  Sweep(0);
  for (const std::string& path : kept) EXPECT_TRUE(IsWhole(path)) << path;
  for (const std::string& path : gone) EXPECT_FALSE(std::filesystem::exists(path)) << path;
}

TEST_F(OldLogsTest, WhatIsNotInThisDatabaseIsNotOurs) {
  const std::string other = layout_.Paths({{{"default", "other"}, 1}, 1}).log;
  const std::string odd = layout_.ExperimentDir(stored_.key()) + "/notes/log";
  Write(other, 1000);
  Write(odd, 1000);
  Sweep(0);
  EXPECT_TRUE(IsWhole(other));
  EXPECT_TRUE(IsWhole(odd));
}

}  // namespace
}  // namespace shirabe::client
