// What trial/log_file.h promises: a bounded part of the disk, every offset as it was.
#include "trial/log_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "base/open_beneath.h"

namespace shirabe::trial {
namespace {

using ::testing::HasSubstr;

constexpr LogLimits kLimits = {.head = 1 << 20, .tail = 1 << 20, .step = 256 << 10};
constexpr int64_t kAll = int64_t{1} << 40;

class LogFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = testing::TempDir() + "shirabe-log-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    path_ = folder_ + "/log";
    if (!CanTrim(folder_)) GTEST_SKIP() << "the file system of " << folder_ << " has no holes";
  }
  void TearDown() override { EXPECT_TRUE(RemoveAll(folder_).ok()); }

  // Numbered lines of 64 bytes.
  void Print(int64_t bytes) {
    std::ofstream out(path_, std::ios::app | std::ios::binary);
    for (int64_t done = 0; done < bytes; done += 64) {
      std::string line = absl::StrCat("line ", lines_++);
      line.resize(63, '.');
      out << line << '\n';
    }
  }
  int64_t Size() { return static_cast<int64_t>(std::filesystem::file_size(path_)); }

  // As a reader gets it, piece by piece.
  std::string ReadAll() {
    std::string text;
    for (int64_t offset = 0;;) {
      const auto piece = ReadLog(path_, offset, 100'000);
      EXPECT_TRUE(piece.ok()) << piece.status();
      if (!piece.ok()) return text;
      text += piece->text;
      EXPECT_TRUE(piece->next > offset || piece->at_end);
      offset = piece->next;
      if (piece->at_end) return text;
    }
  }

  std::string folder_, path_;
  int64_t lines_ = 0;
};

TEST_F(LogFileTest, AShortLogStaysWhole) {
  Print(2 << 20);
  const std::string before = *ReadFile(path_);
  EXPECT_TRUE(TrimLog(path_, kAll, kLimits).ok());
  EXPECT_TRUE(ReadAll() == before);
  EXPECT_TRUE(TrimLog(folder_ + "/none", kAll, kLimits).ok());
  EXPECT_TRUE(absl::IsNotFound(ReadLog(folder_ + "/none", 0, 10).status()));
}

TEST_F(LogFileTest, OfALongOneTheBeginningAndTheEndStayAndTheRestIsNamed) {
  Print(20 << 20);
  const std::string whole = *ReadFile(path_);
  ASSERT_TRUE(TrimLog(path_, Size(), kLimits).ok());
  EXPECT_LE(DiskBytes(path_), 3 << 20);
  EXPECT_EQ(Size(), 20 << 20) << "offsets stay";
  const std::string text = ReadAll();
  // Compared as a whole: a difference would be printed with megabytes around it.
  EXPECT_TRUE(text == whole.substr(0, kLimits.head) +
                          "\nshirabe: 18.0 MiB of the output are left out here\n" +
                          whole.substr(whole.size() - kLimits.tail));
}

// A program that prints 256 MiB, and a reader that is a little behind.
TEST_F(LogFileTest, HoweverMuchIsPrintedTheDiskHoldsLittle) {
  int64_t most = 0;
  for (int i = 0; i < 64; ++i) {
    Print(4 << 20);
    ASSERT_TRUE(TrimLog(path_, Size() - (1 << 20), kLimits).ok());
    most = std::max(most, DiskBytes(path_));
  }
  EXPECT_EQ(Size(), 256 << 20);
  EXPECT_LE(most, 8 << 20);
}

TEST_F(LogFileTest, NothingGoesThatWasNotRead) {
  Print(20 << 20);
  const std::string whole = *ReadFile(path_);
  ASSERT_TRUE(TrimLog(path_, 0, kLimits).ok());
  EXPECT_TRUE(ReadAll() == whole);
  constexpr int64_t kRead = 5 << 20;
  ASSERT_TRUE(TrimLog(path_, kRead, kLimits).ok());
  EXPECT_LT(DiskBytes(path_), 17 << 20);
  EXPECT_TRUE(ReadFile(path_)->substr(kRead - 64) == whole.substr(kRead - 64));
}

TEST_F(LogFileTest, ReadingOnFromWithinTheGapGoesOnBehindIt) {
  Print(20 << 20);
  ASSERT_TRUE(TrimLog(path_, Size(), kLimits).ok());
  const auto piece = ReadLog(path_, 10 << 20, 1000);
  ASSERT_TRUE(piece.ok());
  EXPECT_THAT(piece->text, HasSubstr("left out here"));
  EXPECT_EQ(piece->next, 19 << 20);
  EXPECT_FALSE(piece->at_end);
}

TEST_F(LogFileTest, ALinkIsNotShortened) {
  Print(20 << 20);
  const std::string link = folder_ + "/link";
  std::filesystem::create_symlink(path_, link);
  TrimLog(link, kAll, kLimits).IgnoreError();
  EXPECT_EQ(DiskBytes(path_), 20 << 20);
}

}  // namespace
}  // namespace shirabe::trial
