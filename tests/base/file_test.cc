#include "base/file_io.h"
#include "base/open_beneath.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>

namespace shirabe {
namespace {

namespace fs = std::filesystem;

class FileTest : public testing::Test {
 protected:
  FileTest() {
    std::string pattern = (fs::temp_directory_path() / "shirabe-file-XXXXXX").string();
    CHECK(mkdtemp(pattern.data()) != nullptr);
    dir_ = pattern;
  }
  ~FileTest() override { fs::remove_all(dir_); }

  std::string Path(const std::string& name) const { return dir_ + "/" + name; }

  std::string TailOf(const std::string& contents, int lines, int64_t max_bytes = 8192) const {
    CHECK(WriteFileAtomic(Path("tail"), contents).ok());
    return TailBeneath("", Path("tail"), lines, max_bytes);
  }

  std::string dir_;
};

TEST_F(FileTest, WhatIsWrittenIsRead) {
  const std::string contents = std::string("a\0b\n", 4) + std::string(200000, 'x');
  for (const bool durable : {false, true}) {
    ASSERT_TRUE(WriteFileAtomic(Path("f"), contents, durable).ok());
    EXPECT_EQ(ReadFile(Path("f")).value(), contents);
  }
  ASSERT_TRUE(WriteFileAtomic(Path("f"), "").ok());
  EXPECT_EQ(ReadFile(Path("f")).value(), "");
  EXPECT_FALSE(fs::exists(Path("f.tmp")));
}

TEST_F(FileTest, ErrorsNameThePathAndHaveTheirCode) {
  const auto absent = ReadFile(Path("absent"));
  EXPECT_EQ(absent.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(Message(absent.status()).find(Path("absent")), std::string::npos);
  EXPECT_FALSE(ReadFile(dir_).ok());
  EXPECT_EQ(WriteFileAtomic(Path("no/such/f"), "x").code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(WriteFileAtomic(Path("f"), "12345").ok());
  EXPECT_EQ(ReadFile(Path("f"), 4).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReadFile(Path("f"), 5).value(), "12345");
  EXPECT_FALSE(MakeDirs(Path("f/below")).ok());
}

// Takes the first part of a write and refuses the rest, as a disk does that fills up. For a child
// process: a limit cannot be taken back.
[[noreturn]] void WriteOverTheLimit(const std::string& path) {
  signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{100000, 100000};
  setrlimit(RLIMIT_FSIZE, &limit);
  const Status status = WriteFileAtomic(path, std::string(150000, 'x'));
  _exit(status.code() == absl::StatusCode::kResourceExhausted ? 42 : 1);
}

TEST_F(FileTest, AWriteThatIsCutShortIsAnError) {
  ASSERT_TRUE(WriteFileAtomic(Path("f"), "old").ok());
  EXPECT_EXIT(WriteOverTheLimit(Path("f")), testing::ExitedWithCode(42), "");
  EXPECT_EQ(ReadFile(Path("f")).value(), "old");
  EXPECT_FALSE(fs::exists(Path("f.tmp")));
}

TEST_F(FileTest, FoldersAreMadeAndRemovedWhole) {
  ASSERT_TRUE(MakeDirs(Path("a/b/c")).ok());
  ASSERT_TRUE(MakeDirs(Path("a/b/c")).ok());
  ASSERT_TRUE(WriteFileAtomic(Path("a/b/f"), "x").ok());
  ASSERT_TRUE(RemoveAll(Path("a")).ok());
  EXPECT_FALSE(fs::exists(Path("a")));
  EXPECT_TRUE(RemoveAll(Path("a")).ok());
}

TEST_F(FileTest, TailTakesTheLastLines) {
  EXPECT_EQ(TailOf("a\nb\nc\n", 2), "b\nc");
  EXPECT_EQ(TailOf("a\nb\nc", 2), "b\nc");
  EXPECT_EQ(TailOf("a\nb\nc\n", 9), "a\nb\nc");
  EXPECT_EQ(TailOf("\na\nb\n", 2), "a\nb");
  EXPECT_EQ(TailOf("\na\nb\n", 3), "\na\nb");
  EXPECT_EQ(TailOf("a\n\nc\n", 2), "\nc");
  EXPECT_EQ(TailOf("a\nb\n\n\n", 1), "b");
  EXPECT_EQ(TailOf("a\nb\n", 0), "");
  EXPECT_EQ(TailOf("", 3), "");
  EXPECT_EQ(TailOf("\n\n", 3), "");
}

TEST_F(FileTest, TailReadsNoMoreThanItMay) {
  EXPECT_EQ(TailOf(std::string(1 << 20, 'x') + "end", 5, 10), "xxxxxxxend");
  EXPECT_EQ(TailBeneath("", Path("absent"), 5), "");
  EXPECT_EQ(TailBeneath("", dir_, 5), "");
}

TEST_F(FileTest, ARangeEndsWithTheFile) {
  ASSERT_TRUE(WriteFileAtomic(Path("data"), "0123456789").ok());
  const Fd fd(open(Path("data").c_str(), O_RDONLY));
  EXPECT_EQ(*ReadFileRange(fd.get(), 2, 3, "data"), "234");
  EXPECT_EQ(*ReadFileRange(fd.get(), 8, 5, "data"), "89");
  EXPECT_EQ(*ReadFileRange(fd.get(), 10, 5, "data"), "");
  EXPECT_EQ(*ReadFileRange(fd.get(), 0, 0, "data"), "");
  EXPECT_EQ(*ReadFileRange(fd.get(), 0, -1, "data"), "");
  EXPECT_EQ(lseek(fd.get(), 0, SEEK_CUR), 0);
  const Status closed = ReadFileRange(-1, 0, 4, "data").status();
  EXPECT_EQ(Message(closed).substr(0, 17), "cannot read data:");
}

TEST_F(FileTest, DescriptorsCloseAtTheEndOfTheirScope) {
  int number = -1;
  {
    Fd fd(open("/dev/null", O_RDONLY));
    number = fd.get();
    Fd moved(std::move(fd));
    EXPECT_EQ(moved.get(), number);
    fd = std::move(moved);
    Fd& alias = fd;
    fd = std::move(alias);
    EXPECT_EQ(fd.get(), number);
  }
  EXPECT_EQ(fcntl(number, F_GETFD), -1);
  EXPECT_FALSE(Fd().valid());
}

}  // namespace
}  // namespace shirabe
