// shirabe serve as its users have it: a process that is killed, stopped, called by strangers and
// joined by a second one, with real trials under it.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/process_id.h"
#include "client/remote_client.h"
#include "experiment/spec/parse_spec.h"
#include "proto/katib/v1beta1/api.grpc.pb.h"
#include "tests/db/postgres_server.h"
#include "tests/integration/cli.h"
#include "tests/integration/http_wire.h"
#include "tests/kube/fake_api_server.h"
#include "tests/support/eventually.h"
#include "tests/support/free_port.h"
#include "tests/support/small_spec.h"

namespace shirabe::cmd {
namespace {

using ::testing::HasSubstr;

// A trial reports, then waits for the file `go`.
constexpr char kServeTrial[] = R"(
echo "loss=$1"
echo "$SHIRABE_TRIAL-a$SHIRABE_ATTEMPT" >> "$DIR/starts"
while [ -d "$DIR" ] && [ ! -e "$DIR/go" ]; do sleep 0.05; done
)";
std::string Asked(const std::string& ns) {
  return Yaml({.name = "asked", .ns = ns, .trials = 3, .more = "shirabe: {askAndTell: true}"});
}

class ServeTest : public testing::Test {
 protected:
  ServeTest() { cli_.Write("trial.sh", kServeTrial); }

  // A server, once it answers.
  std::unique_ptr<Running> Serve(std::vector<std::string> more = {}) {
    const std::string ready = cli_.Path("ready" + std::to_string(++servers_));
    std::vector<std::string> words = {"serve",       "--grpc",       "127.0.0.1:0", "--http",
                                      "127.0.0.1:0", "--ready-file", ready};
    words.insert(words.end(), more.begin(), more.end());
    auto server = cli_.Start(words);
    EXPECT_TRUE(Eventually([&] { return std::filesystem::exists(ready); })) << server->Err();
    const auto written = nlohmann::json::parse(ReadFile(ready).value_or("{}"));
    address_ = written.value("grpc", "");
    katib_address_ = written.value("katib", "");
    http_port_ = std::stoi(
        "0" + written.value("http", ":").substr(written.value("http", ":").rfind(':') + 1));
    return server;
  }

  std::vector<std::string> Remote(std::vector<std::string> words) const {
    words.insert(words.end(), {"--server", address_});
    return words;
  }

  std::string Spec(const std::string& name) { return cli_.Write(name + ".yaml", SpecText(name)); }
  std::string SpecText(const std::string& name, const std::string& more = "") {
    return Yaml({.name = name,
                 .algorithm = "sobol",
                 .parallel = 2,
                 .trials = 4,
                 .container = ScriptCommand(cli_.Path("trial.sh")),
                 .more = more});
  }
  Outcome Apply(const std::string& file) { return cli_.Run(Remote({"apply", "-f", file})); }

  nlohmann::json Trials(const std::string& name) {
    return cli_.Json(Remote({"get", "trials", name, "-o", "json"}))["items"];
  }
  bool HasStarted(size_t trials) {
    const std::string text = ReadFile(cli_.Path("starts")).value_or("");
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) >= trials;
  }
  bool HasSucceeded(const std::string& name) {
    const Outcome outcome = cli_.Run(Remote({"get", "exp", name}));
    return outcome.out.find("Succeeded") != std::string::npos;
  }
  // Every trial ran once, and once only.
  void ExpectOneAttemptEach() {
    std::vector<std::string> starts =
        absl::StrSplit(ReadFile(cli_.Path("starts")).value_or(""), '\n', absl::SkipEmpty());
    std::sort(starts.begin(), starts.end());
    EXPECT_THAT(starts, testing::ElementsAre("one-1-a1", "one-2-a1", "one-3-a1", "one-4-a1"));
  }

  std::unique_ptr<client::Client> Connect(const std::string& token) {
    auto client = client::Connect({.server = address_, .token = token, .clock = RealClock()});
    EXPECT_TRUE(client.ok()) << client.status();
    return std::move(*client);
  }

  // Whether its answer begins so.
  bool Readyz(const std::string& answer) const {
    service::Wire wire(http_port_);
    return wire.Send("GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n") &&
           wire.ReadUntil("\r\n\r\n" + answer);
  }
  bool IsReady() const { return Readyz("ok"); }
  // Whether /metrics has this line.
  bool Measures(const std::string& line) const { return HasMetric(line + "\n"); }
  // Whether a line of it begins so.
  bool HasMetric(const std::string& begin) const {
    service::Wire wire(http_port_);
    return wire.Send(MetricsRequest()) && wire.ReadUntil("\n" + begin);
  }
  std::string MetricsRequest() const {
    const std::string token(
        absl::StripAsciiWhitespace(ReadFile(cli_.state() + "/token").value_or("")));
    return absl::StrCat("GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n",
                        "Authorization: Bearer ", token, "\r\n\r\n");
  }

  std::string MetricsOverTls(int port) const {
    const service::Wire wire(port);
    return wire.connected() ? service::AskOverTls(wire.fd(), MetricsRequest(), {}) : "";
  }

  Cli cli_;
  int servers_ = 0;
  std::string address_;
  std::string katib_address_;
  int http_port_ = 0;
};

TEST_F(ServeTest, RunsWhatIsApplied) {
  cli_.Write("go", "");
  const auto server = Serve();
  EXPECT_THAT(Apply(Spec("one")).out, HasSubstr("one created"));
  EXPECT_THAT(Apply(Spec("one")).out, HasSubstr("one unchanged"));
  EXPECT_EQ(cli_.Run(Remote({"create", "-f", Spec("one")})).code, 4);
  Apply(Spec("two"));
  EXPECT_TRUE(Eventually([&] { return HasSucceeded("one") && HasSucceeded("two"); }));
  EXPECT_THAT(cli_.Run(Remote({"best", "one"})).out, HasSubstr("loss"));
  EXPECT_THAT(cli_.Run(Remote({"logs", "one-1"})).out, HasSubstr("loss="));
  EXPECT_EQ(cli_.Run(Remote({"delete", "one"})).code, 0);
  EXPECT_EQ(cli_.Run(Remote({"describe", "exp", "one"})).code, 3);
  EXPECT_FALSE(std::filesystem::exists(cli_.state() + "/default/one"));
}

// Delete and apply is what everybody does after a mistake in a file.
TEST_F(ServeTest, WhatIsMadeAgainJustAfterItsDeletionRuns) {
  const auto server = Serve();
  for (size_t i = 1; i <= 8; ++i) {
    const Outcome applied = Apply(Spec("one"));
    ASSERT_EQ(applied.code, 0) << applied.err;
    ASSERT_TRUE(Eventually([&] { return HasStarted(2 * i); })) << i;
    const Outcome deleted = cli_.Run(Remote({"delete", "one"}));
    ASSERT_EQ(deleted.code, 0) << deleted.err;
  }
}

// As for an upgrade: what goes on until something has ended is not cut off.
TEST_F(ServeTest, WhatFollowsAnExperimentOutlivesARestart) {
  auto server = Serve();
  ASSERT_EQ(Apply(Spec("one")).code, 0);
  ASSERT_TRUE(Eventually([&] { return HasStarted(2); }));
  const std::vector<std::vector<std::string>> all = {{"wait", "one", "--timeout", "60s"},
                                                     {"logs", "-f", "one-1"},
                                                     {"events", "-w", "one"},
                                                     {"get", "-w", "trials", "one"}};
  std::vector<std::unique_ptr<Running>> follow;
  for (const auto& words : all) {
    follow.push_back(cli_.Start(Remote(words)));
    EXPECT_TRUE(Eventually([&] {  // it has reached the server; `wait` prints nothing
      if (words[0] != "wait") return !follow.back()->Out().empty();
      return HasMetric("shirabe_grpc_requests_total{method=\"/shirabe.v1.Shirabe/AwaitChange\"");
    })) << words[0];
  }
  server->Signal(SIGKILL);
  server->Wait();
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_TRUE(Eventually([&] { return absl::StrContains(follow[i]->Err(), "trying again"); }))
        << all[i][0] << ": " << follow[i]->Err();
  }
  const auto again = cli_.Start({"serve", "--grpc", address_, "--http", "127.0.0.1:0"});
  cli_.Write("go", "");
  for (size_t i = 0; i < all.size(); ++i) {
    const Outcome outcome = follow[i]->Wait();
    EXPECT_EQ(outcome.code, 0) << all[i][0] << ": " << outcome.err;
    const std::vector<std::string> parts = absl::StrSplit(outcome.err, "trying again");
    EXPECT_EQ(parts.size(), 2u) << all[i][0] << " says it once: " << outcome.err;
  }
}

TEST_F(ServeTest, WithoutItsDatabaseItIsNotSaidToBeAway) {
  if (!db::PostgresServer::IsInstalled()) GTEST_SKIP() << "there is no PostgreSQL here";
  db::PostgresServer postgres;
  const auto server = Serve({"--db", "postgres:" + postgres.Address(postgres.NewDatabase())});
  ASSERT_EQ(Apply(Spec("one")).code, 0);
  postgres.Stop(SIGQUIT);
  const Outcome outcome = cli_.Run(Remote({"get", "exp", "one"}));
  EXPECT_EQ(outcome.code, 7);
  EXPECT_THAT(outcome.err, HasSubstr("the server " + address_ + " answers: "));
  EXPECT_THAT(outcome.err, HasSubstr("database postgres://"));
}

// A load balancer looks elsewhere long before the connection counts as lost.
TEST_F(ServeTest, WithADatabaseThatHangsItIsNotReady) {
  if (!db::PostgresServer::IsInstalled()) GTEST_SKIP() << "there is no PostgreSQL here";
  db::PostgresServer postgres;
  const auto server = Serve({"--db", "postgres:" + postgres.Address(postgres.NewDatabase())});
  EXPECT_TRUE(Eventually([&] { return IsReady(); }));
  postgres.SignalAll(SIGSTOP);
  const absl::Duration began = RealClock()->Monotonic();
  EXPECT_TRUE(
      Eventually([&] { return Readyz("[-]experiments: the database has not answered for"); }));
  EXPECT_LT(RealClock()->Monotonic() - began, absl::Seconds(30));
  postgres.SignalAll(SIGCONT);
  EXPECT_TRUE(Eventually([&] { return IsReady(); }));
}

TEST_F(ServeTest, AWaitHasAnEndThoughItsServerIsAway) {
  auto server = Serve();
  ASSERT_EQ(Apply(Spec("one")).code, 0);
  const auto waits = cli_.Start(Remote({"wait", "one", "--timeout", "3s"}));
  Pause(absl::Seconds(1));  // it has reached it
  server->Signal(SIGKILL);
  server->Wait();
  const absl::Duration began = RealClock()->Monotonic();
  const Outcome outcome = waits->Wait();
  EXPECT_EQ(outcome.code, 7) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("cannot reach the server " + address_));
  EXPECT_LT(RealClock()->Monotonic() - began, absl::Seconds(20));
}

// Until there is space again: neither the one who asks nor the one who watches is left to guess.
TEST_F(ServeTest, OnAFullDiskItIsNotReadyAndAnAskSaysWhy) {
  const std::string disk = cli_.Path("disk");
  ASSERT_TRUE(MakeDirs(disk).ok());
  if (mount("shirabe-test", disk.c_str(), "tmpfs", 0, "size=3m") != 0) {
    GTEST_SKIP() << "mounting a small disk takes root";
  }
  const auto server = Serve({"--db", "sqlite:" + disk + "/shirabe.db"});
  const std::string spec = cli_.Write(
      "asked.yaml", Yaml({.name = "asked", .trials = 9999, .more = "shirabe: {askAndTell: true}"}));
  ASSERT_EQ(Apply(spec).code, 0);
  const auto client =
      Connect(std::string(absl::StripAsciiWhitespace(*ReadFile(cli_.state() + "/token"))));
  const ExperimentKey key{"default", "asked"};
  int callers = 0;
  const auto ask = [&](absl::Duration wait = absl::Seconds(1)) {
    return *client->Ask(key, absl::StrCat("caller", ++callers), wait);
  };
  ASSERT_TRUE(ask(absl::Seconds(20)).has_trial());
  EXPECT_TRUE(IsReady());
  const std::string ballast = disk + "/ballast";
  EXPECT_FALSE(WriteFileAtomic(ballast, std::string(3 << 20, 'b')).ok());
  std::ofstream(ballast) << std::string(3 << 20, 'b');  // as much as there is space for
  v1::AskReply reply = ask();
  const auto says_why = [&] { return absl::StrContains(reply.reason(), "disk full"); };
  while (!says_why() && callers < 2000) reply = ask();  // what its files still have room for
  EXPECT_TRUE(reply.pending());
  EXPECT_THAT(reply.reason(), HasSubstr("disk full: cannot write database"));
  EXPECT_TRUE(Eventually([&] { return !IsReady(); }));
  EXPECT_TRUE(Measures("shirabe_ready{check=\"store\"} 0"));
  ASSERT_TRUE(RemoveAll(ballast).ok());
  EXPECT_TRUE(Eventually([&] { return ask().has_trial(); }));
  EXPECT_TRUE(Eventually([&] { return IsReady(); }));
  EXPECT_TRUE(Measures("shirabe_ready{check=\"store\"} 1"));
  umount2(disk.c_str(), MNT_DETACH);
}

TEST_F(ServeTest, OfThoseWhoHaveReadTheSameOneChangesIt) {
  const auto server = Serve();
  Apply(Spec("one"));
  const auto client =
      Connect(std::string(absl::StripAsciiWhitespace(*ReadFile(cli_.state() + "/token"))));
  const ExperimentKey key{"default", "one"};
  for (int round = 1; round <= 3; ++round) {
    const v1::Experiment read = *client->GetExperiment(key);
    const int64_t generation = read.metadata().generation();
    std::atomic<int> done = 0;
    {
      std::vector<std::jthread> writers;
      for (int i = 1; i <= 6; ++i) {
        writers.emplace_back([&, i] {
          v1::Experiment wanted = read;
          wanted.mutable_spec()->set_max_trial_count(100 * round + i);
          const Status status = client->Submit(wanted, {.generation = generation}).status();
          EXPECT_TRUE(status.ok() || absl::IsAborted(status)) << status;
          done += status.ok();
        });
      }
    }
    EXPECT_EQ(done, 1);
    EXPECT_TRUE(Eventually(
        [&] { return client->GetExperiment(key)->metadata().generation() > generation; }));
    EXPECT_EQ(client->GetExperiment(key)->metadata().generation(), generation + 1);
  }
}

TEST_F(ServeTest, AKilledServerLosesNothing) {
  auto server = Serve();
  Apply(Spec("one"));
  ASSERT_TRUE(Eventually([&] { return HasStarted(2); }));
  server->Signal(SIGKILL);
  server->Wait();
  const absl::Duration began = RealClock()->Monotonic();
  server = Serve();
  EXPECT_TRUE(Eventually([&] {
    return cli_.Run(Remote({"get", "exp", "one"})).out.find("Running") != std::string::npos;
  }));
  EXPECT_LT(RealClock()->Monotonic() - began, absl::Seconds(30));
  cli_.Write("go", "");
  EXPECT_TRUE(Eventually([&] { return HasSucceeded("one"); }));
  ExpectOneAttemptEach();
}

TEST_F(ServeTest, AStoppedServerLeavesItsTrialsToTheNext) {
  auto server = Serve();
  Apply(Spec("one"));
  ASSERT_TRUE(Eventually([&] { return HasStarted(2); }));
  server->Signal(SIGTERM);
  EXPECT_EQ(server->Wait().code, 0);
  server = Serve();
  cli_.Write("go", "");
  EXPECT_TRUE(Eventually([&] { return HasSucceeded("one"); }));
  ExpectOneAttemptEach();
}

// A killed parent is what tests/sdk/test_interrupted.py looks at.
TEST_F(ServeTest, EndsWithTheProcessThatStartedIt) {
  const auto ours = Serve({"--parent-pid", std::to_string(getpid())});
  const auto orphan = Serve({"--parent-pid", "1"});
  EXPECT_EQ(orphan->Wait().code, 0);
  EXPECT_EQ(cli_.Run({"serve", "--parent-pid", "0"}).code, 2);
  EXPECT_EQ(kill(ours->pid(), 0), 0);
  ours->Signal(SIGTERM);
  EXPECT_EQ(ours->Wait().code, 0);
}

TEST_F(ServeTest, ASecondServerTakesOverWhenTheFirstDies) {
  auto first = Serve();
  Apply(Spec("one"));
  ASSERT_TRUE(Eventually([&] { return HasStarted(2); }));
  auto second = Serve();
  first->Signal(SIGKILL);
  first->Wait();
  cli_.Write("go", "");
  EXPECT_TRUE(Eventually([&] { return HasSucceeded("one"); }));
  ExpectOneAttemptEach();
}

TEST_F(ServeTest, ASecondServerHandsWishesToTheOwner) {
  auto first = Serve();
  Apply(Spec("one"));
  ASSERT_TRUE(Eventually([&] { return HasStarted(2); }));
  auto second = Serve();
  EXPECT_EQ(cli_.Run(Remote({"cancel", "one"})).code, 0);
  EXPECT_TRUE(Eventually([&] {
    return cli_.Run(Remote({"get", "exp", "one"})).out.find("Failed") != std::string::npos ||
           HasSucceeded("one");
  }));
  for (const auto& trial : Trials("one")) {
    EXPECT_NE(trial["status"]["conditions"].back()["type"], "Running") << trial;
  }
}

TEST_F(ServeTest, ShowsEachCallerHisOwnNamespaceOnly) {
  cli_.Write("tokens", "admin-0123456789abcdef\nuser team team-0123456789abcdef\n");
  std::filesystem::permissions(cli_.Path("tokens"), std::filesystem::perms::owner_read);
  const auto server = Serve({"--token-file", cli_.Path("tokens")});
  cli_.Write("team", "team-0123456789abcdef");
  cli_.Write("wrong", "no-such-0123456789abcdef");
  const auto as = [&](const std::string& token, std::vector<std::string> words) {
    words.insert(words.end(), {"--token-file", cli_.Path(token)});
    return cli_.Run(Remote(words));
  };
  EXPECT_EQ(as("tokens", {"apply", "-f", Spec("one")}).code, 0);
  EXPECT_EQ(as("team", {"get", "exp"}).code, 6);
  EXPECT_EQ(as("team", {"get", "exp", "-A"}).code, 6);
  EXPECT_EQ(as("team", {"describe", "exp", "one"}).code, 6);
  EXPECT_EQ(as("team", {"cancel", "one"}).code, 6);
  EXPECT_EQ(as("team", {"logs", "one-1"}).code, 6);
  EXPECT_EQ(as("team", {"get", "exp", "-n", "team"}).code, 0);
  // His own programs would run as this server's processes.
  const Outcome refused = as("team", {"apply", "-f", Spec("two"), "-n", "team"});
  EXPECT_EQ(refused.code, 6);
  EXPECT_THAT(refused.err, HasSubstr("administrator"));
  const std::string asked = cli_.Write("asked.yaml", Asked("team"));
  EXPECT_EQ(as("team", {"apply", "-f", asked}).code, 0);
  EXPECT_EQ(as("wrong", {"get", "exp", "-n", "team"}).code, 6);
  EXPECT_EQ(cli_.Run(Remote({"get", "exp", "-n", "team"})).code, 6);
}

TEST_F(ServeTest, ATrialReportsForItselfOnly) {
  const auto server = Serve();
  const std::string admin(absl::StripAsciiWhitespace(*ReadFile(cli_.state() + "/token")));
  const auto client = Connect(admin);
  const std::string yaml = Asked("default");
  const auto parsed = experiment::ParseExperiments(yaml);
  ASSERT_TRUE(client->Submit(parsed[0].experiment, {}).ok());
  const ExperimentKey key{"default", "asked"};
  const auto first = client->Ask(key, "a", absl::Seconds(20));
  const auto second = client->Ask(key, "b", absl::Seconds(20));
  ASSERT_TRUE(first.ok() && first->has_trial() && second.ok() && second->has_trial())
      << first.status();
  const auto trial = Connect(absl::BytesToHexString(first->token()));
  const TrialKey own{key, first->trial().number()}, other{key, second->trial().number()};
  const auto report = [&](const TrialKey& target) {
    return trial
        ->Tell({.trial = target,
                .points = {{.metric = "loss", .value = 0.5, .step = 1}},
                .end = experiment::Report::End::kNone})
        .status();
  };
  EXPECT_TRUE(report(own).ok()) << report(own);
  EXPECT_EQ(report(other).code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(report({{"default", "elsewhere"}, 1}).code(), absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(trial->GetTrial(own).ok());
  EXPECT_TRUE(trial->ListObservations({.trial = own}).ok());
  EXPECT_EQ(trial->GetTrial(other).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(trial->GetExperiment(key).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(trial->ListTrials({.experiment = key}).status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(trial->Changes(0).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(trial->Send(key, {}).code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(ServeTest, RefusesABadSpecificationWithItsField) {
  const auto server = Serve({"--insecure"});
  const auto client = Connect("");
  const auto parsed = experiment::ParseExperiments(Asked("default"));
  v1::Experiment bad = parsed[0].experiment;
  bad.mutable_spec()->mutable_parameters(0)->mutable_feasible_space()->set_min(2);
  const Status refused = client->Submit(bad, {}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(refused), HasSubstr("spec.parameters[0].feasibleSpace"));
  ASSERT_TRUE(client->Submit(parsed[0].experiment, {}).ok());
  EXPECT_EQ(client->Submit(parsed[0].experiment, {.generation = 7}).status().code(),
            absl::StatusCode::kAborted);
}

TEST_F(ServeTest, AnswersOneCallerOnlySoOftenAndCountsTheCalls) {
  const auto server = Serve({"--insecure", "--rate", "1"});
  const auto client = Connect("");
  EXPECT_TRUE(client->ListExperiments("").ok());
  Status refused;
  for (int i = 0; i < 100 && refused.ok(); ++i) refused = client->ListExperiments("").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
  EXPECT_THAT(Message(refused), HasSubstr("more than 1 requests a second"));
  service::Wire wire(http_port_);
  ASSERT_TRUE(wire.Send("GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
  EXPECT_TRUE(
      wire.ReadUntil("shirabe_grpc_requests_total{method=\"/shirabe.v1.Shirabe/"
                     "ListExperiments\",code=\"RESOURCE_EXHAUSTED\"} 1"));
}

TEST_F(ServeTest, IsOpenToTheNetworkOnlyWithTlsAndAToken) {
  EXPECT_EQ(cli_.Run({"serve", "--insecure", "--http", "0.0.0.0:0"}).code, 5);
  const Outcome plain = cli_.Run({"serve", "--grpc", "0.0.0.0:0"});
  EXPECT_EQ(plain.code, 5);
  EXPECT_THAT(plain.err, HasSubstr("--tls-cert"));
  EXPECT_EQ(cli_.Run({"serve", "--tls-cert", "a"}).code, 2);
  const Outcome torn =
      cli_.Run({"serve", "--tls-cert", cli_.Write("c.pem", "x"), "--tls-key", cli_.Path("c.pem")});
  EXPECT_THAT(torn.err, HasSubstr("c.pem is not a PEM file"));
}

TEST_F(ServeTest, TakesWhatKatibsPushersSend) {
  const auto server = Serve({"--katib-listen", "127.0.0.1:0"});
  const std::string yaml = SpecText("one", "metricsCollectorSpec: {collector: {kind: Push}}");
  EXPECT_EQ(Apply(cli_.Write("one.yaml", yaml)).code, 0);
  ASSERT_TRUE(Eventually([&] { return HasStarted(2); }));
  auto channel = grpc::CreateChannel(katib_address_, grpc::InsecureChannelCredentials());
  const auto stub = api::v1::beta1::DBManager::NewStub(channel);
  const auto push = [&](const std::string& trial, const std::string& value) {
    api::v1::beta1::ReportObservationLogRequest request;
    request.set_trial_name(trial);
    auto& log = *request.mutable_observation_log()->add_metric_logs();
    log.set_time_stamp("2026-11-21T10:00:00Z");
    log.mutable_metric()->set_name("loss");
    log.mutable_metric()->set_value(value);
    api::v1::beta1::ReportObservationLogReply reply;
    grpc::ClientContext context;
    return stub->ReportObservationLog(&context, request, &reply).error_code();
  };
  EXPECT_TRUE(Eventually([&] { return push("one-1", "0.25") == grpc::StatusCode::OK; }));
  EXPECT_EQ(push("one-1", "0.25"), grpc::StatusCode::OK);  // sent again
  EXPECT_EQ(push("one-9", "0.25"), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(push("one-1", "low"), grpc::StatusCode::INVALID_ARGUMENT);
  // By the name of its object, and of its pod, as a collector of Katib's knows it.
  EXPECT_EQ(push("one-1-a1", "0.25"), grpc::StatusCode::OK);
  EXPECT_EQ(push("default/one-1-a1-x8zqk", "0.25"), grpc::StatusCode::OK);
  EXPECT_NE(push("one-1-a9", "0.1"), grpc::StatusCode::OK);
  const auto rows = cli_.Json(Remote({"get", "metrics", "one/1", "-o", "json"}))["items"];
  ASSERT_EQ(rows.size(), 1u) << rows;
  EXPECT_EQ(rows[0]["value"], 0.25);
}

TEST_F(ServeTest, SaysWhatToDoWithAnImportThatIsTooLargeForAMessage) {
  const auto server = Serve();
  std::string table = "lr,loss,note\n";
  const std::string note(50'000, 'n');
  for (int i = 1; i <= 100; ++i) absl::StrAppend(&table, i, ",", i, ",", note, i, "\n");
  const auto refused =
      cli_.Run(Remote({"import", "csv", cli_.Write("t.csv", table), "--minimize", "loss"}));
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.err, HasSubstr("larger than max"));
  EXPECT_THAT(refused.err, HasSubstr("without --server"));
}

TEST_F(ServeTest, SpeaksTls) {
  const std::string command =
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
      "-subj /CN=localhost -addext subjectAltName=IP:127.0.0.1,DNS:localhost -keyout " +
      cli_.Path("key.pem") + " -out " + cli_.Path("cert.pem") + " 2>/dev/null";
  if (system(command.c_str()) != 0) GTEST_SKIP() << "there is no openssl to make a certificate";
  const auto server =
      Serve({"--tls-cert", cli_.Path("cert.pem"), "--tls-key", cli_.Path("key.pem")});
  EXPECT_EQ(cli_.Run(Remote({"get", "exp", "--ca", cli_.Path("cert.pem")})).code, 0);
  EXPECT_EQ(cli_.Run(Remote({"get", "exp"})).code, 7);
}

std::string KubeconfigOf(const kube::FakeApiServer& cluster) {
  return absl::StrFormat(R"({
    "apiVersion": "v1", "kind": "Config", "current-context": "t",
    "clusters": [{"name": "t", "cluster": {"server": "http://127.0.0.1:%d"}}],
    "users": [{"name": "t", "user": {}}],
    "contexts": [{"name": "t", "context": {"cluster": "t", "user": "t"}}]})",
                         cluster.port());
}

// In a cluster that gives its account no right: it is alive, and says that it does not see what is
// applied. Once it may, it goes on.
TEST_F(ServeTest, AControllerWithoutRightsSaysSoInItsMetrics) {
  std::atomic<bool> may = false;
  const kube::FakeApiServer cluster([&](kube::FakeExchange& exchange) {
    if (!may) return exchange.Reply(403, kube::StatusText(403, "Forbidden", "no right to list"));
    if (exchange.request().query.contains("watch")) {
      (void)exchange.KeepSilent(absl::Seconds(20));
      return;
    }
    exchange.Reply(200, R"({"kind": "List", "metadata": {"resourceVersion": "1"}, "items": []})");
  });
  const std::string kubeconfig = cli_.Write("kubeconfig", KubeconfigOf(cluster));
  const std::string ready = cli_.Path("ready");
  const auto controller = cli_.Start({"controller", "--kubeconfig", kubeconfig, "--image", "none",
                                      "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0",
                                      "--advertise", "127.0.0.1:7450", "--ready-file", ready});
  ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(ready); })) << controller->Err();
  const std::string http = nlohmann::json::parse(*ReadFile(ready)).value("http", "");
  const auto measures = [&](const std::string& line) {
    return absl::StrContains(MetricsOverTls(std::stoi(http.substr(http.rfind(':') + 1))), line);
  };
  EXPECT_TRUE(Eventually([&] { return measures("\nshirabe_ready{check=\"cluster\"} 0\n"); }))
      << controller->Err();
  EXPECT_TRUE(measures("\nshirabe_ready{check=\"store\"} 1\n"));
  EXPECT_THAT(controller->Err(), HasSubstr("failed to watch custom resources"));
  may = true;
  EXPECT_TRUE(Eventually([&] { return measures("\nshirabe_ready{check=\"cluster\"} 1\n"); }))
      << controller->Err();
}

// What the store holds, the leader counts: a sum over the replicas would count it twice.
TEST_F(ServeTest, AReplicaThatWaitsToLeadCountsNothingOfTheStore) {
  ASSERT_EQ(cli_.Run({"create", "-f", Spec("one")}).code, 0);
  std::atomic<int> looks = 0;
  const kube::FakeApiServer cluster([&](kube::FakeExchange& exchange) {
    const kube::FakeRequest& request = exchange.request();
    if (absl::StrContains(request.path, "/leases")) {
      ++looks;  // held by another, who renews it
      return exchange.Reply(200, absl::StrFormat(R"({"kind": "Lease",
        "metadata": {"name": "shirabe-controller", "namespace": "ns", "resourceVersion": "%d"},
        "spec": {"holderIdentity": "another", "leaseDurationSeconds": 15, "leaseTransitions": 1,
                 "renewTime": "2026-01-01T00:00:00.%06dZ"}})",
                                                 looks.load(), looks.load()));
    }
    if (request.method == "POST") return exchange.Reply(201, request.body);  // its certificate
    exchange.Reply(404, kube::StatusText(404, "NotFound", "it is not there"));
  });
  const int port = FreePort();
  const auto replica =
      cli_.Start({"controller", "--kubeconfig", cli_.Write("kubeconfig", KubeconfigOf(cluster)),
                  "--image", "none", "--lease-namespace", "ns", "--grpc", "127.0.0.1:0", "--http",
                  absl::StrCat("127.0.0.1:", port), "--advertise", "127.0.0.1:7450"});
  std::string metrics;
  EXPECT_TRUE(Eventually([&] {
    metrics = MetricsOverTls(port);
    return absl::StrContains(metrics, "\nprocess_resident_memory_bytes ");
  })) << replica->Err();
  EXPECT_THAT(metrics, testing::Not(HasSubstr("\nkatib_experiments_current{")));
  EXPECT_THAT(metrics, testing::Not(HasSubstr("\nshirabe_ready{")));
}

}  // namespace
}  // namespace shirabe::cmd
