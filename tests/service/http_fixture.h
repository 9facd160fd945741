// A store in memory with experiments of two namespaces, the tokens of those who may use them, and
// the router over it, without sockets.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/file_io.h"
#include "client/local_client.h"
#include "experiment/spec/parse_spec.h"
#include "service/common/change_hub.h"
#include "service/common/server_metrics.h"
#include "service/common/update_feeds.h"
#include "service/http/http_router.h"
#include "view/record_json.h"

namespace shirabe::service {

inline constexpr char kAdminToken[] = "admin-token-for-tests";
inline constexpr char kTeamToken[] = "team-a-token-for-tests";
inline constexpr char kOtherToken[] = "team-b-token-for-tests";

// An ask-and-tell experiment: its trials are run by the tests.
inline std::string AskedSpec(const std::string& name, int trials = 6);

class HttpFixture {
 public:
  HttpFixture();
  ~HttpFixture();

  HttpReply Get(const std::string& target, const std::string& token = kAdminToken);
  HttpReply Send(const std::string& method, const std::string& target, const std::string& body,
                 const std::string& token = kAdminToken);
  // Waits for what is pending.
  HttpReply Handle(HttpRequest request);
  Router& router() { return *router_; }
  HttpContext context();

  // Stores AskedSpec(name) in a namespace.
  void Create(const std::string& ns, const std::string& name, int trials = 6);
  // Asks and tells `count` trials of it.
  void RunTrials(const std::string& ns, const std::string& name, int count);

  client::LocalClient& client() { return *client_; }
  ChangeHub& hub() { return *hub_; }
  Metrics& metrics() { return metrics_; }
  const Metrics& metrics() const { return metrics_; }

 private:
  const std::string home_;
  std::unique_ptr<client::LocalClient> client_;
  std::unique_ptr<experiment::Controller> controller_;
  std::unique_ptr<Tokens> tokens_;
  std::unique_ptr<ChangeHub> hub_;
  std::unique_ptr<UpdateFeeds> updates_;
  Metrics metrics_;
  ShutdownWait shutdown_wait_;
  std::unique_ptr<Router> router_;
};

inline view::Json BodyOf(const HttpReply& reply);
// All of a reply that has a source.
inline std::string Drain(HttpReply& reply);

// ---- how ---------------------------------------------------------------------------------------

inline constexpr char kAskedSpec[] = R"(apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: NAME}
spec:
  objective: {type: minimize, objectiveMetricName: loss}
  algorithm: {algorithmName: random}
  maxTrialCount: TRIALS
  parameters:
    - {name: x, parameterType: double, feasibleSpace: {min: "0", max: "1"}}
    - {name: opt, parameterType: categorical, feasibleSpace: {list: [adam, "sgd, slow"]}}
  shirabe: {askAndTell: true, seed: 3}
)";

inline std::string NewHome() {
  static std::atomic<int> count = 0;
  const std::string home = absl::StrCat(testing::TempDir(), "http-", getpid(), "-", ++count);
  std::filesystem::remove_all(home);
  std::filesystem::create_directories(home);
  return home;
}

inline std::string AskedSpec(const std::string& name, int trials) {
  return absl::StrReplaceAll(kAskedSpec, {{"NAME", name}, {"TRIALS", std::to_string(trials)}});
}

inline HttpFixture::HttpFixture() : home_(NewHome()) {
  auto opened = client::LocalClient::Open(
      {.place = {.home = home_, .db = "memory:"}, .read_only = false, .clock = RealClock()});
  CHECK(opened.ok());
  client_ = std::move(*opened);
  auto controller = client_->MakeController({}, 1);
  CHECK(controller.ok());
  controller_ = std::move(*controller);
  client_->Attach(controller_.get());
  const std::string path = home_ + "/tokens";
  CHECK(WriteFileAtomic(path, absl::StrCat(kAdminToken, "\nuser a ", kTeamToken, "\nuser b ",
                                           kOtherToken, "\n"))
            .ok());
  CHECK(chmod(path.c_str(), 0600) == 0);
  auto tokens = Tokens::Load(path);
  CHECK(tokens.ok());
  tokens_ = std::make_unique<Tokens>(std::move(*tokens));
  hub_ = std::make_unique<ChangeHub>(*client_);
  hub_->Start();
  updates_ = std::make_unique<UpdateFeeds>(client_.get(), RealClock());
  router_ = std::make_unique<Router>(context());
}

inline HttpFixture::~HttpFixture() {
  shutdown_wait_.End();
  hub_ = nullptr;
  client_->Attach(nullptr);
  controller_ = nullptr;
  client_ = nullptr;
  std::filesystem::remove_all(home_);
}

inline HttpContext HttpFixture::context() {
  return {.client = client_.get(),
          .tokens = tokens_.get(),
          .clock = RealClock(),
          .hub = hub_.get(),
          .updates = updates_.get(),
          .metrics = &metrics_,
          .shutdown_wait = &shutdown_wait_};
}

inline HttpReply HttpFixture::Get(const std::string& target, const std::string& token) {
  return Send("GET", target, "", token);
}

inline HttpReply HttpFixture::Send(const std::string& method, const std::string& target,
                                   const std::string& body, const std::string& token) {
  HttpRequest request{.method = method, .target = target, .body = body, .peer = "127.0.0.1"};
  if (!token.empty()) request.headers.emplace_back("authorization", "Bearer " + token);
  return Handle(request);
}

inline HttpReply HttpFixture::Handle(HttpRequest request) {
  HttpReply reply = router_->Handle(request);
  if (reply.pending == nullptr) return reply;
  const std::unique_ptr<PendingReply> pending = std::move(reply.pending);
  const absl::Duration deadline = RealClock()->Monotonic() + pending->terms().patience;
  for (;;) {
    auto came = router_->TryAnswer(*pending, RealClock()->Monotonic() >= deadline);
    if (came) return *std::move(came);
    Pause(absl::Milliseconds(2));
  }
}

inline void HttpFixture::Create(const std::string& ns, const std::string& name, int trials) {
  auto parsed = experiment::ParseExperiments(AskedSpec(name, trials));
  CHECK(!experiment::HasErrors(parsed[0].findings));
  parsed[0].experiment.mutable_metadata()->set_namespace_(ns);
  const auto submitted = client_->Submit(parsed[0].experiment, {});
  CHECK(submitted.ok());
}

inline void HttpFixture::RunTrials(const std::string& ns, const std::string& name, int count) {
  for (int i = 0; i < count; ++i) {
    const auto asked = client_->Ask({ns, name}, "fixture", absl::Seconds(20));
    CHECK(asked.ok() && asked->has_trial());
    experiment::Report report{.trial = {{ns, name}, asked->trial().number()},
                              .attempt = asked->attempt(),
                              .token = asked->token(),
                              .end = experiment::Report::End::kCompleted};
    report.points.push_back({.metric = "loss", .value = 1.0 / (i + 1), .step = 1});
    CHECK(client_->Tell(report).ok());
  }
}

inline view::Json BodyOf(const HttpReply& reply) {
  return view::Json::parse(reply.body, nullptr, /*allow_exceptions=*/false);
}

inline std::string Drain(HttpReply& reply) {
  std::string text;
  for (;;) {
    const auto piece = reply.source->Next();
    CHECK(piece.ok());
    text += piece->text;
    if (piece->end) return text;
  }
}

}  // namespace shirabe::service
