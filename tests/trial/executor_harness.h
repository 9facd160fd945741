// What tests of executors share: a home of their own, requests in one line, and bounded waiting.
// Not thread-safe but for the callback.
#pragma once

#include <stdlib.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "base/clock.h"
#include "base/file_io.h"
#include "base/open_beneath.h"
#include "base/process_id.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trial/executor.h"

namespace shirabe::trial {

inline const ExperimentKey kExperiment{"default", "exp"};
inline constexpr absl::Duration kPatience = absl::Seconds(60);

inline AttemptKey Attempt(int64_t trial, int32_t number = 1) {
  return {{kExperiment, trial}, number};
}

struct Ask {
  std::vector<std::string> argv;
  std::string token = "token";
  std::vector<std::pair<std::string, std::string>> env = {};
  std::string working_dir = "";
  absl::Duration grace = absl::Seconds(10);
  int gpus = 0;
};

inline AttemptRequest MakeRequest(const AttemptKey& key, const Ask& ask) {
  AttemptRequest request;
  request.key = key;
  request.token = ask.token;
  request.primary_container = "main";
  request.grace = ask.grace;
  request.parameters_json = R"({"lr": 0.5})";
  request.environment = {{"SHIRABE_TRIAL", TrialName(key.trial)}, {"SHIRABE_PARAM_LR", "0.5"}};
  auto& spec = *(*request.trial_spec.mutable_fields())["spec"].mutable_struct_value();
  auto* container = (*spec.mutable_fields())["containers"].mutable_list_value()->add_values();
  auto& fields = *container->mutable_struct_value()->mutable_fields();
  fields["name"].set_string_value("main");
  auto* command = fields["command"].mutable_list_value();
  for (const std::string& word : ask.argv) command->add_values()->set_string_value(word);
  for (const auto& [name, value] : ask.env) {
    auto& variable = *fields["env"].mutable_list_value()->add_values()->mutable_struct_value();
    (*variable.mutable_fields())["name"].set_string_value(name);
    (*variable.mutable_fields())["value"].set_string_value(value);
  }
  if (!ask.working_dir.empty()) fields["workingDir"].set_string_value(ask.working_dir);
  auto& resources = *fields["resources"].mutable_struct_value();
  auto& limits = *(*resources.mutable_fields())["limits"].mutable_struct_value();
  if (ask.gpus > 0) (*limits.mutable_fields())["nvidia.com/gpu"].set_number_value(ask.gpus);
  return request;
}

inline std::vector<std::string> Shell(const std::string& script) { return {"sh", "-c", script}; }

// What the store would hold of the attempt after a restart.
inline v1::Attempt Record(const AttemptKey& key, const std::string& token = "token") {
  v1::Attempt attempt;
  attempt.set_namespace_(key.trial.experiment.ns);
  attempt.set_experiment(key.trial.experiment.name);
  attempt.set_trial(key.trial.number);
  attempt.set_number(key.number);
  attempt.set_token(token);
  return attempt;
}

class ExecutorHarness {
 public:
  ExecutorHarness() {
    std::string path = testing::TempDir() + "shirabe-executor-XXXXXX";
    EXPECT_NE(mkdtemp(path.data()), nullptr);
    home_ = path;
  }
  ~ExecutorHarness() {
    executor_.reset();
    EXPECT_TRUE(RemoveAll(home_).ok());
  }

  // A new executor over the same home, as after a restart. Null if it cannot be created.
  Executor* Open(const std::string& name = "process", std::vector<std::string> devices = {},
                 const v1::NodePools& pools = {}) {
    executor_.reset();
    ExecutorOptions options;
    options.home = home_;
    options.clock = RealClock();
    options.devices = std::move(devices);
    options.pools = pools;
    options.on_change = [this](const ExperimentKey& experiment) {
      std::lock_guard lock(mutex_);
      ++changes_[experiment];
      changed_.notify_all();
    };
    auto created = Registry<ExecutorInfo>::Get().Find(name)->create(options);
    EXPECT_TRUE(created.ok()) << created.status();
    if (created.ok()) executor_ = *std::move(created);
    return executor_.get();
  }
  void Close() { executor_.reset(); }

  const std::string& home() const { return home_; }
  Executor& executor() { return *executor_; }
  int Changes(const ExperimentKey& experiment) {
    std::lock_guard lock(mutex_);
    return changes_[experiment];
  }

  Status Start(const AttemptKey& key, const Ask& ask) {
    return executor_->Start(MakeRequest(key, ask));
  }

  // The attempt as Observe shows it; nullopt if it does not.
  std::optional<AttemptStatus> See(const AttemptKey& key) {
    for (const AttemptStatus& observed : executor_->Observe(key.trial.experiment)) {
      if (observed.key == key) return observed;
    }
    return std::nullopt;
  }

  // Until it is no longer running.
  AttemptStatus AwaitEnd(const AttemptKey& key) {
    AttemptStatus last;
    EXPECT_TRUE(Await([&] {
      last = See(key).value_or(AttemptStatus());
      return last.key == key && last.state != AttemptStatus::State::kRunning;
    })) << AttemptName(key);
    return last;
  }

  std::string AwaitFile(const std::string& path) {
    std::string text;
    EXPECT_TRUE(Await([&] {
      text = ReadFile(path).value_or("");
      return !text.empty() && text.back() == '\n';
    })) << path;
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
  }

  // The process whose number a program writes there.
  pid_t AwaitPid(const std::string& path) {
    int pid = 0;
    EXPECT_TRUE(absl::SimpleAtoi(AwaitFile(path), &pid)) << path;
    return pid;
  }

  bool AwaitGone(pid_t pid) {
    return Await([&] { return !FindProcess(pid).has_value(); });
  }

  // Tries again on every change, and now and then. False once patience has run out.
  bool Await(const std::function<bool()>& condition) {
    const absl::Duration deadline = RealClock()->Monotonic() + kPatience;
    while (!condition()) {
      if (RealClock()->Monotonic() > deadline) return false;
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, std::chrono::milliseconds(5));
    }
    return true;
  }

  std::string Log(const AttemptKey& key) {
    return ReadFile(executor_->Paths(key).log).value_or("(no log)");
  }

 private:
  std::string home_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<ExperimentKey, int> changes_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace shirabe::trial
