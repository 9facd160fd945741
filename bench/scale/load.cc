// Load on a server from another process: reports of metrics, and asking and telling, from many
// callers at once.
//   scale_load HOST:PORT report CALLERS POINTS_PER_REPORT SECONDS
//   scale_load HOST:PORT ask CALLERS SECONDS
// The server runs with --insecure. Each caller has a connection of its own. What is counted is what
// was answered, and so is durable. Prints one line of figures.
#include <algorithm>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/process_id.h"
#include "client/remote_client.h"
#include "experiment/spec/parse_spec.h"

namespace shirabe {
namespace {

constexpr char kSpec[] = R"(apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: load}
spec:
  objective: {type: minimize, objectiveMetricName: loss}
  algorithm: {algorithmName: random}
  parameters:
    - {name: x, parameterType: double, feasibleSpace: {min: "0", max: "1"}}
  shirabe: {askAndTell: true}
)";

struct Plan {
  std::string server;
  std::string part;
  int callers = 1;
  int points = 1;
  absl::Duration time;
};

class Load {
 public:
  explicit Load(Plan plan) : plan_(std::move(plan)) {}

  void Run() {
    key_ = {"default", "load"};
    const auto parsed = experiment::ParseExperiments(kSpec);
    CHECK(Connect()->Submit(parsed[0].experiment, {}).ok());
    const absl::Duration began = RealClock()->Monotonic();
    deadline_ = began + plan_.time;
    {
      std::vector<std::jthread> callers;
      for (int i = 0; i < plan_.callers; ++i) {
        callers.emplace_back(
            [this, i] { Call(absl::StrCat("caller-", ThisProcess().pid, "-", i)); });
      }
    }
    Print(RealClock()->Monotonic() - began);
  }

 private:
  std::unique_ptr<client::Client> Connect() const {
    auto client = client::Connect({.server = plan_.server, .clock = RealClock()});
    CHECK(client.ok());
    return std::move(*client);
  }

  // A report of `count` points after step `step`.
  experiment::Report ReportOf(const v1::AskReply& asked, int64_t step, int count) const {
    experiment::Report report{.trial = {key_, asked.trial().number()},
                              .attempt = asked.attempt(),
                              .token = asked.token()};
    for (int i = 1; i <= count; ++i) {
      report.points.push_back({.metric = "loss", .value = 1.0 / (step + i), .step = step + i});
    }
    return report;
  }

  void Call(const std::string& name) {
    const auto client = Connect();
    std::vector<double> times;
    auto asked = client->Ask(key_, name, absl::Seconds(30));
    CHECK(asked.ok() && asked->has_trial());
    for (int64_t step = 0; RealClock()->Monotonic() < deadline_; step += plan_.points) {
      const absl::Duration began = RealClock()->Monotonic();
      experiment::Report report = ReportOf(*asked, step, plan_.points);
      if (plan_.part == "ask") report.end = experiment::Report::End::kCompleted;
      CHECK(client->Tell(report).ok());
      if (plan_.part == "ask") {
        asked = client->Ask(key_, name, absl::Seconds(30));
        CHECK(asked.ok() && asked->has_trial());
      }
      times.push_back(absl::ToDoubleMilliseconds(RealClock()->Monotonic() - began));
    }
    std::lock_guard lock(mutex_);
    times_.insert(times_.end(), times.begin(), times.end());
  }

  void Print(absl::Duration took) {
    std::sort(times_.begin(), times_.end());
    const double seconds = absl::ToDoubleSeconds(took);
    const double calls = static_cast<double>(times_.size());
    std::printf("%s callers %d points %d: %.0f calls/s, %.0f points/s, p50 %.2f ms, p99 %.2f ms\n",
                plan_.part.c_str(), plan_.callers, plan_.points, calls / seconds,
                calls * plan_.points / seconds, times_[times_.size() / 2],
                times_[times_.size() * 99 / 100]);
  }

  const Plan plan_;
  ExperimentKey key_;
  absl::Duration deadline_;
  std::mutex mutex_;
  std::vector<double> times_;  // ms, guarded by mutex_
};

int Main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  Plan plan;
  int seconds = 0;
  const bool report = words.size() == 5 && words[1] == "report";
  const bool ask = words.size() == 4 && words[1] == "ask";
  if ((!report && !ask) || !absl::SimpleAtoi(words[2], &plan.callers) ||
      (report && !absl::SimpleAtoi(words[3], &plan.points)) ||
      !absl::SimpleAtoi(words.back(), &seconds)) {
    std::fputs(
        "usage: scale_load HOST:PORT report CALLERS POINTS SECONDS\n"
        "       scale_load HOST:PORT ask CALLERS SECONDS\n",
        stderr);
    return 2;
  }
  plan.server = words[0];
  plan.part = words[1];
  plan.time = absl::Seconds(seconds);
  Load(plan).Run();
  return 0;
}

}  // namespace
}  // namespace shirabe

int main(int argc, char** argv) { return shirabe::Main(argc, argv); }
