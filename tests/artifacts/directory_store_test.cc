// A directory as a store: nothing outside its root is read or written, whatever is put there, and
// half an object is never seen.
#include "artifacts/directory_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/open_beneath.h"
#include "tests/artifacts/objects.h"

namespace shirabe::artifacts {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class DirectoryStoreTest : public testing::Test {
 protected:
  DirectoryStoreTest() {
    CHECK(MakeDirs(root()).ok() && MakeDirs(folder_ + "/outside").ok());
    CHECK(WriteFileAtomic(folder_ + "/outside/secret", "secret").ok());
  }
  ~DirectoryStoreTest() override { EXPECT_TRUE(RemoveAll(folder_).ok()); }
  std::string root() const { return folder_ + "/root"; }
  static std::string NewFolder() {
    std::string path = testing::TempDir() + "shirabe-directory-XXXXXX";
    CHECK(mkdtemp(path.data()) != nullptr);
    return path;
  }

  const std::string folder_ = NewFolder();
  DirectoryStore store_{folder_ + "/root"};
};

TEST_F(DirectoryStoreTest, FollowsNoLink) {
  fs::create_directory_symlink("../outside", root() + "/folder");
  fs::create_symlink("../outside/secret", root() + "/file");
  ASSERT_EQ(mkfifo((root() + "/pipe").c_str(), 0600), 0);
  for (const char* key : {"folder/secret", "file", "pipe", "folder/new"}) {
    EXPECT_FALSE(GetRange(store_, key).ok()) << key;
    EXPECT_FALSE(store_.Head(key, {}).ok()) << key;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(PutText(store_, "folder/new", "x")));
  EXPECT_FALSE(store_.Remove("folder/secret", {}).ok());
  EXPECT_TRUE(store_.List("", "", {})->objects.empty());
  EXPECT_TRUE(store_.List("folder/", "", {})->objects.empty());
  // A link is replaced; what it leads to stays as it is.
  ASSERT_TRUE(PutText(store_, "file", "mine").ok());
  EXPECT_EQ(GetRange(store_, "file").value_or(""), "mine");
  EXPECT_EQ(*ReadFile(folder_ + "/outside/secret"), "secret");
  EXPECT_FALSE(fs::exists(folder_ + "/outside/new"));
}

TEST_F(DirectoryStoreTest, ARootThatIsGoneIsNotAnEmptyStore) {
  ASSERT_TRUE(PutText(store_, "key", "x").ok());
  fs::rename(root(), folder_ + "/away");
  for (const Status& status :
       {GetRange(store_, "key").status(), store_.Head("key", {}).status(), store_.Remove("key", {}),
        PutText(store_, "key", "y"), store_.List("", "", {}).status()}) {
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  }
  EXPECT_FALSE(fs::exists(root())) << "nothing is made in its place";
}

TEST_F(DirectoryStoreTest, AFileInTheWayOfAFolderIsAnError) {
  ASSERT_TRUE(PutText(store_, "a", "x").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(PutText(store_, "a/b", "y")));
  ASSERT_TRUE(PutText(store_, "c/d", "x").ok());
  EXPECT_FALSE(PutText(store_, "c", "y").ok());
  EXPECT_EQ(GetRange(store_, "c/d").value_or(""), "x");
}

TEST_F(DirectoryStoreTest, FoldersThatBecomeEmptyGo) {
  ASSERT_TRUE(PutText(store_, "a/b/c/one", "x").ok());
  ASSERT_TRUE(PutText(store_, "a/two", "x").ok());
  ASSERT_TRUE(store_.Remove("a/b/c/one", {}).ok());
  EXPECT_FALSE(fs::exists(root() + "/a/b"));
  EXPECT_TRUE(fs::exists(root() + "/a/two"));
}

TEST_F(DirectoryStoreTest, AFolderThatIsRemovedAsEmptyMeanwhileIsMadeAgain) {
  std::jthread other([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const Status put = PutText(store_, "a/b/other", "x");
      EXPECT_TRUE(put.ok()) << put;
      EXPECT_TRUE(store_.Remove("a/b/other", {}).ok());
    }
  });
  for (int i = 0; i < 500; ++i) {
    const Status put = PutText(store_, "a/b/c/key", "x");
    ASSERT_TRUE(put.ok()) << put;
    ASSERT_TRUE(store_.Remove("a/b/c/key", {}).ok());
  }
}

// Killed at any moment, there is the old object or the new one, and never a part.
TEST_F(DirectoryStoreTest, KilledWhileItPutsItLeavesNoHalf) {
  const std::string first = ManyBytes(3 << 20);
  const std::string second = ManyBytes(4 << 20);
  ASSERT_TRUE(PutText(store_, "a/key", first).ok());
  for (int wait_us = 0; wait_us < 12'000; wait_us += 600) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const SourceFile file(second);
      for (;;) (void)store_.Put("a/key", file.source(), {});
    }
    usleep(static_cast<useconds_t>(20'000 + wait_us));
    kill(child, SIGKILL);
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    const auto there = GetRange(store_, "a/key");
    ASSERT_TRUE(there.ok()) << there.status();
    EXPECT_TRUE(*there == first || *there == second);
    EXPECT_EQ(store_.List("", "", {})->objects.size(), 1);
  }
}

// A file system of a few megabytes.
TEST_F(DirectoryStoreTest, AFullDiskIsSaidAndLeavesWhatWasThere) {
  if (mount("tmpfs", root().c_str(), "tmpfs", 0, "size=4m") != 0) {
    GTEST_SKIP() << "this user may not mount a small file system";
  }
  ASSERT_TRUE(PutText(store_, "key", "old").ok());
  const Status full = PutText(store_, "key", ManyBytes(8 << 20));
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_TRUE(GetRange(store_, "key").value_or("") == "old");
  EXPECT_TRUE(PutText(store_, "key", ManyBytes(2 << 20)).ok()) << "the half took no room";
  ASSERT_EQ(umount(root().c_str()), 0);
}

}  // namespace
}  // namespace shirabe::artifacts
