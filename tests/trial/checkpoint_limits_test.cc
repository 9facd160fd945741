// What is too large to be a checkpoint, and what may be interrupted.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <fstream>

#include "base/open_beneath.h"
#include "tests/trial/checkpoint_harness.h"
#include "trial/checkpoint/checkpoint_manifest.h"
#include "trial/checkpoint/checkpoint_resumer.h"

namespace shirabe::trial {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

const AttemptKey kKey = AttemptOf(1, 1);

class CheckpointLimitsTest : public testing::Test {
 protected:
  Status Commit(const CheckpointLimits& limits = {}) const {
    return CheckpointStore(&home_.layout(), nullptr, limits).Commit(kKey, 1).status();
  }
  void ExpectRefused(const Status& status, const std::string& why) const {
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(Message(status), HasSubstr(why));
    EXPECT_FALSE(fs::exists(home_.Path(kKey, 1) + "/" + kManifestName));
  }

  CheckpointHome home_;
};

TEST_F(CheckpointLimitsTest, ATerabyteOfHolesIsRefusedAtOnce) {
  home_.Save(kKey, 1, {{"w", "weights"}});
  fs::resize_file(home_.Path(kKey, 1) + "/w", uintmax_t{1} << 40);
  ExpectRefused(Commit(), "it is sparse: 1");
  // In many files as well.
  for (int i = 0; i < 100; ++i) {
    const std::string file = home_.Path(kKey, 1) + "/w" + std::to_string(i);
    std::ofstream(file).put('x');
    fs::resize_file(file, uintmax_t{100} << 20);
  }
  fs::remove(home_.Path(kKey, 1) + "/w");
  ExpectRefused(Commit(), "it is sparse");
}

TEST_F(CheckpointLimitsTest, AFewHolesAreFine) {
  home_.Save(kKey, 1, {{"w", "weights"}});
  fs::resize_file(home_.Path(kKey, 1) + "/w", 1 << 20);
  EXPECT_TRUE(Commit().ok());
}

TEST_F(CheckpointLimitsTest, MoreBytesOrEntriesThanOneMayHaveAreRefused) {
  home_.Save(kKey, 1, {{"w", std::string(2000, 'w')}});
  ExpectRefused(Commit({.bytes = 1000}), "more than the 1000 B");
  EXPECT_TRUE(Commit({.bytes = 2000}).ok());
  auto tree = FileTree::Open(AT_FDCWD, home_.Path(kKey, 1), "it");
  EXPECT_TRUE(tree->Files(2).ok());
  std::ofstream(home_.Path(kKey, 1) + "/v").put('v');
  std::ofstream(home_.Path(kKey, 1) + "/u").put('u');
  EXPECT_THAT(Message(tree->Files(2).status()), HasSubstr("more entries"));
}

TEST_F(CheckpointLimitsTest, WhatItsProgramListsIsHeldToTheSameLimits) {
  home_.Save(kKey, 1, {{"w", "w"}});
  fs::resize_file(home_.Path(kKey, 1) + "/w", uintmax_t{1} << 40);
  const Manifest manifest{
      TrialName(kKey.trial), 1, 1, {{"w", int64_t{1} << 40, std::string(64, '0')}}};
  std::ofstream(home_.Path(kKey, 1) + "/" + kManifestName) << EncodeManifest(manifest);
  const Status status = Commit();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("it is sparse"));
}

TEST_F(CheckpointLimitsTest, LargeIsWhatTakesLongToRead) {
  home_.Save(kKey, 1, {{"w", std::string(2000, 'w')}});
  const CheckpointStore store(&home_.layout(), nullptr, {.quick_bytes = 1999});
  EXPECT_TRUE(store.IsLarge(kKey, 1));
  EXPECT_FALSE(store.IsLarge(kKey, 2));
  EXPECT_FALSE(home_.store().IsLarge(kKey, 1));
  ASSERT_TRUE(store.Commit(kKey, 1).ok());
  EXPECT_FALSE(store.IsLarge(kKey, 1)) << "its manifest is there";
}

TEST_F(CheckpointLimitsTest, ACommitCanBeCancelled) {
  home_.Save(kKey, 1, {{"w", "weights"}});
  const std::atomic<bool> cancel = true;
  EXPECT_TRUE(absl::IsCancelled(home_.store().Commit(kKey, 1, &cancel).status()));
  EXPECT_TRUE(home_.store().Commit(kKey, 1).ok());
}

TEST_F(CheckpointLimitsTest, ARecordOfAResumeThatAProgramNestedIsNone) {
  const std::string dir = home_.layout().Paths(kKey).dir;
  ASSERT_TRUE(MakeDirs(dir).ok());
  for (const char* before : {"{\"resumed\":{\"a\":", "{\"damaged\":[{\"a\":", ""}) {
    std::ofstream(dir + "/resumed.json") << before << std::string(4 << 20, '[');
    EXPECT_FALSE(ReadResume(dir).from.has_value());
    const std::string nest = std::string(1 << 20, '[') + std::string(1 << 20, ']');
    std::ofstream(dir + "/resumed.json") << "{\"resumed\":{\"a\":" << nest << "}}";
    ReadResume(dir);
  }
}

// Of a checkpoint and of outputs alike.
TEST(ValidatePathTest, SaysOfWhatLeadsElsewhereThatItIsNoPathWithin) {
  EXPECT_EQ(Message(ValidatePath("../../x")), "\"../../x\", which is not a path within its folder");
  EXPECT_TRUE(ValidatePath("a/x").ok());
}

TEST(LayoutTest, PathsAreMadeOfKeysOnly) {
  const FileLayout layout("/home");
  for (const ExperimentKey& key :
       {ExperimentKey{"team", "../../etc"}, ExperimentKey{"..", "x"}, ExperimentKey{"", ""},
        ExperimentKey{"team", std::string("x\0y", 3)}}) {
    EXPECT_EQ(layout.ExperimentDir(key), "/home/trials/_/_");
    EXPECT_THAT(layout.Paths({{key, 1}, 1}).log, testing::StartsWith("/home/trials/_/_/"));
    EXPECT_FALSE(layout.Remove(key, 0).ok());
  }
}

TEST(LayoutTest, TheDataDirectoryIsItsOwnersAlone) {
  const std::string above = (fs::path(testing::TempDir()) / "layout-XXXXXX").string();
  std::string folder = above;
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const auto mode = [](const std::string& path) {
    return static_cast<int>(fs::status(path).permissions()) & 0777;
  };
  const auto make = [](const std::string& path, int permissions) {
    fs::create_directory(path);
    fs::permissions(path, static_cast<fs::perms>(permissions));
  };
  FileLayout(folder + "/new/one").KeepPrivate();
  EXPECT_EQ(mode(folder + "/new/one"), 0700);
  make(folder + "/shirabe", 0755);
  std::ofstream(folder + "/shirabe/shirabe.db").put('x');
  FileLayout(folder + "/shirabe").KeepPrivate();
  EXPECT_EQ(mode(folder + "/shirabe"), 0700) << "one of an earlier release";
  make(folder + "/shared", 0755);
  make(folder + "/shared/trials", 0755);
  FileLayout(folder + "/shared").KeepPrivate();
  EXPECT_EQ(mode(folder + "/shared"), 0755) << "not plainly ours";
  EXPECT_EQ(mode(folder + "/shared/trials"), 0700);
  EXPECT_TRUE(RemoveAll(folder).ok());
}

}  // namespace
}  // namespace shirabe::trial
