// What trial/pod/file_mirror.h promises: every byte where it belongs, whatever the sender tries.
#include "trial/pod/file_mirror.h"

#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <limits>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "base/open_beneath.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trial/log_file.h"
#include "trial/pod/final_sync_log.h"

namespace shirabe::trial {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using CodeMirror = absl::StatusCode;
namespace fs = std::filesystem;

constexpr int64_t kEverything = std::numeric_limits<int64_t>::max();
const AttemptKey kMirrorKey = {{{"default", "exp"}, 1}, 1};

// `size` of the whole file; -1 = it ends with the piece.
v1::FilePiece Piece(const std::string& name, int64_t offset, const std::string& data,
                    int64_t size = -1) {
  v1::FilePiece piece;
  piece.set_name(name);
  piece.set_offset(offset);
  piece.set_data(data);
  piece.set_size(size >= 0 ? size : offset + static_cast<int64_t>(data.size()));
  return piece;
}

class MirrorTest : public testing::Test {
 protected:
  MirrorTest() : home_(MakeHome()), layout_(home_) { Restart(); }
  ~MirrorTest() override { EXPECT_TRUE(RemoveAll(home_).ok()); }

  static std::string MakeHome() {
    std::string path = testing::TempDir() + "shirabe-mirror-XXXXXX";
    EXPECT_NE(mkdtemp(path.data()), nullptr);
    return path;
  }

  void Restart() {
    mirror_ = std::make_unique<FileMirror>(FileMirrorOptions{
        .layout = &layout_, .max_bytes = max_bytes_, .trims = trims_, .max_files = max_files_});
  }
  std::string Dir() const { return layout_.Paths(kMirrorKey).dir; }
  std::string Read(const std::string& name) const {
    const auto text = ReadFile(Dir() + "/" + name);
    return text.ok() ? *text : "none";
  }

  FileMirror::ApplyResult Apply(const v1::SyncRequest& request, bool durable = false) {
    auto taken = mirror_->Apply(kMirrorKey, request, durable);
    EXPECT_TRUE(taken.ok()) << taken.status();
    return taken.ok() ? *std::move(taken) : FileMirror::ApplyResult();
  }
  // Sends one piece; what the server has of the file then.
  int64_t Send(const std::string& name, int64_t offset, const std::string& data,
               int64_t size = -1) {
    v1::SyncRequest request;
    *request.add_files() = Piece(name, offset, data, size);
    for (const v1::FileHave& have : Apply(request).have) {
      if (have.name() == name) return have.size();
    }
    return -1;
  }
  void ExpectRefused(const std::string& name) {
    v1::SyncRequest request;
    *request.add_files() = Piece("log", 0, "before");
    *request.add_files() = Piece(name, 0, "x");
    EXPECT_EQ(mirror_->Apply(kMirrorKey, request, false).status().code(),
              CodeMirror::kInvalidArgument)
        << name;
    EXPECT_EQ(Read("log"), "none") << "nothing is taken of a request that is refused";
  }

  const std::string home_;
  const FileLayout layout_;
  int64_t max_bytes_ = 1 << 20;
  bool trims_ = false;
  int max_files_ = 4;
  std::unique_ptr<FileMirror> mirror_;
};

TEST_F(MirrorTest, PiecesThatJoinMakeTheFile) {
  EXPECT_EQ(Send("log", 0, "one\n"), 4);
  EXPECT_EQ(Send("log", 4, "two\n"), 8);
  EXPECT_EQ(Send("log", 4, "two\n"), 8) << "doing it again is harmless";
  EXPECT_EQ(Send("log", 2, "e\ntwo\nthree\n", 14), 14) << "what overlaps is known";
  EXPECT_EQ(Read("log"), "one\ntwo\nthree\n");
}

TEST_F(MirrorTest, AGapIsNotFilledWithNothing) {
  EXPECT_EQ(Send("metrics.jsonl", 10, "late"), 0);
  EXPECT_EQ(Read("metrics.jsonl"), "none");
  EXPECT_EQ(Send("metrics.jsonl", 0, "early"), 5);
  EXPECT_EQ(Send("metrics.jsonl", 10, "late"), 5);
}

TEST_F(MirrorTest, ItGoesOnAfterARestart) {
  Send("log", 0, "one\n");
  Restart();
  EXPECT_EQ(Apply({}).have.size(), 1u);
  EXPECT_EQ(Apply({}).have[0].size(), 4);
  EXPECT_EQ(Send("log", 4, "two\n"), 8);
}

TEST_F(MirrorTest, AFileWrittenAnewReplacesItsCopyAtOnce) {
  Send("hypertune.jsonl", 0, "report 1\nreport 2\n");
  EXPECT_EQ(Send("hypertune.jsonl", 0, "report 2\n"), 9);
  EXPECT_EQ(Read("hypertune.jsonl"), "report 2\n");
  EXPECT_EQ(Send("hypertune.jsonl", 0, "", 0), 0);
  EXPECT_EQ(Read("hypertune.jsonl"), "");
}

TEST_F(MirrorTest, ALateRepetitionOfTheBeginningShortensNothing) {
  Send("log", 0, "one\n");
  Send("log", 4, "two\n");
  EXPECT_EQ(Send("log", 0, "one\n", 8), 8);
  EXPECT_EQ(Read("log"), "one\ntwo\n");
}

TEST_F(MirrorTest, WhatChangedInTheMiddleEndsTheCopyThere) {
  Send("log", 0, "one\ntwo\n");
  EXPECT_EQ(Send("log", 4, "2\n", 6), 6);
  EXPECT_EQ(Read("log"), "one\n2\n");
}

TEST_F(MirrorTest, FilesOfTheProgramLieBelowTheirRoot) {
  EXPECT_EQ(Send("files/out/run/events.tfevents.1", 0, "abc"), 3);
  EXPECT_EQ(Read("files/out/run/events.tfevents.1"), "abc");
  EXPECT_EQ(FileMirror::RootOf(layout_.Paths(kMirrorKey)), Dir() + "/files");
}

// Who reads it by its place in the folder, as after a rotation, still finds the end of the old one.
TEST_F(MirrorTest, AReplacedFileOfTheProgramIsKeptBeside) {
  Send("files/out/metrics.log", 0, "old 1\nold 2\n");
  Send("files/out/metrics.log", 0, "new\n");
  EXPECT_EQ(Read("files/out/metrics.log"), "new\n");
  int others = 0;
  for (const auto& entry : fs::directory_iterator(Dir() + "/files/out")) {
    if (entry.path().filename() == "metrics.log") continue;
    ++others;
    EXPECT_EQ(*ReadFile(entry.path()), "old 1\nold 2\n");
  }
  EXPECT_EQ(others, 1);
  EXPECT_EQ(Apply({}).have.size(), 1u) << "it is no file of the program's";
}

// ---- hostile senders ----------------------------------------------------------------------------

TEST_F(MirrorTest, NamesThatLeadElsewhereAreRefused) {
  for (const char* name :
       {"", "exit", "params.json", "checkpoints/1", "../log", "/etc/passwd", "files", "files/",
        "files//x", "files/../log", "files/a/../../../x", "files/./x", "files/a/..", "log/", "LOG",
        "incoming", "files/.replaced-000000000000"}) {
    ExpectRefused(name);
  }
  ExpectRefused(std::string("files/a\0b", 9));
  ExpectRefused("files/" + std::string(300, 'a'));
  std::string deep = "files";
  for (int i = 0; i < 40; ++i) deep += "/a";
  ExpectRefused(deep);
}

TEST_F(MirrorTest, ImpossibleOffsetsAreRefused) {
  for (const int64_t offset : {int64_t{-1}, kEverything}) {
    v1::SyncRequest request;
    *request.add_files() = Piece("log", offset, "xx", 2);
    EXPECT_EQ(mirror_->Apply(kMirrorKey, request, false).status().code(),
              CodeMirror::kInvalidArgument);
  }
}

TEST_F(MirrorTest, NoLinkIsFollowed) {
  const std::string secret = home_ + "/secret";
  ASSERT_TRUE(WriteFileAtomic(secret, "secret").ok());
  ASSERT_TRUE(MakeDirs(Dir() + "/files").ok());
  ASSERT_EQ(symlink(secret.c_str(), (Dir() + "/log").c_str()), 0);
  ASSERT_EQ(symlink(home_.c_str(), (Dir() + "/files/away").c_str()), 0);
  for (const char* name : {"log", "files/away/secret"}) {
    v1::SyncRequest request;
    *request.add_files() = Piece(name, 0, "overwritten");
    EXPECT_FALSE(mirror_->Apply(kMirrorKey, request, false).ok()) << name;
  }
  EXPECT_EQ(*ReadFile(secret), "secret");
}

TEST_F(MirrorTest, AFullLogEndsWithALineAndWantsNoMore) {
  max_bytes_ = 10;
  Restart();
  EXPECT_EQ(Send("log", 0, "12345"), 5);
  v1::SyncRequest request;
  *request.add_files() = Piece("log", 5, "67890abc");
  const FileMirror::ApplyResult taken = Apply(request);
  EXPECT_THAT(taken.error, HasSubstr("log is kept no further"));
  EXPECT_EQ(taken.have[0].size(), kEverything);
  EXPECT_THAT(Read("log"), testing::StartsWith("1234567890\nshirabe: the log is kept no further"));
  const std::string before = Read("log");
  EXPECT_THAT(Apply(request).error, IsEmpty()) << "told once";
  Restart();
  EXPECT_EQ(Send("log", 0, "12345"), kEverything);
  EXPECT_EQ(Read("log"), before);
}

// ---- logs that are shortened once they are read -------------------------------------------------

// What is sent is taken as fast as it is read, and no faster.
TEST_F(MirrorTest, AFloodWaitsForItsReaderAndThenGoesOn) {
  if (!CanTrim(home_)) GTEST_SKIP() << "the file system of " << home_ << " has no holes";
  trims_ = true;
  Restart();
  const std::string piece(512 << 10, 'x');
  EXPECT_EQ(Send("log", 0, piece), 512 << 10);
  EXPECT_EQ(Send("log", 512 << 10, piece), 1 << 20);
  v1::SyncRequest request;
  *request.add_files() = Piece("metrics.jsonl", 0, "{}\n");
  *request.add_files() = Piece("log", 1 << 20, piece);
  const Status waits = mirror_->Apply(kMirrorKey, request, false).status();
  EXPECT_EQ(waits.code(), CodeMirror::kResourceExhausted) << waits;
  EXPECT_THAT(Message(waits), HasSubstr("still to be read"));
  EXPECT_EQ(Read("metrics.jsonl"), "{}\n") << "metrics do not wait";
  const LogLimits limits = {.head = 64 << 10, .tail = 64 << 10, .step = 64 << 10};
  ASSERT_TRUE(TrimLog(Dir() + "/log", 1 << 20, limits).ok());
  EXPECT_EQ(Send("log", 1 << 20, piece), (1 << 20) + (512 << 10));
}

// A piece that comes again, late, is known although a part of its copy is left out by now.
TEST_F(MirrorTest, ARepetitionOfWhatWasLeftOutShortensNothing) {
  if (!CanTrim(home_)) GTEST_SKIP() << "the file system of " << home_ << " has no holes";
  trims_ = true;
  max_bytes_ = 16 << 20;
  Restart();
  const std::string log(4 << 20, 'x');
  Send("log", 0, log);
  const LogLimits limits = {.head = 64 << 10, .tail = 64 << 10, .step = 64 << 10};
  ASSERT_TRUE(TrimLog(Dir() + "/log", 4 << 20, limits).ok());
  ASSERT_LT(DiskBytes(Dir() + "/log"), 1 << 20);
  EXPECT_EQ(Send("log", 1 << 20, log.substr(1 << 20), 4 << 20), 4 << 20);
  EXPECT_EQ(Send("log", 0, log.substr(0, 1 << 20), 4 << 20), 4 << 20);
  EXPECT_LT(DiskBytes(Dir() + "/log"), 1 << 20) << "and fills nothing";
}

// ---- a disk that is full (F14) ------------------------------------------------------------------

TEST_F(MirrorTest, AFullDiskRefusesAndLosesNothing) {
  ASSERT_TRUE(MakeDirs(Dir()).ok());
  if (mount("none", Dir().c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "mounting a tmpfs is not permitted here: a full disk is not tried";
  }
  max_bytes_ = 16 << 20;
  Restart();
  Send("log", 0, "begin\n");
  const std::string rest(2 << 20, 'x');
  v1::SyncRequest request;
  *request.add_files() = Piece("log", 6, rest);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(mirror_->Apply(kMirrorKey, request, false).status().code(),
              CodeMirror::kResourceExhausted);
  }
  Restart();
  EXPECT_EQ(mount("none", Dir().c_str(), nullptr, MS_REMOUNT, "size=8m"), 0);
  ASSERT_EQ(Apply({}).have.size(), 1u);
  const int64_t have = Apply({}).have[0].size();
  EXPECT_EQ(Send("log", have, rest.substr(static_cast<size_t>(have - 6))), 6 + (2 << 20));
  EXPECT_EQ(Read("log"), "begin\n" + rest);
  EXPECT_EQ(umount(Dir().c_str()), 0);
}

TEST_F(MirrorTest, AFloodTakesNothingFromTheMetrics) {
  max_bytes_ = 10;
  Restart();
  Send("log", 0, std::string(100, 'x'));
  EXPECT_EQ(Send("files/out/big", 0, std::string(100, 'x')), kEverything);
  EXPECT_EQ(Send("metrics.jsonl", 0, "{}\n"), 3);
}

TEST_F(MirrorTest, TooManyFilesAreNotKept) {
  for (int i = 0; i < max_files_; ++i) EXPECT_EQ(Send(absl::StrCat("files/", i), 0, "x"), 1);
  EXPECT_EQ(Send("files/one-more", 0, "x"), kEverything);
  EXPECT_EQ(Read("files/one-more"), "none");
  EXPECT_EQ(Send("files/0", 1, "y"), 2) << "the others go on";
}

TEST_F(MirrorTest, WhatIsCompleteIsOnDisk) {
  v1::SyncRequest request;
  *request.add_files() = Piece("log", 0, "end\n");
  *request.add_files() = Piece("files/a/b/c", 0, "x");
  EXPECT_EQ(Apply(request, /*durable=*/true).have.size(), 2u);
}

TEST_F(MirrorTest, ALogReadThroughTheApiIsAppended) {
  ASSERT_TRUE(mirror_->AppendLog(kMirrorKey, "one\n").ok());
  ASSERT_TRUE(mirror_->AppendLog(kMirrorKey, "two\n").ok());
  EXPECT_EQ(Read("log"), "one\ntwo\n");
}

TEST_F(MirrorTest, AttemptsAreTakenAtTheSameTime) {
  std::vector<std::jthread> senders;
  for (int32_t attempt = 1; attempt <= 8; ++attempt) {
    senders.emplace_back([this, attempt] {
      const AttemptKey key = {kMirrorKey.trial, attempt};
      for (int64_t i = 0; i < 100; ++i) {
        v1::SyncRequest request;
        *request.add_files() = Piece("log", i, "x");
        EXPECT_TRUE(mirror_->Apply(key, request, false).ok());
      }
    });
  }
  senders.clear();
  for (int32_t attempt = 1; attempt <= 8; ++attempt) {
    EXPECT_EQ(ReadFile(layout_.Paths({kMirrorKey.trial, attempt}).log)->size(), 100u);
  }
}

// ---- last words ---------------------------------------------------------------------------------

TEST(LastWords, AreFoundAmongOtherLines) {
  v1::SyncRequest first, second;
  first.set_token("secret");
  first.mutable_state()->mutable_exit()->set_code(3);
  *second.add_files() = Piece("log", 7, std::string("\0\n\xff", 3));
  const std::string log = "a line\n" + FinalSyncLine(first) + "another " + FinalSyncLine(second);
  const auto words = ParseFinalSync(log + FinalSyncLine(second).substr(0, 30));
  ASSERT_EQ(words.size(), 2u);
  EXPECT_EQ(words[0].token(), "") << "a log is no place for it";
  EXPECT_EQ(words[0].state().exit().code(), 3);
  EXPECT_EQ(words[1].files(0).data(), std::string("\0\n\xff", 3));
  EXPECT_THAT(ParseFinalSync("shirabe-last-words: %%%\nshirabe-last-words\n"), IsEmpty());
}

}  // namespace
}  // namespace shirabe::trial
