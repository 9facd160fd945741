// A real S3 server for tests: versitygw, built by deploy/setup.sh test, over a new folder, on a
// free port of loopback. It can be stopped and started again at the same address, and ends with its
// owner, or with the thread that made it.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/file_io.h"
#include "base/open_beneath.h"
#include "tests/support/free_port.h"

extern char** environ;

namespace shirabe::artifacts {

class S3Server {
 public:
  static constexpr char kAccessKey[] = "shirabe-test";
  static constexpr char kSecretKey[] = "secret/of+the=tests";
  static constexpr char kBucket[] = "bucket";

  // Where deploy/setup.sh puts it.
  static std::string Program() {
    const char* cache = std::getenv("XDG_CACHE_HOME");
    const char* home = std::getenv("HOME");
    const std::string folder =
        cache != nullptr ? cache : absl::StrCat(home == nullptr ? "" : home, "/.cache");
    return folder + "/shirabe/versitygw-1.8.0/versitygw";
  }
  static bool IsInstalled() { return access(Program().c_str(), X_OK) == 0; }
  static constexpr char kMissing[] = "there is no versitygw here: deploy/setup.sh test";

  S3Server() {
    char folder[] = "/tmp/shirabe-s3-XXXXXX";
    CHECK(mkdtemp(folder) != nullptr);
    folder_ = folder;
    CHECK(MakeDirs(absl::StrCat(data(), "/", kBucket)).ok());
    CHECK(MakeDirs(folder_ + "/attributes").ok());
    port_ = FreePort();
    Start();
  }
  ~S3Server() {
    if (pid_ > 0) Stop();
    CHECK(RemoveAll(folder_).ok());
  }
  S3Server(const S3Server&) = delete;

  void Stop() {
    CHECK(kill(pid_, SIGKILL) == 0);
    waitpid(std::exchange(pid_, -1), nullptr, 0);
  }
  // It keeps its connections, and does not answer.
  void Pause() { CHECK(kill(pid_, SIGSTOP) == 0); }
  void Resume() { CHECK(kill(pid_, SIGCONT) == 0); }
  // Returns when it answers.
  void Start() {
    const std::string address = absl::StrCat("127.0.0.1:", port_);
    std::vector<std::string> words = {
        "setpriv",  "--pdeathsig",  "KILL",     Program(),   "--access",
        kAccessKey, "--secret",     kSecretKey, "--port",    address,
        "--quiet",  "--keep-alive", "posix",    "--sidecar", folder_ + "/attributes",
        data()};
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    for (const int fd : {1, 2}) {
      posix_spawn_file_actions_addopen(&actions, fd, (folder_ + "/log").c_str(),
                                       O_WRONLY | O_CREAT | O_APPEND, 0600);
    }
    CHECK(posix_spawnp(&pid_, argv[0], &actions, nullptr, argv.data(), environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
    const absl::Duration deadline = RealClock()->Monotonic() + absl::Seconds(60);
    while (!Answers()) {
      CHECK(RealClock()->Monotonic() < deadline && waitpid(pid_, nullptr, WNOHANG) == 0);
      poll(nullptr, 0, 20);
    }
  }

  std::string endpoint() const { return absl::StrCat("http://127.0.0.1:", port_); }
  // Objects are files below data()/kBucket.
  std::string data() const { return folder_ + "/data"; }
  std::string bucket() const { return absl::StrCat(data(), "/", kBucket); }
  // A file of credentials, as an entry names it.
  std::string CredentialFile(const std::string& secret = kSecretKey) const {
    const std::string path = folder_ + "/credentials";
    CHECK(WriteFileAtomic(path, absl::StrCat(kAccessKey, "\n", secret, "\n")).ok());
    CHECK(chmod(path.c_str(), 0600) == 0);
    return path;
  }

 private:
  static sockaddr_in Loopback(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  bool Answers() const {
    const Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = Loopback(port_);
    return connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }

  std::string folder_;
  int port_ = 0;
  pid_t pid_ = -1;
};

}  // namespace shirabe::artifacts
