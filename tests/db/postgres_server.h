// A real PostgreSQL server for tests: Debian's package, started on a Unix socket in a new folder,
// with fsync on, as the user postgres where the tests run as root (it refuses to be root). It can
// be stopped and started again; it ends with its owner, or with the thread that made it.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/file_io.h"
#include "base/open_beneath.h"
#include "db/postgres/postgres_connection.h"
#include "db/postgres/postgres_store.h"

extern char** environ;

namespace shirabe::db {

class PostgresServer {
 public:
  static constexpr char kPrograms[] = "/usr/lib/postgresql/15/bin/";

  static bool IsInstalled() { return access(Program("initdb").c_str(), X_OK) == 0; }

  // `data`, if given, is where its tables lie instead of its own folder; the log of transactions
  // stays there. `settings` are name=value.
  explicit PostgresServer(std::vector<std::string> settings = {}, const std::string& data = "")
      : settings_(std::move(settings)) {
    char folder[] = "/tmp/shirabe-pg-XXXXXX";
    CHECK(mkdtemp(folder) != nullptr);
    folder_ = folder;
    data_ = data.empty() ? folder_ + "/data" : data;
    Give(folder_);
    CHECK(Wait(Spawn({Program("initdb"), "-D", data_, "-X", folder_ + "/wal", "-U", "postgres",
                      "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"})) == 0);
    Start();
  }
  ~PostgresServer() {
    if (pid_ > 0) Stop(SIGINT);
    CHECK(RemoveAll(folder_).ok());
  }
  PostgresServer(const PostgresServer&) = delete;

  // Makes a file or folder the server's own.
  static void Give(const std::string& path) {
    if (const passwd* user = User()) CHECK(chown(path.c_str(), user->pw_uid, user->pw_gid) == 0);
  }

  // SIGINT is an orderly end, SIGQUIT an immediate one, like a crash.
  void Stop(int signal) {
    CHECK(kill(pid_, signal) == 0);
    Wait(std::exchange(pid_, -1));
  }
  // SIGSTOP or SIGCONT, to all of its processes: it hangs, and its connections with it.
  void SignalAll(int signal) const {
    CHECK(kill(pid_, signal) == 0);
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string stat = ReadFile(entry.path() / "stat").value_or("");
      // After the name, which may hold anything: the state, and the parent.
      const size_t end = stat.rfind(") ");
      if (end == std::string::npos) continue;
      if (std::atoi(stat.c_str() + end + 4) == pid_) {
        kill(std::atoi(entry.path().filename().c_str()), signal);
      }
    }
  }
  // Returns when it answers.
  void Start() {
    std::vector<std::string> words = {Program("postgres"), "-D", data_, "-k", folder_};
    std::vector<std::string> settings = {"listen_addresses=", "shared_buffers=32MB",
                                         "max_wal_size=256MB"};
    settings.insert(settings.end(), settings_.begin(), settings_.end());
    for (const std::string& setting : settings) {
      words.push_back("-c");
      words.push_back(setting);
    }
    pid_ = Spawn(words);
    const absl::Duration deadline = RealClock()->Monotonic() + absl::Seconds(60);
    while (!Answers()) {
      CHECK(RealClock()->Monotonic() < deadline && waitpid(pid_, nullptr, WNOHANG) == 0);
      poll(nullptr, 0, 20);
    }
  }
  bool Answers() const { return Connect().ok(); }

  // As after "postgres:".
  std::string Address(const std::string& database = "postgres") const {
    return absl::StrCat("host=", folder_, " user=postgres dbname=", database);
  }
  std::string socket() const { return folder_ + "/.s.PGSQL.5432"; }
  std::string NewDatabase() {
    const std::string name = absl::StrCat("test", ++databases_);
    auto db = Connect();
    CHECK(db.ok() && (*db)->Execute("CREATE DATABASE " + name).ok());
    return name;
  }
  StatusOr<std::unique_ptr<PostgresConnection>> Connect(
      const std::string& database = "postgres") const {
    ASSIGN_OR_RETURN(const PostgresLibrary* pq, LoadPostgresLibrary());
    ASSIGN_OR_RETURN(const PostgresAddress address, ParsePostgresAddress(*pq, Address(database)));
    return PostgresConnection::Open({.address = address});
  }
  std::string log() const { return *ReadFile(folder_ + "/log"); }

 private:
  static std::string Program(const std::string& name) { return kPrograms + name; }
  static const passwd* User() { return getuid() == 0 ? getpwnam("postgres") : nullptr; }

  // setpriv changes the user, and lets the server end if we do not come to do it.
  pid_t Spawn(const std::vector<std::string>& command) const {
    std::vector<std::string> words = {"setpriv", "--pdeathsig", "INT"};
    if (User() != nullptr) {
      words.insert(words.end(), {"--reuid=postgres", "--regid=postgres", "--init-groups"});
    }
    words.insert(words.end(), command.begin(), command.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addchdir_np(&actions, "/");
    posix_spawn_file_actions_addopen(&actions, 1, (folder_ + "/log").c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, 0644);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    pid_t pid = -1;
    CHECK(posix_spawnp(&pid, "setpriv", &actions, nullptr, argv.data(), environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
    return pid;
  }
  static int Wait(pid_t pid) {
    int status = 0;
    CHECK(waitpid(pid, &status, 0) == pid);
    return status;
  }

  const std::vector<std::string> settings_;
  std::string folder_;
  std::string data_;
  pid_t pid_ = -1;
  int databases_ = 0;
};

// One for the whole program, started by the first who asks, and known to StoreInfo::scratch. Null
// where the package is not installed.
inline PostgresServer* SharedPostgres() {
  static const std::unique_ptr<PostgresServer> server = [] {
    auto made = PostgresServer::IsInstalled() ? std::make_unique<PostgresServer>() : nullptr;
    if (made != nullptr) setenv(kScratchServer, made->Address().c_str(), 1);
    return made;
  }();
  return server.get();
}

}  // namespace shirabe::db
