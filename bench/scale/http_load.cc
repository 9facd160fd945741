// The HTTP door under load.
//   scale_http serve TRIALS                        a store with an experiment of so many trials;
//                                                  prints its port, ends with its input
//   scale_http get PORT PATH CONNECTIONS SECONDS   the same request, one after the other on each
//   scale_http watch PORT STREAMS                  so many event streams, open until input ends
//   scale_http hold PORT CONNECTIONS               so many connections that have asked once
// The load is a process of its own, and one thread a connection.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/file_io.h"
#include "client/local_client.h"
#include "experiment/spec/parse_spec.h"
#include "service/http/http_server.h"

namespace shirabe {
namespace {

constexpr char kSpec[] = R"(apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: load}
spec:
  objective: {type: minimize, objectiveMetricName: loss}
  algorithm: {algorithmName: random}
  parameters:
    - {name: lr, parameterType: double, feasibleSpace: {min: "0.001", max: "1"}}
    - {name: layers, parameterType: int, feasibleSpace: {min: "1", max: "8"}}
    - {name: optimizer, parameterType: categorical, feasibleSpace: {list: [adam, sgd]}}
  shirabe: {askAndTell: true}
)";

class LoadConnection {
 public:
  explicit LoadConnection(int port) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  }
  void Send(const std::string& path) const {
    const std::string text = absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    CHECK(send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(text.size()));
  }
  // A reply that says how long it is.
  void ReadReply() {
    data_.clear();
    size_t end = std::string::npos;
    while ((end = data_.find("\r\n\r\n")) == std::string::npos) ReadMore();
    CHECK(data_.compare(9, 3, "200") == 0);
    const size_t length = data_.find("Content-Length: ");
    CHECK(length < end);
    const size_t whole = end + 4 + std::stoul(data_.substr(length + 16, 12));
    while (data_.size() < whole) ReadMore();
  }
  void ReadUntil(const std::string& text) {
    while (data_.find(text) == std::string::npos) ReadMore();
  }

 private:
  void ReadMore() {
    char buffer[65536];
    const ssize_t n = recv(socket_.get(), buffer, sizeof buffer, 0);
    CHECK(n > 0);
    data_.append(buffer, static_cast<size_t>(n));
  }

  const Fd socket_;
  std::string data_;
};

void WaitForInput() {
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
}

void RunTrials(client::Client& client, int trials) {
  const ExperimentKey key{"default", "load"};
  for (int i = 0; i < trials; ++i) {
    const auto asked = client.Ask(key, "load", absl::Seconds(30));
    CHECK(asked.ok() && asked->has_trial());
    experiment::Report report{.trial = {key, asked->trial().number()},
                              .attempt = asked->attempt(),
                              .token = asked->token(),
                              .end = experiment::Report::End::kCompleted};
    report.points.push_back({.metric = "loss", .value = 1.0 / (i + 1), .step = 1});
    CHECK(client.Tell(report).ok());
  }
}

int Serve(int trials) {
  const std::string home = absl::StrCat("/tmp/shirabe-http-bench-", getpid());
  std::filesystem::create_directories(home);
  {
    auto opened =
        client::LocalClient::Open({.place = {.home = home, .db = "sqlite:" + home + "/db"},
                                   .read_only = false,
                                   .clock = RealClock()});
    CHECK(opened.ok());
    const auto controller = (*opened)->MakeController({}, 1);
    CHECK(controller.ok());
    (*opened)->Attach(controller->get());
    CHECK((*opened)->Submit(experiment::ParseExperiments(kSpec)[0].experiment, {}).ok());
    RunTrials(**opened, trials);
    const service::Tokens tokens = service::Tokens::Open();
    service::HttpContext context{.client = opened->get(), .tokens = &tokens, .clock = RealClock()};
    const auto server = service::HttpServer::Start({.context = context});
    CHECK(server.ok());
    std::printf("%d\n", (*server)->port());
    std::fflush(stdout);
    WaitForInput();
    (*opened)->Attach(nullptr);
  }
  std::filesystem::remove_all(home);
  return 0;
}

struct Load {
  int port = 0;
  std::string path;
  int connections = 1;
  absl::Duration time;
};

int Get(const Load& load) {
  std::mutex mutex;
  std::vector<double> times;  // ms
  const absl::Duration began = RealClock()->Monotonic();
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < load.connections; ++i) {
      threads.emplace_back([&] {
        LoadConnection connection(load.port);
        std::vector<double> mine;
        for (absl::Duration now = RealClock()->Monotonic(); now - began < load.time;) {
          connection.Send(load.path);
          connection.ReadReply();
          const absl::Duration before = std::exchange(now, RealClock()->Monotonic());
          mine.push_back(absl::ToDoubleMilliseconds(now - before));
        }
        std::lock_guard lock(mutex);
        times.insert(times.end(), mine.begin(), mine.end());
      });
    }
  }
  const double seconds = absl::ToDoubleSeconds(RealClock()->Monotonic() - began);
  std::sort(times.begin(), times.end());
  std::printf("%s, %d connections: %.0f requests/s, p50 %.2f ms, p99 %.2f ms\n", load.path.c_str(),
              load.connections, static_cast<double>(times.size()) / seconds,
              times[times.size() / 2], times[times.size() * 99 / 100]);
  return 0;
}

void RaiseFileLimit() {
  rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

int Watch(int port, int streams) {
  RaiseFileLimit();
  std::vector<std::unique_ptr<LoadConnection>> all;
  for (int i = 0; i < streams; ++i) {
    all.push_back(std::make_unique<LoadConnection>(port));
    all.back()->Send("/api/v1/watch");
  }
  for (const auto& stream : all) stream->ReadUntil(": watching");
  std::printf("%d streams are open\n", streams);
  std::fflush(stdout);
  WaitForInput();
  return 0;
}

int Hold(int port, int connections) {
  RaiseFileLimit();
  std::vector<std::unique_ptr<LoadConnection>> all;
  for (int i = 0; i < connections; ++i) {
    all.push_back(std::make_unique<LoadConnection>(port));
    all.back()->Send("/version");
    all.back()->ReadReply();
  }
  std::printf("%d connections are open\n", connections);
  std::fflush(stdout);
  WaitForInput();
  return 0;
}

int Main(const std::vector<std::string>& words) {
  int number = 0;
  int count = 0;
  int seconds = 0;
  const std::string part = words.empty() ? "" : words[0];
  if (part == "serve" && words.size() == 2 && absl::SimpleAtoi(words[1], &number)) {
    return Serve(number);
  }
  if (part == "watch" && words.size() == 3 && absl::SimpleAtoi(words[1], &number) &&
      absl::SimpleAtoi(words[2], &count)) {
    return Watch(number, count);
  }
  if (part == "hold" && words.size() == 3 && absl::SimpleAtoi(words[1], &number) &&
      absl::SimpleAtoi(words[2], &count)) {
    return Hold(number, count);
  }
  if (part == "get" && words.size() == 5 && absl::SimpleAtoi(words[1], &number) &&
      absl::SimpleAtoi(words[3], &count) && absl::SimpleAtoi(words[4], &seconds)) {
    return Get({number, words[2], count, absl::Seconds(seconds)});
  }
  std::fputs(
      "usage: scale_http serve TRIALS | get PORT PATH CONNECTIONS SECONDS | watch PORT STREAMS | "
      "hold PORT CONNECTIONS\n",
      stderr);
  return 2;
}

}  // namespace
}  // namespace shirabe

int main(int argc, char** argv) {
  return shirabe::Main(std::vector<std::string>(argv + 1, argv + argc));
}
