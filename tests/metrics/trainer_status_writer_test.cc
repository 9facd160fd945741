// What is new in a call becomes a line of the metrics file, and what could not be written comes
// again.
#include "metrics/trainer_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/file_io.h"

namespace shirabe::metrics {
namespace {

constexpr char kStatusCall[] =
    R"({"trainerStatus": {"lastUpdatedTime": "2026-11-21T08:30:00.5+00:00", "metrics": [)"
    R"({"name": "loss", "value": "0.25"}, {"name": "gap", "value": "inf"},)"
    R"( {"name": "current_step", "value": "20"}]}})";
constexpr char kStatusLine[] =
    "{\"step\": 20, \"timestamp\": 1795249800.5, \"metrics\": {\"loss\": 0.25, \"gap\": "
    "Infinity}}\n";

class TrainerStatusWriterTest : public testing::Test {
 protected:
  TrainerStatusWriterTest() { CHECK(mkdtemp(folder_.data()) != nullptr); }
  ~TrainerStatusWriterTest() override { std::filesystem::remove_all(folder_); }
  std::string Text() const { return ReadFile(file_).value_or("none"); }

  std::string folder_ = testing::TempDir() + "/shirabe-status-XXXXXX";
  std::string file_;
};

TEST_F(TrainerStatusWriterTest, WritesALineBesideTheProgramsOwn) {
  file_ = folder_ + "/metrics.jsonl";
  std::ofstream(file_) << "{\"metrics\": {\"own\": 1}}\n";
  TrainerStatusWriter writer(file_, 0600);
  EXPECT_TRUE(*writer.Write(kStatusCall));
  EXPECT_FALSE(*writer.Write(kStatusCall)) << "it is not new";
  EXPECT_EQ(Text(), std::string("{\"metrics\": {\"own\": 1}}\n") + kStatusLine);
  EXPECT_TRUE(absl::IsInvalidArgument(writer.Write("{}").status()));
}

TEST_F(TrainerStatusWriterTest, WhatCouldNotBeWrittenIsNewTheNextTime) {
  file_ = folder_ + "/later/metrics.jsonl";
  TrainerStatusWriter writer(file_, 0666);
  const Status status = writer.Write(kStatusCall).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  ASSERT_TRUE(std::filesystem::create_directory(folder_ + "/later"));
  EXPECT_TRUE(*writer.Write(kStatusCall));
  EXPECT_EQ(Text(), kStatusLine);
  struct stat info;
  ASSERT_EQ(stat(file_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0666u) << "whatever the umask";
}

TEST_F(TrainerStatusWriterTest, FollowsNoLinkAndBlamesNoCall) {
  file_ = folder_ + "/metrics.jsonl";
  std::ofstream(folder_ + "/secret") << "untouched";
  std::filesystem::create_symlink(folder_ + "/secret", file_);
  TrainerStatusWriter writer(file_, 0600);
  EXPECT_TRUE(absl::IsUnavailable(writer.Write(kStatusCall).status()));
  EXPECT_EQ(*ReadFile(folder_ + "/secret"), "untouched");
}

}  // namespace
}  // namespace shirabe::metrics
