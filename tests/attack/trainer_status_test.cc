// Programs of this machine report their status over HTTP, at an address and with a token of their
// attempt's own (trial/local/attempt_endpoints.h): what one of them can do to itself, to other
// trials and to the server that listens.
#include <sys/stat.h>

#include <csignal>
#include <deque>

#include "absl/strings/str_replace.h"
#include "base/open_beneath.h"
#include "tests/attack/attacked_server.h"
#include "tests/support/eventually.h"

namespace shirabe::attack {
namespace {

using ::testing::HasSubstr;

// As Hugging Face's Trainer has it.
std::string StatusOf(const std::string& metrics) {
  return R"({"trainerStatus": {"lastUpdatedTime": "2026-11-23T08:30:00.5+00:00",)"
         R"( "progressPercentage": 10, "estimatedRemainingSeconds": 3, "metrics": [)" +
         metrics + "]}}";
}

std::string Metric(const std::string& name, const std::string& value) {
  return absl::StrCat(R"({"name": ")", name, R"(", "value": ")", value, R"("})");
}

std::string LossAt(int step, const std::string& loss) {
  return StatusOf(Metric("loss", loss) + "," + Metric("current_step", std::to_string(step)));
}

class TrainerStatusAttack : public AttackTest {
 protected:
  // Both trials of "a" wait for `go` to be there, and print no metric themselves.
  void RunTrials(const std::string& script = "") {
    Serve();
    ASSERT_LT(Create("red",
                     Spec(kHonestSpec, "red", "a",
                          // No longer than there is a test: its folder goes with it.
                          script + "while test -d " + cli_.Path("") + " && ! test -e " +
                              cli_.Path("go") + "; do sleep 0.05; done"),
                     kAdminToken),
              300);
    for (int trial : {1, 2}) {
      ASSERT_TRUE(Eventually([&] { return !Token(trial).empty() && Started(trial); }))
          << server_->Err();
    }
  }

  std::string File(int trial, const std::string& name) const {
    return absl::StrCat(cli_.state(), "/trials/red/a/a-", trial, "/a-", trial, "-a1/", name);
  }
  bool Started(int trial) const { return std::filesystem::exists(File(trial, "pid")); }
  std::string Token(int trial) const { return ReadFile(File(trial, "trainer-token")).value_or(""); }
  std::string Metrics(int trial) const {
    return ReadFile(File(trial, "metrics.jsonl")).value_or("none");
  }

  // To the address of a trial; 0: no reply.
  service::WireReply Post(int trial, const std::string& token, const std::string& body) const {
    const std::string url = ReadFile(File(trial, "trainer-url")).value_or("");
    const size_t colon = url.rfind(':');
    const size_t slash = url.find('/', colon);
    if (slash == std::string::npos) return {};
    service::Wire wire(std::stoi(url.substr(colon + 1)));
    wire.Send(service::RequestText("POST " + url.substr(slash), token, body));
    return wire.ReadReply();
  }

  void Finish() {
    ASSERT_TRUE(WriteFileAtomic(cli_.Path("go"), "").ok());
    ASSERT_TRUE(Eventually([&] { return HasSucceeded("red", "a"); })) << server_->Err();
  }

  double Best() const {
    v1::ExperimentRef key;
    key.set_namespace_("red");
    key.set_name("a");
    v1::Experiment experiment;
    EXPECT_TRUE(Shirabe()->GetExperiment(As(kAdminToken).get(), key, &experiment).ok());
    return experiment.status().current_optimal_trial().objective();
  }
};

TEST_F(TrainerStatusAttack, OnlyTheAttemptsOwnTokenWritesToIt) {
  RunTrials();
  EXPECT_NE(Token(1), Token(2));
  for (const std::string& token :
       {Token(2), std::string(), Token(1).substr(1), Token(1) + "0", std::string(kAdminToken)}) {
    EXPECT_EQ(Post(1, token, LossAt(1, "-100")).status, 401) << token;
  }
  struct stat info;
  ASSERT_EQ(stat(File(1, "trainer-token").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  // Nor do these open the server's own doors.
  EXPECT_EQ(Http("GET /api/v1/namespaces/red/experiments", Token(1)).status, 401);
  EXPECT_EQ(Metrics(1), "none");
  EXPECT_EQ(Metrics(2), "none");
  EXPECT_EQ(Post(1, Token(1), LossAt(1, "0.5")).status, 200);
  EXPECT_EQ(Post(2, Token(2), LossAt(1, "0.25")).status, 200);
  const std::string url = *ReadFile(File(1, "trainer-url")), token = Token(1);
  Finish();
  EXPECT_EQ(Best(), 0.25);
  EXPECT_EQ(Post(1, token, LossAt(2, "-100")).status, 401) << "it has ended";
  ExpectAlive();
}

TEST_F(TrainerStatusAttack, NonsenseIsRefusedByNameAndWritesNothing) {
  RunTrials();
  const struct {
    std::string body, why;
  } attacks[] = {
      {"", "trainerStatus: is missing"},
      {"\xff\xfe", "trainerStatus: is missing"},
      {"[1]", "trainerStatus: is missing"},
      {"{\"trainerStatus\": null}", "must be an object"},
      {std::string(100'000, '['), "trainerStatus: is missing"},
      {R"({"trainerStatus": {"progressPercentage": -1}})", "from 0 to 100"},
      {R"({"trainerStatus": {"progressPercentage": "nan"}})", "from 0 to 100"},
      {R"({"trainerStatus": {"estimatedRemainingSeconds": 1e300}})", "from 0 to"},
      {StatusOf(R"({"name": 7, "value": "1"})"), ".metrics[0]: must be {name"},
      {StatusOf("\"loss\""), ".metrics[0]: must be {name"},
      {LossAt(-1, "1"), "must be a whole number from 0"},
      {StatusOf(Metric("loss", "1") + "," + Metric("current_step", "nan")), "whole number"},
      {StatusOf(Metric("loss", "1") + "," + Metric("current_step", "1.5")), "whole number"},
      {StatusOf(Metric("loss", "1") + "," + Metric("current_step", "1e300")), "whole number"},
      {StatusOf(Metric(std::string(300, 'x'), "1")), "more than 256 bytes"},
  };
  for (const auto& attack : attacks) {
    const auto reply = Post(1, Token(1), attack.body);
    EXPECT_EQ(reply.status, 400) << attack.body.substr(0, 100);
    EXPECT_THAT(reply.body, HasSubstr(attack.why)) << attack.body.substr(0, 100);
  }
  EXPECT_EQ(Post(1, Token(1), LossAt(1, "1") + std::string(2 << 20, ' ')).status, 413);
  EXPECT_EQ(Metrics(1), "none");
  // Not a number is a value, and never the best.
  EXPECT_EQ(Post(1, Token(1), LossAt(1, "nan")).status, 200);
  EXPECT_EQ(Post(1, Token(1), LossAt(2, "-inf")).status, 200);
  EXPECT_EQ(Post(1, Token(1), LossAt(3, "1e999")).status, 200);
  EXPECT_EQ(Post(2, Token(2), LossAt(1, "0.75")).status, 200);
  Finish();
  EXPECT_EQ(Best(), 0.75);
  ExpectAlive();
}

TEST_F(TrainerStatusAttack, NamesAreRememberedUpToALimit) {
  RunTrials();
  const auto names = [](int first, int count) {
    std::string metrics = Metric("loss", "0.5");
    for (int i = first; i < first + count; ++i) {
      absl::StrAppend(&metrics, ",", Metric("m" + std::to_string(i), "1"));
    }
    return StatusOf(metrics);
  };
  EXPECT_EQ(Post(1, Token(1), names(0, 2000)).status, 400);
  EXPECT_EQ(Metrics(1), "none");
  EXPECT_EQ(Post(1, Token(1), names(0, 600)).status, 200);
  const std::string before = Metrics(1);
  const auto reply = Post(1, Token(1), names(600, 600));
  EXPECT_EQ(reply.status, 400);
  EXPECT_THAT(reply.body, HasSubstr("more than 1000 names"));
  EXPECT_EQ(Metrics(1), before);
  EXPECT_EQ(Post(1, Token(1), LossAt(7, "0.25")).status, 200) << "what is known goes on";
  Finish();
  EXPECT_EQ(Best(), 0.25);
}

TEST_F(TrainerStatusAttack, WhatStandsInPlaceOfTheMetricsFileIsNotWritten) {
  const std::string secret = cli_.Write("secret", "untouched");
  RunTrials("case $SHIRABE_TRIAL in a-1) ln -s " + secret +
            " $SHIRABE_METRICS_FILE;; *) mkfifo $SHIRABE_METRICS_FILE;; esac; ");
  for (int trial : {1, 2}) {
    ASSERT_TRUE(Eventually([&] {
      struct stat info;
      return lstat(File(trial, "metrics.jsonl").c_str(), &info) == 0 && !Token(trial).empty();
    }));
    const int status = Post(trial, Token(trial), LossAt(1, "0.5")).status;
    if (status == 503) continue;
    EXPECT_EQ(status, 401) << "only that of an attempt that has been ended for it";
    const std::string path = absl::StrCat("experiments/a/trials/", trial, "/attempts");
    // Its token goes before its end is recorded.
    EXPECT_TRUE(Eventually([&] {
      const std::string attempts = Http("GET /api/v1/namespaces/red/" + path, kAdminToken).body;
      return attempts.find("\"cause\":\"app-error\"") != std::string::npos;
    })) << path;
  }
  EXPECT_EQ(*ReadFile(secret), "untouched");
  EXPECT_EQ(Http("GET /livez", "").status, 200);
  ASSERT_TRUE(WriteFileAtomic(cli_.Path("go"), "").ok());
  ExpectAlive();
}

TEST_F(TrainerStatusAttack, ConnectionsThatAreHeldOpenKeepNoTrialFromReporting) {
  RunTrials();
  const std::string url = *ReadFile(File(1, "trainer-url"));
  const int port = std::stoi(url.substr(url.rfind(':') + 1));
  std::deque<service::Wire> held;
  for (int i = 0; i < 400; ++i) {
    held.emplace_back(port);
    held.back().Send("POST / HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n");
  }
  EXPECT_EQ(Post(2, Token(2), LossAt(1, "0.125")).status, 200);
  Finish();
  EXPECT_EQ(Best(), 0.125);
  ExpectAlive();
}

TEST_F(TrainerStatusAttack, AfterKillMinusNineTheNextServerListensWhereTheProgramsWereTold) {
  RunTrials();
  EXPECT_EQ(Post(1, Token(1), LossAt(1, "0.5")).status, 200);
  // One changes what it was told, so that the next server takes it for the other.
  const std::string url = *ReadFile(File(2, "trainer-url"));
  ASSERT_TRUE(
      WriteFileAtomic(File(2, "trainer-url"), absl::StrReplaceAll(url, {{"a-2-", "a-1-"}})).ok());
  ASSERT_TRUE(WriteFileAtomic(File(2, "trainer-token"), "stolen").ok());
  server_->Signal(SIGKILL);
  server_->Wait();
  Serve();
  ASSERT_TRUE(Eventually([&] { return Post(1, Token(1), LossAt(2, "0.375")).status == 200; }))
      << server_->Err();
  EXPECT_EQ(Post(1, "stolen", LossAt(3, "-100")).status, 401);
  EXPECT_EQ(Post(1, Token(1), LossAt(4, "0.25")).status, 200);
  EXPECT_THAT(server_->Err(), HasSubstr("an adopted program cannot report over HTTP"));
  Finish();
  EXPECT_EQ(Best(), 0.25);
  ExpectAlive();
}

}  // namespace
}  // namespace shirabe::attack
