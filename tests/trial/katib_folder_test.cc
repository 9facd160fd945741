// What trial/checkpoint/katib_folder.h promises: a trial finds what its parent has left, and what
// it leaves is a checkpoint as any other.
#include "trial/checkpoint/katib_folder.h"

#include <unistd.h>

#include "base/task_pool.h"
#include "tests/trial/checkpoint_harness.h"
#include "trial/checkpoint/checkpoint_resumer.h"

namespace shirabe::trial {
namespace {

using ::testing::HasSubstr;

class KatibFolderTest : public testing::Test {
 protected:
  // As an executor does before the program of a trial starts.
  void Begin(const AttemptKey& key, std::vector<v1::Checkpoint> from = {}) {
    ASSERT_TRUE(home_.layout().Create(key).ok());
    TaskPool pool(1);
    Resumer resumer({.layout = &home_.layout(),
                     .store = &home_.store(),
                     .copier = nullptr,
                     .background = &pool},
                    [](const AttemptKey&) {});
    AttemptRequest request;
    request.key = key;
    request.resume = std::move(from);
    ASSERT_TRUE(resumer.Prepare(request).ok());
    const Status filled = FillKatibFolder(home_.layout(), key, /*open_to_all=*/true);
    ASSERT_TRUE(filled.ok()) << filled;
  }
  std::string Folder(const AttemptKey& key) { return KatibFolder(home_.layout().Paths(key)); }
  std::string Read(const AttemptKey& key) {
    return ReadFile(Folder(key) + "/training.ckpt").value_or("none");
  }
  // As such programs do: in place.
  void Write(const AttemptKey& key, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomic(Folder(key) + "/training.ckpt", text).ok());
  }
  StatusOr<v1::Checkpoint> End(const AttemptKey& key, int64_t step) {
    RETURN_IF_ERROR(SaveKatibFolder(home_.layout(), key));
    return home_.store().Commit(key, step);
  }

  CheckpointHome home_;
};

TEST_F(KatibFolderTest, AChildBeginsWithItsParentsAndChangesItsOwn) {
  Begin(AttemptOf(1));
  EXPECT_EQ(Read(AttemptOf(1)), "none");
  Write(AttemptOf(1), "one");
  const auto first = End(AttemptOf(1), 1);
  ASSERT_TRUE(first.ok()) << first.status();

  Begin(AttemptOf(2), {*first});
  EXPECT_EQ(Read(AttemptOf(2)), "one");
  Write(AttemptOf(2), "two");
  const auto second = End(AttemptOf(2), 2);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(home_.store().Verify(*first).ok()) << "the parent's is what it was";
  EXPECT_TRUE(SaveKatibFolder(home_.layout(), AttemptOf(2)).ok()) << "a second time";

  // Lost before its end: what it wrote counts for nothing.
  Begin(AttemptOf(3), {*second});
  Write(AttemptOf(3), "half");
  Begin(AttemptOf(3, 2), {*second});
  EXPECT_EQ(Read(AttemptOf(3, 2)), "two");
}

TEST_F(KatibFolderTest, ALinkIsNoCheckpoint) {
  Begin(AttemptOf(1));
  ASSERT_EQ(symlink("/etc/passwd", (Folder(AttemptOf(1)) + "/training.ckpt").c_str()), 0);
  EXPECT_THAT(Message(End(AttemptOf(1), 1).status()), HasSubstr("training.ckpt"));
  Begin(AttemptOf(2));
  Write(AttemptOf(2), "two");
  // In the place of the folder of checkpoints: what it leads to is not written.
  const std::string outside = home_.home() + "/outside";
  ASSERT_TRUE(MakeDirs(outside).ok());
  ASSERT_EQ(rmdir(home_.Dir(AttemptOf(2)).c_str()), 0);
  ASSERT_EQ(symlink(outside.c_str(), home_.Dir(AttemptOf(2)).c_str()), 0);
  EXPECT_FALSE(SaveKatibFolder(home_.layout(), AttemptOf(2)).ok());
  EXPECT_TRUE(std::filesystem::is_empty(outside));
}

TEST_F(KatibFolderTest, NothingSavedIsNoCheckpoint) {
  Begin(AttemptOf(1));
  EXPECT_TRUE(SaveKatibFolder(home_.layout(), AttemptOf(1)).ok());
  EXPECT_EQ(home_.store().List(AttemptOf(1))->size(), 0u);
}

TEST(KatibPath, IsReplacedWhereItIsAPathOfItsOwn) {
  const auto with = [](const std::string& text) {
    return WithKatibFolder(text, "/var/ckpt", "/home/t-1/c");
  };
  EXPECT_EQ(with("--checkpoint=/var/ckpt/"), "--checkpoint=/home/t-1/c/");
  EXPECT_EQ(with("/var/ckpt/model /var/ckpt"), "/home/t-1/c/model /home/t-1/c");
  EXPECT_EQ(with("cd '/var/ckpt' && ls"), "cd '/home/t-1/c' && ls");
  for (const char* other : {"/var/ckpt2", "/my/var/ckpt", "/var/ckpt.old", "x/var/ckpt", ""}) {
    EXPECT_EQ(with(other), other);
  }
}

TEST(KatibPath, CannotBeAnythingThatOthersNeed) {
  EXPECT_TRUE(CheckKatibPath("/var/log/katib/checkpoints/").ok());
  for (const char* path : {"", "checkpoints", "/", "//", "/a/../b", "/shirabe/run", "/proc/1",
                           "/var/run/secrets/shirabe", "/dev/shm", "/a:b"}) {
    EXPECT_THAT(Message(CheckKatibPath(path)), HasSubstr("give one such as")) << path;
  }
}

}  // namespace
}  // namespace shirabe::trial
