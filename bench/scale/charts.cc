// The routes under the dashboard, at the size that they are for.
//   scale_charts TRIALS [WATCHERS SECONDS]
// Writes an experiment of so many trials with nine parameters into SQLite, serves it from a process
// of its own, and prints for each route how long it takes and how many bytes it sends: for the
// first caller, for the next one, and for one who sends the ETag back. Then so many watchers follow
// the experiment's updates while eight trials report twice a second each; what that costs the
// server is printed beside what it costs with none.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "base/file_io.h"
#include "base/rng.h"
#include "base/timestamp.h"
#include "client/local_client.h"
#include "db/store.h"
#include "experiment/conditions.h"
#include "service/http/http_server.h"

namespace shirabe {
namespace {

constexpr char kPath[] = "/api/v1/namespaces/default/experiments/large";
constexpr int kParameters = 9;
constexpr int kRunning = 8;
constexpr int64_t kCurveTrials = 50;  // with long curves
constexpr int64_t kCurveSteps = 10'000;
const ExperimentKey kKey{"default", "large"};

// ---- the experiment ----------------------------------------------------------------------------

v1::Experiment LargeExperiment(int64_t trials) {
  v1::Experiment experiment;
  experiment.set_api_version("kubeflow.org/v1beta1");
  experiment.set_kind("Experiment");
  experiment.mutable_metadata()->set_namespace_(kKey.ns);
  experiment.mutable_metadata()->set_name(kKey.name);
  *experiment.mutable_metadata()->mutable_creation_timestamp() = ToProto(RealClock()->Now());
  v1::ExperimentSpec& spec = *experiment.mutable_spec();
  spec.mutable_objective()->set_type(v1::MINIMIZE);
  spec.mutable_objective()->set_objective_metric_name("loss");
  spec.mutable_objective()->add_additional_metric_names("accuracy");
  spec.mutable_algorithm()->set_algorithm_name("random");
  for (int i = 0; i < kParameters; ++i) {
    v1::ParameterSpec& parameter = *spec.add_parameters();
    parameter.set_name(absl::StrCat("p", i));
    parameter.set_parameter_type(i < 8 ? v1::DOUBLE : v1::CATEGORICAL);
    if (i < 8) {
      parameter.mutable_feasible_space()->set_max(1);
    } else {
      for (const char* word : {"adam", "sgd", "lion"}) {
        parameter.mutable_feasible_space()->add_list(word);
      }
    }
  }
  spec.set_max_trial_count(static_cast<int32_t>(2 * trials));
  spec.set_parallel_trial_count(kRunning);
  experiment.mutable_status()->set_trials(trials);
  experiment.mutable_status()->set_trials_running(kRunning);
  experiment.mutable_status()->set_trials_succeeded(trials - kRunning);
  return experiment;
}

void SetMetric(const char* name, double value, int64_t count, v1::Trial& trial) {
  v1::Metric& metric = *trial.mutable_observation()->add_metrics();
  metric.set_name(name);
  metric.set_min(value);
  metric.set_max(value + 1);
  metric.set_latest(value);
  metric.set_latest_step(count);
  metric.set_count(count);
}

v1::Trial LargeTrial(int64_t number, bool runs, Rng& rng) {
  v1::Trial trial;
  trial.set_namespace_(kKey.ns);
  trial.set_experiment(kKey.name);
  trial.set_number(number);
  trial.set_phase(runs ? v1::TRIAL_RUNNING : v1::TRIAL_SUCCEEDED);
  trial.set_explanation("random: point 17 of the stream with seed 7");
  for (int i = 0; i < kParameters; ++i) {
    v1::Assignment& assignment = *trial.add_assignments();
    assignment.set_name(absl::StrCat("p", i));
    if (i < 8) assignment.set_number(rng.Uniform());
    if (i == 8) assignment.set_category("sgd");
    trial.mutable_point()->add_x(0.5);
  }
  const double loss = rng.Uniform();
  SetMetric("loss", loss, 100, trial);
  SetMetric("accuracy", 1 - loss, 100, trial);
  trial.mutable_creation_time()->set_seconds(1'700'000'000 + number);
  trial.mutable_start_time()->set_seconds(1'700'000'001 + number);
  trial.set_attempts(1);
  trial.set_cost(0.1);
  if (runs) return trial;
  trial.mutable_completion_time()->set_seconds(1'700'000'100 + number);
  trial.set_objective(loss);
  return trial;
}

v1::Attempt LargeAttempt(const v1::Trial& trial) {
  v1::Attempt attempt;
  attempt.set_namespace_(kKey.ns);
  attempt.set_experiment(kKey.name);
  attempt.set_trial(trial.number());
  attempt.set_number(1);
  attempt.set_token(absl::StrCat("token-", trial.number()));
  const bool runs = trial.phase() == v1::TRIAL_RUNNING;
  attempt.set_state(runs ? v1::ATTEMPT_RUNNING : v1::ATTEMPT_CLOSED);
  attempt.set_cause(runs                       ? v1::CAUSE_NONE
                    : trial.number() % 10 == 0 ? v1::PREEMPTED_SPOT
                                               : v1::COMPLETED);
  *attempt.mutable_start_time() = trial.start_time();
  if (!runs) *attempt.mutable_end_time() = trial.completion_time();
  v1::Placement& placement = *attempt.add_placements();
  placement.set_node(absl::StrCat("node-", trial.number() % 100));
  placement.set_pool("a100-spot");
  placement.set_capacity("spot");
  placement.set_price_per_hour(3.6);
  *placement.mutable_start_time() = trial.start_time();
  attempt.set_seconds(99);
  attempt.set_cost(0.1);
  return attempt;
}

int64_t Must(const StatusOr<int64_t>& revision) {
  if (!revision.ok()) std::fprintf(stderr, "%s\n", Message(revision.status()).c_str());
  CHECK(revision.ok());
  return *revision;
}

void Fill(db::Store& store, int64_t trials) {
  constexpr int64_t kOfBatch = 1000;
  Rng rng(7);
  Must(store.Commit({.experiment = kKey, .put = {{LargeExperiment(trials), 0}}}));
  for (int64_t number = 1; number <= trials;) {
    db::Batch batch{.experiment = kKey};
    const int64_t end = std::min(trials + 1, number + kOfBatch);
    for (; number < end; ++number) {
      const v1::Trial trial = LargeTrial(number, number > trials - kRunning, rng);
      batch.attempts.push_back({LargeAttempt(trial), 0});
      batch.trials.push_back({trial, 0});
    }
    Must(store.Commit(batch));
  }
  for (int64_t number = 1; number <= std::min(trials, kCurveTrials); ++number) {
    db::Batch batch{.experiment = kKey};
    for (int64_t step = 1; step <= kCurveSteps; ++step) {
      batch.observations.push_back({.trial = number,
                                    .attempt = 1,
                                    .metric = "loss",
                                    .step = step,
                                    .value = 1.0 / static_cast<double>(step) + rng.Uniform()});
    }
    Must(store.Commit(batch));
  }
}

// ---- the server, in a process of its own -------------------------------------------------------

struct ServerProcess {
  pid_t pid = 0;
  int port = 0;
};

int RunServer(const std::string& home, int port_pipe) {
  auto opened = client::LocalClient::Open({.place = {.home = home, .db = "sqlite:" + home + "/db"},
                                           .read_only = true,
                                           .clock = RealClock()});
  CHECK(opened.ok());
  const service::Tokens tokens = service::Tokens::Open();
  service::HttpContext context{.client = opened->get(), .tokens = &tokens, .clock = RealClock()};
  const auto server = service::HttpServer::Start({.context = context});
  CHECK(server.ok());
  const int port = (*server)->port();
  CHECK(write(port_pipe, &port, sizeof port) == sizeof port);
  for (;;) pause();
}

ServerProcess StartServer(const std::string& home) {
  int ends[2];
  CHECK(pipe(ends) == 0);
  ServerProcess server;
  server.pid = fork();
  CHECK(server.pid >= 0);
  if (server.pid == 0) _exit(RunServer(home, ends[1]));
  CHECK(read(ends[0], &server.port, sizeof server.port) == sizeof server.port);
  return server;
}

// Of all of its threads, in user and kernel mode.
double CpuSeconds(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::string text;
  std::getline(file, text);
  const std::vector<std::string> words = absl::StrSplit(text.substr(text.rfind(')') + 2), ' ');
  double ticks = 0, more = 0;
  CHECK(absl::SimpleAtod(words[11], &ticks) && absl::SimpleAtod(words[12], &more));
  return (ticks + more) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

int64_t ResidentBytes(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/statm"));
  int64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// ---- callers -----------------------------------------------------------------------------------

class Caller {
 public:
  explicit Caller(int port) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  }
  void Send(const std::string& path, const std::string& etag = "") const {
    std::string text = absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\n");
    if (!etag.empty()) absl::StrAppend(&text, "If-None-Match: ", etag, "\r\n");
    absl::StrAppend(&text, "\r\n");
    CHECK(send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(text.size()));
  }
  // A whole reply: with a length, in chunks, or without a body.
  void ReadReply() {
    data_.clear();
    while (data_.find("\r\n\r\n") == std::string::npos) ReadMore();
    const size_t body = data_.find("\r\n\r\n") + 4;
    const size_t length = data_.find("Content-Length: ");
    if (length < body) {
      while (data_.size() < body + std::stoul(data_.substr(length + 16, 12))) ReadMore();
    } else if (data_.find("Transfer-Encoding: chunked") < body) {
      while (!data_.ends_with("\r\n0\r\n\r\n")) ReadMore();
    }
  }
  // What has come, without waiting for more.
  void Drain() {
    pollfd wait = {socket_.get(), POLLIN, 0};
    while (poll(&wait, 1, 0) > 0) ReadMore();
  }
  std::string Header(const std::string& name) const {
    const size_t at = data_.find(name + ": ");
    if (at == std::string::npos) return "";
    const size_t begin = at + name.size() + 2;
    return data_.substr(begin, data_.find("\r\n", begin) - begin);
  }
  const std::string& data() const { return data_; }
  void Clear() { data_.clear(); }

 private:
  void ReadMore() {
    char buffer[1 << 18];
    const ssize_t n = recv(socket_.get(), buffer, sizeof buffer, 0);
    CHECK(n > 0);
    data_.append(buffer, static_cast<size_t>(n));
  }

  const Fd socket_;
  std::string data_;
};

// Without the part that all of them have.
std::string Short(const std::string& path) {
  const bool one = path.rfind(kPath, 0) == 0;
  return one ? path.substr(sizeof kPath - 1).substr(0, 60) : path;
}

void MeasureRoute(int port, const std::string& path) {
  double ms[3];
  size_t bytes[3];
  std::string etag, status;
  for (int i = 0; i < 3; ++i) {
    Caller caller(port);
    const absl::Duration began = RealClock()->Monotonic();
    caller.Send(path, i == 2 ? etag : "");
    caller.ReadReply();
    ms[i] = absl::ToDoubleMilliseconds(RealClock()->Monotonic() - began);
    bytes[i] = caller.data().size();
    if (i == 1) etag = caller.Header("ETag");
    if (i < 2) CHECK(caller.data().compare(9, 3, "200") == 0);
    if (i == 2) status = caller.data().substr(9, 3);
  }
  std::printf("%-62s %9.1f ms %9zu B   again %7.1f ms   with ETag %s %5.1f ms %4zu B\n",
              Short(path).c_str(), ms[0], bytes[0], ms[1], status.c_str(), ms[2], bytes[2]);
}

// All pages of a route, as a browser would ask for them.
void MeasurePages(int port, const std::string& path) {
  const absl::Duration began = RealClock()->Monotonic();
  size_t pages = 0, bytes = 0, largest = 0;
  for (std::string more = path; !more.empty(); ++pages) {
    Caller caller(port);
    caller.Send(more);
    caller.ReadReply();
    bytes += caller.data().size();
    largest = std::max(largest, caller.data().size());
    const size_t token = caller.data().find("\"nextPageToken\":\"");
    if (token == std::string::npos) break;
    const size_t begin = token + 17;
    more = absl::StrCat(path, path.find('?') == std::string::npos ? "?" : "&", "pageToken=",
                        caller.data().substr(begin, caller.data().find('"', begin) - begin));
  }
  std::printf("%-62s %zu pages, %zu B, the largest %zu B, %.1f ms\n",
              absl::StrCat(Short(path), " (all pages)").c_str(), pages + 1, bytes, largest,
              absl::ToDoubleMilliseconds(RealClock()->Monotonic() - began));
}

// Each running trial reports twice a second; callers who follow read what comes. Returns the share
// of a core that the server took.
double MeasureWatchers(db::Store& store, const ServerProcess& server, int watchers, int seconds) {
  std::vector<std::unique_ptr<Caller>> callers;
  for (int i = 0; i < watchers; ++i) {
    callers.push_back(std::make_unique<Caller>(server.port));
    callers.back()->Send(absl::StrCat(kPath, "/updates"));
  }
  for (const auto& caller : callers) {
    while (caller->data().find(": following") == std::string::npos) caller->Drain();
    caller->Clear();
  }
  auto live = store.ListTrials({.experiment = kKey, .live_only = true}).value();
  const double before = CpuSeconds(server.pid);
  const absl::Duration began = RealClock()->Monotonic();
  int64_t commits = 0;
  size_t bytes = 0;
  while (RealClock()->Monotonic() - began < absl::Seconds(seconds)) {
    auto& [trial, revision] = live[commits % live.size()];
    trial.set_last_step(trial.last_step() + 1);
    db::Batch batch{.experiment = kKey, .trials = {{trial, revision}}};
    batch.observations.push_back({.trial = trial.number(),
                                  .attempt = 1,
                                  .metric = "loss",
                                  .step = trial.last_step(),
                                  .value = 0.5});
    revision = Must(store.Commit(batch));
    ++commits;
    for (const auto& caller : callers) {
      caller->Drain();
      bytes += caller->data().size();
      caller->Clear();
    }
    absl::SleepFor(began + absl::Milliseconds(500) * commits / kRunning - RealClock()->Monotonic());
  }
  const double wall = absl::ToDoubleSeconds(RealClock()->Monotonic() - began);
  const double share = (CpuSeconds(server.pid) - before) / wall;
  std::printf(
      "%d watchers, %.0f s, %.1f commits a second: %.2f %% of a core, %.0f B a second each\n",
      watchers, wall, static_cast<double>(commits) / wall, 100 * share,
      watchers == 0 ? 0 : static_cast<double>(bytes) / watchers / wall);
  return share;
}

int Run(int64_t trials, int watchers, int seconds) {
  const std::string home = absl::StrCat("/tmp/shirabe-charts-bench-", getpid());
  std::filesystem::create_directories(home);
  const absl::Duration began = RealClock()->Monotonic();
  {
    auto store = db::Open("sqlite:" + home + "/db").value();
    Fill(*store, trials);
  }
  std::printf("%ld trials written in %.1f s\n", static_cast<long>(trials),
              absl::ToDoubleSeconds(RealClock()->Monotonic() - began));
  std::fflush(stdout);
  const ServerProcess server = StartServer(home);  // before this process has threads
  std::string shown = "trial,state,objective";
  for (int i = 0; i < kParameters; ++i) absl::StrAppend(&shown, ",param.p", i);
  const std::string of = kPath;
  for (const std::string& path :
       {absl::StrCat(of, "/columns?fields=", shown), of + "/columns", of + "/timeline",
        of + "/summary", of + "/curves?top=10&px=1000",
        of + "/curves?trials=1,2,3,4,5,6,7,8,9,10&px=1000", of + "/trials", of + "/trials/17",
        std::string("/api/v1/summaries"), std::string("/api/v1/capacity?hours=24")}) {
    MeasureRoute(server.port, path);
  }
  MeasurePages(server.port, absl::StrCat(kPath, "/columns?fields=", shown));
  MeasurePages(server.port, absl::StrCat(kPath, "/columns"));
  MeasurePages(server.port, absl::StrCat(kPath, "/timeline"));
  std::printf("server: %.0f MB resident\n", static_cast<double>(ResidentBytes(server.pid)) / 1e6);
  {
    auto store = db::Open("sqlite:" + home + "/db").value();
    const double none = MeasureWatchers(*store, server, 0, seconds);
    const double some = MeasureWatchers(*store, server, watchers, seconds);
    std::printf("the watchers themselves: %.2f %% of a core\n", 100 * (some - none));
  }
  kill(server.pid, SIGKILL);
  waitpid(server.pid, nullptr, 0);
  std::filesystem::remove_all(home);
  return 0;
}

int Main(const std::vector<std::string>& words) {
  int trials = 0, watchers = 50, seconds = 20;
  const bool good = (words.size() == 1 || words.size() == 3) &&
                    absl::SimpleAtoi(words[0], &trials) && trials > kRunning &&
                    (words.size() == 1 || (absl::SimpleAtoi(words[1], &watchers) &&
                                           absl::SimpleAtoi(words[2], &seconds)));
  if (good) return Run(trials, watchers, seconds);
  std::fputs("usage: scale_charts TRIALS [WATCHERS SECONDS]\n", stderr);
  return 2;
}

}  // namespace
}  // namespace shirabe

int main(int argc, char** argv) {
  return shirabe::Main(std::vector<std::string>(argv + 1, argv + argc));
}
