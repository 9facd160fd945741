// What trial/checkpoint/checkpoint_store.h promises: what is good is found good, whatever else is
// found out.
#include "trial/checkpoint/checkpoint_store.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "base/rng.h"
#include "base/sha256.h"
#include "tests/trial/checkpoint_harness.h"

namespace shirabe::trial {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Code = absl::StatusCode;
namespace fs = std::filesystem;

const AttemptKey kFirst = AttemptOf(1, 1);
const AttemptKey kSecond = AttemptOf(1, 2);
const Files kFiles = {{"model.bin", std::string(20, 'm')}, {"optimizer/state", "adam"}};

class CheckpointTest : public testing::Test {
 protected:
  const CheckpointStore& store() const { return home_.store(); }

  void ExpectDamaged(const v1::Checkpoint& checkpoint, const std::string& why) {
    for (const Status& status :
         {store().Verify(checkpoint), store().Fork(checkpoint, kSecond).status()}) {
      EXPECT_EQ(status.code(), Code::kDataLoss);
      EXPECT_THAT(Message(status), HasSubstr(why));
    }
    EXPECT_FALSE(fs::exists(home_.Path(kSecond, checkpoint.step())));
    EXPECT_FALSE(fs::exists(home_.Path(kSecond, checkpoint.step()) + ".tmp"));
  }
  void ExpectRefused(int64_t step, const std::string& why) {
    const Status status = store().Commit(kFirst, step).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << status;
    EXPECT_THAT(Message(status), HasSubstr(why));
  }
  static void Overwrite(const std::string& path, size_t offset, const std::string& bytes) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(offset));
    file << bytes;
    ASSERT_TRUE(file.good()) << path;
  }

  CheckpointHome home_;
};

// ---- what is whole ------------------------------------------------------------------------------

TEST_F(CheckpointTest, ACommittedOneIsDescribedVerifiedAndForked) {
  const v1::Checkpoint checkpoint = home_.SaveAndCommit(kFirst, 40, kFiles);
  EXPECT_EQ(checkpoint.trial(), 1);
  EXPECT_EQ(checkpoint.attempt(), 1);
  EXPECT_EQ(checkpoint.step(), 40);
  EXPECT_EQ(checkpoint.bytes(), 24);
  EXPECT_EQ(checkpoint.location(), home_.Path(kFirst, 40));
  EXPECT_EQ(checkpoint.digest().size(), 64u);
  EXPECT_GT(checkpoint.time().seconds(), 1'700'000'000);
  EXPECT_TRUE(store().Verify(checkpoint).ok());

  ASSERT_TRUE(MakeDirs(home_.Dir(kSecond)).ok());
  const auto path = store().Fork(checkpoint, kSecond);
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(*path, home_.Path(kSecond, 40));
  EXPECT_EQ(CheckpointHome::Read(*path), kFiles);
  EXPECT_TRUE(store().Verify(checkpoint).ok());
}

TEST_F(CheckpointTest, TheManifestIsCanonical) {
  const v1::Checkpoint checkpoint = home_.SaveAndCommit(kFirst, 7, {{"b", "2"}, {"a/c", ""}});
  const std::string text = *ReadFile(home_.Path(kFirst, 7) + "/" + kManifestName);
  EXPECT_EQ(text, R"({"version":1,"trial":"exp-1","attempt":1,"step":7,"files":[
{"path":"a/c","bytes":0,"sha256":")" +
                      HexSha256("") + R"("},
{"path":"b","bytes":1,"sha256":")" +
                      HexSha256("2") + R"("}
]}
)");
  EXPECT_EQ(checkpoint.digest(), HexSha256(text));
  EXPECT_EQ(EncodeManifest(*DecodeManifest(text)), text);
}

TEST_F(CheckpointTest, CommittingAgainTellsTheSame) {
  const v1::Checkpoint first = home_.SaveAndCommit(kFirst, 40, kFiles);
  const auto again = store().Commit(kFirst, 40);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->SerializeAsString(), first.SerializeAsString());
}

TEST_F(CheckpointTest, ADraftOfAKilledWriterIsNoPartOfIt) {
  const std::string path = home_.Save(kFirst, 40, kFiles);
  ASSERT_TRUE(WriteFileAtomic(path + "/" + kManifestDraft, "{\"ver").ok());
  const auto checkpoint = store().Commit(kFirst, 40);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->bytes(), 24);
  EXPECT_FALSE(fs::exists(path + "/" + kManifestDraft));
}

TEST_F(CheckpointTest, ForkingAgainIsFineAndMendsWhatACrashLeft) {
  const v1::Checkpoint checkpoint = home_.SaveAndCommit(kFirst, 40, kFiles);
  const std::string path = home_.Path(kSecond, 40);
  ASSERT_TRUE(MakeDirs(path + ".tmp/optimizer/state/half").ok());  // a folder in a file's place
  ASSERT_TRUE(WriteFileAtomic(path + ".tmp/model.bin", "half").ok());
  ASSERT_TRUE(WriteFileAtomic(path + ".tmp/stray", "of another one").ok());
  ASSERT_TRUE(MakeDirs(path).ok());
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(store().Fork(checkpoint, kSecond).ok());
    EXPECT_EQ(CheckpointHome::Read(path), kFiles);
    EXPECT_FALSE(fs::exists(path + ".tmp"));
  }
  Overwrite(path + "/model.bin", 3, "X");
  EXPECT_TRUE(store().Fork(checkpoint, kSecond).ok());
  EXPECT_EQ(CheckpointHome::Read(path), kFiles);
}

TEST_F(CheckpointTest, AForkAndItsOriginalAreApart) {
  const v1::Checkpoint checkpoint = home_.SaveAndCommit(kFirst, 40, kFiles);
  ASSERT_TRUE(store().Fork(checkpoint, AttemptOf(9, 1)).ok());
  Overwrite(home_.Path(AttemptOf(9, 1), 40) + "/model.bin", 0, "from the fork");
  EXPECT_TRUE(store().Verify(checkpoint).ok());
  ASSERT_TRUE(store().Fork(checkpoint, kSecond).ok());
  Overwrite(home_.Path(kFirst, 40) + "/model.bin", 0, "a zombie");
  EXPECT_EQ(CheckpointHome::Read(home_.Path(kSecond, 40)), kFiles);
  EXPECT_TRUE(store().Fork(checkpoint, kSecond).ok());  // it stands, and is good
  EXPECT_EQ(store().Verify(checkpoint).code(), Code::kDataLoss);
}

TEST_F(CheckpointTest, AForkOntoItselfNeverDeletesTheOriginal) {
  const v1::Checkpoint checkpoint = home_.SaveAndCommit(kFirst, 40, kFiles);
  EXPECT_EQ(store().Fork(checkpoint, kFirst).value_or(""), home_.Path(kFirst, 40));
  Overwrite(home_.Path(kFirst, 40) + "/model.bin", 0, "X");
  EXPECT_EQ(store().Fork(checkpoint, kFirst).status().code(), Code::kDataLoss);
  EXPECT_TRUE(fs::exists(home_.Path(kFirst, 40) + "/model.bin"));
}

TEST_F(CheckpointTest, HardLinksHiddenFilesAndModesArePartOfIt) {
  const std::string path = home_.Save(kFirst, 40, {{".hidden/.state", "h"}, {"run.sh", "#!"}});
  fs::create_hard_link(path + "/run.sh", path + "/same.sh");
  fs::create_directory(path + "/empty");
  ASSERT_EQ(chmod((path + "/run.sh").c_str(), 0755), 0);
  const auto checkpoint = store().Commit(kFirst, 40);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const std::string fork = *store().Fork(*checkpoint, kSecond);
  EXPECT_EQ(CheckpointHome::Read(fork),
            (Files{{".hidden/.state", "h"}, {"run.sh", "#!"}, {"same.sh", "#!"}}));
  EXPECT_EQ(access((fork + "/run.sh").c_str(), X_OK), 0);
  EXPECT_FALSE(fs::exists(fork + "/empty"));
}

TEST_F(CheckpointTest, FilesThatCameLaterAreNoPartOfIt) {
  const v1::Checkpoint checkpoint = home_.SaveAndCommit(kFirst, 40, kFiles);
  ASSERT_TRUE(WriteFileAtomic(home_.Path(kFirst, 40) + "/later", "x").ok());
  EXPECT_TRUE(store().Verify(checkpoint).ok());
  EXPECT_EQ(CheckpointHome::Read(*store().Fork(checkpoint, kSecond)), kFiles);
}

TEST_F(CheckpointTest, ManyFilesInManyFolders) {
  Files files;
  for (int i = 0; i < 500; ++i) files[absl::StrCat("d", i % 50, "/f", i)] = absl::StrCat(i);
  const v1::Checkpoint checkpoint = home_.SaveAndCommit(kFirst, 1, files);
  EXPECT_TRUE(store().Verify(checkpoint).ok());
  EXPECT_EQ(CheckpointHome::Read(*store().Fork(checkpoint, kSecond)), files);
}

// ---- which steps there are ----------------------------------------------------------------------

TEST_F(CheckpointTest, OnlyCanonicalStepsAreListed) {
  for (const char* name :
       {"40", "7", "0", "9007199254740992", "50.tmp", "007", "+5", "-5", "5.0", "1e3", " 8",
        "checkpoint-9", "9007199254740993", "99999999999999999999", ".60", "60.pruned.tmp", "x"}) {
    ASSERT_TRUE(MakeDirs(home_.Dir(kFirst) + "/" + name).ok());
  }
  EXPECT_THAT(store().List(kFirst).value(), ElementsAre(0, 7, 40, 9007199254740992));
  EXPECT_EQ(store().List(AttemptOf(77)).status().code(), Code::kNotFound);
}

TEST_F(CheckpointTest, StepZeroAndEmptyOnesAreRefused) {
  home_.Save(kFirst, 0, kFiles);
  ExpectRefused(0, "from the beginning");
  home_.Save(kFirst, 1, {});
  ExpectRefused(1, "holds no file");
  ASSERT_TRUE(MakeDirs(home_.Path(kFirst, 2) + "/a/b").ok());
  ExpectRefused(2, "holds no file");
  EXPECT_EQ(store().Commit(kFirst, 3).status().code(), Code::kNotFound);
  ASSERT_TRUE(WriteFileAtomic(home_.Path(kFirst, 4), "a file").ok());
  ExpectRefused(4, "not a folder");
}

// ---- damage (F13) -------------------------------------------------------------------------------

TEST_F(CheckpointTest, DamageIsNamed) {
  const auto damage = [&](int64_t step, const auto& act, const std::string& why) {
    const v1::Checkpoint checkpoint = home_.SaveAndCommit(kFirst, step, kFiles);
    act(home_.Path(kFirst, step));
    SCOPED_TRACE(why);
    ExpectDamaged(checkpoint, why);
  };
  damage(
      1, [](const std::string& path) { fs::resize_file(path + "/model.bin", 10); },
      "model.bin has 10 bytes instead of 20");
  damage(
      2, [](const std::string& path) { fs::resize_file(path + "/optimizer/state", 0); },
      "optimizer/state has 0 bytes instead of 4");
  damage(
      3, [](const std::string& path) { Overwrite(path + "/model.bin", 13, "M"); },
      "the contents of model.bin have changed");
  damage(
      4, [](const std::string& path) { fs::remove(path + "/model.bin"); }, "model.bin is missing");
  damage(
      5, [](const std::string& path) { fs::remove_all(path + "/optimizer"); },
      "optimizer/state is missing");
  damage(
      6, [](const std::string& path) { fs::remove(path + "/" + kManifestName); },
      "its manifest is missing");
  damage(
      7, [](const std::string& path) { fs::resize_file(path + "/" + kManifestName, 30); },
      "is not a JSON object");
  damage(
      8, [](const std::string& path) { fs::resize_file(path + "/" + kManifestName, 0); },
      "is not a JSON object");
  damage(
      9, [](const std::string& path) { fs::resize_file(path + "/model.bin", 1 << 20); },
      "model.bin has 1048576 bytes instead of 20");
}

TEST_F(CheckpointTest, WhatIsGoneIsNotFound) {
  const v1::Checkpoint checkpoint = home_.SaveAndCommit(kFirst, 40, kFiles);
  fs::remove_all(home_.Path(kFirst, 40));
  EXPECT_EQ(store().Verify(checkpoint).code(), Code::kNotFound);
  EXPECT_EQ(store().Fork(checkpoint, kSecond).status().code(), Code::kNotFound);
  fs::remove_all(home_.Dir(kFirst));
  EXPECT_EQ(store().Verify(checkpoint).code(), Code::kNotFound);
}

TEST_F(CheckpointTest, AnotherTrialsOrStepsCopiedInIsFoundOut) {
  const v1::Checkpoint mine = home_.SaveAndCommit(kFirst, 40, kFiles);
  home_.SaveAndCommit(AttemptOf(7), 40, kFiles);
  home_.SaveAndCommit(kFirst, 90, kFiles);
  for (const std::string& other : {home_.Path(AttemptOf(7), 40), home_.Path(kFirst, 90)}) {
    fs::remove_all(home_.Path(kFirst, 40));
    fs::copy(other, home_.Path(kFirst, 40), fs::copy_options::recursive);
    ExpectDamaged(mine, "another checkpoint was copied here");
    ExpectRefused(40, "remove the manifest from what is copied");
  }
  // The same names, and yet another one.
  fs::remove_all(home_.Path(kFirst, 40));
  home_.SaveAndCommit(kFirst, 40, {{"model.bin", "other"}});
  ExpectDamaged(mine, "not the one that was committed");
}

TEST_F(CheckpointTest, ARecordsLocationIsNeverOpened) {
  v1::Checkpoint checkpoint = home_.SaveAndCommit(kFirst, 40, kFiles);
  checkpoint.set_location("/etc");
  EXPECT_TRUE(store().Verify(checkpoint).ok());
  EXPECT_TRUE(store().Fork(checkpoint, kSecond).ok());
  checkpoint.set_experiment("../../exp");
  EXPECT_EQ(store().Verify(checkpoint).code(), Code::kDataLoss);
  EXPECT_EQ(store().Prune(checkpoint).code(), Code::kInvalidArgument);
}

TEST_F(CheckpointTest, RandomTreesComeBackAndAnyFlippedByteIsFound) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    Files files;
    for (uint64_t i = 0, count = 1 + rng.Below(12); i < count; ++i) {
      std::string path = absl::StrCat("f", i);
      for (uint64_t depth = rng.Below(4); depth > 0; --depth) {
        path = absl::StrCat("d", rng.Below(3), "/") + path;
      }
      std::string contents(rng.Below(3) == 0 ? rng.Below(600'000) : rng.Below(50), '\0');
      for (char& c : contents) c = static_cast<char>(rng.Next());
      files[path] = contents;
    }
    const AttemptKey from = AttemptOf(static_cast<int64_t>(seed));
    const AttemptKey to = AttemptOf(static_cast<int64_t>(seed), 2);
    const v1::Checkpoint checkpoint = home_.SaveAndCommit(from, 5, files);
    ASSERT_TRUE(store().Fork(checkpoint, to).ok());
    EXPECT_EQ(CheckpointHome::Read(home_.Path(to, 5)), files);
    files[kManifestName] = *ReadFile(home_.Path(from, 5) + "/" + kManifestName);
    for (const auto& [path, contents] : files) {
      if (contents.empty()) continue;
      const size_t at = rng.Below(contents.size());
      const std::string flipped(1, static_cast<char>(contents[at] ^ (1 << rng.Below(8))));
      Overwrite(home_.Path(from, 5) + "/" + path, at, flipped);
      EXPECT_EQ(store().Verify(checkpoint).code(), Code::kDataLoss) << path << " at " << at;
      Overwrite(home_.Path(from, 5) + "/" + path, at, std::string(1, contents[at]));
    }
    EXPECT_TRUE(store().Verify(checkpoint).ok());
  }
}

// The one who saves has renamed too soon: what was read is not what will stand there.
TEST_F(CheckpointTest, WhatIsStillWrittenToIsNotCommitted) {
  for (int64_t step = 1;; ++step) {
    ASSERT_LE(step, 100) << "no file ever changed while it was read";
    const std::string path = home_.Save(kFirst, step, {{"w", std::string(8 << 20, 'w')}});
    std::atomic<bool> over = false;
    std::thread writer([&] {
      std::ofstream file(path + "/w", std::ios::app | std::ios::binary);
      while (!over) file << 'x' << std::flush;
    });
    const Status status = store().Commit(kFirst, step).status();
    over = true;
    writer.join();
    if (status.ok()) continue;
    EXPECT_EQ(status.code(), Code::kUnavailable) << status;
    EXPECT_THAT(Message(status), HasSubstr("w is still written to"));
    EXPECT_TRUE(store().Commit(kFirst, step).ok()) << "now it is not";
    return;
  }
}

// ---- what must not be followed (F29) ------------------------------------------------------------

TEST_F(CheckpointTest, WhatIsNoRegularFileIsRefusedByName) {
  ASSERT_TRUE(WriteFileAtomic(home_.home() + "/secret", "s").ok());
  const std::string secret = home_.home() + "/secret";
  ASSERT_EQ(symlink(secret.c_str(), (home_.Save(kFirst, 1, kFiles) + "/leak").c_str()), 0);
  ExpectRefused(1, "leak");
  ASSERT_EQ(symlink("/etc", (home_.Save(kFirst, 2, kFiles) + "/folder").c_str()), 0);
  ExpectRefused(2, "folder");
  ASSERT_EQ(mkfifo((home_.Save(kFirst, 3, kFiles) + "/optimizer/pipe").c_str(), 0600), 0);
  ExpectRefused(3, "optimizer/pipe");
  const std::string socket_path = home_.Save(kFirst, 4, kFiles) + "/socket";
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {.sun_family = AF_UNIX};
  ASSERT_LT(socket_path.size(), sizeof address.sun_path);
  socket_path.copy(address.sun_path, socket_path.size());
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  close(fd);
  ExpectRefused(4, "socket");
  const std::string target = home_.Save(kFirst, 5, kFiles);
  ASSERT_EQ(symlink(target.c_str(), home_.Path(kFirst, 6).c_str()), 0);
  ExpectRefused(6, "symbolic link");
}

TEST_F(CheckpointTest, LinksInThePlaceOfOurOwnFilesAreNotFollowed) {
  const std::string victim = home_.home() + "/victim";
  ASSERT_TRUE(WriteFileAtomic(victim, "precious").ok());
  const std::string path = home_.Save(kFirst, 1, kFiles);
  ASSERT_EQ(symlink(victim.c_str(), (path + "/" + kManifestDraft).c_str()), 0);
  EXPECT_TRUE(store().Commit(kFirst, 1).ok());
  const std::string other = home_.Save(kFirst, 2, kFiles);
  ASSERT_EQ(symlink(victim.c_str(), (other + "/" + kManifestName).c_str()), 0);
  ExpectRefused(2, kManifestName);
  EXPECT_EQ(*ReadFile(victim), "precious");
  // The directory of another attempt in place of one's own.
  home_.Save(AttemptOf(7), 3, kFiles);
  ASSERT_TRUE(MakeDirs(fs::path(home_.Dir(AttemptOf(8))).parent_path()).ok());
  ASSERT_EQ(symlink(home_.Dir(AttemptOf(7)).c_str(), home_.Dir(AttemptOf(8)).c_str()), 0);
  EXPECT_FALSE(store().List(AttemptOf(8)).ok());
  EXPECT_EQ(store().Commit(AttemptOf(8), 3).status().code(), Code::kInvalidArgument);
}

TEST_F(CheckpointTest, LinksThatReplaceCommittedFilesAreDamage) {
  const v1::Checkpoint checkpoint = home_.SaveAndCommit(kFirst, 40, kFiles);
  const std::string path = home_.Path(kFirst, 40);
  fs::rename(path + "/optimizer", home_.home() + "/moved");
  ASSERT_EQ(symlink((home_.home() + "/moved").c_str(), (path + "/optimizer").c_str()), 0);
  ExpectDamaged(checkpoint, "optimizer");
}

TEST_F(CheckpointTest, NamesThatCannotBeListedAreRefused) {
  ASSERT_TRUE(WriteFileAtomic(home_.Save(kFirst, 1, kFiles) + "/\xFF\xFE", "x").ok());
  ExpectRefused(1, "not UTF-8");
  ASSERT_TRUE(WriteFileAtomic(home_.Save(kFirst, 2, kFiles) + "/a\nb", "x").ok());
  ExpectRefused(2, "control characters");
  std::string deep = home_.Save(kFirst, 3, kFiles);
  for (int i = 0; i < 70; ++i) deep += "/d";
  ASSERT_TRUE(MakeDirs(deep).ok());
  ExpectRefused(3, "folders deep");
}

// ---- manifests of programs ----------------------------------------------------------------------

TEST_F(CheckpointTest, AProgramsManifestIsTakenIfItFits) {
  const std::string digest = HexSha256("12345");
  const std::string text = R"({"files": [{"sha256": ")" + digest + R"(", "path": "w", "bytes": 5}],
      "step": 40, "attempt": 1, "trial": "exp-1", "version": 1, "by": "a helper"})";
  home_.Save(kFirst, 40, {{"w", "12345"}, {kManifestName, text}});
  const auto checkpoint = store().Commit(kFirst, 40);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->bytes(), 5);
  EXPECT_EQ(checkpoint->digest(), HexSha256(text));
  EXPECT_TRUE(store().Verify(*checkpoint).ok());
  EXPECT_EQ(CheckpointHome::Read(*store().Fork(*checkpoint, kSecond)), (Files{{"w", "12345"}}));
}

TEST_F(CheckpointTest, AProgramsManifestThatLiesIsRefused) {
  const auto manifest = [](const std::string& path, int bytes, int step) {
    return absl::StrCat(R"({"version":1,"trial":"exp-1","attempt":1,"step":)", step,
                        R"(,"files":[{"path":")", path, R"(","bytes":)", bytes, R"(,"sha256":")",
                        HexSha256("12345"), R"("}]})");
  };
  int64_t step = 0;
  const auto refuse = [&](const std::string& text, const std::string& why) {
    SCOPED_TRACE(text);
    home_.Save(kFirst, ++step, {{"w", "12345"}, {kManifestName, text}});
    ExpectRefused(step, why);
  };
  refuse(manifest("w", 4, 1), "w has 5 bytes instead of 4");
  refuse(manifest("v", 5, 2), "v is missing");
  refuse(manifest("w", 5, 77), "step 77");
  for (const char* path : {"../w", "/etc/passwd", "./w", "a//w", "w/", "", "..", "a/../w",
                           R"(w\u0000)", R"(w\n)", kManifestName}) {
    refuse(manifest(path, 5, static_cast<int>(step + 1)), "its manifest");
  }
  refuse("[]", "not a JSON object");
  refuse("{\"version\":2}", "version 2");
  refuse(R"({"version":1,"trial":"exp-1","attempt":1,"step":1e300,"files":[]})", "\"step\"");
  refuse(R"({"version":1,"trial":"exp-1","attempt":-1,"step":1,"files":[]})", "\"attempt\"");
  refuse(R"({"version":1,"trial":"exp-1","attempt":1,"step":1,"files":[]})", "no file");
  refuse(std::string(1 << 20, '['), "not a JSON object");
}

// ---- a disk that fails (F14) --------------------------------------------------------------------

TEST_F(CheckpointTest, AFullDiskIsSaidAndNothingHalfIsLeft) {
  const std::string dir = home_.Dir(kFirst);
  ASSERT_TRUE(MakeDirs(dir).ok());
  if (mount("none", dir.c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "mounting a tmpfs is not permitted here: a full disk is not tried";
  }
  home_.Save(kFirst, 40, {{"w", std::string(900'000, 'w')}});
  const v1::Checkpoint small = home_.SaveAndCommit(AttemptOf(2), 40, kFiles);
  const v1::Checkpoint large =
      home_.SaveAndCommit(AttemptOf(3), 50, {{"w", std::string(900'000, 'w')}});
  std::ofstream(dir + "/filler") << std::string(1 << 20, 'f');
  const Status full = store().Commit(kFirst, 40).status();
  EXPECT_EQ(full.code(), Code::kResourceExhausted) << full;
  EXPECT_FALSE(fs::exists(home_.Path(kFirst, 40) + "/" + kManifestDraft));
  EXPECT_EQ(store().Fork(large, kFirst).status().code(), Code::kResourceExhausted);
  EXPECT_FALSE(fs::exists(home_.Path(kFirst, 50)));
  EXPECT_FALSE(fs::exists(home_.Path(kFirst, 50) + ".tmp"));
  fs::remove(dir + "/filler");
  EXPECT_TRUE(store().Commit(kFirst, 40).ok());
  EXPECT_TRUE(store().Verify(small).ok());
  ASSERT_EQ(mount("none", dir.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr), 0);
  EXPECT_TRUE(store().Commit(kFirst, 40).ok());  // nothing is to be written any more
  EXPECT_EQ(umount(dir.c_str()), 0);
}

TEST_F(CheckpointTest, WhatIsInterruptedLeavesNothingBehind) {
  const v1::Checkpoint checkpoint = home_.SaveAndCommit(kFirst, 40, kFiles);
  home_.Save(kFirst, 50, kFiles);
  const std::atomic<bool> stop = true;
  const CheckpointStore stopped(&home_.layout(), &stop);
  EXPECT_EQ(stopped.Verify(checkpoint).code(), Code::kCancelled);
  EXPECT_EQ(stopped.Fork(checkpoint, kSecond).status().code(), Code::kCancelled);
  EXPECT_EQ(stopped.Commit(kFirst, 50).status().code(), Code::kCancelled);
  EXPECT_THAT(CheckpointHome::Read(home_.Path(kFirst, 50)), kFiles);
  EXPECT_FALSE(fs::exists(home_.Path(kFirst, 50) + "/" + kManifestName));
}

// ---- pruning ------------------------------------------------------------------------------------

TEST_F(CheckpointTest, PruneDeletesThatOneAndWhatAnEarlierPruneLeft) {
  const v1::Checkpoint old = home_.SaveAndCommit(kFirst, 10, kFiles);
  const v1::Checkpoint kept = home_.SaveAndCommit(kFirst, 20, kFiles);
  fs::rename(home_.Save(kFirst, 5, kFiles), home_.Path(kFirst, 5) + ".pruned.tmp");
  EXPECT_TRUE(store().Prune(old).ok());
  EXPECT_TRUE(store().Prune(old).ok());
  EXPECT_THAT(store().List(kFirst).value(), ElementsAre(20));
  EXPECT_EQ(std::distance(fs::directory_iterator(home_.Dir(kFirst)), {}), 1);
  EXPECT_TRUE(store().Verify(kept).ok());
  v1::Checkpoint elsewhere = old;
  elsewhere.set_trial(99);
  EXPECT_TRUE(store().Prune(elsewhere).ok());
}

}  // namespace
}  // namespace shirabe::trial
