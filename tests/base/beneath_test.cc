#include "base/open_beneath.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace shirabe {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Beneath : public testing::Test {
 protected:
  Beneath() {
    folder_ = (fs::path(testing::TempDir()) / "beneath-XXXXXX").string();
    CHECK(mkdtemp(folder_.data()) != nullptr);
    root_ = folder_ + "/root";
    fs::create_directories(root_ + "/a/b");
    Write("root/a/b/log", "one\ntwo\n");
    Write("secret", "nobody may read this");
  }
  ~Beneath() override { RemoveAll(folder_).IgnoreError(); }

  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name) << text;
  }
  std::string At(const std::string& name) const { return root_ + "/" + name; }
  StatusOr<std::string> Read(const std::string& name, const std::string& root) const {
    return ReadBeneath(root, At(name), 1000);
  }
  void ExpectRefused(const std::string& name, const std::string& why) const {
    for (const std::string& root : {root_, std::string()}) {
      const auto text = Read(name, root);
      EXPECT_TRUE(absl::IsInvalidArgument(text.status())) << name << " " << text.status();
      EXPECT_THAT(Message(text.status()), HasSubstr(At(name) + " " + why));
    }
  }

  // All that is to hold, whichever way the system opens.
  void ExpectSafe() const {
    EXPECT_EQ(*Read("a/b/log", root_), "one\ntwo\n");
    EXPECT_EQ(*Read("a/b/log", ""), "one\ntwo\n");
    EXPECT_EQ(*Read("a/b/log", "/"), "one\ntwo\n");
    EXPECT_EQ(*Read("/a//b/log", root_), "one\ntwo\n");
    EXPECT_TRUE(absl::IsNotFound(Read("a/b/none", root_).status()));
    EXPECT_TRUE(absl::IsNotFound(Read("a/none/log", root_).status()));
    EXPECT_TRUE(absl::IsNotFound(Read("a/b/log/log", root_).status()));
    fs::create_symlink(folder_ + "/secret", At("link"));
    fs::create_symlink("a", At("inner"));
    fs::create_symlink(folder_, At("outside"));
    ASSERT_EQ(mkfifo(At("pipe").c_str(), 0600), 0);
    const int socket_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
    ASSERT_EQ(chdir(root_.c_str()), 0);
    std::snprintf(address.sun_path, sizeof address.sun_path, "socket");
    ASSERT_EQ(bind(socket_fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    close(socket_fd);
    ExpectRefused("link", "is a symbolic link");
    ExpectRefused("pipe", "is a named pipe");
    ExpectRefused("socket", "is a socket");
    ExpectRefused("a", "is a directory");
    for (const char* name : {"inner/b/log", "outside/secret"}) {
      const Status status = Read(name, root_).status();
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << name << " " << status;
      EXPECT_THAT(Message(status), HasSubstr("leads over a symbolic link"));
    }
    for (const std::string& name :
         {std::string("a/../../secret"), std::string("./a/b/log"), std::string("a/b/log\0x", 9),
          std::string("../secret"), std::string(5000, 'x')}) {
      EXPECT_TRUE(absl::IsInvalidArgument(Read(name, root_).status())) << name;
    }
    EXPECT_TRUE(absl::IsInvalidArgument(ReadBeneath(root_, folder_ + "/secret", 99).status()));
    EXPECT_TRUE(absl::IsInvalidArgument(ReadBeneath(root_, root_ + "2/secret", 99).status()));
    EXPECT_TRUE(absl::IsResourceExhausted(ReadBeneath(root_, At("a/b/log"), 3).status()));
    EXPECT_EQ(TailBeneath(root_, At("a/b/log"), 1), "two");
    EXPECT_EQ(TailBeneath(root_, At("pipe"), 1), "");
    EXPECT_FALSE(OpenBeneath(root_, At("pipe"), O_WRONLY | O_CREAT).ok());
    EXPECT_FALSE(OpenBeneath(root_, At("link"), O_WRONLY | O_CREAT | O_TRUNC).ok());
    EXPECT_TRUE(OpenBeneath(root_, At("new"), O_WRONLY | O_CREAT).ok());
  }

  std::string folder_, root_;
};

TEST_F(Beneath, OpensRegularFilesAndFollowsNoLink) { ExpectSafe(); }

void RefuseOpenat2() {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {std::size(code), code};
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
}

TEST_F(Beneath, DoesTheSameWhereOpenat2IsRefused) {
  if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0) GTEST_SKIP() << "there is no seccomp, as in QEMU";
  const pid_t child = fork();
  if (child == 0) {
    RefuseOpenat2();
    ExpectSafe();
    _exit(HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(Beneath, AFolderAbove) {
  EXPECT_EQ(FolderAbove("/home/trials/exp/exp-1/exp-1-a1/log", 3), "/home/trials/exp");
  EXPECT_EQ(FolderAbove("/run/log", 1), "/run");
  EXPECT_EQ(FolderAbove("/shirabe/run/log", 3), "/");
  EXPECT_EQ(FolderAbove("/run/log", 9), "/");
  EXPECT_EQ(FolderAbove("", 1), "/");
}

TEST_F(Beneath, NothingIsWrittenThroughWhatStandsInTheWay) {
  const std::string file = At("state.json");
  fs::create_symlink(folder_ + "/secret", file + ".tmp");
  EXPECT_TRUE(WriteFileAtomic(file, "new").ok());
  EXPECT_EQ(*ReadFile(file), "new");
  EXPECT_EQ(*ReadFile(folder_ + "/secret"), "nobody may read this");
  ASSERT_EQ(mkfifo((file + ".tmp").c_str(), 0600), 0);
  EXPECT_TRUE(WriteFileAtomic(file, "newer").ok()) << "and no pipe makes it wait";
  EXPECT_EQ(*ReadFile(file), "newer");
  fs::create_directory(file + ".tmp");
  EXPECT_FALSE(WriteFileAtomic(file, "newest").ok());
}

TEST_F(Beneath, RemovesWhatIsDeepUnreadableAndOddlyNamed) {
  const int start = open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int at = dup(start);
  for (int i = 0; i < 3000; ++i) {
    ASSERT_EQ(mkdirat(at, "deep", 0700), 0);
    const int next = openat(at, "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_GE(next, 0);
    close(at);
    at = next;
  }
  close(at);
  for (const char* name : {"new\nline", "\xff\xfe", "-rf", "...", "a b"}) {
    close(openat(start, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  }
  close(start);
  fs::create_symlink(folder_ + "/kept", At("link"));
  fs::create_directory(folder_ + "/kept");
  Write("kept/file", "kept");
  ASSERT_EQ(chmod(At("a/b").c_str(), 0), 0);
  ASSERT_EQ(chmod(At("a").c_str(), 0500), 0);
  EXPECT_EQ(RemoveAll(root_), absl::OkStatus());
  EXPECT_FALSE(fs::exists(root_));
  EXPECT_EQ(*ReadFile(folder_ + "/kept/file"), "kept");
  EXPECT_TRUE(RemoveAll(root_).ok()) << "nothing there is fine";
  EXPECT_TRUE(RemoveAll(folder_ + "/none/at/all").ok());
}

}  // namespace
}  // namespace shirabe
