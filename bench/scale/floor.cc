// What this machine can do at best, for comparison: how many processes a second it starts and waits
// for, and how many small appends a second it makes durable. Prints one JSON object.
//   floor SECONDS FOLDER COMMAND…
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

extern char** environ;

namespace {

double Now() {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(time).count();
}

bool Spawn(char** command) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, command[0], &actions, nullptr, command, environ);
  posix_spawn_file_actions_destroy(&actions);
  return error == 0;
}

// Processes a second with `in_flight` of them at the same time; negative if none could be started.
double SpawnRate(double seconds, int in_flight, char** command) {
  const double start = Now();
  int done = 0;
  for (int i = 0; i < in_flight; ++i) {
    if (!Spawn(command)) return -1;
  }
  while (Now() - start < seconds) {
    wait(nullptr);
    ++done;
    if (!Spawn(command)) return -1;
  }
  const double rate = done / (Now() - start);
  while (wait(nullptr) > 0) {
  }
  return rate;
}

double SyncRate(double seconds, const std::string& folder) {
  const std::string path = folder + "/floor.tmp";
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const std::string block(4096, 'x');
  const double start = Now();
  int done = 0;
  bool good = fd >= 0;
  while (good && Now() - start < seconds) {
    good = write(fd, block.data(), block.size()) == 4096 && fdatasync(fd) == 0;
    ++done;
  }
  const double rate = done / (Now() - start);
  close(fd);
  unlink(path.c_str());
  return good ? rate : -1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fputs("usage: floor SECONDS FOLDER COMMAND…\n", stderr);
    return 2;
  }
  const double seconds = std::atof(argv[1]);
  std::printf("{\"spawn_1\": %.1f, \"spawn_2\": %.1f, \"fsync\": %.1f}\n",
              SpawnRate(seconds, 1, argv + 3), SpawnRate(seconds, 2, argv + 3),
              SyncRate(seconds, argv[2]));
  return 0;
}
