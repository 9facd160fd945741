#include "metrics/file_tail.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/file_io.h"
#include "tests/metrics/testing.h"

namespace shirabe::metrics {
namespace {

class TailTest : public testing::Test {
 protected:
  // Reads on; "a|b" for two lines.
  std::string Read(bool ended = false) {
    TailRequest request;
    request.cursor = cursor_;
    request.cursor.set_path(path_);
    request.ended = ended;
    request.copies = copies_;
    std::vector<std::string> lines;
    const auto result = ReadLines(request, [&](std::string_view line) {
      lines.emplace_back(line.substr(0, 20));
      return true;
    });
    EXPECT_TRUE(result.ok()) << result.status();
    cursor_ = result->cursor;
    long_lines_ = result->long_lines;
    more_ = result->more;
    return absl::StrJoin(lines, "|");
  }

  void Rename(const std::string& to) { ASSERT_EQ(rename(path_.c_str(), dir_.File(to).c_str()), 0); }

  TempDir dir_;
  const std::string path_ = dir_.File("log");
  v1::FileCursor cursor_;
  int64_t long_lines_ = 0;
  bool more_ = false;
  bool copies_ = false;
};

TEST_F(TailTest, ReadsEachLineOnceAndHoldsAPartOfOne) {
  EXPECT_EQ(Read(), "") << "not there yet";
  Write(path_, "one\ntw");
  EXPECT_EQ(Read(), "one");
  EXPECT_EQ(Read(), "");
  Append(path_, "o\nthree");
  EXPECT_EQ(Read(), "two");
  EXPECT_EQ(Read(true), "three");
  EXPECT_EQ(Read(true), "");
}

TEST_F(TailTest, EndsLinesAsTerminalsAndWindowsDo) {
  Write(path_, "one\r\n10%\r20%\r\rtwo\n\n");
  EXPECT_EQ(Read(), "one||10%|20%||two|");
}

TEST_F(TailTest, ReadsATruncatedFileFromItsBeginning) {
  Write(path_, "one\ntwo\n");
  EXPECT_EQ(Read(), "one|two");
  Write(path_, "new\n");
  EXPECT_EQ(Read(), "new");
}

TEST_F(TailTest, ReadsAReplacedFileFromItsBeginning) {
  Write(path_, "one\n");
  EXPECT_EQ(Read(), "one");
  Write(dir_.File("other"), "one\ntwo\n");
  ASSERT_EQ(rename(dir_.File("other").c_str(), path_.c_str()), 0);
  EXPECT_EQ(Read(), "one|two");
}

TEST_F(TailTest, NoticesAFileRewrittenInPlaceAtEitherEnd) {
  const std::string body = std::string(500, 'x') + "\n";
  Write(path_, "head 1\n" + body + "last 1\n");
  Read();
  Write(path_, "head 2\n" + body + "last 1\nmore\n");
  EXPECT_EQ(Read(), "head 2|xxxxxxxxxxxxxxxxxxxx|last 1|more");
  Write(path_, "head 2\n" + body + "last 1\nMORE\nand\n");
  EXPECT_EQ(Read(), "head 2|xxxxxxxxxxxxxxxxxxxx|last 1|MORE|and");
}

// Its writer counts up in the first line and then in the last, again and again. Whoever believes
// what is read meanwhile finds the last line ahead, and so the file was never.
TEST_F(TailTest, ReadsNothingOfAFileThatIsRewrittenMeanwhile) {
  const std::string filler = std::string(1007, '-') + "\n";
  std::string text = "00000000-------\n";
  for (int i = 0; i < 4000; ++i) text += filler;
  const auto last_at = static_cast<off_t>(text.size());
  Write(path_, text + "00000000\n");
  const Fd file(open(path_.c_str(), O_WRONLY | O_CLOEXEC));
  std::jthread writer([&](const std::stop_token& stop) {
    for (int i = 1; !stop.stop_requested(); ++i) {
      const std::string count = absl::StrFormat("%08d", i);
      ASSERT_EQ(pwrite(file.get(), count.data(), 8, 0), 8);
      ASSERT_EQ(pwrite(file.get(), count.data(), 8, last_at), 8);
    }
  });
  TailRequest request{.rewritten = true};
  request.cursor.set_path(path_);
  std::vector<std::string> lines;
  const auto read = [&] {
    lines.clear();
    const auto result = ReadLines(request, [&](std::string_view line) {
      lines.emplace_back(line.substr(0, 8));
      return true;
    });
    ASSERT_TRUE(result.ok()) << result.status();
  };
  for (int i = 0; i < 300; ++i) {
    read();
    if (lines.empty()) continue;
    ASSERT_LE(lines.back(), lines.front());
  }
  writer.request_stop();
  writer.join();
  read();
  ASSERT_THAT(lines, testing::SizeIs(4002));
  EXPECT_EQ(lines.back(), lines.front());
}

TEST_F(TailTest, ReadsARotatedFileToItsEnd) {
  Write(path_, "one\ntw");
  EXPECT_EQ(Read(), "one");
  Append(path_, "o\nthree");
  Rename("log.1");
  Write(path_, "four\n");
  EXPECT_EQ(Read(), "two|three|four");
  EXPECT_EQ(Read(), "");
}

TEST_F(TailTest, ReadsAFileToItsEndThatWasRenamedForGood) {
  Write(path_, "one\ntw");
  EXPECT_EQ(Read(), "one");
  Append(path_, "o\nthree");
  Rename("log.old");
  EXPECT_EQ(Read(), "two");
  EXPECT_EQ(Read(true), "three");
}

TEST_F(TailTest, SurvivesARemovedFile) {
  Write(path_, "one\n");
  EXPECT_EQ(Read(), "one");
  ASSERT_EQ(unlink(path_.c_str()), 0);
  EXPECT_EQ(Read(), "");
  Write(path_, "two\n");
  EXPECT_EQ(Read(), "two");
}

TEST_F(TailTest, SkipsALineThatIsTooLongAndCountsItOnce) {
  const std::string part(700'000, 'x');
  Write(path_, "one\n" + part);
  EXPECT_EQ(Read(), "one");
  EXPECT_EQ(long_lines_, 0) << "may still end in time";
  Append(path_, part);
  EXPECT_EQ(Read(), "");
  EXPECT_EQ(long_lines_, 1);
  EXPECT_TRUE(cursor_.skipping());
  Append(path_, part);
  Read();
  EXPECT_EQ(long_lines_, 0);
  Append(path_, part + "\ntwo\n");
  EXPECT_EQ(Read(), "two");
  EXPECT_EQ(long_lines_, 0);
  EXPECT_FALSE(cursor_.skipping());
}

TEST_F(TailTest, TakesALineOfExactlyTheGreatestLength) {
  Write(path_,
        std::string(kMaxLineBytes, 'a') + "\n" + std::string(kMaxLineBytes + 1, 'b') + "\nc");
  EXPECT_EQ(Read(true), "aaaaaaaaaaaaaaaaaaaa|c");
  EXPECT_EQ(long_lines_, 1);
}

TEST_F(TailTest, ReadsAtMostItsLimitACall) {
  std::string text;
  while (text.size() < 9'000'000) text += "0123456789abcdef\n";
  Write(path_, text);
  size_t lines = 0;
  int calls = 0;
  do {
    const std::string read = Read();
    lines += read.empty() ? 0 : static_cast<size_t>(std::count(read.begin(), read.end(), '|')) + 1;
    ++calls;
  } while (more_);
  EXPECT_EQ(lines, text.size() / 17);
  EXPECT_EQ(calls, 3);
}

TEST_F(TailTest, StopsWhenToldTo) {
  Write(path_, "one\ntwo\n");
  TailRequest request;
  request.cursor.set_path(path_);
  int lines = 0;
  const auto result = ReadLines(request, [&](std::string_view) { return ++lines < 1; });
  EXPECT_EQ(lines, 1);
  EXPECT_TRUE(result->more);
  EXPECT_EQ(result->cursor.offset(), 4u);
}

TEST_F(TailTest, ReadsManyCarriageReturnsBeforeOneNewlineFast) {
  std::string text;
  while (text.size() < 3'000'000) text += "5%\r";
  Write(path_, text + "\n");
  const std::string read = Read();
  EXPECT_EQ(std::count(read.begin(), read.end(), '|'), 1'000'000);
}

TEST_F(TailTest, PassesOverAHoleWithoutReadingIt) {
  Write(path_, "first\n");
  std::filesystem::resize_file(path_, uintmax_t{1} << 40);
  std::ofstream(path_, std::ios::app) << "\nlast\n";
  TailRequest request;
  request.cursor.set_path(path_);
  std::string lines;
  int64_t long_lines = 0;
  for (int calls = 0; calls < 9; ++calls) {
    const auto result = ReadLines(request, [&](std::string_view line) {
      lines += std::string(line) + "|";
      return true;
    });
    ASSERT_TRUE(result.ok()) << result.status();
    request.cursor = result->cursor;
    long_lines += result->long_lines;
  }
  EXPECT_EQ(lines, "first|last|");
  EXPECT_EQ(long_lines, 1);
}

TEST_F(TailTest, RefusesWhatIsNoFileAndNamesIt) {
  TailRequest request;
  const auto read = [&] {
    return ReadLines(request, [](std::string_view) { return true; }).status();
  };
  request.cursor.set_path(dir_.path());
  EXPECT_EQ(read().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(read()), testing::HasSubstr(dir_.path() + " is a directory"));
  request.cursor.set_path(dir_.File("pipe"));
  ASSERT_EQ(mkfifo(dir_.File("pipe").c_str(), 0600), 0);
  EXPECT_EQ(read().code(), absl::StatusCode::kInvalidArgument);
  request.cursor.set_path(dir_.File("pipe") + "/under/it");
  EXPECT_TRUE(read().ok()) << "no such file";
  if (geteuid() == 0) return;  // root may read everything
  Write(path_, "secret\n");
  ASSERT_EQ(chmod(path_.c_str(), 0), 0);
  request.cursor.set_path(path_);
  EXPECT_EQ(read().code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(TailTest, StartsAfterWhatIsThereAlready) {
  Write(path_, "old\n");
  cursor_ = EndOfFile(path_);
  EXPECT_EQ(Read(), "");
  Append(path_, "new\n");
  EXPECT_EQ(Read(), "new");
}

TEST_F(TailTest, StartsAtTheBeginningOfAFileThatReplacesWhatWasThere) {
  Write(path_, "old, and longer\n");
  cursor_ = EndOfFile(path_);
  Write(path_, "new\n");
  EXPECT_EQ(Read(), "new");
  cursor_ = EndOfFile(path_);
  Write(path_, "another one, longer than before\n");
  EXPECT_EQ(Read(), "another one, longer ");
}

TEST_F(TailTest, CountsLines) {
  EXPECT_EQ(CountLines(path_), -1);
  Write(path_, "");
  EXPECT_EQ(CountLines(path_), 0);
  Write(path_, "a\nb");
  EXPECT_EQ(CountLines(path_), 2);
}

// ---- copies -------------------------------------------------------------------------------------

class CopyTailTest : public TailTest {
 protected:
  CopyTailTest() { copies_ = true; }
  // Another server makes the copy anew, with another inode.
  void MakeAnew(const std::string& contents) {
    Write(dir_.File("new"), contents);
    ASSERT_EQ(rename(dir_.File("new").c_str(), path_.c_str()), 0);
  }
};

TEST_F(CopyTailTest, AnotherInodeIsNoOtherFile) {
  Write(path_, "one\ntwo\n");
  EXPECT_EQ(Read(), "one|two");
  MakeAnew("one\ntwo\nthree\n");
  EXPECT_EQ(Read(), "three");
}

TEST_F(CopyTailTest, OneThatIsBeingRefilledIsWaitedFor) {
  Write(path_, "one\ntwo\nthree\n");
  EXPECT_EQ(Read(), "one|two|three");
  MakeAnew("");
  EXPECT_EQ(Read(), "");
  MakeAnew("one\nt");
  EXPECT_EQ(Read(), "");
  MakeAnew("one\ntwo\nthree\nfour\n");
  EXPECT_EQ(Read(), "four");
}

TEST_F(CopyTailTest, WhatTheProgramWroteAnewIsReadFromItsBeginning) {
  Write(path_, "one\ntwo\n");
  EXPECT_EQ(Read(), "one|two");
  MakeAnew("uno\n");
  EXPECT_EQ(Read(), "uno");
  MakeAnew("un\n");
  EXPECT_EQ(Read(), "un");
}

TEST_F(CopyTailTest, AtTheEndAShorterOneIsAnotherOne) {
  Write(path_, "one\ntwo\n");
  EXPECT_EQ(Read(), "one|two");
  MakeAnew("one\n");
  EXPECT_EQ(Read(true), "one");
}

// The server keeps what it replaces in the same folder, under a name of its own.
TEST_F(CopyTailTest, TheEndOfOneThatWasReplacedIsRead) {
  Write(path_, "one\n");
  EXPECT_EQ(Read(), "one");
  Append(path_, "two\n");
  Rename(".replaced-1");
  MakeAnew("three\n");
  EXPECT_EQ(Read(), "two|three");
}

}  // namespace
}  // namespace shirabe::metrics
