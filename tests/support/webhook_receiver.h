// A real receiver of notifications, webhook_receiver.py in a process of its own: what it accepted,
// and every request that reached it. Its folder holds the secret, and how it is to behave.
#pragma once

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "base/file_io.h"
#include "tests/integration/cli.h"
#include "tests/support/eventually.h"
#include "tests/support/paths.h"

namespace shirabe::cmd {

class WebhookReceiver {
 public:
  explicit WebhookReceiver(const std::string& folder) : folder_(folder) {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ + "/secret") << "a secret that both know\n";
    SetMode("ok");
  }
  ~WebhookReceiver() { Stop(); }

  // It listens at the port that it had before, if it had one.
  void Start() {
    std::filesystem::remove(folder_ + "/port");
    const std::string script = SourceDir() + "/tests/support/webhook_receiver.py";
    std::vector<std::string> words = {"python3", script, folder_, std::to_string(port_)};
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    ASSERT_EQ(posix_spawnp(&pid_, "python3", nullptr, nullptr, argv.data(), environ), 0);
    ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(folder_ + "/port"); }));
    port_ = std::stoi(*ReadFile(folder_ + "/port"));
  }
  void Stop() {
    if (pid_ == 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  void SetMode(const std::string& mode) {
    std::ofstream(folder_ + "/mode.new") << mode;
    std::filesystem::rename(folder_ + "/mode.new", folder_ + "/mode");
  }

  int port() const { return port_; }
  std::string secret_file() const { return folder_ + "/secret"; }
  std::vector<nlohmann::json> Received() const { return Lines("received.jsonl"); }
  std::vector<nlohmann::json> Requests() const { return Lines("requests.jsonl"); }

 private:
  std::vector<nlohmann::json> Lines(const std::string& name) const {
    std::vector<nlohmann::json> lines;
    const std::string text = ReadFile(folder_ + "/" + name).value_or("");
    for (const auto line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      auto json = nlohmann::json::parse(line.begin(), line.end(), nullptr, false);
      if (!json.is_discarded()) lines.push_back(std::move(json));  // else it is being written
    }
    return lines;
  }

  const std::string folder_;
  int port_ = 0;
  pid_t pid_ = 0;
};

}  // namespace shirabe::cmd
