// The shirabe program itself, run as a user's shell would run it, in a home of its own. Every wait
// is bounded; what is still running at the end of a test is killed.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file_io.h"
#include "tests/support/eventually.h"

extern char** environ;

namespace shirabe::cmd {

struct Outcome {
  int code = -1;  // as a shell shows it: 128 + signal if one ended it
  std::string out;
  std::string err;
};

class Running {
 public:
  Running(pid_t pid, std::string out, std::string err)
      : pid_(pid), out_(std::move(out)), err_(std::move(err)) {}
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    if (ended_) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  pid_t pid() const { return pid_; }
  void Signal(int signal) { kill(pid_, signal); }
  std::string Out() const { return ReadFile(out_).value_or(""); }
  std::string Err() const { return ReadFile(err_).value_or(""); }

  Outcome Wait() {
    int status = 0;
    ended_ = Eventually([&] { return waitpid(pid_, &status, WNOHANG) == pid_; });
    EXPECT_TRUE(ended_) << "still running\n" << Out() << Err();
    const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return {ended_ ? code : -1, Out(), Err()};
  }

 private:
  pid_t pid_;
  std::string out_;
  std::string err_;
  bool ended_ = false;
};

// The program under test: ours, or the one that SHIRABE_TEST_BINARY names, to see a test fail on
// it.
std::string Program();
// What it is started through: with SHIRABE_TEST_NO_OPENAT2 set, a program that takes openat2 from
// it; else nothing.
std::vector<std::string> Launcher();

class Cli {
 public:
  Cli() {
    home_ = testing::TempDir() + "/shirabe-cli-XXXXXX";
    CHECK(mkdtemp(home_.data()) != nullptr);
    std::filesystem::create_directory(home_ + "/home");
  }
  ~Cli() { RemoveFolder(home_, absl::Seconds(2)); }  // or leaves the rest where it is

  std::string Path(const std::string& name) const { return home_ + "/" + name; }
  std::string state() const { return home_ + "/home"; }

  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name)) << text;
    return Path(name);
  }
  // Where the program is started from now on.
  void Enter(const std::string& folder) { folder_ = folder; }
  bool Exists(const std::string& name) const { return std::filesystem::exists(Path(name)); }

  std::unique_ptr<Running> Start(std::vector<std::string> arguments,
                                 const std::string& input = "/dev/null") {
    arguments.insert(arguments.begin(), Program());
    const std::vector<std::string> launcher = Launcher();
    arguments.insert(arguments.begin(), launcher.begin(), launcher.end());
    const std::string stem = Path("run" + std::to_string(++count_));
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, input.c_str(), O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, (stem + ".out").c_str(), O_WRONLY | O_CREAT,
                                     0600);
    posix_spawn_file_actions_addopen(&actions, 2, (stem + ".err").c_str(), O_WRONLY | O_CREAT,
                                     0600);
    posix_spawn_file_actions_addchdir_np(&actions, folder_.c_str());
    std::vector<std::string> variables = Environment();
    std::vector<char*> argv, env;
    for (std::string& word : arguments) argv.push_back(word.data());
    for (std::string& variable : variables) env.push_back(variable.data());
    argv.push_back(nullptr);
    env.push_back(nullptr);
    pid_t pid = 0;
    CHECK(posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), env.data()) == 0);
    posix_spawn_file_actions_destroy(&actions);
    return std::make_unique<Running>(pid, stem + ".out", stem + ".err");
  }

  Outcome Run(const std::vector<std::string>& arguments, const std::string& input = "/dev/null") {
    return Start(arguments, input)->Wait();
  }

  nlohmann::json Json(const std::vector<std::string>& arguments) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out, nullptr, /*allow_exceptions=*/false);
  }

  // The quick form over lr and bs, minimising loss, with a script as the trial.
  std::vector<std::string> Quick(const std::string& name, const std::string& script,
                                 const std::vector<std::string>& more = {}) {
    const std::string path = Write(name + ".sh", script);
    std::vector<std::string> words = {"run",     "--name",      name,         "--param", "lr=0..1",
                                      "--param", "bs=16,32,64", "--minimize", "loss"};
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), {"--", "/bin/sh", path, "{lr}", "{bs}"});
    return words;
  }

 private:
  std::vector<std::string> Environment() const {
    std::vector<std::string> variables = {"SHIRABE_HOME=" + state(), "DIR=" + home_};
    for (char** variable = environ; *variable != nullptr; ++variable) {
      const std::string text = *variable;
      if (text.compare(0, 8, "SHIRABE_") != 0) variables.push_back(text);
    }
    return variables;
  }

  std::string home_;
  std::string folder_ = ".";
  int count_ = 0;
};

}  // namespace shirabe::cmd
